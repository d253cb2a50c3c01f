# SPDX-License-Identifier: Apache-2.0
"""Histories of any shape: runs, forks, arms that share work, refreshes, hints, pairs.

`histories()` draws a `History`, plain dicts and lists; `write` stores it. `slow_lineage.py`
answers from the same dicts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from stages import rows
from stages.ids import Id, mint
from stages.update import model_parents
from store.transaction import Transaction

BASE = mint("m", "base")
TRAIN = tuple(mint("p", name) for name in ("P1", "P2", "P3"))
HELD_OUT = mint("p", "D1")
VERIFIER, OTHER = mint("v", "one"), mint("v", "other")
RUNS = ("one", "two", "three")


@dataclass
class History:
    """Everything a history holds; lists are in the order in which things happened."""

    outputs: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    trajectories: dict[Id, dict[str, Any]] = field(default_factory=dict)
    parents: list[tuple[Id, Id]] = field(default_factory=list)  # child, parent
    verdicts: dict[Id, dict[str, Any]] = field(default_factory=dict)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    sets: dict[Id, list[dict[str, Any]]] = field(default_factory=dict)
    updates: dict[Id, dict[str, Any]] = field(default_factory=dict)
    evaluations: dict[Id, dict[str, Any]] = field(default_factory=dict)

    def of(self, run: str, kind: str) -> list[Id]:
        """What a run has used so far of a kind, in order, each once."""
        return list(
            dict.fromkeys(o["id"] for o in self.outputs if (o["run"], o["kind"]) == (run, kind))
        )

    def status(self, trajectory: Id) -> str | None:
        """Its last verdict."""
        found = [v for v in self.verdicts.values() if v["trajectory_id"] == trajectory]
        return found[-1]["status"] if found else None


class Teller:
    """Draws a history step by step."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw, self.told, self.count = draw, History(), 0
        self.arm_of: str | None = None  # run whose steps the present one may still take over

    def new(self, letter: str) -> Id:
        self.count += 1
        return mint(letter, self.count)

    def chance(self) -> bool:
        return bool(self.draw(st.booleans()))

    def some(self, things: list[Any], most: int = 3) -> list[Any]:
        if not things:
            return []
        return list(self.draw(st.lists(st.sampled_from(things), max_size=most, unique=True)))

    def use(
        self, run: str, place: tuple[int, int, str], used: dict[str, list[Id]], new: bool
    ) -> None:
        """Write a step's outputs and its mark; `new` is false for a step that is taken over."""
        stored = {(o["kind"], o["id"]) for o in self.told.outputs}
        before = {(o["kind"], o["id"]) for o in self.told.outputs if o["run"] == run}
        at = dict(zip(("round", "refresh", "step"), place, strict=True))
        for kind, ids in used.items():
            for id_ in dict.fromkeys(ids):
                known = (kind, id_)
                self.told.outputs.append(
                    {**at, "run": run, "kind": kind, "id": id_, "reused": known in stored,
                     "first": known not in before}
                )  # fmt: skip
        source = None if new else self.source(place)
        key = source["step_key"] if source else mint("k", run, *place)
        self.told.steps.append({**at, "run": run, "step_key": key, "reused": not new})

    def source(self, place: tuple[int, int, str]) -> dict[str, Any] | None:
        """The step at the same place of the run that this one is an arm of."""
        names = ("run", "round", "refresh", "step")
        at = (self.arm_of, *place)
        return next((s for s in self.told.steps if tuple(s[n] for n in names) == at), None)

    def step(self, run: str, place: tuple[int, int, str], make: Callable[[], Any]) -> None:
        """Take the other arm's step over, or make one; what follows another step is another."""
        if self.source(place) and self.chance():
            used: dict[str, list[Id]] = {}
            for o in self.told.outputs:
                if (o["run"], o["round"], o["refresh"], o["step"]) == (self.arm_of, *place):
                    used.setdefault(o["kind"], []).append(o["id"])
            self.use(run, place, used, new=False)
        else:
            self.arm_of = None
            self.use(run, place, make(), new=True)

    def maybe(self, run: str, place: tuple[int, int, str], make: Callable[[], Any]) -> None:
        """A step that a round may leave out."""
        if self.chance():
            self.step(run, place, make)
        elif self.source(place):
            self.arm_of = None

    # ── steps ───────────────────────────────────────────────────────────────────────────────

    def trajectory(self, problem: Id, policy: Id | None, purpose: str, origin: str) -> Id:
        id_ = self.new("t")
        hinted = origin == "rationalized"
        self.told.trajectories[id_] = {
            "problem_id": problem,
            "prompt_id": mint("q", problem, int(hinted)),
            "hinted": hinted,
            "model_id": policy,
            "purpose": purpose,
            "origin": origin,
        }
        return id_

    def judged(self, trajectories: list[Id], verifier: Id = VERIFIER) -> list[Id]:
        """Verdicts, a second try where the first could not judge."""
        made = []
        for trajectory in trajectories:
            for attempt in range(2):
                status = self.draw(st.sampled_from(("correct", "wrong", "unjudged")))
                id_ = self.new("j")
                self.told.verdicts[id_] = {
                    "trajectory_id": trajectory,
                    "verifier_id": verifier,
                    "attempt": attempt,
                    "status": status,
                }
                made.append(id_)
                if status != "unjudged":
                    break
        return made

    def base(self) -> dict[str, list[Id]]:
        seeds = [
            self.trajectory(problem, None, "seed", "seed") for problem in self.some([*TRAIN], 2)
        ]
        return {"model": [BASE], "trajectory": seeds}

    def generate(self, policy: Id) -> dict[str, list[Id]]:
        asked = self.some([*TRAIN])
        return {"trajectory": [self.trajectory(p, policy, "train", "self") for p in asked]}

    def here(self, run: str, number: int, refresh: int, step: str) -> list[Id]:
        """Trajectories of a step of this run."""
        at = (run, number, refresh, step, "trajectory")
        names = ("run", "round", "refresh", "step", "kind")
        return [o["id"] for o in self.told.outputs if tuple(o[n] for n in names) == at]

    def rationalize(self, run: str, number: int, refresh: int, key: Id) -> dict[str, list[Id]]:
        made = []
        for failed in self.here(run, number, refresh, "generate"):
            one = self.told.trajectories[failed]
            if self.told.status(failed) == "wrong" and self.chance():
                made.append(
                    self.trajectory(one["problem_id"], one["model_id"], "rationalize",
                                    "rationalized")
                )  # fmt: skip
                self.told.parents.append((made[-1], failed))
        verdicts = self.judged(made)
        for id_ in made:
            self.decide(key, id_, "rationalized", self.chance(), "rationalized", "hint_leak")
        again = [t for t in self.told.of(run, "trajectory")
                 if self.told.trajectories[t]["origin"] == "rationalized"]  # fmt: skip
        return {"trajectory": [*made, *self.some(again, 1)], "verdict": verdicts}

    def decide(self, key: Id, id_: Id, source: str, kept: bool, yes: str, no: str) -> None:
        self.told.decisions.append(
            {"step_key": key, "trajectory_id": id_, "source": source, "kept": kept,
             "why": yes if kept else no}
        )  # fmt: skip

    def mix(self, run: str, number: int, refresh: int, key: Id) -> dict[str, list[Id]]:
        """Completions and pairs of anything the run has used so far."""
        found = [t for t in self.told.of(run, "trajectory")
                 if self.told.trajectories[t]["purpose"] != "eval"]  # fmt: skip
        fresh = {t for step in ("generate", "rationalize")
                 for t in self.here(run, number, refresh, step)}  # fmt: skip
        mine = {s["step_key"] for s in self.told.steps if (s["run"], s["step"]) == (run, "mix")}
        fresh -= {d["trajectory_id"] for d in self.told.decisions if d["step_key"] in mine}
        chosen, set_id = self.some(found, 5), self.new("y")
        for id_ in found:
            seed = self.told.trajectories[id_]["origin"] == "seed"
            if seed and refresh:
                continue
            source = "seed" if seed else "round" if id_ in fresh else "earlier"
            self.decide(key, id_, source, id_ in chosen, "kept", "over_cap")
        self.told.sets[set_id] = []
        for id_ in chosen:
            rejected = self.some([t for t in found if t != id_], 1)
            roles = [(id_, "chosen" if rejected else "completion")]
            roles += [(other, "rejected") for other in rejected]
            self.told.sets[set_id].append(
                {
                    "training_row_id": mint("i", *(id_ for id_, _ in roles)),
                    "source": self.draw(st.sampled_from(("round", "earlier"))),
                    "tokens": self.draw(st.integers(1, 9)),
                    "trajectories": roles,
                }
            )
        return {"training_set": [set_id]}

    def update(self, run: str, number: int, refresh: int) -> dict[str, list[Id]]:
        (held,) = [o["id"] for o in self.told.outputs
                   if (o["run"], o["round"], o["refresh"], o["kind"])
                   == (run, number, refresh, "training_set")]  # fmt: skip
        models = self.told.of(run, "model")
        update, model = self.new("u"), self.new("m")
        self.told.updates[update] = {
            "init": self.draw(st.sampled_from(models)),
            "reference": self.draw(st.sampled_from([None, *models])),
            "set": held,
            "model": model,
            "visits": {
                row["training_row_id"]: self.draw(st.integers(0, 2)) for row in self.told.sets[held]
            },
        }
        return {"training_update": [update], "model": [model]}

    def evaluate(self, model: Id) -> dict[str, list[Id]]:
        made = [self.trajectory(HELD_OUT, model, "eval", "self")] if self.chance() else []
        evaluation = self.new("e")
        self.told.evaluations[evaluation] = {"model_id": model, "verifier_id": VERIFIER}
        return {"evaluation": [evaluation], "trajectory": made, "verdict": self.judged(made)}

    # ── runs ────────────────────────────────────────────────────────────────────────────────

    def round(self, run: str, number: int) -> None:
        for refresh in range(self.draw(st.integers(1, 2))):
            policy = self.told.of(run, "model")[-1]

            def place(step: str, refresh: int = refresh) -> tuple[int, int, str]:
                return number, refresh, step

            def key(step: str, refresh: int = refresh) -> Id:
                return mint("k", run, number, refresh, step)

            self.step(run, place("generate"), lambda policy=policy: self.generate(policy))
            here = self.here(run, number, refresh, "generate")
            self.step(run, place("verify"), lambda here=here: {"verdict": self.judged(here)})
            self.maybe(run, place("rationalize"), lambda refresh=refresh, key=key:
                       self.rationalize(run, number, refresh, key("rationalize")))  # fmt: skip
            self.step(run, place("mix"), lambda refresh=refresh, key=key:
                      self.mix(run, number, refresh, key("mix")))  # fmt: skip
            self.step(run, place("update"), lambda refresh=refresh:
                      self.update(run, number, refresh))  # fmt: skip
        if self.source((number, refresh + 1, "generate")):
            self.arm_of = None
        model = self.told.of(run, "model")[-1]
        self.maybe(run, (number, 0, "evaluate"), lambda: self.evaluate(model))
        if self.chance():
            again = self.some(self.told.of(run, "trajectory"), 2)
            verdicts = {"verdict": self.judged(again, OTHER)}
            self.use(run, (number, 0, "reverify other"), verdicts, new=True)

    def run(self, run: str, source: str | None) -> None:
        """A run from its base, or from a round of another."""
        begin, others = 1, [s["run"] for s in self.told.steps]
        self.arm_of = None
        if source is None:
            self.arm_of = self.draw(st.sampled_from((None, *dict.fromkeys(others))))
            self.step(run, (0, 0, "setup"), self.base)
        else:
            last = max(s["round"] for s in self.told.steps if s["run"] == source)
            taken = self.draw(st.integers(0, last))
            for of in (self.told.steps, self.told.outputs):
                of += [{**row, "run": run, "reused": True} for row in of
                       if row["run"] == source and row["round"] <= taken
                       and not row["step"].startswith("reverify")]  # fmt: skip
            begin = taken + 1
        for number in range(begin, begin + self.draw(st.integers(0, 2))):
            self.round(run, number)


