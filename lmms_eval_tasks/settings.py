"""All settings of the package in one table: the source of options, variables, docs and messages.

A setting is an option of `lmms_eval` (`--max-cost`) and an environment variable
(`LMMS_EVAL_TASKS_MAX_COST`). The variable also works for runs that another command or a program
starts. The option takes precedence over the variable. A setting is read when it is used, never at
import.
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
    """A setting: the name of its variable, a text, with attributes. T_co is its value's type."""

    form: Any  # converts a text into the value: a type that pydantic reads, or a function
    metavar: str  # name of the value in help texts; "" for a switch
    help: str  # the setting's effect, in one line
    default: T_co  # the value if the setting is not set
    is_option: bool  # True if it is also an option of `lmms_eval`

    @property
    def option(self) -> str:
        """The option on the command line, such as `--max-cost`."""
        return "--" + self.removeprefix(PREFIX).lower().replace("_", "-")


TABLE: dict[str, Setting[Any]] = {}  # by variable


CHOICES = "NAME=VALUE,..."  # metavar of a setting that `chosen` reads


def declare(
    name: str,
    form: Any,
    metavar: str,
    description: str,
    default: Any = None,
    *,
    is_option: bool = True,
) -> Setting[Any]:
    """Add a setting to the table; a benchmark's settings.py calls this for its own settings.

    Args:
        name: name of the variable, without PREFIX.
        form: the converter of a text that is not empty into the value: a type that pydantic reads,
            or a function, which raises a ValueError for a wrong text.
        metavar: name of the value in help texts; "" for a switch.
        description: the setting's effect, in one line.
        default: the value if the setting is not set.
        is_option: True if it is also an option of `lmms_eval`.

    Raises:
        ValueError: the name is malformed, or already declared.
    """
    entry: Setting[Any] = Setting(PREFIX + name)
    if not re.fullmatch("[A-Z][A-Z0-9_]*", name):
        raise ValueError(f"a setting cannot be called {name!r}: expected capitals, digits and _")
    if entry in TABLE:
        raise ValueError(f"there is a setting {entry} already")
    entry.form, entry.metavar, entry.help, entry.is_option = form, metavar, description, is_option
    entry.default = False if form is bool else default
    TABLE[entry] = entry
    return entry


# --- forms ----------------------------------------------------------------------------------------

_Count = Annotated[int, Ge(0)]
_Positive = Annotated[float, Gt(0), Lt(math.inf)]
_AtLeast0 = Annotated[float, Ge(0), Lt(math.inf)]


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _frames(text: str) -> list[tuple[str, int]]:
    """Return `32,video7=16` as [("", 32), ("video7", 16)]."""
    found = []
    for part in text.split(","):
        name, _, number = part.strip().rpartition("=")
        if not number.isdigit() or int(number) < 1:
            raise ValueError("expected a form like 32 or 32,video7=16")
        found.append((name, int(number)))
    return found


def _pictures(text: str) -> tuple[str, str]:
    """Return `jpeg:85` as ("JPEG", "85")."""
    name, _, quality = text.strip().lower().partition(":")
    if name == "png" and not quality:
        return "PNG", ""
    if name != "jpeg" or (quality and not (quality.isdigit() and 1 <= int(quality) <= 95)):
        raise ValueError("expected png, jpeg or jpeg:QUALITY, from 1 to 95")
    return "JPEG", quality or "85"


def paths(text: str) -> list[Path]:
    """Return the paths in `PATH,...`.

    Raises:
        ValueError: a path does not exist.
    """
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
)  # no option, since it belongs to the machine, not to a run
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
    """Return the user's text for a setting, without spaces around it; "" if it is not set."""
    run = context.current()
    around: Mapping[str, str] = os.environ if run.environment is None else run.environment
    return run.options.get(variable, around.get(variable, "")).strip()


