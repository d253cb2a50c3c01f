# SPDX-License-Identifier: Apache-2.0
"""`prime-rl`: `rollouts/step_N/train/…/traces.jsonl`, one episode of traces on each line.

A trace is a graph of messages; each node has the tokens that it adds, a mask that is true where
the policy sampled, and log-probabilities of those tokens. One reply to one prompt is a row. A
trace of several turns, or one that ended with an error, is refused. Also read: one trace on each
line, and the flat rows of older versions (prompt, completion, reward, metrics).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.errors import ConfigError, TaskDataError
from stages.imports import values
from stages.imports.base import Component, Kind, Reading, Row, Said, Source

EPISODE = {"traces", "group", "task", "ok"}
TRACE = {"nodes", "rewards", "metrics", "ok", "stop_condition", "task"}
NODE = {"parent", "message", "sampled", "token_ids", "mask", "logprobs"}
FLAT = {
    *("prompt", "completion", "answer", "reward", "metrics", "example_id", "is_truncated"),
    *("error", "trajectory"),
}
CUT = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length")


@dataclass(frozen=True, slots=True)
class PrimeRL:
    """The format; `--map answer=NAME` names the task's field that holds the reference."""

    name: str = "prime-rl"
    kinds: Sequence[Kind] = ("rollouts", "demonstrations", "problems")
    fields: Sequence[str] = ("answer",)

    def read(self, source: Source, kind: Kind, mapping: Mapping[str, str]) -> Reading:
        """The rows of a file."""
        unfit = sorted(mapping.keys() - set(self.fields))
        if unfit:
            raise ConfigError(f"--map: {unfit[0]!r} cannot be set for prime-rl; fields: answer")
        reading = Reading(rewards=["reward"], decides="reward")
        left: dict[str, None] = {}
        names: dict[str, None] = {}
        for line, record in source.records:
            at = f"{source.where} {line}"
            for found in _rows(line, record, kind, mapping.get("answer", "answer"), at, left):
                if isinstance(found, str):
                    reading.refuse(line, found)
                else:
                    reading.rows.append(found)
                    names.update(dict.fromkeys(name for name, _, _ in found.components))
        reading.columns = list(left)
        reading.rewards = list(names)
        return reading


FORMAT = PrimeRL()


def _rows(
    line: int, record: Mapping[str, Any], kind: Kind, answer: str, at: str, left: dict[str, None]
) -> Iterator[Row | str]:
    """The rows of a record, or the reasons why there is none."""
    if "nodes" in record:
        record = {"traces": [record]}
    try:
        if "traces" not in record:
            _leave(record, FLAT, "", left)
            yield _flat(line, record, kind, answer, at)
            return
    except values.NotSayable as refused:
        yield str(refused)
        return
    _leave(record, EPISODE, "", left)
    traces = _list(record["traces"], f"{at}, column 'traces'")
    if not traces:
        yield "an episode without a trace"
    for place, trace in enumerate(traces):
        here = f"{at}, column 'traces[{place}]'"
        _leave(_object(trace, here), TRACE, "traces.", left)
        try:
            yield _traced(line, record, trace, kind, answer, here, left)
        except values.NotSayable as refused:
            yield str(refused)


def _leave(found: Mapping[str, Any], used: set[str], prefix: str, left: dict[str, None]) -> None:
    left.update(dict.fromkeys(f"{prefix}{name}" for name in found if name not in used))


def _traced(
    line: int,
    episode: Mapping[str, Any],
    trace: Mapping[str, Any],
    kind: Kind,
    answer: str,
    at: str,
    left: dict[str, None],
) -> Row:
    if trace.get("stop_condition") == "error":
        raise values.NotSayable("the trace ended with an error")
    if _object(trace.get("agent") or {}, at).get("trainable") is False:
        raise values.NotSayable("the trace's agent is not trained")
    nodes = [_object(node, at) for node in _list(trace.get("nodes"), at)]
    for node in nodes:
        _leave(node, NODE, "traces.nodes.", left)
    _refuse_turns(nodes)
    *before, reply = nodes
    asked = values.prompt([node.get("message") for node in before], at)
    group = _object(episode.get("group") or {}, at).get("id")
    task = _object(trace.get("task") or episode.get("task") or {}, at)
    data = _object(task.get("data") or {}, at)
    _refuse_without_answer(kind, data, answer)
    score, components = _rewards(trace, at)
    return Row(
        line=line,
        prompt=asked,
        said=() if kind == "problems" else (_reply(trace, before, reply, at),),
        prompt_token_ids=_prompt_ids(before, reply, at),
        answer=values.plain(data.get(answer), f"{at}, task.data.{answer}"),
        score=score,
        components=components,
        group=None if group is None else values.plain(group, at),
    )


def _refuse_without_answer(kind: Kind, found: Mapping[str, Any], answer: str) -> None:
    if kind == "problems" and found.get(answer) is None:
        raise values.NotSayable("no answer")


def _refuse_turns(nodes: Sequence[Mapping[str, Any]]) -> None:
    """One path that ends with the one reply of the policy: all else is refused."""
    sampled = [place for place, node in enumerate(nodes) if node.get("sampled")]
    if not sampled:
        raise values.NotSayable("the trace has no reply")
    chain = all(node.get("parent") == (place - 1 if place else None)
                for place, node in enumerate(nodes))  # fmt: skip
    if len(sampled) > 1 or sampled[0] != len(nodes) - 1 or not chain:
        raise values.NotSayable("the trace has more than one turn")
    if len(nodes) < 2:
        raise values.NotSayable("the trace has no prompt")


