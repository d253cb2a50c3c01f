# SPDX-License-Identifier: Apache-2.0
"""`starloop describe`: what an updater's loss pulls on, and how hard."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = (
    "starloop describe",
    "starloop describe configs/dpo.yaml update.updater.beta=0.05",
)


def describe(
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            help="YAML files, and key=value for all of them; every updater if left out.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show data source, reward, gradient coefficient and level of updaters, or of configs."""
    from configs.load import load
    from report.describe import describe as described
    from report.describe import describe_all

    given = configs or []
    files, overrides = [g for g in given if "=" not in g], [g for g in given if "=" in g]
    pages = [described(file, load(Path(file), overrides)) for file in files]
    typer.echo("\n\n".join(pages or [describe_all()]))
