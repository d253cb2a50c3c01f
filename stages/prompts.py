# SPDX-License-Identifier: Apache-2.0
"""Problems as the policy reads them: templates, system prompt, worked examples, chat template.

A prompt set is versioned by its content. Its examples stand before the question, as turns of a
chat or as plain text; a hinted prompt shows hinted examples. Nothing is ever cut: a prompt that
leaves no room for an answer is counted and left out.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from stages import ids
from stages.chat import Messages, write_chat
from stages.errors import ConfigError
from stages.rows import Problem, Prompt, PromptSet
from stages.settings import Settings, canonical

Template = Annotated[str, Field(min_length=1)]
_SEPARATOR = "\n\n"


class Example(Settings):
    """A worked example; `hinted` is its question with the hint (left out: by the hint template)."""

    question: str
    answer: str
    completion: str = Field(..., min_length=1)
    hinted: str | None = None


class PromptsConfig(Settings):
    """A prompt set. `{question}` and `{answer}` are filled in, the answer in `hint` alone.

    `shots` of the `examples` are shown (all, if left out), others for each problem and round with
    `rotate`. They stand in training prompts only with `keep_in_training`. `chat: false` writes
    plain text for a base model, parts divided by an empty line.
    """

    name: str = Field(..., min_length=1)
    plain: Template = "{question}"
    hint: Template | None = None
    system: Template | None = None
    examples: Annotated[tuple[Example, ...], Field(strict=False)] = ()
    shots: int | None = Field(None, ge=0)
    rotate: bool = False
    keep_in_training: bool = False
    chat: bool = True

    @model_validator(mode="after")
    def _templates_hold_together(self) -> "PromptsConfig":
        if "{question}" not in self.plain or "{answer}" in self.plain:
            raise ValueError(
                f"plain is {self.plain!r}: it needs {{question}} and never shows {{answer}}"
            )
        if self.hint is not None and not {"{question}", "{answer}"} <= set(_marks(self.hint)):
            raise ValueError(f"hint is {self.hint!r}: it needs {{question}} and {{answer}}")
        if self.shots is not None and self.shots > len(self.examples):
            raise ValueError(f"shots is {self.shots}, there are {len(self.examples)} examples")
        return self

    def build(self) -> PromptSet:
        """The store's row: its id follows from everything that is written here."""
        config = canonical(self.model_dump(mode="json", exclude={"name", "plain", "hint"}))
        set_id = ids.prompt_set_id(self.name, self.plain, self.hint, config)
        return PromptSet(set_id, self.name, self.plain, self.hint, config)


def settings_of(prompt_set: PromptSet) -> PromptsConfig:
    """A prompt set's config; a set of two templates alone has the defaults."""
    rest = json.loads(prompt_set.config) if prompt_set.config else {}
    named = {"name": prompt_set.name, "plain": prompt_set.plain, "hint": prompt_set.hint}
    return PromptsConfig.model_validate({**named, **rest})


def write_prompts(
    problems: Sequence[Problem],
    prompt_set: PromptSet,
    tokenizer: Any,
    *,
    hinted: bool,
    examples: bool = True,
    turn: int = 0,
    template_kwargs: Mapping[str, Any] | None = None,
) -> list[Prompt]:
    """Prompts as token ids. `examples: False` leaves worked examples out; `turn` rotates them.

    `template_kwargs` go to the chat template. ConfigError where the set has no hint, the chat
    template fails, or a prompt would begin with two BOS tokens.
    """
    settings = settings_of(prompt_set)
    if hinted and settings.hint is None:
        raise ConfigError(f"prompt set {prompt_set.name!r} has no hint: switch rationalize off")
    prompts = []
    for problem in problems:
        shown = _shown(settings, problem, turn) if examples else []
        if settings.chat:
            messages = _messages(settings, shown, problem, hinted)
            text = write_chat(messages, tokenizer, template_kwargs or {})
        else:
            messages, text = (), _text(settings, shown, problem, hinted)
        token_ids = tuple(tokenizer(text, add_special_tokens=not settings.chat)["input_ids"])
        _check_begin(token_ids, tokenizer, prompt_set.name)
        prompts.append(
            Prompt(
                ids.prompt_id(problem.problem_id, prompt_set.prompt_set_id, hinted, token_ids),
                problem.problem_id,
                prompt_set.prompt_set_id,
                hinted,
                token_ids,
                text,
                len(shown) or None,
                json.dumps(messages, ensure_ascii=False) if messages else None,
            )
        )
    return prompts


