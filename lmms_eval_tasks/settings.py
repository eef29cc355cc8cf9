"""Every setting a user can make: one table, from which options, variables, docs and errors follow.

A setting is an option of `lmms_eval` (`--max-cost`) and a variable (`LMMS_EVAL_TASKS_MAX_COST`),
which also reaches runs started in other ways; the option stands above the variable. All are read
when asked for, never at import.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Annotated, Any, Generic, Literal, TypeVar, cast

from annotated_types import Ge, Gt, Le, Lt

from lmms_eval_tasks import context, notify, registry
from lmms_eval_tasks.errors import DataError, TasksError, nearest

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
PREFIX = "LMMS_EVAL_TASKS_"
SAMPLE = "sample"


class Setting(str, Generic[T_co]):
    """One setting: its variable, as a text, with all that is known of it; T_co is what is read."""

    form: Any  # of a text that is not empty: a type that pydantic reads, or a function
    metavar: str  # what stands for the text, in help; "" of a switch
    help: str  # what it does, in one line
    default: T_co  # what holds where it is unset
    is_option: bool  # of `lmms_eval`

    @property
    def option(self) -> str:
        """The option on the command line."""
        return "--" + self.removeprefix(PREFIX).lower().replace("_", "-")


TABLE: dict[str, Setting[Any]] = {}  # by variable


CHOICES = "NAME=VALUE,..."  # metavar of what `chosen` reads


def declare(
    name: str, form: Any, metavar: str, told: str, default: Any = None, *, is_option: bool = True
) -> Setting[Any]:
    """Put a setting into the table, as a benchmark's settings.py does with its own.

    Args:
        name: of its variable, without PREFIX.
        form: of a text that is not empty: a type that pydantic reads, or a function that raises a
            ValueError.
        metavar: what stands for the text, in help; "" of a switch.
        told: what it does, in one line.
        default: what holds where it is unset.
        is_option: of `lmms_eval`, too.
    """
    made: Setting[Any] = Setting(PREFIX + name)
    if not re.fullmatch("[A-Z][A-Z0-9_]*", name):
        raise ValueError(f"a setting cannot be called {name!r}: expected capitals, digits and _")
    if made in TABLE:
        raise ValueError(f"there is a setting {made} already")
    made.form, made.metavar, made.help, made.is_option = form, metavar, told, is_option
    made.default = False if form is bool else default
    TABLE[made] = made
    return made


# --- forms ----------------------------------------------------------------------------------------

_Count = Annotated[int, Ge(0)]
_Positive = Annotated[float, Gt(0), Lt(math.inf)]
_AtLeast0 = Annotated[float, Ge(0), Lt(math.inf)]


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _frames(text: str) -> list[tuple[str, int]]:
    """`32,video7=16` as [("", 32), ("video7", 16)]."""
    found = []
    for part in text.split(","):
        name, _, number = part.strip().rpartition("=")
        if not number.isdigit() or int(number) < 1:
            raise ValueError("expected a form like 32 or 32,video7=16")
        found.append((name, int(number)))
    return found


def _pictures(text: str) -> tuple[str, str]:
    """`jpeg:85` as ("JPEG", "85")."""
    name, _, quality = text.strip().lower().partition(":")
    if name == "png" and not quality:
        return "PNG", ""
    if name != "jpeg" or (quality and not (quality.isdigit() and 1 <= int(quality) <= 95)):
        raise ValueError("expected png, jpeg or jpeg:QUALITY, from 1 to 95")
    return "JPEG", quality or "85"


def paths(text: str) -> list[Path]:
    """The form of `PATH,...`; a ValueError if nothing is in one."""
    found = [_path(part.strip()) for part in text.split(",") if part.strip()]
    for path in found:
        if not path.exists():
            raise ValueError(f"{path}: no such file or folder")
    return found


# --- the table ------------------------------------------------------------------------------------

_data = (
    "folder with one subfolder per benchmark, or `sample` for the packaged sample; default: "
    "data/ in the cache"
)
DATA: Setting[Path | None] = declare("DATA", _path, "ROOT", _data)
_cache = (
    "folder for clips, the packaged sample, judges' replies and data; default: the system's "
    "user cache"
)
CACHE: Setting[Path | None] = declare(
    "CACHE", _path, "DIR", _cache, is_option=False
)  # of the machine, not of a run
PROMPTS: Setting[Path | None] = declare(
    "PROMPTS", _path, "DIR", "use DIR/BENCHMARK/FILE in place of our prompt file of that name"
)
_tables = (
    "print the papers' tables below the first screen; `all` adds every split and lmms-eval's table"
)
TABLES: Setting[str | None] = declare("TABLES", Literal["headline", "all"], "headline|all", _tables)
REPORT: Setting[bool] = declare(
    "REPORT", bool, "", "write a page of the run beside its results (docs/report.md)"
)
JUDGE: Setting[str | None] = declare(
    "JUDGE", str, "SPEC", "judge of open answers (docs/judges.md); default: the paper's judge"
)
_kept = "folder for judges' replies, or `off` to keep none; default: judge/ in the cache"
JUDGE_CACHE: Setting[str | None] = declare("JUDGE_CACHE", str, "DIR|off", _kept)
_flight = "number of requests to a judge at the same time; default 16"
JUDGE_CONCURRENCY: Setting[int | None] = declare(
    "JUDGE_CONCURRENCY", Annotated[int, Ge(1)], "N", _flight
)
_wait = "time limit of one request to a judge; default 60, or what the judge's file says"
JUDGE_TIMEOUT: Setting[float | None] = declare("JUDGE_TIMEOUT", _Positive, "SECONDS", _wait)
_patience = "how long a question waits for a judge that says it is busy (429); default 300"
JUDGE_PATIENCE: Setting[float] = declare("JUDGE_PATIENCE", _AtLeast0, "SECONDS", _patience, 300.0)
JUDGE_RPM: Setting[float | None] = declare(
    "JUDGE_RPM", _Positive, "N", "at most N requests to a judge per minute"
)
_given_up = "stop asking a judge after N failed requests in a row; default 20, 0 for never"
JUDGE_STOP_AFTER: Setting[int] = declare("JUDGE_STOP_AFTER", _Count, "N", _given_up, 20)
MAX_CALLS: Setting[int | None] = declare(
    "MAX_CALLS",
    _Count,
    "N",
    "pay for at most N replies of judges; further answers stay without a verdict",
)
MAX_COST: Setting[float | None] = declare(
    "MAX_COST",
    _AtLeast0,
    "DOLLARS",
    "pay at most this much for judges; further answers stay without a verdict",
)
_failed = (
    "share of verdicts, or of requests to the model, that may fail before a run is "
    "INVALID; default 0.05"
)
MAX_FAILED: Setting[float] = declare(
    "MAX_FAILED", Annotated[float, Ge(0), Le(1)], "SHARE", _failed, 0.05
)
PRICES: Setting[Path | None] = declare(
    "PRICES", _path, "FILE", "file with your prices of models (docs/judges.md)"
)
_ended = "stop the run after N failed requests to the model in a row; default 20, 0 for never"
MODEL_STOP_AFTER: Setting[int] = declare("MODEL_STOP_AFTER", _Count, "N", _ended, 20)
_positions = (
    "positions of the text after a video in transformers 5: corrected (`right`) or as "
    "installed (docs/models.md)"
)
MODEL_POSITIONS: Setting[str] = declare(
    "MODEL_POSITIONS", Literal["right", "installed"], "right|installed", _positions, "right"
)
_sent = (
    "how chat classes send frames to an endpoint: `png` is exact, `jpeg` is about a seventh of "
    "its size"
)
MODEL_PICTURES: Setting[tuple[str, str] | None] = declare(
    "MODEL_PICTURES", _pictures, "png|jpeg[:85]", _sent, None
)
FRESH: Setting[bool] = declare(
    "FRESH", bool, "", "generate all replies again, also those that a stopped run has kept"
)
_uniform = (
    "number of uniform frames of a video, or one per video (`32,video7=16`); default: 32 for "
    "MAIA, else the whole segment"
)
FRAMES: Setting[Sequence[tuple[str, int]]] = declare("FRAMES", _frames, "N", _uniform, ())
_missing = "skip questions whose video is missing or unreadable; the results count them"
ALLOW_MISSING: Setting[bool] = declare("ALLOW_MISSING_VIDEOS", bool, "", _missing)
ALLOW_BAD_ITEMS: Setting[bool] = declare(
    "ALLOW_BAD_ITEMS", bool, "", "skip items with errors; the results count them"
)
BERTSCORE: Setting[str | None] = declare(
    "BERTSCORE",
    str,
    "MODEL",
    "encoder of BERTScore: a folder, or a name in the local Hugging Face cache",
)


# --- reading --------------------------------------------------------------------------------------


def text(variable: str) -> str:
    """The user's value as written; "" if it is not set."""
    run = context.current()
    around: Mapping[str, str] = os.environ if run.environment is None else run.environment
    return run.options.get(variable, around.get(variable, "")).strip()


