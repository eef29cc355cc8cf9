"""The page: self-contained, well-formed, numbers in pictures and tables, names escaped."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from lmms_eval_tasks.cvrr_es.study import page, svg
from lmms_eval_tasks.cvrr_es.study.kappas import BANDS
from lmms_eval_tasks.cvrr_es.study.page import html
from lmms_eval_tasks.cvrr_es.study.report import Options, report
from tests.cvrr_es.study.hand_made import FOURS, LENIENT, REFERENCE, given, judged, referred

_VOID = ("meta", "br")


class Page(HTMLParser):
    """Checks that tags close in order, and collects what matters."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def drawings(text: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def texts(drawing: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in drawing.iter("text")]


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    more = given("J", REFERENCE, round="collective") + given("J", FOURS, round="mixture")
    options = Options(accuracies={"J": 70.0, "K": 12.5, "b": 40.0})
    first, *others = [*judged(), *given("b", LENIENT), *more]
    return report([replace(first, empty=True), *others], referred(), options)


class TestPage:
    """The whole."""

    def test_well_formed_and_self_contained(self, full: dict[str, Any]) -> None:
        text = html(full)
        page = Page(text.removeprefix("<!DOCTYPE html>"))
        names = {name for name, _ in page.tags}
        assert not names & {"script", "link", "img", "iframe", "object", "image", "use"}
        assert not re.search(r"https?:|url\(|@import|src=|\bon\w+=", text)
        links = [attrs["href"] for name, attrs in page.tags if name == "a"]
        ids = [attrs["id"] for name, attrs in page.tags if name == "section"]
        assert links == [f"#{one}" for one in ids]
        assert len(ids) == 12
        assert "prefers-color-scheme: dark" in text
        scrolled = [attrs for _, attrs in page.tags if attrs.get("class") == "scroll"]
        assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in scrolled)
        assert len(scrolled) == text.count("<svg") + text.count("<table")

    def test_pictures_are_xml_with_names(self, full: dict[str, Any]) -> None:
        found = drawings(html(full))
        assert len(found) == 7
        assert all(one.get("aria-label") for one in found)

    def test_numbers(self, full: dict[str, Any]) -> None:
        text = html(full)
        for number in ("0.857", "85.71", "71.43", "91.11", "+0.50", "almost perfect"):
            assert f">{number}<" in text, number
        assert "<td>−0.857</td>" in text

    def test_notes_and_captions(self, full: dict[str, Any]) -> None:
        text = html(full)
        assert "K (first): all 8 ratings are 4: a constant judge&#x27;s kappa is 0" in text
        assert "<caption>Kappa with the reference, x100 (the paper&#x27;s Table 5)" in text
        assert text.count("8 answers of 2 candidates to 4 questions on 2 videos") >= 7

    def test_names_are_escaped(self) -> None:
        evil = '<script>alert("x")</script>&'
        rows = [replace(row, judge=evil) for row in judged() if row.judge == "J"]
        rows += [replace(row, candidate=row.candidate) for row in given("K", FOURS)]
        rows = [replace(row, candidate=f"{evil}{row.candidate}") for row in rows]
        truth = [replace(row, judge=f"{evil}debate", candidate=f"{evil}{row.candidate}")
                 for row in referred()]  # fmt: skip
        found = report(rows, truth, Options(accuracies={evil: 1.0}, resamples=0))
        text = html(found)
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        Page(text.removeprefix("<!DOCTYPE html>"))
        assert drawings(text)

    def test_no_reference(self) -> None:
        text = html(report(judged(), []))
        page = Page(text.removeprefix("<!DOCTYPE html>"))
        ids = {attrs["id"] for name, attrs in page.tags if name == "section"}
        assert "ratings" in ids
        assert "agreement" not in ids
        assert "no kappa: there are no reference ratings yet" in text
        assert "lmms-eval-tasks debate" in text
        assert "none" not in [one for drawing in drawings(text) for one in texts(drawing)]

    def test_no_videos(self) -> None:
        bare = [[replace(row, video="") for row in own] for own in (judged(), referred())]
        text = html(report(*bare))
        assert "no intervals: the video of 4 of 4 questions is not known" in text
        assert 'class="whisker"' not in text


