"""The coverage of 95 % intervals, by number of videos, as tables for docs/statistics.md.

    python benchmarks/coverage.py [--worlds 1000]

Coverage is the share of worlds whose interval contains the truth. In each world, videos differ (by
a normal effect on every answer of a video), and the truth is the number over very many of them. The
functions are those of runs and reports (utils/metrics/stats.py).

A cell has the coverage in percent of the worlds with an interval, and in brackets the percentage of
worlds without one. For a difference of two models, the third table has the percentage of worlds
with p <= 0.05 although the models are equally good.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm, rankdata

from lmms_eval_tasks.utils.metrics import stats

VIDEOS = (3, 5, 10, 20, 50, 100)
PER_VIDEO = 12
ENDLESS = 100_000  # number of videos that give the truth
LEVELS = 5
_APART = ((np.arange(LEVELS)[:, None] - np.arange(LEVELS)[None]) / (LEVELS - 1)) ** 2

Rng = np.random.Generator
World = Callable[[Rng, int], Any]  # returns so many videos: an array whose first axis is the videos
Found = tuple[stats.Interval, float | None]  # an interval, and the p-value of a difference


def ratings(rng: Rng, n: int) -> Any:
    """Return ratings 0 to 5 of answers, (n, PER_VIDEO)."""
    latent = 3 + rng.normal(0, 1, (n, 1)) + rng.normal(0, 1.3, (n, PER_VIDEO))
    return np.clip(np.round(latent), 0, 5)


def rights(centre: float) -> World:
    """Return a world of right (1) or wrong (0) answers; `centre` is the mean log-odds."""

    def world(rng: Rng, n: int) -> Any:
        chance = expit(centre + rng.normal(0, 1, (n, 1)))
        return (rng.random((n, PER_VIDEO)) < chance).astype(float)

    return world


def rated_twice(rng: Rng, n: int) -> Any:
    """Return each video's table of two raters' ratings, (n, LEVELS, LEVELS)."""
    latent = rng.normal(0, 0.8, (n, 1)) + rng.normal(0, 1, (n, PER_VIDEO))
    own = rng.normal(0, 0.6, (n, 1))
    first, second = (
        np.clip(np.round(2 + latent + off + rng.normal(0, 0.6, latent.shape)), 0, 4).astype(int)
        for off in (0, own)
    )
    tables = np.zeros((n, LEVELS, LEVELS))
    np.add.at(tables, (np.repeat(np.arange(n), PER_VIDEO), first.ravel(), second.ravel()), 1)
    return tables


def orders(rng: Rng, n: int) -> Any:
    """Return each video's Spearman's rho of a noisy order of seven shots, (n, 1)."""
    true = rng.normal(size=(n, 7))
    told = true * rng.gamma(2, 0.5, (n, 1)) + rng.normal(size=(n, 7))
    apart = rankdata(true, axis=1) - rankdata(told, axis=1)
    return (1 - 6 * (apart**2).sum(1) / (7 * 48))[:, None]


def raters(wrong: Sequence[float]) -> World:
    """Return a world of raters compared with a reference: each video's tables of their ratings.

    Each rater misses the reference by 1 in the share `wrong` of answers.
    """

    def world(rng: Rng, n: int) -> Any:
        latent = rng.normal(0, 0.8, (n, 1)) + rng.normal(0, 1, (n, PER_VIDEO))
        truth = np.clip(np.round(2 + latent), 0, LEVELS - 1).astype(int)
        tables = np.zeros((n, len(wrong), LEVELS, LEVELS))
        for side, share in enumerate(wrong):
            off = rng.random(truth.shape) < share * np.exp(rng.normal(0, 0.5, (n, 1)))
            rating = np.clip(truth + off * rng.choice((-1, 1), truth.shape), 0, LEVELS - 1)
            videos = np.repeat(np.arange(n), PER_VIDEO)
            np.add.at(tables[:, side], (videos, truth.ravel(), rating.ravel()), 1)
        return tables

    return world


def two_scores(noises: Sequence[float]) -> World:
    """Return a world of answers' true values, with the values of two scorers."""

    def world(rng: Rng, n: int) -> Any:
        latent = rng.normal(0, 0.8, (n, 1)) + rng.normal(0, 1, (n, PER_VIDEO))
        told = [
            latent + rng.normal(0, 0.5, (n, 1)) + rng.normal(0, noise, latent.shape)
            for noise in noises
        ]
        return np.stack([latent, *told], axis=2)

    return world


