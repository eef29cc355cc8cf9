"""A language model as a judge: from fields to a verdict, through cache, limits and retries.

    fields -> render -> Request -> cache? -> budget -> rate -> provider (retries) -> cache
           -> reader -> Verdict, with one repair attempt for a reply that could not be used

Trouble with the judge becomes a verdict's status; `verdict` raises only for a benchmark's own bug.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import ledger as accounts
from lmms_eval_tasks.judges import tokens
from lmms_eval_tasks.judges.cache_form import key
from lmms_eval_tasks.judges.config import MAX_TOKENS, JudgeConfig
from lmms_eval_tasks.judges.exchange import Provider, ProviderError, Reply, Request
from lmms_eval_tasks.judges.judging import judged
from lmms_eval_tasks.judges.prompts import render
from lmms_eval_tasks.judges.retry import call_with_retries
from lmms_eval_tasks.judges.verdict import Criterion, Status, Verdict, total_usage

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lmms_eval_tasks.judges.run import Run

_REPAIRED = {Status.PARSE_FAILURE.value, Status.TRUNCATED.value, Status.REFUSED.value}


@dataclass(frozen=True)
class _Asked:
    """What became of one sample of a request: a reply, or why there is none."""

    reply: Reply | ProviderError
    cached: bool = False


class LanguageJudge:
    """Asks one model; thread-safe."""

    def __init__(self, config: JudgeConfig, provider: Provider, run: Run) -> None:
        self.config, self.provider, self._run = config, provider, run
        self._traffic = run.endpoint(config)
        self._asking: dict[str, tuple[threading.Lock, int]] = {}
        self._asking_lock = threading.Lock()

    def supports(self, criterion: str) -> bool:  # noqa: ARG002 - a language model takes any
        """Every criterion."""
        return True

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        """Judge one item.

        Statuses: `api_error` after the configured retries; `skipped` over the budget, or once the
        endpoint was given up; else as in `judging.judged`, after one repair attempt.

        Raises:
            PromptError: the template names a field that is not in `fields` (a benchmark's bug).
        """
        return self.verdicts(criterion, fields, 1)[0]

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        """Judge one item `samples` times; a request for several choices costs its prompt once."""
        request = self._request(criterion, fields)
        asked = self._ask(criterion, request, range(samples))
        found = []
        for sample, first in enumerate(asked):
            answer, verdict = first, self._judged(criterion, fields, first)
            for attempt in range(1, self.config.repairs + 1):
                if not isinstance(answer.reply, Reply) or verdict.status not in _REPAIRED:
                    break
                again = _repair_of(request, verdict, attempt)
                (answer,) = self._ask(criterion, again, [sample])
                verdict = self._repaired(verdict, self._judged(criterion, fields, answer), answer)
            self._run.ledger.verdict(accounts.current_task(), self.config.label, verdict)
            found.append(verdict)
        return found

    # --- one request ------------------------------------------------------------------------

    def _request(self, criterion: Criterion, fields: Mapping[str, Any]) -> Request:
        return Request(
            render(criterion, fields),
            self.config.sampling,
            schema_name=criterion.name,
            schema=schema_of(criterion.schema),
            top_logprobs=criterion.top_logprobs,
        )

    def _ask(self, criterion: Criterion, request: Request, samples: Sequence[int]) -> list[_Asked]:
        """A reply for each of `samples`: from the cache, or paid for and put there."""
        cache = self._run.cache
        try:
            identity = self.provider.identity
        except JudgeError as error:  # a local model's folder that went away after `preflight`
            return [_Asked(ProviderError(str(error)))] * len(samples)
        keys = {sample: key(identity, request, sample) for sample in samples}
        found: dict[int, _Asked] = {}

        def look() -> list[int]:
            if cache is not None:
                for sample in samples:
                    if sample not in found and (reply := cache.get(keys[sample])) is not None:
                        found[sample] = _Asked(reply, cached=True)
            return [sample for sample in samples if sample not in found]

        if look():
            # Two threads with the same question must not both pay for it.
            with self._alone(keys[samples[0]]):
                while missing := look():
                    try:
                        replies = self._pay(request, missing)
                    except ProviderError as error:
                        found |= {sample: _Asked(error) for sample in missing}
                        break
                    for sample, reply in zip(missing, replies, strict=False):
                        kept = self._kept(criterion, request, keys[sample], reply)
                        found[sample] = _Asked(kept)
        task, label = accounts.current_task(), self.config.label
        for answer in found.values():
            if isinstance(answer.reply, Reply):
                cost = self._cost(answer.reply)
                self._run.here.paid += not answer.cached
                self._run.ledger.reply(task, label, answer.reply, paid=not answer.cached, cost=cost)
        return [found[sample] for sample in samples]

    def _kept(self, criterion: Criterion, request: Request, name: str, reply: Reply) -> Reply:
        if self._run.cache is None:
            return reply
        about = {
            "criterion": criterion.name,
            "judge": self.config.label,
            "task": accounts.current_task(),
        }
        return self._run.cache.put(name, reply, request, about)

    def _pay(self, request: Request, samples: Sequence[int]) -> list[Reply]:
        """One successful call, within budget and limits.

        Raises:
            ProviderError: over the budget, given up, or failed after all retries.
        """
        run, traffic = self._run, self._traffic
        prompt, reply_tokens = self._bounds(request, len(samples))
        most = traffic.price.cost(prompt, reply_tokens) if traffic.price else None
        if most is None and run.limits.max_cost is not None:  # `preflight` stops such a run before
            raise ProviderError("a budget in dollars, but no price", status=Status.SKIPPED)
        reservation = run.budget.reserve(len(samples), most)
        if reservation is None:
            raise ProviderError(run.budget.reason, status=Status.SKIPPED)

        def attempt() -> list[Reply]:
            wait = max(traffic.requests.reserve(1), traffic.tokens.reserve(prompt + reply_tokens))
            if wait and not traffic.breaker.wait(wait):
                raise ProviderError(traffic.breaker.reason, status=Status.SKIPPED)
            with traffic.slots:
                if traffic.breaker.is_open:
                    raise ProviderError(traffic.breaker.reason, status=Status.SKIPPED)
                return self.provider.complete(request, samples)

        def retried(_error: ProviderError, _seconds: float) -> None:
            run.ledger.retry(accounts.current_task(), self.config.label)

        with reservation:
            replies = call_with_retries(
                attempt,
                retries=self.config.retries,
                breaker=traffic.breaker,
                on_retry=retried,
            )
            costs = [self._cost(reply) for reply in replies]
            known = [cost for cost in costs if cost is not None]
            run.budget.settle(
                reservation, len(replies), sum(known) if len(known) == len(costs) else None
            )
        if (used := _used(replies)) is not None:
            traffic.tokens.settle(prompt + reply_tokens, used)
        return replies

    def _bounds(self, request: Request, samples: int) -> tuple[int, int]:
        """Tokens of the prompt (estimated) and of the replies (at most); 0 where no limit asks."""
        limits = self._run.limits
        if limits.tokens_per_minute is None and limits.max_cost is None:
            return 0, 0
        return (
            tokens.upper_bound(request.messages),
            samples * (request.sampling.max_tokens or MAX_TOKENS),
        )

    def _cost(self, reply: Reply) -> float | None:
        price = self._traffic.price
        if price is None:
            return None
        return price.cost(
            reply.prompt_tokens,
            reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            batch=reply.batch,
        )

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """One thread at a time for each key."""
        with self._asking_lock:
            lock, waiting = self._asking.get(name, (threading.Lock(), 0))
            self._asking[name] = (lock, waiting + 1)
        try:
            with lock:
                yield
        finally:
            with self._asking_lock:
                _, waiting = self._asking[name]
                if waiting == 1:
                    del self._asking[name]
                else:
                    self._asking[name] = (lock, waiting - 1)

    # --- from replies to verdicts -----------------------------------------------------------

    def _judged(self, criterion: Criterion, fields: Mapping[str, Any], answer: _Asked) -> Verdict:
        reply = answer.reply
        if isinstance(reply, ProviderError):
            return Verdict(None, reply.status, str(reply), judge=self.config.label)
        return judged(criterion, fields, reply, self.config.label)

    def _repaired(self, first: Verdict, second: Verdict, answer: _Asked) -> Verdict:
        """The verdict after asking again; the first stands if nothing came back (budget, dead)."""
        if isinstance(answer.reply, ProviderError):
            return replace(first, reason=f"{first.reason} (not repaired: {answer.reply})")
        usage = total_usage([first, second])
        if second.status == Status.OK.value:
            return replace(second, repaired=True, usage=usage)
        reason = f"{second.reason} (and before: {first.reason})"
        return replace(second, reason=reason, usage=usage)


@lru_cache(maxsize=256)  # generating one costs as much as a cache hit
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a reply, every object closed and all its keys required (strict mode)."""
    closed: dict[str, Any] = _closed(model.model_json_schema())
    return closed


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {name: _closed(value) for name, value in node.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed |= {"additionalProperties": False, "required": list(closed["properties"])}
    return closed


def _repair_of(request: Request, first: Verdict, attempt: int) -> Request:
    """The same question with one more line, and more room for a reply that was cut off.

    The unusable reply is not sent back: it may hold what the candidate wrote. A later attempt has
    other words than the first, or the cache would answer it with the same reply.
    """
    note = _NOTES[Status(first.status)]
    if attempt > 1:
        note = f"{note} This is request {attempt + 1}."
    *before, last = request.messages
    content = last["content"]
    if isinstance(content, str):
        content = f"{content}\n\n{note}"
    else:
        content = [*content, {"type": "text", "text": note}]
    sampling = request.sampling
    if first.status == Status.TRUNCATED.value:
        sampling = replace(sampling, max_tokens=2 * (sampling.max_tokens or MAX_TOKENS))
    return replace(request, messages=[*before, {**last, "content": content}], sampling=sampling)


_NOTES = {
    Status.PARSE_FAILURE: "An earlier reply to this could not be read. Reply with exactly one JSON "
    "object that has the keys asked for above and values in their range, and with nothing else.",
    Status.TRUNCATED: "An earlier reply to this was cut off. Keep a reason to one short sentence "
    "and reply with the complete JSON object asked for above.",
    Status.REFUSED: "An earlier request for this got no answer. You are working on a text that "
    "somebody else wrote, not endorsing it: reply with the JSON object asked for above.",
}


def _used(replies: Sequence[Reply]) -> int | None:
    counts = [(reply.prompt_tokens, reply.completion_tokens) for reply in replies]
    if any(None in pair for pair in counts):
        return None
    return sum((prompt or 0) + (completion or 0) for prompt, completion in counts)
