"""One model's requests in one run: sent a few at a time, with each reply kept as it arrives."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import queue
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks import context, registry, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host.requests import cut_replies, delivery, endpoints
from lmms_eval_tasks.host.requests.kept_replies import KeptReplies
from lmms_eval_tasks.host.requests.pace import Pace, one_bar
from lmms_eval_tasks.models.host_types import (
    Arguments,
    Doc,
    ModelInstance,
    ModelRequest,
    Reply,
)
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.report.invalid import Lengths, Throughput
from lmms_eval_tasks.runs import messages, progress
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.replies import reasoning, refusals

if TYPE_CHECKING:
    from tqdm.std import tqdm

from lmms_eval_tasks.host.requests.host_log import LoggedErrors, audible, is_of_a_model, logged
from lmms_eval_tasks.host.requests.model_replies import (
    failure_of,
    mark_lost,
    unwrapped,
    with_counts,
)

# Further variables of the environment, and arguments of lmms-eval, that replies depend on.
_ADDRESSES = ("OPENAI_API_BASE", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
_CHOSEN = ("force_simple", "gen_kwargs", "system_instruction", "apply_chat_template")
_AT_ONCE = 256  # docs that are read from the data set together
# Modules of lmms-eval that log a line at the end of each call.
_AFTER_CALLS = tuple(f"lmms_eval.models.model_utils.{name}" for name in ("gen_metrics", "progress"))


class RequestsFailedError(TasksError):
    """The model's endpoint or class fails every request, so that the run ends to save time."""


class RunFacts(NamedTuple):
    """Facts about a run's replies that are filled in while it runs."""

    lengths: dict[str, Lengths]  # lengths of the replies, by our tasks
    conditions: list[Condition]  # conditions of the model's run
    answered: Throughput


class _Call(NamedTuple):
    """One call of a class's `generate_until` by lmms-eval."""

    requests: Sequence[ModelRequest]
    replies: list[Reply]  # in the order of the requests; None for a missing reply
    # By the index of a request of ours: its doc's id, and the key of its reply.
    ids: Mapping[int, str]
    keys: Mapping[int, str]
    bar: tqdm[None]


