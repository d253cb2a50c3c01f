# SPDX-License-Identifier: Apache-2.0
"""`starloop init`: a data file and a config to begin with."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = ("starloop init sums",)

PEOPLE = ("Ada", "Ben", "Chloe", "Dev", "Eva", "Finn", "Gita", "Hugo")
THINGS = ("shells", "stamps", "apples", "marbles", "books", "coins")
FORMS = {
    "more": ("{name} has {a} {things} and gets {b} more. How many {things} has {name} now?", "+"),
    "fewer": ("{name} has {a} {things} and gives {b} away. How many {things} are left?", "-"),
    "boxes": ("{name} has {a} boxes with {b} {things} in each. How many {things} are there?", "*"),
}
LINES = 50
CONFIG = """\
# Rejection sampling on {name}.jsonl: answers that verify train the next model.
# Every field can be set on the command line too: starloop run {name}.yaml generate.n=8
recipe: rejection            # or star: failures are tried again with the answer as a hint
rounds: 3                    # a target: raise it later and run the same command again
seed: 0

task:
  type: jsonl                # also .json, .csv, .parquet, each row one problem
  name: {name}
  files: {{train: {name}.jsonl}} # dev and test too, where you have them
  columns:                   # where a problem's fields stand in a row
    question: question
    answer: answer
    domain: domain           # measures are shown for each domain and difficulty
    difficulty: difficulty
  split: {{dev: 0.2}}          # without a dev file: the share of train to measure on

policy:
  type: folder               # a Hugging Face checkpoint on disk
  path: models/smollm2-135m-instruct

sampler: {{type: transformers}}

verifier:
  type: numeric              # the number after the mark equals the answer, exactly
  mark: "####"

prompts:
  name: {name}
  plain: "{{question}}\\nThink step by step, then write the answer alone on a last line after ####."

generate:
  problems: {{per_round: all}}
  n: 4                       # completions for each problem
  sampling: {{temperature: 0.8, top_p: 0.95, max_tokens: 160}}

decontaminate:
  rules: [exact]             # made from templates, these problems share most words; for problems
                             # of your own leave this out: the rules for shared words are better

mix: {{history: accumulate}}   # earlier rounds' rows stay in the mix

update:
  init_from: base            # each round trains anew from the base
  steps: {{first: 20, growth: 1.2}}
  updater: {{type: sft, learning_rate: 2.0e-5, batch_size: 8, micro_batch_size: 2}}

evaluate:
  n: 4                       # samples for each held-out problem
  k: 4
  problems: 10               # held-out problems of each difficulty
  sampling: {{temperature: 0.6, top_p: 0.95, max_tokens: 160}}
"""


def init(
    name: Annotated[str, typer.Argument(help="NAME of the files: NAME.jsonl and NAME.yaml.")],
) -> None:
    """Write a small data file and a complete config to begin with, and say how to run them."""
    from flows.commands.common import check_name
    from stages.errors import ConfigError

    check_name(name, "NAME")
    files = {Path(f"{name}.jsonl"): data_lines(), Path(f"{name}.yaml"): CONFIG.format(name=name)}
    for path in files:
        if path.exists():
            raise ConfigError(f"{path} is there already: move it away, or choose another name")
    for path, text in files.items():
        path.write_text(text)
    typer.echo(f"{name}.jsonl: {LINES} problems; {name}.yaml: a config for them. Run:")
    typer.echo(f"  starloop run {name}.yaml")


def data_lines() -> str:
    """Fifty word problems with integer answers, a JSON line each; always the same."""
    import json
    import random

    rng = random.Random("init")
    rows: dict[str, dict[str, object]] = {}
    while len(rows) < LINES:
        domain = list(FORMS)[len(rows) % len(FORMS)]
        text, sign = FORMS[domain]
        digits = 1 + len(rows) // len(FORMS) % 2
        low, high = 10 ** (digits - 1) + 1, 10**digits - 1
        b = rng.randint(2, 9)
        a = rng.randint(max(low, b), high)
        question = text.format(name=rng.choice(PEOPLE), things=rng.choice(THINGS), a=a, b=b)
        answer = {"+": a + b, "-": a - b, "*": a * b}[sign]
        row = {"question": question, "answer": answer, "domain": domain, "difficulty": digits}
        rows.setdefault(question, row)
    return "".join(json.dumps(row) + "\n" for row in rows.values())
