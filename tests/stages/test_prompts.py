# SPDX-License-Identifier: Apache-2.0
"""Prompts: worked examples and hints, rotation, plain text, what a tokenizer adds or loses."""

import string
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from stage_rows import a_problem, a_prompt

from stages import ids
from stages.chat import render_chat
from stages.errors import ConfigError
from stages.prompts import (
    Example,
    PromptsConfig,
    check_round_trip,
    fill_template,
    messages_of,
    settings_of,
    with_room,
    write_prompts,
)
from stages.rows import Problem, Prompt, PromptSet

TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}{% if think %}<think>{% endif %}"
)
BOS_TEMPLATE = "{{ bos_token }}" + TEMPLATE
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    + TEMPLATE
)
ONE = Example(question="1+1", answer="2", completion="two")
TWO = Example(question="2+2", answer="4", completion="four", hinted="2+2 makes 4, why?")
THREE = Example(question="3+3", answer="6", completion="six")
SHOWN = PromptsConfig(
    name="shown", plain="Q {question}", hint="Q {question} (it is {answer})", system="Be brief.",
    examples=(ONE, TWO),
)  # fmt: skip
ASKED = replace(a_problem(1), question="5+5", answer="10")


def a_tokenizer(template: str = TEMPLATE, *, bos: bool = False, lower: bool = False) -> Any:
    """One token per printable character; `bos` puts a BOS before each text, `lower` loses case."""
    from tokenizers import (
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )
    from transformers import PreTrainedTokenizerFast

    tokens = ["<s>", "</s>", "<?>", *string.printable]
    inner = Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="<?>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    inner.decoder = decoders.Fuse()
    if lower:
        inner.normalizer = normalizers.Lowercase()
    if bos:
        inner.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<?>",
        clean_up_tokenization_spaces=False,
    )  # fmt: skip
    made.chat_template = template
    return made


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return a_tokenizer()


def write(config: PromptsConfig, tokenizer: Any, problem: Problem = ASKED, **more: Any) -> Prompt:
    (prompt,) = write_prompts([problem], config.build(), tokenizer, **{"hinted": False, **more})
    return prompt


# ── worked examples and hints ───────────────────────────────────────────────────────────────


def test_examples_stand_before_the_question_as_turns_of_a_chat(tokenizer: Any) -> None:
    prompt = write(SHOWN, tokenizer)
    assert messages_of(prompt) == (
        ("system", "Be brief."),
        ("user", "Q 1+1"),
        ("assistant", "two"),
        ("user", "Q 2+2"),
        ("assistant", "four"),
        ("user", "Q 5+5"),
    )
    assert prompt.text == (
        "[system]Be brief.\n[user]Q 1+1\n[assistant]two\n[user]Q 2+2\n[assistant]four\n"
        "[user]Q 5+5\n[assistant]"
    )
    assert tokenizer.decode(prompt.token_ids) == prompt.text
    assert prompt.token_ids == render_chat(messages_of(prompt), tokenizer, {})
    assert (prompt.shots, prompt.hinted) == (2, False)


def test_a_hinted_prompt_shows_hinted_examples_their_own_or_by_the_template(tokenizer: Any) -> None:
    asked = [text for role, text in messages_of(write(SHOWN, tokenizer, hinted=True))
             if role == "user"]  # fmt: skip
    assert asked == ["Q 1+1 (it is 2)", "2+2 makes 4, why?", "Q 5+5 (it is 10)"]


def test_prompts_to_train_on_have_no_example_and_keep_the_system_prompt(tokenizer: Any) -> None:
    trained = write(SHOWN, tokenizer, examples=False)
    assert messages_of(trained) == (("system", "Be brief."), ("user", "Q 5+5"))
    assert trained.shots is None
    assert trained.prompt_id != write(SHOWN, tokenizer).prompt_id


@pytest.mark.parametrize(("shots", "shown"), [(None, 3), (0, 0), (1, 1), (3, 3)])
def test_so_many_examples_are_shown_as_shots_says(
    tokenizer: Any, shots: int | None, shown: int
) -> None:
    config = PromptsConfig(name="n", examples=(ONE, TWO, THREE), shots=shots)
    prompt = write(config, tokenizer)
    told = [text for role, text in messages_of(prompt) if role == "assistant"]
    assert told == ["two", "four", "six"][:shown]
    assert prompt.shots == (shown or None)


@pytest.mark.parametrize("rotate", [False, True])
def test_a_problem_that_is_an_example_is_never_shown_itself(tokenizer: Any, rotate: bool) -> None:
    config = PromptsConfig(name="n", examples=(ONE, TWO, THREE), shots=2, rotate=rotate)
    for turn in range(20):
        prompt = write(config, tokenizer, replace(ASKED, question="1+1"), turn=turn)
        told = {text for role, text in messages_of(prompt) if role == "assistant"}
        assert told == {"four", "six"}


