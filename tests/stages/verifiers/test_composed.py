# SPDX-License-Identifier: Apache-2.0
"""`all`, `any`, `weighted`: whose status counts, what the score is, and the parts beside it."""

from functools import partial
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from stages.verifiers import Answer, Judgement, VerifierConfig, VerifierPart, exact

CONFIG: TypeAdapter[Any] = TypeAdapter(VerifierConfig)
EXACT: dict[str, Any] = {"type": "exact"}
NUMERIC = {"type": "numeric", "mark": "#"}
FORMAT = {"type": "format"}
LENGTH = {"type": "length", "l_max": 40, "l_cache": 20}
AMONG = {"type": "length", "rule": "among(3)"}
LINES = {"type": "distance", "wanted": 1}
GOOD = "<think>5+7</think>#12"  # 21 tokens, one a character
STATUSES = {
    GOOD: "correct",
    "#12": "correct",
    "#12" + " " * 99: "correct",
    "<think>5</think>#13": "wrong",
    "": "wrong",
    "12": "wrong",
}


def composed(kind: str, *parts: dict[str, Any], **more: Any) -> VerifierPart:
    built: VerifierPart = CONFIG.validate_python({"type": kind, "parts": parts, **more}).build()
    return built


def judged(part: VerifierPart, completion: str, reference: str = "12", **more: Any) -> Judgement:
    (found,) = part.judge([Answer(reference, completion, len(completion), **more)])
    return found


def test_a_weighted_sum_by_hand_with_its_parts_beside_it() -> None:
    part = composed("weighted", NUMERIC, FORMAT, LENGTH, LINES, weights=[1.0, 0.2, 0.5, 0.0])
    found = judged(part, GOOD + " " * 9)
    assert found.components == (
        ("numeric", 1.0, 1.0),
        ("format", 1.0, 0.2),
        ("length", -0.5, 0.5),
        ("distance", 0.0, 0.0),
    )
    assert found.score == pytest.approx(1.0 + 0.2 - 0.25)
    assert (found.status, found.extracted, found.reason) == ("correct", "12", "match")
    bare = judged(part, "#13\n13")
    assert (bare.status, bare.score, bare.reason) == ("wrong", 0.0, "mismatch")
    assert {name: value for name, value, _ in bare.components}["distance"] == -1.0


@pytest.mark.parametrize("parts", [*permutations([NUMERIC, FORMAT, LENGTH])])
def test_form_and_length_never_decide_whether_an_answer_is_right(
    parts: tuple[dict[str, Any], ...],
) -> None:
    for kind, more in (("all", {}), ("any", {}), ("weighted", {"weights": [0.1, 1.0, -2.0]})):
        part = composed(kind, *parts, **more)
        for text, status in STATUSES.items():
            assert judged(part, text).status == status
        assert (part.decides, part.trust) == (True, "strong")


def test_the_first_part_that_tells_right_from_wrong_decides_whatever_its_weight() -> None:
    text = "1\n#12"
    assert judged(composed("weighted", NUMERIC, LINES, weights=[0, 1]), text).status == "correct"
    assert judged(composed("weighted", LINES, NUMERIC, weights=[0, 1]), text).status == "wrong"
    assert composed("weighted", LINES, NUMERIC, weights=[0, 1]).trust == "weak"


def test_all_needs_every_part_and_any_needs_one() -> None:
    both, one = composed("all", EXACT, NUMERIC), composed("any", EXACT, NUMERIC)
    table = {"#12": (True, True), "#12.0": (False, True), "#13": (False, False)}
    for text, (in_all, in_any) in table.items():
        assert judged(both, text).status == ("correct" if in_all else "wrong")
        assert judged(one, text).status == ("correct" if in_any else "wrong")
    assert judged(both, "#12.0").components == (("exact", 0.0, 1.0), ("numeric", 1.0, 1.0))
    assert judged(both, "#12.0").score == 0.0 and judged(one, "#12.0").score == 1.0
    assert judged(composed("all", NUMERIC, FORMAT), "#12").score == 0.0
    assert judged(composed("all", NUMERIC, FORMAT), GOOD).score == 1.0


def test_what_a_part_could_not_judge_is_wrong_for_none_and_right_only_for_any() -> None:
    both, one = composed("all", EXACT, NUMERIC), composed("any", EXACT, NUMERIC)
    for text in ("#twelve", "#13"):
        found = judged(both, text, reference="twelve")
        assert (found.status, found.score, found.reason) == (
            "unjudged",
            None,
            "reference_no_number",
        )
    assert judged(one, "#twelve", reference="twelve").status == "correct"
    assert judged(one, "#13", reference="twelve").status == "unjudged"


