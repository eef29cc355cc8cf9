"""Agreement of raters: hand-computed cases, the libraries' numbers, and what is left out."""

import math
import random
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.utils.agreement import Coefficient, fleiss, flips, kappa, krippendorff_alpha
from tests.checks import table

SCALE = [1, 2, 3, 4, 5]
RATING = st.sampled_from([*SCALE, None])


def random_pair(seed):
    """Two raters on the whole scale or on a part of it."""
    rng = random.Random(seed)
    used = rng.sample(SCALE, rng.randint(1, 5))
    n = rng.choice([1, 3, 10, 60])
    a = [rng.choice(used) for _ in range(n)]
    return a, [value if rng.random() < 0.5 else rng.choice(used) for value in a]


def test_kappa_by_hand():
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, by chance 0.5.
    a = [1] * 25 + [0] * 25
    b = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert kappa(a, b, [0, 1]) == Coefficient(0.4, "", 50)
    # Disagreement 1 in one of 3 items; by chance 8 + (1 + 2) + 4 in 9 pairs, linear 4 + 3 + 2.
    assert kappa([1, 2, 3], [1, 3, 3], [1, 2, 3], "quadratic").value == 1 - 3 / 15
    assert kappa([1, 2, 3], [1, 3, 3], [1, 2, 3], "linear").value == pytest.approx(1 - 3 / 9)
    assert kappa([1, 5], [5, 1], SCALE, "quadratic").value == -1
    # metrics.md: 0.80 with the labels left to the data, 0.768 with the scale 1..5.
    a, b = [1, 4, 5, 4, 5, 4, 1], [1, 1, 5, 5, 5, 4, 1]
    assert round(kappa(a, b, [1, 4, 5], "quadratic").value, 3) == 0.8
    assert round(kappa(a, b, SCALE, "quadratic").value, 3) == 0.768
    # Constant raters.
    assert kappa([4, 4, 4, 4], [1, 2, 4, 5], SCALE, "quadratic").value == 0
    assert kappa([4, 4], [2, 2], SCALE, "quadratic").value == 0
    both = kappa([4, 4, 4], [4, 4, 4], SCALE, "quadratic")
    assert (both.value, both.n) == (None, 3)
    assert "one and the same label" in both.reason


def test_kappa_is_scikit_learns():
    from sklearn.metrics import cohen_kappa_score

    undefined = 0
    for seed in range(100):
        a, b = random_pair(seed)
        for weights in (None, "linear", "quadratic"):
            ours = kappa(a, b, SCALE, weights).value
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = cohen_kappa_score(a, b, labels=SCALE, weights=weights)
            if ours is None:
                undefined += 1
                assert math.isnan(theirs)
            else:
                assert ours == pytest.approx(theirs, abs=1e-12)
    assert 0 < undefined < 150


def test_kappa_leaves_out_and_counts():
    a = [1, 2, None, 4.5, 5, None, 0, float("nan")]
    b = [1, 3, 3, 4, None, None, 9, 1]
    result = kappa(a, b, SCALE)
    assert (result.n, result.missing, result.off_scale) == (2, 3, 3)
    assert result.coverage == 0.25
    assert result.value == kappa([1, 2], [1, 3], SCALE).value
    nothing = kappa([None], [3], SCALE)
    assert (nothing.value, nothing.n, nothing.missing, nothing.coverage) == (None, 0, 1, 0)
    assert "no item" in nothing.reason


@given(st.lists(st.tuples(RATING, RATING), max_size=12), st.randoms())
def test_kappa_has_no_order(pairs, rng):
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    result = kappa(a, b, SCALE, "quadratic")
    assert kappa(b, a, SCALE, "quadratic") == result
    assert kappa(a, b, [3, 1, 5, 2, 4], "quadratic") == result
    rng.shuffle(pairs)
    assert kappa([x for x, _ in pairs], [y for _, y in pairs], SCALE, "quadratic") == result
    assert result.value is None or -1 <= result.value <= 1


# Fleiss (1971) as in Wikipedia's worked example: 10 subjects, 14 raters, 5 categories, 0.210.
FLEISS = """
0 0 0 0 14 / 0 2 6 4 2 / 0 0 3 5 6 / 0 3 9 2 0 / 2 2 8 1 1
/ 7 7 0 0 0 / 3 2 6 3 0 / 2 5 3 2 2 / 6 5 2 1 0 / 0 2 2 3 7
"""


def test_fleiss():
    counts = [[int(n) for n in row.split()] for row in FLEISS.split("/")]
    rows = [
        [label for label, n in zip(SCALE, row, strict=True) for _ in range(n)] for row in counts
    ]
    result = fleiss(rows, SCALE)
    assert result.value == pytest.approx(0.20993, abs=1e-5)
    assert result.n == 10
    assert fleiss([row[::-1] for row in reversed(rows)], SCALE) == result
    # Two raters, opposite on both items.
    assert fleiss([[1, 2], [2, 1]], [1, 2]).value == -1
    # Only whole items.
    rows = [[1, 1, 2], [2, 2, 2], [1, None, 1], [9, 1, 1], [None, None, None]]
    result = fleiss(rows, SCALE)
    assert (result.n, result.missing, result.off_scale) == (2, 2, 1)
    assert result.value == fleiss(rows[:2], SCALE).value
    assert fleiss([[3, 3], [3, 3]], SCALE).value is None
    assert fleiss([], SCALE) == Coefficient(None, "no item was rated on the scale by all", 0)


OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


@table("level, expected", [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_own_example(level, expected):
    """Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C onwards."""
    units = [list(row) for row in zip(*OBSERVERS, strict=True)]
    result = krippendorff_alpha(units, SCALE, level)
    assert round(result.value, 3) == expected
    assert (result.n, result.missing) == (11, 1)


def test_alpha_leaves_out_and_counts():
    rows = [[1, 2, None], [2, 2, 9], [1, 9, None], [1, None, None], [3, 3, 3]]
    result = krippendorff_alpha(rows, SCALE)
    assert (result.n, result.missing, result.off_scale) == (3, 1, 1)
    kept = [[1, 2, None], [2, 2, None], [3, 3, 3]]
    assert result.value == krippendorff_alpha(kept, SCALE).value
    assert krippendorff_alpha([[2, 2], [2, 2]], SCALE).value is None
    assert "two raters" in krippendorff_alpha([[2, None]], SCALE).reason
    # The order of the scale is the labels' own, not the argument's.
    assert krippendorff_alpha(rows, [3, 1, 5, 2, 4]) == result


def test_flips():
    change = flips([0, 0, 1, 1, 0, None, 1, None], [1, 1, 0, 1, 0, 1, None, None])
    assert (change.up, change.down, change.same) == (2, 1, 2)
    assert (change.only_before, change.only_after, change.neither) == (1, 1, 1)
    assert (change.n, change.agreement) == (5, 0.4)
    assert flips([None], [1]).agreement is None
