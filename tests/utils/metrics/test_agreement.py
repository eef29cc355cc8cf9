"""Agreement of raters: cases by hand, the libraries' numbers, what is left out."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from scipy.stats import spearmanr

from lmms_eval_tasks.utils.metrics.agreement import (
    Coefficient,
    ScorePair,
    kappa,
    krippendorff_alpha,
    row,
    spearman,
)

SCALE = [1, 2, 3, 4, 5]
TO_FIVE = range(6)
Numbers = Sequence[float | None]


def test_kappa_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, by chance 0.5.
    a, b = [1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert kappa(a, b, [0, 1]) == Coefficient(0.4, "", 50)
    # Disagreement 1 in one of 3 items; by chance 8 + (1 + 2) + 4 in 9 pairs.
    assert kappa([1, 2, 3], [1, 3, 3], [1, 2, 3], "quadratic").value == 1 - 3 / 15
    # docs/metrics.md: 0.80 with the labels left to the data, 0.768 with the scale 1..5.
    a, b = [1, 4, 5, 4, 5, 4, 1], [1, 1, 5, 5, 5, 4, 1]
    assert kappa(a, b, [1, 4, 5], "quadratic").value == pytest.approx(0.8, abs=5e-4)
    assert kappa(a, b, SCALE, "quadratic").value == pytest.approx(0.768, abs=5e-4)
    # Constant raters.
    assert kappa([4, 4, 4, 4], [1, 2, 4, 5], SCALE, "quadratic").value == 0
    for weights in (None, "quadratic"):
        both = kappa([4, 4, 4], [4, 4, 4], SCALE, weights)
        assert (both.value, both.n) == (None, 3)
        assert "one and the same label" in both.reason


def test_kappa_and_rho_are_the_libraries_and_have_no_order() -> None:
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
        both = list(zip(a, b, strict=True))
        rho = spearman(both)
        assert rho == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
        assert spearman(both[::-1]) == rho
    assert spearman([(3, 1), (3, 2)]) is spearman([(1, 2)]) is spearman([]) is None


def test_kappa_leaves_out_and_counts() -> None:
    a = [1, 2, None, 4.5, 5, None, 0, float("nan")]
    b = [1, 3, 3, 4, None, None, 9, 1]
    result = kappa(a, b, SCALE)
    assert (result.n, result.missing, result.off_scale) == (2, 3, 3)
    assert result.coverage == 0.25
    assert result.value == kappa([1, 2], [1, 3], SCALE).value
    nothing = Coefficient(None, "no item was rated on the scale by both", 0, 1, 0)
    assert kappa([None], [3], SCALE) == nothing


def test_alpha() -> None:
    # Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C onwards.
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    result = krippendorff_alpha(list(zip(*observers, strict=True)), SCALE)
    assert result.value == pytest.approx(0.849, abs=5e-4)
    assert (result.n, result.missing) == (11, 1)
    rated = [[1, 2, None], [2, 2, 9], [1, 9, None], [1, None, None], [3, 3, 3]]
    result = krippendorff_alpha(rated, SCALE)
    assert (result.n, result.missing, result.off_scale) == (3, 1, 1)
    kept = [[1, 2, None], [2, 2, None], [3, 3, 3]]
    assert result.value == krippendorff_alpha(kept, SCALE).value
    assert krippendorff_alpha([[2, 2], [2, 2]], SCALE).value is None
    assert "two raters" in krippendorff_alpha([[2, None]], SCALE).reason


# --- with published scores --------------------------------------------------------------------


def pairs(ours: Numbers, published: Numbers, clusters: Sequence[str] = ()) -> list[ScorePair]:
    """One question after the other."""
    videos = clusters or [f"v{n}" for n, _ in enumerate(ours)]
    return list(zip(ours, published, videos, strict=True))


def test_a_row_by_hand() -> None:
    given = pairs([0, 5, 3, None, 4], [0, 4, 3, 2, None])
    found = row(given, TO_FIVE)
    assert (found.n, found.missing) == (3, 1)
    assert (found.ours, found.published) == (pytest.approx(8 / 3), pytest.approx(7 / 3))
    assert (found.absolute, found.rho) == (pytest.approx(1 / 3), pytest.approx(1))
    # Observed 1 in 3; by chance (16 + 9) + (25 + 1 + 4) + (9 + 1) in 9 pairs.
    assert found.kappa == pytest.approx(1 - 3 / 65)
    assert found.intervals["absolute"].clusters == 3
    assert row(given[::-1], TO_FIVE) == found
    found = row(pairs([None, 3], [2, None]), TO_FIVE)
    assert (found.n, found.missing, found.intervals) == (0, 1, {})
    assert found.kappa is found.rho is found.absolute is found.ours is found.published is None
    assert row(pairs([0, 4.5, 3], [0, 4, 3]), TO_FIVE).kappa is None  # off the scale


def test_intervals_are_clustered_by_video() -> None:
    one = row(pairs([1, 2, 3], [1, 3, 3], clusters=["v"] * 3), TO_FIVE).as_dict()
    assert one["intervals"]["kappa"]["low"] is None
    # The mean distance without each of the three videos.
    three = row(pairs([1, 2, 3, 4], [1, 2, 5, 4], clusters=[*"aabc"]), TO_FIVE)
    values = [2 / 2, 2 / 3, 0]
    se = (2 / 3 * sum((one - sum(values) / 3) ** 2 for one in values)) ** 0.5
    found = three.intervals["absolute"]
    assert (found.estimate, found.se) == (0.5, pytest.approx(se))
    assert found.high - 0.5 == pytest.approx(4.302653 * se, rel=1e-6)  # t(2)
