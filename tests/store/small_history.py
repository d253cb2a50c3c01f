# SPDX-License-Identifier: Apache-2.0
"""A small history, made by hand: two runs in one store, of two rounds and of one.

Run `one` answers P1, P2 and P3 in both rounds; D1 is held out and answered twice after each.

    round 0  seed row s (P4). D1: x01 right, x02 wrong.
    round 1  a1 right, a2 and a3 wrong. Rationalized: r2 right, r3 right but the hint shows.
             Training set S1: a1, r2, s. U1 from M0 makes M1 and visits a1 twice, r2 once, s never.
             D1: x11 and x12 right.
    round 2  sampled from M1: b1 wrong, b2 right at the second try to judge it, b3 unjudged twice.
             Training set S2: b2 and a1; r2 and s are left out. U2 from M0, with M1 as reference,
             makes M2. D1: x21 and x22 wrong.

Run `two` takes over rounds 0 and 1 up to the verdicts and rationalizes nothing: S3 is a1, U3 from
M0 makes M3, which is not measured.
"""

from collections.abc import Sequence
from typing import Any

from stages import rows
from stages.ids import Id, mint
from store.transaction import Transaction

TOKENS = {"a1": 3, "a2": 4, "a3": 5, "r2": 6, "r3": 7, "b1": 2, "b2": 9, "b3": 1, "s": 8}
POLICY = {"a": "M0", "r": "M0", "b": "M1", "x0": "M0", "x1": "M1", "x2": "M2"}
SETS = {"S1": ("a1", "r2", "s"), "S2": ("b2", "a1"), "S3": ("a1",)}
VISITS = {"U1": {"a1": 2, "r2": 1, "s": 0}, "U2": {"b2": 1, "a1": 1}, "U3": {"a1": 4}}
CHOSEN = {"U1": (-4.0, -4.5, -6.0), "U2": (-5.0, -5.0, -4.0)}  # logps/chosen of each step
UPDATES = {  # init, reference, set, result
    "U1": ("M0", None, "S1", "M1"),
    "U2": ("M0", "M1", "S2", "M2"),
    "U3": ("M0", None, "S3", "M3"),
}
VERDICTS = {  # trajectory: status and reason of each try
    "s": [("correct", "match")],
    "a1": [("correct", "match")],
    "a2": [("wrong", "mismatch")],
    "a3": [("wrong", "no_answer")],
    "r2": [("correct", "match")],
    "r3": [("correct", "match")],
    "b1": [("wrong", "mismatch")],
    "b2": [("unjudged", "spawn_failed"), ("correct", "match")],
    "b3": [("unjudged", "spawn_failed"), ("unjudged", "spawn_failed")],
    "x01": [("correct", "match")],
    "x02": [("wrong", "mismatch")],
    "x11": [("correct", "match")],
    "x12": [("correct", "match")],
    "x21": [("wrong", "mismatch")],
    "x22": [("wrong", "mismatch")],
}
MEASURED = {"E0": ("M0", 0.5), "E1": ("M1", 1.0), "E2": ("M2", 0.0)}  # pass@1
BASE = {"setup": ("M0", "s"), "evaluate": ("E0", "D1", "x01", "x02")}
STEPS: dict[tuple[str, int], dict[str, Sequence[str]]] = {
    ("one", 0): BASE,
    ("one", 1): {
        "generate": ("a1", "a2", "a3"),
        "verify": ("a1", "a2", "a3"),
        "rationalize": ("r2", "r3"),
        "mix": ("S1",),
        "update": ("U1", "M1"),
        "evaluate": ("E1", "D1", "x11", "x12"),
    },
    ("one", 2): {
        "generate": ("b1", "b2", "b3"),
        "verify": ("b1", "b2", "b3"),
        "mix": ("S2",),
        "update": ("U2", "M2"),
        "evaluate": ("E2", "D1", "x21", "x22"),
    },
    ("two", 0): BASE,
    ("two", 1): {
        "generate": ("a1", "a2", "a3"),
        "verify": ("a1", "a2", "a3"),
        "mix": ("S3",),
        "update": ("U3", "M3"),
    },
}
DECISIONS = {
    "one 1 rationalize": {"r2": "rationalized", "r3": "hint_leak"},
    "one 1 mix": {"a1": "kept", "a2": "wrong", "a3": "wrong", "r2": "kept", "s": "kept"},
    "one 2 mix": {
        "b1": "wrong", "b2": "kept", "b3": "unjudged",
        "a1": "kept", "r2": "over_cap", "s": "over_seed_rows",
    },
    "two 1 mix": {"a1": "kept", "a2": "wrong", "a3": "wrong", "s": "over_seed_rows"},
}  # fmt: skip
KINDS = {
    "M": ("m", "model"),
    "P": ("p", "problem"),
    "D": ("p", "problem"),
    "S": ("y", "training_set"),
    "U": ("u", "training_update"),
    "E": ("e", "evaluation"),
    "V": ("v", "verifier"),
}