def value(variable: Setting[T]) -> T:
    """The user's value in the setting's type; its default if it is not set.

    Raises:
        TasksError: naming the variable and the form it takes.
    """
    run = context.current()
    if run.environment is None:
        return _read(variable)
    if variable not in run.values:
        run.values[variable] = _read(variable)
    return cast(T, run.values[variable])


def _read(variable: Setting[T]) -> T:
    if not (given := text(variable)):
        return variable.default
    reads = variable.form
    if not isinstance(reads, FunctionType):
        from pydantic import TypeAdapter

        reads = TypeAdapter(reads).validate_python
    try:
        return cast(T, reads(given))
    except Exception as error:  # a ValueError, or what somebody's form raises
        errors = getattr(error, "errors", None)  # pydantic's, which is of several lines
        why = errors()[0]["msg"] if errors else error
        raise TasksError(f"{as_typed(variable)}: {why}") from None


def as_typed(variable: Setting[Any]) -> str:
    """A setting with its value as the user wrote it: with the option, or with the variable."""
    given, is_option = text(variable), variable in context.current().options
    return f"{variable.option} {given!r}" if is_option else f"{variable}={given!r}"


def say(given: Mapping[str, Any]) -> None:
    """Take over what options say, by variable, from now on; None says nothing."""
    run = context.current()
    run.options, run.values = {**run.options, **_texts(given)}, {}


