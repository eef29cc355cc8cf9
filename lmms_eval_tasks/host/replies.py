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
from pathlib import Path
from typing import IO, Any, ClassVar

from lmms_eval_tasks import benchmarks, running, settings
from lmms_eval_tasks.benchmark import NOT_RUN
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import cut_replies, endpoints
from lmms_eval_tasks.runs import given
from lmms_eval_tasks.runs.invalid import Lengths
from lmms_eval_tasks.utils import answers

# What a kill can lose: so many requests, for each one that the class asks at once, or what takes
# this many seconds.
PORTION, SECONDS = 64, 30.0
# Arguments of the host's classes for endpoints that say how many requests are under way.
_AT_ONCE = ("num_concurrent", "num_cpus", "concurrency", "max_workers")
# What else decides on replies: of the environment, and of the host's arguments.
_ADDRESSES = ("OPENAI_API_BASE", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
_CHOSEN = ("force_simple", "gen_kwargs", "system_instruction", "apply_chat_template")
_DONE = ".done"  # of a run that got its results: nothing to go on with


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
        self._generate = endpoints.callable_again(lm, lm.generate_until)
        self._at_once = _at_once(run)
        self._stop_after = settings.model_stop_after()
        self._failed_in_a_row = 0
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
        for place in own:
            replies[place] = self.kept.get(keys[place])
        answered = [place for place in own if replies[place] is not None]
        if answered:
            say(
                f"{len(answered)} of {len(own)} replies were kept of a run that was stopped: going "
                "on from there (--fresh asks all of them anew)"
            )
        left = [place for place in own if replies[place] is None]
        size = self._portion(0, 0)
        while left:
            places, left = left[:size], left[size:]
            failures, started = [], time.monotonic()
            for place, reply in zip(places, self._ask([requests[p] for p in places]), strict=True):
                replies[place] = reply
                failures.append(_failed(reply))
                if failures[-1] is None:
                    answered.append(place)
                    self.kept.add(requests[place].task_name, keys[place], _text(reply))
            self._stop_if_nothing_works(failures, len(left))
            size = self._portion(len(places), time.monotonic() - started)
        texts = {place: _text(replies[place]) for place in answered}
        for place in answered:
            self._count_tokens(requests[place], replies[place])
        if cut_replies.opened_in_prompt(self._lm, list(texts.values())):
            for place, text in texts.items():
                replies[place] = cut_replies.with_opening(replies[place], text)
        return replies

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

    def _ask(self, requests: list[Any]) -> list[Any]:
        """The replies of one portion; a failure that the class hides stands in its reply's place.

        Raises:
            RequestsFailedError: as many replies as requests did not come back.
        """
        # Some classes return an empty text after an error.
        with logged("ERROR", _is_of_a_model) as errors:
            found = self._generate(requests)
        if len(found) != len(requests):
            raise RequestsFailedError(
                f"the model's class gave {len(found)} replies to {len(requests)} requests, so that "
                f"nobody can tell which is whose; {errors[-1] if errors else 'it logged no error'}"
                f". {self.kept.told()}"
            )
        if not errors:
            return found
        lost = f"[LMMS_EVAL_REQUEST_FAILED] {errors[-1]}"
        return [one if (_text(one) or "").strip() else lost for one in found]

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

    def _key(self, request: Any) -> str:
        """What decides on a reply, beside the model: the doc, its text, its media, the sampling."""
        *_, doc_id, name, split = request.args
        doc = self._lm.task_dict[name][split][doc_id]
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


# --- on disk --------------------------------------------------------------------------------------


class Kept:
    """Replies of one model to our tasks, a line each, in a file for each task and process.

    They are of a run that was stopped. A run that got its results renames its files, so that the
    same command asks again; `reopen` takes that back where the results could not be saved.
    """

    finished: ClassVar[list[Path]] = []  # files of the last run that got its results

    def __init__(self, model: str, tasks: Sequence[str], rank: int) -> None:
        """Read what was kept.

        Args:
            model: it and all that decides on its replies beside the request.
            tasks: whose replies are kept.
            rank: of this process.
        """
        name = hashlib.sha256(model.encode()).hexdigest()[:16]
        self.folder = settings.cache_dir() / "replies" / name
        self._tasks, self._rank = tuple(tasks), rank
        self._files: dict[str, IO[str]] = {}
        self._writable = True
        self._found: dict[str, str] = {}
        if settings.fresh():
            for file in self._there():
                file.unlink(missing_ok=True)
        for file in self._there():
            for line in file.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # cut off by a kill
                    row = json.loads(line)
                    self._found[row["key"]] = row["reply"]

    def _there(self) -> list[Path]:
        return [file for task in self._tasks for file in self.folder.glob(f"{task}.*.jsonl")]

    def get(self, key: str) -> str | None:
        """The reply that was kept."""
        return self._found.get(key)

    def add(self, task: str, key: str, reply: str | None) -> None:
        """Keep one; a folder that cannot be written is told once and loses nothing else."""
        if reply is None or not self._writable:
            return
        try:
            if task not in self._files:
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"{task}.{self._rank}.jsonl"
                self._files[task] = path.open("a", encoding="utf-8")
            self._files[task].write(json.dumps({"key": key, "reply": reply}) + "\n")
            self._files[task].flush()
        except OSError as error:
            self._writable = False
            say(f"replies cannot be kept as they arrive: {error}")

    def told(self) -> str:
        """For a run that ends early: what is there, and what to do."""
        number = sum(1 for file in self._there() for _ in file.open(encoding="utf-8"))
        if not number:
            return "No reply had come"
        return f"{number} replies are kept in {self.folder}; the same command goes on from there"

    def finish(self) -> None:
        """The run has its results."""
        for opened in self._files.values():
            opened.close()
        if self._rank == 0:
            for file in self._there():
                file.replace(file.with_name(file.name + _DONE))
                Kept.finished.append(file)

    @staticmethod
    def reopen() -> None:
        """The results were not saved after all: the same command goes on with the replies."""
        for file in Kept.finished:
            file.with_name(file.name + _DONE).replace(file)
        Kept.finished.clear()
