"""What large runs cost: processor time and memory by the number of items, files, a prefix cache.

    python benchmarks/scale.py items [--benchmark NAME] [--data ROOT] [--times 1,10,100]
    python benchmarks/scale.py files
    LMMS_EVAL_TASKS_DATA=ROOT python benchmarks/scale.py prefix [--video-tokens 4096]

`items`: a release (the packaged sample's, or ROOT's) whose entries are repeated under other names,
with no video files; each phase is a process of its own: its seconds of processor time, and its peak
memory. Replies and verdicts are the stand-ins of the estimate. `files`: what a run opens, renames
and locks in its cache and data, by Python's audit events in all of its processes. `prefix`: no
server runs; the prompts are ours, the cache is simulated as vLLM's is built, least recently used
blocks of 16 tokens, each known by all that stands before it; text is counted as 4 bytes a token.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from lmms_eval_tasks import benchmarks, running, sample, settings
from lmms_eval_tasks.benchmark import Benchmark, Found, Part
from lmms_eval_tasks.runs import after, before, estimate, given, scoring
from lmms_eval_tasks.utils import saved_runs

BIN = Path(sys.executable).parent

# --- items ----------------------------------------------------------------------------------------


class Data(NamedTuple):
    """A data file of a benchmark, and how its entries are repeated."""

    file: str
    names: tuple[str, ...]  # fields that tell entries apart; none where they are a mapping's keys
    times: int  # for some 100 docs of the packaged sample
    tasks: tuple[str, ...]


CVRR = "partial_actions"
DATA = {
    "maia": Data("data.json", ("video",), 1, ("maia_vsv", "maia_oevqa")),
    "maverix": Data("data.json", ("id", "video"), 5, ("maverix_v", "maverix_v_oe")),
    "movierecapsqa": Data(
        "segments.json", ("id", "videoId"), 10, ("movierecapsqa_segment_dialogue",)
    ),
    "haven": Data("processed/tvsum_data.json", (), 25, ("haven_v2t_text", "haven_temporal_text")),
    "cvrr_es": Data(f"{CVRR}/annotations_{CVRR}.json", ("VideoID",), 125, (f"cvrr_es_{CVRR}",)),
}


def repeated(content: Any, names: Sequence[str], times: int) -> Any:
    """The entries of a data file, so many times, each time under other names."""
    if not names:
        return {f"{name}{n:06}": one for n in range(times) for name, one in content.items()}
    if isinstance(content, dict):
        return {**content, "items": repeated(content["items"], names, times)}
    return [
        {**entry, **{name: f"{entry[name]}{n:06}" for name in names}}
        for n in range(times)
        for entry in content
    ]


def write_release(benchmark: str, source: Path, root: Path, times: int) -> None:
    """A data root with a benchmark's data file and no video."""
    data = DATA[benchmark]
    content = json.loads((source / benchmark / data.file).read_text(encoding="utf-8"))
    target = root / benchmark / data.file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(repeated(content, data.names, times)), encoding="utf-8")


def look(benchmark: Benchmark, names: Sequence[str]) -> Found:
    """As before a run, but without the videos."""
    return benchmark.look(names, only=())


class Work:
    """The phases of a run without the host; each after those before it."""

    def __init__(self, name: str, out: Path) -> None:
        self.benchmark, self.tasks, self.out = benchmarks.load(name), DATA[name].tasks, out
        self.docs: dict[str, list[Any]] = {}

    def read(self) -> int:
        """From the data file to docs; their number."""
        self.docs = {name: before.docs(self.benchmark, name) for name in self.tasks}
        return sum(map(len, self.docs.values()))

    def prompts(self) -> None:
        """The text of every prompt."""
        for name, own in self.docs.items():
            for doc in own:
                given.text_of(self.benchmark.tasks[name].prompt(doc))

    def score(self) -> None:
        """What the host keeps of every reply, and the sample files."""
        kept = {
            name: [self._scored(name, *one) for one in enumerate(self.docs[name])]
            for name in self.tasks
        }
        self.out.mkdir(parents=True, exist_ok=True)
        for name, own in kept.items():
            with self._file(name).open("w", encoding="utf-8") as file:
                for number, one in enumerate(own):
                    line = {"doc_id": number, **one, "input": ""}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _scored(self, name: str, number: int, doc: Any) -> dict[str, Any]:
        task = self.benchmark.tasks[name]
        reply = task.stand_in(doc, number) or str(doc.get("answer", "1"))
        item = scoring.scored(task, task.keep(doc), reply, estimate._stand_ins([]))
        return scoring.spread(task, self.benchmark.joins, item)

    def _file(self, task: str) -> Path:
        return self.out / f"20260101_000000_samples_{task}.jsonl"

    def numbers(self) -> None:
        """From the items to every number with its interval, and the results file."""
        row: dict[str, Any] = {}
        for name in self.tasks:
            items = saved_runs.saved_items(saved_runs.read(self._file(name)))
            row[name] = {"failed,none": scoring.Carried(0, items)}
        results = {"config": {"model": "m", "model_args": ""}, "model_name": "m", "results": row}
        after.annotate(results, self.tasks)
        file = self.out / "20260101_000000_results.json"
        file.write_text(json.dumps(results), encoding="utf-8")