@st.composite
def histories(draw: Callable[[Any], Any]) -> History:
    """One to three runs; each later one a fork of an earlier, or an arm that may share steps."""
    teller = Teller(draw)
    for place in range(draw(st.integers(1, 3))):
        source = draw(st.sampled_from((None, *RUNS[:place])))
        teller.run(RUNS[place], source)
    return teller.told


# ── in the store ────────────────────────────────────────────────────────────────────────────


def write(tx: Transaction, told: History) -> None:
    """Store a history."""
    models = {BASE, *(update["model"] for update in told.updates.values())}
    tx.insert(rows.Model, [
        rows.Model(m, "outside" if m == BASE else "update", "Tiny", 1, None, f"models/{m}")
        for m in models
    ])  # fmt: skip
    tx.insert(rows.Prompt, [
        rows.Prompt(one["prompt_id"], one["problem_id"], mint("x", 0), one["hinted"], (1,), "?")
        for one in told.trajectories.values()
    ])  # fmt: skip
    tx.insert(rows.Trajectory, [_trajectory(id_, one) for id_, one in told.trajectories.items()])
    tx.insert(rows.TrajectoryParent, [
        rows.TrajectoryParent(child, parent, "hint") for child, parent in told.parents
    ])  # fmt: skip
    tx.insert(rows.Verdict, [
        rows.Verdict(id_, **one, score=None, extracted=None, reason=one["status"], trust="strong",
                     isolation="none")
        for id_, one in told.verdicts.items()
    ])  # fmt: skip
    tx.insert(rows.Decision, [rows.Decision(**one) for one in told.decisions])
    for set_id, held in told.sets.items():
        _training_set(tx, set_id, held)
    for update_id, update in told.updates.items():
        _update(tx, told, update_id, update)
    tx.insert(rows.Evaluation, [
        rows.Evaluation(id_, one["model_id"], "sums", "dev", mint("s", 0), one["verifier_id"], 1, 1)
        for id_, one in told.evaluations.items()
    ])  # fmt: skip
    for run in dict.fromkeys(step["run"] for step in told.steps):
        tx.append(
            "begin_run",
            run_id=mint("r", run), name=run, recipe="star", config="{}", identity="{}",
            manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    tx.insert(rows.StepOutput, [
        rows.StepOutput(run_id=mint("r", one["run"]), **one) for one in told.outputs
    ])  # fmt: skip
    for step in told.steps:
        place = {name: value for name, value in step.items() if name != "run"}
        tx.append("commit_step", run_id=mint("r", step["run"]), **place, wall_s=1.0, work_s=1.0)


def _trajectory(id_: Id, one: dict[str, Any]) -> rows.Trajectory:
    policy = one["model_id"]
    return rows.Trajectory(
        id_, id_, one["problem_id"], one["prompt_id"], policy, mint("s", 0) if policy else None,
        one["purpose"], one["origin"], 7 if policy else None, 0, f"{id_} said", (5,), None, "stop",
        None, None, None, None,
    )  # fmt: skip


def _training_set(tx: Transaction, set_id: Id, held: list[dict[str, Any]]) -> None:
    tx.insert(rows.TrainingSet, [
        rows.TrainingSet(set_id, len(held), sum(row["tokens"] for row in held))
    ])  # fmt: skip
    tx.insert(rows.TrainingRow, [
        rows.TrainingRow(set_id, row["training_row_id"], place,
                         "pair" if len(row["trajectories"]) > 1 else "sft", mint("q", 0), 1.0,
                         row["source"], row["tokens"])
        for place, row in enumerate(held)
    ])  # fmt: skip
    tx.insert(rows.TrainingRowTrajectory, [
        rows.TrainingRowTrajectory(set_id, row["training_row_id"], id_, role, None, None)  # type: ignore[arg-type]
        for row in held for id_, role in row["trajectories"]
    ])  # fmt: skip


def _update(tx: Transaction, told: History, update_id: Id, update: dict[str, Any]) -> None:
    made = rows.TrainingUpdate(
        update_id, update["init"], update["reference"], update["set"], None, "tally", "{}", 0, 1, 1,
        update["model"], None,
    )  # fmt: skip
    visits = [rows.TrainingVisit(update_id, id_, n) for id_, n in update["visits"].items()]
    policies = {
        row["training_row_id"]: {told.trajectories[t]["model_id"] for t, _ in row["trajectories"]}
        - {None}
        for row in told.sets[update["set"]]
    }
    tx.insert(rows.TrainingUpdate, [made])
    tx.insert(rows.TrainingVisit, visits)
    tx.insert(rows.ModelParent, model_parents(made, visits, policies))