class TestPictures:
    """What they show."""

    def test_bars(self, full: dict[str, Any]) -> None:
        drawing = ElementTree.fromstring(page.kappa_bars(full))
        shown = texts(drawing)
        order = ["Judges alone", "Final judge with others' ratings", "Panels without the reference",
                 "Panels fitted to the reference"]  # fmt: skip
        assert [one for one in shown if one in order] == order
        assert any(one.startswith("0.857 [") for one in shown)
        assert {"slight", "fair", "moderate", "substantial", "almost perfect"} <= set(shown)
        assert shown.index("J, collective") > shown.index(order[1])

    def test_bars_have_their_length(self) -> None:
        rows = [
            svg.Bar("half", 0.5, 0.25, 0.75, 0, "g"),
            svg.Bar("minus", -0.5, None, None, 0, "g"),
            svg.Bar("no", None, None, None, 0, "g"),
        ]
        drawing = ElementTree.fromstring(svg.bars("about", rows, []))
        half, minus = (one for one in drawing.iter("rect") if one.get("class") == "k0")
        assert half.get("width") == minus.get("width")
        end = float(minus.get("x", 0)) + float(minus.get("width", 0))
        assert end == pytest.approx(float(half.get("x", 0)), abs=0.2)
        assert "no kappa" in texts(drawing)
        assert len([one for one in drawing.iter("path") if one.get("class") == "whisker"]) == 1

    def test_heat(self, full: dict[str, Any]) -> None:
        drawing = ElementTree.fromstring(page.kappa_map(full))
        colours = [one.get("class") for one in drawing.iter("rect")]
        # J, K, b, collective, mixture; one dimension and the mean.
        assert colours == ["p9", "p9", "p0", "p0", "p9", "p9", "p10", "p10", "p0", "p0"]
        assert "85.7" in texts(drawing)
        hints = [one.text for one in drawing.iter("title")]
        assert any(hint and hint.startswith("J, Partial Actions: 85.71 [") for hint in hints)

    def test_heat_below_zero(self) -> None:
        opposite = {"A": [4, 3, 2, 1], "B": [5, 5, 1, 1]}
        found = report(given("J", opposite), referred(), Options(resamples=0))
        drawing = ElementTree.fromstring(page.kappa_map(found))
        colours = [one.get("class") for one in drawing.iter("rect")]
        assert colours == ["n10", "n10"]

    def test_strong_fields_have_other_text(self) -> None:
        levels = (-10, -9, -8, 0, 7, 8)
        row = svg.Row("r", tuple(svg.Cell(str(level), level) for level in levels))
        drawing = ElementTree.fromstring(svg.heat_map("about", list("abcdef"), [row]))
        kinds = {one.text: one.get("class") for one in drawing.iter("text")}
        assert [kinds[str(level)] for level in levels] == [
            *["mid on"] * 2, *["mid"] * 3, "mid on"
        ]  # fmt: skip

    def test_names_of_bands_do_not_meet(self) -> None:
        """With a kappa of -1 the stripes are so narrow that neighbours stand on two lines."""
        stripes = [(limit, name) for limit, name in BANDS if limit > 0]
        rows = [svg.Bar("minus", -1.0, None, None, 0, "g")]
        drawing = ElementTree.fromstring(svg.bars("about", rows, stripes))
        names = [name for _, name in stripes]
        places: dict[str | None, list[tuple[float, str]]] = {}
        for one in drawing.iter("text"):
            if one.text in names:
                place = (float(one.get("x", 0)), one.text)
                places.setdefault(one.get("y"), []).append(place)
        assert len(places) == 2
        for line in places.values():
            for (x, name), (further, other) in itertools.pairwise(sorted(line)):
                assert further - x > 3 * (len(name) + len(other))  # half of 6 units a letter

    def test_ratings(self, full: dict[str, Any]) -> None:
        drawing = ElementTree.fromstring(page.rating_map(full))
        shown = texts(drawing)
        assert shown.count("3.50") == 4  # J and b on A, in the dimension and over all
        assert "Answers of A" in shown
        colours = [one.get("class") for one in drawing.iter("rect")]
        assert colours[:4] == ["p6", "p6", "p8", "p8"]  # 3.50 and 4.00 on 1 to 5

    def test_distribution(self, full: dict[str, Any]) -> None:
        drawing = ElementTree.fromstring(page.distribution(full))
        widths = [float(one.get("width", 0)) for one in drawing.iter("rect")][5:10]
        shares = [width / sum(widths) for width in widths]
        assert shares == pytest.approx([0.25, 0.125, 0.125, 0.125, 0.375], abs=1e-3)
        assert "8" in texts(drawing)

    def test_what_is_told_beside_a_bar_has_room(self) -> None:
        told = "10,000, 1,000 failed, 1,000 no row"
        bar = svg.Stack("J", (0.5, 0.5), told)
        drawing = ElementTree.fromstring(svg.stacked_bars("about", ["one", "two"], [bar]))
        start = next(float(one.get("x", 0)) for one in drawing.iter("text") if one.text == told)
        assert start + 5.8 * len(told) < svg.WIDTH  # units a letter, seen in a browser

    def test_distribution_of_nothing(self) -> None:
        rows = given("J", {"A": [None] * 4, "B": [None] * 4})
        drawing = ElementTree.fromstring(page.distribution(report(rows, referred())))
        assert "0, 8 failed" in texts(drawing)

    def test_rounds(self, full: dict[str, Any]) -> None:
        shown = texts(ElementTree.fromstring(page.round_maps(full)))
        groups = [one for one in shown if one.startswith("J")]
        assert groups == ["J, alone", "J, collective", "J, mixture"]
        alone = report(judged(), referred(), Options(resamples=0))
        assert page.round_maps(alone) == ""

    def test_pairs_and_accuracies(self, full: dict[str, Any]) -> None:
        shown = texts(ElementTree.fromstring(page.pair_map(full)))
        assert shown.count("100.0") == 3  # J and b, both ways; the collective and the reference
        drawing = ElementTree.fromstring(page.accuracies(full))
        assert len(list(drawing.iter("circle"))) == 3
        assert page.accuracies({**full, "accuracy": None}) == ""

    def test_names_of_close_points_do_not_overlap(self) -> None:
        marks = [("one", 16.0, 0.0), ("two", 16.2, 0.001), ("three", 60.0, 0.001)]
        drawing = ElementTree.fromstring(svg.points("about", marks, ("x", "y")))
        at = {one.text: float(one.get("y", 0)) for one in drawing.iter("text")}
        assert abs(at["one"] - at["two"]) >= 12
        assert at["three"] == pytest.approx(at["one"], abs=1)
        assert [tick for tick in ("0", "20", "40", "60", "80", "100") if tick not in at] == []

    def test_long_names_are_cut_but_told(self) -> None:
        name = "a judge with a name that is far too long for its place"
        row = svg.Row(name, (svg.Cell("1", 1),))
        drawing = ElementTree.fromstring(svg.heat_map("about", ["c"], [row]))
        assert name not in texts(drawing)
        assert name in [one.text for one in drawing.iter("title")]
