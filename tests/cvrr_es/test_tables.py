"""The tables of a run: names of rows, nothing that is none; the numbers are in tests/golden."""

from __future__ import annotations

from rich.table import Table

from lmms_eval_tasks.cvrr_es.tables import tables
from tests.cvrr_es.scored import eight, values


def names(table: Table, column: int = 0) -> list[str]:
    return [str(cell) for cell in table.columns[column].cells]


def test_rounds_models_and_invalid_ones() -> None:
    own = values(eight())
    numbers = {f"cvrr_judge{end}": own for end in ("_mixture", "", "_collective")}
    (rounds,) = (one for one in tables([("", numbers)]) if "Tables 5-7" in str(one.title))
    assert names(rounds, 1)[::2] == ["alone", "collective", "mixture"]
    several = ("cvrr_judge a (x)", "cvrr_judge b [y]", "cvrr_judge INVALID")
    made = tables([("", dict.fromkeys(several, own))])
    assert names(made[0])[::2] == ["a (x)", r"b \[y]", "this run INVALID"]
    assert set(names(tables([("mine", {"cvrr_judge": own})])[0])) == {"mine"}


def test_nothing_to_show() -> None:
    assert tables([]) == []
    assert tables([("", {"cvrr_es_other": {"acc": 1.0}, "cvrr": {"acc": 1.0}})]) == []
    assert tables([("", {"cvrr_es": {"mean_acc": float("nan")}})]) == []
