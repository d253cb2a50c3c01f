# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file that needs nothing else: no network, no other file.

Model and task text is text everywhere: escaped by the template, written into JSON without `<`, and
control characters are made visible. A content policy lets only the page's own scripts run.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import altair as alt
import vl_convert
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from configs.load import flat
from report.evidence import CLASSES, Chosen, Evidence
from report.figures.base import counted
from report.gathered import Report
from report.rounds import header
from report.text import visible
from report.themes import THEMES

PAGE = files("report") / "page"
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.strip("v").split(".")[:2])


def page(report: Report, age: str) -> str:
    """The report as a page; `age` says how old the store's copy is."""
    environment = Environment(
        loader=FileSystemLoader(str(PAGE)), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["lines"] = lines
    scripts = [Markup(bundle()), Markup((PAGE / "report.js").read_text())]
    return environment.get_template("report.html.j2").render(
        runs=report.runs,
        topics=report.topics,
        together=report.together,
        sections=report.sections,
        differing=differing([run.evidence for run in report.runs]),
        charts=_charts(report),
        themes=THEMES,
        style=Markup((PAGE / "report.css").read_text()),
        scripts=scripts,
        hashes=[_hash(str(script)) for script in scripts],
        classes=CLASSES,
        header=header,
        reached=reached,
        settings=settings,
        machine=machine,
        fate=fate,
        counted=counted,
        age=age,
    )


def _charts(report: Report) -> dict[str, Any]:
    """Each panel's chart by the id of its place in the page."""
    figures = {f"{run.name}-{f.name}": f for run in report.runs for f in run.figures.values()}
    if report.together is not None:
        figures[report.together.name] = report.together
    return {
        f"{place}-{number}": panel.spec
        for place, figure in figures.items()
        for number, panel in enumerate(figure.panels)
    }


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    script = vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # type: ignore[call-arg] # no snippet
    return script.replace("</script", "<\\/script")


def _hash(script: str) -> str:
    """A script as the page's content policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def lines(text: str) -> str:
    """Text on its lines, all other control characters made visible."""
    return "\n".join(visible(line) for line in text.replace("\r\n", "\n").split("\n"))


def fate(chosen: Chosen) -> str:
    """What became of a trajectory, in words."""
    if chosen.trained:
        rounds = ", ".join(map(str, chosen.trained))
        return f"kept, trained checkpoint{'s' * (len(chosen.trained) > 1)} {rounds}"
    if chosen.kept:
        return "kept, not visited by an optimizer"
    return "not decided yet" if chosen.why == "undecided" else f"left out ({chosen.why})"


def reached(run: Evidence) -> str:
    """How often the policy was in fact refreshed; empty before the first update."""
    if run.timing is None:
        return ""
    steps = counted(run.timing.steps, "optimizer step")
    if run.timing.s is None:
        return f"{steps} so far on the answers of one policy: offline"
    policies = counted(run.timing.policies, "sampling policy", "sampling policies")
    return f"{steps} and {policies} so far: s = {run.timing.s:.3g} was reached"


def settings(run: Evidence) -> str:
    """A run's whole config as YAML."""
    plain = run.config.model_dump(mode="json", exclude_none=True)
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))


def machine(run: Evidence) -> str:
    """The commit that a run was made with, and where."""
    made = run.manifest
    dirty = ", with changes that are not in it" if made.get("dirty") else ""
    counts = f"{made.get('cpus', '?')} CPUs, {made.get('accelerators', 0)} accelerators"
    return (
        f"commit {made.get('commit') or 'unknown'}{dirty} · Python {made.get('python', 'unknown')} "
        f"· {made.get('system', 'unknown')} · {counts}"
    )


def differing(runs: Sequence[Evidence]) -> list[list[str]]:
    """Config fields in which the runs are not all alike: name, then each run's value."""
    fields = [{key: value for key, (value, _) in flat(run.config).items()} for run in runs]
    names = sorted({name for each in fields for name in each})
    rows = [[name, *(str(each.get(name, "–")) for each in fields)] for name in names]
    return [row for row in rows if len(set(row[1:])) > 1]