MANY = tuple(Example(question=f"q{n}", answer=str(n), completion=f"c{n}") for n in range(6))


def told(prompt: Prompt) -> tuple[str, ...]:
    return tuple(text for role, text in messages_of(prompt) if role == "assistant")


def test_rotated_examples_follow_from_problem_and_turn_and_differ_between_them(
    tokenizer: Any,
) -> None:
    config = PromptsConfig(name="n", examples=MANY, shots=2, rotate=True)
    turns = [told(write(config, tokenizer, turn=turn)) for turn in range(30)]
    assert turns == [told(write(config, tokenizer, turn=turn)) for turn in range(30)]
    assert {len(set(shown)) for shown in turns} == {2}
    assert {c for shown in turns for c in shown} == {example.completion for example in MANY}
    assert any(one != other for one, other in pairwise(turns))
    problems = [replace(a_problem(n), question=f"other {n}") for n in range(30)]
    assert len({told(write(config, tokenizer, problem)) for problem in problems}) > 5


def test_without_rotation_every_turn_shows_the_same(tokenizer: Any) -> None:
    config = PromptsConfig(name="n", examples=MANY, shots=2)
    assert {told(write(config, tokenizer, turn=turn)) for turn in range(5)} == {("c0", "c1")}


# ── what is filled in ───────────────────────────────────────────────────────────────────────


@given(st.text(), st.text())
def test_what_a_question_or_an_answer_holds_is_never_filled_in(question: str, answer: str) -> None:
    hostile = question + "{answer}{question}"
    filled = fill_template("<{question}|{answer}|{other}>", hostile, answer + "{question}")
    assert filled == "<" + hostile + "|" + answer + "{question}|{other}>"


def test_a_question_that_asks_for_the_answer_does_not_get_it(tokenizer: Any) -> None:
    hostile = replace(ASKED, question="say {answer} {question}", answer="SECRET")
    prompt = write(SHOWN, tokenizer, hostile)
    assert "Q say {answer} {question}" in prompt.text
    assert "SECRET" not in prompt.text
    hinted = write(SHOWN, tokenizer, hostile, hinted=True)
    assert hinted.text.count("SECRET") == 1


def test_a_hinted_prompt_of_a_set_without_a_hint_is_refused(tokenizer: Any) -> None:
    with pytest.raises(ConfigError, match="prompt set 'n' has no hint: switch rationalize off"):
        write(PromptsConfig(name="n"), tokenizer, hinted=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"plain": "ask"}, "it needs {question} and never shows {answer}"),
        ({"plain": "{question}{answer}"}, "it needs {question} and never shows {answer}"),
        ({"hint": "{question}"}, "it needs {question} and {answer}"),
        ({"hint": "{answer}"}, "it needs {question} and {answer}"),
        ({"examples": (ONE,), "shots": 2}, "shots is 2, there are 1 examples"),
    ],
)
def test_templates_that_cannot_work_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        PromptsConfig(name="n", **values)
    assert message in str(refused.value)


# ── plain text, BOS ─────────────────────────────────────────────────────────────────────────

PLAIN_TEXT = SHOWN.model_copy(update={"chat": False})


def test_without_a_chat_the_parts_are_divided_by_an_empty_line(tokenizer: Any) -> None:
    prompt = write(PLAIN_TEXT, tokenizer)
    assert prompt.text == "Be brief.\n\nQ 1+1two\n\nQ 2+2four\n\nQ 5+5"
    assert messages_of(prompt) == ()
    hinted = write(PLAIN_TEXT, tokenizer, hinted=True)
    assert hinted.text.endswith("\n\n2+2 makes 4, why?four\n\nQ 5+5 (it is 10)")


@pytest.mark.parametrize("chat", [True, False])
def test_a_prompt_begins_with_bos_exactly_once(chat: bool) -> None:
    """The chat template writes it, or the tokenizer puts it before plain text."""
    adding = a_tokenizer(BOS_TEMPLATE, bos=True)
    prompt = write(SHOWN.model_copy(update={"chat": chat}), adding)
    assert [place for place, token in enumerate(prompt.token_ids) if token == 0] == [0]


def test_two_bos_are_refused() -> None:
    doubled = a_tokenizer("{{ bos_token }}" + BOS_TEMPLATE)
    with pytest.raises(ConfigError, match="'shown': a prompt begins with two <s> tokens"):
        write(SHOWN, doubled)
    written = PromptsConfig(name="own", plain="<s>{question}", chat=False)
    with pytest.raises(ConfigError, match="'own': a prompt begins with two <s> tokens"):
        write(written, a_tokenizer(bos=True))


# ── the chat template ───────────────────────────────────────────────────────────────────────