def said(given: Mapping[str, Any]) -> AbstractContextManager[None]:
    """`say`, for a while, in this thread and in what is started from it in a run."""
    return context.with_options(_texts(given))


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    return {variable: str(one) for variable, one in given.items() if one is not None}


def check() -> None:
    """Read every setting once, before a model is loaded.

    Raises:
        TasksError: one is misspelt, or not of its form.
    """
    check_names()
    for variable in TABLE.values():
        value(variable)


def take() -> None:
    """Settle the settings of a run that begins: what the environment says later is not its own."""
    context.current().environment = {one: os.environ[one] for one in TABLE if one in os.environ}


def check_names() -> None:
    """Is every variable of ours that is set one that exists?

    Raises:
        TasksError: one is not; it would have no effect.
    """
    for told in misspelt():
        raise TasksError(told)


def misspelt() -> Iterator[str]:
    """A line on each variable of ours that is set and does not exist."""
    known = [one.removeprefix(PREFIX) for one in TABLE]
    for name in sorted(os.environ):
        found = re.match("LMMS_EVAL_TASKS?_", name, re.IGNORECASE)
        if found and name not in TABLE:
            near = nearest(name[found.end() :], known, PREFIX)
            yield f"{name}: no such setting{near}"


def markdown() -> str:
    """The table of docs/settings.md."""
    lines = ["| option of `lmms_eval` | variable | meaning |", "|---|---|---|"]
    for one in TABLE.values():
        option = f"`{f'{one.option} {one.metavar}'.strip()}`" if one.is_option else ""
        cells = (option, f"`{one}`", one.help)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def chosen(variable: Setting[Any], choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The user's choices, as `NAME=VALUE,...` in a setting; the first value of each unless told.

    Raises:
        TasksError: an option is unknown, given twice, or has none of its values.
    """
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text(variable).split(","))):
        name, _, choice = (piece.strip() for piece in part.partition("="))
        if choice not in choices.get(name, ()) or name in given:
            forms = ", ".join(f"{one}={'|'.join(values)}" for one, values in choices.items())
            raise TasksError(
                f"{as_typed(variable)}: {part}: expected {forms}, each name at most once"
            )
        given[name] = choice
    return {name: given.get(name, values[0]) for name, values in choices.items()}


def told(variable: Setting[Any]) -> str:
    """The line on a run's numbers that the user set a variable; "" if it is not set."""
    given = text(variable)
    value_ = f" {given}" if variable.metavar else ""
    return f"made with {variable.option}{value_}: not the default" if given else ""


# --- what several modules ask ---------------------------------------------------------------------


def cache_dir() -> Path:
    """Folder for clips, the packaged sample and downloaded metric files. Not created here."""
    if (given := value(CACHE)) is not None:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("lmms-eval-tasks"))


