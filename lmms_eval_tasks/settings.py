"""Every setting a user can make through the environment, read when asked for and never at import.

The `lmms_eval` script turns its own options into these variables, so that they also reach runs that
are started by the host's commands and by torchrun.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_eval_tasks.errors import TasksError, nearest

DATA = "LMMS_EVAL_TASKS_DATA"
CACHE = "LMMS_EVAL_TASKS_CACHE"
PROMPTS = "LMMS_EVAL_TASKS_PROMPTS"
JUDGE = "LMMS_EVAL_TASKS_JUDGE"
JUDGE_CACHE = "LMMS_EVAL_TASKS_JUDGE_CACHE"
JUDGE_CONCURRENCY = "LMMS_EVAL_TASKS_JUDGE_CONCURRENCY"
JUDGE_RPM = "LMMS_EVAL_TASKS_JUDGE_RPM"
JUDGE_TPM = "LMMS_EVAL_TASKS_JUDGE_TPM"
JUDGE_STOP_AFTER = "LMMS_EVAL_TASKS_JUDGE_STOP_AFTER"
MODEL_STOP_AFTER = "LMMS_EVAL_TASKS_MODEL_STOP_AFTER"
FRESH = "LMMS_EVAL_TASKS_FRESH"
MAX_COST = "LMMS_EVAL_TASKS_MAX_COST"
MAX_CALLS = "LMMS_EVAL_TASKS_MAX_CALLS"
MAX_FAILED = "LMMS_EVAL_TASKS_MAX_FAILED"
PRICES = "LMMS_EVAL_TASKS_PRICES"
FRAMES = "LMMS_EVAL_TASKS_FRAMES"
STILL_CLIP = "LMMS_EVAL_TASKS_STILL_CLIP"
ALLOW_MISSING = "LMMS_EVAL_TASKS_ALLOW_MISSING_VIDEOS"
ALLOW_BAD_ITEMS = "LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS"
BERTSCORE = "LMMS_EVAL_TASKS_BERTSCORE"
BARTSCORE = "LMMS_EVAL_TASKS_BARTSCORE"
BASELINES = "LMMS_EVAL_TASKS_BASELINES"
HAVEN = "LMMS_EVAL_TASKS_HAVEN"
MAIA = "LMMS_EVAL_TASKS_MAIA"
MOVIERECAPSQA = "LMMS_EVAL_TASKS_MOVIERECAPSQA"
CVRR_CANDIDATES = "LMMS_EVAL_TASKS_CVRR_CANDIDATES"
CVRR_RATINGS = "LMMS_EVAL_TASKS_CVRR_RATINGS"
CVRR_REFERENCE = "LMMS_EVAL_TASKS_CVRR_REFERENCE"
CVRR_SELECTION = "LMMS_EVAL_TASKS_CVRR_SELECTION"
CVRR_NAME = "LMMS_EVAL_TASKS_CVRR_NAME"
CLIPSCORE = "LMMS_EVAL_TASKS_CLIPSCORE"
TABLES = "LMMS_EVAL_TASKS_TABLES"
# All of the above, and those of them that are switches.
_PREFIX = "LMMS_EVAL_TASKS_"
VARIABLES = tuple(one for one in globals().values() if re.match(_PREFIX + ".", str(one)))
SWITCHES = (STILL_CLIP, ALLOW_MISSING, ALLOW_BAD_ITEMS, FRESH)

SAMPLE = "sample"
# Judged metrics that benchmarks offer beside their own, on request: each costs further requests.
JUDGED_BASELINES = ("geval", "helmet")
_YES = {"1", "true", "yes", "on"}
_NO = {"", "0", "false", "no", "off"}


def _path(name: str) -> Path | None:
    given = os.environ.get(name, "").strip()
    return Path(given).expanduser() if given else None


def cache_dir() -> Path:
    """Folder for clips, the packaged sample and downloaded metric files. Not created here."""
    if given := _path(CACHE):
        return given
    import platformdirs

    return Path(platformdirs.user_cache_dir("lmms-eval-tasks"))


def is_sample() -> bool:
    """True when the user asked for the packaged sample by name."""
    return os.environ.get(DATA) == SAMPLE


def data_root() -> Path:
    """Folder with one subfolder per benchmark; the user cache if nothing is set."""
    return cache_dir() / SAMPLE if is_sample() else _path(DATA) or cache_dir() / "data"


def prompts_dir() -> Path | None:
    """Folder whose `<benchmark>/<file>` replace ours, or None."""
    return _path(PROMPTS)


def judge_spec() -> str | None:
    """The judge in its short form (`MODEL[@BASE_URL]`, `hf:MODEL`, `none`), or None if unset."""
    return os.environ.get(JUDGE) or None


def judge_cache() -> Path | None:
    """Folder of the judges' replies; None if the user switched the cache off."""
    if os.environ.get(JUDGE_CACHE, "").strip().lower() in ("off", "none"):
        return None
    return _path(JUDGE_CACHE) or cache_dir() / "judge"


