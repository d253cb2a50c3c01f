# SPDX-License-Identifier: Apache-2.0
"""Problems, prompts and trajectories of a file's rows, each made once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stages import ids
from stages.errors import ConfigError, TaskDataError
from stages.ids import Id
from stages.imports.base import Kind, Message, Reading, Row, Said
from stages.imports.values import as_question
from stages.rows import (
    Origin,
    Problem,
    Prompt,
    PromptSet,
    Purpose,
    TrainingRow,
    TrainingRowTrajectory,
    TrainingSet,
    Trajectory,
    Verdict,
    VerdictComponent,
    Verifier,
)
from stages.settings import canonical

PLAIN = "{question}"
PROMPTS = PromptSet(ids.prompt_set_id("import", PLAIN, None), "import", PLAIN, None)
JUDGED: tuple[Kind, ...] = ("rollouts", "demonstrations")
PURPOSE: dict[Kind, Purpose] = {
    "rollouts": "train",
    "demonstrations": "seed",
    "problems": "train",
    "pairs": "train",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What rows are taken as. `shape` is canonical JSON of all that shapes a trajectory's row."""

    kind: Kind
    format: str
    task: str
    split: str
    origin: Origin
    shape: str
    correct_at: float | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A file that was read: how messages name it, its SHA-256, its rows."""

    name: str
    sha256: str
    unit: str
    reading: Reading


@dataclass(slots=True)
class Ingested:
    """Rows for the store, by table."""

    problems: dict[Id, Problem] = field(default_factory=dict)
    prompts: dict[Id, Prompt] = field(default_factory=dict)
    trajectories: list[Trajectory] = field(default_factory=list)
    verifiers: list[Verifier] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    components: list[VerdictComponent] = field(default_factory=list)
    training_sets: list[TrainingSet] = field(default_factory=list)
    training_rows: list[TrainingRow] = field(default_factory=list)
    links: list[TrainingRowTrajectory] = field(default_factory=list)
    cut_unknown: int = 0

    def tables(self) -> list[tuple[type, Sequence[Any]]]:
        """The rows by type, in the order they are stored."""
        return [
            (Problem, list(self.problems.values())),
            (PromptSet, [PROMPTS] if self.prompts else []),
            (Prompt, list(self.prompts.values())),
            (Trajectory, self.trajectories),
            (Verifier, self.verifiers),
            (Verdict, self.verdicts),
            (VerdictComponent, self.components),
            (TrainingSet, self.training_sets),
            (TrainingRow, self.training_rows),
            (TrainingRowTrajectory, self.links),
        ]

    def uses(self) -> dict[str, list[Id]]:
        """The artefacts that a run uses with these rows, by kind."""
        return {
            "problem": list(self.problems),
            "trajectory": [row.trajectory_id for row in self.trajectories],
            "verdict": [row.verdict_id for row in self.verdicts],
            "training_set": [row.training_set_id for row in self.training_sets],
        }


@dataclass(slots=True)
class Writer:
    """Makes problems, prompts and trajectories, each once."""

    options: Options
    tokenizer: Any
    taken: Ingested
    places: Counter[str] = field(default_factory=Counter)
    slots: Counter[Id] = field(default_factory=Counter)
    written: dict[str | tuple[Message, ...], tuple[str, tuple[int, ...]]] = field(
        default_factory=dict
    )

    def take(self, file: File, row: Row) -> tuple[Row, Prompt, list[Trajectory]] | None:
        """The row's problem, and its prompt with what was said to it, where something was."""
        at = f"{file.name}, {file.unit} {row.line}"
        problem = self._problem(row, at)
        if not row.said:
            return None
        prompt = self._prompt(row, problem, at)
        source = canonical({"file": file.sha256, "shape": self.options.shape})
        group = None if row.group is None else ids.outside_group_id(source, row.group)
        made = []
        for said in row.said:
            token_ids = self._tokens(said, at)
            self.taken.cut_unknown += said.finish is None
            place = self.places[file.sha256]
            self.places[file.sha256] += 1
            made.append(
                Trajectory(
                    trajectory_id=ids.outside_trajectory_id(source, place),
                    content_id=ids.content_id(prompt.token_ids, token_ids),
                    problem_id=problem.problem_id,
                    prompt_id=prompt.prompt_id,
                    model_id=None,
                    sampling_id=None,
                    purpose=PURPOSE[self.options.kind],
                    origin=self.options.origin,
                    seed=None,
                    slot=self.slots[prompt.prompt_id],
                    completion=said.text,
                    token_ids=token_ids,
                    logprobs=said.logprobs,
                    finish_reason=said.finish or "stop",
                    engine=None,
                    engine_version=None,
                    dtype=None,
                    weight_version=None,
                    group_id=group,
                )
            )
            self.slots[prompt.prompt_id] += 1
        self.taken.trajectories += made
        return row, prompt, made

    def _problem(self, row: Row, at: str) -> Problem:
        question = as_question(row.prompt) if row.question is None else row.question
        task = self.options.task
        problem = Problem(
            problem_id=ids.problem_id(task, question, row.answer),
            task=task,
            split=self.options.split,
            question=question,
            answer=row.answer,
            domain=row.domain,
            difficulty=row.difficulty,
        )
        before = self.taken.problems.setdefault(problem.problem_id, problem)
        if before != problem:
            raise TaskDataError(
                f"{at}: the problem has another domain or difficulty ({row.domain!a}, "
                f"{row.difficulty}) than in an earlier row ({before.domain!a}, "
                f"{before.difficulty}): mend the file, or leave them out with --map"
            )
        return before

    def _prompt(self, row: Row, problem: Problem, at: str) -> Prompt:
        text, tokens = self._written(row, at)
        found = Prompt(
            ids.prompt_id(problem.problem_id, PROMPTS.prompt_set_id, False, tokens),
            problem.problem_id,
            PROMPTS.prompt_set_id,
            False,
            tokens,
            text,
        )
        return self.taken.prompts.setdefault(found.prompt_id, found)

    def _written(self, row: Row, at: str) -> tuple[str, tuple[int, ...]]:
        """A prompt's text and token ids."""
        if row.prompt_token_ids is not None and self.tokenizer is None:
            return as_question(row.prompt), row.prompt_token_ids
        if row.prompt not in self.written:
            text = row.prompt if isinstance(row.prompt, str) else self._chat(row.prompt, at)
            tokens = () if row.prompt_token_ids is not None else self._tokenize(text, "prompt", at)
            self.written[row.prompt] = text, tokens
        text, tokens = self.written[row.prompt]
        return text, tokens if row.prompt_token_ids is None else row.prompt_token_ids

    def _chat(self, messages: Sequence[Message], at: str) -> str:
        from jinja2 import TemplateError

        spoken = [{"role": message.role, "content": message.content} for message in messages]
        self._need_tokenizer("prompt", at)
        try:
            return str(
                self.tokenizer.apply_chat_template(
                    spoken, tokenize=False, add_generation_prompt=True
                )
            )
        except TemplateError as error:
            raise TaskDataError(
                f"{at}: the chat template refuses the prompt's messages ({error}): mend the file, "
                "or name another folder with --tokenizer"
            ) from error

    def _tokens(self, said: Said, at: str) -> tuple[int, ...]:
        """A completion's token ids, its end token included."""
        if said.token_ids is not None:
            return said.token_ids
        found = self._tokenize(said.text, "completion", at)
        return found if said.finish == "length" else (*found, self.tokenizer.eos_token_id)

    def _tokenize(self, text: str, what: str, at: str) -> tuple[int, ...]:
        self._need_tokenizer(what, at)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _need_tokenizer(self, what: str, at: str) -> None:
        if self.tokenizer is None:
            field_ = "prompt_token_ids" if what == "prompt" else "token_ids"
            raise ConfigError(
                f"{at}: no token ids for the {what}: name the folder of the policy's tokenizer "
                f"with --tokenizer, or a column that has them with --map {field_}=COLUMN"
            )


