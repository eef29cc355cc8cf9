"""The costs of large runs: time and memory by number of items and of processes, and files.

    python benchmarks/scale.py items [--benchmark NAME] [--data ROOT] [--times 1,10,100]
    python benchmarks/scale.py host [--times 1,10] [--processes 1,2,4]
    python benchmarks/scale.py judge [--times 1,10] [--flight 1,8,32]
    python benchmarks/scale.py clip --data ROOT [--questions 1,192]
    python benchmarks/scale.py files

`items`: a release (the packaged sample's, or ROOT's) whose entries are repeated with different
names, without video files. Each phase has its own process; the figures are its processor time in
seconds and its peak memory. Replies and verdicts are the examples of the estimate. `host`: complete
runs of such a release through lmms-eval, text alone, with a made-up model and no judge. `judge`:
saved replies are judged later, by an endpoint in another process that takes 200 ms. `clip`:
lmms-eval's class `openai` asks such an endpoint questions on one clip of MAIA. `files`: the files
that a run opens, renames and locks in its cache and data, from Python's audit events in all of its
processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import slow_endpoint

from lmms_eval_tasks import registry, sample, settings
from lmms_eval_tasks.benchmark import Benchmark, LoadedData
from lmms_eval_tasks.runs import estimate, finish, messages, prepare, scoring
from lmms_eval_tasks.utils import saved_runs

BIN = Path(sys.executable).parent

# --- items ----------------------------------------------------------------------------------------


class Data(NamedTuple):
    """A data file of a benchmark, and the way in which its entries are repeated."""

    file: str
    names: tuple[str, ...]  # fields that identify entries; empty if these are a mapping's keys
    times: int  # factor for about 100 docs of the packaged sample
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
    """Return the entries of a data file, repeated so many times with different names."""
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
    """Write a data root with a benchmark's data file and no video."""
    data = DATA[benchmark]
    content = json.loads((source / benchmark / data.file).read_text(encoding="utf-8"))
    target = root / benchmark / data.file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(repeated(content, data.names, times)), encoding="utf-8")


def look(benchmark: Benchmark, names: Sequence[str]) -> LoadedData:
    """Load the data as before a run, but without the videos."""
    return benchmark.load(names, only=())


class Work:
    """The phases of a run without lmms-eval; each needs the phases before it."""

    def __init__(self, name: str, out: Path) -> None:
        self.benchmark, self.tasks, self.out = registry.load_benchmark(name), DATA[name].tasks, out
        self.docs: dict[str, list[Any]] = {}

    def read(self) -> int:
        """Make docs from the data file; return their number."""
        self.docs = {name: prepare.usable_docs(self.benchmark, name) for name in self.tasks}
        return sum(map(len, self.docs.values()))

    def prompts(self) -> None:
        """Make the text of every prompt."""
        for name, own in self.docs.items():
            for doc in own:
                messages.text_of(self.benchmark.tasks[name].prompt(doc))

    def score(self) -> None:
        """Score every reply in lmms-eval's form, and write the sample files."""
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
        reply = task.example_reply(doc, number) or str(doc.get("answer", "1"))
        item = scoring.scored(task, task.log_fields(doc), reply, estimate._stand_ins([]))
        return scoring.to_host_rows(task, self.benchmark.joint_metrics, item)

    def _file(self, task: str) -> Path:
        return self.out / f"20260101_000000_samples_{task}.jsonl"

    def numbers(self) -> None:
        """Compute every number with its interval from the items, and write the results file."""
        row: dict[str, Any] = {}
        for name in self.tasks:
            items = saved_runs.saved_items(saved_runs.read_saved_run(self._file(name)))
            row[name] = {"failed,none": scoring.ItemsCarrier(0, items)}
        results = {"config": {"model": "m", "model_args": ""}, "model_name": "m", "results": row}
        finish.annotate(results, self.tasks)
        file = self.out / "20260101_000000_results.json"
        file.write_text(json.dumps(results), encoding="utf-8")


PHASES: dict[str, tuple[Callable[[Work], int | None], ...]] = {
    "docs": (Work.read,),
    "prompts": (Work.read, Work.prompts),
    "scoring": (Work.read, Work.score),
    "numbers": (Work.numbers,),
}