def prices_file() -> Path | None:
    """The user's own prices, or None."""
    return _path(PRICES)


def max_failed() -> float:
    """Share of a task's items, 0..1, whose judgement may fail before the run counts as invalid."""
    share = _number(MAX_FAILED, 0)
    if share is not None and share > 1:
        raise TasksError(f"{MAX_FAILED}={os.environ[MAX_FAILED]!r}: expected a share in 0..1")
    return 0.05 if share is None else share


def model_stop_after() -> int:
    """After how many failed requests in a row a model's run stops; 0 never."""
    number = _number(MODEL_STOP_AFTER, 0, whole=True)
    return 20 if number is None else int(number)


def fresh() -> bool:
    """True to ask for replies that were kept of a run that was stopped anew."""
    return _flag(FRESH)


@dataclass(frozen=True)
class JudgeLimits:
    """What the judges of a whole run may use, over all its processes; None is no limit."""

    concurrency: int | None = None  # requests in flight; None is the judge's default
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_calls: int | None = None  # replies paid for
    max_cost: float | None = None  # US dollars
    stop_after: int = 20  # failed requests in a row; 0 never stops


def judge_limits() -> JudgeLimits:
    """The user's limits.

    Raises:
        TasksError: naming the variable that is not a number in range.
    """
    stop_after = _whole(JUDGE_STOP_AFTER, 0)
    return JudgeLimits(
        concurrency=_whole(JUDGE_CONCURRENCY, 1),
        requests_per_minute=_number(JUDGE_RPM, 0, above=True),
        tokens_per_minute=_number(JUDGE_TPM, 0, above=True),
        max_calls=_whole(MAX_CALLS, 0),
        max_cost=_number(MAX_COST, 0),
        stop_after=JudgeLimits.stop_after if stop_after is None else stop_after,
    )


def _whole(name: str, least: int) -> int | None:
    number = _number(name, least, whole=True)
    return None if number is None else int(number)


def _number(name: str, least: float, *, whole: bool = False, above: bool = False) -> float | None:
    """The number in a variable, None if it is not set; `above` excludes `least` itself."""
    given = os.environ.get(name, "").strip()
    if not given:
        return None
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    in_range = number > least if above else number >= least
    if not math.isfinite(number) or not in_range or (whole and number != int(number)):
        kind = "a whole number" if whole else "a number"
        raise TasksError(
            f"{name}={given!r}: expected {kind} {'above' if above else 'of at least'} {least:g}"
        )
    return number


def bertscore_model() -> str | None:
    """Name or path of the BERTScore encoder the user chose, or None for bert-score's default."""
    return os.environ.get(BERTSCORE) or None


def bartscore_model() -> str | None:
    """Name or path of the BARTScore model the user chose, or None: then it is not computed."""
    return os.environ.get(BARTSCORE, "").strip() or None


def clipscore_model() -> str | None:
    """Name or path of the CLIP model the user chose, or None: then CLIPScore is not computed."""
    return os.environ.get(CLIPSCORE, "").strip() or None


def paths(name: str) -> list[Path]:
    """The files and folders of a setting that may hold several, separated by commas.

    Raises:
        TasksError: one of them is not there.
    """
    given = (part.strip() for part in os.environ.get(name, "").split(","))
    found = [Path(part).expanduser() for part in given if part]
    for path in found:
        if not path.exists():
            raise TasksError(f"{name}: {path}: no such file or folder")
    return found


