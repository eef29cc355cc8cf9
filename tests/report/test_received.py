"""What is said of results that others send."""

from __future__ import annotations

import copy
import fnmatch
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import registry
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.leaderboards import figures
from lmms_eval_tasks.report import sides
from lmms_eval_tasks.report.exchange import received, records, sent
from lmms_eval_tasks.utils.conditions import SAMPLE_TEXT, part
from tests.checks import table
from tests.conftest import SHARED
from tests.report.sent import RELEASE, TASKS, Record, facts, named, said_of, wrong_in


def test_a_whole_run_can_stand(whole: Record, tmp_path: Path) -> None:
    assert wrong_in(whole) == []
    (note,) = said_of(whole, tmp_path)
    assert note.kind == received.NOTE
    assert "cannot be told, no hash of the whole release of MAIA is known here" in note.line
    done = CliRunner().invoke(app, ["leaderboard", "check", str(tmp_path / "sent.json")])
    assert done.exit_code == 0
    assert "can stand, with these notes" in done.output


Change = Callable[[Record, Record], object]  # of the record, and of MAIA's judge_acc in it


def told(name: str, value: Any) -> Change:
    """Another fact beside the number, in whichever of the two places it stands."""

    def change(_: Record, one: Record) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        rest = one["metric_config"]["additional_details"]
        (rest if name in rest else facts(one))[name] = text

    return change


def score(value: float, **ends: float) -> Change:
    def change(_: Record, one: Record) -> None:
        one["score_details"]["score"] = value
        one["score_details"]["uncertainty"]["confidence_interval"] |= ends

    return change


def condition(kind: str, text: str) -> Change:
    return told("conditions", [{"kind": kind, "text": text, "tasks": []}])


def judge(provider: str, model: str, **details: str) -> Change:
    def change(_: Record, one: Record) -> None:
        scoring = one["metric_config"]["llm_scoring"]
        scoring["judges"][0]["model_info"]["id"] = model
        scoring["additional_details"] |= {"provider": provider, **details}

    return change


BREAKAGES: list[tuple[Change, str, str]] = [
    (lambda r, _: r.pop("model_info"), "error", r"\$: 'model_info' is a required property"),
    (lambda r, _: r.update(schema_version="0.2.2"), "error", "version '0.2.2' of the schema"),
    (lambda r, _: r["source_metadata"].update(source_type="documentation"), "error", "not a run"),
    (
        lambda _, o: o.update(evaluation_name="gpqa.diamond"),
        "error",
        "a record is of one of cvrr_es, haven, maia",
    ),
    (
        lambda _, o: o.update(evaluation_name="maia.x"),
        "error",
        "no number of MAIA's .* 'x judge_acc'",
    ),
    (lambda r, o: r["evaluation_results"].append(o), "error", "judge_acc: stands there twice"),
    (lambda r, _: r.update(evaluation_results=[]), "error", "a record is of one of"),
    (lambda r, _: r.pop("eval_library"), "error", "'eval_library' is a required property"),
    (
        lambda r, _: r["eval_library"].update(additional_details={"lmms_eval_tasks": "0.1"}),
        "note",
        "made with lmms-eval-tasks '0.1'",
    ),
    (
        lambda r, _: r["source_metadata"].update(source_organization_name="unknown"),
        "note",
        "say in source_organization_name who",
    ),
    (lambda _, o: o["source_data"].pop("additional_details"), "error", "what it rests on .*hash"),
    (told("items", "many"), "error", "what it rests on .*items"),
    (told("hash", "735dd386d3cd"), "error", "20 % sample; run on the whole release"),
    (told("hash", ""), "note", "data ''"),
    (told("hash", "0123456789ab, 0123456789ac"), "error", "run on different data"),
    (told("videos", "9" * 5000 + " of 1"), "error", "what it rests on .*videos"),
    (told("videos", "90 of 100"), "error", "asked about 90 of 100 videos: more than 5% lack"),
    (told("videos", "97 of 100"), "note", "asked about 97 of 100 videos$"),
    (told("items", {"maia_oevqa": 120}), "error", "120 of 2,400 items of maia_oevqa: more"),
    (told("items", {"maia_oevqa": 2401}), "error", "2,401 items of maia_oevqa, which has 2,400"),
    (told("items", {"maia_vsv": 2400}), "error", "not its tasks'"),
    (told("items", {}), "error", "not its tasks'"),
    (told("status", {"ok": 2401, "x": -1}), "error", "what it rests on .*status"),
    (told("status", {"ok": 2399}), "error", "by status are not as many"),
    (told("status", {"ok": 2200, "model_error": 200}), "error", "200 of 2,400 items failed: more"),
    (told("status", {"ok": 2399, "api_error": 1}), "note", "1 of 2,400 items failed$"),
    (told("prompts", {"it": "000000000000"}), "error", "prompt '000000000000' is none of this"),
    (told("prompts", {}), "error", "does not tell with which prompts"),
    (condition("sample", SAMPLE_TEXT), "error", "made with the packaged sample"),
    (condition("fewer frames", "saw 8 of 32 frames"), "note", "saw 8 of 32 frames$"),
    (condition("note", "a\nerror: \x1b[31mb"), "note", r"a error:  \[31mb$"),
    (condition("part", part({"limit": 10})), "error", "part of the data .*limit 10.*run without"),
    (condition("INVALID", "too many"), "error", r"INVALID: too many; judge"),
    (told("conditions", "many"), "error", "what it rests on .*conditions"),
    (score(1.2, upper=1.3), "error", "1.2 is not in 0 to 1"),
    (score(float("nan")), "error", "nan is not in 0 to 1"),
    (score(0.9, lower=0.1, upper=0.8), "error", "0.9 is not in its interval, 0.1 to 0.8"),
    (score(0.5, lower=float("nan"), upper=0.8), "error", "0.5 is not in its interval"),
    (score(0.5, lower=0.4, upper=0.6, confidence_level=0.9), "error", "of 0.9, not of 0.95"),
    (
        lambda _, o: o["score_details"]["uncertainty"].pop("confidence_interval"),
        "note",
        "judge_acc: has no interval",
    ),
    (lambda _, o: o["score_details"].pop("uncertainty"), "error", "of how many items"),
    (lambda _, o: o["metric_config"].pop("llm_scoring"), "error", "does not tell who judged"),
    (judge("openai", "qwen3", comparable="False"), "note", "judged by qwen3, not by the paper's"),
    (judge("openai", "gpt-4o-2024-08-06"), "", ""),
    (judge("openai", "qwen3"), "error", "'qwen3', but told as the paper's gpt-4o"),
    (judge("replay", "x"), "error", "recorded replies; judge with gpt-4o"),
    (judge("none", "none"), "error", "not judged; judge the saved samples"),
    (judge("openai", "gpt-4o", prompt="x"), "note", "judged with the prompt 'x'"),
]


