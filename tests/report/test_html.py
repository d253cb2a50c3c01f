# SPDX-License-Identifier: Apache-2.0
"""The HTML page: whole in itself, text stays text, what a run has not is left out."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import hostile_history
import pytest

from configs.files import FOLDER
from configs.load import load
from report.evidence import CLASSES
from report.figures import FIGURES
from report.gathered import gather
from report.html import page
from report.pages import pages
from stages.ids import mint
from store.db import Store

AGE = "(from the copy of 1 s ago)"


class Parts(HTMLParser):
    """The elements of a page with their attributes, scripts with their text, and all other text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open[:-1] if self._open[-1:] == [tag] else self._open

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["script"]:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        else:
            self.words += data

    def json(self, id_: str) -> dict[str, object]:
        """The JSON block of an id."""
        (found,) = [text for attributes, text in self.scripts if attributes.get("id") == id_]
        values: dict[str, object] = json.loads(found)
        return values


def written(store: Store, *names: str) -> str:
    return page(gather(store, names, pages(store, names)), AGE)


@pytest.fixture(scope="module")
def of_finished(finished: Store) -> str:
    return written(finished, "try")


@pytest.fixture(scope="module")
def of_hostile(hostile: Store) -> str:
    return written(hostile, "one", "two")


def test_the_page_names_nothing_outside_itself(of_finished: str) -> None:
    parts = Parts(of_finished)
    for tag, attributes in parts.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img")
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    (policy,) = [a["content"] for t, a in parts.elements if a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert len(of_finished) < 5_000_000


def test_the_policy_admits_the_pages_own_scripts_alone(of_finished: str) -> None:
    scripts = [text for attributes, text in Parts(of_finished).scripts if not attributes]
    (policy,) = re.findall(r"script-src ([^;]*);", of_finished[:2000])
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert len(hashes) == 2
    assert policy.split() == [f"'sha256-{found}'" for found in hashes]


def test_every_chart_has_its_place_and_every_figure_its_numbers(of_finished: str) -> None:
    parts = Parts(of_finished)
    places = [a["id"] for t, a in parts.elements if a.get("class") == "chart"]
    assert set(parts.json("charts")) == set(places)
    assert len(places) == len(set(places)) > 10
    figures = [a for t, a in parts.elements if t == "figure"]
    assert of_finished.count("<summary>The numbers</summary>") == len(figures)


def test_links_in_the_page_lead_somewhere_and_ids_are_unique(of_hostile: str) -> None:
    elements = Parts(of_hostile).elements
    ids = [a["id"] for _, a in elements if "id" in a]
    links = [str(a["href"])[1:] for t, a in elements if t == "a"]
    assert len(ids) == len(set(ids))
    assert links
    assert set(links) <= set(ids)


def test_hostile_text_stays_text(of_hostile: str) -> None:
    parts = Parts(of_hostile)
    assert not [t for t, _ in parts.elements if t in ("img", "iframe", "svg")]
    assert not [a for _, a in parts.elements if any(name.startswith("on") for name in a)]
    assert len(parts.scripts) == 4
    assert hostile_history.TEXTS["tag"] in parts.words
    assert "{{ 7 * 7 }}" in parts.words
    assert "49 $" not in parts.words


def test_control_characters_are_made_visible(of_hostile: str) -> None:
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", of_hostile
    )
    words = Parts(of_hostile).words
    for said in (r"\x1b[31mred\x1b[0m", r"\u202eright to left\u202c", r"before\x00after"):
        assert said in words
    assert "first\n\n  third\nfourth\\u2028fifth" in words


def test_a_long_text_is_cut_and_says_how_much_is_left_out(of_hostile: str) -> None:
    length = len(hostile_history.LONG)
    assert f"{length - 4000:,} characters left out" in Parts(of_hostile).words
    assert "w" * 2000 in of_hostile and "w" * 2001 not in of_hostile
    assert "é" * 2000 in of_hostile and "é" * 2001 not in of_hostile


def test_hostile_names_in_charts_are_escaped_json(of_hostile: str) -> None:
    block = re.findall(
        r'<script type="application/json" id="charts">(.*?)</script>', of_hostile, re.S
    )
    assert len(block) == 1
    assert "<" not in block[0]
    assert hostile_history.DOMAIN in json.dumps(json.loads(block[0]), ensure_ascii=False)


def test_what_a_run_has_not_is_left_out(of_finished: str, of_hostile: str) -> None:
    assert 'id="topic-hints"' in of_finished
    assert 'id="try-kl"' not in of_finished  # recipe star measures no KL
    assert 'id="topic-domains"' not in of_finished
    assert 'id="one-hints"' in of_hostile
    assert 'id="two-hints"' not in of_hostile
    assert 'id="together"' not in of_finished


def test_the_header_says_how_often_the_policy_was_refreshed(of_finished: str) -> None:
    # 30 and 36 steps, round 1 sampled by the base and round 2 by the first checkpoint
    said = "66 optimizer steps and two sampling policies so far: s = 33 was reached"
    assert said in Parts(of_finished).words


def test_trajectories_are_shown_by_class_with_their_fate(of_finished: str) -> None:
    cards = [a for _, a in Parts(of_finished).elements if a.get("class") == "trajectory"]
    kinds = [kind for card in cards for kind in str(card["data-kind"]).split("|")]
    assert set(kinds) == set(CLASSES) - {"unjudged"}
    assert max(map(kinds.count, kinds)) == 10
    assert {card["data-round"] for card in cards} == {"1", "2"}
    assert "kept, trained checkpoints 1, 2" in of_finished
    assert "left out (hint_leak)" in of_finished


def test_a_run_that_has_only_begun_has_a_page_without_figures(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = Store(tmp_path_factory.mktemp("begun") / "store.duckdb")
    store.create()
    config = load(FOLDER / "tiny" / "try.yaml").model_dump_json(by_alias=True)
    with store.transaction() as tx:
        tx.append(
            "begin_run",
            run_id=mint("r", "new"), name="new", recipe="star", config=config, identity="{}",
            manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    parts = Parts(written(store, "new"))
    assert not [t for t, _ in parts.elements if t in ("figure", "article", "form")]
    assert parts.json("charts") == {}
    assert "Nothing is trained yet." in parts.words


def test_runs_are_beside_each_other_with_what_differs(hostile: Store) -> None:
    words = Parts(written(hostile, "one", "two")).words
    assert "The configs differ in nothing" in words
    assert "two against one" in words


def test_every_figure_has_a_heading_and_is_named_after_its_function(of_finished: str) -> None:
    for heading, draw in FIGURES.items():
        if f'id="topic-{draw.__name__}"' in of_finished:
            assert f"<h2>{heading}</h2>" in of_finished
