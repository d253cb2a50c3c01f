# SPDX-License-Identifier: Apache-2.0
"""The card of a published checkpoint: what it is, what was measured, and what was not."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from report.pages import CONTROL, paired
from report.rewards import verifier_said
from report.rounds import RoundLine, header, round_lines
from report.text import markdown_table
from stages.ids import Id
from stages.rows import SELF_MADE, Model
from store.db import Store
from store.transaction import read

MADE_UP = "These are the figures of a made-up student (`sampler.type: {}`), not of these weights. "
MADE_WITH = ("starloop", "torch", "transformers", "trl")


@dataclass(frozen=True, slots=True)
class Subject:
    """The model that a run's round ended with, and the config that the run was last worked on."""

    run: str
    round: int
    model: Model
    base: Id
    config: Any


def card(store: Store, subject: Subject) -> str:
    """The card as Markdown, with the front matter that the Hub reads."""
    lines = [
        line for line in round_lines(store, subject.run) if line.summary["round"] <= subject.round
    ]
    with store.reader() as connection:
        (run,) = read(connection, "run_by_name", name=subject.run)
        sections = [
            _head(subject),
            _what(subject, run),
            _figures(store, connection, subject, lines),
            _training(connection, subject),
            _unmeasured(connection, subject, lines),
            _lineage(connection, subject),
            _config(run),
            _made_with(json.loads(run["manifest"])),
        ]
    return "\n\n".join(sections) + "\n"


def _head(subject: Subject) -> str:
    policy = subject.config.policy
    base = [f"base_model: {policy.name}"] if policy.type == "hub" else []
    front = [
        "---", "library_name: transformers", "pipeline_tag: text-generation", *base,
        f"tags: [starloop, {subject.config.recipe}]", "---",
    ]  # fmt: skip
    return "\n".join([*front, "", f"# {subject.run}, round {subject.round}"])


def _what(subject: Subject, run: Mapping[str, Any]) -> str:
    model, policy = subject.model, subject.config.policy
    origins: dict[str, Callable[[], str]] = {
        "hub": lambda: f"`{policy.name}` of the Hugging Face Hub at `{policy.revision}`",
        "tiny": lambda: "a tiny model that the run trained itself before round 1",
    }
    origin = origins.get(policy.type, lambda: f"a model given as `{policy.type}`")
    control = [CONTROL] if subject.config.reward else []
    fork = (
        [f"The run is a fork of `{run['forked_from_name']}` at round {run['forked_at_round']}."]
        if run["forked_from_name"]
        else []
    )
    return "\n".join(
        [
            f"The checkpoint that round {subject.round} of the starloop run `{subject.run}` ended "
            "with.",
            "",
            f"{header(subject.config)}.",
            *control,
            *fork,
            "",
            f"- model: `{model.model_id}`, {model.architecture}, "
            f"{model.parameters or 0:,} parameters; the id hashes weights, tokenizer, chat "
            "template and config",
            f"- base: `{subject.base}`, {origin()}",
            "- training set: `training_set/`, with the ids of rows, trajectories and problems",
        ]
    )


def _figures(store: Store, connection: Any, subject: Subject, lines: Sequence[RoundLine]) -> str:
    found = read(connection, "card_evaluation", run=subject.run, round=subject.round)
    if not found:
        return f"## Figures\n\nRound {subject.round} was not measured."
    on = found[0]
    sampling = subject.config.evaluate.sampling
    sampler = subject.config.sampler
    made_up = "" if sampler.holds_weights else MADE_UP.format(sampler.type)
    text = (
        f"{made_up}{on['problems']:,} problems of the {on['split']} split of `{on['task']}`, "
        f"{on['n']} answers each at temperature {sampling.temperature:g}, judged by "
        f"{verifier_said(subject.config.verifier)}. Intervals are 95 % over problems: they say how "
        "far other problems of the same kind would move the figure, not other training runs."
    )
    measured = [line for line in lines if line.summary["round"] in (0, subject.round)]
    k = measured[-1].summary["k"]
    head = ("model", "pass@1", "95 %", f"pass@{k}", f"maj@{k}")
    rows = [_measured(line.summary) for line in measured]
    parts = [
        [row["slice"], f"{row['value']:.3f}", _interval(row)]
        for row in read(connection, "slices", run=subject.run)
        if row["round"] == subject.round and row["value"] is not None
    ]
    return "\n\n".join(
        [
            f"## Figures\n\n{text}",
            markdown_table(head, rows),
            _gain(store, subject),
            *([markdown_table(("part", "pass@1", "95 %"), parts)] if parts else []),
        ]
    )


def _measured(summary: Mapping[str, Any]) -> list[str]:
    name = f"round {summary['round']}" if summary["round"] else "base"
    figures = [summary[key] for key in ("pass_at_1", "pass_at_k", "maj_at_k")]
    first, *rest = ["–" if value is None else f"{value:.3f}" for value in figures]
    return [name, first, _interval(summary), *rest]


