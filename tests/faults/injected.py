"""Runs a command of ours, and breaks something in its midst: what and when, FAULT says.

FAULT is JSON: `home`, the folder to run in; and, if something is to break, `point`, `number` (the
n-th time that the run gets there) and `does`. Points are names in POINTS, or `open GLOB`: a file of
that name is opened to be written. What the model was asked and what its judge's replies were kept
as is written to `home/events`, a line each, which outlives a kill.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import multiprocessing
import os
import resource
import runpy
import signal
import sys
import threading
import time
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from lmms_eval_tasks.host import plugin

# Where a run gets to: a function of a module, and whether the moment is before or after it.
POINTS = {
    "media": ("lmms_eval_tasks.runs.prepare", "make_media", "before"),
    "request": ("lmms_eval_tasks.models.fake_models", "Player._reply", "before"),
    # Of classes that ask an endpoint, in one of the threads that wait for a reply.
    "asked": ("lmms_eval_tasks.host.requests.request_runner", "RequestRunner._alone", "before"),
    "verdict": ("lmms_eval_tasks.judges.cache", "Cache.put", "after"),
    "aggregate": ("lmms_eval_tasks.report.aggregation", "count_failed", "before"),
}

# A chat template with the marks that the stub of vLLM counts.
MARKED = (
    "{% for message in messages %}{% for part in message['content'] %}"
    "{{ part['text'] if part['type'] == 'text' else '<' + part['type'] + '>' }}"
    "{% endfor %}{% endfor %}"
)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt(name: str) -> None:
    """Have the signal come in a second; the process has 5 s from then on."""
    threading.Timer(1, os.kill, (os.getpid(), signal.Signals[name])).start()
    signal.alarm(6)


def kill_later(seconds: str) -> None:
    """At whatever the run does then."""
    threading.Timer(float(seconds), kill).start()


def cut(size: str) -> None:
    """End the process in the write that takes a file over so many bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    full(size)


def full(size: str) -> None:
    """Refuse every write beyond so many bytes of a file (EFBIG), as a full disk refuses them."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), hard))


def jump(seconds: str) -> None:
    """Set this process's clock; that of files and of `time.monotonic` goes on as it was."""
    by, real, real_ns = float(seconds), time.time, time.time_ns
    moved = datetime.timedelta(seconds=by)

    class Jumped(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return super().now(tz) + moved

    time.time = lambda: real() + by
    time.time_ns = lambda: real_ns() + int(by * 1e9)
    datetime.datetime = Jumped  # type: ignore[misc]


def spoil(how: str, pattern: str) -> None:
    """Damage the files of that name in the run's folder."""
    files = [file for file in Path().glob(pattern) if file.is_file()]
    assert files, f"nothing to spoil: {pattern}"
    for file in files:
        damage(how, file)


def spoil_and_kill(how: str, pattern: str) -> None:
    """What a machine leaves that goes down while it writes."""
    spoil(how, pattern)
    kill()


def damage(how: str, file: Path) -> None:
    """One file as a crash, a disk or a user leaves it."""
    if how == "remove":
        file.unlink(missing_ok=True)  # a thread of the run may have been first
        return
    content = file.read_bytes()
    quarter = len(content) // 4
    noise = bytes((place * 7 + 13) % 256 for place in range(2 * quarter))
    made = {
        "truncate": content[: 2 * quarter],
        "empty": b"",
        "zero": b"\0" * len(content),
        "garble": content[:quarter] + noise + content[3 * quarter :],
    }
    file.write_bytes(made[how])


def kill_engine() -> None:
    """End the process in which vLLM's stand-in computes, as a system does that wants memory."""
    (engine,) = multiprocessing.active_children()
    engine.kill()


DOES: dict[str, Callable[..., None]] = {
    "kill": kill,
    "signal": interrupt,
    "kill later": kill_later,
    "kill engine": kill_engine,
    "cut": cut,
    "full": full,
    "jump": jump,
    "spoil": spoil,
    "spoil and kill": spoil_and_kill,
}


def armed(point: str, number: int, does: list[str]) -> Callable[[str], None]:
    """What is told each place that the run gets to, and acts at the one that was named."""
    count = itertools.count(1)

    def arrived(here: str) -> None:
        if here == point and next(count) == number:
            DOES[does[0]](*does[1:])

    return arrived


def watch(arrived: Callable[[str], None], told: Callable[[str], None]) -> None:
    """Have `arrived` called at every point, and `told` what must not be lost."""

    def wrap(point: str, name: str, when: str, module: Any) -> None:
        owner, _, last = name.rpartition(".")
        holder = getattr(module, owner) if owner else module
        whole = getattr(holder, last)

        @functools.wraps(whole)
        def through(*args: Any, **kwargs: Any) -> Any:
            if point in ("request", "asked"):
                told(f"request {args[1].task_name}/{args[1].doc_id}")
            if when == "before":
                arrived(point)
            made = whole(*args, **kwargs)
            if point == "verdict":
                told(f"verdict {args[1]}")
            if when == "after":
                arrived(point)
            return made

        setattr(holder, last, through)

    def missed(name: str, error: Exception) -> None:
        raise AssertionError(f"{name}: {error!r}")

    for point, (module, name, when) in POINTS.items():
        plugin.when_imported(module, functools.partial(wrap, point, name, when), missed)


def watch_files(pattern: str, arrived: Callable[[], None]) -> None:
    """Have `arrived` called when a file of that name is about to be opened for writing."""

    def heard(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(args[0], str):
            return
        writes = args[2] & (os.O_WRONLY | os.O_RDWR)
        if writes and fnmatch(os.path.basename(args[0]), pattern):
            arrived()

    sys.addaudithook(heard)


def stand_in_for_vllm() -> None:
    """Have `import vllm` find the stub, its engine a process, and a checkpoint in this folder."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "models" / "stub_vllm"))
    import vllm

    from lmms_eval_tasks.models import tiny

    vllm.LLM.has_process = True
    tokenizer = tiny.tokenizer_of(("<|end|>",), eos_token="<|end|>", pad_token="<|end|>")
    tokenizer.chat_template = MARKED
    tokenizer.save_pretrained("checkpoint")


def main() -> None:
    given = json.loads(os.environ.pop("FAULT"))
    os.chdir(given["home"])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # not of a job in the background
    log = os.open("events", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    point = given.get("point", "")
    arrived = armed(point, given.get("number", 0), given.get("does", []))
    watch(arrived, lambda line: os.write(log, f"{line}\n".encode()) and None)
    if point.startswith("open "):
        watch_files(point.removeprefix("open "), lambda: arrived(point))
    elif point == "start":
        arrived(point)
    if "tasks_vllm" in sys.argv:
        stand_in_for_vllm()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
