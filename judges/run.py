"""What all judges of a process share during a run: limits, cache, ledger, prices, progress.

`current()` is the process's own, made from the user's settings at first use; a command that needs
another (a batch, a benchmark) puts it in place with `use`.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges.config import JudgeConfig
from lmms_eval_tasks.judges.ledger import Ledger, current_task, lines
from lmms_eval_tasks.judges.limits import Breaker, Budget, Rate, share
from lmms_eval_tasks.judges.locks import fork_safe_lock
from lmms_eval_tasks.judges.prices import Price, PriceList
from lmms_eval_tasks.judges.progress import Progress
from lmms_eval_tasks.settings import JudgeLimits

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.cache import Cache
    from lmms_eval_tasks.judges.exchange import Provider
    from lmms_eval_tasks.judges.openai_provider import OpenAIProvider
    from lmms_eval_tasks.judges.verdict import Criterion, Judge, Verdict

CONCURRENCY = 16  # requests in flight over the whole run, if the user says nothing


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
        limits: of the whole run.
        cache: folder of the replies; None keeps none.
        prices: the user's file over the packaged one.
        env: where torchrun's variables are looked up.
        progress: whether to show a bar.
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
        from lmms_eval_tasks.judges import prices as price_files

        variables = os.environ if env is None else env
        self.rank, self.world = (
            int(variables.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1))
        )
        self.limits = limits
        self._wrap = wrap
        self.ledger = Ledger()
        self.prices = price_files.load(None) if prices is None else prices
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
        from lmms_eval_tasks.judges.config_file import resolve

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
        from lmms_eval_tasks.judges.providers import build

        with self._lock:
            if config not in self._judges:
                self._judges[config] = build(config, self)
            return self._judges[config]

    def wrap(self, provider: OpenAIProvider) -> Provider:
        """The provider to use for an endpoint."""
        return provider if self._wrap is None else self._wrap(provider)

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
        from lmms_eval_tasks.judges.openai_provider import OpenAIProvider

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


class _Outermost:
    """A judge as the benchmark sees it: counted once, also where it asks several others."""

    def __init__(self, judge: Judge, run: Run) -> None:
        from lmms_eval_tasks.judges.engine import LanguageJudge

        self._judge, self._run = judge, run
        self._fingerprint = judge.config.fingerprint
        self._counts_itself = isinstance(judge, LanguageJudge)

    @property
    def config(self) -> JudgeConfig:
        return self._judge.config

    def supports(self, criterion: str) -> bool:
        return self._judge.supports(criterion)

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        before = self._run.here.paid
        verdict = self._judge.verdict(criterion, fields)
        self._count([verdict], cached=before == self._run.here.paid)
        return replace(verdict, setup=f"{self._fingerprint}-{criterion.prompt_hash}")

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> Sequence[Verdict]:
        before = self._run.here.paid
        found = self._judge.verdicts(criterion, fields, samples)
        self._count(found, cached=before == self._run.here.paid)
        return [
            replace(verdict, setup=f"{self._fingerprint}-{criterion.prompt_hash}")
            for verdict in found
        ]

    def _count(self, verdicts: Sequence[Verdict], *, cached: bool) -> None:
        for verdict in verdicts:
            if not self._counts_itself:
                self._run.ledger.verdict(current_task(), self.config.label, verdict)
            self._run.progress.done(cached and verdict.score is not None, verdict.score is None)


_current: tuple[int, Run] | None = None  # process id, run
_lock = fork_safe_lock()


def current() -> Run:
    """This process's run. After a fork the child makes its own.

    Raises:
        TasksError: a setting, the cache or the prices cannot be used.
    """
    global _current  # noqa: PLW0603 - one run for each process is what is shared
    found = _current
    if found is None or found[0] != os.getpid():
        with _lock:
            found = _current
            if found is None or found[0] != os.getpid():
                found = _current = (os.getpid(), from_settings())
    return found[1]


def from_settings(
    *,
    wrap: Callable[[OpenAIProvider], Provider] | None = None,
    progress: bool = True,
    **changes: object,
) -> Run:
    """A run with the user's settings; `changes` replace fields of the limits."""
    from lmms_eval_tasks.judges import prices

    limits = dataclasses.replace(settings.judge_limits(), **changes)  # type: ignore[arg-type]
    own = prices.load(settings.prices_file())
    return Run(limits, cache=settings.judge_cache(), prices=own, progress=progress, wrap=wrap)


@contextmanager
def use(run: Run) -> Iterator[Run]:
    """Make `run` the process's run inside the block, and close it afterwards."""
    global _current  # noqa: PLW0603
    before, _current = _current, (os.getpid(), run)
    try:
        yield run
    finally:
        _current = before
        run.close()


def forget() -> None:
    """End the process's run; the next use reads the settings again."""
    global _current  # noqa: PLW0603
    if _current is not None and _current[0] == os.getpid():
        _current[1].close()
    _current = None
