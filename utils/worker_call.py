"""Calls of the child process that touches video files (media_worker.py)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import MediaError

WORKER = "lmms_eval_tasks.utils.media_worker"


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
    """Run a job in a child process.

    Args:
        job: what media_worker.py does: `do`, `source` and what that needs.
        time_limit: seconds.
        decord: the job may ask decord; it is done once more without, if that crashed the process.

    Raises:
        MediaError: the worker's own, with the source's name, or it crashed or took too long.
    """
    for use_decord in (True, False) if decord else (False,):
        text = json.dumps({**job, "decord": use_decord, "time_limit": time_limit})
        try:
            done = subprocess.run(
                [sys.executable, "-m", WORKER],
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=time_limit,
                check=False,
                cwd="/",  # so that no folder of the user's that is called `av` is imported
            )
        except subprocess.TimeoutExpired as error:
            raise MediaError(
                f"{job['source']}: reading it took more than {time_limit:g} s; "
                "the file may be damaged"
            ) from error
        if done.returncode == 0:
            answer = json.loads(done.stdout)
            if "error" in answer:
                raise MediaError(f"{job['source']}: {answer['error']}")
            result: dict[str, Any] = answer["ok"]
            return result
        if done.returncode > 0:
            break  # an error in Python: decord is not the reason
    raise MediaError(f"{job['source']}: reading it failed ({_last_words(done)})")


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"the decoder crashed: {signal.Signals(-done.returncode).name}"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit status {done.returncode}"
