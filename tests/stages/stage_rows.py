# SPDX-License-Identifier: Apache-2.0
"""Rows for stage tests: complete, small, and different wherever a test says so."""

from dataclasses import replace
from typing import Any

from stages import ids
from stages.ids import Id
from stages.rows import Problem, Prompt, PromptSet, Trajectory, Verdict

PROMPT_SET = PromptSet(
    ids.prompt_set_id("tests", "{question}=", "{question} (hint {answer})="),
    "tests",
    "{question}=",
    "{question} (hint {answer})=",
)
MODEL = ids.mint("m", 1)
SAMPLING = ids.sampling_id("{}")
VERIFIER = ids.verifier_id("exact", "1", "{}")
STEP = ids.step_key("tests", 1, [], "")


def tokens(text: str) -> tuple[int, ...]:
    """Token ids of a made-up tokenizer: one per character."""
    return tuple(map(ord, text))


def a_problem(number: int, answer: str = "12", difficulty: float | None = 1.0) -> Problem:
    """Problem `number` of a train split."""
    question = f"question {number}"
    problem_id = ids.problem_id("tests", question, answer)
    return Problem(problem_id, "tests", "train", question, answer, None, difficulty)


def a_prompt(problem: Problem, hinted: bool = False) -> Prompt:
    """The problem's plain or hinted prompt."""
    template = PROMPT_SET.hint if hinted else PROMPT_SET.plain
    assert template is not None
    text = template.replace("{question}", problem.question).replace("{answer}", problem.answer)
    token_ids = tokens(text)
    prompt_id = ids.prompt_id(problem.problem_id, PROMPT_SET.prompt_set_id, hinted, token_ids)
    return Prompt(prompt_id, problem.problem_id, PROMPT_SET.prompt_set_id, hinted, token_ids, text)


def a_trajectory(
    prompt: Prompt, completion: str = "1+2=12;#12", slot: int = 0, **changes: Any
) -> Trajectory:
    """A finished completion of a prompt."""
    trajectory = Trajectory(
        trajectory_id=ids.trajectory_id(
            prompt.problem_id, prompt.prompt_id, MODEL, SAMPLING, "train", 7, slot
        ),
        content_id=ids.content_id(prompt.token_ids, tokens(completion)),
        problem_id=prompt.problem_id,
        prompt_id=prompt.prompt_id,
        model_id=MODEL,
        sampling_id=SAMPLING,
        purpose="train",
        origin="self",
        seed=7,
        slot=slot,
        completion=completion,
        token_ids=tokens(completion),
        logprobs=(-0.5,) * len(completion),
        finish_reason="stop",
        engine="tests",
        engine_version="1",
        dtype="float32",
        weight_version=str(MODEL),
    )
    return replace(trajectory, **changes)


def a_verdict(
    trajectory: Trajectory, status: Any, extracted: str | None = "12", reason: str = "match"
) -> Verdict:
    """A first judgement of a trajectory."""
    return Verdict(
        verdict_id=ids.verdict_id(trajectory.trajectory_id, trajectory.content_id, VERIFIER, 0),
        trajectory_id=trajectory.trajectory_id,
        verifier_id=VERIFIER,
        attempt=0,
        status=status,
        score={"correct": 1.0, "wrong": 0.0}.get(status),
        extracted=extracted,
        reason=reason,
        trust="strong",
        isolation="none",
    )


def by_trajectory(*verdicts: Verdict) -> dict[Id, Verdict]:
    """Verdicts by the trajectory they judge."""
    return {verdict.trajectory_id: verdict for verdict in verdicts}
