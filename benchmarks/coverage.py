"""How often 95 % intervals hold the truth, by number of videos.

    python benchmarks/coverage.py [--worlds 2000]

In each world videos differ (a normal effect on every answer of a video) and the truth is the number
over endlessly many of them. The functions are those of runs and reports (utils/metrics/stats.py).
Statistics: a mean of ratings 0 to 5, a share (pair accuracy), a rare share (pools of eight that are
all right), a quadratic weighted kappa of two raters, a mean of rank correlations of videos, and the
difference of two models' shares on the same questions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm, rankdata

from lmms_eval_tasks.utils.metrics import stats

VIDEOS = (3, 5, 10, 20, 50, 100)
PER_VIDEO = 12
ENDLESS = 200_000  # videos of the truth
LEVELS = 5
_APART = ((np.arange(LEVELS)[:, None] - np.arange(LEVELS)[None]) / (LEVELS - 1)) ** 2

Rng = np.random.Generator
World = Callable[[Rng, int], Any]  # of so many videos: an array whose first axis is the videos


def ratings(rng: Rng, n: int) -> Any:
    """Ratings 0 to 5 of answers."""
    latent = 3 + rng.normal(0, 1, (n, 1)) + rng.normal(0, 1.3, (n, PER_VIDEO))
    return np.clip(np.round(latent), 0, 5)


def rights(centre: float) -> World:
    """Right or wrong answers."""

    def world(rng: Rng, n: int) -> Any:
        chance = expit(centre + rng.normal(0, 1, (n, 1)))
        return (rng.random((n, PER_VIDEO)) < chance).astype(float)

    return world


def rated_twice(rng: Rng, n: int) -> Any:
    """Each video's table of two raters' ratings."""
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
    """Each video's Spearman's rho of a noisy order of seven shots."""
    true = rng.normal(size=(n, 7))
    told = true * rng.gamma(2, 0.5, (n, 1)) + rng.normal(size=(n, 7))
    apart = rankdata(true, axis=1) - rankdata(told, axis=1)
    return (1 - 6 * (apart**2).sum(1) / (7 * 48))[:, None]


def paired(rng: Rng, n: int) -> Any:
    """Right or wrong answers of two models, minus each other."""
    hard, skill = rng.normal(0, 1, (n, PER_VIDEO)), rng.normal(0, 0.4, (n, 1))
    chance = np.stack([norm.cdf(0.6 + hard), norm.cdf(0.4 + hard + skill)])
    found = rng.random(chance.shape) < chance
    return found[1].astype(float) - found[0]


def kappa(tables: Sequence[Any]) -> float:
    """Quadratic weighted, of some videos."""
    table = np.sum(tables, axis=0)
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    return float(1 - (table * _APART).sum() / (expected * _APART).sum())


def of_mean(world: Any, *, share: bool = False) -> stats.Interval:
    """The interval of a mean."""
    names = [str(n) for n, own in enumerate(world) for _ in own]
    return stats.clustered_mean(world.ravel().tolist(), names, share=share)


def of_share(world: Any) -> stats.Interval:
    """The interval of a share."""
    return of_mean(world, share=True)


def of_kappa(world: Any) -> stats.Interval:
    """The interval of a kappa."""
    return stats.jackknife(kappa, list(world), [str(n) for n in range(len(world))])


CASES: dict[str, tuple[World, Callable[[Any], float], Callable[[Any], stats.Interval]]] = {
    "mean rating": (ratings, np.mean, of_mean),
    "share": (rights(0.9), np.mean, of_share),
    "rare share (pools)": (rights(-3.0), np.mean, of_share),
    "kappa": (rated_twice, kappa, of_kappa),
    "rank correlation": (orders, np.mean, of_mean),
    "paired difference": (paired, np.mean, of_mean),
}


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000)
    worlds = parser.parse_args().worlds
    print(f"{'videos':20}" + "".join(f"{n:>8}" for n in VIDEOS))
    for name, (world, truth, interval) in CASES.items():
        rng = np.random.default_rng(0)
        true = float(truth(world(rng, ENDLESS)))
        row = []
        for n in VIDEOS:
            found = (interval(world(rng, n)) for _ in range(worlds))
            row.append(sum(one.low <= true <= one.high for one in found) / worlds)
        print(f"{name:20}" + "".join(f"{100 * share:8.1f}" for share in row), flush=True)


if __name__ == "__main__":
    main()
