"""Every condition of a run's numbers in everything that shows numbers: writers times conditions.

One saved run has all conditions at once. Some stand in its results file, others its items show.
"""

from __future__ import annotations

import html
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.models import fake_replies
from lmms_eval_tasks.report import invalid
from lmms_eval_tasks.runs import finish, screen
from lmms_eval_tasks.utils import saved_runs
from lmms_eval_tasks.utils.conditions import (
    FACTS,
    OF_JUDGE,
    Condition,
    Kind,
    as_columns,
    as_dicts,
    from_dicts,
    merged,
    of_results,
    part,
    record,
)
from lmms_eval_tasks.utils.replies import refusals
from tests.checks import table
from tests.report import made

VSV, OPEN = "maia_vsv", "maia_oevqa"
# What stands in the results file. The words are those that every writer has to show.
STORED = {
    Kind.SAMPLE: "made with the packaged sample",
    Kind.OTHER_JUDGE: "judged by qwen3-8b",
    Kind.UNKNOWN: "its results file was of another suite",
    Kind.LEFT_OUT: "24 questions of 1 videos left out",
    Kind.SOUND: "the class drops sound",
    Kind.POSITIONS: "starts the text behind a video inside the video",
    Kind.OPTION: "made with LMMS-EVAL-X=y",
    Kind.NOTE: "the release is another one",
    Kind.DATA: "data 0123456789ab",
    Kind.JUDGE: "judge gpt-4o, the one of the paper",
    Kind.CHECKED: "judge checked: 93 % of 40",
    Kind.ARRIVED: "reached the model: 8 of 32 frames",
    Kind.MENDED: "put right at position 65",
    Kind.VERSIONS: "versions: lmms-eval 0.7.3",
}
# What the items show: a fifth of the requests failed, a fifth of the replies has no end.
SHOWN = {
    Kind.INVALID: "INVALID",
    Kind.PART: "--limit 3",
    Kind.UNJUDGED: "replies have no verdict from a judge",
    Kind.DELIVERED: "the model saw 8 of 32 frames",
    Kind.REQUESTS: "requests to the model failed",
    Kind.CUT: "end inside their reasoning",
    Kind.READING: "replies were not read",
    Kind.FEW: "Only 2 videos",
}
WORDS = STORED | SHOWN
# Another judge judges: its own conditions stand in the place of the run's.
OF_THE_RUN = {kind: words for kind, words in WORDS.items() if kind not in OF_JUDGE}


def reply(task: Task, doc: Doc, number: int) -> str:
    odd = {0: "<think>still", 1: refusals.model_error("x"), 2: "Bella domanda!"}
    return odd.get(number % 5) or fake_replies.known_replies(doc).right


