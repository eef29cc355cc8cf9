"""A paper's tables with runs below: what stands beside what, and what is told of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks import leaderboards, registry
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.leaderboards import OurNumber, PrintedCell, cells, stored_tables
from lmms_eval_tasks.notify import UNSEEN
from lmms_eval_tasks.report import board, compared_runs
from lmms_eval_tasks.report.paper_rows import OurCell
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.metrics.stats import Interval
from tests.checks import refused, table
from tests.tables.test_layouts import names_of

WARNING = "judged by <b>nobody</b>"
VIDEOS = 40


def every_cell(board: Mapping[str, Any]) -> list[PrintedCell]:
    grids = [cells(board, one) for one in stored_tables(board)]
    return [cell for grid in grids for line in grid for cell in line]


@pytest.mark.parametrize("name", registry.NAMES)
def test_every_figure_has_a_number_of_ours_or_a_reason(name: str) -> None:
    stored = registry.load_benchmark(name).board()
    known, found = names_of(registry.load_benchmark(name)), every_cell(stored)
    for cell in found:
        if isinstance(cell.ours, OurNumber):
            assert cell.ours.metric in known[cell.ours.task], cell
        else:
            assert cell.ours, cell
    assert {cell.kind for cell in found} <= stored["groups"].keys() | {""}
    for one in stored_tables(stored):
        # A text instead of a number of ours is for statistics and differences alone.
        if isinstance(one.get("ours", {}), dict):
            assert any(isinstance(c.ours, OurNumber) for line in cells(stored, one) for c in line)


@pytest.mark.usefixtures("on_sample")
@pytest.mark.parametrize("name", ["maia", "maverix", "movierecapsqa", "cvrr_es"])
def test_every_category_is_one_of_items(name: str) -> None:
    """Of the sample, which has all; HAVEN's figures are of all items."""
    benchmark = registry.load_benchmark(name)
    joined = {one.group: one.tasks for one in benchmark.joint_metrics}
    wanted: dict[str, set[tuple[str, str]]] = {}
    for cell in every_cell(benchmark.board()):
        if isinstance(cell.ours, OurNumber):
            for task in joined.get(cell.ours.task, (cell.ours.task,)):
                wanted.setdefault(task, set()).update(cell.ours.where)
    assert any(wanted.values())
    for task, pairs in wanted.items():
        # Who answered is in the user's files.
        fields = {field for field, _ in pairs} - {"candidate"}
        items = [
            benchmark.tasks[task].log_fields(doc) for doc in prepare.usable_docs(benchmark, task)
        ]
        there = {(field, item[field]) for item in items for field in fields}
        assert {pair for pair in pairs if pair[0] in fields} <= there, task


def test_what_is_stored_beside_a_figure() -> None:
    """One of each way to say it: by row, by column, by group, by another kind, of no model."""
    found = {
        (name, leaderboards.title(one), c.model, c.row, c.column): c
        for name, stored in ((one, leaderboards.stored(one)) for one in registry.NAMES)
        for one in stored_tables(stored)
        for line in cells(stored, one)
        for c in line
    }
    fine = "fine_grained_action_understanding"
    of = ("dimension", fine)
    for key, ours, scale in (
        (("maverix", "Table 10", "GPT-4o", "Easy", "gpt_4o"),
         OurNumber("maverix_vs", "acc", (("difficulty", "easy"),)), 0.01),
        (("maverix", "Table 6", "GPT-4o", "GPT-4o", "score_av"),
         OurNumber("maverix_vs_oe", "correctness_valid"), 1),
        (("maverix", "Table 6", "Ola-7B", "Ola-7B", "score_av"),
         OurNumber("maverix_av_oe", "correctness_valid"), 1),
        (("haven", "Table 4", "text-proxy LLM", "text-proxy LLM", "clipscore_change"),
         OurNumber("haven_text", "joined_clip_gain"), 1),
        (("haven", "Table 3", "text-proxy LLM", "text-proxy LLM", "temporal_doc"),
         "no text proxy has the document (Appendix C)", 1),
        (("cvrr_es", "Table 5", "GPT-4o", "LLaMA-VID", fine),
         OurNumber("cvrr_judge", "kappa", (("candidate", "LLaMA-VID"), of)), 0.01),
        (("cvrr_es", "Table 5", "GPT-4o", "Average", fine),
         OurNumber("cvrr_judge", "kappa", (of,)), 0.01),
    ):  # fmt: skip
        assert (found[key].ours, found[key].scale) == (ours, scale), key


