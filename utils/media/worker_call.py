"""Jobs for the child processes that touch video files (media_worker.py).

A child does one job after another: its start and its imports, about half a second, are paid once
for many files. It is used again after a good answer only, so that what a damaged file leaves behind
in a decoder ends with the child that read it. Children are started anew, never forked: the process
may hold threads and a GPU.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import MediaError

WORKER = "lmms_eval_tasks.utils.media.media_worker"


class UnfinishedError(MediaError):
    """A job that ended without a word about the file: time was up, the child died, memory failed.

    Another try may go well, so it is no fact about the file.
    """


def source_file(source: str | Path) -> Path:
    """The absolute path of a file that can be opened.

    Raises:
        MediaError: there is none; names it.
    """
    path = Path(source).expanduser().absolute()
    if path.is_dir():
        raise MediaError(f"{path}: is a folder, not a video file")
    if not path.exists():
        raise MediaError(f"{path}: no such file")
    if not path.is_file():
        raise MediaError(f"{path}: is not a regular file")  # reading a pipe would wait for ever
    return path


def call(job: dict[str, Any], time_limit: float, decord: bool = False) -> dict[str, Any]:
    """Have a job done by a child process: one that waits for jobs, or a new one.

    Args:
        job: what media_worker.py does: `do`, `source` and what that needs.
        time_limit: seconds.
        decord: the job may ask decord; it is done once more without, if that crashed the process.

    Raises:
        UnfinishedError: the child crashed or took too long, or memory or the disk failed.
        MediaError: the file is the reason. Both name it.
    """
    for use_decord in (True, False) if decord else (False,):
        text = json.dumps({**job, "decord": use_decord, "time_limit": time_limit})
        answer = _asked(text, time_limit)
        if "ok" in answer:
            result: dict[str, Any] = answer["ok"]
            return result
        if "error" in answer:
            raise MediaError(f"{job['source']}: {answer['error']}")
        if answer.get("died", 0) >= 0:
            break  # no crash, so decord is not the reason
    raise UnfinishedError(f"{job['source']}: {answer['failed']}")


class _Child:
    """A running media_worker.py, which takes a line with a job and answers with a line."""

    def __init__(self) -> None:
        self.module, self.new = WORKER, True
        # Not a pipe, which would fill up: decoders say much about damaged files.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            cwd="/",  # so that no folder of the user's that is called `av` is imported
        )

    @property
    def waits(self) -> bool:
        """Whether it can take a job; it ends by itself when it gets none for a while."""
        return self.module == WORKER and self._process.poll() is None

    def ask(self, job: str, time_limit: float) -> dict[str, Any]:
        """Its answer; if it gave none, why it "failed", and with which code it "died" by itself."""
        process = self._process
        assert process.stdin
        assert process.stdout
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(time_limit, stop)
        timer.start()
        try:
            process.stdin.write(job + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if line.endswith("\n"):
                answer: dict[str, Any] = json.loads(line)
                return answer
            code = process.wait()
        except BrokenPipeError:
            code = process.wait()
        except BaseException:  # such as a user who stops the run
            self.end()
            raise
        finally:
            timer.cancel()
        if late.is_set():
            why = f"reading it took more than {time_limit:g} s; the file may be damaged"
            return {"failed": why}
        return {"failed": f"reading it failed ({self._last_words(code)})", "died": code}

    def end(self) -> None:
        """End it at once, whatever it does."""
        self._process.kill()
        with suppress(BrokenPipeError), self._process:
            pass  # leaving it closes the pipes and waits for the process
        self._errors.close()

    def _last_words(self, code: int) -> str:
        if code < 0:
            return f"the decoder crashed: {signal.Signals(-code).name}"
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {code}"


_waiting: deque[_Child] = deque()  # children without a job


def _asked(job: str, time_limit: float) -> dict[str, Any]:
    """A child's answer to a job, or why there is none."""
    child = _taken()
    answer = child.ask(job, time_limit)
    if "died" in answer and not child.new:
        # It was about to end for want of jobs, or an earlier file is the reason.
        child.end()
        child = _Child()
        answer = child.ask(job, time_limit)
    if "ok" in answer:
        child.new = False
        _waiting.append(child)
    else:
        child.end()
    return answer


def _taken() -> _Child:
    """A child that waits for a job, or a new one."""
    while _waiting:
        try:
            child = _waiting.pop()
        except IndexError:  # another thread was faster
            break
        if child.waits:
            return child
        child.end()
    return _Child()


@atexit.register
def end_waiting() -> None:
    """End the children that wait for jobs; further jobs get new ones."""
    while _waiting:
        with suppress(IndexError):
            _waiting.pop().end()


# A forked process must not write into its parent's pipes.
os.register_at_fork(after_in_child=_waiting.clear)
