# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: drawn whole, filtered, linked, dark, light, never taken over."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import hostile_history
import pytest

if TYPE_CHECKING:
    from conftest import Browser

SIZES = (390, 820, 1440)
CHARTS = """
return [...document.querySelectorAll(".chart")].map((place) => {
  const svg = place.querySelector("svg");
  const box = svg ? svg.getBoundingClientRect() : {width: 0, height: 0};
  const marks = [...place.querySelectorAll(".role-mark path, .role-mark text, .role-mark line")];
  const seen = marks.map((m) => m.getBoundingClientRect()).filter((b) => b.width + b.height > 0);
  const axes = [...place.querySelectorAll(".role-axis-title text")].map((t) => t.textContent);
  return {id: place.id, width: box.width, height: box.height, marks: seen.length, axes: axes.length,
          right: box.right};
});
"""


@pytest.fixture(params=["of_a_run", "of_hostile_runs"])
def page(request: pytest.FixtureRequest) -> Path:
    """Each of the reports."""
    found: Path = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("width", SIZES)
def test_every_figure_is_drawn_and_fits(browser: "Browser", page: Path, width: int) -> None:
    browser.show(page, width)
    charts = browser.run(CHARTS)
    assert len(charts) > 10
    for chart in charts:
        assert chart["width"] > 150, chart
        assert chart["height"] > 50, chart
        assert chart["marks"] > 0, chart
        assert chart["right"] <= width, chart
        assert chart["axes"] or "lineage" in chart["id"], chart
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_asked_of_the_network_and_nothing_fails(
    browser: "Browser", page: Path, scheme: str
) -> None:
    browser.show(page, scheme=scheme)
    assert [entry["message"] for entry in browser.log("browser")] == []
    assert browser.requests() == [page.as_uri()]
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


def test_hostile_text_runs_nothing_and_is_shown_as_text(
    browser: "Browser", of_hostile_runs: Path
) -> None:
    browser.show(of_hostile_runs)
    assert browser.run("return document.title") == "one, two · starloop"
    assert browser.run("return document.querySelectorAll('img, iframe, main script').length") == 0
    texts = browser.run(
        "return [...document.querySelectorAll('article pre')].map(p => p.textContent)"
    )
    assert hostile_history.TEXTS["tag"] in texts
    assert r"before\x00after" in texts
    assert any(r"\u202eright to left" in text for text in texts)


def test_a_text_without_end_stays_in_its_card(browser: "Browser", of_hostile_runs: Path) -> None:
    browser.show(of_hostile_runs, 390)
    heights = browser.run(
        "return [...document.querySelectorAll('article')].map(a => [a.offsetHeight, a.scrollWidth])"
    )
    assert max(height for height, _ in heights) < 900
    assert max(width for _, width in heights) <= 390


def visible_cards(browser: "Browser") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = browser.run(
        "return [...document.querySelectorAll('.trajectory')].filter(c => c.offsetHeight)"
        ".map(c => ({...c.dataset}))"
    )
    return found


def choose(browser: "Browser", name: str, value: str) -> None:
    browser.run(
        "const s = document.querySelector(`.filters select[name=${arguments[0]}]`);"
        "s.value = arguments[1]; s.dispatchEvent(new Event('change', {bubbles: true}));",
        name, value,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [("round", "2"), ("verdict", "wrong"), ("origin", "rationalized"),
                        ("kind", "top reward")]
)  # fmt: skip
def test_filters_leave_what_fits(browser: "Browser", of_a_run: Path, name: str, value: str) -> None:
    browser.show(of_a_run)
    every = visible_cards(browser)
    choose(browser, name, value)
    shown = visible_cards(browser)
    assert shown == [card for card in every if value in card[name].split("|")]
    assert 0 < len(shown) < len(every)
    said = browser.run("return document.querySelector('.filters output').textContent")
    assert said == f"{len(shown)} of {len(every)}"
    choose(browser, name, "")
    assert visible_cards(browser) == every


def test_filters_hold_together(browser: "Browser", of_a_run: Path) -> None:
    browser.show(of_a_run)
    choose(browser, "round", "1")
    choose(browser, "verdict", "wrong")
    assert {(c["round"], c["verdict"]) for c in visible_cards(browser)} == {("1", "wrong")}
    choose(browser, "origin", "rationalized")
    choose(browser, "kind", "right")
    assert visible_cards(browser) == []


def test_links_go_to_their_section(browser: "Browser", of_a_run: Path) -> None:
    browser.show(of_a_run)
    browser.run("document.documentElement.style.scrollBehavior = 'auto'")
    links = browser.driver.find_elements("css selector", "nav a")
    assert len(links) > 8
    for link in links:
        browser.run("arguments[0].click()", link)
        target = link.get_attribute("href").partition("#")[2]
        top = browser.run(
            "return document.getElementById(arguments[0]).getBoundingClientRect().top", target
        )
        assert -5 <= top < 900, target


def test_dark_and_light_follow_the_users_wish_at_once(browser: "Browser", of_a_run: Path) -> None:
    colours = """
    const text = document.querySelector('.role-axis-label text');
    return [getComputedStyle(document.body).backgroundColor, getComputedStyle(text).fill];
    """
    browser.show(of_a_run)
    assert browser.run(colours) == ["rgb(255, 255, 255)", "rgb(28, 33, 40)"]
    browser.scheme("dark")
    browser.wait()
    assert browser.run(colours) == ["rgb(20, 23, 28)", "rgb(230, 233, 238)"]


def test_the_numbers_unfold(browser: "Browser", of_a_run: Path) -> None:
    browser.show(of_a_run)
    summary = browser.driver.find_element("css selector", "#try-accuracy > details > summary")
    browser.run("arguments[0].click()", summary)
    cells = browser.run(
        "return [...document.querySelectorAll('#try-accuracy td')].map(c => c.offsetHeight)"
    )
    assert cells
    assert min(cells) > 0


def test_without_scripts_the_page_says_so_and_has_its_numbers(
    browser: "Browser", of_a_run: Path
) -> None:
    browser.show(of_a_run, script=False)
    browser.command("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "The pictures and filters need JavaScript" in browser.run(
        "return document.body.innerText"
    )
    assert browser.run("return document.querySelectorAll('table').length") > 10


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshots_are_kept(
    browser: "Browser", page: Path, artefacts: Path, width: int, scheme: str
) -> None:
    browser.show(page, width, scheme)
    file = artefacts / f"{page.stem}-{width}-{scheme}.png"
    browser.picture(file)
    assert file.stat().st_size > 30_000
