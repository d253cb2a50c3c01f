# SPDX-License-Identifier: Apache-2.0
"""Lineage questions answered by walking a history's dicts and lists, one edge at a time."""

from collections import Counter, deque
from typing import Any

from lineage_histories import History

from stages.ids import Id

Thing = tuple[str, Id]
SHOWN = ("trajectory", "training_set", "training_update", "model", "evaluation")


def made_in(told: History) -> dict[Thing, tuple[str, int]]:
    """The run and round that stored each thing: the first to use it."""
    found: dict[Thing, tuple[str, int]] = {}
    for output in told.outputs:
        found.setdefault((output["kind"], output["id"]), (output["run"], output["round"]))
    return found


def refresh_of(told: History) -> dict[Thing, int]:
    """The refresh that stored each thing."""
    found: dict[Thing, int] = {}
    for output in told.outputs:
        found.setdefault((output["kind"], output["id"]), output["refresh"])
    return found


def first_round(told: History, run: str) -> dict[Id, int]:
    """The first round in which a run used each trajectory."""
    found: dict[Id, int] = {}
    for output in told.outputs:
        if output["run"] == run and output["kind"] == "trajectory":
            found[output["id"]] = min(output["round"], found.get(output["id"], output["round"]))
    return found


def trained_by(told: History, model: Id) -> list[tuple[Any, ...]]:
    made, refresh, found = made_in(told), refresh_of(told), []
    for update_id, update in told.updates.items():
        for row in told.sets[update["set"]]:
            visits = update["visits"][row["training_row_id"]]
            if update["model"] != model or not visits:
                continue
            for id_, role in row["trajectories"]:
                one = told.trajectories[id_]
                found.append(
                    (*made["trajectory", id_], refresh["trajectory", id_], one["origin"], id_,
                     one["problem_id"], one["model_id"], role, visits, row["tokens"],
                     update["set"], update_id)
                )  # fmt: skip
    return found


def parents_of(told: History, model: Id) -> set[tuple[Id, str]]:
    """The models that a model rests on directly, and how."""
    found: set[tuple[Id, str]] = set()
    for update in told.updates.values():
        if update["model"] != model:
            continue
        found.add((update["init"], "init"))
        if update["reference"]:
            found.add((update["reference"], "reference"))
        for row in told.sets[update["set"]]:
            if update["visits"][row["training_row_id"]] > 0:
                for id_, _ in row["trajectories"]:
                    policy = told.trajectories[id_]["model_id"]
                    found |= {(policy, "policy")} if policy else set()
    return found


def ancestors(told: History, model: Id) -> list[tuple[Any, ...]]:
    depth, waiting = {model: 0}, deque([model])
    relations: dict[Id, set[str]] = {}
    while waiting:
        child = waiting.popleft()
        for parent, relation in parents_of(told, child):
            relations.setdefault(parent, set()).add(relation)
            if parent not in depth:
                depth[parent] = depth[child] + 1
                waiting.append(parent)
    made, found = made_in(told), []
    for id_, steps in depth.items():
        if id_ == model:
            continue
        held = [u["set"] for u in told.updates.values() if u["model"] == id_]
        data = (held[0], len(told.sets[held[0]])) if held else (None, None)
        origin = "update" if held else "outside"
        found.append(
            (id_, steps, sorted(relations[id_]), *made["model", id_], origin, *data,
             f"models/{id_}")
        )  # fmt: skip
    return found