def same(rng: Rng, n: int, size: int = PER_VIDEO) -> Any:  # noqa: ARG001
    """Return the same number of questions, `size`, for each of n videos."""
    return np.full(n, size)


def unequal(rng: Rng, n: int) -> Any:
    """Return 1 to 60 questions for each video, small numbers more often than large ones."""
    return np.round(np.exp(rng.uniform(0, math.log(60.49), n))).astype(int)


def models(shares: Sequence[float], sizes: Callable[[Rng, int], Any], alike: int = 1) -> World:
    """Return a world of right or wrong answers of models to the same questions; nan: no question.

    Questions and videos differ by normal effects that all models share. Each model also has a
    smaller effect of its own for each video. With these effects, the models' shares of right
    answers are `shares`.

    Args:
        shares: share of right answers of each model.
        sizes: returns the number of questions of each video.
        alike: number of answers to one question, such as a pool's pairs.
    """
    of_video, of_question, of_model = 0.6, 1.0, 0.3
    whole = math.sqrt(of_video**2 + of_question**2 + of_model**2 + 1)

    def world(rng: Rng, n: int) -> Any:
        count = sizes(rng, n)
        most = int(count.max())
        hard = rng.normal(0, of_video, (n, 1)) + rng.normal(0, of_question, (n, most))
        there = np.repeat(np.arange(most) < count[:, None], alike, axis=1)
        found = []
        for share in shares:
            own = np.repeat(hard + rng.normal(0, of_model, (n, 1)), alike, axis=1)
            right = own + rng.normal(0, 1, own.shape) < norm.ppf(share) * whole
            found.append(np.where(there, right, np.nan))
        return np.stack(found, axis=2)

    return world


def kappa(tables: Sequence[Any]) -> float:
    """Return the quadratically weighted kappa over some videos' tables."""
    table = np.sum(tables, axis=0)
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    return float(1 - (table * _APART).sum() / (expected * _APART).sum())


def kappa_of_one(tables: Sequence[Any]) -> float:
    """Return the only rater's kappa with the reference."""
    return kappa([own[0] for own in tables])


def kappa_rise(tables: Sequence[Any]) -> float:
    """Return the second rater's kappa with the reference minus the first's."""
    first, second = np.sum(tables, axis=0)
    return kappa([second]) - kappa([first])


def rho_rise(videos: Sequence[Any]) -> float:
    """Return the second scorer's rank correlation with the truth minus the first's."""
    ranks = rankdata(np.concatenate(list(videos)), axis=0)
    true, first, second = ranks.T
    return float(np.corrcoef(true, second)[0, 1] - np.corrcoef(true, first)[0, 1])


def mean_of(world: Any) -> float:
    """Return the mean of a world's answers."""
    return float(np.nanmean(world))


@cache
def endless(world: World, statistic: Callable[[Any], float]) -> float:
    """Return the statistic over very many videos, which is the truth."""
    return statistic(world(np.random.default_rng(0), ENDLESS))


def _rows(world: Any) -> tuple[list[float], list[str]]:
    """Return the values that are not nan, and each value's video."""
    kept = ~np.isnan(world)
    names = np.broadcast_to(np.arange(len(world))[:, None], world.shape)
    return world[kept].tolist(), [str(name) for name in names[kept]]


def of_mean(world: Any, *, share: bool = False) -> Found:
    """Return the interval of a mean."""
    return stats.clustered_mean(*_rows(world.reshape(len(world), -1)), share=share), None


def of_rise(world: Any) -> Found:
    """Return the interval and the p-value of a difference of means."""
    return stats.mean_difference(*_rows(world[..., 1] - world[..., 0]))


def jackknifed(statistic: Callable[[Sequence[Any]], float], world: Any) -> Found:
    """Return the interval of a statistic that is no mean, and the p-value if it is a difference."""
    found = stats.jackknife(statistic, list(world), [str(n) for n in range(len(world))])
    return found, stats.p_value(found)


# MAIA has 24 pools of eight pairs on each of its 100 videos.
POOLS: dict[str, Any] = {"sizes": partial(same, size=24)}
PAIRS: dict[str, Any] = {**POOLS, "alike": 8}
TWELVE: dict[str, Any] = {"sizes": same}
UNEQUAL: dict[str, Any] = {"sizes": unequal}
# A world, the truth in it, and the function for the interval.
Case = tuple[World, Callable[[], float], Callable[[Any], Found]]


