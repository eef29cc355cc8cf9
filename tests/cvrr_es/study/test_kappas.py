"""Kappas by hand and as scikit-learn's, means over candidates, intervals, bands."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.kappas import interval_or_reason
from lmms_eval_tasks.cvrr_es.study.study import Cell, Study
from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.agreement import kappa
from tests.cvrr_es.study.study_rows import PARTIAL, TIME, drawn, of, row, rows, study

CASES = json.loads((Path(__file__).parents[2] / "cases" / "cvrr_kappa.json").read_text())
# Table 5's shape: A by chance (1 - 4 * 2 / 8 = 0), B perfect, so 0.5 in the mean; pooled
# 1 - 8 * 2 / (8 * 184 - 2 * 24 * 24) = 0.95, since the judge sees that B is better.
TWO: Any = ({"A": [1, 2, 1, 2], "B": [4, 5, 4, 5]}, {"A": [1, 2, 2, 1], "B": [4, 5, 4, 5]})


def test_by_hand() -> None:
    for case in CASES["kappa"]:
        made = study({"J": {"A": case["judge"]}}, {"A": case["reference"]})
        found = kappas.reliability(made, of(made), resamples=0)
        expected = {"reason": "", "missing": 0, "not_whole": 0, "note": "", **case}
        value = case["value"] and float(Fraction(*case["value"]))
        names = ("reason", "n", "missing", "not_whole", "note")
        cell = found["cells"][PARTIAL]["A"]
        for one in (found["pooled"], cell, found["pooled_by_dimension"][PARTIAL]):
            assert one["kappa"] == value, case["name"]
            assert {name: one[name] for name in names} == {name: expected[name] for name in names}
        total = sum(expected[name] for name in ("n", "missing", "not_whole"))
        assert found["pooled"]["coverage"] == case["n"] / total
        assert found["mean"]["kappa"] == value


def test_means() -> None:
    """Over candidates, then over dimensions, each counted alike: not pooled, not by size."""
    made = study({"J": TWO[0]}, TWO[1])
    found = kappas.reliability(made, of(made))
    assert {name: one["kappa"] for name, one in found["cells"][PARTIAL].items()} == {"A": 0, "B": 1}
    mean, pooled = found["by_dimension"][PARTIAL], found["pooled"]
    assert (mean["kappa"], mean["percent"], mean["band"]) == (0.5, 50, "moderate")
    assert (mean["defined"], mean["cells"], mean["reason"]) == (2, 2, "")
    assert (pooled["kappa"], pooled["band"]) == (0.95, "almost perfect")
    assert found["pooled_by_dimension"][PARTIAL]["kappa"] == 0.95
    ours, compared = [], []
    for name in "ABC":
        ours += rows([1, 2, 1, 2], candidate=name)
        compared += rows([1, 2, 2, 1], candidate=name, judge="d")
    ours += rows([1, 5, 3], dimension=TIME, video="t.mp4")
    compared += rows([1, 5, 3], dimension=TIME, video="t.mp4", judge="d")
    made = Study.of(ours, compared)
    mean = kappas.reliability(made, of(made))["mean"]
    assert (mean["kappa"], mean["defined"], mean["cells"]) == (0.5, 4, 4)


def test_what_is_undefined() -> None:
    same = "both raters gave one and the same label to every item"
    made = study({"J": {"A": [3, 3], "B": [1, 5]}}, {"A": [3, 3], "B": [1, 5]})
    one = kappas.reliability(made, of(made), resamples=0)["by_dimension"][PARTIAL]
    assert (one["kappa"], one["defined"], one["cells"]) == (1, 1, 2)
    gaps = study({"J": {"A": [1, 2]}, "K": {"A": ["absent", "absent", 3]}}, {"A": [1, 2]})
    for made, judge, reason in (
        (study({"J": {"A": [3, 3]}}, {"A": [3, 3]}), "J", same),
        (Study.of(rows([1, 2, 3]), []), "J", "there is no reference yet"),
        (gaps, "K", "no item was rated on the scale by both"),
    ):
        found = kappas.reliability(made, of(made, judge))
        for one in (found["mean"], found["pooled"]):
            assert (one["kappa"], one["reason"]) == (None, reason)
            assert one["no_interval"] == "there is no value"
    made = Study.of(rows([1, 2]), rows([1, 2], judge="d")).keep(lambda _: False)
    found = kappas.reliability(made, of(made))
    assert (found["mean"]["reason"], found["cells"]) == ("there are no items", {})


def test_bands() -> None:
    for value, name in CASES["bands"]:
        assert kappas._shown(value, {})["band"] == name


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_intervals_are_cluster_bootstraps(seed: int) -> None:
    """Bit for bit what utils.stats gives from the items themselves, also of the means."""
    made = drawn(seed)
    ratings, reference = of(made), made.reference
    found = kappas.reliability(made, ratings, seed=seed)

    def of_items(items: Any) -> float | None:
        a, b = [ratings[item] for item in items], [reference[item] for item in items]
        return kappa(a, b, SCALE, "quadratic").value

    def mean_of_cells(items: Any) -> float | None:
        by_cell: dict[Cell, list[Any]] = {}
        for item in items:
            by_cell.setdefault(Cell(made.dimension(item), item.candidate), []).append(item)
        dimensions: dict[str, list[float]] = {}
        for cell, own in by_cell.items():
            if (value := of_items(own)) is not None:
                dimensions.setdefault(cell.dimension, []).append(value)
        means = [sum(values) / len(values) for values in dimensions.values()]
        return sum(means) / len(means) if means else None

    def expected(statistic: Any, items: Any) -> dict[str, Any]:
        both = [i for i in items if ratings.get(i) in SCALE and reference[i] in SCALE]
        videos = [made.video(item) for item in both]
        return stats.cluster_bootstrap(statistic, both, videos, seed=seed).as_dict()

    assert found["pooled"]["interval"] == expected(of_items, made.items)
    for cell, items in list(made.cells.items())[::4]:
        own = found["cells"][cell.dimension][cell.candidate]
        assert own["interval"] == expected(of_items, items)
    first = made.dimensions[0]
    for mean, items in (
        (found["mean"], made.items),
        (found["by_dimension"][first], [i for i in made.items if made.dimension(i) == first]),
    ):
        theirs = expected(mean_of_cells, items)
        ours = {name: mean["interval"][name] for name in theirs if name != "method"}
        assert ours == pytest.approx({name: theirs[name] for name in ours}, abs=1e-12)


def test_why_there_is_no_interval() -> None:
    given: dict[str, Any] = {"estimate": 2.0, "sums": {"a": [3, 4], "b": [2, 5]}}
    given |= {"statistic": lambda sums: sums[:, 1] / sums[:, 0], "n": 5, "unknown": 0}
    for changes, reason in (
        ({"estimate": None}, "there is no value"),
        ({"resamples": 0}, "no interval was asked for"),
        ({"sums": {"a": [5, 9]}}, "all items are on one video"),
        ({"statistic": lambda sums: np.full(len(sums), np.nan)}, "undefined in all 1000"),
    ):
        found = interval_or_reason(**{**given, **changes})
        assert (found["interval"], reason in found["no_interval"]) == (None, True)
    made = study({"J": TWO[0]}, TWO[1], video="")
    whole = kappas.reliability(made, of(made))
    assert (whole["pooled"]["kappa"], whole["pooled"]["interval"]) == (0.95, None)
    for one in (whole["pooled"], whole["mean"]):
        assert one["no_interval"] == "the video of 8 of 8 items is not known"
    # One unknown video is enough.
    ours = [row(n, r, video="" if n == 3 else f"{n}") for n, r in enumerate([1, 2, 3, 4])]
    made = Study.of(ours, [row(n, n + 1, judge="d", video="") for n in range(4)])
    mean = kappas.reliability(made, of(made))["mean"]
    assert mean["no_interval"] == "the video of 1 of 4 items is not known"
