"""Replies between model and host: kept as they arrive, failed requests told from answers.

The host hands a model all requests of a run at once and gets the replies when the last is done, so
a run that is stopped keeps nothing; and of a request that failed it learns what the class made of
it: a text, an empty one, or one reply too few. Here the requests of our tasks go out in portions.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lmms_eval_tasks import benchmarks, running, settings
from lmms_eval_tasks.benchmark import NOT_RUN
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import arrived, cut_replies, endpoints
from lmms_eval_tasks.host.kept_replies import Kept, Reply
from lmms_eval_tasks.runs import given
from lmms_eval_tasks.runs.invalid import Lengths
from lmms_eval_tasks.utils.replies import answers

# What a kill can lose: so many requests, for each one that the class asks at once, or what takes
# this many seconds.
PORTION, SECONDS = 64, 30.0
# Arguments of the host's classes for endpoints that say how many requests are under way.
_AT_ONCE = ("num_concurrent", "num_cpus", "concurrency", "max_workers")
# What else decides on replies: of the environment, and of the host's arguments.
_ADDRESSES = ("OPENAI_API_BASE", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
_CHOSEN = ("force_simple", "gen_kwargs", "system_instruction", "apply_chat_template")


class RequestsFailedError(TasksError):
    """The model's endpoint or class fails every request: going on would only spend time."""


@contextmanager
def kept(run: Mapping[str, Any], tasks: Sequence[str]) -> Iterator[Mapping[str, Lengths]]:
    """Within it the host's models are asked through us.

    Args:
        run: arguments of the host's `simple_evaluate`.
        tasks: ours.

    Yields:
        How long each task's replies are, filled as they come.

    Raises:
        RequestsFailedError: too many requests in a row failed.
    """
    from lmms_eval import evaluator

    arrived.forget()

    evaluate = evaluator.evaluate
    signature = inspect.signature(evaluate)
    asked: list[_Asked] = []
    lengths: dict[str, Lengths] = {}
    Kept.finished.clear()

    @functools.wraps(evaluate)
    def through_us(*args: Any, **kwargs: Any) -> Any:
        lm = signature.bind(*args, **kwargs).arguments["lm"]
        asked.append(_Asked(lm, run, tasks, lengths))
        lm.generate_until = asked[-1].generate_until
        try:
            with arrived.counted():
                return evaluate(*args, **kwargs)
        finally:
            del lm.generate_until

    evaluator.evaluate = through_us
    try:
        yield lengths
    except RequestsFailedError:  # which tells it
        raise
    except BaseException:  # while replies come, or are scored
        for one in asked:
            say(one.kept.told())
        raise
    finally:
        evaluator.evaluate = evaluate
    for one in asked:
        one.kept.finish()


