"""The limits, cache, prices and counts that all judges of a process share during a run.

`current()` returns the process's session, which is made from the user's settings at first use. A
command that needs other settings (a batch, a measurement) sets its own session with `use`.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.config import resolve
from lmms_eval_tasks.judges.limits import (
    START,
    Breaker,
    Budget,
    Flight,
    Rate,
    share,
)
from lmms_eval_tasks.judges.prices import PriceList, load_prices
from lmms_eval_tasks.judges.providers.endpoint import Endpoint, room
from lmms_eval_tasks.judges.providers.exchange import Provider
from lmms_eval_tasks.judges.report import Progress, UsageCounter, departures, task, usage_lines
from lmms_eval_tasks.judges.verdict import (
    HUGGINGFACE,
    NONE,
    OPENAI,
    PANEL,
    REPLAY,
    Criterion,
    Judge,
    JudgeConfig,
    Verdict,
)
from lmms_eval_tasks.settings import JudgeLimits
from lmms_eval_tasks.utils import interrupts
from lmms_eval_tasks.utils.json_files import JsonObject

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.cache import Cache
    from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider

CONCURRENCY = 16  # default number of requests in flight, over all processes of a run

Given = TypeVar("Given")
Made = TypeVar("Made")


class JudgeSession:
    """A run's judges and limits; each process (a rank of torchrun) gets its share of the limits.

    Args:
        limits: the run's limits.
        cache: folder of the replies; None: no cache.
        prices: prices of models; default: the packaged ones.
        env: environment variables; default: the process's.
        progress: True to print lines of progress.
        wrap: returns a provider that is used in place of an endpoint's (providers/batch.py).
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
        env = os.environ if env is None else env
        rank = self._rank = int(env.get("RANK", 0))
        self._world = int(env.get("WORLD_SIZE", 1))
        self.limits, self._share = limits, partial(share, rank=rank, world=self._world)
        self.usage, self._wrap = UsageCounter(), wrap
        self.progress = Progress(self.usage, self._in_flight, enabled=progress and rank == 0)
        self.prices = prices or load_prices()
        self.budget = Budget(self._share(limits.max_calls), self._share(limits.max_cost))
        self._flight = limits.concurrency or CONCURRENCY
        self.concurrency = self._share(self._flight, at_least=1) or 1
        self.cache: Cache | None = None
        if cache is not None:
            from lmms_eval_tasks.judges.cache import Cache, file_of

            self.cache = Cache(file_of(cache, env))
        self._resolved: dict[tuple[str | None, str], JudgeConfig] = {}
        self._judges: dict[tuple[JudgeConfig, bool], Judge] = {}
        self.endpoints: dict[str, Endpoint] = {}
        self._asked: list[OpenAIProvider] = []
        self._lock = threading.RLock()

    def resolved(self, spec: str | None, default_model: str) -> JudgeConfig:
        """Return the judge of a short form or a file (`judges.resolve`), with this process's keys.

        A later call returns the same judge, since a change of the file must not change the judge
        during a run.
        """
        name = (spec, default_model)
        if name not in self._resolved:
            self._resolved[name] = resolve(spec, os.environ, default_model=default_model)
        return self._resolved[name]

    def judge(self, config: JudgeConfig, *, outermost: bool = False) -> Judge:
        """Return the judge of `config`: one object for the run, whose threads share one client.

        Args:
            config: the judge's settings.
            outermost: True for the judge that a benchmark asks, whose verdicts are counted once;
                False for a member of a panel or debate.
        """
        with self._lock:
            if (config, outermost) not in self._judges:
                made = _Outermost(self.judge(config), self) if outermost else self._build(config)
                self._judges[config, outermost] = made
            return self._judges[config, outermost]

    def _build(self, config: JudgeConfig) -> Judge:
        """Build a judge without opening a connection; only this function knows all providers."""
        if config.provider in (OPENAI, HUGGINGFACE):
            from lmms_eval_tasks.judges.engine import LanguageJudge

            return LanguageJudge(config, self._provider(config), self)
        if config.provider in (REPLAY, NONE):
            from lmms_eval_tasks.judges.providers.replay import NoJudge, ReplayJudge

            return NoJudge() if config.provider == NONE else ReplayJudge(config)
        from lmms_eval_tasks.judges.debate import DebateJudge, PanelJudge

        kind = PanelJudge if config.provider == PANEL else DebateJudge
        return kind(config, [self.judge(member) for member in config.members])

    def _provider(self, config: JudgeConfig) -> Provider:
        if config.provider == HUGGINGFACE:
            from lmms_eval_tasks.judges.providers.huggingface import HuggingFaceProvider

            return HuggingFaceProvider(config)
        from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider

        provider = OpenAIProvider(replace(config, timeout=self.timeout(config)))
        self._asked.append(provider)
        return provider if self._wrap is None else self._wrap(provider)

    def timeout(self, config: JudgeConfig) -> float:
        """Return the time limit of an attempt in seconds; infinite for a model in this process."""
        return math.inf if config.provider != OPENAI else self.limits.timeout or config.timeout

    def endpoint(self, config: JudgeConfig) -> Endpoint:
        """Return the traffic of a model; two judges with the same endpoint share its limits."""
        with self._lock:
            if config.label not in self.endpoints:
                rpm = self._share(self.limits.requests_per_minute)
                self.endpoints[config.label] = Endpoint(
                    config.label,
                    # With a budget in dollars, only one request at first: if its bill exceeds the
                    # upper bound, the bills of others in flight would, too.
                    Flight(
                        room(self.concurrency, len(self.endpoints)),
                        START if self.limits.max_cost is None else 1,
                        self.timeout(config),
                    ),
                    Rate(rpm, after=self._rank * 60 / rpm / self._world if rpm else 0.0),
                    Breaker(self.limits.stop_after),
                    self.prices.of(config.model, config.base_url),
                    self.limits.patience,
                )
            return self.endpoints[config.label]

    def _in_flight(self) -> int:
        return sum(one.flight.now for one in list(self.endpoints.values()))

    def describe(self) -> JsonObject:
        """Return limits, cache and prices as plain types, for results."""
        return {
            **asdict(self.limits),
            "concurrency": self._flight,
            "cache": None if self.cache is None else str(self.cache.path),
            "prices": self.prices.origin,
        }

    def summary(self) -> str:
        """Return limits, cache and prices in words, for the line before a run."""
        limits, over = self.limits, f" over {self._world} processes" if self._world > 1 else ""
        set_by_user = {
            "{:g} requests per minute": limits.requests_per_minute,
            "at most {} calls": limits.max_calls,
            "at most ${:g}": limits.max_cost,
        }
        parts = [
            f"up to {self._flight} requests at a time{over}",
            *(words.format(one) for words, one in set_by_user.items() if one is not None),
            "no cache" if self.cache is None else f"replies kept in {self.cache.path}",
        ]
        return ", ".join(parts)

    def stopped(self) -> list[str]:
        """Return a line for each endpoint that was given up, with the reason."""
        ends = list(self.endpoints.items())
        return [f"{name}: {end.breaker.reason}" for name, end in ends if end.breaker.is_open]

    def report_lines(self) -> list[str]:
        """Return lines on the judges' work and costs, and on endpoints that were given up."""
        departed = departures(self.departed())
        return [*usage_lines(self.usage.rows(), self.prices.origin), *departed, *self.stopped()]

    def departed(self) -> list[tuple[str, str, str]]:
        """Return the endpoints' departures: judge, "ignored" or "left out", parameter."""
        return [
            (one.config.label, how, name)
            for one in self._asked
            for how, names in (("ignored", one.ignored), ("left out", one.left_out))
            for name in names
        ]

    def interrupt(self) -> str:
        """End all requests now, and allow no further ones; return in words what is kept."""
        for end in list(self.endpoints.values()):  # otherwise retries would continue for minutes
            end.breaker.open("interrupted")
        for provider in self._asked:
            provider.close()
        if not (paid := self.usage.total().paid_calls):
            return ""
        where = "not kept (no cache)" if self.cache is None else f"kept in {self.cache.path}"
        return f"{paid:,} new replies of the judge are {where}"

    def close(self) -> None:
        """End the lines of progress and the cache's connection."""
        self.progress.close()
        if self.cache is not None:
            self.cache.close()