@table(
    "figure, scale, low, high, inside",
    [
        ("0.84", 1, 0.8449, 0.9, True),  # 0.84 is printed of 0.835 to 0.845
        ("0.84", 1, 0.8451, 0.9, False),
        ("0.84", 1, 0.7, 0.8351, True),
        ("0.84", 1, 0.7, 0.8349, False),
        ("54.7", 0.01, 0.5474, 0.6, True),
        ("54.7", 0.01, 0.5476, 0.6, False),
        ("80", 0.01, 0.804, 0.9, True),  # 79.5 to 80.5
        ("1.6420", 1, 1.6, 1.64194, False),
        ("0.84", 1, float("nan"), float("nan"), None),
        (None, 1, 0.0, 1.0, None),
    ],
)
def test_inside(
    figure: str | None, scale: float, low: float, high: float, inside: bool | None
) -> None:
    value = None if figure is None else Decimal(figure)
    cell = PrintedCell("", "m", "average", value, scale, "m", "m", OurNumber("t", "acc"))
    number = Interval((low + high) / 2, low, high, 0.1, "t", 9, 9)
    assert OurCell(cell, number, is_same=True).inside is inside
    assert OurCell(cell, number, is_same=False).inside is None


# --- a run whose numbers are known ----------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of VIDEOS, each with a causal and a planning pair: 35 and 20 of 40 are right."""
    folder = tmp_path_factory.mktemp("run")
    right = {"causal": 35, "planning": 20}
    items = [
        {
            "id": f"v{video}/{category}/0",
            "video": f"v{video}",
            "category": category,
            "status": "ok",
            "right": int(video < right[category]),
            "reply": "A",
        }
        for video in range(VIDEOS)
        for category in right
    ]
    lines = [json.dumps({"doc_id": n, "failed": item}) for n, item in enumerate(items)]
    (folder / "1_samples_maia_vsv.jsonl").write_text("\n".join(lines), encoding="utf-8")
    section = {"maia": {"warnings": [WARNING]}, "invalid": {}}
    results = {"model_name": "somewhere/Qwen2.5-VL-7B-Instruct", "lmms_eval_tasks": section}
    (folder / "1_results.json").write_text(json.dumps(results), encoding="utf-8")
    return folder


def written(form: str, runs: list[Path], name: str = "maia", **options: Any) -> str:
    """What the command prints, as wide as a terminal."""
    out = io.StringIO()
    console = Console(file=out, width=120)
    board.show(name, runs, form, None, console, **options)
    return out.getvalue()


