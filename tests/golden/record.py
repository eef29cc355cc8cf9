"""Record the golden numbers again: `python -m tests.golden.record`.

A commit that changes a recorded number says why.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks.report.invalid import INVALID
from tests.conftest import HostRun, launcher
from tests.golden import commands, judge, numbers, run, test_interface
from tests.golden.command import tasks_command
from tests.local_endpoint import LocalEndpoint


def main() -> None:
    """Run everything and write the recordings."""
    with (
        tempfile.TemporaryDirectory(prefix="golden-") as folder,
        LocalEndpoint(judge.reply, model="drawn") as endpoint,
    ):
        cache, out = Path(folder) / "cache", Path(folder) / "runs"
        out.mkdir()
        env = run.environment(cache, endpoint.url)
        runs = run.run_all(launcher(cache), out, env)
        for name, content in recorded(runs, cache).items():
            numbers.save(name, content)
        numbers.save("commands", commands.all_said(out, cache, runs))
        test_interface.save()


def recorded(runs: Mapping[str, HostRun], cache: Path) -> dict[str, dict[str, Any]]:
    """The content of each file: a benchmark's numbers, and `tables`."""
    found: dict[str, dict[str, Any]] = {n: {"runs": {}, "rescored": {}} for n in numbers.BENCHMARKS}
    tables = {"main": numbers.tables(runs["chat"].stdout, cache)}
    for label, name in run.LABELS.items():
        again, printed = rescored(runs[name], cache)
        for benchmark, values in numbers.of_run(runs[name], cache).items():
            found[benchmark]["runs"][label] = values
            found[benchmark]["rescored"][label] = numbers.lacking(values, again[benchmark])
        tables[f"{label} rescored"] = printed
    return {**found, "tables": tables}


def rescored(host_run: HostRun, cache: Path) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """What `rescore` says of a run's saved samples: numbers, and its tables."""
    output = host_run.out / "rescored.json"
    env = run.environment(cache, "http://127.0.0.1:9/v1")  # nobody is asked
    said = tasks_command("rescore", host_run.out, "--output", output, cache=cache, env=env)
    assert said.code in (0, INVALID), said.stderr
    written = json.loads(output.read_text(encoding="utf-8"))
    return numbers.of_rescore(written, cache), numbers.tables(said.stdout, cache)


if __name__ == "__main__":
    main()