def _mean(world: World, *, share: bool = True) -> Case:
    return world, partial(endless, world, mean_of), partial(of_mean, share=share)


def _share(true: float, **given: Any) -> Case:
    return models([true], **given), lambda: true, partial(of_mean, share=True)


def _other(world: World, statistic: Callable[[Any], float]) -> Case:
    return world, partial(endless, world, statistic), partial(jackknifed, statistic)


SINGLE: dict[str, Case] = {
    "mean rating, 0 to 5": _mean(ratings, share=False),
    "share, 68 %": _mean(rights(0.9)),
    "share, 7 %": _mean(rights(-3.0)),
    "share, 97 %": _share(0.97, **TWELVE),
    "pools, 1.7 %": _share(0.017, **POOLS),
    "pairs, 97 %": _share(0.97, **PAIRS),
    "share, 60 %, unequal videos": _share(0.60, **UNEQUAL),
    "share, 97 %, unequal videos": _share(0.97, **UNEQUAL),
    "kappa, 0.70": _other(rated_twice, kappa),
    "kappa, 0.99": _other(raters([0.02]), kappa_of_one),
    "mean rank correlation": _mean(orders, share=False),
}


def _rise(first: float, second: float, **given: Any) -> tuple[Case, World]:
    case = models([first, second], **given), lambda: second - first, of_rise
    return case, models([first, first], **given)


# Each case with the world in which the two models are equally good.
DIFFERENCES: dict[str, tuple[Case, World]] = {
    "share, 60 against 66 %": _rise(0.60, 0.66, **TWELVE),
    "share, 95 against 97 %": _rise(0.95, 0.97, **TWELVE),
    "pools, 1.7 against 3 %": _rise(0.017, 0.03, **POOLS),
    "pairs, 95 against 97 %": _rise(0.95, 0.97, **PAIRS),
    "share, 60 against 66 %, unequal videos": _rise(0.60, 0.66, **UNEQUAL),
    "share, 95 against 97 %, unequal videos": _rise(0.95, 0.97, **UNEQUAL),
    "kappas, 0.90 against 0.93": (
        _other(raters([0.30, 0.20]), kappa_rise),
        raters([0.25, 0.25]),
    ),
    "kappas, 0.98 against 0.99": (
        _other(raters([0.05, 0.02]), kappa_rise),
        raters([0.03, 0.03]),
    ),
    "rank correlations, 0.74 against 0.84": (
        _other(two_scores([1.0, 0.6]), rho_rise),
        two_scores([0.8, 0.8]),
    ),
}


def held(case: Case, n: int, worlds: int) -> str:
    """Return a cell: the coverage of intervals of n videos, and the share of worlds without one."""
    world, truth, interval = case
    true = truth()
    rng = np.random.default_rng(n)
    ends = [interval(world(rng, n))[0].ends for _ in range(worlds)]
    there = [end for end in ends if end is not None]
    share = 100 * sum(low <= true <= high for low, high in there) / max(1, len(there))
    none = f" ({100 - 100 * len(there) / worlds:.0f})" if len(there) < worlds else ""
    return f"{share:.1f}{none}" if there else "none"


def false_positives(interval: Callable[[Any], Found], equal: World, n: int, worlds: int) -> str:
    """Return a cell: the share of p <= 0.05 without a difference; "no p" if there is no p."""
    rng = np.random.default_rng(n)
    found = [p for _ in range(worlds) if (p := interval(equal(rng, n))[1]) is not None]
    return f"{100 * sum(p <= 1 - stats.LEVEL for p in found) / worlds:.1f}" if found else "no p"


def _table(head: str, rows: dict[str, Callable[[int], str]]) -> None:
    """Print a table with a column for each number of videos."""
    print(f"\n| {head} | {' | '.join(map(str, VIDEOS))} |\n|---|{'---|' * len(VIDEOS)}", flush=True)
    for name, cell in rows.items():
        print(f"| {name} | {' | '.join(map(cell, VIDEOS))} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    worlds = parser.parse_args().worlds
    _table("a number", {k: partial(held, case, worlds=worlds) for k, case in SINGLE.items()})
    _table(
        "a difference",
        {k: partial(held, case, worlds=worlds) for k, (case, _) in DIFFERENCES.items()},
    )
    _table(
        "p <= 0.05 without a difference",
        {
            k: partial(false_positives, case[2], equal, worlds=worlds)
            for k, (case, equal) in DIFFERENCES.items()
        },
    )


if __name__ == "__main__":
    main()
