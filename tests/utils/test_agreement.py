"""Agreement of raters: hand-computed cases, scikit-learn's numbers, and what is left out."""

import random

import pytest

from lmms_eval_tasks.utils.metrics.agreement import Coefficient, flips, kappa, krippendorff_alpha

SCALE = [1, 2, 3, 4, 5]


def test_kappa_by_hand():
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, by chance 0.5.
    a = [1] * 25 + [0] * 25
    b = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert kappa(a, b, [0, 1]) == Coefficient(0.4, "", 50)
    # Disagreement 1 in one of 3 items; by chance 8 + (1 + 2) + 4 in 9 pairs.
    assert kappa([1, 2, 3], [1, 3, 3], [1, 2, 3], "quadratic").value == 1 - 3 / 15
    assert kappa([1, 5], [5, 1], SCALE, "quadratic").value == -1
    # metrics.md: 0.80 with the labels left to the data, 0.768 with the scale 1..5.
    a, b = [1, 4, 5, 4, 5, 4, 1], [1, 1, 5, 5, 5, 4, 1]
    assert round(kappa(a, b, [1, 4, 5], "quadratic").value, 3) == 0.8
    assert round(kappa(a, b, SCALE, "quadratic").value, 3) == 0.768
    # Constant raters.
    assert kappa([4, 4, 4, 4], [1, 2, 4, 5], SCALE, "quadratic").value == 0
    both = kappa([4, 4, 4], [4, 4, 4], SCALE, "quadratic")
    assert (both.value, both.n) == (None, 3)
    assert "one and the same label" in both.reason


def test_kappa_is_scikit_learns_and_has_no_order():
    from sklearn.metrics import cohen_kappa_score

    for seed in range(50):
        rng = random.Random(seed)
        used = rng.sample(SCALE, rng.randint(2, 5))
        a = [rng.choice(used) for _ in range(rng.choice([10, 60]))]
        b = [value if rng.random() < 0.5 else rng.choice(used) for value in a]
        for weights in (None, "quadratic"):
            ours = kappa(a, b, SCALE, weights)
            assert kappa(b[::-1], a[::-1], [3, 1, 5, 2, 4], weights) == ours
            theirs = cohen_kappa_score(a, b, labels=SCALE, weights=weights)
            assert ours.value == pytest.approx(theirs, abs=1e-12)


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


def test_krippendorffs_own_example():
    """Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C onwards."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    result = krippendorff_alpha(list(zip(*observers, strict=True)), SCALE)
    assert round(result.value, 3) == 0.849
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
    assert (change.only_before, change.only_after) == (1, 1)
    assert (change.n, change.agreement) == (5, 0.4)
    assert flips([None], [1]).agreement is None