class _Outermost(Judge):
    """The judge that a benchmark asks; each verdict counts once, even if several judges gave it."""

    def __init__(self, judge: Judge, run: JudgeSession) -> None:
        self.config, self._judge, self._run = judge.config, judge, run

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> Sequence[Verdict]:
        found = self._judge.verdicts(criterion, fields, samples)
        if self.config.endpoints != (self.config,):  # a language model counts its own verdicts
            for verdict in found:
                self._run.usage.verdict(self.config.label, verdict)
        self._run.progress.count(sum(one.score is None for one in found), len(found))
        own = judge_fingerprint(self.config, criterion)
        return [replace(verdict, setup=own) for verdict in found]


# --- making and describing judges -----------------------------------------------------------------


def judge_fingerprint(config: JudgeConfig, criterion: Criterion) -> str:
    """Return the hash of a judge's settings and a criterion's prompt, for `Verdict.setup`."""
    return f"{config.fingerprint}-{criterion.prompt_hash}"


def configured(
    paper: str, spec: str | None = None, env: Mapping[str, str] | None = None
) -> JudgeConfig:
    """Return the judge that `spec` names, else the one of `--judge`, else the paper's.

    Args:
        paper: the model of the paper's judge.
        spec: a judge, in a form of docs/judges.md.
        env: environment variables with the judge's keys, for a judge outside the session. None: the
            judge of the process's session, which is resolved only once.

    Raises:
        JudgeError: the judge cannot be used as configured.
    """
    spec = spec or settings.text(settings.JUDGE)
    if env is None:
        return current().resolved(spec, paper)
    return resolve(spec, env, default_model=paper)


