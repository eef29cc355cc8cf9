"""What all judges of a process share during a run: limits, cache, prices, and what they did.

`current()` is the process's own run, made from the user's settings at first use; a command that
needs another (a batch, a benchmark) puts it in place with `use`.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lmms_eval_tasks import settings
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.limits import Breaker, Budget, Rate, share
from lmms_eval_tasks.judges.prices import Price, PriceList
from lmms_eval_tasks.judges.prices import load as load_prices
from lmms_eval_tasks.judges.report import Progress, lines
from lmms_eval_tasks.judges.verdict import (
    DEBATE,
    HUGGINGFACE,
    NONE,
    OPENAI,
    PANEL,
    REPLAY,
    Criterion,
    Judge,
    JudgeConfig,
    Provider,
    Reply,
    Verdict,
)
from lmms_eval_tasks.settings import JudgeLimits

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.cache import Cache
    from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider

CONCURRENCY = 16  # requests in flight over the whole run, if the user says nothing

Given = TypeVar("Given")
Made = TypeVar("Made")


# --- what verdicts took: calls, tokens and dollars by task and judge ------------------------------

_MAX_REASON = 160  # characters

_TASK: ContextVar[str] = ContextVar("lmms_eval_tasks_task", default="")


@contextmanager
def task(name: str) -> Iterator[None]:
    """Verdicts asked for inside the block belong to task `name`.

    Holds for the calling thread only: a thread started inside has to set it again.
    """
    token = _TASK.set(name)
    try:
        yield
    finally:
        _TASK.reset(token)


def current_task() -> str:
    """The task whose verdicts are being asked for; '' outside of `task`."""
    return _TASK.get()


@dataclass
class Row:
    """The sums of one task and judge. Dollars are rounded to 1e-12, so that order cannot matter.

    `calls` are replies: a request for n choices counts n. Tokens are those the endpoint reported.
    """

    task: str = ""
    judge: str = ""
    verdicts: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # status -> the latest one's reason
    repaired: int = 0
    paid_calls: int = 0  # in this run
    cached_calls: int = 0  # answered by our own cache
    retries: int = 0
    prompt_tokens: int = 0  # of all replies used, paid now or before
    completion_tokens: int = 0
    prefix_tokens: int = 0  # of prompt_tokens: read from the endpoint's own cache
    paid_prompt_tokens: int = 0
    paid_completion_tokens: int = 0
    unknown_tokens: int = 0  # replies used whose token counts the endpoint did not report
    cost: float = 0.0  # dollars; of all replies used, the unknown ones left out
    paid_cost: float = 0.0
    unknown_cost: int = 0  # replies used whose cost is unknown
    paid_unknown_cost: int = 0
    models: dict[str, int] = field(default_factory=dict)  # as named in the replies

    def add(self, other: Row) -> None:
        """Add the sums of another row; task and judge stay."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.cost, self.paid_cost = round(self.cost, 12), round(self.paid_cost, 12)
        self.by_status = dict(Counter(self.by_status) + Counter(other.by_status))
        self.reasons = {**self.reasons, **other.reasons}
        self.models = dict(Counter(self.models) + Counter(other.models))

    def copy(self) -> Row:
        """A row that no thread changes any more."""
        new = Row(self.task, self.judge)
        new.add(self)
        return new

    def as_dict(self) -> dict[str, Any]:
        """The same as plain types; dollars are None where no reply's price is known."""
        values = asdict(self)
        if self.calls and self.unknown_cost == self.calls:
            values["cost"] = None
        if self.paid_calls and self.paid_unknown_cost == self.paid_calls:
            values["paid_cost"] = None
        return values

    @property
    def calls(self) -> int:
        """Replies used."""
        return self.paid_calls + self.cached_calls


# Annotations are strings here.
_SUMS = [number.name for number in fields(Row) if number.type in ("int", "float")]