def is_sample() -> bool:
    """True when the user asked for the packaged sample by name."""
    return text(DATA) == SAMPLE


def data_root() -> Path:
    """Folder with one subfolder per benchmark; the user cache if nothing is set."""
    return cache_dir() / SAMPLE if is_sample() else value(DATA) or cache_dir() / "data"


def data_folder(benchmark: str) -> Path:
    """A benchmark's folder under the data root, whether it is there or not."""
    return data_root() / benchmark


def required_folder(benchmark: str, title: str, how_to_get: str) -> Path:
    """A benchmark's folder under the data root.

    Raises:
        DataError: it is not there; says how to get the data and where to put them.
    """
    place = data_folder(benchmark)
    if is_sample() and not place.is_dir():
        raise DataError(
            f"{title} has no packaged sample, or lacks a package (see lmms-eval-tasks doctor)"
        )
    if not place.is_dir():
        raise DataError(
            f"no {title} data at {place}. {how_to_get}. Then run: "
            f"lmms-eval-tasks data prepare {benchmark} --from DIR_OR_FILE (or pass "
            f"{DATA.option} ROOT, where ROOT/{benchmark} is as its README says, or "
            f"{DATA.option} {SAMPLE} for the packaged sample; variable: {DATA})"
        )
    return place


def judge_cache() -> Path | None:
    """Folder of the judges' replies; None if the user switched the cache off."""
    if text(JUDGE_CACHE).lower() in ("off", "none"):
        return None
    return _path(text(JUDGE_CACHE)) if text(JUDGE_CACHE) else cache_dir() / "judge"


@dataclass(frozen=True)
class JudgeLimits:
    """Limits of a run's judges, over all its processes; None is no limit."""

    concurrency: int | None = None  # requests in flight; None is the judge's default
    requests_per_minute: float | None = None
    max_calls: int | None = None  # replies paid for
    max_cost: float | None = None  # US dollars
    stop_after: int = JUDGE_STOP_AFTER.default  # failed requests in a row; 0 never stops
    timeout: float | None = None  # seconds of each attempt; None is the judge's own
    patience: float = JUDGE_PATIENCE.default  # seconds of waiting for a busy endpoint


def judge_limits() -> JudgeLimits:
    """The user's limits."""
    return JudgeLimits(
        concurrency=value(JUDGE_CONCURRENCY),
        requests_per_minute=value(JUDGE_RPM),
        max_calls=value(MAX_CALLS),
        max_cost=value(MAX_COST),
        stop_after=value(JUDGE_STOP_AFTER),
        timeout=value(JUDGE_TIMEOUT),
        patience=value(JUDGE_PATIENCE),
    )


def may_fail() -> float:
    """The share of verdicts or requests that may fail in a valid run."""
    return value(MAX_FAILED)


def frames_for(video: str, default: int = 32) -> int:
    """Number of uniform frames for `video`, which may be an exception (MAIA's paper, 4.4)."""
    named: dict[str, int] = dict(reversed(value(FRAMES)))
    return named.get(video, named.get("", default))


# --- of benchmarks --------------------------------------------------------------------------------


def _of_benchmarks() -> None:
    for name in registry.NAMES:
        if registry.has_part(name, "settings"):
            before = {*TABLE}
            try:
                registry.part(name, "settings")
            except registry.ERRORS as error:
                notify.say(f"the options of {name} are not available ({error!r})")
            for one in set() if registry.is_ours(name) else {*TABLE} - before:
                # Else an option could be lmms-eval's own, or another benchmark's.
                if not one.startswith(f"{PREFIX}{re.sub('[^A-Z0-9]', '_', name.upper())}"):
                    del TABLE[one]
                    notify.say(
                        f"{one}: the name of a setting of {name} has to begin with the "
                        "benchmark's name"
                    )


_of_benchmarks()
