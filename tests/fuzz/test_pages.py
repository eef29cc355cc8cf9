"""Hostile texts in every page that is written: the page's elements are those of harmless texts."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks.benchmark import Items, Task
from lmms_eval_tasks.cvrr_es.study import page as study_page
from lmms_eval_tasks.cvrr_es.study.report import report
from lmms_eval_tasks.haven.records import picture
from lmms_eval_tasks.report import board, compared_runs, readings, run_page
from lmms_eval_tasks.utils.json_files import write_text
from tests.cvrr_es.study.study_rows import FOURS, given, judged, referred
from tests.fuzz import hostile
from tests.haven.records.test_picture import IMAGES, RECORD
from tests.report import made, sent
from tests.report.test_run_page import texts

LINKS = {"src", "href", "xlink:href", "action", "formaction", "style", "http-equiv", "content"}
TASKS = ["maverix_av", "movierecapsqa_segment", "haven_v2vt", "cvrr_es_partial_actions"]
LINES = 8  # of each task's samples


Dress = Callable[[int], str]


class Elements(HTMLParser):
    """A page's elements with their attributes' names, and what its scripts hold."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[Any, ...]] = []
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [(n, v if n in LINKS else "") for n, v in attrs]
        assert not any(name.startswith("on") for name, _ in names), (tag, attrs)
        self.found.append((tag, names))
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("/", tag))

    def handle_data(self, data: str) -> None:
        last = next((one for one in reversed(self.found) if one[0] != "!"), ("",))
        if last[0] in ("script", "style"):
            self.found.append(("text", data if last[0] == "style" else ""))
            self.scripts[-1:] = [s + data for s in self.scripts[-1:] if last[0] == "script"]

    def handle_comment(self, data: str) -> None:
        self.found.append(("!", data))

    handle_decl = handle_pi = unknown_decl = handle_comment


@pytest.fixture(scope="module")
def saved(sample_root: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two sides of a few lines of some tasks."""
    out = tmp_path_factory.mktemp("saved")
    judge = made.recorded(sample_root, out / "replay.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        one = sent.saved_run(out / "one", "somewhere/one", judge, LINES)
        other = made.saved_run(out / "two", "somewhere/two", TASKS, made.any_reply, judge, LINES)
    return [one, other]


def report_page(saved: list[Path], folder: Path, dress: Dress) -> str:
    both = [hostile.dressed(run, folder / run.name, dress) for run in saved]
    with pytest.MonkeyPatch.context() as patch:  # how many lines there are follows from the texts
        patch.setattr(readings, "reply_notes", one_note)
        return run_page.html(compared_runs.read_sides(both))


def one_note(task: Task, items: Items) -> list[readings.Note]:
    return [readings.Note(1.0, readings.example(items[0]))]


def board_page(saved: list[Path], folder: Path, dress: Dress) -> str:
    run = hostile.dressed(saved[0], folder / "run", dress)
    for file in run.glob("*_oevqa.jsonl"):
        file.unlink()  # its numbers are of the texts, and axes are of the numbers
    board.show("maia", [run], "html", file := folder / "page.html", Console())
    return file.read_text("utf-8")


def record_page(saved: list[Path], folder: Path, dress: Dress) -> str:
    own = hostile.Dresser(dress)
    told = ("name", "video", "descriptions", "shot_texts", "document", "summary", "gaps")
    return picture.html(replace(RECORD, **{k: own(getattr(RECORD, k)) for k in told}), IMAGES)


def study_pages(saved: list[Path], folder: Path, dress: Dress) -> str:
    own = hostile.Dresser(dress)
    rated = [*judged(), *given("J", FOURS, round="collective")]
    named = {"A": own("first"), "B": own("second"), "J": own("judge"), "K": own("other")}
    rows = [
        replace(row, candidate=named[row.candidate], judge=named[row.judge], reason=own("why"))
        for row in rated
    ]
    reference = [replace(row, candidate=named[row.candidate]) for row in referred()]
    return study_page.html(report(rows, reference))


PAGES = (report_page, board_page, record_page, study_pages)


@pytest.mark.usefixtures("on_sample")
@pytest.mark.parametrize("page", PAGES)
def test_no_element_comes_out_of_a_text(page, saved, tmp_path):
    pages = []
    for dress in (hostile.harmless, hostile.hostile):
        text = page(saved, tmp_path / dress.__name__, dress)
        write_text(file := tmp_path / f"{dress.__name__}.html", text)  # as the command does
        pages.append(file.read_text("utf-8"))
    good, bad = map(Elements, pages)
    for n, (ours, theirs) in enumerate(zip(good.found, bad.found, strict=False)):
        assert ours == theirs, (n, good.found[n - 3 : n + 3], bad.found[n - 3 : n + 3])
    assert len(good.found) == len(bad.found)
    assert not set(pages[1]) & {"\0", "\x1b"}
    if page is report_page:
        shown = set(texts([packed(one) for one in bad.scripts if not one.lstrip().startswith("/")]))
        lost = [one for one in hostile.TEXTS if not any(one in text for text in shown)]
        assert lost == []


def packed(script: str) -> Any:
    try:
        return json.loads(gzip.decompress(base64.b64decode(script.strip(), validate=True)))
    except ValueError:
        return None  # a script of ours
