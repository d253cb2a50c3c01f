# SPDX-License-Identifier: Apache-2.0
"""The mix: one decision for each candidate, nothing that may not train, bounds that hold."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from stage_candidates import ALL, candidates, configs, kept_of, reasons
from stage_rows import PROMPT_SET, STEP, a_problem, a_prompt, a_trajectory

from stages.equations import equation_key, equations_hold
from stages.mix import Candidate, MixConfig, mix
from stages.rationalize import audit, template_marks
from stages.verifiers import exact
from stages.verify import final_verdicts, verify


@given(candidates(), configs, st.integers(0, 3))
def test_every_candidate_gets_one_decision_and_what_is_kept_is_a_row(
    found: list[Candidate], config: MixConfig, seed: int
) -> None:
    mixed = mix(found, config, seed, STEP)
    decided = Counter(d.trajectory_id for d in mixed.decisions)
    assert decided == Counter(c.trajectory.trajectory_id for c in found)
    kept = [d.trajectory_id for d in mixed.decisions if d.kept]
    assert Counter(kept) == Counter(link.trajectory_id for link in mixed.trajectories)
    assert all((d.why == "kept") == d.kept and d.step_key == STEP for d in mixed.decisions)
    assert len({row.training_row_id for row in mixed.rows}) == len(mixed.rows) == len(kept)
    assert [row.position for row in mixed.rows] == list(range(len(kept)))
    assert mixed.training_set.rows == len(kept)
    assert mixed.training_set.tokens == sum(row.tokens for row in mixed.rows)


@given(candidates(), configs, st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_means_nothing(
    found: list[Candidate], config: MixConfig, seed: int, random: Random
) -> None:
    shuffled = random.sample(found, len(found))
    one, other = mix(found, config, seed, STEP), mix(shuffled, config, seed, STEP)
    assert one.rows == other.rows and one.training_set == other.training_set
    assert set(one.decisions) == set(other.decisions)


@given(candidates(), configs)
def test_what_may_not_train_is_never_kept(found: list[Candidate], config: MixConfig) -> None:
    for candidate in kept_of(found, mix(found, config, 0, STEP)):
        assert candidate.status == "correct"
        assert candidate.trajectory.finish_reason == "stop"
        assert not candidate.prompt.hinted


@given(candidates(), configs)
def test_bounds_hold(found: list[Candidate], config: MixConfig) -> None:
    mixed = mix(found, config, 0, STEP)
    kept = kept_of(found, mixed)
    assert sum(c.source == "seed" for c in kept) <= config.seed_rows
    if config.cap_per_problem is not None:
        own = Counter(c.trajectory.problem_id for c in kept if c.source != "seed")
        assert all(count <= config.cap_per_problem for count in own.values())
    if config.max_tokens is not None:
        assert mixed.training_set.tokens <= config.max_tokens
    if config.dedup == "exact":
        texts = [(c.trajectory.problem_id, c.trajectory.token_ids) for c in kept]
        assert len(set(texts)) == len(texts)
    if config.dedup == "equations":
        keys = [(c.trajectory.problem_id, equation_key(c.trajectory.completion)) for c in kept]
        assert len(set(keys)) == len(keys)
    if config.check_equations:
        assert all(equations_hold(c.trajectory.completion) for c in kept)


@given(candidates(), configs)
def test_rationalized_rows_stay_within_their_share_of_what_the_model_made(
    found: list[Candidate], config: MixConfig
) -> None:
    origins = Counter(c.trajectory.origin for c in kept_of(found, mix(found, config, 0, STEP)))
    made = origins["self"] + origins["rationalized"]
    share = config.max_rationalized_share
    assert share is None or origins["rationalized"] <= share * made + 1e-9


@given(candidates(), st.integers(0, 3))
def test_without_bounds_everything_that_may_train_is_kept(
    found: list[Candidate], seed: int
) -> None:
    never = {"hinted_prompt", "truncated", "wrong", "unjudged"}
    assert set(reasons(found, ALL, seed)) <= never | {"kept"}


ADVERSARIAL = [
    "a:5+7+0=12;#12",
    "1+11=12;#12",
    "as given in the hint;a:5+7+0=12;#12",
    "question 1 (hint 12)=a:5+7+0=12;#12",
    "a:5+7+0=12;)= #12",
    "(HINT 12)= #12",
    "#12",
    "the answer is 12;#12",
    "12. so #12",
    "a:5+7+0=13;#13",
]


@given(
    st.lists(
        st.tuples(st.sampled_from(ADVERSARIAL), st.sampled_from(["stop", "length"])), max_size=8
    ),
    st.booleans(),
    configs,
)
def test_no_hint_is_trained_neither_in_a_prompt_nor_in_a_completion(
    hinted: list[tuple[str, str]], spoilt: bool, config: MixConfig
) -> None:
    problem = a_problem(1, answer="12")
    plain, hint = a_prompt(problem), a_prompt(problem, hinted=True)
    template = PROMPT_SET.hint or ""
    answers = [
        a_trajectory(hint, text, slot, origin="rationalized", finish_reason=finish)
        for slot, (text, finish) in enumerate(hinted)
    ]
    known = {problem.problem_id: problem}
    verdicts, _ = verify(answers, known, exact.Config(type="exact").build())
    final = final_verdicts(verdicts)
    passed = {d.trajectory_id for d in audit(answers, known, final, template, STEP) if d.kept}
    found = [
        # a spoilt store hands over the hinted prompt as the one to train on
        Candidate(a, "rationalized", final[a.trajectory_id].status, 1.0, hint if spoilt else plain)
        for a in answers
        if a.trajectory_id in passed
    ]
    mixed = mix(found, config, 0, STEP)
    prompts = {c.prompt.prompt_id: c.prompt for c in found}
    assert not any(prompts[row.prompt_id].hinted for row in mixed.rows)
    for row, candidate in zip(mixed.rows, kept_of(found, mixed), strict=True):
        trained = prompts[row.prompt_id].text + "\n" + candidate.trajectory.completion
        assert not any(mark in trained for mark in template_marks(template))
        assert "hint" not in trained.lower()
