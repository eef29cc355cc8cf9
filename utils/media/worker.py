"""Work on video files in child processes, since decoders may hang or crash on broken files.

    >>> call("lmms_eval_tasks.media.video_checks", "facts", "videos/5.mp4", 60, out="")
    {'n_frames': 750, ...}

The module has both sides: `call`, and, run as a script, the child. A job is the name of a function
of this package with JSON arguments. A child does one job after another, as its start takes half a
second; after a failed job it is not used again. Children are started anew, never forked: this
process may have threads and a GPU. (multiprocessing would import lmms-eval's main module, with
torch.)
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.json_files import Json, JsonObject

WORKER = "lmms_eval_tasks.utils.media.worker"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_UNUSED = 20.0  # seconds without a job after which a child ends, since it takes some 100 MB


def source_file(source: str | Path) -> Path:
    """Return the absolute path of a file that can be opened.

    Raises:
        MediaError: there is no such file; names it.
    """
    path = Path(source).expanduser().absolute()
    if not path.is_file():  # reading a pipe would wait forever
        why = "no such file" if not path.exists() else "is not a regular file"
        raise MediaError(f"{path}: {why}")
    return path


def call(
    module: str, function: str, source: str | Path, time_limit: float, **arguments: Json
) -> JsonObject:
    """Return the result of a function of this package for a file, from a child process.

    Args:
        module, function: their names; the function is called as function(source, **arguments).
        source: the file.
        time_limit: seconds.
        arguments: JSON types.

    Raises:
        MediaError: the file's fault, or the child crashed or was too slow; names the file.
        OSError: the child has no disk space or permission to write.
    """
    job = json.dumps([module, function, str(source), arguments])
    while True:
        try:
            child, used = _waiting.pop(), True
        except IndexError:
            child, used = _Child(), False
        answer = child.ask(job, time_limit)
        if "ok" in answer:
            _waiting.append(child)
            result: JsonObject = answer["ok"]
            return result
        child.end()
        if number := answer.get("no_room"):
            raise OSError(number, os.strerror(number))
        # A used child may have ended for lack of jobs, or because of an earlier file: try a new
        # one.
        if not (used and answer.get("died")):
            raise MediaError(f"{source}: {answer['error']}")


class _Child:
    """A process that reads a job per line and writes an answer per line."""

    def __init__(self) -> None:
        # A file, not a pipe, which would fill up: decoders print much about damaged files.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            cwd="/",  # so that a folder `av` of the user's is not imported
        )

    def ask(self, job: str, time_limit: float) -> JsonObject:
        """Return the child's answer; else the reason as `error`, and `died` if it ended itself."""
        process, begin = self._process, time.monotonic()
        assert process.stdin
        assert process.stdout
        timer = threading.Timer(time_limit, process.kill)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(job + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
            if line.endswith("\n"):
                answer: JsonObject = json.loads(line)
                return answer
            code = process.wait()
        except BaseException:  # such as a user who stops the run
            self.end()
            raise
        finally:
            timer.cancel()
        if time.monotonic() - begin >= time_limit:
            return {"error": f"took more than {time_limit:g} s; the file may be damaged"}
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        how = (said or [f"exit status {code}"])[-1]
        if code < 0:
            how = f"the decoder crashed: {signal.Signals(-code).name}"
        return {"error": f"reading it failed ({how})", "died": True}

    def end(self) -> None:
        """Kill the process at once."""
        self._process.kill()
        with suppress(BrokenPipeError), self._process:
            pass  # leaving `with` closes the pipes and waits for the process
        self._errors.close()


_waiting: deque[_Child] = deque()  # children without a job


@atexit.register
def end_waiting() -> None:
    """End the children that wait for jobs; later jobs start new ones."""
    while _waiting:
        with suppress(IndexError):
            _waiting.pop().end()


# A forked process must not write into its parent's pipes.
if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_waiting.clear)


# --- the child ----------------------------------------------------------------------------------


def _answer(module: str, function: str, source: str, arguments: JsonObject) -> JsonObject:
    work = getattr(import_module(module), function)
    try:
        return {"ok": work(source, **arguments)}
    except (MediaError, MemoryError, OSError) as error:
        told = {"error": str(error) or "its frames do not fit into memory"}
        cause: BaseException | None = error  # a reader's error may hide the writer's
        while cause is not None:
            if getattr(cause, "errno", None) in _NO_ROOM:
                return {**told, "no_room": cause.errno}  # type: ignore[attr-defined]
            cause = cause.__cause__ or cause.__context__
        return told


def main() -> None:
    """Do jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not mix with answers
    while line := _next_job():
        print(json.dumps(_answer(*json.loads(line))), file=answers, flush=True)


def _next_job() -> str:
    """Return the next line of standard input; end the process if none comes for too long.

    Windows cannot wait for a pipe with a time limit, so a thread ends the process.
    """
    ends = threading.Timer(_UNUSED, os._exit, (0,))
    ends.daemon = True
    ends.start()
    try:
        return sys.stdin.readline()
    finally:
        ends.cancel()


if __name__ == "__main__":
    main()
