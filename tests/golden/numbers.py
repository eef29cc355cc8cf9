"""Numbers by task and name, wherever a run keeps them, and their comparison with recorded ones.

A recording (`FILES`) holds for each benchmark and run what the host's table said, what our section
of the results said, what `rescore` said otherwise, and the rows of the tables that were printed. A
metric may move from the host's table to `PLACES` in our section: it is looked up in both.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import HostRun

FOLDER = Path(__file__).parent
BENCHMARKS = ("maia", "maverix", "movierecapsqa", "haven", "cvrr_es")  # whose numbers are recorded
PLACES = {"metrics", "numbers", "splits"}  # where our section holds metrics of a task
# Names of what is equal within a relative error alone: models compute in 32 bits, whose last ones
# depend on the processor and the number of threads (up to 7e-7 seen between two machines); the
# host's standard errors depend on the items' order. All other numbers are equal to the last digit.
CLOSE = {"bertscore": 2e-6, "bartscore": 2e-6, "clip": 2e-6, "_stderr": 1e-9}
CLIP_TOLERANCE = 1e-7  # absolute: cosines near 0
LEAST = 1e-37  # below it numbers of 32 bits are 0 to some processors
RESCORED = ("table", "details")  # what `rescore` computes again
_ERRORS = re.compile(r"_stderr(_clt|_clustered)?$")
_BETWEEN = " / "  # parts of a path, in a recording
_UNSTABLE = ("judge", "details", "numbers")  # parts of a section: addresses, limits; by task
_OF_THE_RUN = {
    r"http://127\.0\.0\.1:\d+": "URL",
    r"tasks_recorded \((simple|chat)\)": "tasks_recorded",
    r"/(?:[\w.+-]+/)+(?=replies-)": "",  # the folder of the recorded replies
    r"\d{8}_\d{6}(?=_samples_)": "DATE",
    # Of packages that come out between two runs.
    r"(hug_trans=|idf_version=|transformers )\d+(?:\.\d+)+": r"\1VERSION",
    r"versions: lmms-eval-tasks .*": "versions: VERSIONS",
    # Counted over all runs of a process.
    r"\d+ (texts of|of) \d+ (different \w+|sentences|texts) cut": r"N \1 N \2 cut",
}

Path_ = tuple[str, ...]
Values = dict[str, Any]


def benchmark_of(task: str) -> str:
    """The benchmark of a task or group, by its name."""
    return "cvrr_es" if task.startswith("cvrr") else task.partition("_")[0]


def of_run(run: HostRun, cache: Path, processes: int = 1) -> dict[str, Values]:
    """What a run's results file says, by benchmark; and a digest of what each task asked.

    Of whole tasks: each of several processes asks neighbours among their docs.
    """
    results = run.results
    section, groups = results["lmms_eval_tasks"], results.get("groups", {})
    found: dict[str, Values] = {}
    for name in section.keys() & {*BENCHMARKS}:
        tasks: dict[str, Values] = {}
        for task, values in results["results"].items():
            if benchmark_of(task) == name:
                tasks[task] = _of_table(groups.get(task) or values)
        for task in tasks.keys() & results["n-samples"].keys():
            tasks[task]["n"] = results["n-samples"][task]
            samples = run.samples(task)
            dealt = [n for rank in range(processes) for n in range(rank, len(samples), processes)]
            asked = sorted((dealt.index(one["doc_id"]), one["input"]) for one in samples)
            tasks[task]["asked"] = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:12]
        for task, details in section[name].get("details", {}).items():
            tasks.setdefault(task, _of_table({}))["details"] = details
        for task, own in section[name].get("numbers", {}).items():
            tasks.setdefault(task, _of_table({}))["numbers"] = own
        for row in section.get("judges", {}).get("usage", []):
            if row["task"] in tasks:
                kept = {key: row[key] for key in ("verdicts", "by_status", "repaired")}
                tasks[row["task"]]["judged"] = kept
        facts = {k: v for k, v in section[name].items() if k not in _UNSTABLE}
        invalid = {t: v for t, v in section.get("invalid", {}).items() if t in tasks}
        found[name] = normal({"tasks": tasks, "facts": {**facts, "invalid": invalid}}, cache)
    return found


def of_rescore(written: Mapping[str, Any], cache: Path) -> dict[str, Values]:
    """What the file of `rescore --output` says, in the same form."""
    found: dict[str, Values] = {}
    for name in written.keys() & {*BENCHMARKS}:
        own = written[name]
        tasks = {task: {"table": values} for task, values in own["numbers"].items()}
        for task, details in own["details"].items():
            tasks.setdefault(task, {})["details"] = details
        found[name] = normal({"tasks": tasks, "facts": {"notes": own["notes"]}}, cache)
    return found


def tables(text: str, cache: Path) -> dict[str, list[str]]:
    """Title of a printed table -> its headings and rows, each as words between single spaces."""
    lines = [normal(line.rstrip(), cache) for line in text.splitlines()]
    found: dict[str, list[str]] = {}
    for place, line in enumerate(lines):
        if not line.strip().startswith("──"):
            continue
        head = place
        while lines[head - 1].strip():
            head -= 1
        rows = [" ".join(" ".join(lines[head:place]).split())]
        for row in lines[place + 1 :]:
            if not row.strip():
                break
            rows.append(" ".join(row.split()))
        found.setdefault(lines[head - 2].strip(), []).extend(rows)
    return found


def normal(value: Any, cache: Path, folder: str = "/no") -> Any:
    """Without folders, addresses and the model's class of this run."""
    if isinstance(value, dict):
        return {str(key): normal(one, cache, folder) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [normal(one, cache, folder) for one in value]
    if not isinstance(value, str):
        return value
    for pattern, name in _OF_THE_RUN.items():
        value = re.sub(pattern, name, value)
    return value.replace(str(cache), "CACHE").replace(folder, "FOLDER")


@dataclass
class Outcome:
    """What was compared, and which numbers differ."""

    compared: int = 0
    differing: list[str] = field(default_factory=list)

    def check(self, what: str, same: bool, why: object = "") -> None:
        self.compared += 1
        if not same:
            self.differing.append(f"{what}: {why}")


MISSING = "missing"


def compare(
    golden: Mapping[str, Any], found: Mapping[str, Any], run: str, part: bool = False
) -> Outcome:
    """Hold one benchmark of a run against its recording.

    Of a run of a `part` of the tasks: their numbers alone, since the other facts are of all tasks.
    """
    outcome = Outcome()
    for task, expected in golden["tasks"].items():
        if part and task not in found["tasks"]:
            continue
        own = flat(found["tasks"].get(task, {}))
        for path, value in flat(expected).items():
            if path[0] == "errors" and own.get(("table", _ERRORS.sub("", path[-1]))) is None:
                continue  # the host makes them of what stands in its table
            now = own.get(path, MISSING)
            if now == MISSING and path[0] == "table":
                moved = (v for p, v in own.items() if p[-1:] == path[-1:] and {*p[-2:-1]} & PLACES)
                now = next(moved, MISSING)
            equal = same(value, now, ".".join(path))
            outcome.check(f"{run}, {task}, {'.'.join(path)}", equal, f"{value} -> {now}")
    if part:
        return outcome
    known = [(_named(path), value) for path, value in leaves(found["facts"])]
    for path, value in leaves(golden["facts"]):  # in whatever place
        there = any(name == _named(path) and same(value, now) for name, now in known)
        outcome.check(f"{run}, {'.'.join(path)}", there, f"{value} -> not there")
    return outcome


def _named(path: Path_) -> str:
    """The last name in a path: places in a list are none."""
    return next((part for part in reversed(path) if not part.isdigit()), "")


def compare_tables(golden: Mapping[str, Any], found: Mapping[str, Any], run: str) -> Outcome:
    """Every recorded row must stand in the table of the same title."""
    outcome = Outcome()
    for title, rows in golden.items():
        for row in rows:
            outcome.check(f"{run}, {title}", row in found.get(title, ()), row)
    return outcome


def compare_said(golden: Mapping[str, Any], found: Mapping[str, Any]) -> Outcome:
    """Every line that a command printed must be printed, and its files hold what they held."""
    outcome = Outcome()
    for name, said in golden.items():
        now = found.get(name, {})
        outcome.check(f"{name}, exit code", said["code"] == now.get("code"), now.get("code"))
        for stream in ("out", "err"):
            for line in said[stream]:
                outcome.check(f"{name}, {stream}", line in now.get(stream, ()), line)
        there = dict(leaves(now.get("files")))
        for path, value in leaves(said["files"]):
            equal = same(value, there.get(path, MISSING), path[-1] if path else "")
            outcome.check(f"{name}, {'.'.join(path)}", equal, f"{value} -> {there.get(path)}")
    return outcome


def same(value: Any, now: Any, name: str = "") -> bool:
    """Equal, or within the relative error of a name in `CLOSE`."""
    if isinstance(value, bool) or isinstance(now, bool):
        return value is now
    if not isinstance(value, (int, float)) or not isinstance(now, (int, float)):
        return bool(value == now)
    if math.isnan(value) or math.isnan(now):
        return math.isnan(value) and math.isnan(now)
    relative = max((error for part, error in CLOSE.items() if part in name), default=0.0)
    absolute = CLIP_TOLERANCE if "clip" in name else LEAST if relative else 0.0
    return value == now or math.isclose(value, now, rel_tol=relative, abs_tol=absolute)


def lacking(whole: Mapping[str, Any], other: Mapping[str, Any]) -> Values:
    """Of a recorded run the names that `rescore` does not have, by task; and its own facts."""
    lost: dict[str, list[str]] = {}
    for task, values in whole["tasks"].items():
        now = flat(other["tasks"].get(task, {}))
        names = [_BETWEEN.join(p) for p in flat(values) if p[0] in RESCORED and p not in now]
        lost |= {task: names} if names else {}
    return {"lost": lost, "facts": other["facts"]}


def of_saved(golden: Mapping[str, Any], rescored: Mapping[str, Any]) -> Values:
    """What `rescore` must say: the recorded run, without what was recorded as `lacking`."""
    tasks: Values = {}
    for task, values in golden["tasks"].items():
        lost = rescored["lost"].get(task, ())
        expected: Values = tasks.setdefault(task, {})
        for path, value in flat(values).items():
            if path[0] in RESCORED and _BETWEEN.join(path) not in lost:
                inner = expected
                for part in path[:-1]:
                    inner = inner.setdefault(part, {})
                inner[path[-1]] = value
    return {"tasks": tasks, "facts": rescored["facts"]}


def flat(values: Mapping[str, Any]) -> dict[Path_, Any]:
    """What is known of a task, by path; empty containers are no numbers."""
    return {path: value for path, value in leaves(values) if value not in ({}, [])}


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Path and value of everything that is no container; an empty one is a leaf itself."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from leaves(one, (*path, str(key)))
    elif isinstance(value, list) and value:
        for place, one in enumerate(value):
            yield from leaves(one, (*path, str(place)))
    else:
        yield path, value


def load(name: str) -> Values:
    """A recording."""
    found: Values = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def save(name: str, content: Mapping[str, Any]) -> Path:
    """Write a recording: a line for each leaf of depth `_DEPTH`, so that changes show in a diff."""
    file = FOLDER / f"{name}.json"
    file.write_text(_written(content, 4) + "\n", encoding="utf-8")
    return file


def _written(value: Any, depth: int) -> str:
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}:{_written(v, depth - 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + "}"
    return "[\n" + ",\n".join(_written(one, depth - 1) for one in value) + "]"


def _of_table(values: Mapping[str, Any]) -> Values:
    """A task's metrics and the host's standard errors, by name without the filter."""
    plain = {key.partition(",")[0]: value for key, value in values.items() if "," in key}
    errors = {n: v for n, v in plain.items() if _ERRORS.search(n)}
    return {
        "table": {n: v for n, v in plain.items() if n not in errors},
        "errors": {n: v for n, v in errors.items() if v != "N/A"},
    }


def report(outcomes: Iterable[tuple[str, Outcome]]) -> list[str]:
    """Lines with the counts of numbers compared and differing."""
    return [f"{n}: {o.compared:,} compared, {len(o.differing):,} differ" for n, o in outcomes]
