"""A run's progress, which each of its processes writes to a file in `--output_path`.

`lmms-eval-tasks watch` shows these files. The kept replies would not do: they may lie on another
machine, and a file system over a network shows the lines of an open file late.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from lmms_eval_tasks import context
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.notify import hide_secrets
from lmms_eval_tasks.utils.json_files import Json, read_bytes, write_text

FOLDER = ".lmms_eval_tasks"  # folder of the files, in `--output_path`
EVERY = 2.0  # seconds between two versions of a file, for up to _FEW processes
RECENT = 60.0  # seconds whose replies give the present speed
N_LAST = 3  # last replies in a file
_FEW, _LONGEST = 8, 400
_SKIPPED = Status.SKIPPED.value

# A time of Unix; the limit is thousands of years away, so that a date can be made of it.
Seconds = Annotated[float, Field(ge=0, lt=1e11, allow_inf_nan=False)]
Phase = Literal["preparing", "generating", "scoring", "scored", "stopped"]


class TaskProgress(BaseModel):
    """The counts of a task in one process."""

    requests: int = 0
    earlier: int = 0  # requests whose replies an earlier run kept
    replies: int = 0  # replies of this run
    speed: float = 0.0  # replies a second (_speed)
    failed: int = 0  # failed requests
    scored: int = 0
    unparsed: int = 0  # scored replies that were not read


class JudgeProgress(BaseModel):
    """The work of the judges in one process."""

    verdicts: int = 0
    failed: int = 0  # verdicts without a score
    skipped: int = 0  # verdicts that no judge was asked for (--judge none, a budget)
    tokens: int = 0  # of requests and replies
    cost: float | None = 0.0  # dollars; None if a price is unknown
    reason: str = ""  # reason of a failure


class LastReply(BaseModel):
    """A reply that has just arrived, or the reason of a failed request."""

    task: str
    doc: str
    text: str
    at: float


class ProcessProgress(BaseModel):
    """The progress of one process of a run: the content of its file. Times are seconds of Unix."""

    run: str  # id that the processes of a run share
    rank: int
    processes: int
    machine: str
    pid: int = Field(gt=0, lt=2**31)
    model: str
    stamp: str = ""  # first part of the names of the run's results
    begun: Seconds
    at: Seconds  # time of this version
    every: float = EVERY  # seconds to the next version
    phase: Phase = "preparing"
    reason: str = ""  # reason why the run stopped
    asked_at: float | None = None  # time of the first request
    tasks: dict[str, TaskProgress] = Field(default_factory=dict)
    speed: float = 0.0  # that of all tasks
    replies_in: str = ""  # folder of the kept replies
    last: list[LastReply] = Field(default_factory=list)
    judge: JudgeProgress | None = None


class RunProgress:
    """The progress of the run in this process; its methods may be called in any thread.

    Without a folder, nothing is written. An error of the file system has no effect on the run.
    """

    def __init__(self, folder: Path | None = None, progress: ProcessProgress | None = None) -> None:
        self.progress = progress or _of_process("", "", "")
        self._file = folder and folder / f"{self.progress.run}.{self.progress.rank}.json"
        self._recent: deque[tuple[float, str]] = deque()  # time and task of replies
        # Task and status of items since the last version; no lock, which threads would wait for.
        self._items: deque[tuple[str, Json]] = deque()
        self._first: dict[str, float] = {}  # time when the work on a task's first reply began
        self._last = 0.0  # time of the last reply
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._context = context.current()

    def begin(self) -> None:
        """Write the file now and every few seconds, until `end`."""
        if self._file is not None:
            self._write()
            threading.Thread(target=self._go_on, name="progress", daemon=True).start()

    def end(self, phase: Phase, reason: str = "") -> None:
        """Write the file for the last time."""
        with self._lock:
            self.progress.phase, self.progress.reason = phase, reason
        self._closed.set()
        self._write()

    def ask(self, requests: Mapping[str, int], earlier: Mapping[str, int], kept_in: Path) -> None:
        """Begin the requests.

        Args:
            requests: the number of requests of each task.
            earlier: the number of those whose replies an earlier run kept.
            kept_in: folder of the kept replies.
        """
        with self._lock:
            self.progress.replies_in = str(kept_in.absolute())
            self.progress.phase, self.progress.asked_at = "generating", time.time()
            for task, number in requests.items():
                counts = self._counts(task)
                counts.requests += number
                counts.earlier += earlier.get(task, 0)

    def score(self) -> None:
        """Begin the scoring, once all replies are there."""
        self.progress.phase = "scoring"

    def add_reply(self, task: str, doc: str, text: str, *, failed: bool) -> None:
        """Count a reply, or a failed request with its reason."""
        now = time.time()
        short = " ".join(text[:_LONGEST].split())
        with self._lock:
            counts = self._counts(task)
            if failed:
                counts.failed += 1
            else:
                counts.replies += 1
                self._recent.append((now, task))
                self._first.setdefault(task, max(self.progress.asked_at or now, self._last))
            self._last = now
            reply = LastReply(task=task, doc=doc, text=short, at=now)
            self.progress.last = [*self.progress.last, reply][-N_LAST:]

    def add_item(self, task: str, status: Json) -> None:
        """Count a scored reply by the status of its item."""
        if self._file is not None:
            self._items.append((task, status))

    def _counts(self, task: str) -> TaskProgress:
        return self.progress.tasks.setdefault(task, TaskProgress())

    def _go_on(self) -> None:
        while not self._closed.wait(self.progress.every):
            self._write()

    def _write(self) -> None:
        """Write the file, whole or not at all."""
        if self._file is None:
            return
        now = time.time()
        with self._lock:
            while self._recent and self._recent[0][0] < now - RECENT:
                self._recent.popleft()
            while self._items:
                task, status = self._items.popleft()
                counts = self._counts(task)
                counts.scored += 1
                counts.unparsed += status == "unparsed"
            recent = Counter(task for _, task in self._recent)
            for task, counts in self.progress.tasks.items():
                seconds = now - self._first.get(task, now)
                counts.speed = _speed(recent[task], counts.replies, seconds)
            replies = sum(counts.replies for counts in self.progress.tasks.values())
            seconds = now - (self.progress.asked_at or now)
            self.progress.speed = _speed(len(self._recent), replies, seconds)
            self.progress.at, self.progress.judge = now, self._of_judge()
            text = json.dumps(self.progress.model_dump(), ensure_ascii=False)
            text = text.encode("utf-8", "replace").decode()  # of half an emoji in a reply
            with suppress(OSError, ValueError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                write_text(self._file, text)

    def _of_judge(self) -> JudgeProgress | None:
        session = self._context.get(JudgeSession)
        if session is None:
            return None
        total = session.usage.total()
        reasons = {status: text for status, text in total.reasons.items() if status != _SKIPPED}
        skipped = total.by_status.get(_SKIPPED, 0)
        return JudgeProgress(
            verdicts=session.progress.n_done - skipped,
            failed=session.progress.failed - skipped,
            skipped=skipped,
            tokens=total.prompt_tokens + total.completion_tokens,
            cost=total.cost,
            reason=next(iter(reasons.values()), ""),
        )


def _speed(recent: int, replies: int, seconds: float) -> float:
    """Return the replies a second in the last RECENT seconds, or in all if there are none.

    Args:
        recent: replies in the last RECENT seconds.
        replies: all replies; a class that answers large batches gives none for minutes.
        seconds: the time that all replies took.
    """
    seconds = max(seconds, 1.0)
    return recent / min(RECENT, seconds) if recent else replies / seconds


def of_run() -> RunProgress:
    """Return the progress of the run in this process."""
    return context.current().instance_of(RunProgress)


def _of_process(run: str, model: str, stamp: str) -> ProcessProgress:
    processes, now = int(os.environ.get("WORLD_SIZE", "1")), time.time()
    return ProcessProgress(
        run=run,
        rank=int(os.environ.get("RANK", "0")),
        processes=processes,
        machine=platform.node(),
        pid=os.getpid(),
        model=model,
        stamp=stamp,
        begun=now,
        at=now,
        every=EVERY * max(1, processes / _FEW),
    )


@contextmanager
def written(arguments: Mapping[str, Json], tasks: Sequence[str]) -> Iterator[None]:
    """Context manager that writes the progress of a run to its `--output_path`, if it has one.

    Every process of the run has to enter it.

    Args:
        arguments: arguments of lmms-eval's `simple_evaluate`.
        tasks: our tasks.
    """
    run, *_ = context.gathered(uuid.uuid4().hex[:8])
    output_path = getattr(arguments.get("cli_args"), "output_path", None)
    model, given = arguments.get("model"), arguments.get("model_args") or "default arguments"
    told = given if isinstance(given, str) else ",".join(f"{k}={v}" for k, v in given.items())
    named = model if isinstance(model, str) else type(model).__name__
    stamp = str(arguments.get("datetime_str") or "").replace(":", "-")
    progress = _of_process(run, f"{named} ({hide_secrets(told)})", stamp)
    progress.tasks = {task: TaskProgress() for task in tasks}
    folder = Path(output_path, FOLDER) if output_path else None
    own = context.current().instance_of(RunProgress, lambda: RunProgress(folder, progress))
    own.begin()
    try:
        yield
    except BaseException as error:
        lines = str(error).splitlines() if isinstance(error, TasksError) else [repr(error)]
        own.end("stopped", lines[0][:_LONGEST] if lines else "")
        raise
    own.end("scored")


def read_progress(output_path: Path) -> list[list[ProcessProgress]]:
    """Return the progress of the runs in an output path: a list of processes for each run.

    The runs are in the order of their beginnings, the processes in the order of ranks. Files that
    cannot be read are skipped: they are just being written, or damaged.
    """
    runs: dict[str, list[ProcessProgress]] = {}
    for file in sorted((output_path / FOLDER).glob("*.json")):
        with suppress(OSError, TasksError, ValidationError):
            process = ProcessProgress.model_validate_json(read_bytes(file))
            runs.setdefault(process.run, []).append(process)
    for processes in runs.values():
        processes.sort(key=lambda process: process.rank)
    return sorted(runs.values(), key=lambda processes: processes[0].begun)