class Ledger:
    """Counts by task and judge; thread-safe.

    Attributes:
        done: verdicts that tasks got, of them `cached` without any call and `failed` without a
            score; the latest came at `last`, by the clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows: dict[tuple[str, str], Row] = {}
        self._clock, self._lock = clock, threading.Lock()
        self.done = self.cached = self.failed = 0
        self.last = clock()

    def given(self, *, cached: bool, failed: bool) -> None:
        """A task got a verdict."""
        with self._lock:
            self.done += 1
            self.cached += cached
            self.failed += failed
            self.last = self._clock()

    def reply(self, judge: str, reply: Reply, *, paid: bool, cost: float | None) -> None:
        """A reply was used: paid for now, or from our cache; `cost` in dollars, None: unknown."""
        prompt, completion = reply.prompt_tokens or 0, reply.completion_tokens or 0
        with self._lock:
            row = self._row(current_task(), judge)
            row.prompt_tokens += prompt
            row.completion_tokens += completion
            row.prefix_tokens += reply.cached_tokens
            row.unknown_tokens += reply.prompt_tokens is None or reply.completion_tokens is None
            row.unknown_cost += cost is None
            row.cost = round(row.cost + (cost or 0), 12)
            if reply.model:
                row.models[reply.model] = row.models.get(reply.model, 0) + 1
            if not paid:
                row.cached_calls += 1
                return
            row.paid_calls += 1
            row.paid_prompt_tokens += prompt
            row.paid_completion_tokens += completion
            row.paid_unknown_cost += cost is None
            row.paid_cost = round(row.paid_cost + (cost or 0), 12)

    def verdict(self, judge: str, verdict: Verdict) -> None:
        """A judge gave a verdict."""
        with self._lock:
            row = self._row(current_task(), judge)
            row.verdicts += 1
            row.by_status[verdict.status] = row.by_status.get(verdict.status, 0) + 1
            row.repaired += verdict.repaired
            if verdict.score is None and verdict.reason:
                row.reasons[verdict.status] = verdict.reason[:_MAX_REASON]

    def retry(self, judge: str) -> None:
        """A request is sent again after an error."""
        with self._lock:
            self._row(current_task(), judge).retries += 1

    def rows(self) -> list[Row]:
        """Copies of the sums, sorted by task and judge."""
        with self._lock:
            return [row.copy() for _, row in sorted(self._rows.items())]

    def total(self) -> Row:
        """The sum over all tasks and judges."""
        total = Row()
        for row in self.rows():
            total.add(row)
        return total

    def as_dicts(self) -> list[dict[str, Any]]:
        """The rows as plain types, to gather from other ranks and for results."""
        return [row.as_dict() for row in self.rows()]

    def merge(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows that `as_dicts` of another process gave; a rank must not merge its own.

        Raises:
            TypeError: a row has keys that are none of Row's.
        """
        for row in from_dicts(rows):
            with self._lock:
                self._row(row.task, row.judge).add(row)

    def _row(self, task: str, judge: str) -> Row:
        return self._rows.setdefault((task, judge), Row(task, judge))