class RequestRunner:
    """The requests of one model in one run."""

    def __init__(
        self, lm: ModelInstance, run: Arguments, tasks: Sequence[str], facts: RunFacts
    ) -> None:
        self._lm, self._tasks = lm, frozenset(tasks)
        self._lengths, self._said = facts.lengths, facts.answered
        self._reads = not cut_replies.has_processor(lm)
        self._plain = lm.generate_until
        self._pace = Pace(lm, run)
        self._stop_after = settings.value(settings.MODEL_STOP_AFTER)
        self._failed_in_a_row, self._answered, self._stopped_by = 0, False, ""
        self._one_by_one = context.current().plan.one_by_one
        self._errors = LoggedErrors()
        # Not the model's rank attribute, which lmms-eval sets later.
        self._rank = int(os.environ.get("RANK", "0"))
        mended = [one.text for one in facts.conditions if one.kind == Kind.MENDED]
        self.kept_replies = KeptReplies(_identity(run, lm, mended), tasks, self._rank)

    def _generate(self, requests: list[ModelRequest]) -> list[Reply]:
        """Return the class's replies; "" for None, which some classes return for an empty reply."""
        return ["" if reply is None else reply for reply in self._plain(requests)]

    def generate_until(self, requests: list[ModelRequest]) -> list[Reply]:
        """Return the replies in the order of the requests; lmms-eval calls this."""
        replies: list[Reply] = [None] * len(requests)
        ours = [place for place, req in enumerate(requests) if req.task_name in self._tasks]
        others = [place for place, req in enumerate(requests) if req.task_name not in self._tasks]
        if others:
            # lmms-eval does not check that each request has a reply.
            other_replies = iter(self._generate([requests[place] for place in others]))
            for place in others:
                replies[place] = next(other_replies, "")
        docs = self._docs([requests[place] for place in ours])
        identities = {
            place: self._known(requests[place], doc) for place, doc in zip(ours, docs, strict=True)
        }
        ids = {place: name for place, (name, _) in identities.items()}
        keys = _each_once({place: key for place, (_, key) in identities.items()})
        waiting: dict[str, list[int]] = {}
        for place in ours:
            if (before := self.kept_replies.replies.get(keys[place])) is None:
                waiting.setdefault(requests[place].task_name, []).append(place)
            else:
                replies[place] = with_counts(before["reply"], before.get("tokens"))
                _remember(requests[place], ids[place], before.get("arrived"))
        number = len(ours) - sum(map(len, waiting.values()))
        if number:
            notify(
                f"{number} of {len(ours)} replies are taken from a run that was "
                "stopped (--fresh generates all of them again)"
            )
        tasks = Counter(requests[place].task_name for place in ours)
        earlier = tasks - Counter({task: len(places) for task, places in waiting.items()})
        progress.of_run().ask(tasks, earlier, self.kept_replies.folder)
        silent, begun = self._rank != 0, time.monotonic()
        with (
            audible(*_AFTER_CALLS),
            logged("ERROR", is_of_a_model, self._errors.hear),
            one_bar(len(ours), number, silent) as bar,
            endpoints.own_loops(self._lm),
        ):
            self._ask(_Call(requests, replies, ids, keys, bar), waiting, ours)
        progress.of_run().score()
        self._said.seconds += time.monotonic() - begun
        self._said.processes = getattr(self._lm, "world_size", 1)
        self._finish({place: (requests[place], ids[place]) for place in ours}, replies)
        return replies

    def _ask(self, call: _Call, remaining: Mapping[str, list[int]], indices: Sequence[int]) -> None:
        """Send the requests of each task that have no kept reply, and keep each reply."""
        if self._pace.in_flight:
            self._ask_side_by_side(
                call, [place for places in remaining.values() for place in places]
            )
            return
        # Many classes use the first request's task, or the kind of its media, for a whole batch.
        for task, places in _even(remaining, indices).items():
            if modality := context.current().plan.modality.get(task):
                self._lm.modality = modality
            self._ask_in_portions(call, places)

    def _ask_in_portions(self, call: _Call, places: Sequence[int]) -> None:
        """Send one task's requests, as many in a portion as the class works on together."""
        # The first portion is just large enough to show that all requests fail.
        size = self._pace.first_portion(self._stop_after or self._pace.at_once)
        while places:
            now, places = places[:size], places[size:]
            asked = [call.requests[place] for place in now]
            expected = [self._expected(call, place) for place in now]
            begun = time.monotonic()
            with delivery.watching(expected, self._reads) as watch:
                found = self._replies(asked, [one.name for one in expected])
            for place, one, reply in zip(now, expected, found, strict=True):
                self._take(call, place, reply, watch.delivered.get(one.name))
            self._check_failures(call)
            size = self._pace.next_portion(len(now), time.monotonic() - begun)

    def _ask_side_by_side(self, call: _Call, places: Sequence[int]) -> None:
        """Send single requests, as many at a time as the class would have in flight."""
        waiting = iter(places)
        asking: dict[Future[Reply], tuple[int, str]] = {}  # index and name of the request
        finished: queue.SimpleQueue[Future[Reply]] = queue.SimpleQueue()
        pool = ThreadPoolExecutor(self._pace.in_flight, "requests")
        with endpoints.in_context(), delivery.watching((), self._reads) as watch:
            try:
                while True:
                    most = self._pace.in_flight
                    if not self._answered:  # just enough to show that all requests fail
                        most = min(most, self._stop_after or most)
                    while len(asking) < most and (place := next(waiting, None)) is not None:
                        expected = self._expected(call, place)
                        watch.expect(expected)
                        future = pool.submit(self._alone, call.requests[place], expected.name)
                        asking[future] = place, expected.name
                        future.add_done_callback(finished.put)
                    if not asking:
                        break
                    future = finished.get()
                    place, name = asking.pop(future)
                    self._take(call, place, future.result(), watch.settled(name))
                    if self._stopped_by:  # replies that are on their way are kept
                        waiting = iter(())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        self._check_failures(call)

    def _take(
        self, call: _Call, place: int, reply: Reply, delivered: delivery.DeliveredMedia | None
    ) -> None:
        """Keep a reply that has arrived, unless it is a failure."""
        call.bar.update()
        request = call.requests[place]
        text, counts = unwrapped(reply)
        # Our own classes report it.
        told = getattr(reply, "arrived", delivered.as_dict() if delivered else None)
        if told and (number := getattr(counts, "input_tokens", None)):
            # The endpoint's count, if none was possible here.
            told = {"prompt_tokens": number, **told}
        _remember(request, call.ids[place], told)
        why = failure_of(text)
        if why is None:
            self._answered, self._failed_in_a_row = True, 0
            self._said.replies += 1
            self._said.tokens += getattr(counts, "output_tokens", None) or 0
        else:
            self._failed_in_a_row += 1
        if why is not None and 0 < self._stop_after <= self._failed_in_a_row:
            self._stopped_by = why
        if call.replies[place] is not None:  # sent only to match other processes
            return
        call.replies[place] = reply
        progress.of_run().add_reply(
            request.task_name, call.ids[place], why or text or "", failed=why is not None
        )
        if why is None and text is not None:
            tokens = counts.output_tokens if counts is not None else None
            self.kept_replies.add(request.task_name, call.keys[place], text, told, tokens)

    def _check_failures(self, call: _Call) -> None:
        if self._stopped_by:
            raise RequestsFailedError(
                f"{self._failed_in_a_row} requests in a row failed, "
                f"{call.replies.count(None)} were not sent; the last failure: "
                f"{self._stopped_by}. {self.kept_replies.message()} (--model-stop-after 0 "
                "never stops a run)"
            )

    def _replies(self, requests: list[ModelRequest], names: Sequence[str]) -> list[Reply]:
        """Return one reply for each request; a failure that the class hides replaces its reply."""
        if not self._one_by_one:
            with self._errors.of() as errors:
                found = self._generate(requests)
            if len(found) == len(requests):
                return mark_lost(found, errors)
            self._one_by_one = True
            notify(
                f"the model's class gave {len(found)} replies to "
                f"{len(requests)} requests, so replies cannot be matched to "
                "requests: from here on requests are sent one by one"
            )
        return [self._alone(one, name) for one, name in zip(requests, names, strict=True)]

    def _alone(self, request: ModelRequest, name: str) -> Reply:
        """Return the reply to a request that is sent alone, so that no other one fails with it."""
        found, why = [], ""
        with delivery.asking(name), self._errors.of(name) as errors:
            try:
                found = self._generate([request])
                why = f"the model's class gave {len(found)} replies to one request"
            except TasksError:
                raise
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
        if len(found) == 1:
            return mark_lost(found, errors)[0]
        return refusals.model_error(errors[-1] if errors else why)

    def _finish(
        self, requests: Mapping[int, tuple[ModelRequest, str]], replies: list[Reply]
    ) -> None:
        """Count the tokens of our replies, and add a reasoning tag that stands in the prompt."""
        texts: dict[int, str] = {}
        for place, (request, name) in requests.items():
            text, counts = unwrapped(replies[place])
            if text is None or failure_of(text) is not None:
                continue
            texts[place] = text
            if limit := _sampling(request).get("max_new_tokens"):
                number = counts.output_tokens if counts is not None else None
                number = cut_replies.tokens(self._lm, text) if number is None else number
                if number is not None:
                    lengths = self._lengths.setdefault(request.task_name, Lengths())
                    lengths.add(int(number), int(limit))
                    at_limit = context.current().instance_of(delivery.Deliveries).at_limit
                    at_limit[request.task_name, name] = int(number) >= int(limit)
        texts = {place: text for place, text in texts.items() if text.strip()}
        if cut_replies.opened_in_prompt(self._lm, list(texts.values())):
            from lmms_eval.api.instance import GenerationResult

            for place, text in texts.items():
                if not reasoning.has_reasoning_tag(text):
                    _, counts = unwrapped(replies[place])
                    replies[place] = GenerationResult(cut_replies.OPENED + text, counts)

    def _doc(self, request: ModelRequest) -> Doc:
        *_, doc_id, name, split = request.args
        doc: Doc = self._lm.task_dict[name][split][doc_id]
        return doc

    def _docs(self, requests: Sequence[ModelRequest]) -> Iterator[Doc]:
        """Yield the docs of requests, read from the data set many at a time."""
        for (name, split), own in groupby(requests, key=lambda one: one.args[-2:]):
            rows, numbers = self._lm.task_dict[name][split], [one.args[-3] for one in own]
            for first in range(0, len(numbers), _AT_ONCE):
                columns = rows[numbers[first : first + _AT_ONCE]]
                for values in zip(*columns.values(), strict=True):
                    yield dict(zip(columns, values, strict=True))

    def _known(self, request: ModelRequest, doc: Doc) -> tuple[str, str]:
        """Return the id of a request's doc, and a hash of all that decides its reply but the model.

        The hash covers the doc, its text, its system text, its media and the sampling.
        """
        name = request.task_name
        task = registry.of(name).tasks[name]
        request.doc = task.log_fields(
            doc
        )  # for `doc_hash`: lmms-eval hashes this field, which it leaves empty
        content: list[object] = []
        # If this fails, the request fails for the same reason, or is not sent.
        with contextlib.suppress(TasksError, OSError):
            content = [messages.text_of(task.prompt(doc)), task.media_log(doc)]
            content += filter(None, [task.system(doc)])
        key = json.dumps([name, doc, content, _sampling(request)], sort_keys=True, default=str)
        return str(doc["id"]), hashlib.sha256(key.encode()).hexdigest()[:24]

    def _expected(self, call: _Call, place: int) -> delivery.Expected:
        """Return a request in the form that delivery.py needs to count its media."""
        request = call.requests[place]
        name = delivery.request_name(request.task_name, call.ids[place])
        return delivery.Expected(name, functools.partial(self._shown, request))

    def _shown(self, request: ModelRequest) -> delivery.RequestContent:
        task = registry.of(request.task_name).tasks[request.task_name]
        parts = task.prompt(self._doc(request))
        model, kinds = context.current().model, [part.kind for part in parts]
        texts = [request.args[0]]
        if model is not None and model.interface == "chat":
            texts = [part.content for part in parts if part.kind == "text"]
        return delivery.RequestContent("".join(texts), kinds.count("video"), kinds.count("image"))