def edges(told: History) -> list[tuple[Thing, Thing]]:
    """What came from what; a step from data or a model to an update is one update further."""
    found: list[tuple[Thing, Thing]] = []
    for id_, one in told.trajectories.items():
        found.append((("problem", one["problem_id"]), ("trajectory", id_)))
        found.append((("prompt", one["prompt_id"]), ("trajectory", id_)))
        if one["model_id"]:
            found.append((("model", one["model_id"]), ("trajectory", id_)))
    found += [(("trajectory", parent), ("trajectory", child)) for child, parent in told.parents]
    again = {o["id"] for o in told.outputs if o["step"].startswith("reverify")}
    for id_, verdict in told.verdicts.items():
        if id_ not in again:  # judged anew: nothing was decided by it
            judged = ("trajectory", verdict["trajectory_id"])
            found.append((("verifier", verdict["verifier_id"]), judged))
    for set_id, held in told.sets.items():
        for row in held:
            found += [(("trajectory", id_), ("training_set", set_id))
                      for id_, _ in row["trajectories"]]  # fmt: skip
    for update_id, update in told.updates.items():
        here = ("training_update", update_id)
        found.append((("model", update["init"]), here))
        if update["reference"]:
            found.append((("model", update["reference"]), here))
        for row in told.sets[update["set"]]:
            if update["visits"][row["training_row_id"]] > 0:
                found += [(("trajectory", id_), here) for id_, _ in row["trajectories"]]
        found.append((here, ("model", update["model"])))
    for id_, one in told.evaluations.items():
        found.append((("model", one["model_id"]), ("evaluation", id_)))
        found.append((("verifier", one["verifier_id"]), ("evaluation", id_)))
    return found


def descendants(told: History, thing: Thing) -> list[tuple[Any, ...]]:
    """All that is reached from a thing; depth counts the updates on the shortest way."""
    after: dict[Thing, list[Thing]] = {}
    for source, target in edges(told):
        after.setdefault(source, []).append(target)
    if thing[0] == "training_set":  # the whole set is in question: every update on it
        after[thing] = [("training_update", u) for u, one in told.updates.items()
                        if one["set"] == thing[1]]  # fmt: skip
    depth: dict[Thing, int] = {}
    waiting = deque([(thing, 0)])
    while waiting:
        here, steps = waiting.popleft()
        if here in depth and depth[here] <= steps:
            continue
        depth[here] = steps
        for target in after.get(here, ()):
            further = steps + (target[0] == "training_update")
            (waiting.append if further > steps else waiting.appendleft)((target, further))
    if thing[0] == "training_update":
        depth = {found: steps + 1 for found, steps in depth.items()}
    made, told_of = made_in(told), []
    for found, steps in depth.items():
        if found == thing or found[0] not in SHOWN:
            continue
        if found[0] in ("trajectory", "training_set"):
            told_of.append((*found, *made[found], None))
        elif found[0] == "evaluation":  # as far away as the model, if that is reached
            model = told.evaluations[found[1]]["model_id"]
            told_of.append((*found, *made[found], depth.get(("model", model))))
        else:
            told_of.append((*found, *made[found], steps))
    return told_of


def mix_of(told: History, set_id: Id) -> list[tuple[Any, ...]]:
    made, ids, tokens = made_in(told), {}, Counter()  # type: ignore[var-annotated]
    for row in told.sets[set_id]:
        for id_, role in row["trajectories"]:
            if role != "rejected":
                origin = told.trajectories[id_]["origin"]
                group = (*made["trajectory", id_], origin, row["source"])
                ids.setdefault(group, set()).add(row["training_row_id"])
                tokens[group] += row["tokens"]
    return [(*group, len(found), tokens[group]) for group, found in ids.items()]


def rationalized_in_use(told: History, run: str, number: int) -> list[tuple[Any, ...]]:
    rounds, found = first_round(told, run), []
    here = [o for o in told.outputs if (o["run"], o["round"]) == (run, number)]
    for output in here:
        if output["kind"] != "training_set":
            continue
        at = ("training_update", output["refresh"])
        updates = [o["id"] for o in here if (o["kind"], o["refresh"]) == at]
        for row in told.sets[output["id"]]:
            for id_, _ in row["trajectories"]:
                one = told.trajectories[id_]
                if one["origin"] == "rationalized":
                    visits = told.updates[updates[0]]["visits"][row["training_row_id"]]
                    found.append((run, number, id_, one["problem_id"], rounds[id_], visits))
    return found