def from_dicts(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows that `as_dicts` wrote; what an older version did not count is 0."""
    found: list[dict[str, Any]] = [
        {name: 0.0 if value is None else value for name, value in row.items()} for row in rows
    ]
    return [Row(**row) for row in found]


# --- the run --------------------------------------------------------------------------------------


@dataclasses.dataclass
class Endpoint:
    """The traffic of one judge in this process."""

    slots: threading.BoundedSemaphore  # one for each request in flight
    requests: Rate
    tokens: Rate
    breaker: Breaker
    price: Price | None  # None: unknown


class _Here(threading.local):
    """Replies that the calling thread paid for: a verdict's are all asked for in one thread."""

    paid = 0


class Run:
    """Limits are a run's: each of its processes (torchrun's ranks) takes its share.

    Args:
        cache: folder of the replies; None keeps none.
        wrap: puts something between engine and endpoints (batch.py).

    Raises:
        JudgeError: the cache or the prices cannot be used.
    """

    def __init__(
        self,
        limits: JudgeLimits,
        *,
        cache: Path | None = None,
        prices: PriceList | None = None,
        env: Mapping[str, str] | None = None,
        progress: bool = False,
        wrap: Callable[[OpenAIProvider], Provider] | None = None,
    ) -> None:
        variables = os.environ if env is None else env
        self.rank, self.world = (
            int(variables.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1))
        )
        self.limits = limits
        self._wrap = wrap
        self.ledger = Ledger()
        self.prices = load_prices(None) if prices is None else prices
        self.budget = Budget(
            share(limits.max_calls, self.rank, self.world),
            share(limits.max_cost, self.rank, self.world),
        )
        self.concurrency = (
            share(limits.concurrency or CONCURRENCY, self.rank, self.world, at_least=1) or 1
        )
        self.progress = Progress(self.ledger, enabled=progress, rank=self.rank, world=self.world)
        self.here = _Here()
        self.cache: Cache | None = None
        if cache is not None:
            from lmms_eval_tasks.judges.cache import Cache, file_of_node

            self.cache = Cache(file_of_node(cache, variables))
        self._resolved: dict[tuple[str | None, str], JudgeConfig] = {}
        self._judges: dict[JudgeConfig, Judge] = {}
        self._outermost: dict[JudgeConfig, _Outermost] = {}
        self._endpoints: dict[tuple[str, str | None], Endpoint] = {}
        self._lock = threading.RLock()

    def resolved(self, spec: str | None, default_model: str) -> JudgeConfig:
        """The judge of a short form or a file, with this process's keys: looked up once in a run.

        Every item asks for it; a file that changes meanwhile must not change the judge.

        Raises:
            JudgeError: as `judges.resolve`.
        """
        from lmms_eval_tasks.judges.config import resolve

        name = (spec, default_model)
        if name not in self._resolved:
            self._resolved[name] = resolve(spec, os.environ, default_model=default_model)
        return self._resolved[name]

    def outermost(self, config: JudgeConfig) -> _Outermost:
        """The judge that a benchmark asks: its verdicts move the progress bar."""
        with self._lock:
            if config not in self._outermost:
                self._outermost[config] = _Outermost(self.judge(config), self)
            return self._outermost[config]

    def judge(self, config: JudgeConfig) -> Judge:
        """The judge of `config`: one object for the run, so that its threads share one client."""
        with self._lock:
            if config not in self._judges:
                self._judges[config] = self._build(config)
            return self._judges[config]

    def _build(self, config: JudgeConfig) -> Judge:
        """The one place that knows every provider; opens no connection, loads no weights."""
        if config.provider in (OPENAI, HUGGINGFACE):
            from lmms_eval_tasks.judges.engine import LanguageJudge

            return LanguageJudge(config, self.provider(config), self)
        if config.provider in (REPLAY, NONE):
            from lmms_eval_tasks.judges.providers import replay

            return replay.judge(config)
        members = [self.judge(member) for member in config.members]
        if config.provider == PANEL:
            from lmms_eval_tasks.judges.panel import PanelJudge

            return PanelJudge(config, members)
        if config.provider == DEBATE:
            from lmms_eval_tasks.judges.debate import DebateJudge

            return DebateJudge(config, members[:-1], members[-1])
        raise JudgeError(f"no judge provider is called {config.provider!r}")

    def provider(self, config: JudgeConfig) -> Any:
        """What turns requests to a model into replies; new with each call."""
        if config.provider == HUGGINGFACE:
            from lmms_eval_tasks.judges.providers.huggingface import HuggingFaceProvider

            return HuggingFaceProvider(config)
        from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider

        provider = OpenAIProvider(config)
        return provider if self._wrap is None else self._wrap(provider)

    @property
    def task(self) -> str:
        """The task whose verdicts the calling thread asks for."""
        return current_task()

    def endpoint(self, config: JudgeConfig) -> Endpoint:
        """The traffic of a model; two judges on one model at one endpoint share its limits."""
        name = (config.label, config.api_version)
        with self._lock:
            if name not in self._endpoints:
                part = {"rank": self.rank, "world": self.world}
                self._endpoints[name] = Endpoint(
                    threading.BoundedSemaphore(self.concurrency),
                    Rate(share(self.limits.requests_per_minute, **part)),
                    Rate(share(self.limits.tokens_per_minute, **part)),
                    Breaker(self.limits.stop_after),
                    self.prices.of(config.model, config.base_url),
                )
            return self._endpoints[name]

    def price(self, config: JudgeConfig) -> Price | None:
        """The price of a model, None if it is unknown."""
        return self.endpoint(config).price

    def describe(self) -> dict[str, Any]:
        """Limits, cache and prices as plain types, for results."""
        return {
            **dataclasses.asdict(self.limits),
            "concurrency": self.limits.concurrency or CONCURRENCY,
            "cache": None if self.cache is None else str(self.cache.path),
            "prices": self.prices.origin,
        }

    def summary(self) -> str:
        """The same in words, for the line before a run."""
        limits = self.limits
        parts = [f"up to {limits.concurrency or CONCURRENCY} requests in flight"]
        if self.world > 1:
            parts[0] += f" over {self.world} processes"
        rates = (limits.requests_per_minute, "requests"), (limits.tokens_per_minute, "tokens")
        parts += [f"{rate:g} {what} a minute" for rate, what in rates if rate is not None]
        if limits.max_calls is not None:
            parts.append(f"at most {limits.max_calls} calls")
        if limits.max_cost is not None:
            parts.append(f"at most ${limits.max_cost:g}")
        parts.append("no cache" if self.cache is None else f"replies kept in {self.cache.path}")
        return ", ".join(parts)

    def left_out(self, config: JudgeConfig) -> dict[str, list[str]]:
        """Parameters that endpoints were found not to take, by judge."""
        from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider

        found = {}
        for model in config.endpoints:
            provider = getattr(self.judge(model), "provider", None)
            if isinstance(provider, OpenAIProvider) and provider.left_out:
                found[model.label] = provider.left_out
        return found

    def give_up(self, reason: str) -> None:
        """Send nothing more to any endpoint."""
        with self._lock:
            ends = list(self._endpoints.values())
        for end in ends:
            end.breaker.open(reason)

    def stopped(self) -> list[str]:
        """Why endpoints were given up, one line each."""
        with self._lock:
            ends = list(self._endpoints.items())
        return [f"{name[0]}: {end.breaker.reason}" for name, end in ends if end.breaker.is_open]

    def told(self) -> list[str]:
        """What its judges did and cost, and which endpoints were given up, a line each."""
        return [*lines(self.ledger.rows(), self.prices.origin), *self.stopped()]

    def close(self) -> None:
        """End the bar and the cache's connections."""
        self.progress.close()
        if self.cache is not None:
            self.cache.close()


