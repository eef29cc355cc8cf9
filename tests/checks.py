"""What tests of all folders say often: tables of cases, refusals, printed tables, threads."""

from __future__ import annotations

import functools
import inspect
import io
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from rich.console import Console
from rich.table import Table

from lmms_eval_tasks.console import UNSEEN
from lmms_eval_tasks.utils import prompts

Test = Callable[..., None]
T = TypeVar("T")


def table(names: str, cases: Iterable[Any] | None = None) -> Callable[[Test], Test]:
    """What `pytest.mark.parametrize` makes many tests of, as one test.

    Each case has a `tmp_path` of its own, and what it does with `monkeypatch` is undone after it;
    other fixtures are shared by all cases.

    Args:
        names: of the test's arguments that a case gives, with commas between.
        cases: a tuple for several names, the value itself for one. Left out: those under the
            test's name in tests/cases/FOLDER/MODULE.json, where a last text more is a remark.
    """
    given = [name.strip() for name in names.split(",")]

    def over(test: Test) -> Test:
        rows = _saved(test, len(given)) if cases is None else list(cases)
        signature = inspect.signature(test)
        others = [one for one in signature.parameters.values() if one.name not in given]

        @functools.wraps(test)
        def all_cases(*instance: Any, **fixtures: Any) -> None:
            failed: list[tuple[str, BaseException]] = []
            for number, row in enumerate(rows):
                values = dict(zip(given, row, strict=True)) if len(given) > 1 else {given[0]: row}
                try:
                    _one(functools.partial(test, *instance), values, fixtures, str(number))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((f"case {number}, {_short(values)}", error))
            if failed:
                said = "\n".join(f"{name}: {type(e).__name__}: {e}" for name, e in failed)
                message = f"{len(failed)} of {len(rows)} cases fail:\n{said}"
                raise AssertionError(message) from failed[0][1]

        assert rows, "a table without cases tests nothing"
        all_cases.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return all_cases

    return over


def _saved(test: Test, width: int) -> list[Any]:
    module = Path(inspect.unwrap(test).__code__.co_filename)
    name = f"{module.stem.removeprefix('test_')}.json"
    file = Path(__file__).parent / "cases" / module.parent.name / name
    rows = json.loads(file.read_text(encoding="utf-8"))[test.__name__.removeprefix("test_")]
    return rows if width == 1 else [row[:width] for row in rows]


def _one(test: Test, values: dict[str, Any], fixtures: dict[str, Any], number: str) -> None:
    prompts.forget()
    own = dict(fixtures)
    if isinstance(folder := own.get("tmp_path"), Path):
        own["tmp_path"] = folder / number
        own["tmp_path"].mkdir()
    if "monkeypatch" not in own:
        test(**own, **values)
        return
    with own["monkeypatch"].context() as patch:
        test(**{**own, "monkeypatch": patch}, **values)


def _short(values: dict[str, Any]) -> str:
    said = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return said if len(said) < 400 else f"{said[:400]}..."


def refused(
    kind: type[BaseException], words: str, call: Callable[..., object], *args: Any, **options: Any
) -> str:
    """What `call` ends with: an error of that kind, in one line that matches `words`."""
    with pytest.raises(kind, match=words) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message, message
    return message


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
