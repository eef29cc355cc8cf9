"""kill -9 in the middle of a judged run: what was paid for stays, and the results are the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import faults
import pytest
from faults import Player

from lmms_eval_tasks.judges import cache_files
from tests.conftest import REPOSITORY
from tests.local_endpoint import Fault, LocalEndpoint, slow

COUNT = 120
THREADS = 8  # requests in flight in one process
# One from each end, so that they meet; 40 items are both's.
PARTS = ("0:80", "119:39:-1")


class Gated(Player):
    """Holds its replies until both processes have asked, so that neither runs ahead."""

    def __init__(self, delay: float) -> None:
        super().__init__(delay=delay)
        self._ends = {item.name for item in (faults.items(1)[0], faults.items(COUNT)[-1])}
        self._both = threading.Event()

    def __call__(self, request: dict[str, Any]) -> Fault:
        reply = super().__call__(request)
        if self._ends <= self.seen.keys():
            self._both.set()
        self._both.wait(20)
        return reply


class Numbered(Player):
    """Every reply is another: only the cache can make two processes agree."""

    def __call__(self, request: dict[str, Any]) -> Fault:
        name = faults.name_of(request)
        super().__call__(request)
        told = json.loads(faults.right(name))
        with self._lock:
            number = sum(self.seen.values())
        return slow(self.delay, json.dumps({**told, "reason": f"reply {number}"}))


def start(url: str, folder: Path, part: str, out: Path) -> subprocess.Popen[bytes]:
    """A process that judges a part of the items."""
    script = [sys.executable, str(faults.__file__), "--url", url, "--cache", str(folder)]
    options = ["--items", part, "--out", str(out), "--threads", str(THREADS)]
    path = os.pathsep.join([str(REPOSITORY), str(Path(faults.__file__).parent)])
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen([*script, *options], env=env)


def run_all(url: str, folder: Path, outs: Mapping[str, Path]) -> dict[str, Any]:
    """One process for each part, at the same time, to the end; what each wrote."""
    processes = [start(url, folder, part, out) for part, out in outs.items()]
    for process in processes:
        assert process.wait(120) == 0
    return {part: json.loads(out.read_text(encoding="utf-8")) for part, out in outs.items()}


def kill_at(url: str, folder: Path, requests: int, player: Player, kill: Sequence[int]) -> None:
    """Start both processes; kill -9 some of them once the endpoint has seen `requests`."""
    processes = [start(url, folder, part, folder / f"killed {part}") for part in PARTS]
    enough = threading.Event()

    def watch() -> None:
        while sum(player.seen.values()) < requests and not enough.wait(0.005):
            pass
        enough.set()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    assert enough.wait(120)
    for number in kill:
        processes[number].send_signal(signal.SIGKILL)
    codes = [process.wait(120) for process in processes]
    assert codes == [-signal.SIGKILL if number in kill else 0 for number in range(2)]
    assert not any((folder / f"killed {PARTS[number]}").exists() for number in kill)


def outs(folder: Path, name: str) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    return {part: folder / f"{name} {number}.json" for number, part in enumerate(PARTS)}


def merged(found: Mapping[str, Any]) -> dict[str, Any]:
    """All verdicts; the parts must agree on what both judged."""
    first, second = (found[part]["verdicts"] for part in PARTS)
    assert len(first.keys() & second.keys()) == 40
    assert all(first[name] == second[name] for name in first.keys() & second.keys())
    return {**first, **second}


@pytest.mark.parametrize("kill", [(0,), (0, 1)])
def test_two_processes_on_one_cache(tmp_path: Path, kill: tuple[int, ...]) -> None:
    player = Gated(delay=0.04)
    with LocalEndpoint(player) as endpoint:
        cache = tmp_path / "cache"
        cache.mkdir()
        kill_at(endpoint.url, cache, 50, player, kill)
        before = Counter(player.seen)
        assert sum(before.values()) >= 50
        resumed = run_all(endpoint.url, cache, outs(tmp_path, "resumed"))
        total = Counter(player.seen)
        twice = sum(count - 1 for count in total.values())
        assert len(total) == COUNT
        # Lost with a killed process: its calls in flight. Where the two parts meet, each may ask
        # what is in flight in the other, in the first run and again in the second.
        lost = sum(before.values()) - known_replies(cache, before)
        assert lost <= THREADS * len(kill)
        assert twice <= THREADS * len(kill) + 2 * THREADS, twice
        paid = sum(part["counts"]["paid"] for part in resumed.values())
        assert paid == sum(total.values()) - sum(before.values())
        assert 0 < paid < COUNT

        fresh = run_all(endpoint.url, tmp_path / "fresh", outs(tmp_path, "fresh"))
    one, other = merged(resumed), merged(fresh)
    assert len(one) == COUNT
    names = sorted(one)
    assert json.dumps([one[n] for n in names]) == json.dumps([other[n] for n in names])
    assert {v["status"] for v in one.values()} == {"ok"}
    assert all(v["score"] == faults.right_score(name) for name, v in one.items())


def known_replies(cache: Path, sent: Counter[str]) -> int:
    """How many of the requests sent before have their reply in the cache, copies included."""
    times: Counter[str] = Counter()
    lines = cache / "lines.jsonl"
    with lines.open("w", encoding="utf-8") as out:
        cache_files.export(cache / "replies.sqlite3", out)
    for line in lines.read_text(encoding="utf-8").splitlines():
        times[faults.name_of(json.loads(line)["request"])] += 1
    return sum(min(times[name], count) for name, count in sent.items())


def test_processes_that_ask_the_same_get_the_same(tmp_path: Path) -> None:
    """Both judge all items in the same order, and the endpoint never says the same twice.

    Processes do not wait for each other's calls, so questions that both have in flight are paid for
    twice. The second reply is kept beside the first, and both go on with the first.
    """
    player = Numbered(delay=0.03)
    with LocalEndpoint(player) as endpoint:
        cache = tmp_path / "cache"
        same = {f"0:{COUNT}": tmp_path / "a.json", f"0:{COUNT}:1": tmp_path / "b.json"}
        first, second = run_all(endpoint.url, cache, same).values()
        assert json.dumps(first["verdicts"]) == json.dumps(second["verdicts"])
        paid = sum(player.seen.values())
        assert paid == first["counts"]["paid"] + second["counts"]["paid"]
        (third,) = run_all(endpoint.url, cache, {f"0:{COUNT}": tmp_path / "c.json"}).values()
        assert sum(player.seen.values()) == paid
    assert third["counts"] == {"paid": 0, "cached": COUNT}
    assert json.dumps(third["verdicts"]) == json.dumps(first["verdicts"])
    assert len({v["reason"] for v in first["verdicts"].values()}) == COUNT
    assert cache_files.summary(cache / "replies.sqlite3")["paid_again"] == paid - COUNT


def test_killed_again_and_again(tmp_path: Path) -> None:
    """One process, killed every 15 requests until it is through: at most 8 lost each time."""
    player, out, kills = Player(delay=0.04), tmp_path / "out.json", 0
    with LocalEndpoint(player) as endpoint:
        while not out.exists():
            before = sum(player.seen.values())
            process = start(endpoint.url, tmp_path / "cache", f"0:{COUNT}", out)
            while process.poll() is None and sum(player.seen.values()) < before + 25:
                threading.Event().wait(0.005)
            if process.poll() is None and kills < 3:
                process.send_signal(signal.SIGKILL)
                kills += 1
            assert process.wait(120) in (0, -signal.SIGKILL)
    assert kills == 3
    assert set(player.seen) == {item.name for item in faults.items(COUNT)}
    assert sum(player.seen.values()) <= COUNT + kills * THREADS
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["counts"]["cached"] >= 3 * (25 - THREADS)
    assert all(v["score"] == faults.right_score(n) for n, v in found["verdicts"].items())
