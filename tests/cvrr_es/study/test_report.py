"""The reliability report: numbers by hand, lacks in a line each, the page, and the command.

Every number of the packaged sample's report is in tests/golden.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.cvrr_es.study.page import html
from lmms_eval_tasks.cvrr_es.study.report import report
from lmms_eval_tasks.cvrr_es.study.tables import sheets
from lmms_eval_tasks.errors import DataError, TasksError
from tests.checks import refused
from tests.cvrr_es.scored import TIME, write_ratings
from tests.cvrr_es.study.study_rows import (
    FOURS,
    KAPPA,
    KAPPA_A,
    LENIENT,
    REFERENCE,
    given,
    judged,
    referred,
    rows,
)


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    """J and K alone, b that is a candidate, J in both rounds, an empty answer."""
    more = given("J", REFERENCE, round="collective") + given("J", FOURS, round="mixture")
    first, *others = [*judged(), *given("b", LENIENT), *more]
    return report([replace(first, empty=True), *others], referred())


def named(parts: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The part of a rater, panel or round."""
    return next(part for part in parts if part["name"] == name)


def test_numbers(full: dict[str, Any]) -> None:
    part = named(full["raters"], "J")
    assert part["kappa"]["by_candidate"] == {"A": pytest.approx(KAPPA_A), "B": 1}
    assert part["kappa"]["mean"]["kappa"] == pytest.approx(KAPPA)
    own = named(full["raters"], "b")
    assert own["itself"] == ["B"]
    assert (own["leniency"]["value"], own["leniency"]["n"]) == (0.5, 8)
    assert json.loads(json.dumps(full, allow_nan=False)) == full
    assert full["best_single"] == "J"
    # Two of three judges are J's equals, and the third, a constant one, has no weight.
    panel = named(full["differences"], "panel: kappa-weighted mean")
    assert (panel["minus"], panel["n"], panel["value"]) == ("J", 8, 0)
    # One failure: on the other seven J alone has (12 / 21 + 1) / 2.
    exact = {"A": [None, 2, 3, 4], "B": [1, 1, 5, 5]}
    made = report([*judged(), *given("J", exact, round="collective")], referred())
    one = made["differences"][0]
    assert (one["name"], one["minus"], one["n"]) == ("J, collective", "J", 7)
    assert one["value"] == pytest.approx(1 - (12 / 21 + 1) / 2)
    assert one["no_interval"] == "2 videos of at least 3"


def test_no_reference() -> None:
    found = report([*judged(), *given("J", REFERENCE, round="collective")], [])
    assert found["reference"] is None
    assert found["notes"][0].startswith("no kappa, because there are no reference ratings: make")
    names = [one["name"] for one in found["panels"]]
    assert names == ["panel: majority", "panel: mean", "panel: Dawid-Skene"]
    assert found["differences"][0]["value"] is None
    assert "no kappa, because there are no reference ratings" in html(found)


