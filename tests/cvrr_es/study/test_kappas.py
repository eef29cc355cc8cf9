"""Kappas by hand and as scikit-learn's, means over candidates, intervals, differences, leniency."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.study import cells
from lmms_eval_tasks.cvrr_es.study.study import study as study_of
from lmms_eval_tasks.utils.metrics import aggregate, stats
from lmms_eval_tasks.utils.metrics.agreement import kappa
from tests.cvrr_es.scored import PART, TIME
from tests.cvrr_es.study.study_rows import KAPPA_A, drawn, judged, of, referred, rows, study

CASES = json.loads((Path(__file__).parents[2] / "cases" / "cvrr_kappa.json").read_text())
# Table 5's shape: A by chance (1 - 4 * 2 / 8 = 0), B perfect, so 0.5 in the mean; pooled
# 1 - 8 * 2 / (8 * 184 - 2 * 24 * 24) = 0.95, since the judge sees that B is better.
TWO: Any = ({"A": [1, 2, 1, 2], "B": [4, 5, 4, 5]}, {"A": [1, 2, 2, 1], "B": [4, 5, 4, 5]})


def test_by_hand() -> None:
    for case in CASES["kappa"]:
        made = study({"J": {"A": case["judge"]}}, {"A": case["reference"]})
        found = kappas.reliability(of(made), intervals=False)
        expected = {"reason": "", "missing": 0, "not_whole": 0, **case}
        value = case["value"] and float(Fraction(*case["value"]))
        names = ("reason", "n", "missing", "not_whole")
        cell = found["cells"][PART]["A"]
        for one in (found["pooled"], cell, found["pooled_by_dimension"][PART]):
            assert one["kappa"] == value, case["name"]
            assert {name: one[name] for name in names} == {name: expected[name] for name in names}
        total = sum(expected[name] for name in ("n", "missing", "not_whole"))
        assert found["pooled"]["coverage"] == case["n"] / total
        assert found["mean"]["kappa"] == value
    for value, name in CASES["bands"]:
        assert kappas._shown(value, {})["band"] == name


def test_means() -> None:
    """Over candidates, then over dimensions, each counted alike: not pooled, not by size."""
    found = kappas.reliability(of(study({"J": TWO[0]}, TWO[1])))
    assert {name: one["kappa"] for name, one in found["cells"][PART].items()} == {"A": 0, "B": 1}
    mean, pooled = found["by_dimension"][PART], found["pooled"]
    assert (mean["kappa"], mean["percent"], mean["band"]) == (0.5, 50, "moderate")
    assert (mean["defined"], mean["cells"], mean["reason"]) == (2, 2, "")
    assert (pooled["kappa"], pooled["band"]) == (0.95, "almost perfect")
    assert found["pooled_by_dimension"][PART]["kappa"] == 0.95
    assert found["by_candidate"] == {"A": 0, "B": 1}
    ours, compared = [], []
    for name in "ABC":
        ours += rows([1, 2, 1, 2], candidate=name)
        compared += rows([1, 2, 2, 1], candidate=name, judge="d")
    ours += rows([1, 5, 3], dimension=TIME, video="t.mp4")
    compared += rows([1, 5, 3], dimension=TIME, video="t.mp4", judge="d")
    mean = kappas.reliability(of(study_of(ours, compared)))["mean"]
    assert (mean["kappa"], mean["defined"], mean["cells"]) == (0.5, 4, 4)


def test_what_is_undefined() -> None:
    same = "both raters gave one and the same label to every item"
    part = {"A": [3, 3], "B": [1, 5]}
    one = kappas.reliability(of(study({"J": part}, part)), intervals=False)["mean"]
    assert (one["kappa"], one["defined"], one["cells"]) == (1, 1, 2)
    gaps = study({"J": {"A": [1, 2]}, "K": {"A": ["absent", "absent", 3]}}, {"A": [1, 2]})
    for made, judge, reason in (
        (study({"J": {"A": [3, 3]}}, {"A": [3, 3]}), "J", same),
        (study({"J": {"A": [1, 2, 3]}}, {}), "J", "no reference yet"),
        (gaps, "K", "no item was rated on the scale by both"),
    ):
        found = kappas.reliability(of(made, judge))
        for one in (found["mean"], found["pooled"]):
            assert (one["kappa"], one["reason"]) == (None, reason)
            assert one["no_interval"] == "no value"
    found = kappas.reliability([])
    assert (found["mean"]["reason"], found["cells"]) == ("no items", {})
    found = kappas.reliability(of(study({"J": TWO[0]}, TWO[1], video="v")))["pooled"]
    assert (found["kappa"], found["no_interval"]) == (0.95, "all items are on one video")


def test_intervals_are_of_kappas_without_a_video_each() -> None:
    """What utils.stats gives from the items themselves, also of the means."""
    pairs = of(drawn(1))
    found = kappas.reliability(pairs)

    def of_pairs(own: Any) -> float | None:
        sides = [one.rating for one in own], [one.reference for one in own]
        return kappa(*sides, SCALE, "quadratic").value

    def mean_of_cells(own: Any) -> float | None:
        return aggregate.mean(
            aggregate.mean(map(of_pairs, parts.values())) for parts in cells(own).values()
        )

    def expected(statistic: Any, own: Any) -> dict[str, Any]:
        both = [pair for pair in own if pair.whole]
        videos = [pair.video for pair in both]
        return stats.jackknife(statistic, both, videos, coefficient=True).as_dict()

    assert found["pooled"]["interval"] == expected(of_pairs, pairs)
    parts = cells(pairs)
    first = next(iter(parts))
    one = parts[first]["b"]
    assert found["cells"][first]["b"]["interval"] == expected(of_pairs, one)
    for mean, own in (
        (found["mean"], pairs),
        (found["by_dimension"][first], [pair for pair in pairs if pair.dimension == first]),
    ):
        assert mean["interval"] == pytest.approx(expected(mean_of_cells, own), abs=1e-12)


def test_differences_are_of_shared_answers() -> None:
    made = study_of(judged(), referred())
    one, other = of(made, "J"), of(made, "K")
    part = [pair if pair.item.candidate == "A" else pair._replace(rating=None) for pair in one]
    for pair, value in (((part, other), KAPPA_A), ((other, part), -KAPPA_A)):
        found = kappas.difference(*pair)
        assert (found["value"], found["n"]) == (pytest.approx(value), 4)
        assert found["no_interval"] == "2 videos of at least 3"
    # The same ratings differ by exactly 0 without each video, which is no interval.
    own = of(drawn(1))
    same = kappas.difference(own, own)
    assert (same["value"], same["interval"]) == (0, None)
    assert same["no_interval"] == "every video gives the same value"
    assert same["n"] > 50
    nothing = kappas.difference([pair._replace(rating=None) for pair in one], other)
    assert (nothing["value"], nothing["n"]) == (None, 0)
    assert nothing["no_interval"] == "no value"


def test_leniency_by_hand() -> None:
    """Two answers a video; over six videos the ends are the least and the greatest mean of one."""
    found = kappas.leniency(of(study({"J": {"A": [4, 5, 3, None, 4]}}, {"A": [2, 5, 1, 1, 1]})))
    assert (found["value"], found["n"], found["interval"]) == (7 / 4, 4, None)
    assert found["no_interval"] == "3 of 3 videos differ; at least 6 have to"
    ours = [1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]
    found = kappas.leniency(of(study({"J": {"A": ours}}, {"A": [1] * 12})))
    assert found["value"] == pytest.approx(29 / 12)
    assert (found["interval"]["low"], found["interval"]["high"]) == (0.5, 4)
    # Means over different items would say +1.
    one = of(study({"J": {"A": [3, 2.5, 5, 5]}}, {"A": [3, 3, None, None]}))
    assert kappas.leniency(one)["value"] == -0.25
