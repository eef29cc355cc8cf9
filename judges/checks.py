"""Checks of a judge: its verdicts on answers whose verdicts are known.

`lmms-eval-tasks agreement` makes a check. It is stored beside the judge's replies under the judge's
settings and prompt, so that every later run of the same judge shows its result.
"""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges.verdict import NONE, REPLAY, JudgeConfig
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils.json_files import Json, JsonObject, write_json
from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.agreement import kappa

ITEMS = 40  # answers of a check, by default
# Kappa up to which two raters agree hardly more often than by chance: "slight" (Landis and Koch,
# 1977).
SLIGHT = 0.2
FEWEST = 10  # fewer answers prove nothing about a judge
TOO_FEW = "this may be chance; check more answers with --items N"
NEAR = 1  # points by which a rating may differ from the known one and still agree

# --- agreement with known verdicts ----------------------------------------------------------------


class VerdictPair(NamedTuple):
    """The known verdict on an answer, and the judge's."""

    known_score: float
    judged: int | None  # on the scale; None if the judge gave none
    cluster: str


def figures(pairs: Sequence[VerdictPair], scale: Sequence[int]) -> JsonObject:
    """Return figures of a judge's agreement with known verdicts; failures count as no agreement.

    Args:
        pairs: the verdicts.
        scale: all labels; more than two are ratings.

    Returns:
        `answers` and `failed`, counts; `agree`, the share of answers with the known verdict, or of
        ratings within NEAR of it; `kappa`, Cohen's over the answers with a verdict (quadratic
        weights for ratings), None if all known verdicts are equal; `counts` of the judge's verdicts
        by known verdict. `agree` and `kappa` have 95 % intervals (stats.Interval.as_dict).
    """
    is_rating = len(scale) > 2
    near = NEAR if is_rating else 0
    agree = [
        float(one.judged is not None and abs(one.judged - one.known_score) <= near) for one in pairs
    ]
    rated = [one for one in pairs if one.judged is not None]

    def coefficient(some: Sequence[VerdictPair]) -> float | None:
        sides = [one.known_score for one in some], [one.judged for one in some]
        return kappa(*sides, scale, "quadratic" if is_rating else None).value

    # If all known verdicts are equal, kappa is 0 whatever the judge replies.
    has_kappa = len({one.known_score for one in rated}) > 1 and coefficient(rated) is not None
    clusters = [one.cluster for one in rated]
    counts: dict[str, Counter[str]] = {}
    for one in pairs:
        judged = "none" if one.judged is None else f"{one.judged:g}"
        counts.setdefault(f"{one.known_score:g}", Counter())[judged] += 1
    return {
        "answers": len(pairs),
        "failed": len(pairs) - len(rated),
        "agree": stats.clustered_mean(agree, [one.cluster for one in pairs], share=True).as_dict(),
        "kappa": stats.jackknife(coefficient, rated, clusters, coefficient=True).as_dict()
        if has_kappa
        else None,
        "counts": {worth: dict(counts[worth]) for worth in sorted(counts, key=float)},
    }


# --- the line -------------------------------------------------------------------------------------


def line(check: Mapping[str, Json]) -> str:
    """Return one line on a check, with a warning if the judge's numbers should not be used.

    "judge checked: 93 % of 40, kappa 0.86 (MAIA, 2026-11-27)". Of several ratings it shows the one
    with the least agreement.

    Args:
        check: `verdicts` (figures by ask), `scale`, and the check's `title` and `date`.
    """
    name, weakest = min(check["verdicts"].items(), key=lambda one: _kappa(one[1]))
    share, doubt = f"{100 * weakest['agree']['estimate']:.0f} %", _doubt(weakest)
    within = " within one point" if len(check["scale"]) > 2 else ""
    parts = [f"judge checked: {share} of {weakest['answers']}{within}"]
    parts += [f"kappa {_kappa(weakest):.2f}"] if weakest["kappa"] else []
    parts += [f"{weakest['failed']} without a verdict"] if weakest["failed"] else []
    where = [check["title"], *([name] if len(check["verdicts"]) > 1 else []), check["date"]]
    return f"{', '.join(parts)} ({', '.join(where)})" + (doubt and f": {doubt}")


def _kappa(figures: Mapping[str, Json]) -> float:
    """Return the kappa; infinite if there is none, as when all answers are right."""
    return float(figures["kappa"]["estimate"]) if figures["kappa"] else math.inf


def _doubt(figures: Mapping[str, Json]) -> str:
    """Return the reason not to use a judge's numbers, or not yet; else "". Kappa 0 is chance."""
    if figures["failed"] == figures["answers"]:
        return "it gave no verdict: do not use its numbers"
    if figures["answers"] < FEWEST:
        return TOO_FEW
    if _kappa(figures) == math.inf:
        return ""
    if _kappa(figures) < -SLIGHT:
        return "worse than chance: do not use its numbers"
    if _kappa(figures) <= SLIGHT:
        return "no better than chance: do not use its numbers"
    low = figures["kappa"]["low"]
    return "" if low is None or low > 0 else TOO_FEW


# --- storage --------------------------------------------------------------------------------------


def file_of(benchmark: str, fingerprint: str) -> Path:
    """Return the file that stores the check of a judge, by its `judges.judge_fingerprint`."""
    folder = settings.judge_cache() or settings.cache_dir() / "judge"
    return folder / "checks" / f"{benchmark}-{fingerprint}.json"


def save_check(benchmark: str, fingerprint: str, check: Mapping[str, Json]) -> None:
    """Store a check for later runs, unless the stored one has more answers.

    If the file cannot be written, there is only a warning.
    """
    file, before = file_of(benchmark, fingerprint), saved_check(benchmark, fingerprint) or {}
    if _count(before) > _count(check):
        notify(
            f"an earlier check with more answers is kept: {before['line']}; to "
            f"replace it, delete {file}"
        )
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, check)
    except OSError as error:
        notify(f"{file}: the check of the judge cannot be saved ({error.strerror})")


def _count(check: Mapping[str, Json]) -> int:
    """Return the number of answers of a check."""
    return max((one["answers"] for one in check.get("verdicts", {}).values()), default=0)


def saved_check(benchmark: str, fingerprint: str) -> JsonObject | None:
    """Return the stored check of a judge with its prompt; None if none can be read."""
    try:
        check: Json = json.loads(file_of(benchmark, fingerprint).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return check if isinstance(check, dict) and isinstance(check.get("line"), str) else None


def record(
    benchmark: str, config: JudgeConfig, fingerprint: str, judge_name: str
) -> JsonObject | None:
    """Return the check of a run's judge for the results; its `line` is for people.

    Without a check the line is the command that makes one.

    Args:
        benchmark: the benchmark's name.
        config: the judge.
        fingerprint: the judge's settings and prompt (`judges.judge_fingerprint`).
        judge_name: the judge as the user has to name it (`--judge`).

    Returns:
        None if there is nothing to check (recorded replies, no judge) or no need (the paper's
        judge).
    """
    if config.provider in (NONE, REPLAY):
        return None
    if (found := saved_check(benchmark, fingerprint)) is not None:
        return found
    return (
        None
        if config.comparable
        else {"line": f"judge not checked; to check it: {command(benchmark, judge_name)}"}
    )


def command(benchmark: str, judge_name: str) -> str:
    """Return the command that checks a judge."""
    return f"lmms-eval-tasks agreement {benchmark} --judge {shlex.quote(judge_name)}"
