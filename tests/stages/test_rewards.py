# SPDX-License-Identifier: Apache-2.0
"""Every control arm through the same cases: the status stays, the score is the arm's."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plug_ins import in_folder, in_union, type_of
from pydantic import ValidationError
from stage_rows import a_problem, a_prompt, a_trajectory

from stages import rewards
from stages.rewards import Rewarded, random
from stages.verifiers import Answer, Judgement, VerifierPart, exact, numeric, weighted
from stages.verify import final_verdicts, verifier_row, verify

REWARDS = in_folder(rewards)
SETTINGS: dict[str, dict[str, Any]] = {
    "random": {"p": 0.5, "seed": 1},
    "incorrect": {},
    "format_only": {},
}
# completion → (random is drawn) the reward of a wrong-answer arm, of a form arm
TABLE = {
    "#12": (0.0, 1.0),
    "#13": (1.0, 1.0),
    "#the moon": (1.0, 1.0),
    "": (0.0, 0.0),
    "12": (0.0, 0.0),
    "#": (0.0, 0.0),
    "#12 #13": (0.0, 0.0),
    "#13\n#12": (0.0, 0.0),
    "#13\n#13": (1.0, 1.0),
}
EXACT = exact.Config(type="exact").build()
PARTS: Any = [{"type": "exact"}, {"type": "format"}]
SHAPED = weighted.Config(type="weighted", parts=PARTS, weights=(1.0, 0.5)).build()
each_arm = pytest.mark.parametrize("name", SETTINGS)


def rewarded(name: str, verifier: VerifierPart = EXACT, **settings: Any) -> Rewarded:
    config = REWARDS[name](type=name, **{**SETTINGS[name], **settings})
    return Rewarded(verifier, config.build())


def judged(part: Rewarded, completion: str, reference: str = "12", **more: Any) -> Judgement:
    (found,) = part.judge([Answer(reference, completion, len(completion), **more)])
    return found


def test_every_reward_file_is_in_the_union() -> None:
    assert set(REWARDS.values()) == in_union(rewards.RewardConfig)
    assert REWARDS.keys() == SETTINGS.keys()


@each_arm
def test_a_config_is_strict_frozen_and_named_by_its_file(name: str) -> None:
    config = REWARDS[name](type=name, **SETTINGS[name])
    assert type_of(type(config)) == (name,)
    with pytest.raises(ValidationError, match="frozen"):
        config.type = name
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(config)(type=name, unheard_of=1)


@each_arm
@given(texts=st.lists(st.sampled_from([*TABLE]) | st.text(), min_size=1, max_size=5))
@pytest.mark.parametrize("verifier", [EXACT, SHAPED])
def test_an_arm_changes_the_score_alone_and_keeps_the_verifiers_as_metrics(
    name: str, verifier: VerifierPart, texts: list[str]
) -> None:
    answers = [Answer("12", text, len(text), key=str(n)) for n, text in enumerate(texts)]
    part = rewarded(name, verifier)
    for true, found in zip(verifier.judge(answers), part.judge(answers), strict=True):
        assert (found.status, found.extracted, found.reason) == (
            true.status, true.extracted, true.reason,
        )  # fmt: skip
        assert found.score in (0.0, 1.0)
        assert found.components[:2] == (
            (name, found.score, 1.0), (verifier.name, true.score, 0.0),
        )  # fmt: skip
        parts = tuple(
            (f"{verifier.name}.{inner}", value, 0.0) for inner, value, _ in true.components
        )
        assert found.components[2:] == parts
    assert part.judge(answers) == part.judge(answers[::-1])[::-1] == part.judge(answers)


@pytest.mark.parametrize("text", TABLE)
def test_rewards_of_answers_by_hand(text: str) -> None:
    wrong, form = TABLE[text]
    assert judged(rewarded("incorrect"), text).score == wrong
    assert judged(rewarded("format_only"), text).score == form
    if "\n" not in text:
        for name in ("incorrect", "format_only"):
            assert judged(rewarded(name), text, truncated=True).score == 0.0


def test_a_number_in_the_form_is_rewarded_where_the_verifier_finds_one() -> None:
    part = numeric.Config(type="numeric").build()
    assert judged(rewarded("incorrect", part), "#### 12.00").score == 0.0
    assert judged(rewarded("format_only", part), "so 13").score == 0.0


@each_arm
def test_what_could_not_be_judged_gets_no_reward(name: str) -> None:
    found = judged(rewarded(name), "#12", reference=" ")
    assert (found.status, found.score, found.components) == ("unjudged", None, ())


def test_random_rewards_follow_slot_seed_and_probability() -> None:
    keys = [f"slot {n}" for n in range(4000)]

    def drawn(**settings: Any) -> list[float | None]:
        part = rewarded("random", **settings)
        return [one.score for one in part.judge([Answer("12", "#12", 3, key=k) for k in keys])]

    assert drawn(p=0.0) == [0.0] * 4000 and drawn(p=1.0) == [1.0] * 4000
    for p in (0.1, 0.5, 0.7):
        share = sum(value or 0.0 for value in drawn(p=p)) / 4000
        assert abs(share - p) < 4 * (p * (1 - p) / 4000) ** 0.5
    assert drawn() == drawn() != drawn(seed=2)
    low, high = drawn(p=0.3), drawn(p=0.6)
    assert all((one or 0.0) <= (other or 0.0) for one, other in zip(low, high, strict=True))


@pytest.mark.parametrize("p", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_probability_lies_between_0_and_1(p: float) -> None:
    with pytest.raises(ValidationError, match=r"p\n"):
        random.Config(type="random", p=p)


def test_an_arm_is_a_verifier_of_its_own_in_the_store() -> None:
    problem = a_problem(1, "12")
    answers = [a_trajectory(a_prompt(problem), text, slot=n) for n, text in enumerate(TABLE)]
    known = {problem.problem_id: problem}
    part = rewarded("random")
    row = verifier_row(part)
    assert (row.name, row.version) == ("exact+random", "1+1")
    assert json.loads(row.config) == {
        "verifier": {"type": "exact", "mark": "#"},
        "reward": {"type": "random", "p": 0.5, "seed": 1},
    }
    true, _ = verify(answers, known, EXACT)
    seen, components = verify(answers, known, part)
    assert not {v.verdict_id for v in true} & {v.verdict_id for v in seen}
    statuses = [
        {key: verdict.status for key, verdict in final_verdicts(some).items()}
        for some in (true, seen)
    ]
    assert statuses[0] == statuses[1]
    assert {(c.component, c.weight) for c in components} == {("random", 1.0), ("exact", 0.0)}
    assert len({v.score for v in seen}) == 2  # nine draws that were all alike would be no draws