@pytest.fixture(scope="module")
def run(sample_root: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("conditions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        folder = made.saved_run(out / "run", "org/m", [VSV, OPEN], reply, "none", 40)
    found = [Condition(kind, f"{words} ({kind.value})") for kind, words in STORED.items()]
    found.append(Condition(Kind.PART, part({"limit": 3})))
    problems, numbers = {}, {}
    benchmark = registry.load_benchmark("maia")
    for file in folder.glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            line["failed"]["arrived"] = {
                **{"at": "processor", "frames": 8, "distinct": None, "pictures": 0},
                **{"seconds": 0.0, "of": 32},
            }
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        task, items = saved_runs.read_saved_run(file).task, [line["failed"] for line in lines]
        problems |= invalid.of_items(task, items)
        numbers[task] = {"pair_acc": 0.5} if task == VSV else {"judge_acc": None}
        found += finish.of_items(benchmark.tasks[task], items)
    found += [Condition(Kind.INVALID, why, (task,)) for task, why in problems.items()]
    found.append(Condition(Kind.READING, "maia_vsv: 8 of 40 replies were not read", (VSV,)))
    found.append(Condition(Kind.UNJUDGED, "8 of 40 replies have no verdict from a judge", (OPEN,)))
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    judge = {"provider": "openai", "model": "qwen3-8b", "warning": "judged by qwen3-8b"}
    section = {
        **{"data": {"hash": "0123456789ab"}, "videos": {"asked": 2, "of": 4}, "judge": judge},
        **{"numbers": numbers, "details": {VSV: {}, OPEN: {}}},
        "conditions": as_dicts(record(found)),
    }
    results["lmms_eval_tasks"] = {"version": "0.2", "maia": section, "invalid": problems}
    file.write_text(json.dumps(results), encoding="utf-8")
    return folder


def command(*arguments: str) -> str:
    """What a command prints, on both streams."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code in (0, invalid.INVALID), done.output
    return done.output


def written(*options: str) -> Callable[[Path, Path], str]:
    """Of a command with --output: what stands in its files."""

    def write(run: Path, out: Path) -> str:
        first, *rest = options
        command(*first.split(), str(run), *rest, "--output", str(out))
        files = [out] if out.is_file() else [one for one in out.rglob("*") if one.is_file()]
        return "\n".join(map(content, sorted(files)))

    return write


def content(file: Path) -> str:
    if not zipfile.is_zipfile(file):
        return file.read_text(encoding="utf-8")
    with zipfile.ZipFile(file) as archive:
        return "\n".join(archive.read(name).decode() for name in archive.namelist())


def printed(*options: str) -> Callable[[Path, Path], str]:
    def write(run: Path, _: Path) -> str:
        first, *rest = options
        return command(*first.split(), str(run), *rest)

    return write


def rejudged(run: Path, out: Path) -> str:
    """What `judge` prints, and the results file that it writes."""
    judge = made.recorded(Path(os.environ["LMMS_EVAL_TASKS_DATA"]), out.with_suffix(".jsonl"))
    said = command("judge", str(run), "--judge", judge, "--save", str(out))
    (file,) = out.glob("*_results.json")
    return said + file.read_text(encoding="utf-8")


def on_screen(*, full: bool) -> Callable[[Path, Path], str]:
    """What the end of a run shows, of a results file that holds what the run has."""

    def write(run: Path, _: Path) -> str:
        (file,) = run.glob("*_results.json")
        results, stream = json.loads(file.read_text(encoding="utf-8")), io.StringIO()
        console = Console(file=stream, width=200)
        if full:
            screen.full(results, console, every=True)
        else:
            screen.first(results, console)
        return stream.getvalue()

    return write


# A writer, and the conditions that it has to show.
WRITERS: dict[str, Callable[[Path, Path], str]] = {
    "first screen": on_screen(full=False),
    "tables": on_screen(full=True),
    "report text": printed("report", "--format", "text"),
    **{
        f"report {form}": written("report", "--format", form)
        for form in ("text", "md", "latex", "csv", "json", "html")
    },
    "leaderboard": printed("leaderboard maia"),
    **{
        f"leaderboard {form}": written("leaderboard maia", "--format", form)
        for form in ("text", "md", "csv", "json", "html", "eee")
    },
    "leaderboard hf": written("leaderboard maia", "--format", "hf", "--force"),
    "rescore": printed("rescore"),
    "rescore -o": written("rescore"),
    "judge": rejudged,
}
if find_spec("inspect_ai"):
    WRITERS["report inspect"] = written("report", "--format", "inspect")


@pytest.fixture(scope="module")
def texts(run: Path, sample_root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each writer makes of the run, without what its form puts around words."""
    out = tmp_path_factory.mktemp("written")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("COLUMNS", "200")
        for number, (name, write) in enumerate(WRITERS.items()):
            text = html.unescape(write(run, out / str(number)))
            found[name] = " ".join(re.sub(r"\\(?=\W)|\{\}", "", text).split())
    return found


@pytest.mark.parametrize("kind", list(Kind))
def test_a_condition_is_of_the_matrix(kind: Kind) -> None:
    of_two_runs = (Kind.OTHER_ITEMS, Kind.PIXELS)  # tests/report/test_compare.py
    assert kind in WORDS or kind in of_two_runs


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("writer", WRITERS)
def test_no_writer_drops_a_condition(writer: str, kind: Kind, texts: dict[str, str]) -> None:
    if writer == "judge" and kind in OF_JUDGE:
        assert "judged by replay" in texts[writer]
        return
    assert WORDS[kind] in texts[writer]


# Where a number of the INVALID run stands, and the mark behind or beside it.
MARKS = {
    "first screen": r"maia_vsv INVALID +pair_acc +0\.500",
    "report text": r"\d\.\d{3}! ",
    "report md": r"\d\.\d{3} INVALID",
    "report latex": r"\d\.\d{3} INVALID",
    "report csv": r"maia_vsv,pair_acc,\S+?,0\.\d+,[^,]*,[^,]*,\d+,\d+,False,",
    "report json": r'"valid": false',
    "report html": r"<b>\d\.\d{3} INVALID</b>",
    "leaderboard": r"\d\.\d{3} INVALID",
    "leaderboard md": r"\d\.\d{3} INVALID",
    "leaderboard html": r"\d\.\d{3} INVALID",
    "leaderboard csv": r",False,",
    "leaderboard json": r'"valid": false',
    "leaderboard eee": r'"valid": "False"',
    "leaderboard hf": r"INVALID: maia_vsv",
    "rescore": r"INVALID",
    "judge": r"INVALID",
}


@pytest.mark.parametrize("writer", MARKS)
def test_a_number_of_an_invalid_run_is_marked(writer: str, texts: dict[str, str]) -> None:
    assert re.search(MARKS[writer], texts[writer])


def test_the_hub_gets_no_number_that_is_none(run: Path, tmp_path: Path) -> None:
    given = ["leaderboard", "maia", str(run), "--format", "hf", "-o", str(tmp_path / "hf")]
    done = CliRunner().invoke(app, given)
    assert done.exit_code != 0
    said = str(done.exception)
    for words in ("INVALID: maia_vsv", "packaged sample", "--limit 3", "--force"):
        assert words in said
    assert not (tmp_path / "hf").exists()


def test_the_hub_gets_no_number_of_which_nothing_is_known(run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(run, alone, ignore=shutil.ignore_patterns("*_results.json"))
    given = ["leaderboard", "maia", str(alone), "--format", "hf", "-o", str(tmp_path / "hf")]
    done = CliRunner().invoke(app, given)
    assert "are unknown: its results file is missing" in str(done.exception)
    assert not (tmp_path / "hf").exists()


def test_rescore_keeps_an_invalid_that_items_do_not_show(
    sample_root: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that come out as they were are as INVALID as they were."""
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    folder = made.saved_run(tmp_path / "run", "org/m", [VSV], made.right, "none", 8)
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    invalid_one = as_dicts([Condition(Kind.INVALID, "the wrong weights were loaded", (VSV,))])
    for saved, code in ((1.0, invalid.INVALID), (0.5, 0)):
        section = {"numbers": {VSV: {"pair_acc": saved}}, "conditions": invalid_one}
        results["lmms_eval_tasks"] = {"maia": section}
        file.write_text(json.dumps(results), encoding="utf-8")
        done = CliRunner().invoke(app, ["rescore", str(folder)])
        assert done.exit_code == code
        assert ("INVALID: the wrong weights were loaded" in done.stdout) is bool(code)


def test_a_kind_of_a_later_version_is_a_note() -> None:
    stored = [{"kind": "made tomorrow", "text": "of tomorrow", "tasks": []}]
    assert from_dicts(stored) == (Condition(Kind.NOTE, "of tomorrow"),)


# --- the record -----------------------------------------------------------------------------------


def test_a_record_has_each_text_once_and_the_gravest_first() -> None:
    found = record(
        [
            Condition(Kind.DATA, "data x", ("a",)),
            Condition(Kind.NOTE, "same", ("a",)),
            Condition(Kind.CUT, "same", ("b",)),
            Condition(Kind.INVALID, "why", ("b",)),
            Condition(Kind.DATA, "data x", ("b",)),
            Condition(Kind.PART, "half"),
        ]
    )
    assert [(one.kind, one.text, one.tasks) for one in found] == [
        (Kind.INVALID, "why", ("b",)),
        (Kind.PART, "half", ()),
        (Kind.CUT, "same", ("b", "a")),
        (Kind.DATA, "data x", ("a", "b")),
    ]


def test_what_all_tasks_have_is_of_no_task_but_invalid() -> None:
    own = [Condition(Kind.DATA, "data x"), Condition(Kind.INVALID, "why")]
    found = merged({"a": own, "b": own})
    assert [(one.kind, one.tasks) for one in found] == [
        (Kind.INVALID, ("a", "b")),
        (Kind.DATA, ()),
    ]


@table(
    "config, line",
    [
        ({}, ""),
        ({"limit": -1, "offset": 0}, ""),
        ({"limit": None}, ""),
        ({"limit": 0.5}, "only part of the data was run (--limit 0.5): not a benchmark result"),
        ({"limit": 8.0}, "only part of the data was run (--limit 8): not a benchmark result"),
        (
            {"limit": 8, "offset": 16},
            "only part of the data was run (--limit 8 --offset 16): not a benchmark result",
        ),
    ],
)
def test_which_part_was_run(config: dict[str, Any], line: str) -> None:
    assert part(config) == line


def test_results_of_an_earlier_version_have_their_conditions() -> None:
    section = {
        "warnings": [
            "made with the packaged sample: not a benchmark result",
            "of a part of the docs (--limit, --offset): not a benchmark result",
            "judged by m, not by the paper's judge: not directly comparable "
            "with the paper's numbers",
            "3 items left out",
        ],
        "judge": {"provider": "openai", "model": "m"},
        "data": {"hash": "abc"},
        "arrived": "reached the model: 32 frames",
    }
    section["judge"]["warning"] = section["warnings"][2]
    ours = {"maia": section, "version": "0.1", "invalid": {VSV: "many failed", "cvrr_es": "x"}}
    results = {"lmms_eval_tasks": ours, "config": {"limit": 8}, "lmms_eval_version": "0.7.3"}
    found = of_results(results, "maia", [VSV])
    assert [one.kind for one in found] == [
        *(Kind.INVALID, Kind.SAMPLE, Kind.PART, Kind.OTHER_JUDGE, Kind.NOTE),
        *(Kind.DATA, Kind.ARRIVED, Kind.VERSIONS),
    ]
    assert {one.kind for one in found if not one.is_limit} <= FACTS
    columns = as_columns(found)
    assert (columns["valid"], columns["judge"]) == (False, section["warnings"][2])
    assert "--limit 8" in columns["limit"]
    assert columns["conditions"][0] == "INVALID: many failed"
    assert of_results({}, "maia", [VSV]) == ()
