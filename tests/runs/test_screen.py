"""A run's first screen: what stands on it, how wide it is, and which row of the paper."""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.leaderboards import headline
from lmms_eval_tasks.runs import finish, screen
from lmms_eval_tasks.utils.conditions import as_dicts
from tests.checks import table

INTERVAL = {"pair_acc": {"low": 0.7012, "high": 0.8, "clusters": 100, "n": 19200}}
MODEL = "pretrained=Qwen/Qwen2.5-VL-7B-Instruct"


ARRIVED = "reached the model, counted in what was sent: maia_vsv: 32 of 32 frames"


def conditions(*found: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"kind": kind, "text": text, "tasks": []} for kind, text in found]


def results(model_args: str = MODEL, **changes: Any) -> dict[str, Any]:
    """The host's of a run of MAIA, as far as the screen reads them."""
    section = {
        "numbers": {"maia_vsv": {"pair_acc": 0.75}, "maia_oevqa": {"judge_acc": 0.5}},
        "details": {
            "maia_vsv": {"items": 19200, "intervals": INTERVAL},
            "maia_oevqa": {"items": 2400, "intervals": {}},
        },
        "videos": {"asked": 100, "of": 100},
        "conditions": conditions(("judge", "judge gpt-4o, the paper's"), ("arrived", ARRIVED)),
    }
    config = {"model": "qwen2_5_vl", "model_args": model_args}
    return {"config": config, "lmms_eval_tasks": {"maia": section | changes, "invalid": {}}}


DOUBTS = conditions(*(("note", f"doubt {number}") for number in range(5)))
INVALID = {
    "kind": "INVALID",
    "text": "maia_vsv: 9 of 10 requests failed",
    "tasks": ["maia_vsv"],
}


def shown(of: Mapping[str, Any], **kwargs: Any) -> list[str]:
    out = io.StringIO()
    screen.first(of, Console(file=out, width=100), **kwargs)
    return [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]


def test_ten_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.TABLES, raising=False)
    lines = shown(results(), files=[Path("out/1_results.json"), Path("out/1_tables.txt")])
    assert len(lines) == 10
    assert lines[:2] == ["MAIA: VALID, 100 of 100 videos", f"  model: qwen2_5_vl ({MODEL})"]
    row = [cell.strip() for cell in lines[3].split("  ") if cell]
    paper = "0.840 Qwen-2.5-VL 7B"
    assert row == ["maia_vsv", "pair_acc", "0.750", "0.701 to 0.800", "0.5", "19200", paper]
    assert lines[5:7] == ["  judge gpt-4o, the paper's", f"  {ARRIVED}"]
    assert lines[7:9] == ["written: out/1_results.json", "written: out/1_tables.txt"]


@table(
    "answered, expected",
    [
        ({}, []),
        ({"replies": 0, "seconds": 2.0}, []),  # all were kept of an earlier run
        (
            {"replies": 19200, "seconds": 1800.0, "tokens": 57600, "processes": 1},
            ["19,200 replies in 1,800.0 s in one process: 10.67 a second, 32.0 tokens a second"],
        ),
        (
            {"replies": 10, "seconds": 20.0, "processes": 4},
            ["10 replies in 20.0 s in each of 4 processes: 0.50 a second"],
        ),
    ],
)
def test_the_last_lines_say_how_fast_it_answered(
    answered: dict[str, Any], expected: list[str]
) -> None:
    of = results()
    of["lmms_eval_tasks"]["answered"] = answered
    lines = [line for line in shown(of) if line.startswith("answered: ")]
    assert lines == [f"answered: {line}" for line in expected]


def test_what_is_invalid_is_said_first() -> None:
    of = results(conditions=[*DOUBTS, INVALID])
    of["lmms_eval_tasks"]["invalid"] = {"maia_vsv": INVALID["text"]}
    lines = shown(of)
    assert lines[0].startswith("MAIA: INVALID, ")
    assert lines[3].startswith("  maia_vsv INVALID ")
    assert "INVALID: maia_vsv: 9 of 10 requests failed" in lines
    assert "  and 2 more notes (--tables headline)" in lines


def test_how_replies_were_read_is_said_beside_other_doubts() -> None:
    """The heaviest lines of all tasks, however many doubts there are; in the tables all of them."""
    read = {
        "maia_vsv": {
            "reading": [{"weight": 0.3, "text": "a third"}, {"weight": 0.06, "text": "few"}]
        },
        "maia_oevqa": {
            "reading": [{"weight": 1.0, "text": "all"}, {"weight": 0.1, "text": "a tenth"}]
        },
    }
    of = results(conditions=[*DOUBTS, *as_dicts(finish.reading(read)), INVALID])
    details = of["lmms_eval_tasks"]["maia"]["details"]
    details["maia_vsv"] |= {"status": {"ok": 19200}}
    details["maia_oevqa"] |= {"items": 5, "status": {"ok": 1, "unparsed": 2, "truncated": 2}}
    of["lmms_eval_tasks"]["invalid"] = {"maia_vsv": INVALID["text"]}
    lines = shown(of)
    assert lines[3].split()[-4] == "19200"
    assert "  1 of 5 read" in lines[4]
    notes = [line.removeprefix("  Note: ") for line in lines if line.startswith("  Note: ")]
    heaviest = ["maia_oevqa: all", "maia_vsv: a third", "maia_oevqa: a tenth"]
    assert notes == ["doubt 0", "doubt 1", "doubt 2", *heaviest]
    assert "  and 3 more notes (--tables headline)" in lines
    assert "INVALID: maia_vsv: 9 of 10 requests failed" in lines
    full = screen.paper_tables(registry.load_benchmark("maia"), of, every=False)
    assert [one for one in full if "few" in str(one)] == ["Note: maia_vsv: few"]


@table(
    "model, value, row",
    [
        ("pretrained=OpenGVLab/InternVL2-8B", 0.2, "InternVL2 8B"),  # its own, however far
        ("pretrained=mine", 0.515, "Llava-Next-Video 7B (closest value)"),
        ("pretrained=mine", 0.99, "Qwen-2.5-VL 72B (closest value)"),
    ],
)
def test_the_nearest_row(model: str, value: float, row: str) -> None:
    of = results(model, numbers={"maia_vsv": {"pair_acc": value}})
    table, folded = (line.strip() for line in shown(of)[3:5])
    assert f"{table} {folded}".split("  ")[-1].endswith(row) or table.endswith(row)


def test_headlines_are_numbers_of_their_tasks() -> None:
    """A name that no task or join has would never be shown."""
    found = 0
    for benchmark in map(registry.load_benchmark, registry.NAMES):
        joined = {name: one.host_fields for one in benchmark.joint_metrics for name in [one.group]}
        for name in itertools.chain(benchmark.tasks, joined):
            if (known := headline(name)) is None:
                continue
            own = joined.get(name) or [one.name for one in benchmark.tasks[name].metrics]
            assert known.metric in own, name
            found += 1
    assert found == 52
