"""Does a judge that answers better judge better? Its benchmark accuracy beside its kappa (6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

from lmms_eval_tasks.cvrr_es.reliability.leniency import folded
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.runs.agreement.scores import spearman


@dataclass(frozen=True)
class AccuracyAndKappa:
    """Spearman's rho over judges.

    Attributes:
        rho: -1 to 1; None with its `reason`.
        pairs: judge -> (accuracy as given, kappa), for judges that have both.
        without_accuracy, without_kappa: judges that are left out.
        unknown: names with an accuracy that no judge has.
    """

    rho: float | None
    reason: str
    pairs: Mapping[str, tuple[float, float]]
    without_accuracy: tuple[str, ...] = ()
    without_kappa: tuple[str, ...] = ()
    unknown: tuple[str, ...] = field(default=())


def against_kappa(
    kappas: Mapping[str, float | None], accuracies: Mapping[str, float]
) -> AccuracyAndKappa:
    """Rank correlation of judges' own accuracy with their agreement with the reference.

    Args:
        kappas: judge -> kappa, None where it is undefined.
        accuracies: judge -> accuracy on the benchmark, all in % or all as shares; names may differ
            from the judges' in case and punctuation.

    Raises:
        DataError: an accuracy that is no number from 0 to 100, two of one judge, or shares mixed
            with %.
    """
    given: dict[str, float] = {}
    for name, accuracy in accuracies.items():
        if folded(name) in given:
            raise DataError(
                f"accuracy of {name}: there are two, under names that differ in case or "
                "punctuation only: keep one"
            )
        given[folded(name)] = _accuracy(name, accuracy)
    if any(0 < value <= 1 for value in given.values()) and max(given.values()) > 1:
        raise DataError(
            "accuracies of judges: some are at most 1 and some above: give all as shares from 0 to "
            "1, or all in %"
        )
    pairs: dict[str, tuple[float, float]] = {}
    for judge, kappa in kappas.items():
        if kappa is not None and folded(judge) in given:
            pairs[judge] = (given[folded(judge)], kappa)
    rho, reason = _rho(list(pairs.values()))
    names = {folded(judge) for judge in kappas}
    return AccuracyAndKappa(
        rho,
        reason,
        pairs,
        tuple(judge for judge in kappas if folded(judge) not in given),
        tuple(judge for judge, kappa in kappas.items() if kappa is None),
        tuple(name for name in accuracies if folded(name) not in names),
    )


def _accuracy(name: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= float(given) <= 100:
        raise DataError(f"accuracy of {name}: {given!r} is no number from 0 to 100")
    return float(given)


def _rho(pairs: list[tuple[float, float]]) -> tuple[float | None, str]:
    if len(pairs) < 3:
        return None, f"{len(pairs)} judges have both numbers: two points always lie on a line"
    rho = spearman(pairs)
    if rho is None:
        return None, "all judges have the same accuracy, or the same kappa"
    return rho, ""