PHASES = {
    "docs": (Work.read,),
    "prompts": (Work.read, Work.prompts),
    "scoring": (Work.read, Work.score),
    "numbers": (Work.numbers,),
}


def phase(name: str, benchmark: str, out: Path) -> None:
    """One phase, in a process of its own: prints what its last step took, and gave."""
    work, found = Work(benchmark, out), None
    with patch.object(before, "look", look):
        for step in PHASES[name]:
            started = time.process_time()
            found = step(work)
    print(json.dumps([time.process_time() - started, found]))


def ran(env: Mapping[str, str], *command: object) -> tuple[str, float, float]:
    """What a process printed, its processor seconds, and its peak memory in MB."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(list(map(str, command)), env=env, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode not in (0, 3):  # 3: made-up replies may be invalid
        sys.exit(text)
    return text, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def items(told: argparse.Namespace) -> None:
    """Print a line for each benchmark, number of items and phase."""
    print("benchmark       x     docs  phase      seconds     MB")
    for benchmark in told.benchmark or DATA:
        for times in map(int, told.times.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                _items(benchmark, times, told.data, Path(folder))


def _items(benchmark: str, times: int, source: Path | None, root: Path) -> None:
    source = source or sample.build(root / "sample")
    write_release(benchmark, source, root / "data", times * DATA[benchmark].times)
    out, page, tool = root / "out", root / "page.html", BIN / "lmms-eval-tasks"
    env = {**os.environ, settings.CACHE: str(root / "cache"), settings.JUDGE: "none"}
    here = (sys.executable, __file__, "phase")
    commands: dict[str, tuple[object, ...]] = {
        **{name: (*here, name, benchmark, out) for name in PHASES},
        "rescore": (tool, "rescore", out),
        "report": (tool, "report", out, "--format", "text"),
        "page": (tool, "report", out, "-o", page),
        "records": (tool, "leaderboard", benchmark, out, "--format", "eee", "-o", root / "eee"),
    }
    docs = 0
    for name, command in commands.items():
        # A report finds no data, and so makes no pictures of clips: they are of videos, not items.
        data = root / ("data" if name in PHASES else "none")
        text, seconds, memory = ran({**env, settings.DATA: str(data)}, *command)
        if name in PHASES:
            seconds, found = json.loads(text.splitlines()[-1])
            docs = found or docs
        print(
            f"{benchmark:13} {times:3} {docs:8,}  {name:9} {seconds:8.2f} {memory:6.0f}", flush=True
        )
    log, size = sum(one.stat().st_size for one in out.glob("*.jsonl")), page.stat().st_size
    print(f"{benchmark:13} samples {log / 1e6:.1f} MB, page {size / 1e6:.1f} MB", flush=True)


# --- files ----------------------------------------------------------------------------------------

# Stands in every process of a run: counts what it does with files below the roots.
AUDIT = """
import atexit, collections, json, os, sys, uuid
roots, to = os.environ["SCALE_ROOTS"].split(":"), os.environ["SCALE_TO"]
seen = collections.Counter()
def hook(event, given):
    if event not in ("open", "os.rename", "fcntl.flock", "sqlite3.connect"):
        return
    path = os.readlink(f"/proc/self/fd/{given[0]}") if event == "fcntl.flock" else given[0]
    path = str(path).removeprefix("file://").partition("?")[0]
    if (root := next((one for one in roots if path.startswith(one)), None)) is None:
        return
    kind = event
    if event == "open":
        kind = "write" if given[2] & (os.O_WRONLY | os.O_RDWR) else "read"
    folder = path.removeprefix(root).strip("/").partition("/")[0]
    place = f"{os.path.basename(root)}/{folder}"
    seen[kind, place] += 1
    if kind == "read" and os.path.isfile(path):
        seen["bytes", place] += os.stat(path).st_size
