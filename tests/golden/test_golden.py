"""The recorded numbers of the package: every one must still be what it was (`record` says how)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import HostRun
from tests.golden import commands, numbers, record, run
from tests.golden.numbers import Outcome

pytestmark = pytest.mark.host


@pytest.fixture(scope="module")
def found(golden_runs: Mapping[str, HostRun], cache: Path) -> dict[str, dict[str, numbers.Values]]:
    """By run and benchmark."""
    return {
        name: numbers.of_run(one, cache, processes=2 if name.endswith(" 2") else 1)
        for name, one in golden_runs.items()
    }


def settle(outcomes: Mapping[str, Outcome]) -> None:
    """Print the counts; fail with the first differences."""
    print("\n" + "\n".join(numbers.report(outcomes.items())))
    assert all(outcome.compared for outcome in outcomes.values())
    differing = [line for outcome in outcomes.values() for line in outcome.differing]
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:20])


@pytest.mark.parametrize("benchmark", numbers.BENCHMARKS)
def test_host(benchmark: str, found: dict[str, dict[str, numbers.Values]]) -> None:
    golden = numbers.load(benchmark)["runs"]
    outcomes = {
        f"{benchmark}, {name}": numbers.compare(golden[label], found[name][benchmark], name)
        for label, name in run.LABELS.items()
        if label in golden
    }
    name = run.WHOLE_TWICE
    part = numbers.compare(golden["main"], found[name][benchmark], name, part=True)
    settle({**outcomes, f"{benchmark}, {name}": part})


def compared(sample: Mapping[str, Any]) -> Any:
    """What was asked and said of an item; not at which port the judge of these runs listened."""
    told = json.dumps([sample[part] for part in ("input", "target", "failed")])
    port = ("judge", "setup")  # its address, and a hash that holds it
    return json.loads(told, object_hook=lambda one: {k: one[k] for k in one if k not in port})


@pytest.mark.parametrize("name", ["simple", "simple 2"])
def test_the_simple_interface(name: str, golden_runs: Mapping[str, HostRun]) -> None:
    """Of every task, in one and two processes: the same prompts and items as through messages."""
    simple = golden_runs[name]
    chat = {
        task: golden_runs[one]
        for one in ("settings", "chat")
        for task in golden_runs[one].results["n-samples"]
    }
    assert simple.results["n-samples"].keys() == chat.keys()
    for task, run_of_task in chat.items():
        known, found = (
            {one["failed"]["id"]: compared(one) for one in host_run.samples(task)}
            for host_run in (run_of_task, simple)
        )
        assert found
        assert found == {name: known[name] for name in found}, task


def test_rescore_and_tables(golden_runs: Mapping[str, HostRun], cache: Path) -> None:
    printed = numbers.load("tables")
    files = {name: numbers.load(name) for name in numbers.BENCHMARKS}
    now = {"main": numbers.tables(golden_runs["chat"].stdout, cache)}
    outcomes = {}
    for label, name in run.LABELS.items():
        again, now[f"{label} rescored"] = record.rescored(golden_runs[name], cache)
        for benchmark, golden in files.items():
            if label in golden["runs"]:
                expected = numbers.of_saved(golden["runs"][label], golden["rescored"][label])
                outcomes[f"{benchmark}, {label} rescored"] = numbers.compare(
                    expected, again[benchmark], f"{label} rescored"
                )
    outcomes |= {
        f"tables, {label}": numbers.compare_tables(tables, now[label], label)
        for label, tables in printed.items()
    }
    settle(outcomes)


def test_commands(golden_runs: Mapping[str, HostRun], cache: Path, tmp_path: Path) -> None:
    said = commands.all_said(tmp_path, cache, golden_runs)
    golden = numbers.load("commands")
    settle({name: numbers.compare_said({name: kept}, said) for name, kept in golden.items()})


def test_every_status_is_recorded() -> None:
    """So that no number is golden by being always right."""
    for benchmark in numbers.BENCHMARKS:
        found: dict[str, set[str]] = {"details": set(), "judged": set()}
        for one in numbers.load(benchmark)["runs"].values():
            for path, count in numbers.leaves(one["tasks"]):
                if path[1] in found and {"status", "by_status", "ratings"} & {*path} and count:
                    found[path[1]].add(path[-1])
                if path[-1] == "refusals" and count:  # where answers are judged
                    found["details"].add("refused")
        own = {"ok", "empty", "refused", "truncated", "model_error"}
        assert not own - found["details"], benchmark
        assert not {"ok", "api_error", "parse_failure", "refused"} - found["judged"], benchmark
