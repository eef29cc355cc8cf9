"""What tests of all folders say often: tables of cases, refusals, printed tables, threads."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from rich.console import Console
from rich.table import Table

from lmms_eval_tasks import prompts, settings
from lmms_eval_tasks.benchmark import Items, TableRow
from lmms_eval_tasks.media.video_checks import VideoInfo
from lmms_eval_tasks.notify import UNSEEN
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import finish, scoring
from lmms_eval_tasks.utils.conditions import Kind, from_dicts

Test = Callable[..., None]
T = TypeVar("T")


def table(names: str, cases: Iterable[Any] | None = None) -> Callable[[Test], Test]:
    """`pytest.mark.parametrize` with cases by number.

    Without cases: those under the test's name in tests/cases/FOLDER/MODULE.json, where a last text
    more is a remark.
    """
    width = len(names.split(","))

    def over(test: Test) -> Test:
        rows = _saved(test, width) if cases is None else list(cases)
        assert rows, "a table without cases tests nothing"
        return pytest.mark.parametrize(names, rows, ids=map(str, range(len(rows))))(test)

    return over


def _saved(test: Test, width: int) -> list[Any]:
    module = Path(test.__code__.co_filename)
    name = f"{module.stem.removeprefix('test_')}.json"
    file = Path(__file__).parent / "cases" / module.parent.name / name
    rows = json.loads(file.read_text(encoding="utf-8"))[test.__name__.removeprefix("test_")]
    return rows if width == 1 else [row[:width] for row in rows]


def refused(
    kind: type[BaseException], words: str, call: Callable[..., object], *args: Any, **options: Any
) -> str:
    """What `call` ends with: an error of that kind, in one line that matches `words`."""
    with pytest.raises(kind, match=words) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message, message
    return message


def rows(
    numbers: Mapping[str, Mapping[str, Any]], model: str = "", bad: str = ""
) -> list[TableRow]:
    """Numbers by task as rows of a table; some are invalid (`bad`, with blanks between)."""
    return [TableRow(task, values, model, task in bad.split()) for task, values in numbers.items()]


def own_prompts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, benchmark: str, name: str, **texts: str | None
) -> Path:
    """A user's copy of a prompt file, set as the one to use; a text of None is taken out."""
    ours = resources.files(f"lmms_eval_tasks.{benchmark}") / "prompts" / f"{name}.yml"
    parts = yaml.safe_load(ours.read_text(encoding="utf-8")) | texts
    file = folder / benchmark / f"{name}.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = {part: text for part, text in parts.items() if text is not None}
    file.write_text(yaml.safe_dump(kept), encoding="utf-8")
    monkeypatch.setenv(settings.PROMPTS, str(folder))
    prompts.forget()
    return file


def look_at_texts(
    paths: Mapping[str, Path], only: Collection[str] | None = None
) -> tuple[dict[str, VideoInfo], dict[str, str]]:
    """In place of video_checks.look: any file is a good video but one that says "bad"."""
    found = {}
    for name, path in paths.items():
        if only is not None and str(path.resolve()) not in only:
            continue
        if not path.is_file():
            found[name] = f"missing: {path}"
        elif path.read_text() == "bad":
            found[name] = f"unreadable: {path}: damaged"
    return {}, found


def annotated(
    benchmark: str, *tasks: str, items: Mapping[str, Items] | None = None
) -> dict[str, Any]:
    """The benchmark's section, as the host writes it into its results file."""
    rows = {
        name: {"failed,none": scoring.ItemsCarrier(aggregation.count_failed(own), own)}
        for name, own in (items or {}).items()
    }
    results: dict[str, Any] = {"results": rows}
    finish.annotate(results, tasks)
    section: dict[str, Any] = results["lmms_eval_tasks"][benchmark]
    assert json.loads(json.dumps(section)) == section
    return section


def printed(tables: Iterable[Table]) -> dict[str, list[str]]:
    """Lines of each table by its title, at the width of the user's console; nothing is cut off."""
    shown: dict[str, list[str]] = {}
    for one in tables:
        sink = io.StringIO()
        Console(file=sink, width=UNSEEN).print(one)
        lines = [line.rstrip() for line in sink.getvalue().splitlines()]
        assert "\u2026" not in sink.getvalue()  # rich's ellipsis: a cell did not fit
        assert all(len(line) <= UNSEEN for line in lines)
        assert lines[0] == str(one.title)
        # Notes are whole: rich would cut off what is wider than the console.
        assert all(note in lines for note in str(one.caption or "").splitlines())
        shown.setdefault(str(one.title), []).extend(lines)
    return shown


def lines_of(shown: Mapping[str, list[str]], part: str) -> list[str]:
    """The lines of the one table whose title contains `part`."""
    (lines,) = (lines for title, lines in shown.items() if part in title)
    return lines


def in_threads(count: int, work: Callable[[int], T]) -> list[T]:
    """`work(0)`, `work(1)` and so on in threads that begin together; what each gave."""
    together = threading.Barrier(count)

    def begin(number: int) -> T:
        together.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def limits_of(section: Mapping[str, Any]) -> list[str]:
    """The limits in a benchmark's section, without INVALID and few videos."""
    found = from_dicts(section["conditions"])
    apart = (Kind.INVALID, Kind.FEW)
    return [one.text for one in found if one.is_limit and one.kind not in apart]