sys.addaudithook(hook)
@atexit.register
def _tell():
    found = [[*key, number] for key, number in seen.items()]
    with open(f"{to}/{uuid.uuid4().hex}", "w") as file:
        json.dump(found, file)
"""


def files(_: argparse.Namespace) -> None:
    """Print what two runs of the sample do with files, the second of which finds clips."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sample.build(root / "data")
        (root / "hook").mkdir()
        (root / "hook" / "sitecustomize.py").write_text(AUDIT, encoding="utf-8")
        for number in ("first", "second"):
            to = root / number
            to.mkdir()
            env = {
                **os.environ,
                "PYTHONPATH": str(root / "hook"),
                "SCALE_ROOTS": f"{root / 'data'}:{root / 'cache'}",
                "SCALE_TO": str(to),
                settings.DATA: str(root / "data"),
                settings.CACHE: str(root / "cache"),
                settings.JUDGE: "none",
            }
            model = ("--model", "tasks_scripted", "--tasks", "maia", "--log_samples")
            ran(env, BIN / "lmms_eval", *model, "--output_path", root / "out" / number)
            found: Counter[tuple[str, str]] = Counter()
            for file in to.iterdir():
                for kind, place, count in json.loads(file.read_text(encoding="utf-8")):
                    found[place, kind] += count
            print(f"{number} run, {len(list(to.iterdir()))} processes")
            for (place, kind), count in sorted(found.items()):
                print(f"  {place:24} {kind:16} {count:12,}")


# --- prefix ---------------------------------------------------------------------------------------

BLOCK, BYTES = 16, 4  # tokens in a block; bytes in a token
TASK = "maia_vsv"


def blocks(doc_video: str, parts: Sequence[Part], video_tokens: int) -> list[int]:
    """A prompt's whole blocks, each a hash of everything up to its end."""
    units: list[object] = []
    for part in parts:
        if part.kind == "text":
            text = str(part.given).encode()
            units += [text[at : at + BYTES] for at in range(0, len(text), BYTES)]
        else:
            units += [(doc_video, place) for place in range(video_tokens)]
    found, known = [], 0
    for at in range(0, len(units) - BLOCK + 1, BLOCK):
        known = hash((known, *units[at : at + BLOCK]))
        found.append(known)
    return found


def share_found(prompts: Iterable[Sequence[int]], capacity: int) -> float:
    """Share (0..1) of blocks in a prefix that is still in a cache of `capacity` blocks."""
    cache: OrderedDict[int, None] = OrderedDict()
    hits = asked = 0
    for prompt in prompts:
        asked += len(prompt)
        whole = True
        for block in prompt:
            whole = whole and block in cache
            hits += whole
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return hits / asked


def prefix(told: argparse.Namespace) -> None:
    """Print the shares by order and capacity."""
    docs = before.docs(benchmarks.load("maia"), TASK)
    prompt = benchmarks.of(TASK).tasks[TASK].prompt
    ours = [blocks(doc["video_path"], prompt(doc), told.video_tokens) for doc in docs]
    videos = [doc["video_path"] for doc in docs]
    changes = 1 + sum(one != other for one, other in pairwise(videos))
    print(f"{len(docs)} docs, {len(set(videos))} videos, {changes} runs of one video in our order")
    orders = {"ours": ours, "shuffled": random.Random(0).sample(ours, len(ours))}
    for ranks in (2, 4, 8):
        with patch.dict(os.environ, WORLD_SIZE=str(ranks)):
            orders[f"rank 0 of {ranks}"] = list(running.by_rank(ours))[::ranks]
    each = -(-told.video_tokens // BLOCK)
    for held in (2, 4, 100):
        capacity = held * each
        shares = (f"{name} {share_found(one, capacity):.3f}" for name, one in orders.items())
        print(f"room for {held} videos:", ", ".join(shares))


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("items")
    one.add_argument("--benchmark", choices=DATA, action="append", help="all of them unless told")
    one.add_argument("--data", type=Path, help="data root, instead of the packaged sample's")
    one.add_argument("--times", default="1,10,100")
    one.set_defaults(act=items)
    parts.add_parser("files").set_defaults(act=files)
    one = parts.add_parser("prefix")
    one.add_argument("--video-tokens", type=int, default=4096, help="of one video")
    one.set_defaults(act=prefix)
    one = parts.add_parser("phase")
    for name, kind in (("phase", str), ("benchmark", str), ("out", Path)):
        one.add_argument(name, type=kind)
    one.set_defaults(act=lambda told: phase(told.phase, told.benchmark, told.out))
    told = parser.parse_args()
    told.act(told)


if __name__ == "__main__":
    main()