@table("change, kind, words", BREAKAGES)
def test_each_breakage_has_its_line(
    change: Change, kind: str, words: str, whole: Record, tmp_path: Path
) -> None:
    record = copy.deepcopy(whole)
    change(record, named(record, "judge_acc"))
    old, now = said_of(whole, tmp_path), said_of(record, tmp_path)
    new = [one for one in now if one not in old]
    assert [one.kind for one in new if re.search(words, one.line)] == [kind] * bool(kind), now
    assert kind == "error" or all(one.kind == "note" for one in new)


@table(
    "text, words",
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_no_record_at_all(text: str, words: str, tmp_path: Path) -> None:
    (problem,) = said_of(text, tmp_path)
    assert (problem.kind, words in problem.line) == ("error", True)


@table("content", [[], {}, "x", {"results": {}, "configs": {}}, {"evaluation_results": 3}])
def test_another_file(content: Any, tmp_path: Path) -> None:
    found = said_of(content if isinstance(content, dict | list) else json.dumps(content), tmp_path)
    assert found
    assert {one.kind for one in found} == {"error"}


def test_a_run_on_the_sample_cannot_stand(told_run: Path, tmp_path: Path) -> None:
    sent.write("maia", [told_run], "eee", tmp_path)
    file = tmp_path / "maia" / "m.json"
    done = CliRunner().invoke(app, ["leaderboard", "check", str(file)])
    assert isinstance(done.exception, TasksError)  # main() ends with 2
    assert "384 of 19,200 items of maia_vsv" in str(done.exception)
    assert "can stand" not in done.output


@pytest.mark.parametrize("name", ["maia", "movierecapsqa"])
def test_what_is_known_of_the_real_data_is_so(name: str) -> None:
    if not (SHARED / "data" / name).is_dir():
        pytest.skip(f"no real data of {name} at {SHARED}")
    assert registry.load(name).status(SHARED / "data").version in figures.releases()[name]["part"]


def test_what_is_known_is_of_our_tasks() -> None:
    assert figures.releases().keys() == set(registry.NAMES)
    for name, known in figures.releases().items():
        for pattern in known["items"]:
            assert fnmatch.filter(registry.load(name).tasks, pattern), pattern


def test_a_run_without_our_hook_cannot_stand(told_run: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(told_run, tmp_path / "bare")
    next(bare.glob("*_results.json")).unlink()
    sent.write("maia", [bare], "eee", tmp_path)
    (file,) = tmp_path.glob("maia/*.json")
    record = json.loads(file.read_text(encoding="utf-8"))
    assert wrong_in(record) == []
    assert "does not tell what it rests on" in said_of(record, tmp_path)[0].line


def test_runs_of_tasks_that_differ_are_not_taken_for_one(told_run: Path, tmp_path: Path) -> None:
    """A joined number of two runs of the host, of which the second had other data and judge."""
    both = tmp_path / "both"
    for number, task in enumerate(TASKS):
        part = both / str(number)
        part.mkdir(parents=True)
        for file in (*told_run.glob(f"*_{task}.jsonl"), *told_run.glob("*_results.json")):
            shutil.copy(file, part)
    results = both / "1" / "20260101_000000_results.json"
    content = json.loads(results.read_text(encoding="utf-8"))
    own = content["lmms_eval_tasks"]["maia"]
    own["data"]["hash"], own["prompts"]["it"]["hash"] = "0123456789ac", "000000000000"
    own["videos"]["asked"], own["judge"]["comparable"] = 97, False
    results.write_text(json.dumps(content), encoding="utf-8")
    (side,) = sides.read([both])
    joined = named(records.of_run(registry.load("maia"), side), "agg_acc")
    assert facts(joined)["hash"] == f"{RELEASE}, 0123456789ac"
    assert facts(joined)["videos"] == "97 of 100"
    found = {
        what for _, what in received.of_result(registry.load("maia"), "maia", "agg_acc", joined)
    }
    assert any("run on different data" in one for one in found)
    assert any("000000000000' is none of this package's" in one for one in found)
    del content["lmms_eval_tasks"]
    results.write_text(json.dumps(content), encoding="utf-8")
    (side,) = sides.read([both])
    assert facts(named(records.of_run(registry.load("maia"), side), "agg_acc"))["hash"] == ""
