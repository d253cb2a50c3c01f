# SPDX-License-Identifier: Apache-2.0
"""What is to be expected of a run, as a page: pass rates of its base, tokens, hours, disk."""

from report.forecast import Forecast, forecast_page
from report.text import duration, visible
from stages.preflight import BINS, Outlook

WIDTH = 40  # characters of the longest bar


def outlook_lines(found: Outlook) -> list[str]:
    """Pass rates of the base and their histogram over problems."""
    names = ["never", *(f"< {(i + 1) / BINS:.1f}" for i in range(BINS)), "always"]
    most = max(found.histogram) or 1
    share = found.mixed / found.problems if found.problems else 0.0
    return [
        f"base on {found.problems} held-out problems, {found.n} answers each: pass@1 "
        f"{found.pass_at_1:.3f}, pass@{found.k} {found.pass_at_k:.3f}",
        f"mixed outcomes: {found.mixed} problems ({share:.0%}), never solved {found.never}, always "
        f"{found.always}",
        "problems by pass rate",
        *(
            f"  {name:>6}  {count:>5}  {'█' * round(WIDTH * count / most)}"
            for name, count in zip(names, found.histogram, strict=True)
            if count or name in ("never", "always")
        ),
    ]


def preflight_page(
    found: Outlook | None, pace: tuple[float, float] | None, forecast: Forecast
) -> str:
    """The page. `pace`: mean tokens of an answer and tokens sampled in a second, where known."""
    lines = outlook_lines(found) if found else ["round 0 measured nothing"]
    if pace is not None:
        tokens, per_second = pace
        total = forecast.in_all * tokens
        lines.append(
            f"to sample: {forecast.in_all:,} answers, {total:,.0f} tokens at {tokens:.0f} each, "
            f"{duration(total / per_second)} at {per_second:,.0f} tokens/s; updates come on top"
        )
    if found and found.advice:
        lines.append(f"{found.verdict}: {found.advice}")
    return "\n".join([*map(visible, lines), forecast_page(forecast)])
