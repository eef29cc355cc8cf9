"""The tables of runs: models and their names; every number of a run is in tests/golden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks.haven import tables

Numbers = Mapping[str, Mapping[str, Any]]


def cells(rows: Sequence[tuple[str, Numbers]], title: str, *names: str) -> list[str]:
    """The cells behind the names of the one row that they begin, in the one table so called."""
    (table,) = (one for one in tables.tables(rows) if title in str(one.title))
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    shown = zip(*columns, strict=True)
    (found,) = (row for row in shown if row[: len(names)] == names)
    return list(found[len(names) :])


def test_models_and_text_proxies() -> None:
    """Models that were rescored together have their names behind the task's."""
    numbers = {
        "haven_v2v one (a=b)": {"f1": 0.4},
        "haven_v2vt one (a=b)": {"clipscore": 0.8},
        "haven one (a=b)": {"joined_clip_gain": 0.1},
        "haven_v2v two [c]": {"f1": 0.3},
        "haven_v2v_text two [c]": {"f1": 0.7},
        "haven_text two [c]": {"joined_saliency": 0.1, "joined_saliency_chance": 0.2},
    }
    rows = [("", numbers)]
    for name, f1 in (("one (a=b)", 0.4), (r"two \[c]", 0.3), (r"two \[c] (text proxy)", 0.7)):
        assert cells(rows, "Table 3", name, "videos")[1] == f"{f1:.3f}"
    assert cells(rows, "Table 4", "one (a=b)", "videos")[-1] == "+0.100"
    assert cells(rows, "keyframes agree", r"two \[c] (text proxy)")[0] == "0.100"
    invalid = {"haven_v2t INVALID": {"rouge": 0.1}, "haven_v2v": {"f1": 0.2}}
    for label, name in (("", "this run"), ("m", "m")):
        rows = [(label, invalid)]
        assert cells(rows, "worth", f"{name} INVALID", "v2t", "rouge")[1] == "0.100"
        assert cells(rows, "worth", name, "v2v", "f1")[1] == "0.200"
    nothing: list[Numbers] = [{}, {"haven_v2t": {"rouge": None}}, {"haven_v2tx": {"rouge": 0.5}}]
    nothing += [{"maia_vsv": {"f1": 0.5}}, {"haven": {"joined_clip_gain": float("nan")}}]
    assert [tables.tables([("m", numbers)]) for numbers in nothing] == [[]] * 5