def judged_baselines() -> tuple[str, ...]:
    """The judged baselines that the user asked for, in the order of JUDGED_BASELINES; usually none.

    Raises:
        TasksError: the value is no comma list of their names.
    """
    given = os.environ.get(BASELINES, "")
    names = {name.strip().lower() for name in given.split(",") if name.strip()}
    if names - set(JUDGED_BASELINES) - {"none"} or ("none" in names and len(names) > 1):
        known = ", ".join(JUDGED_BASELINES)
        raise TasksError(f"{BASELINES}={given!r}: expected a comma list of {known}, or none")
    return tuple(name for name in JUDGED_BASELINES if name in names)


def all_tables() -> bool:
    """Show the tables of splits too, not only each paper's headline.

    Raises:
        TasksError: the value is neither `headline` nor `all`.
    """
    given = os.environ.get(TABLES, "").strip().lower()
    if given not in ("", "headline", "all"):
        raise TasksError(f"{TABLES}={given!r}: expected headline or all")
    return given == "all"


def allow_missing_videos() -> bool:
    """Leave out questions whose video is missing (they are counted) instead of stopping."""
    return _flag(ALLOW_MISSING)


def allow_bad_items() -> bool:
    """Leave out items that do not fit their schema (they are counted) instead of stopping."""
    return _flag(ALLOW_BAD_ITEMS)


def still_clip() -> bool:
    """Hand the 1-frame setting over as a clip of one repeated frame instead of an image."""
    return _flag(STILL_CLIP)


def frames_for(video: str, default: int = 32) -> int:
    """Number of uniform frames for `video`.

    The variable is a number, optionally followed by exceptions per video: `32,video7=16` (MAIA's
    paper lowered the count for some videos of one model, section 4.4).

    Raises:
        TasksError: the value is not of that form or a number is below 1.
    """
    frames = default
    for name, number in _frames():
        if name in ("", video):
            frames = number
            if name:
                break
    return frames


def told(variable: str) -> list[str]:
    """For what a run's numbers rest on: that the user set one of the variables."""
    value = os.environ.get(variable)
    return [f"made with {variable}={value}: not the default"] if value else []


def framed_videos() -> list[str]:
    """The videos that have a number of frames of their own.

    Raises:
        TasksError: as of `frames_for`.
    """
    return [name for name, _ in _frames() if name]


def _frames() -> list[tuple[str, int]]:
    given = os.environ.get(FRAMES)
    found = []
    for part in given.split(",") if given else []:
        name, _, number = part.strip().rpartition("=")
        if not number.isdigit() or int(number) < 1:
            raise TasksError(f"{FRAMES}={given!r}: expected a form like 32 or 32,video7=16")
        found.append((name, int(number)))
    return found


def check_names() -> None:
    """Is every variable of ours that is set one that exists?

    Raises:
        TasksError: one is not; it would have no effect.
    """
    options = [one.removeprefix(_PREFIX) for one in VARIABLES]
    for name in sorted(os.environ):
        found = re.match("LMMS_EVAL_TASKS?_", name, re.IGNORECASE)
        if found and name not in VARIABLES:
            near = nearest(name[found.end() :], options, _PREFIX)
            raise TasksError(f"{name}: there is no such setting{near}")


def check() -> None:
    """Read every setting that can be misspelt once, before a model is loaded.

    Raises:
        TasksError: naming the variable and the form it takes.
    """
    check_names()
    frames_for("")
    for switch in SWITCHES:
        _flag(switch)
    judge_limits()
    max_failed()
    model_stop_after()
    judged_baselines()
    all_tables()


def chosen(variable: str, choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The user's choices, as `NAME=VALUE,...` in a variable; the first value of each unless told.

    Args:
        variable: its name.
        choices: values by name.

    Raises:
        TasksError: an option is unknown, given twice, or has none of its values.
    """
    text = os.environ.get(variable, "")
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if value not in choices.get(name, ()) or name in given:
            forms = ", ".join(f"{one}={'|'.join(values)}" for one, values in choices.items())
            raise TasksError(f"{variable}={text!r}: {part}: expected each once of {forms}")
        given[name] = value
    return {name: given.get(name, values[0]) for name, values in choices.items()}


def _flag(name: str) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in _YES:
        return True
    if value in _NO:
        return False
    raise TasksError(f"{name}={value!r}: expected 1 or 0")
