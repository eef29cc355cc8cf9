"""Kappas by hand and as scikit-learn's, means over candidates, intervals, bands."""

from __future__ import annotations

import json
import math
import random
import warnings
from fractions import Fraction
from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.kappas import band
from lmms_eval_tasks.cvrr_es.study.selection import SCALE
from lmms_eval_tasks.cvrr_es.study.study import Cell, Study
from lmms_eval_tasks.utils import stats
from lmms_eval_tasks.utils.agreement import kappa
from tests.cvrr_es.study.study_rows import PARTIAL, TIME, drawn, of, row, rows, study

CASES = json.loads((Path(__file__).parents[2] / "cases" / "cvrr_kappa.json").read_text())
# Table 5's shape: A by chance (1 - 4 * 2 / 8 = 0), B perfect, so 0.5 in the mean; pooled
# 1 - 8 * 2 / (8 * 184 - 2 * 24 * 24) = 0.95, since the judge sees that B is better.
TWO = {"A": [1, 2, 1, 2], "B": [4, 5, 4, 5]}, {"A": [1, 2, 2, 1], "B": [4, 5, 4, 5]}


@pytest.mark.parametrize("case", CASES["kappa"], ids=lambda case: case["name"])
def test_by_hand(case):
    made = study({"J": {"A": case["judge"]}}, {"A": case["reference"]})
    found = kappas.reliability(made, of(made), resamples=0)
    for one in (found.pooled, found.cells[Cell(PARTIAL, "A")], found.pooled_by_dimension[PARTIAL]):
        value = case["value"]
        assert one.value == (None if value is None else float(Fraction(*value)))
        assert one.agreement.reason == case.get("reason", "")
        assert one.agreement.n == case["n"]
        assert one.agreement.missing == case.get("missing", 0)
        assert one.agreement.off_scale == case.get("not_whole", 0)
        assert one.note == case.get("note", "")
    total = case["n"] + case.get("missing", 0) + case.get("not_whole", 0)
    assert found.pooled.agreement.coverage == case["n"] / total
    assert found.mean.value == found.pooled.value