def test_one_video_and_few() -> None:
    """Intervals are approximate on few videos, and the report says so."""

    def told(videos: int, of_time: int = 0) -> list[str]:
        sides = []
        for more in ({}, {"judge": "debate", "round": "reference"}):
            made = rows([1, 5] * videos, **more)
            made += rows([1, 5] * of_time, dimension=TIME, **more)
            sides.append([*made, *[replace(row, judge=f"{row.judge} 2") for row in made]])
        ours, compared = sides
        return [
            line.partition(" With fewer")[0]
            for line in report(ours, compared[: len(compared) // 2])["notes"]
            if "interval is rough" in line or "not computed" in line
        ]

    why = "not computed: fitting on other videos requires two videos or more"
    assert told(1) == [f"panel: kappa-weighted mean: {why}"]
    assert told(20) == []
    assert told(20, 3) == ["Only 3 videos."]


def test_no_kappa() -> None:
    """Both constant on one rating, and nothing rated: a dash alone would not say which."""
    truth = given("debate", FOURS, round="reference")
    failed = given("M", {"A": [None] * 4, "B": [None] * 4})
    notes = report([*judged(), *failed], truth)["notes"]
    assert "K: no kappa: both raters gave one and the same label to every item" in notes
    assert "M: no kappa: no item was rated on the scale by both" in notes


def test_references() -> None:
    single = given("GPT-3.5", FOURS, round="reference")
    found = report([*judged(), *referred(), *single], referred())
    names = [part["name"] for part in found["raters"]]
    assert names == ["J", "K", "GPT-3.5, with reference"]
    assert "debate (reference) made the reference and is not compared with itself" in found["notes"]
    refused(DataError, "the only ratings are the reference's", report, referred(), referred())


# --- the page -------------------------------------------------------------------------------------


def test_the_page_is_self_contained_and_escapes(full: dict[str, Any]) -> None:
    evil = '<script>alert("x")</script>&'
    text = html({**full, "notes": [evil, *full["notes"]]})
    assert not re.search(r"<(script|link|img|iframe|object|image|use)\b", text)
    loaded = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    assert not re.search(r"https?:|url\(|@import|src=|\bon\w+=", loaded)
    ids = re.findall(r'<section id="(\w+)"', text)
    assert (re.findall(r'<a href="#(\w+)"', text), len(ids)) == (ids, len(sheets(full)))
    for number in ("0.857", "85.71", "71.43", "+0.50", "almost perfect"):
        assert f">{number}<" in text, number
    assert "K (first): all 8 ratings are 4: the kappa of a constant judge is 0" in text
    some = [replace(row, candidate=f"{evil}{row.candidate}", judge=evil) for row in judged()[:8]]
    text = html(report(some, []))
    assert "&lt;script&gt;" in text
    assert "<script" not in text


# --- the command ----------------------------------------------------------------------------------


def run(*arguments: object) -> Result:
    with settings.use_options({}):  # options hold for one call
        return CliRunner().invoke(app, ["reliability", *map(str, arguments)])


def test_from_files_to_page(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    write_ratings(files / "j.jsonl", given("J", LENIENT))
    write_ratings(files / "k.jsonl", given("K", FOURS))
    one, other = (  # parts of one rater's reference are one
        write_ratings(tmp_path / f"{n}.ref", referred()[n : n + 4]) for n in (0, 4)
    )
    out, shown = tmp_path / "report.json", tmp_path / "report.html"
    both = ("--reference", one, "--reference", other)
    result = run(files, *both, "--output", out, "--html", shown)
    assert result.exit_code == 0, result.output
    assert "85.71" in result.output
    assert "0.857" in shown.read_text(encoding="utf-8")
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["reference"]["ratings"]["overall"]["rated"] == 8
    # What is refused.
    single = write_ratings(tmp_path / "s.ref", given("GPT-3.5", LENIENT, round="reference"))
    other = write_ratings(tmp_path / "z.ref", [replace(referred()[0], candidate="Z")])
    write_ratings(tmp_path / "bad.jsonl", [replace(given("J", LENIENT)[0], rating=7)])
    cases: tuple[tuple[tuple[object, ...], type[TasksError], str], ...] = (
        (("--html", files / "no" / "x.html"), TasksError, "x.html: cannot be written"),
        (
            ("--reference", single, "--reference", one),
            DataError,
            "the reference comes from 2 raters",
        ),
        (("--reference", other), DataError, "no item in common"),
        ((tmp_path / "bad.jsonl",), DataError, "less than or equal to 5"),
    )
    for arguments, kind, told in cases:
        result = run(files, *arguments)
        assert isinstance(result.exception, kind), result.output
        assert told in str(result.exception)
    result = run(files, tmp_path / "bad.jsonl", "--allow-bad-items")
    assert result.exit_code == 0, result.output
    assert "skipped: " in result.output


def test_what_a_saved_run_told_of_its_numbers(tmp_path: Path) -> None:
    kept = {"reply": "4", "status": "ok"}
    rows = [row.as_dict() for row in given("J", LENIENT)]
    lines = [json.dumps({"failed": {**kept, **row, "id": str(n)}}) for n, row in enumerate(rows)]
    (tmp_path / "1_samples_cvrr_judge.jsonl").write_text("\n".join(lines))
    section = {"cvrr_es": {"warnings": ["the sample"]}, "invalid": {"cvrr_judge": "all failed"}}
    (tmp_path / "1_results.json").write_text(json.dumps({"lmms_eval_tasks": section}))
    result = run(tmp_path, "--html", tmp_path / "report.html")
    assert result.exit_code == 3
    for text in (result.output, (tmp_path / "report.html").read_text(encoding="utf-8")):
        assert "the sample" in text
        assert "INVALID: all failed" in text