def phase(name: str, benchmark: str, out: Path) -> None:
    """Run one phase in its own process; print the time and the result of its last step."""
    work, found = Work(benchmark, out), None
    with patch.object(prepare, "load_data", look):
        for step in PHASES[name]:
            started = time.process_time()
            found = step(work)
    print(json.dumps([time.process_time() - started, found]))


class Ran(NamedTuple):
    """The output and the costs of a process with its children."""

    text: str
    seconds: float  # seconds of processor time
    memory: float  # peak of the largest process, in MB
    wall: float  # wall time in seconds


def ran(env: Mapping[str, str], *command: object) -> Ran:
    """Run a command; its peak includes this process's memory at its start, which is small."""
    with tempfile.TemporaryFile("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(list(map(str, command)), env=env, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode not in (0, 3):  # 3, since made-up replies may be invalid
        sys.exit(text)
    return Ran(text, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, wall)


HERE = (sys.executable, __file__)
TOOL = BIN / "lmms-eval-tasks"


def released(benchmark: str, times: int, root: Path, source: Path | None = None) -> dict[str, str]:
    """Write a release in a folder; return the environment for commands that use it."""
    ran({**os.environ}, *HERE, "release", benchmark, times, root, *([source] if source else []))
    given = {settings.DATA: root / "data", settings.CACHE: root / "cache", settings.JUDGE: "none"}
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": root / "huggingface", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **{name: str(value) for name, value in {**given, **offline}.items()}}


def release(benchmark: str, times: int, root: Path, source: Path | None) -> None:
    """Write the release, in its own process, which may grow."""
    source = source or sample.build_sample(root / "sample")
    write_release(benchmark, source, root / "data", times * DATA[benchmark].times)


def items(told: argparse.Namespace) -> None:
    """Print a line for each benchmark, number of items and phase."""
    print("benchmark       x     docs  phase      seconds     MB")
    for benchmark in told.benchmark or DATA:
        for times in told.times:
            with tempfile.TemporaryDirectory() as folder:
                _items(benchmark, times, told.data, Path(folder))


def _items(benchmark: str, times: int, source: Path | None, root: Path) -> None:
    env = released(benchmark, times, root, source)
    out, page = root / "out", root / "page.html"
    commands: dict[str, tuple[object, ...]] = {
        **{name: (*HERE, "phase", name, benchmark, out) for name in PHASES},
        "rescore": (TOOL, "rescore", out),
        "report": (TOOL, "report", out, "--format", "text"),
        "page": (TOOL, "report", out, "-o", page),
        "records": (TOOL, "leaderboard", benchmark, out, "--format", "eee", "-o", root / "eee"),
    }
    docs = 0
    for name, command in commands.items():
        # A report finds no data, so it makes no pictures of clips, which depend on videos, not
        # items.
        if name not in PHASES:
            env[settings.DATA] = str(root / "none")
        text, seconds, memory, _ = ran(env, *command)
        if name in PHASES:
            seconds, found = json.loads(text.splitlines()[-1])
            docs = found or docs
        print(
            f"{benchmark:13} {times:3} {docs:8,}  {name:9} {seconds:8.2f} {memory:6.0f}", flush=True
        )
    log, size = sum(one.stat().st_size for one in out.glob("*.jsonl")), page.stat().st_size
    print(f"{benchmark:13} samples {log / 1e6:.1f} MB, page {size / 1e6:.1f} MB", flush=True)


# --- lmms-eval, and a judge afterwards ----------------------------------------------------------


def through_host(told: argparse.Namespace) -> None:
    """Print a line for each number of items and of processes; the latter take turns."""
    print("  x     docs  processes  seconds  of processor     MB")
    task = "movierecapsqa_segment_dialogue"
    for times in told.times:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            env = released("movierecapsqa", times, root)
            for number, processes in enumerate(told.processes * told.rounds):
                launcher = ("torch.distributed.run", "--standalone", "--nproc_per_node", processes)
                run = ("-m", "lmms_eval", "--model", "tasks_scripted", "--tasks", task)
                out = root / f"out{number}"
                kept = ("--batch_size", 1, "--log_samples", "--output_path", out)
                used = ran(
                    env,
                    sys.executable,
                    *(("-m", *launcher) if processes > 1 else ()),
                    *(*run, *kept, "--verbosity", "ERROR"),
                )
                (samples,) = out.rglob("*_samples_*.jsonl")
                docs = len(samples.read_text(encoding="utf-8").splitlines())
                print(
                    f"{times:3} {docs:8,} {processes:10} {used.wall:8.1f} {used.seconds:13.1f} "
                    f"{used.memory:6.0f}",
                    flush=True,
                )


def judged_later(told: argparse.Namespace) -> None:
    """Print a line for each number of items and of requests in flight."""
    print("  x  verdicts  in flight  seconds  of processor     MB")
    with slow_endpoint.started() as endpoint:
        judge = f"{slow_endpoint.MODEL}@{endpoint.url}"
        for times in told.times:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                env = released("maia", times * 10, root)
                for name in ("scoring", "numbers"):
                    ran(env, *HERE, "phase", name, "maia", root / "out")
                env.update({settings.DATA: str(root / "none"), settings.JUDGE_CACHE: "off"})
                for flight in told.flight:
                    before_it, to = endpoint.told(), root / f"judged{flight}"
                    asked = ("--judge", judge, "--judge-concurrency", flight, "--save", to)
                    used = ran(env, TOOL, "judge", root / "out", *asked)
                    spent = endpoint.told().since(before_it)
                    print(
                        f"{times:3} {spent.requests:9,} {flight:10} {used.wall:8.1f} "
                        f"{used.seconds:13.1f} {used.memory:6.0f}",
                        flush=True,
                    )


def asked_about_a_clip(told: argparse.Namespace) -> None:
    """Print a line for each number of questions on a clip; the numbers take turns."""
    print("questions  seconds  of processor     MB")
    with slow_endpoint.started() as endpoint, tempfile.TemporaryDirectory() as folder:
        set_by_us = {settings.DATA: told.data, settings.CACHE: f"{folder}/cache"}
        env = {**os.environ, **{name: str(value) for name, value in set_by_us.items()}}
        address = f"model_version={slow_endpoint.MODEL},base_url={endpoint.url},api_key=none"
        model = ("--model", "openai", "--model_args", f"{address},num_concurrent=16")
        for number, questions in enumerate([1, *told.questions * told.rounds]):
            run = ("-m", "lmms_eval", *model, "--tasks", "maia_vsv", "--limit", questions)
            used = ran(env, sys.executable, *run, "--output_path", f"{folder}/{number}")
            if number:  # the first run makes the clip
                print(
                    f"{questions:9} {used.wall:8.1f} {used.seconds:13.1f} {used.memory:6.0f}",
                    flush=True,
                )


# --- files ----------------------------------------------------------------------------------------

# Runs in every process of a run, and counts its file operations below the roots.
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
    """Print the file operations of two runs of the sample; the second run finds clips."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sample.build_sample(root / "data")
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


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parts = parser.add_subparsers(required=True)

    def part(act: Callable[[argparse.Namespace], None], name: str, **counts: str) -> Any:
        one = parts.add_parser(name)
        for option, default in counts.items():
            form = lambda text: [int(number) for number in text.split(",")]  # noqa: E731
            one.add_argument(f"--{option}", type=form, default=default)
        one.set_defaults(act=act)
        return one

    one = part(items, "items", times="1,10,100")
    one.add_argument("--benchmark", choices=DATA, action="append", help="all of them unless told")
    one.add_argument("--data", type=Path, help="data root, instead of the packaged sample's")
    one = part(through_host, "host", times="1,10", processes="1,2,4")
    one.add_argument("--rounds", type=int, default=2)
    part(judged_later, "judge", times="1,10", flight="1,8,32")
    one = part(asked_about_a_clip, "clip", questions="1,192")
    one.add_argument("--data", type=Path, required=True, help="data root with MAIA's videos")
    one.add_argument("--rounds", type=int, default=3)
    part(files, "files")
    one = part(lambda told: phase(told.phase, told.benchmark, told.out), "phase")
    for name, kind in (("phase", str), ("benchmark", str), ("out", Path)):
        one.add_argument(name, type=kind)
    one = part(lambda told: release(told.benchmark, told.n, told.root, told.source), "release")
    for name, kind in (("benchmark", str), ("n", int), ("root", Path)):
        one.add_argument(name, type=kind)
    one.add_argument("source", type=Path, nargs="?")
    told = parser.parse_args()
    told.act(told)


if __name__ == "__main__":
    main()