def rows_of(tmp_path: Path, run: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """The run's numbers in Table 5 by column."""
    file = tmp_path / "rows.json"
    board.show("maia", [run], "json", file, Console(), names=names)
    rows = json.loads(file.read_text(encoding="utf-8"))
    return {one["column"]: one for one in rows if one["run"] and one["table"] == "MAIA, Table 5"}


@table(
    "names, paper, column, value, difference, inside",
    [
        ([], "Qwen-2.5-VL 7B", "Avg.", 0.6875, 0.6875 - 0.84, False),
        ([], "Qwen-2.5-VL 7B", "Causal", 0.875, 0.875 - 0.89, True),
        ([], "Qwen-2.5-VL 7B", "Planning", 0.5, 0.5 - 0.78, False),
        (["InternVL3 78B"], "InternVL3 78B", "Avg.", 0.6875, 0.6875 - 0.64, True),
        (["InternVL3-78B"], "InternVL3 78B", "Planning", 0.5, 0.5 - 0.71, False),
    ],
)
def test_a_run_beside_its_model(
    tmp_path: Path,
    run: Path,
    names: list[str],
    paper: str,
    column: str,
    value: float,
    difference: float,
    inside: bool,
) -> None:
    row = rows_of(tmp_path, run, names)[column]
    assert (row["paper"], row["group"], row["inside"]) == (paper, "32 frames", inside)
    assert (row["value"], row["difference"]) == pytest.approx((value, difference))
    assert row["task"] == "maia_vsv"
    assert row["conditions"] == [WARNING]
    assert row["low"] < value < row["high"]


def test_a_column_that_a_run_has_nothing_of(tmp_path: Path, run: Path) -> None:
    assert "Sentiment" not in rows_of(tmp_path, run, [])


def test_on_the_terminal(run: Path) -> None:
    lines = [line.rstrip() for line in written("text", [run]).splitlines()]
    assert max(map(len, lines)) <= 120
    paper = next(line for line in lines if "32 frames" in line and "Qwen-2.5-VL 72B" in line)
    assert paper.split()[4] == "0.54"  # of Table 1, as printed
    own = [line for line in lines if "less Qwen-2.5-VL 7B" in line]
    assert any(" -0.152 out" in line and " -0.015 in" in line for line in own)
    assert lines[-1] == f"  - {WARNING}"


@pytest.mark.parametrize("name", registry.NAMES)
def test_published_rows_alone(name: str) -> None:
    out = written("text", [], name)
    for one in stored_tables(leaderboards.stored(name)):
        assert leaderboards.title(one) in out
    assert "conditions" not in out
    assert "95 %" not in out


def test_every_form(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for form in ("text", *board.FORMS):
        board.show("maia", [run], form, tmp_path / form, Console())
        assert (tmp_path / form).read_text(encoding="utf-8").count("Table 5"), form
    page = (tmp_path / "html").read_text(encoding="utf-8")
    assert "judged by &lt;b&gt;nobody" in page
    assert WARNING not in page
    # A picture of each table of the paper, twice, which names the run where it has numbers.
    assert page.count("<figure") == 2 * 5
    assert page.count("32 frames · Qwen2.5-VL-7B-Instruct") >= 2
    assert "-0.152 out" in page
    assert "-0.152 out" in (tmp_path / "md").read_text(encoding="utf-8")
    rows = list(csv.DictReader((tmp_path / "csv").open(encoding="utf-8")))
    assert {row["conditions"] for row in rows if row["run"]} == {WARNING}
    capsys.readouterr()
    board.show("maia", [run], "csv", None, Console())
    assert capsys.readouterr().out == (tmp_path / "csv").read_text(encoding="utf-8")
    board.show("maia", [], "html", None, Console())
    assert (tmp_path / "leaderboard_maia.html").is_file()


def test_models_that_are_columns(tmp_path: Path) -> None:
    """MAVERIX's Table 10: as printed, a run's values and intervals as columns of their own."""
    items = [
        {
            "id": f"q{n}",
            "video": f"v{n}",
            "difficulty": "easy",
            "status": "ok",
            "reply": "A",
            "right": int(n < 3),
        }
        for n in range(4)
    ]
    lines = "\n".join(json.dumps({"doc_id": n, "failed": one}) for n, one in enumerate(items))
    (tmp_path / "1_samples_maverix_vs.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "1_results.json").write_text(json.dumps({"model_name": "gpt-4o"}), encoding="utf-8")
    found = compared_runs.read_sides([tmp_path])
    made = board.leaderboards_of(registry.load_benchmark("maverix"), {}, found)
    (one,) = (one for one in made if one.title == "MAVERIX, Table 10")
    line = one.lines[-1]
    assert (line.name, line.published_model) == ("gpt-4o (maverix_vs)", "GPT-4o")
    easy = line.our_cells[0]
    assert easy is not None
    assert easy.difference == pytest.approx(0.75 - 0.667)
    page = tmp_path / "page.md"
    board.show("maverix", [tmp_path], "md", page, Console())
    (row,) = (
        one
        for one in page.read_text("utf-8").splitlines()
        if one.startswith("| Difficulty") and "Easy" in one
    )
    assert [cell.strip() for cell in row.split("|")[2:5]] == ["Easy", "66.7", "59.8"]
    assert "75.00" in row
    assert "+8.30 in" in row


def test_refusals(run: Path) -> None:
    refused(DataError, "the paper has no row 'Qwen 9B'", written, "text", [run], names=["Qwen 9B"])
    refused(DataError, "2 models for 1 runs", written, "text", [run], names=["InternVL2 8B"] * 2)
    refused(DataError, "no tasks of HAVEN, only maia_vsv", written, "text", [run], "haven")


@pytest.mark.parametrize("name", registry.NAMES)
def test_tables_follow_the_terminal(name: str, tmp_path: Path) -> None:
    """Nothing is cut off; headings are broken on a narrow terminal, not in a file."""

    def lines(width: int) -> list[str]:
        sink = io.StringIO()
        board.show(name, [], "text", None, Console(file=sink, width=width))
        return sink.getvalue().splitlines()

    for width in (60, 80, 120):
        assert max(map(len, lines(width))) <= width
    assert len(lines(120)) <= len(lines(80)) <= len(lines(60))
    board.show(name, [], "text", tmp_path / "file.txt", Console(width=60))
    assert (tmp_path / "file.txt").read_text(encoding="utf-8").splitlines() == lines(UNSEEN)