def left_out(files: Sequence[File], options: Options) -> dict[str, Any]:
    """What was not mapped: columns, reward columns without a threshold, rows by reason."""
    columns = dict.fromkeys(name for file in files for name in file.reading.columns)
    rewards = dict.fromkeys(name for file in files for name in file.reading.rewards)
    if options.kind not in JUDGED:
        columns, rewards = columns | rewards, {}
    refused: dict[str, dict[str, Any]] = {}
    for file in files:
        for reason, lines in file.reading.refused.items():
            of = refused.setdefault(reason, {"rows": 0, "first": []})
            of["rows"] += len(lines)
            of["first"] += [f"{file.name}, {file.unit} {line}" for line in lines]
            of["first"] = of["first"][:5]
    return {
        "columns": list(columns),
        "rewards": list(rewards) if options.correct_at is None else [],
        "refused": refused,
    }


def counts(taken: Ingested) -> list[tuple[str, int]]:
    """How many rows of each sort there are, sorts without a row left out."""
    found = {
        "problems": len(taken.problems),
        "trajectories": len(taken.trajectories),
        "groups": len({t.group_id for t in taken.trajectories if t.group_id is not None}),
        "training rows": len(taken.training_rows),
        **{status: sum(v.status == status for v in taken.verdicts)
           for status in ("correct", "wrong", "unjudged")},
    }  # fmt: skip
    return [(name, count) for name, count in found.items() if count]
