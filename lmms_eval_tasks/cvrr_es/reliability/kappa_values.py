"""A kappa with all that must stand beside it: counts, interval, band, and why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lmms_eval_tasks.utils import stats
from lmms_eval_tasks.utils.agreement import Coefficient
from lmms_eval_tasks.utils.stats import Interval

# Bands of 5.2, each up to and including its limit. The paper leaves gaps (.20 and .21 are in
# different bands, .205 in none): here a value belongs to the upper band as soon as it is above the
# limit, before any rounding. The paper's "close to 0" is no limit: 0 and below is none.
BANDS: tuple[tuple[float, str], ...] = (
    (0.0, "none"),
    (0.2, "slight"),
    (0.4, "fair"),
    (0.6, "moderate"),
    (0.8, "substantial"),
    (1.0, "almost perfect"),
)


def band(value: float) -> str:
    """The band of agreement of a kappa.

    Raises:
        ValueError: above 1, or nan.
    """
    for limit, name in BANDS:
        if value <= limit:
            return name
    raise ValueError(f"{value} is no kappa")


def average(kappas: Iterable[float | None]) -> float | None:
    """Mean of those that are defined, each counted alike, as in Table 5; None if none is."""
    defined = [kappa for kappa in kappas if kappa is not None]
    return stats.mean(defined) if defined else None


@dataclass(frozen=True)
class Kappa:
    """Quadratic weighted kappa over some items.

    Attributes:
        agreement: the value (-1 to 1; None with its reason) and what was left out: `missing` items
            lack one of the two ratings, `off_scale` ones have a rating that is not whole (4.5).
        interval: 95 %, by bootstrap over videos; None with the reason in `no_interval`.
        note: that a side is constant, which makes a kappa of 0 say nothing; else empty.
    """

    agreement: Coefficient
    interval: Interval | None
    no_interval: str
    note: str = ""

    @property
    def value(self) -> float | None:
        """Kappa, or None."""
        return self.agreement.value

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = self.agreement
        return {
            **_shown(found.value, self.interval, self.no_interval),
            "reason": found.reason,
            "n": found.n,
            "missing": found.missing,
            "not_whole": found.off_scale,
            "coverage": found.coverage,
            "note": self.note,
        }


@dataclass(frozen=True)
class MeanKappa:
    """A mean of kappas, each counted alike however many items it has; undefined ones are left out.

    Attributes:
        value: -1 to 1; None if no kappa is defined, see `reason`.
        defined, cells: kappas that count, and all.
        interval: as of `Kappa`; every resample's mean is over the kappas defined in it.
    """

    value: float | None
    reason: str
    defined: int
    cells: int
    interval: Interval | None
    no_interval: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        shown = _shown(self.value, self.interval, self.no_interval)
        return {**shown, "reason": self.reason, "defined": self.defined, "cells": self.cells}


def _shown(value: float | None, interval: Interval | None, no_interval: str) -> dict[str, Any]:
    return {
        "kappa": value,
        "percent": None if value is None else 100 * value,
        "band": None if value is None else band(value),
        "interval": interval.as_dict() if interval else None,
        "no_interval": no_interval,
    }
