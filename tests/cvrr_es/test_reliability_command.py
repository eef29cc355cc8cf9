"""The command `reliability`, from files to tables, JSON and page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks.commands import reliability_command
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.errors import DataError, TasksError
from tests.cvrr_es.study.hand_made import KAPPA, LENIENT, REFERENCE, given, judged, referred

ALLOW = "LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set, then deleted, so that what the command sets is taken back as well.
    monkeypatch.setenv(ALLOW, "0")
    monkeypatch.delenv(ALLOW)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write(tmp_path / "j.jsonl", given("J", LENIENT))
    write(tmp_path / "k.jsonl", [row for row in judged() if row.judge == "K"])
    write(tmp_path / "reference.ref", referred())
    return tmp_path


def write(path: Path, rows: list[RatingRow]) -> Path:
    ratings.write(path, rows)
    return path


def run(*arguments: object) -> Result:
    app = typer.Typer()
    reliability_command.add_commands(app)
    app.command("other")(lambda: None)  # with one command alone typer would need no name
    return CliRunner().invoke(app, ["reliability", *map(str, arguments)])


def refused(result: Result, kind: type[TasksError], *expected: str) -> None:
    assert isinstance(result.exception, kind), result.output
    for text in expected:
        assert text in str(result.exception)


def test_from_files_to_page(files: Path) -> None:
    out, page = files / "report.json", files / "report.html"
    result = run(
        *(files / "j.jsonl", files / "k.jsonl", "--reference", files / "reference.ref"),
        *("--output", out, "--html", page),
    )
    assert result.exit_code == 0, result.output
    assert "85.71" in result.output
    assert "K (first): all 8 ratings are 4: a constant judge's kappa is 0" in result.output
    found = json.loads(out.read_text(encoding="utf-8"))
    judge = next(part for part in found["raters"] if part["name"] == "J")
    assert judge["kappa"]["mean"]["kappa"] == pytest.approx(KAPPA)
    assert found["data"]["resamples"] == 1000
    assert "0.857" in page.read_text(encoding="utf-8")
    assert f"{page}: the report as a page" in result.output


def test_options_reach_the_report(files: Path) -> None:
    write(files / "mixture.jsonl", given("J", REFERENCE, round="mixture"))
    write(files / "other.jsonl", given("K", REFERENCE, round="mixture"))
    (files / "own.csv").write_text("judge,accuracy\nJ,70\nK,10\n")
    out = files / "report.json"
    result = run(
        *(files, "--reference", files / "reference.ref", "--accuracies", files / "own.csv"),
        *("--final-judge", "j", "--selection", "top=1,fallback=none"),
        *("--resamples", "2000", "--seed", "7", "--output", out),
    )
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["final_judges"] == ["J"]
    assert found["selection"]["rule"].startswith("top=1,fallback=none")
    assert (found["data"]["resamples"], found["data"]["seed"]) == (2000, 7)
    assert set(found["accuracy"]["pairs"]) == {"J", "K"}
    interval = found["raters"][0]["kappa"]["mean"]["interval"]
    assert "B=2000, seed=7" in interval["method"]


def test_several_reference_files(files: Path) -> None:
    """Parts of one rater's reference are one."""
    rows = referred()
    write(files / "1.ref", rows[:4])
    write(files / "2.ref", rows[4:])
    out = files / "o.json"
    result = run(files, "--reference", files / "1.ref", "--reference", files / "2.ref",
                 "--resamples", 0, "--output", out)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["reference"]["counts"]["rated"] == 8


def test_no_reference(files: Path) -> None:
    result = run(files)
    assert result.exit_code == 0, result.output
    assert "no kappa: there are no reference ratings yet" in result.output
    assert "lmms-eval-tasks debate" in result.output
    assert "3.25" in result.output
    assert "Table 4" in result.output
    assert "Table 5)" not in result.output


def test_file_without_rows(files: Path) -> None:
    (files / "empty.jsonl").write_text("\n")
    result = run(files, "--reference", files / "reference.ref", "--resamples", "0")
    assert result.exit_code == 0, result.output
    assert f"{files / 'empty.jsonl'}: has no rows" in result.output
    refused(run(files / "empty.jsonl"), DataError, "empty.jsonl", "no ratings that can be used")


def test_files_of_other_tasks_are_left_alone(files: Path) -> None:
    """Neither looked into nor told of."""
    (files / "x_samples_maia_oe.jsonl").write_text("\n")
    (files / "y_samples_maia_oe.jsonl").write_bytes(b"\xff")
    result = run(files, "--resamples", "0")
    assert result.exit_code == 0, result.output
    assert "maia_oe" not in result.output


def test_left_out_rows_are_told_up_to_twenty_and_read_once(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = [json.dumps({**row.as_dict(), "rating": "x"}) for row in judged() * 2]
    (files / "q.jsonl").write_text("\n".join(bad))
    seen = []
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda at, **how: seen.append(at) or read(at, **how))
    result = run(files, "--resamples", "0", "--allow-bad-items")
    assert result.exit_code == 0, result.output
    told = [line for line in result.output.splitlines() if line.startswith("left out: ")]
    assert len(told) == 21
    assert told[0].startswith(f"left out: {files / 'q.jsonl'}, line 1: rating: expected a number")
    assert told[-1] == "left out: and 12 more"
    assert len([file for file in seen if file.suffix == ".jsonl"]) == 3


def test_several_references(files: Path) -> None:
    write(files / "single.ref", given("GPT-3.5", LENIENT, round="reference"))
    both = ("--reference", files / "single.ref", "--reference", files / "reference.ref")
    refused(run(files, *both), DataError, "the reference is of 2 raters: GPT-3.5", "debate")


def test_off_the_scale(files: Path) -> None:
    row = given("Q", LENIENT)[0]
    lines = [json.dumps({**row.as_dict(), "rating": 7})]
    lines += [json.dumps(one.as_dict()) for one in given("Q", LENIENT)[1:]]
    (files / "q.jsonl").write_text("\n".join(lines))
    arguments = (files, "--reference", files / "reference.ref", "--resamples", "0")
    refused(run(*arguments), DataError, "off the scale of 1 to 5", "--allow-bad-items")
    result = run(*arguments, "--allow-bad-items")
    assert result.exit_code == 0, result.output
    assert "ratings off the scale of 1 to 5, counted as failures: 1" in result.output
    assert "left out: " in result.output
    assert "Q (first): rated 7 of 8 answers (1 off_scale)" in result.output


@pytest.mark.parametrize("resamples", ["1", "999", "-1"])
def test_too_few_resamples(files: Path, resamples: str) -> None:
    refused(run(files, "--resamples", resamples), TasksError, f"--resamples {resamples}")


def test_refused_before_any_work(files: Path) -> None:
    refused(run(files, "--html", files / "no" / "x.html"), TasksError, "x.html: not a file")
    refused(run(files, "--output", files), TasksError, "not a file in a folder")
    refused(run(files, "--selection", "best"), TasksError, "the mixture's selection 'best'")
    refused(run(files, "--accuracies", files / "x.json"), DataError, "x.json")
    refused(run(files / "none.jsonl"), DataError, "none.jsonl: no such file")


def test_nothing_in_common(files: Path) -> None:
    other = [replace(row, candidate=f"Z{row.candidate}") for row in referred()]
    write(files / "z.ref", other)
    refused(run(files, "--reference", files / "z.ref"), DataError, "no item in common")