def test_a_metric_that_could_not_judge_is_left_out_and_a_weight_leaves_it_unjudged() -> None:
    by_reference = {"type": "distance", "wanted": "reference"}
    metric = composed("weighted", EXACT, by_reference, weights=[1.0, 0.0])
    found = judged(metric, "#twelve", reference="twelve")
    assert (found.status, found.score, found.components) == ("correct", 1.0, (("exact", 1.0, 1.0),))
    counts = composed("weighted", EXACT, by_reference, weights=[1.0, 0.5])
    found = judged(counts, "#twelve", reference="twelve")
    assert (found.status, found.score, found.reason) == ("unjudged", None, "reference_no_count")


def test_a_part_of_parts_shows_its_own_as_metrics_and_a_repeated_type_is_numbered() -> None:
    ensemble = {"type": "any", "parts": [EXACT, {"type": "exact", "mark": "="}]}
    words = {"type": "distance", "of": "words", "wanted": 2}
    part = composed("weighted", ensemble, LINES, words, weights=[1.0, 0.25, 0.125])
    found = judged(part, "=12")
    assert found.components == (
        ("any", 1.0, 1.0),
        ("any.exact", 0.0, 0.0),
        ("any.exact_2", 1.0, 0.0),
        ("distance", 0.0, 0.25),
        ("distance_2", -1.0, 0.125),
    )
    assert found.score == 1.0 - 0.125
    assert found.score == sum(value * weight for _, value, weight in found.components)


def test_a_group_reward_knows_which_answers_are_right() -> None:
    part = composed("weighted", AMONG, NUMERIC, weights=[0.5, 1.0])
    answers = [Answer("12", "#12", 10), Answer("12", "#13", 10), Answer("12", "#12", 30)]
    assert [one.score for one in part.judge(answers)] == [1.25, 0.0, 0.75]
    assert (part.group, part.decides) == (3, True)
    nested = {"type": "any", "parts": [NUMERIC]}
    inside = composed("weighted", nested, AMONG, weights=[1.0, 0.5])
    assert [one.score for one in inside.judge(answers)] == [1.25, 0.0, 0.75]


def test_an_answer_that_was_cut_off_is_wrong_and_still_pays_for_its_length() -> None:
    part = composed("weighted", NUMERIC, LENGTH, weights=[1.0, 1.0])
    found = judged(part, "#12" + " " * 37, truncated=True)
    assert (found.status, found.score, found.reason) == ("wrong", -1.0, "truncated")


def test_a_part_of_another_version_makes_another_verifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"type": "any", "parts": [EXACT, NUMERIC]}
    assert composed("weighted", given, FORMAT, weights=[1, 1]).version == "1(1(1,1),1)"
    newer = partial(exact.Exact, version="2")
    monkeypatch.setattr(exact, "Exact", newer)
    assert composed("weighted", given, FORMAT, weights=[1, 1]).version == "1(1(2,1),1)"


def test_only_parts_without_a_right_answer_decide_nothing() -> None:
    part = composed("weighted", FORMAT, LENGTH, weights=[1.0, 1.0])
    assert (part.decides, part.trust, judged(part, GOOD).status) == (False, "weak", "correct")


TEXTS = st.sampled_from(["", "#12", "#13", GOOD, "<think></think>#12", "#12" * 20, "#12.0"])


@given(texts=st.lists(TEXTS, min_size=1, max_size=5), order=st.permutations([0, 1, 2]))
def test_status_and_bounds_of_the_score_do_not_depend_on_the_order_of_the_parts(
    texts: list[str], order: list[int]
) -> None:
    parts, weights = [NUMERIC, FORMAT, AMONG], [1.0, 0.25, 0.5]
    answers = [Answer("12", text, len(text)) for text in texts]
    plain = composed("weighted", *parts, weights=weights).judge(answers)
    turned = composed(
        "weighted", *(parts[n] for n in order), weights=[weights[n] for n in order]
    ).judge(answers)
    for one, other in zip(plain, turned, strict=True):
        assert (one.status, one.extracted) == (other.status, other.extracted)
        assert one.score == pytest.approx(other.score)
        assert one.score is not None and -0.25 <= one.score <= 1.5
        assert sorted(one.components) == sorted(other.components)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": [1.0]}, "weights has 1 values for 2 parts: give one for each"),
        ({"weights": [0, 0.0]}, "every reward is 0 and nothing can be learned"),
        ({"weights": [float("nan"), 1]}, "finite number"),
        ({"weights": [1e9, 1]}, "less than or equal to 1000000"),
        ({"weights": [1, 1], "parts": [EXACT, {"type": "vibes"}]}, "'vibes' found using 'type'"),
        ({"weights": [], "parts": []}, "at least 1 item"),
    ],
)
def test_weights_and_parts_that_teach_nothing_are_refused(given: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        CONFIG.validate_python({"type": "weighted", "parts": [EXACT, FORMAT], **given})


def test_the_mark_of_the_answer_is_that_of_the_first_part_that_has_one() -> None:
    given = {"type": "weighted", "parts": [FORMAT, NUMERIC], "weights": [1, 1]}
    assert CONFIG.validate_python(given).mark == "#"
    assert CONFIG.validate_python({"type": "all", "parts": [FORMAT]}).mark is None