def _interval(row: Mapping[str, Any]) -> str:
    return "–" if row["low"] is None else f"{row['low']:.3f}–{row['high']:.3f}"


def _gain(store: Store, subject: Subject) -> str:
    found = paired(store, (subject.run, 0), (subject.run, subject.round))
    if found is None:
        return "The base was not measured on the same problems."
    value, low, high, questions = found
    said = "an improvement" if low > 0 else "a loss" if high < 0 else "no difference that shows"
    return (
        f"Against the base on the same {questions} problems: {value:+.3f} pass@1 (95 % {low:+.3f} "
        f"to {high:+.3f}): {said}."
    )


def _training(connection: Any, subject: Subject) -> str:
    rows = read(connection, "card_origins", model_id=subject.model.model_id)
    table = [
        [row["origin"], f"{row['trajectories']:,}", f"{row['visits']:,}", f"{row['share']:.1%}"]
        for row in rows
    ]
    elsewhere = [row for row in rows if row["origin"] not in SELF_MADE]
    if not rows:
        said = "Nothing trained it: no row was visited by an optimizer."
    elif elsewhere:
        shares = ", ".join(f"{row['origin']} {row['share']:.1%}" for row in elsewhere)
        said = f"It may not be called self-improvement alone: of the visits, {shares}."
    else:
        said = (
            "It may be called self-improvement: every row was made by a policy of this line "
            "(self, rationalized). What the base was trained on before is not known here."
        )
    text = "Rows that trained this model or one that it rests on, by who wrote them."
    head = ("origin", "trajectories", "visits", "share of visits")
    return "\n\n".join(["## What trained it", f"{text} {said}", markdown_table(head, table)])


def _unmeasured(connection: Any, subject: Subject, lines: Sequence[RoundLine]) -> str:
    opened = read(connection, "splits_opened", run=subject.run, round=subject.round)
    said = _not_measured(subject.config, lines[-1].summary, len(opened))
    return "\n".join(["## What was not measured", "", *(f"- {line}" for line in said)])


def _not_measured(config: Any, last: Mapping[str, Any], opened: int) -> Iterator[str]:
    """What the figures do not say, by what the run did."""
    yield (
        f"the test split as a whole: {opened} measures took problems of it, see the run's events"
        if opened
        else "the test split: it stayed sealed, the figures are on the split that runs look at"
    )
    yield f"other seeds: this is one run with seed {config.seed}"
    yield "other tasks, other domains, instruction following, safety, other languages"
    yield "whether the work before a right answer is right: the verifier reads answers"
    others = [task.type for task in config.evaluation_sets]
    against = f"; of the training problems, against {', '.join(others)}" if others else ""
    yield f"what of the held-out problems the base had seen before{against}"
    if last["k"]:
        yield f"pass@k beyond k = {last['k']}, where a base may overtake what was trained from it"
    if last["unjudged"]:
        yield f"{last['unjudged']} answers of the round that could not be judged"
    if config.reward is None and config.recipe == "grpo":
        yield "a control arm with another reward (`reward`), unless a run of its own has one"


def _lineage(connection: Any, subject: Subject) -> str:
    (row,) = read(connection, "card_lineage", model_id=subject.model.model_id)
    name = f"{subject.run}@{subject.round}"
    return (
        f"## Lineage\n\nIt rests on {row['ancestors']:,} models, {row['updates']:,} updates with "
        f"{row['steps']:,} optimizer steps, {row['training_sets']:,} training sets and "
        f"{row['trained']:,} trajectories that trained, of {row['problems']:,} problems; the "
        f"models of this line sampled {row['sampled']:,} trajectories in all, evaluations "
        f"included. In the store, `starloop lineage trained-by {name}` and `starloop lineage "
        f"ancestors {name}` list them."
    )


def _config(run: Mapping[str, Any]) -> str:
    import yaml

    identity = _portable(json.loads(run["identity"]))
    text = yaml.safe_dump(identity, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return (
        "## Config\n\nThe fields that change what is computed; of paths, the last part.\n\n"
        f"```yaml\n{text.rstrip()}\n```"
    )


def _portable(value: Any) -> Any:
    """A config value without the folders of the machine that it was used on."""
    if isinstance(value, dict):
        return {name: _portable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_portable(part) for part in value]
    local = isinstance(value, str) and value.startswith(("/", "~"))
    return PurePath(value).name if local else value


def _made_with(manifest: Mapping[str, Any]) -> str:
    packages = manifest["packages"]
    versions = ", ".join(f"{name} {packages[name]}" for name in MADE_WITH if packages.get(name))
    commit = f", commit `{manifest['commit'][:12]}`" if manifest["commit"] else ""
    changed = " with local changes" if manifest["commit"] and manifest["dirty"] else ""
    return f"## Made with\n\n{versions}{commit}{changed}, Python {manifest['python']}."