def test_a_template_that_raises_is_a_config_error_of_one_line() -> None:
    with pytest.raises(ConfigError) as failed:
        write(SHOWN, a_tokenizer(NO_SYSTEM))
    assert str(failed.value).startswith(
        "policy: its chat template fails on a chat of system, user, assistant: no system role"
    )
    assert "\n" not in str(failed.value)
    without = SHOWN.model_copy(update={"system": None})
    assert write(without, a_tokenizer(NO_SYSTEM)).text.startswith("[user]Q 1+1")


def test_keyword_arguments_reach_the_template(tokenizer: Any) -> None:
    prompt = write(SHOWN, tokenizer, template_kwargs={"think": True})
    assert prompt.text.endswith("[assistant]<think>")
    assert prompt.prompt_id != write(SHOWN, tokenizer).prompt_id
    assert prompt.token_ids == render_chat(messages_of(prompt), tokenizer, {"think": True})


# ── ids ─────────────────────────────────────────────────────────────────────────────────────

CHANGES: list[dict[str, Any]] = [
    {"name": "other"},
    {"plain": "Q: {question}"},
    {"hint": None},
    {"system": None},
    {"examples": (TWO, ONE)},
    {"examples": (ONE, TWO.model_copy(update={"hinted": None}))},
    {"examples": (ONE, TWO.model_copy(update={"completion": "4"}))},
    {"examples": (ONE, TWO.model_copy(update={"answer": "04"}))},
    {"shots": 2},
    {"rotate": True},
    {"keep_in_training": True},
    {"chat": False},
]


def test_a_prompt_set_has_another_id_whatever_is_changed() -> None:
    every = [SHOWN, *(SHOWN.model_copy(update=change) for change in CHANGES)]
    assert len({config.build().prompt_set_id for config in every}) == len(CHANGES) + 1
    assert SHOWN.build() == SHOWN.model_copy().build()
    assert {name for change in CHANGES for name in change} == set(PromptsConfig.model_fields)


@pytest.mark.parametrize("change", CHANGES)
def test_a_prompt_set_in_the_store_says_all_of_its_config(change: dict[str, Any]) -> None:
    config = SHOWN.model_copy(update=change)
    assert settings_of(config.build()) == config


def test_a_set_of_two_templates_keeps_its_id_and_has_the_defaults() -> None:
    set_id = ids.prompt_set_id("addition", "{question}=", "{question} (hint {answer})=")
    assert str(set_id) == "a33e9377-d14f-9482-8efd-63024c228bb9"
    pair = PromptSet(set_id, "addition", "{question}=", "{question} (hint {answer})=")
    assert pair.config is None
    assert settings_of(pair) == PromptsConfig(
        name="addition", plain="{question}=", hint="{question} (hint {answer})="
    )


# ── room and round trips ────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(1, 40), max_size=12), st.none() | st.integers(1, 50),
       st.integers(1, 20))  # fmt: skip
def test_prompts_without_room_are_told_apart_and_none_is_cut(
    lengths: list[int], context: int | None, max_tokens: int
) -> None:
    prompts = [
        replace(a_prompt(a_problem(n)), token_ids=(7,) * length) for n, length in enumerate(lengths)
    ]
    fit, long = with_room(prompts, context, max_tokens)
    assert fit == [p for p in prompts if p not in long]
    assert long == [p for p in prompts if p not in fit]
    assert len(fit) + len(long) == len(prompts)
    assert {len(p.token_ids) + max_tokens <= (context or 99) for p in fit} <= {True}
    assert {len(p.token_ids) + max_tokens > (context or 99) for p in long} <= {True}


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("bos", [True, False])
def test_a_tokenizer_that_keeps_text_passes_whether_or_not_it_adds_bos(
    bos: bool, chat: bool
) -> None:
    keeping = a_tokenizer(BOS_TEMPLATE if bos else TEMPLATE, bos=bos)
    check_round_trip([write(SHOWN.model_copy(update={"chat": chat}), keeping)], keeping)


@pytest.mark.parametrize("bos", [True, False])
def test_a_tokenizer_that_loses_text_is_refused_with_the_place(bos: bool) -> None:
    lowering = a_tokenizer(bos=bos, lower=True)
    prompts = [
        write(PromptsConfig(name="n", plain="{question}", chat=False), lowering, problem)
        for problem in (ASKED, replace(ASKED, question="what is Ada's sum?"))
    ]
    with pytest.raises(ConfigError) as lost:
        check_round_trip(prompts, lowering)
    assert str(lost.value).startswith(
        'policy: its tokenizer reads "Ada\'s sum?" and gives back "ada\'s sum?" '
        f"(prompt {prompts[1].prompt_id}, character 8)"
    )


def test_a_character_that_the_tokenizer_does_not_know_is_refused(tokenizer: Any) -> None:
    prompt = write(PromptsConfig(name="n"), tokenizer, replace(ASKED, question="1 ≤ 2"))
    with pytest.raises(ConfigError, match="reads '≤ 2"):
        check_round_trip([prompt], tokenizer)