def messages_of(prompt: Prompt) -> Messages:
    """The chat that a prompt was written from; empty for plain text."""
    return tuple((role, text) for role, text in json.loads(prompt.messages or "[]"))


def fill_template(template: str, question: str, answer: str) -> str:
    """The template with both put in at once: what a question holds is never filled in."""
    parts = {"{question}": question, "{answer}": answer}
    return re.sub(r"\{question\}|\{answer\}", lambda match: parts[match[0]], template)


def with_room(
    prompts: Sequence[Prompt], context: int | None, max_tokens: int
) -> tuple[list[Prompt], list[Prompt]]:
    """Prompts that leave room for `max_tokens` within the context, and those that do not."""
    fit: list[Prompt] = []
    long: list[Prompt] = []
    for prompt in prompts:
        fits = context is None or len(prompt.token_ids) + max_tokens <= context
        (fit if fits else long).append(prompt)
    return fit, long


def check_round_trip(prompts: Sequence[Prompt], tokenizer: Any) -> None:
    """ConfigError where token ids do not give back the text that they were written from."""
    bos = tokenizer.bos_token or ""
    for prompt in prompts:
        text = prompt.text.removeprefix(bos)
        back = tokenizer.decode(prompt.token_ids, clean_up_tokenization_spaces=False)
        back = back.removeprefix(bos)
        if back != text:
            at = next(
                (i for i, (a, b) in enumerate(zip(back, text, strict=False)) if a != b),
                min(len(back), len(text)),
            )
            raise ConfigError(
                f"policy: its tokenizer reads {text[at : at + 30]!r} and gives back "
                f"{back[at : at + 30]!r} (prompt {prompt.prompt_id}, character {at}): rows could "
                "not be trained as they were sampled; use a tokenizer that keeps text as it is"
            )


def _marks(template: str) -> list[str]:
    return re.findall(r"\{question\}|\{answer\}", template)


def _shown(settings: PromptsConfig, problem: Problem, turn: int) -> list[Example]:
    """The examples before a problem; one that is the problem itself is never shown."""
    others = [e for e in settings.examples if e.question != problem.question]
    count = len(settings.examples) if settings.shots is None else settings.shots
    if not settings.rotate:
        return others[:count]
    chosen = random.Random(f"shots|{problem.problem_id}|{turn}")
    return chosen.sample(others, min(count, len(others)))


def _asked(settings: PromptsConfig, question: str, answer: str, hinted: bool) -> str:
    template = settings.hint if hinted and settings.hint else settings.plain
    return fill_template(template, question, answer)


def _of_example(settings: PromptsConfig, example: Example, hinted: bool) -> str:
    if hinted and example.hinted is not None:
        return example.hinted
    return _asked(settings, example.question, example.answer, hinted)


def _messages(
    settings: PromptsConfig, shown: Sequence[Example], problem: Problem, hinted: bool
) -> Messages:
    turns = [("system", settings.system)] if settings.system else []
    for example in shown:
        turns.append(("user", _of_example(settings, example, hinted)))
        turns.append(("assistant", example.completion))
    turns.append(("user", _asked(settings, problem.question, problem.answer, hinted)))
    return tuple(turns)


def _text(settings: PromptsConfig, shown: Sequence[Example], problem: Problem, hinted: bool) -> str:
    parts = [settings.system] if settings.system else []
    parts += [_of_example(settings, e, hinted) + e.completion for e in shown]
    parts.append(_asked(settings, problem.question, problem.answer, hinted))
    return _SEPARATOR.join(parts)


def _check_begin(token_ids: Sequence[int], tokenizer: Any, name: str) -> None:
    bos = tokenizer.bos_token_id
    if bos is not None and list(token_ids[:2]) == [bos, bos]:
        raise ConfigError(
            f"prompt set {name!r}: a prompt begins with two {tokenizer.bos_token} tokens, one from "
            "the chat template and one from the text: take it out of one of them"
        )
