"""kill -9 in the middle of a judged run: what was paid for stays, and the results are the same."""

import json
import multiprocessing
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import faults
from faults import Player

from lmms_eval_tasks.judges.cache import cached_replies
from tests.checks import table
from tests.local_endpoint import Fault, LocalEndpoint

COUNT = 120
THREADS = 8  # requests at a time in one process
# One from each end, so that they meet; 40 items are both's.
PARTS = {"first": range(80), "second": range(119, 39, -1)}
# Fresh processes, of which only the first pays for the imports.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["faults", "lmms_eval_tasks.judges.providers.openai_compatible"])


class Gated(Player):
    """Holds its replies until both processes have asked, so that neither runs ahead."""

    def __init__(self, delay: float) -> None:
        super().__init__(delay=delay)
        # A judge answers one request before it gets more, of whichever thread is first.
        names = [item.name for item in faults.items(COUNT)]
        self._ends = ({*names[:THREADS]}, {*names[-THREADS:]})
        self._both = threading.Event()

    def __call__(self, request: dict[str, Any]) -> Fault:
        reply = super().__call__(request)
        if all(end & self.seen.keys() for end in self._ends):
            self._both.set()
        self._both.wait(20)
        return reply


def start(url: str, folder: Path, part: Sequence[int], out: Path) -> ForkServerProcess:
    """A process that judges a part of the items."""
    process = CONTEXT.Process(target=faults.process, args=(url, folder, part, out, THREADS))
    process.start()
    return process


def run_all(url: str, folder: Path, parts: Mapping[str, Sequence[int]]) -> list[Any]:
    """One process for each part, at the same time, to the end; what each wrote."""
    outs = {folder.with_name(f"{folder.name}-{name}.json"): part for name, part in parts.items()}
    processes = [start(url, folder, part, out) for out, part in outs.items()]
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * len(outs)
    return [json.loads(out.read_text(encoding="utf-8")) for out in outs]


def merged(found: Sequence[Any]) -> dict[str, Any]:
    """All verdicts; the parts must agree on what both judged."""
    first, second = (part["verdicts"] for part in found)
    assert len(first.keys() & second.keys()) == 40
    assert all(first[name] == second[name] for name in first.keys() & second.keys())
    return {**first, **second}


@table("kill", [("first",), ("first", "second")])
def test_two_processes_on_one_cache(tmp_path, kill):
    player, cache = Gated(delay=0.1), tmp_path / "cache"
    with LocalEndpoint(player) as endpoint:
        outs = {name: tmp_path / f"killed-{name}.json" for name in PARTS}
        processes = {
            name: start(endpoint.url, cache, PARTS[name], out) for name, out in outs.items()
        }
        until = time.monotonic() + 120
        while sum(player.seen.values()) < 50 and time.monotonic() < until:
            time.sleep(0.005)
        for name in kill:
            processes[name].kill()
        for name, process in processes.items():
            process.join(120)
            assert process.exitcode == (-signal.SIGKILL if name in kill else 0)
            assert outs[name].exists() == (name not in kill)

        before = Counter(player.seen)
        assert sum(before.values()) >= 50
        # Of the requests sent before, those lost with a killed process were in flight in it.
        kept = {
            faults.name_of(line["request"]) for line in cached_replies(cache / "replies.sqlite3")
        }
        assert len(before.keys() - kept) <= THREADS * len(kill)
        resumed = run_all(endpoint.url, cache, PARTS)
        total = Counter(player.seen)
        assert len(total) == COUNT
        # Where the two parts meet, each may ask what is in flight in the other.
        assert sum(count - 1 for count in total.values()) <= THREADS * len(kill) + 2 * THREADS
        paid = sum(part["counts"]["paid"] for part in resumed)
        assert paid == sum(total.values()) - sum(before.values())
        assert 0 < paid < COUNT

        fresh = run_all(endpoint.url, tmp_path / "fresh", PARTS)
    one, other = merged(resumed), merged(fresh)
    assert len(one) == COUNT
    names = sorted(one)
    assert json.dumps([one[n] for n in names]) == json.dumps([other[n] for n in names])
    assert {v["status"] for v in one.values()} == {"ok"}
    assert all(v["score"] == faults.right_score(name) for name, v in one.items())
