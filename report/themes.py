# SPDX-License-Identifier: Apache-2.0
"""The look of charts on white and on dark pages, as Vega-Lite configs."""

from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def _theme(ink: str, quiet: str, lines: str) -> dict[str, Any]:
    """A config: ink for words, quiet for titles of axes, lines for grids."""
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": ink, "titleColor": quiet, "gridColor": lines, "domainColor": lines,
            "tickColor": lines, "labelFontSize": 12, "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "legend": {"labelColor": ink, "titleColor": quiet, "labelFontSize": 12, "symbolSize": 120},
        "text": {"color": ink},
    }  # fmt: skip


THEMES = {
    "light": _theme("#1c2128", "#57606a", "#dde1e6"),
    "dark": _theme("#e6e9ee", "#a2abb8", "#343b46"),
}
