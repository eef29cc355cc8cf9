"""The printed tables: models and their names; every number of a run is in tests/golden."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from lmms_eval_tasks.console import UNSEEN
from lmms_eval_tasks.haven import tables

Numbers = Mapping[str, Mapping[str, Any]]


def printed(rows: Sequence[tuple[str, Numbers]]) -> dict[str, list[str]]:
    """Lines of each table by its title, at the width of the user's console."""
    shown: dict[str, list[str]] = {}
    for table in tables.tables(rows):
        sink = io.StringIO()
        Console(file=sink, width=UNSEEN).print(table)
        lines = [line.rstrip() for line in sink.getvalue().splitlines()]
        assert "\u2026" not in sink.getvalue()  # rich's ellipsis: a cell did not fit
        assert all(len(line) <= UNSEEN for line in lines)
        assert lines[0] == str(table.title)
        for note in str(table.caption or "").splitlines():
            assert note in lines
        assert str(table.title) not in shown
        shown[str(table.title)] = lines
    return shown


def of(shown: Mapping[str, list[str]], part: str) -> list[str]:
    (lines,) = (lines for title, lines in shown.items() if part in title)
    return lines


def cells(lines: Sequence[str], *names: str) -> list[str]:
    """The cells of the one row with these names, which stand in one line each."""
    start = re.compile(r"\s*" + r"\s+".join(map(re.escape, names)) + r"\s{2,}(.*)")
    (match,) = filter(None, (start.fullmatch(line) for line in lines))
    return match[1].split()


def test_models_and_text_proxies() -> None:
    """Models that were rescored together have their names behind the task's."""
    numbers = {
        "haven_v2v one (a=b)": {"f1": 0.4},
        "haven_v2vt one (a=b)": {"clipscore": 0.8},
        "haven one (a=b)": {"joined_clip_gain": 0.1},
        "haven_v2v two [c]": {"f1": 0.3},
        "haven_v2v_text two [c]": {"f1": 0.7},
        "haven_text two [c]": {"joined_saliency": 0.1},
    }
    shown = printed([("", numbers)])
    for name, f1 in (("one (a=b)", 0.4), ("two [c]", 0.3), ("two [c] (text proxy)", 0.7)):
        assert cells(of(shown, "Table 3"), name, "videos")[1] == f"{f1:.3f}"
    assert cells(of(shown, "Table 4"), "one (a=b)", "videos")[-1] == "+0.100"
    assert cells(of(shown, "keyframes agree"), "two [c] (text proxy)")[0] == "0.100"
    invalid = {"haven_v2t INVALID": {"rouge": 0.1}, "haven_v2v": {"f1": 0.2}}
    for label, name in (("", "this run"), ("m", "m")):
        lines = of(printed([(label, invalid)]), "worth")
        assert cells(lines, f"{name} INVALID", "v2t", "rouge")[1] == "0.100"
        assert cells(lines, name, "v2v", "f1")[1] == "0.200"
    nothing: list[Numbers] = [{}, {"haven_v2t": {"rouge": None}}, {"haven_v2tx": {"rouge": 0.5}}]
    nothing += [{"maia_vsv": {"f1": 0.5}}, {"haven": {"joined_clip_gain": float("nan")}}]
    assert [tables.tables([("m", numbers)]) for numbers in nothing] == [[]] * 5