def kind_of(label: str) -> str:
    """The table of a thing by its label; lower case is a trajectory."""
    if label.endswith("?"):
        return "verdict"
    return KINDS.get(label[0], ("t", "trajectory"))[1]


def named(label: str) -> Id:
    """The id of a thing by its label; `a1?` is a1's first verdict, `b2??` its second try."""
    letter = "j" if label.endswith("?") else KINDS.get(label[0], ("t", ""))[0]
    return mint(letter, label)


def source_of(label: str, number: int) -> rows.Source:
    """What a candidate stands for in a round's mix."""
    if label == "s":
        return "seed"
    if (label[0] in "ar") and number == 2:
        return "earlier"
    return "rationalized" if label[0] == "r" else "round"


def verdicts_of(label: str) -> list[str]:
    return [label + "?" * (attempt + 1) for attempt in range(len(VERDICTS[label]))]


def problem_of(label: str) -> str:
    return "P4" if label == "s" else "D1" if label[0] == "x" else f"P{label[1]}"


def policy_of(label: str) -> str | None:
    return next((model for start, model in POLICY.items() if label.startswith(start)), None)


def write(tx: Transaction, config: str = "{}") -> None:
    """Store the history of runs that have this config."""
    tx.insert(rows.Model, [
        rows.Model(named(f"M{n}"), "update" if n else "outside", "Tiny", 1, None, f"models/{n}")
        for n in range(4)
    ])  # fmt: skip
    tx.insert(rows.Problem, [
        rows.Problem(named(p), "sums", "dev" if p == "D1" else "train", p, "4", difficulty=1.0)
        for p in ("P1", "P2", "P3", "P4", "D1")
    ])  # fmt: skip
    tx.insert(rows.Verifier, [rows.Verifier(named("V"), "exact", "1", "{}")])
    for label in VERDICTS:
        _trajectory(tx, label)
    tx.insert(rows.TrajectoryParent, [
        rows.TrajectoryParent(named("r2"), named("a2"), "hint"),
        rows.TrajectoryParent(named("r3"), named("a3"), "hint"),
    ])  # fmt: skip
    for label in SETS:
        _training_set(tx, label)
    for label in UPDATES:
        _update(tx, label)
    for label, (model, value) in MEASURED.items():
        _evaluation(tx, label, model, value)
    for run in ("one", "two"):
        tx.append(
            "begin_run",
            run_id=mint("r", run), name=run, recipe="star", config=config, identity="{}",
            manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    for (run, number), steps in STEPS.items():
        for step, outputs in steps.items():
            _step(tx, run, number, step, outputs)


def _trajectory(tx: Transaction, label: str) -> None:
    hinted, purpose = label[0] == "r", {"s": "seed", "x": "eval", "r": "rationalize"}
    prompt = mint("q", problem_of(label), int(hinted))
    policy = policy_of(label)
    origin: Any = {"s": "seed", "r": "rationalized"}.get(label[0], "self")
    tx.insert(rows.Prompt, [
        rows.Prompt(prompt, named(problem_of(label)), mint("x", 0), hinted, (1,),
                    f"{problem_of(label)}{' hint' if hinted else ''}="),
    ])  # fmt: skip
    tx.insert(rows.Trajectory, [rows.Trajectory(
        trajectory_id=named(label),
        content_id=mint("c", label),
        problem_id=named(problem_of(label)),
        prompt_id=prompt,
        model_id=named(policy) if policy else None,
        sampling_id=mint("s", 0) if policy else None,
        purpose=purpose.get(label[0], "train"),  # type: ignore[arg-type]
        origin=origin,
        seed=7 if policy else None,
        slot=0,
        completion=f"{label} said",
        token_ids=(5,) * TOKENS.get(label, 1),
        logprobs=None,
        finish_reason="stop",
        engine=None, engine_version=None, dtype=None, weight_version=None,
    )])  # fmt: skip
    scores = {"correct": 1.0, "wrong": 0.0, "unjudged": None}
    tx.insert(rows.Verdict, [
        rows.Verdict(named(verdicts_of(label)[attempt]), named(label), named("V"), attempt,
                     status, scores[status], None, reason, "strong", "none")  # type: ignore[arg-type]
        for attempt, (status, reason) in enumerate(VERDICTS[label])
    ])  # fmt: skip


def row_id(label: str) -> Id:
    return mint("i", label)


def _training_set(tx: Transaction, label: str) -> None:
    held = SETS[label]
    total = sum(TOKENS[of] for of in held)
    tx.insert(rows.TrainingSet, [rows.TrainingSet(named(label), len(held), total)])
    tx.insert(rows.TrainingRow, [
        rows.TrainingRow(named(label), row_id(of), place, "sft", mint("q", problem_of(of), 0), 1.0,
                         "round", TOKENS[of])
        for place, of in enumerate(held)
    ])  # fmt: skip
    tx.insert(rows.TrainingRowTrajectory, [
        rows.TrainingRowTrajectory(named(label), row_id(of), named(of), "completion", 1.0, None)
        for of in held
    ])  # fmt: skip


def _update(tx: Transaction, label: str) -> None:
    init, reference, held, result = UPDATES[label]
    tx.insert(rows.TrainingUpdate, [rows.TrainingUpdate(
        update_id=named(label),
        init_model_id=named(init),
        reference_model_id=named(reference) if reference else None,
        training_set_id=named(held),
        optimizer_from=None,
        updater="tally",
        config="{}",
        seed=0,
        steps_planned=3,
        steps_done=3,
        model_id=named(result),
        loss=None,
    )])  # fmt: skip
    tx.insert(rows.TrainingVisit, [
        rows.TrainingVisit(named(label), row_id(of), count)
        for of, count in VISITS[label].items()
    ])  # fmt: skip
    tx.insert(rows.TrainingMetric, [
        rows.TrainingMetric(named(label), step, "logps/chosen", value)
        for step, value in enumerate(CHOSEN.get(label, ()), 1)
    ])  # fmt: skip
    visited = {policy_of(of) for of, count in VISITS[label].items() if count} - {None}
    tx.insert(rows.ModelParent, [
        rows.ModelParent(named(result), named(parent), relation, named(label))  # type: ignore[arg-type]
        for parent, relation in [
            (init, "init"),
            *([(reference, "reference")] if reference else []),
            *((str(policy), "policy") for policy in sorted(map(str, visited))),
        ]
    ])  # fmt: skip


def _evaluation(tx: Transaction, label: str, model: str, value: float) -> None:
    tx.insert(rows.Evaluation, [rows.Evaluation(
        named(label), named(model), "sums", "dev", mint("s", 0), named("V"), 2, 1
    )])  # fmt: skip
    tx.insert(rows.Metric, [
        rows.Metric(named(label), name, slice_, k, found, 0.1, 0.9, found / 5, 1, 2)
        for name, slice_, k, found in [
            ("pass_at_1", "all", None, value),
            ("pass_at_k", "all", 2, min(1.0, 2 * value)),
            ("maj_at_k", "all", 2, value / 2),
            ("pass_at_1", "difficulty=1", None, 0.25),
        ]
    ])  # fmt: skip


def _step(tx: Transaction, run: str, number: int, step: str, outputs: Sequence[str]) -> None:
    place = {"run_id": mint("r", run), "round": number, "refresh": 0, "step": step}
    shared = number == 0 or step in ("generate", "verify")
    key = f"{'' if shared and number < 2 else run + ' '}{number} {step}"
    judged = [label for label in outputs if kind_of(label) == "trajectory"]
    verdicts = [v for label in judged for v in verdicts_of(label)] if step != "generate" else []
    made = [*verdicts] if step == "verify" else [*outputs, *verdicts]
    again = run == "two" and shared
    used = {
        (kind, id_)
        for (of, earlier), steps in STEPS.items()
        if of == run and earlier < number
        for labels in steps.values()
        for kind, id_ in ((kind_of(label), named(label)) for label in labels)
    }
    tx.insert(rows.StepOutput, [
        rows.StepOutput(**place, run=run, kind=kind_of(label), id=named(label), reused=again,
                        first=(kind_of(label), named(label)) not in used)
        for label in made
    ])  # fmt: skip
    tx.append("commit_step", **place, step_key=mint("k", key), reused=again, wall_s=1.5, work_s=1.0)
    tx.insert(rows.Decision, [
        rows.Decision(mint("k", key), named(label), source_of(label, number),
                      why in ("kept", "rationalized"), why)
        for label, why in DECISIONS.get(f"{run} {number} {step}", {}).items()
    ])  # fmt: skip