def mix_moves(told: History, run: str) -> list[tuple[Any, ...]]:
    """Round, origin, rows, tokens, share of the round's rows, change from the round before."""
    counted: dict[int, dict[str, list[int]]] = {}
    for output in told.outputs:
        if (output["run"], output["kind"]) != (run, "training_set"):
            continue
        origins = counted.setdefault(output["round"], {})
        for row in told.sets[output["id"]]:
            (id_,) = [id_ for id_, role in row["trajectories"] if role != "rejected"]
            sums = origins.setdefault(told.trajectories[id_]["origin"], [0, 0])
            sums[0] += 1
            sums[1] += row["tokens"]
    found, last = [], {}  # type: ignore[var-annotated]
    for number in sorted(n for n, origins in counted.items() if origins):
        total = sum(rows for rows, _ in counted[number].values())
        for origin in {origin for origins in counted.values() for origin in origins}:
            rows, tokens = counted[number].get(origin, (0, 0))
            change = rows / total - last[origin] if origin in last else None
            found.append((number, origin, rows, tokens, rows / total, change))
            last[origin] = rows / total
    return found


def journey(told: History, problem: Id) -> list[tuple[Any, ...]]:
    """Run, problem, round, answers, right ones, state."""
    found = []
    for run in dict.fromkeys(output["run"] for output in told.outputs):
        last: dict[int, dict[Id, dict[str, Any]]] = {}
        for output in told.outputs:
            if output["run"] != run or output["kind"] != "verdict":
                continue
            verdict = told.verdicts[output["id"]]
            one = told.trajectories[verdict["trajectory_id"]]
            if (
                one["problem_id"] == problem
                and one["purpose"] in ("train", "eval")
                and not output["step"].startswith("reverify")
            ):
                last.setdefault(output["round"], {})[verdict["trajectory_id"]] = verdict
        solved = False
        for number in sorted(last):
            right = sum(v["status"] == "correct" for v in last[number].values())
            state = ("lost" if solved else "never") if not right else "kept" if solved else "new"
            found.append((run, problem, number, len(last[number]), right, state))
            solved = solved or right > 0
    return found


def problem_moves(told: History, run: str) -> list[tuple[Any, ...]]:
    counts: dict[int, Counter[str]] = {}
    for problem in {one["problem_id"] for one in told.trajectories.values()}:
        for of, _, number, _, _, state in journey(told, problem):
            if of == run:
                counts.setdefault(number, Counter())[state] += 1
    return [(n, *(c[state] for state in ("new", "kept", "lost", "never")))
            for n, c in counts.items()]  # fmt: skip


def fate_of(told: History, id_: Id) -> list[tuple[Any, ...]]:
    """Run, round, status, kept, why, training sets, trained models."""
    found, one = [], told.trajectories[id_]
    for run in dict.fromkeys(output["run"] for output in told.outputs):
        number = first_round(told, run).get(id_)
        if number is None:
            continue
        here = [o for o in told.outputs if o["run"] == run]
        verdicts = [told.verdicts[o["id"]] for o in here if o["kind"] == "verdict"
                    and o["round"] == number and not o["step"].startswith("reverify")]  # fmt: skip
        status = [v["status"] for v in verdicts if v["trajectory_id"] == id_]
        decided = [
            (step["round"], step["step"] != "mix", decision)
            for step in told.steps if step["run"] == run
            for decision in told.decisions
            if (decision["step_key"], decision["trajectory_id"]) == (step["step_key"], id_)
            and decision["source"] != "earlier"
        ]  # fmt: skip
        decision = min(decided, key=lambda each: each[:2])[2] if decided else None
        held = [o["id"] for o in here if o["kind"] == "training_set"]
        sets = {of for of in held
                if any(id_ in dict(row["trajectories"]) for row in told.sets[of])}  # fmt: skip
        models = set()
        for update in (told.updates[o["id"]] for o in here if o["kind"] == "training_update"):
            for row in told.sets[update["set"]]:
                if id_ in dict(row["trajectories"]) and update["visits"][row["training_row_id"]]:
                    models.add(update["model"])
        why = decision["why"] if decision else "undecided"
        why = "evaluation" if one["purpose"] == "eval" else why
        kept = decision["kept"] if decision else False
        found.append(
            (run, number, status[-1] if status else None, kept, why, sorted(sets), sorted(models))
        )
    return found