def make_judge(config: JudgeConfig) -> Judge:
    """Return the judge of `config` in this process's session; its threads share one client.

    No connection is opened yet. The process may fork later, which the client handles.
    """
    return current().judge(config, outermost=True)


def preflight(config: JudgeConfig, criteria: Iterable[Criterion]) -> None:
    """Check, before a run, everything about a judge that can be checked without a request.

    These are its recordings, the cache, the prices if a budget needs them, and the files of a local
    model.

    Raises:
        TasksError: one of these cannot be used.
    """
    make_judge(config)  # reads a file of recordings, and checks a panel's members
    run, asked = current(), list(criteria)
    for model in config.endpoints:
        if model.provider == HUGGINGFACE:
            from lmms_eval_tasks.judges.providers.huggingface import HuggingFaceProvider

            checkpoint = HuggingFaceProvider(model)
            _ = checkpoint.front  # loads no weights
            if not checkpoint.sees and any(one.images for one in asked):
                raise JudgeError(f"the judge {model.label} takes no images")
        if run.limits.max_cost is not None and run.endpoint(model).price is None:
            raise JudgeError(
                f"{settings.MAX_COST.option} requires the price of "
                f"{model.label}, which is unknown: add it with "
                f"{settings.PRICES.option} FILE (docs/judges.md), or limit the "
                f"calls with {settings.MAX_CALLS.option} N"
            )


def describe_judge(config: JudgeConfig) -> JsonObject:
    """Return the judge and the limits of this run as plain types, for results; no secrets.

    `warning` is None, or a sentence that has to accompany every number of this judge.
    """
    warning = (
        f"judged by {config.label}, not by the paper's judge: not directly "
        "comparable with the paper's numbers"
    )
    if config.provider == NONE:
        warning = "not judged yet; to judge the saved samples: `lmms-eval-tasks judge`"
    described = {**config.describe(), "warning": None if config.comparable else warning}
    return {**described, "run": current().describe()} if config.endpoints else described


def announcement(config: JudgeConfig, prompt: str = "") -> str:
    """Return one line about the judge, for the beginning of a run."""
    asked = f", prompt {prompt}" if prompt else ""
    if not config.endpoints:
        return f"judge: {config.label}{asked if config.provider != NONE else ''}"
    parts = []
    for model in config.endpoints:
        place = f" at {model.base_url or 'OpenAI'}" if model.provider != HUGGINGFACE else ""
        price = "known" if current().endpoint(model).price else "unknown"
        chosen = model.sampling
        drawn = f"temperature {chosen.temperature:g}, " if chosen.temperature is not None else ""
        parts.append(f"{model.model}{place} ({drawn}{chosen.max_tokens} tokens, price {price})")
    return f"judge: {'; '.join(dict.fromkeys(parts))}{asked}; {current().summary()}"


# --- the current session --------------------------------------------------------------------------


def current() -> JudgeSession:
    """Return the session of this process's judges.

    Raises:
        TasksError: a setting, the cache or the prices cannot be used.
    """
    return context.current().instance_of(JudgeSession, from_settings)


def _interrupt() -> str:
    run = context.current().get(JudgeSession)
    return "" if run is None else run.interrupt()


interrupts.ACTS.append(_interrupt)


def from_settings(
    *,
    wrap: Callable[[OpenAIProvider], Provider] | None = None,
    progress: bool = True,
    **changes: object,
) -> JudgeSession:
    """Return a session with the user's settings; `changes` replace fields of the limits."""
    limits = replace(settings.judge_limits(), **changes)  # type: ignore[arg-type]
    own = load_prices(settings.value(settings.PRICES))
    return JudgeSession(
        limits, cache=settings.judge_cache(), prices=own, progress=progress, wrap=wrap
    )


@contextmanager
def use(run: JudgeSession) -> Iterator[JudgeSession]:
    """Context manager that makes `run` the judges' session, and closes it at the end."""
    here = context.current()
    before = here.put(JudgeSession, run)
    try:
        yield run
    finally:
        here.put(JudgeSession, before)
        run.close()


def ordered_map(function: Callable[[Given], Made], items: Sequence[Given], name: str) -> list[Made]:
    """Return the results of `function` for all items, in order, computed in several threads.

    An exception for one item is raised once the items that were begun are done.

    Args:
        function: a function of an item, which may ask judges.
        items: the items.
        name: the task for which the verdicts are counted.
    """
    run = current()
    run.progress.expect(len(items))

    def booked(item: Given) -> Made:
        with task(name):  # set in each thread: threads do not inherit context variables
            return function(item)

    with ThreadPoolExecutor(max_workers=run.concurrency) as pool:
        try:
            return list(pool.map(booked, items))
        except (KeyboardInterrupt, SystemExit):
            pool.shutdown(wait=False, cancel_futures=True)
            run.interrupt()
            raise