def _split(node: Mapping[str, Any], at: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """A reply's tokens: those of the prompt's end, and those that were sampled."""
    tokens = values.token_ids(node.get("token_ids") or [], f"{at}, token_ids")
    mask = _list(node.get("mask") or [], at)
    if not tokens:
        return None
    if len(mask) != len(tokens):
        raise TaskDataError(f"{at}: {len(mask)} mask values for {len(tokens)} token ids: mend it")
    first = mask.index(True) if True in mask else len(mask)
    if not all(mask[first:]):
        raise values.NotSayable("the reply's tokens are not in one piece")
    return tokens[:first], tokens[first:]


def _prompt_ids(
    before: Sequence[Mapping[str, Any]], reply: Mapping[str, Any], at: str
) -> tuple[int, ...] | None:
    parts = _split(reply, at)
    if parts is None:
        return None
    found = [i for node in before for i in values.token_ids(node.get("token_ids") or [], at)]
    return (*found, *parts[0])


def _reply(
    trace: Mapping[str, Any],
    before: Sequence[Mapping[str, Any]],
    reply: Mapping[str, Any],
    at: str,
) -> Said:
    message = _object(reply.get("message"), at)
    if message.get("tool_calls"):
        raise values.NotSayable("a message calls a tool")
    spoken = [message.get("reasoning_content"), message.get("content")]
    text = "\n\n".join(values.content(part, at) for part in spoken if part is not None)
    parts = _split(reply, at)
    tokens = None if parts is None else parts[1]
    logprobs = values.logprobs(reply.get("logprobs") or None, tokens, f"{at}, logprobs")
    calls = [_object(call, at) for call in _list(trace.get("calls") or [], at)]
    cut = trace.get("stop_condition") in CUT or any(
        call.get("finish_reason") == "length" for call in calls[-1:]
    )
    return Said(text, tokens, logprobs, "length" if cut else "stop")


def _rewards(trace: Mapping[str, Any], at: str) -> tuple[float | None, tuple[Component, ...]]:
    """The weighted sum of the rewards that were given; metrics count nothing."""
    parts: list[Component] = []
    for name, reward in _object(trace.get("rewards") or {}, at).items():
        if reward is not None:
            given = reward if isinstance(reward, dict) else {"score": reward}
            value = values.number(given.get("score"), f"{at}, rewards.{name}")
            weight = values.number(given.get("weight", 1.0), f"{at}, rewards.{name}")
            if value is not None:
                parts.append((values.text(name, at), value, 1.0 if weight is None else weight))
    score = sum(value * weight for _, value, weight in parts) if parts else None
    return score, (*parts, *_metrics(trace, {name for name, _, _ in parts}, at))


def _metrics(found: Mapping[str, Any], names: set[str], at: str) -> Iterator[Component]:
    for name, metric in _object(found.get("metrics") or {}, at).items():
        value = values.number(metric, f"{at}, metrics.{name}")
        if value is not None and name not in names:
            yield values.text(name, at), value, 0.0


def _flat(line: int, record: Mapping[str, Any], kind: Kind, answer: str, at: str) -> Row:
    if record.get("error"):
        raise values.NotSayable("the trace ended with an error")
    for name in ("prompt", "completion"):
        if record.get(name) is None:
            raise values.NotSayable(f"no {name}")
    _refuse_without_answer(kind, record, answer)
    steps = [_object(step, at) for step in _list(record.get("trajectory") or [], at)]
    if len(steps) > 1:
        raise values.NotSayable("the trace has more than one turn")
    tokens = _object((steps[0].get("tokens") if steps else None) or {}, at)
    said_ids = _ids(tokens.get("completion_ids"), f"{at}, completion_ids")
    score = values.number(record.get("reward"), f"{at}, column 'reward'")
    parts: list[Component] = [] if score is None else [("reward", score, 1.0)]
    example = record.get("example_id")
    said = Said(
        values.said(record["completion"], f"{at}, column 'completion'"),
        said_ids,
        values.logprobs(tokens.get("completion_logprobs"), said_ids, f"{at}, logprobs"),
        "length" if record.get("is_truncated") else "stop",
    )
    return Row(
        line=line,
        prompt=values.prompt(record["prompt"], f"{at}, column 'prompt'"),
        said=() if kind == "problems" else (said,),
        prompt_token_ids=_ids(tokens.get("prompt_ids"), f"{at}, prompt_ids"),
        answer=values.plain(record.get(answer), f"{at}, column {answer!r}"),
        score=score,
        components=(*parts, *_metrics(record, {"reward"}, at)),
        group=None if example is None else values.plain(example, at),
    )


def _ids(value: Any, at: str) -> tuple[int, ...] | None:
    return None if value is None else values.token_ids(value, at)


def _list(value: Any, at: str) -> list[Any]:
    if not isinstance(value, list):
        raise TaskDataError(f"{at}: {values.kind_of(value)} where a list is needed: mend the file")
    return value


def _object(value: Any, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TaskDataError(
            f"{at}: {values.kind_of(value)} ({values.shown(value)}) where an object is needed: "
            "mend the file"
        )
    return value
