"""The tables of a run: every number in its place, nothing that is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.tables import tables
from tests.cvrr_es.scored import PART, Item, Stated, answered, eight, values

PLACES = {name: place for place, name in enumerate(DIMENSIONS)}
PART_AT, TIME_AT = PLACES[PART], PLACES["time_order_understanding"]


def rows(table: Table) -> list[list[str]]:
    return [list(cells) for cells in zip(*(column.cells for column in table.columns), strict=True)]


def found(kind: str, numbers: dict[str, Any]) -> list[list[str]]:
    (table,) = (one for one in tables([("", numbers)]) if kind in str(one.title))
    return rows(table)


def ratings(made: Sequence[Item] | None = None) -> dict[str, Any]:
    return {"cvrr_judge": values(eight() if made is None else list(made))}


def test_answers(stated: Stated) -> None:
    own = values([answered(r, n) for n, r in enumerate(("right 5", "wrong 2", "", "hm"))])
    group = {"mean_acc": 0.25, "mean_acc_valid": 1 / 3, "mean_score_valid": 7 / 3}
    group |= {"mean_acc_skip_empty": 0.5, "mean_score_skip_empty": 3.5}
    found_rows = found("answers by dimension", {f"cvrr_es_{PART}": own, "cvrr_es": group})
    cells = {row[1]: (row[2 + PART_AT], row[-1]) for row in found_rows}
    assert cells == {
        "correct, %": ("33.33", "33.33"),
        "correct, failed as wrong, %": ("25.00", "25.00"),
        "score, 0 to 5": ("2.33", "2.33"),
        "not judged": ("2", "-"),
        "empty answers": ("1", "-"),
        "correct, without empty, %": ("50.00", "50.00"),
        "score, without empty": ("3.50", "3.50"),
    }
    assert {row[2 + TIME_AT] for row in found_rows} == {"-"}
    own = values([answered("right 5")])
    assert len(found("answers by dimension", {f"cvrr_es_{PART}": own})) == 5  # nothing is empty


def test_rounds_models_and_invalid_ones() -> None:
    own = ratings()["cvrr_judge"]
    numbers = {f"cvrr_judge{end}": own for end in ("_mixture", "", "_collective")}
    listed = found("Tables 5-7", numbers)
    assert [row[1] for row in listed[::2]] == ["alone", "collective", "mixture"]
    several = ("cvrr_judge a (x)", "cvrr_judge b [y]", "cvrr_judge INVALID")
    made = tables([("", dict.fromkeys(several, own))])
    names = [row[0] for row in rows(made[0])]
    assert names[::2] == ["a (x)", r"b \[y]", "this run INVALID"]
    labelled = tables([("mine", {"cvrr_judge": own})])
    assert {row[0] for row in rows(labelled[0])} == {"mine"}


def test_nothing_to_show() -> None:
    assert tables([]) == []
    assert tables([("", {"cvrr_es_other": {"acc": 1.0}, "cvrr": {"acc": 1.0}})]) == []
    assert tables([("", {"cvrr_es": {"mean_acc": float("nan")}})]) == []