def value(variable: Setting[T]) -> T:
    """Return a setting's value in its type; its default if it is not set.

    Raises:
        TasksError: the text does not fit; the message names the variable and the expected form.
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
    except Exception as error:  # a ValueError, or any error of another package's form
        errors = getattr(error, "errors", None)  # pydantic's own message has several lines
        why = errors()[0]["msg"] if errors else error
        raise TasksError(f"{as_typed(variable)}: {why}") from None


def as_typed(variable: Setting[Any]) -> str:
    """Return a setting as the user typed it: `--max-cost '5'` or `LMMS_EVAL_TASKS_MAX_COST=5`."""
    given, is_option = text(variable), variable in context.current().options
    return f"{variable.option} {given!r}" if is_option else f"{variable}={given!r}"


def set_options(values: Mapping[str, Any]) -> None:
    """Set options by their settings' variables, from now on; a value of None changes nothing."""
    run = context.current()
    run.options, run.values = {**run.options, **_texts(values)}, {}


def use_options(values: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Return a context manager in which options have these values, by their settings' variables."""
    return context.with_options(_texts(values))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {variable: str(one) for variable, one in values.items() if one is not None}


def check_settings() -> None:
    """Read every setting once, before the model is loaded.

    Raises:
        TasksError: a variable is misspelt, or its text does not fit its form.
    """
    check_names()
    for variable in TABLE.values():
        value(variable)


def take() -> None:
    """Copy the environment's settings into the run that begins; it ignores later changes."""
    context.current().environment = {one: os.environ[one] for one in TABLE if one in os.environ}


def check_names() -> None:
    """Check that each variable with our prefix is a setting.

    Raises:
        TasksError: a variable is not a setting, so that it would have no effect.
    """
    for told in misspelt():
        raise TasksError(told)


def misspelt() -> Iterator[str]:
    """Yield a line for each variable in the environment that has our prefix and is no setting."""
    known = [one.removeprefix(PREFIX) for one in TABLE]
    for name in sorted(os.environ):
        found = re.match("LMMS_EVAL_TASKS?_", name, re.IGNORECASE)
        if found and name not in TABLE:
            near = nearest(name[found.end() :], known, PREFIX)
            yield f"{name}: no such setting{near}"


def markdown() -> str:
    """Return the Markdown table of docs/settings.md."""
    lines = ["| option of `lmms_eval` | variable | meaning |", "|---|---|---|"]
    for one in TABLE.values():
        option = f"`{f'{one.option} {one.metavar}'.strip()}`" if one.is_option else ""
        cells = (option, f"`{one}`", one.help)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def read_choices(variable: Setting[Any], choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the value of each option in a setting of the form `NAME=VALUE,...`.

    Args:
        variable: the setting.
        choices: the allowed values of each option; the first one is its default.

    Raises:
        TasksError: an option is unknown or is given twice, or its value is not allowed.
    """
    by_name: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text(variable).split(","))):
        name, _, choice = (piece.strip() for piece in part.partition("="))
        if choice not in choices.get(name, ()) or name in by_name:
            forms = ", ".join(f"{option}={'|'.join(values)}" for option, values in choices.items())
            raise TasksError(
                f"{as_typed(variable)}: {part}: expected {forms}, each name at most once"
            )
        by_name[name] = choice
    return {name: by_name.get(name, values[0]) for name, values in choices.items()}


def setting_note(variable: Setting[Any]) -> str:
    """Return a line for the results if the user changed a setting; "" if it is the default."""
    given = text(variable)
    value_ = f" {given}" if variable.metavar else ""
    return f"made with {variable.option}{value_}: not the default" if given else ""


# --- derived values -------------------------------------------------------------------------------


def cache_dir() -> Path:
    """Return the folder for clips, the packaged sample and downloaded metric files.

    The folder may not exist.
    """
    if (given := value(CACHE)) is not None:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("lmms-eval-tasks"))


def is_sample() -> bool:
    """Return True if the user named the packaged sample as the data."""
    return text(DATA) == SAMPLE


def data_root() -> Path:
    """Return the folder with a subfolder for each benchmark.

    Default: a folder in the user cache.
    """
    return cache_dir() / SAMPLE if is_sample() else value(DATA) or cache_dir() / "data"


def data_folder(benchmark: str, root: Path | None = None) -> Path:
    """Return a benchmark's folder below a data root; it may not exist.

    A root one level too deep, such as `--data data/maia`, is the folder itself.

    Args:
        benchmark: name of the benchmark.
        root: the data root; None for that of the settings.
    """
    root = data_root() if root is None else root
    place = root / benchmark
    return root if root.name == benchmark and not place.exists() else place


def required_folder(benchmark: str, title: str, how_to_get: str) -> Path:
    """Return a benchmark's folder below the data root, after checking that it exists.

    Raises:
        DataError: the folder does not exist; the message says how to get the data and where to put
            them.
    """
    place = data_folder(benchmark)
    if is_sample() and not place.is_dir():
        raise DataError(
            f"{title} has no packaged sample, or lacks a package (see lmms-eval-tasks doctor)"
        )
    if not place.is_dir():
        raise DataError(
            f"no {title} data at {place}. {how_to_get}. To put files in place: "
            f"lmms-eval-tasks data prepare {benchmark} --from DIR_OR_FILE (or pass "
            f"{DATA.option} ROOT, where ROOT/{benchmark} is as its README says, or "
            f"{DATA.option} {SAMPLE} for the packaged sample; variable: {DATA})"
        )
    return place


def judge_cache() -> Path | None:
    """Return the folder with the judges' replies; None if the user switched this cache off."""
    if text(JUDGE_CACHE).lower() in ("off", "none"):
        return None
    return _path(text(JUDGE_CACHE)) if text(JUDGE_CACHE) else cache_dir() / "judge"


@dataclass(frozen=True)
class JudgeLimits:
    """Limits for all judges of a run together, over all its processes; None means no limit."""

    concurrency: int | None = None  # requests at the same time; None: the judge's default
    requests_per_minute: float | None = None
    max_calls: int | None = None  # most replies that are paid for
    max_cost: float | None = None  # most US dollars that are spent
    stop_after: int = JUDGE_STOP_AFTER.default  # failed requests in a row that end a run; 0: never
    timeout: float | None = None  # seconds for each attempt at a request; None: the judge's own
    patience: float = JUDGE_PATIENCE.default  # seconds that a request waits for a busy endpoint


def judge_limits() -> JudgeLimits:
    """Return the limits that the user set for judges."""
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
    """Return the share (0..1) of verdicts or requests that may fail in a valid run."""
    return value(MAX_FAILED)


def frames_for(video: str, default: int = 32) -> int:
    """Return the number of uniform frames for a video.

    `--frames` may name exceptions (MAIA, 4.4).
    """
    frames: dict[str, int] = dict(reversed(value(FRAMES)))
    return frames.get(video, frames.get("", default))


# --- settings of benchmarks -----------------------------------------------------------------------


def _of_benchmarks() -> None:
    for name in registry.NAMES:
        if registry.has_part(name, "settings"):
            before = {*TABLE}
            try:
                registry.part(name, "settings")
            except registry.ERRORS as error:
                notify.notify(f"the options of {name} are not available ({error!r})")
            for one in set() if registry.is_ours(name) else {*TABLE} - before:
                # The name of another package's setting has to begin with the benchmark's name. Any
                # other name could be an option of lmms-eval or a setting of another benchmark.
                if not one.startswith(f"{PREFIX}{re.sub('[^A-Z0-9]', '_', name.upper())}"):
                    del TABLE[one]
                    notify.notify(
                        f"{one}: the name of a setting of {name} has to begin with the "
                        "benchmark's name"
                    )


_of_benchmarks()