def test_a_thousand_random_tables_are_scikit_learns():
    from sklearn.metrics import cohen_kappa_score

    undefined = constant = 0
    for seed in range(1000):
        rng = random.Random(seed)
        used = rng.sample(SCALE, rng.choice([1, 2, 2, 3, 4, 5]))
        other = rng.sample(SCALE, rng.choice([1, 2, 3, 5]))
        n = rng.choice([1, 2, 5, 20, 80])
        reference = [rng.choice(other) for _ in range(n)]
        judge = [one if rng.random() < 0.4 else rng.choice(used) for one in reference]
        extra = [4.5, None, "absent"][: rng.randint(0, 3)]  # of which scikit-learn knows nothing
        made = study({"J": {"A": [*judge, *extra]}}, {"A": [*reference, *[3] * len(extra)]})
        ours = kappas.between(made, of(made), made.reference, made.items, resamples=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = cohen_kappa_score(judge, reference, labels=SCALE, weights="quadratic")
        assert ours.agreement.n == n
        if ours.value is None:
            undefined += 1
            assert math.isnan(theirs)
            assert len({*judge, *reference}) == 1
        else:
            constant += len(set(judge)) == 1
            assert ours.value == pytest.approx(theirs, abs=1e-12)
    assert undefined > 20
    assert constant > 20


def test_the_papers_formula_as_printed_is_another_number():
    """3.2 as written, with weights of agreement in the formula of disagreement: -1/3 for 1."""
    judge = reference = [1, 2, 3, 4, 5]
    weight = {(a, b): 1 - ((a - b) / 4) ** 2 for a in SCALE for b in SCALE}
    observed = sum(weight[pair] for pair in zip(judge, reference, strict=True)) / 5
    expected = sum(weight.values()) / 25
    made = study({"J": {"A": judge}}, {"A": reference})
    ours = kappas.between(made, of(made), made.reference, made.items, resamples=0).value
    assert 1 - observed / expected == pytest.approx(-1 / 3)
    assert ours == 1
    assert ours == pytest.approx((observed - expected) / (1 - expected))


def test_panels_may_hand_in_numbers_off_the_scale():
    made = study({"J": {"A": [2, 3, 4, 5, 1]}}, {"A": [1, 2, 3, 4, 1]})
    wrong = {**of(made), made.items[4]: 7}
    found = kappas.between(made, wrong, made.reference, made.items, resamples=0)
    assert (found.value, found.agreement.off_scale) == (5 / 7, 1)


def test_mean_over_candidates_and_pooled():
    made = study({"J": TWO[0]}, TWO[1])
    found = kappas.reliability(made, of(made))
    assert found.cells[Cell(PARTIAL, "A")].value == 0
    assert found.cells[Cell(PARTIAL, "B")].value == 1
    assert found.by_dimension[PARTIAL].value == 0.5
    assert found.mean.value == 0.5
    assert found.pooled.value == 0.95
    assert found.pooled_by_dimension[PARTIAL].value == 0.95
    shown = found.by_dimension[PARTIAL].as_dict()
    assert (shown["kappa"], shown["percent"], shown["band"]) == (0.5, 50, "moderate")
    assert (shown["defined"], shown["cells"], shown["reason"]) == (2, 2, "")
    assert found.pooled.as_dict()["percent"] == 95
    assert json.loads(json.dumps(found.pooled.as_dict()))["band"] == "almost perfect"


def test_the_mean_counts_every_dimension_alike():
    """Three candidates with 0 in one dimension, one with 1 in the other: 0.5, not 0.25."""
    chance = [1, 2, 1, 2], [1, 2, 2, 1]
    given, compared = [], []
    for name in "ABC":
        given += rows(chance[0], candidate=name)
        compared += rows(chance[1], candidate=name, judge="d")
    given += rows([1, 5, 3], dimension=TIME, video="t.mp4")
    compared += rows([1, 5, 3], dimension=TIME, video="t.mp4", judge="d")
    made = Study.of(given, compared)
    found = kappas.reliability(made, of(made))
    assert found.mean.value == 0.5
    assert (found.mean.defined, found.mean.cells) == (4, 4)
    assert list(found.by_dimension) == [PARTIAL, TIME]


def test_undefined_cells_are_left_out_of_the_mean_and_counted():
    made = study({"J": {"A": [3, 3], "B": [1, 5]}}, {"A": [3, 3], "B": [1, 5]})
    found = kappas.reliability(made, of(made), resamples=0)
    dimension = found.by_dimension[PARTIAL]
    assert (dimension.value, dimension.defined, dimension.cells) == (1, 1, 2)
    nothing = study({"J": {"A": [3, 3]}}, {"A": [3, 3]})
    mean = kappas.reliability(nothing, of(nothing)).mean
    assert (mean.value, mean.defined, mean.cells) == (None, 0, 1)
    assert mean.reason == "both raters gave one and the same label to every item"
    assert mean.no_interval == "there is no value"
    assert mean.as_dict()["percent"] is None


def test_without_a_reference():
    made = Study.of(rows([1, 2, 3]), [])
    found = kappas.reliability(made, of(made))
    assert found.pooled.value is None
    assert found.mean.reason == found.pooled.agreement.reason == "there is no reference yet"
    assert found.pooled.agreement.missing == 3


def test_a_study_without_items():
    """Every answer was empty."""
    made = Study.of(rows([1, 2], empty=True), rows([1, 2], judge="d")).without_empty
    found = kappas.reliability(made, of(made))
    assert (found.mean.value, found.mean.reason) == (None, "there are no items")
    assert found.pooled.value is None
    assert found.cells == {}


def test_a_judge_that_rated_nothing_of_the_reference():
    made = study({"J": {"A": [1, 2]}, "K": {"A": ["absent", "absent", 3]}}, {"A": [1, 2]})
    found = kappas.reliability(made, of(made, "K"))
    assert found.pooled.agreement.reason == "no item was rated on the scale by both"
    assert found.pooled.agreement.coverage == 0


@pytest.mark.parametrize("seed", range(6))
def test_intervals_are_cluster_bootstraps(seed):
    """Bit for bit what utils.stats gives from the items themselves, also of the means."""
    made = drawn(seed)
    ratings, reference = of(made), made.reference
    found = kappas.reliability(made, ratings, seed=seed)

    def of_items(items):
        a, b = [ratings[item] for item in items], [reference[item] for item in items]
        return kappa(a, b, SCALE, "quadratic").value

    def mean_of_cells(items):
        by_cell: dict[Cell, list] = {}
        for item in items:
            by_cell.setdefault(Cell(made.dimension(item), item.candidate), []).append(item)
        dimensions: dict[str, list[float]] = {}
        for cell, own in by_cell.items():
            if (value := of_items(own)) is not None:
                dimensions.setdefault(cell.dimension, []).append(value)
        means = [sum(values) / len(values) for values in dimensions.values()]
        return sum(means) / len(means) if means else None

    def expected(statistic, items):
        both = [i for i in items if ratings.get(i) in SCALE and reference[i] in SCALE]
        return stats.cluster_bootstrap(
            statistic, both, [made.video(item) for item in both], seed=seed
        )

    assert found.pooled.interval == expected(of_items, made.items)
    for cell, items in list(made.cells.items())[::4]:
        assert found.cells[cell].interval == expected(of_items, items)
        assert found.cells[cell].interval.estimate == found.cells[cell].value
    first = made.dimensions[0]
    for mean, items in (
        (found.mean, made.items),
        (found.by_dimension[first], [i for i in made.items if made.dimension(i) == first]),
    ):
        ours, theirs = mean.interval, expected(mean_of_cells, items)
        assert (ours.n, ours.clusters, ours.undefined) == (
            theirs.n,
            theirs.clusters,
            theirs.undefined,
        )
        for name in ("estimate", "low", "high", "se"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-12)


def test_undefined_resamples_are_reported():
    """Two videos, each constant on its own label: half of the resamples draw one of them twice."""
    made = study({"J": {"A": [1, 1, 5, 5]}}, {"A": [1, 1, 5, 5]})
    interval = kappas.reliability(made, of(made)).pooled.interval
    assert 400 < interval.undefined < 600
    assert (interval.low, interval.high) == (1, 1)


def test_no_interval_without_videos():
    made = study({"J": TWO[0]}, TWO[1], video="")
    found = kappas.reliability(made, of(made))
    assert found.pooled.value == 0.95
    assert found.pooled.interval is None
    assert found.pooled.no_interval == "the video of 8 of 8 items is not known"
    assert found.mean.no_interval == "the video of 8 of 8 items is not known"
    one = study({"J": TWO[0]}, TWO[1], video="v.mp4")
    assert kappas.reliability(one, of(one)).mean.no_interval == "all items are on one video"


def test_one_unknown_video_is_enough_for_no_interval():
    given = [
        row(n, rating, video="" if n == 3 else f"{n}") for n, rating in enumerate([1, 2, 3, 4])
    ]
    made = Study.of(given, [row(n, n + 1, judge="d", video="") for n in range(4)])
    found = kappas.reliability(made, of(made))
    assert found.pooled.no_interval == "the video of 1 of 4 items is not known"
    assert found.by_dimension[PARTIAL].no_interval == "the video of 1 of 4 items is not known"


def test_too_few_resamples_are_refused():
    made = study({"J": TWO[0]}, TWO[1])
    with pytest.raises(ValueError, match="at least 1000"):
        kappas.reliability(made, of(made), resamples=100)


def test_both_counts_of_empty_answers():
    """The judge rates the empty answer 5, the reference 1; the published scripts skip it."""
    given = [row(0, 1), row(1, 3), row(2, 5), row(3, 5, empty=True)]
    made = Study.of(given, [row(n, one, judge="d") for n, one in enumerate([1, 3, 5, 1])])
    whole = kappas.reliability(made, of(made), resamples=0).pooled
    skipped = made.without_empty
    found = kappas.reliability(skipped, of(skipped), resamples=0).pooled
    # 1 - 4 * 16 / (4 * (60 + 36) - 2 * 14 * 10)
    assert (whole.value, whole.agreement.n) == (float(Fraction(40, 104)), 4)
    assert (found.value, found.agreement.n) == (1, 3)


@pytest.mark.parametrize(("value", "name"), CASES["bands"])
def test_bands(value, name):
    assert band(value) == name


@pytest.mark.parametrize("value", [1.0001, math.nan])
def test_what_is_no_kappa_has_no_band(value):
    with pytest.raises(ValueError, match="is no kappa"):
        band(value)
