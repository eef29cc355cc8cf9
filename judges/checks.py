"""Is a judge any good: its verdicts on answers whose verdicts are known before it is asked.

`lmms-eval-tasks agreement` makes a check. It is kept beside the judge's replies under the judge's
settings and prompt, so that every later run of the same judge says how it did.
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
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.utils.json_files import Json, JsonObject, write_json
from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.agreement import kappa

ITEMS = 40  # answers of a check, if the user names no number
# Kappa up to which two raters agree about as often as by chance: "slight" (Landis and Koch, 1977).
SLIGHT = 0.2
FEWEST = 10  # answers below which a check says nothing of a judge
TOO_FEW = "this may be chance; check more answers with --items N"
NEAR = 1  # points that a rating may be away from the known one and still agree

# --- verdicts beside known ones -------------------------------------------------------------------


class VerdictPair(NamedTuple):
    """The known verdict on an answer and the judge's."""

    known: float
    judged: int | None  # on the scale; None: the judge gave none
    cluster: str


def figures(pairs: Sequence[VerdictPair], scale: Sequence[int]) -> JsonObject:
    """Return figures on how far a judge agrees with known verdicts; failures never agree.

    `agree` is the share of answers with the known verdict, or of ratings within NEAR of it; `kappa`
    is Cohen's over the answers with a verdict, of ratings with quadratic weights; None where all
    known verdicts are equal. Both have 95 % intervals (stats.Interval.as_dict). `counts` says how
    often which verdict came of a known one.
    """
    is_rating = len(scale) > 2
    near = NEAR if is_rating else 0
    agree = [float(one.judged is not None and abs(one.judged - one.known) <= near) for one in pairs]
    rated = [one for one in pairs if one.judged is not None]

    def coefficient(some: Sequence[VerdictPair]) -> float | None:
        sides = [one.known for one in some], [one.judged for one in some]
        return kappa(*sides, scale, "quadratic" if is_rating else None).value

    # Where all known verdicts are equal kappa is 0, whatever the judge says.
    has_kappa = len({one.known for one in rated}) > 1 and coefficient(rated) is not None
    clusters = [one.cluster for one in rated]
    counts: dict[str, Counter[str]] = {}
    for one in pairs:
        judged = "none" if one.judged is None else f"{one.judged:g}"
        counts.setdefault(f"{one.known:g}", Counter())[judged] += 1
    return {
        "answers": len(pairs),
        "failed": len(pairs) - len(rated),
        "agree": stats.clustered_mean(agree, [one.cluster for one in pairs], share=True).as_dict(),
        "kappa": stats.jackknife(coefficient, rated, clusters, coefficient=True).as_dict()
        if has_kappa
        else None,
        "counts": {worth: dict(counts[worth]) for worth in sorted(counts, key=float)},
    }


# --- in words -------------------------------------------------------------------------------------


def line(check: Mapping[str, Json]) -> str:
    """One line on a check, which says where a judge's numbers are not to be used.

    "judge checked: 93 % of 40, kappa 0.86 (MAIA, 2026-11-27)". Of several ratings it is the one
    that agrees least.

    Args:
        check: `verdicts` (figures by ask), `scale`, and what it was made on: `title`, `date`.
    """
    name, weakest = min(check["verdicts"].items(), key=lambda one: _kappa(one[1]))
    share, doubt = f"{100 * weakest['agree']['estimate']:.0f} %", _doubt(weakest)
    within = " within one point" if len(check["scale"]) > 2 else ""
    parts = [f"judge checked: {share} of {weakest['answers']}{within}"]
    parts += [f"kappa {_kappa(weakest):.2f}"] if weakest["kappa"] else []
    parts += [f"{weakest['failed']} without a verdict"] if weakest["failed"] else []
    where = [check["title"], *([name] if len(check["verdicts"]) > 1 else []), check["date"]]
    return f"{', '.join(parts)} ({', '.join(where)})" + (doubt and f": {doubt}")


def _kappa(one: Mapping[str, Json]) -> float:
    """The kappa; infinite where there is none, such as of answers that are all right."""
    return float(one["kappa"]["estimate"]) if one["kappa"] else math.inf


def _doubt(one: Mapping[str, Json]) -> str:
    """Return why a judge's numbers are not to be used, or not yet, or ""; kappa is 0 by chance."""
    if one["failed"] == one["answers"]:
        return "it gave no verdict: do not use its numbers"
    if one["answers"] < FEWEST:
        return TOO_FEW
    if _kappa(one) == math.inf:
        return ""
    if _kappa(one) < -SLIGHT:
        return "worse than chance: do not use its numbers"
    if _kappa(one) <= SLIGHT:
        return "no better than chance: do not use its numbers"
    low = one["kappa"]["low"]
    return "" if low is None or low > 0 else TOO_FEW


# --- kept -----------------------------------------------------------------------------------------


def file_of(benchmark: str, setup: str) -> Path:
    """Return the file in which the check of a judge with its prompt (`judges.setup`) is kept."""
    folder = settings.judge_cache() or settings.cache_dir() / "judge"
    return folder / "checks" / f"{benchmark}-{setup}.json"


def keep(benchmark: str, setup: str, check: Mapping[str, Json]) -> None:
    """Write a check for later runs, unless a kept one is of more answers.

    A file that cannot be written is told, and no more.
    """
    file, before = file_of(benchmark, setup), kept(benchmark, setup) or {}
    if _count(before) > _count(check):
        say(
            f"an earlier check with more answers is kept: {before['line']}; to "
            f"replace it, delete {file}"
        )
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, check)
    except OSError as error:
        say(f"{file}: the check of the judge cannot be saved ({error.strerror})")


def _count(check: Mapping[str, Json]) -> int:
    """The number of answers of a check."""
    return max((one["answers"] for one in check.get("verdicts", {}).values()), default=0)


def kept(benchmark: str, setup: str) -> JsonObject | None:
    """The check of a judge with its prompt, if one was made and can be read."""
    try:
        found: Json = json.loads(file_of(benchmark, setup).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("line"), str) else None


def record(benchmark: str, config: JudgeConfig, setup: str, shown: str) -> JsonObject | None:
    """The check of a run's judge, for its results: always with `line`, for people.

    Without a check the line is the command that makes one. None where there is nothing to check
    (recorded replies, nobody), or no need to: the paper's own judge.

    Args:
        shown: the judge as the user has to name it (`--judge`).
    """
    if config.provider in (NONE, REPLAY):
        return None
    if (found := kept(benchmark, setup)) is not None:
        return found
    return (
        None
        if config.comparable
        else {"line": f"judge not checked; to check it: {command(benchmark, shown)}"}
    )


def command(benchmark: str, shown: str) -> str:
    """The command that checks a judge."""
    return f"lmms-eval-tasks agreement {benchmark} --judge {shlex.quote(shown)}"