class _Asked:
    """One model's requests in one run.

    Attributes:
        kept: its replies on disk.
    """

    def __init__(
        self,
        lm: Any,
        run: Mapping[str, Any],
        tasks: Sequence[str],
        lengths: dict[str, Lengths],
    ) -> None:
        self._lm, self._tasks = lm, frozenset(tasks)
        self._lengths = lengths
        self._reads = not cut_replies.has_processor(lm)
        self._generate = endpoints.callable_again(lm, lm.generate_until)
        self._at_once = _at_once(run)
        self._stop_after = settings.value(settings.MODEL_STOP_AFTER)
        self._failed_in_a_row = 0
        plan = running.planned()
        self._one_by_one = plan is not None and plan.one_by_one
        # Not the model's own rank, which the host sets later.
        self.kept = Kept(_identity(run, lm), tasks, int(os.environ.get("RANK", "0")))

    def generate_until(self, requests: list[Any]) -> list[Any]:
        """The host's call: replies in the order of the requests."""
        replies: list[Any] = [None] * len(requests)
        own = [place for place, one in enumerate(requests) if one.task_name in self._tasks]
        others = [place for place, one in enumerate(requests) if one.task_name not in self._tasks]
        if others:
            found = self._generate([requests[place] for place in others])
            for place, reply in zip(others, found, strict=True):
                replies[place] = reply
        keys = dict(zip(own, self._keys([requests[place] for place in own]), strict=True))
        left: dict[str, list[int]] = {}
        for place in own:
            request = requests[place]
            if (known := self.kept.get(keys[place])) is None:
                left.setdefault(request.task_name, []).append(place)
                continue
            replies[place] = known.text
            arrived.remember(request.task_name, self._doc(request), known.arrived)
        if any(replies[place] is not None for place in own):
            say(
                f"{sum(replies[place] is not None for place in own)} of {len(own)} replies were "
                "kept of a run that was stopped: going on from there (--fresh asks all of them "
                "anew)"
            )
        # Many classes take the first request's task, or what its media are, for a whole batch.
        for task, places in _even(left, own).items():
            self._set_for(task)
            self._ask_all(requests, places, replies, keys)
        answered = [place for place in own if _failed(replies[place]) is None]
        texts = {place: _text(replies[place]) for place in answered}
        for place in answered:
            self._count_tokens(requests[place], replies[place])
        if cut_replies.opened_in_prompt(self._lm, list(texts.values())):
            for place, text in texts.items():
                replies[place] = cut_replies.with_opening(replies[place], text)
        return replies

    def _ask_all(
        self,
        requests: Sequence[Any],
        places: Sequence[int],
        replies: list[Any],
        keys: Mapping[int, str],
    ) -> None:
        """Ask one task's requests at these places, in portions, and keep what comes."""
        start, size = 0, self._portion(0, 0)
        while now := places[start : start + size]:
            start, started, failures = start + len(now), time.monotonic(), []
            found, seen = self._ask([requests[place] for place in now])
            for place, reply, one in zip(now, found, seen, strict=True):
                failures.append(_failed(reply))
                if replies[place] is not None:  # asked for the sake of other processes
                    continue
                replies[place], text = reply, _text(reply)
                if failures[-1] is None and text is not None:
                    self.kept.add(requests[place].task_name, keys[place], Reply(text, one))
            self._stop_if_nothing_works(failures, sum(one is None for one in replies))
            size = self._portion(len(now), time.monotonic() - started)

    def _set_for(self, task: str) -> None:
        """Tell a class whose `modality` says what all of its requests hold what this task's do."""
        plan = running.planned()
        if plan is not None and task in plan.modality:
            self._lm.modality = plan.modality[task]

    def _portion(self, asked: int, took: float) -> int:
        """How many requests go out next, after so many that took these seconds.

        Not more than it takes to see that all fails. Several processes take the same portions: some
        classes wait for each other with every call.
        """
        whole = PORTION * self._at_once
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            return whole if asked else min(whole, self._stop_after or whole)
        size = min(whole, round(asked * SECONDS / max(took, 1e-3)) // self._at_once * self._at_once)
        if self._stop_after and (self._failed_in_a_row or not asked):
            whole = self._stop_after - self._failed_in_a_row
        return min(max(size, self._at_once), whole)

    def _count_tokens(self, request: Any, reply: Any) -> None:
        limit = _sampling(request).get("max_new_tokens")
        number = cut_replies.tokens(self._lm, reply) if limit else None
        if limit and number is not None:
            self._lengths.setdefault(request.task_name, Lengths()).add(number, int(limit))

    def _ask(self, requests: list[Any]) -> tuple[list[Any], list[Any]]:
        """The replies of one portion of a task, and what reached the model of each.

        A failure that the class hides stands in its reply's place.
        """
        docs = [self._doc(one) for one in requests]
        with arrived.watching(map(_expected, requests, docs), self._reads) as seen:
            found = self._replies(requests)
        told = []
        for request, doc, reply in zip(requests, docs, found, strict=True):
            one = seen.get(str(doc["id"]))
            # A class of ours tells it itself.
            told.append(getattr(reply, "arrived", one.as_dict() if one else None))
            arrived.remember(request.task_name, doc, told[-1])
        return found, told

    def _replies(self, requests: list[Any]) -> list[Any]:
        if not self._one_by_one:
            with logged("ERROR", _is_of_a_model) as errors:
                found = self._generate(requests)
            if len(found) == len(requests):
                return _or_lost(found, errors)
            self._one_by_one = True
            say(
                f"the model's class gave {len(found)} replies to {len(requests)} requests, so that "
                "nobody can tell which is whose: from here on they are asked one by one"
            )
        return [self._reply(one) for one in requests]

    def _reply(self, request: Any) -> Any:
        """The reply to one request, or why it failed: no other request's fate hangs on it."""
        why = ""
        with logged("ERROR", _is_of_a_model) as errors:
            try:
                found = self._generate([request])
            except TasksError:
                raise
            except Exception as error:
                found, why = [], f"{type(error).__name__}: {error}"
        if len(found) == 1:
            return _or_lost(found, errors)[0]
        why = why or f"the model's class gave {len(found)} replies to one request"
        return answers.model_error(errors[-1] if errors else why)

    def _stop_if_nothing_works(self, failures: Sequence[str | None], left: int) -> None:
        for why in failures:
            self._failed_in_a_row = 0 if why is None else self._failed_in_a_row + 1
            if self._stop_after and self._failed_in_a_row >= self._stop_after:
                raise RequestsFailedError(
                    f"{self._failed_in_a_row} requests in a row failed, {left} are left; the last: "
                    f"{why}. {self.kept.told()} (--model-stop-after 0 goes on whatever fails)"
                )

    def _keys(self, requests: Sequence[Any]) -> list[str]:
        """What each is kept under: of requests that are repeated, each has its own."""
        times: Counter[str] = Counter()
        found = []
        for one in requests:
            key = self._key(one)
            times[key] += 1
            found.append(key if times[key] == 1 else f"{key}.{times[key]}")
        return found

    def _doc(self, request: Any) -> Any:
        *_, doc_id, name, split = request.args
        return self._lm.task_dict[name][split][doc_id]

    def _key(self, request: Any) -> str:
        """What decides on a reply, beside the model: the doc, its text, its media, the sampling."""
        name, doc = request.task_name, self._doc(request)
        task = benchmarks.of(name).tasks[name]
        request.doc = task.keep(doc)  # for `doc_hash`: the host hashes it, and leaves it empty
        sampling = _sampling(request)
        shown: list[Any] = []
        try:
            if not doc.get(NOT_RUN):
                shown = [given.text_of(task.prompt(doc)), task.handed(doc)]
        except (TasksError, OSError):  # the request fails for the same reason, or is not asked
            pass
        told = json.dumps([name, doc, shown, sampling], sort_keys=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()[:24]


def _even(left: Mapping[str, list[int]], own: Sequence[int]) -> dict[str, list[int]]:
    """What each process asks, by task: as many requests of each task as any other process.

    Some classes wait for each other with every call. Where a process has fewer, it asks its last
    one again.
    """
    import torch.distributed as processes

    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or not own:
        return dict(left)
    if not processes.is_available() or not processes.is_initialized():
        return dict(left)
    everyone: list[dict[str, int]] = [{}] * processes.get_world_size()
    processes.all_gather_object(everyone, {name: len(places) for name, places in left.items()})
    tasks = dict.fromkeys(name for one in everyone for name in one)
    made = {}
    for name in tasks:
        places = left.get(name, [])
        missing = max(one.get(name, 0) for one in everyone) - len(places)
        made[name] = [*places, *[(places or own)[-1]] * missing]
    return made


def _expected(request: Any, doc: Any) -> arrived.Expected:
    """What a request hands over, for counting what of it arrives."""
    task = benchmarks.of(request.task_name).tasks[request.task_name]
    parts = [] if doc.get(NOT_RUN) else task.prompt(doc)
    model = running.current()
    chat = model is not None and model.interface == "chat"
    texts = [part.given for part in parts if part.kind == "text"] if chat else [request.args[0]]
    kinds = [part.kind for part in parts]
    shown = kinds.count("video"), kinds.count("image")
    return arrived.Expected(str(doc["id"]), "".join(texts), *shown)


def _or_lost(found: Sequence[Any], errors: Sequence[str]) -> list[Any]:
    """The replies; empty ones are failures if their class logged more errors than they tell.

    Each gets its own error if there is one for each, else the last.
    """
    empty = [place for place, one in enumerate(found) if not (_text(one) or "").strip()]
    made, told = list(found), sum(_failed(one) is not None for one in found)
    if len(errors) > told:
        causes = errors if len(errors) == len(empty) else [errors[-1]] * len(empty)
        for place, why in zip(empty, causes, strict=True):
            made[place] = answers.model_error(why)
    return made


def _sampling(request: Any) -> dict[str, Any]:
    """The generation arguments of a request."""
    return next((one for one in request.args if isinstance(one, dict)), {})


def _at_once(run: Mapping[str, Any]) -> int:
    """How many requests the class asks together, as far as the arguments say."""
    model = running.current()
    found = [run.get("batch_size"), *(model.arguments.get(name) for name in _AT_ONCE if model)]
    return max([1, *(int(one) for one in map(str, found) if one.isdecimal())])


def _identity(run: Mapping[str, Any], lm: Any) -> str:
    """The model in words: whose replies they are. Of an object nothing is known but itself."""
    if (model := running.current()) is None:
        named: list[Any] = [vars(lm).setdefault("_lmms_eval_tasks_name", uuid.uuid4().hex)]
    else:
        told = model.arguments.items()
        named = [model.name, {k: str(v) for k, v in told if not k.lower().endswith("key")}]
    named += [os.environ.get(name) for name in _ADDRESSES]
    return json.dumps([*named, *(run.get(name) for name in _CHOSEN)], sort_keys=True, default=str)


def _text(reply: Any) -> str | None:
    """The text of what a class returned."""
    from lmms_eval.api.instance import unwrap_generation_output

    text, _ = unwrap_generation_output(reply)
    return text if isinstance(text, str) else None


def _failed(reply: Any) -> str | None:
    """What went wrong with a request, in one line; None for an answer, be it empty."""
    text = _text(reply)
    if text is None or not answers.is_model_error(text):
        return None
    return " ".join(text.split())[:300].rstrip(".")


def _is_of_a_model(record: Any) -> bool:
    return (record["name"] or "").startswith("lmms_eval.models")


@contextmanager
def logged(level: str, wanted: Callable[[Any], bool]) -> Iterator[list[str]]:
    """What the host logs within: it goes on after trouble, and tells it nobody else."""
    from loguru import logger

    found: list[str] = []
    logger.enable("lmms_eval")  # somebody in this process may have muted it
    sink = logger.add(
        lambda message: found.append(" ".join(message.record["message"].split())[:300]),
        level=level,
        filter=wanted,
    )
    try:
        yield found
    finally:
        with contextlib.suppress(ValueError):  # somebody took all sinks away
            logger.remove(sink)