class _Outermost(Judge):
    """A judge as the benchmark sees it: counted once, also where it asks several others."""

    def __init__(self, judge: Judge, run: Run) -> None:
        from lmms_eval_tasks.judges.engine import LanguageJudge

        self.config, self._judge, self._run = judge.config, judge, run
        self._counts_itself = isinstance(judge, LanguageJudge)

    def supports(self, criterion: str) -> bool:
        return self._judge.supports(criterion)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> Sequence[Verdict]:
        before = self._run.here.paid
        found = self._judge.verdicts(criterion, fields, samples)
        self._count(found, cached=before == self._run.here.paid)
        setup = f"{self.config.fingerprint}-{criterion.prompt_hash}"
        return [replace(verdict, setup=setup) for verdict in found]

    def _count(self, verdicts: Sequence[Verdict], *, cached: bool) -> None:
        ledger = self._run.ledger
        if self._run.progress.waits:
            self._run.progress.start()
        for verdict in verdicts:
            if not self._counts_itself:
                ledger.verdict(self.config.label, verdict)
            failed = verdict.score is None
            ledger.given(cached=cached and not failed, failed=failed)


_current: Run | None = None
_lock = threading.Lock()


def current() -> Run:
    """This process's run.

    Raises:
        TasksError: a setting, the cache or the prices cannot be used.
    """
    global _current  # noqa: PLW0603 - one run for each process is what is shared
    with _lock:
        if _current is None:
            _current = from_settings()
        return _current


def _after_fork() -> None:
    """A child makes a run of its own: every lock, client and connection belongs to a run."""
    global _current, _lock
    _current, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def from_settings(
    *,
    wrap: Callable[[OpenAIProvider], Provider] | None = None,
    progress: bool = True,
    **changes: object,
) -> Run:
    """A run with the user's settings; `changes` replace fields of the limits."""
    limits = dataclasses.replace(settings.judge_limits(), **changes)  # type: ignore[arg-type]
    own = load_prices(settings.value(settings.PRICES))
    return Run(limits, cache=settings.judge_cache(), prices=own, progress=progress, wrap=wrap)


@contextmanager
def use(run: Run) -> Iterator[Run]:
    """Make `run` the process's run inside the block, and close it afterwards."""
    global _current  # noqa: PLW0603
    before, _current = _current, run
    try:
        yield run
    finally:
        _current = before
        run.close()


def forget() -> None:
    """End the process's run; the next use reads the settings again."""
    global _current  # noqa: PLW0603
    if _current is not None:
        _current.close()
    _current = None


def ordered_map(function: Callable[[Given], Made], items: Sequence[Given], name: str) -> list[Made]:
    """`function` of every item, in the order of `items`; verdicts are booked under task `name`.

    An exception in one item is raised once the items that were begun are through.
    """
    run = current()
    run.progress.expect(len(items))

    def booked(item: Given) -> Made:
        with task(name):  # a context variable: threads do not inherit it
            return function(item)

    with ThreadPoolExecutor(max_workers=run.concurrency) as pool:
        try:
            return list(pool.map(booked, items))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            run.give_up("interrupted")  # or retries would go on for minutes
            say("interrupted: replies so far are kept, the same command goes on from there")
            raise