def _each_once(keys: Mapping[int, str]) -> dict[int, str]:
    """Return keys that all differ: with `--repeats`, a request occurs several times in a run."""
    made, before = {}, Counter[str]()
    for place, key in keys.items():
        made[place] = f"{key}.{before[key]}" if before[key] else key
        before[key] += 1
    return made


def _even(remaining: Mapping[str, list[int]], indices: Sequence[int]) -> dict[str, list[int]]:
    """Return the requests that this process sends, by task: equally many in all processes.

    Some classes wait in every call for the other processes. A process with fewer requests sends its
    last one again.
    """
    if not indices:
        return dict(remaining)
    everyone = context.gathered({name: len(places) for name, places in remaining.items()})
    made = {}
    for name in dict.fromkeys(name for one in everyone for name in one):
        places = remaining.get(name, [])
        missing = max(one.get(name, 0) for one in everyone) - len(places)
        made[name] = [*places, *[(places or indices)[-1]] * missing]
    return made


def _sampling(request: ModelRequest) -> JsonObject:
    """Return the generation arguments of a request."""
    return next((one for one in request.args if isinstance(one, dict)), {})


def _identity(run: Arguments, lm: ModelInstance, mended: Sequence[str]) -> str:
    """Return the model, and the settings that its replies depend on, as a text.

    A model object of the user has unknown contents, so it gets a random name. A model that is
    `mended` replies differently from the installed one.
    """
    if (model := context.current().model) is None:
        identity: list[object] = [vars(lm).setdefault("_lmms_eval_tasks_name", uuid.uuid4().hex)]
    else:
        told = model.arguments.items()
        free = getattr(lm, "of_memory", ())
        identity = [
            model.name,
            {k: str(v) for k, v in told if not k.lower().endswith("key") and k not in free},
        ]
    identity += [os.environ.get(name) for name in _ADDRESSES]
    identity += [*(run.get(name) for name in _CHOSEN), *mended, *endpoints.picture_format()]
    return json.dumps(identity, sort_keys=True, default=str)


def _remember(request: ModelRequest, name: str, delivered: Mapping[str, object] | None) -> None:
    """Record the media that reached the model for the doc with this name."""
    if delivered is not None:
        context.current().instance_of(delivery.Deliveries).delivered[request.task_name, name] = (
            delivered
        )
