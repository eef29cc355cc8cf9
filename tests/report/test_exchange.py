"""Results in other people's forms, and what is said of results that others send."""

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
import yaml
from jsonschema import Draft7Validator
from typer.testing import CliRunner

from lmms_eval_tasks import __version__, benchmarks, leaderboards
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.leaderboards import figures
from lmms_eval_tasks.report import compare, exchange, received, records, sides
from lmms_eval_tasks.runs import after
from tests.checks import refused, table
from tests.conftest import REPOSITORY, SHARED
from tests.report import made
from tests.report.test_run_page import MARKUP

Record = dict[str, Any]
RELEASE = "0123456789ab"  # of no data that are known here
TASKS = {"maia_vsv": 19200, "maia_oevqa": 2400}  # items of the whole release


def section(name: str) -> dict[str, Any]:
    """What the hook tells of a whole run with the paper's judge."""
    benchmark = benchmarks.load(name)
    prompt = benchmark.judge_prompt()
    judge = {"provider": "openai", "model": benchmark.paper_judge, "comparable": True}
    prompts = benchmark.prompts(list(TASKS))
    return {
        "data": {"hash": RELEASE},
        "videos": {"asked": 100, "of": 100},
        "prompts": {one: given.note() for one, given in prompts.items()},
        "judge": {**judge, "temperature": 0.0, "prompt": prompt.note()},
        "warnings": [],
        "arrived": "reached the model: 32 frames",
    }


def saved_run(folder: Path, model: str, judge: str) -> Path:
    """MAIA on the sample, told as if of the release."""
    made.saved_run(folder, model, list(TASKS), made.any_reply, judge)
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    results["lmms_eval_tasks"] = {"version": __version__, "maia": section("maia"), "invalid": {}}
    results["config"] |= {"limit": None, "model_args": "model=m,api_key=sk-12,base_url=http://x"}
    file.write_text(json.dumps(results), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(sample_root: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        return saved_run(out / "run", "org/m", made.recorded(sample_root, out / "replay.jsonl"))


@pytest.fixture(scope="module")
def whole(run: Path) -> Record:
    """The record of the run with as many items as the release has, and intervals."""
    (side,) = sides.read([run])
    record = records.of_run(benchmarks.load("maia"), side)
    record["source_metadata"]["source_organization_name"] = "Some | lab"
    for one in record["evaluation_results"]:
        items = {name: TASKS[name] for name in json.loads(facts(one)["items"])}
        facts(one).update(items=json.dumps(items), status=json.dumps({"ok": sum(items.values())}))
        score = one["score_details"]["score"]
        ends = {"lower": score - 0.1, "upper": score + 0.1, "confidence_level": 0.95}
        one["score_details"]["uncertainty"]["confidence_interval"] = ends
    return record


def facts(result: Record) -> dict[str, str]:
    found: dict[str, str] = result["source_data"]["additional_details"]
    return found


def named(record: Record, name: str) -> Record:
    found: list[Record] = record["evaluation_results"]
    return next(one for one in found if one["metric_config"]["metric_name"] == name)


def wrong_in(record: Any) -> list[str]:
    found = Draft7Validator(records.schema()).iter_errors(record)
    return [f"{one.json_path}: {one.message}" for one in found]


def said_of(record: Any, folder: Path) -> list[received.Problem]:
    file = folder / "sent.json"
    file.write_text(record if isinstance(record, str) else json.dumps(record), encoding="utf-8")
    found = received.problems(file)
    assert all("\n" not in one.line and one.line.isprintable() for one in found)
    return found


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", leaderboards.BENCHMARKS)
def test_the_papers_rows_are_records(name: str, tmp_path: Path) -> None:
    exchange.write(name, [], "eee", tmp_path)
    found = [json.loads(file.read_text("utf-8")) for file in tmp_path.glob(f"{name}/*.json")]
    assert sorted(len(one["evaluation_results"]) for one in found) == sorted(
        len(one["evaluation_results"]) for one in records.published(benchmarks.load(name)).values()
    )
    results = [one for record in found for one in record["evaluation_results"]]
    assert len(results) == len(list(figures.of_models(name)))
    assert len({one["evaluation_result_id"] for one in results}) == len(results)
    for record in found:
        assert wrong_in(record) == []
        assert record["source_metadata"]["source_type"] == "documentation"
    for one in results:
        low, high = (float(one["metric_config"][end]) for end in ("min_score", "max_score"))
        assert low <= one["score_details"]["score"] <= high, one


@table(
    "name, model, identity, printed, score",
    [
        ("maia", "InternVL2 8B", "OpenGVLab/InternVL2-8B", "0.18", 0.18),
        ("maverix", "EgoGPT-7B", "EgoGPT-7B", "29.9", 0.299),
        ("haven", "text-proxy LLM", "GPT-5.4", "0.856", 0.856),
        ("cvrr_es", "Video-LLaVA", "Video-LLaVA", "3.95", 3.95),
    ],
)
def test_a_figure_keeps_its_digits(
    name: str, model: str, identity: str, printed: str, score: float
) -> None:
    record = records.published(benchmarks.load(name))[identity]
    found = [one["score_details"] for one in record["evaluation_results"]]
    own = [one for one in found if one["details"]["place"].startswith(model)]
    assert {"score": score, "printed": printed} in [
        {"score": one["score"], "printed": one["details"]["printed"]} for one in own
    ]


def test_a_judges_figures_are_the_judges() -> None:
    """Where a table's groups are judges, its rows are whose answers they judge."""
    record = records.published(benchmarks.load("cvrr_es"))["Collective thought"]
    assert {one["evaluation_name"] for one in record["evaluation_results"]} == {
        "cvrr_es.cvrr_judge_collective"
    }


def test_a_run_is_a_record(run: Path, tmp_path: Path) -> None:
    exchange.write("maia", [run], "eee", tmp_path)
    record = json.loads((tmp_path / "maia" / "m.json").read_text(encoding="utf-8"))
    assert wrong_in(record) == []
    assert record["model_info"]["id"] == "org/m"
    assert record["evaluation_id"] == "maia/org/m/2026-01-01T00:00:00"
    (side,) = sides.read([run])
    benchmark = benchmarks.load("maia")
    lines = compare.headlines(benchmark, records.own_tasks(benchmark, side), [side])
    assert {
        (one["evaluation_name"], one["metric_config"]["metric_id"], one["score_details"]["score"])
        for one in record["evaluation_results"]
    } == {
        (
            f"maia.{one.quantity.row}",
            f"maia.{one.quantity.metric}",
            one.numbers[side.label].estimate,
        )
        for one in lines
    }
    judged = {
        one["metric_config"]["metric_name"]
        for one in record["evaluation_results"]
        if "llm_scoring" in one["metric_config"]
    }
    assert judged == {"judge_acc", "agg_acc"}
    command = named(record, "pair_acc")["generation_config"]["generation_args"]["execution_command"]
    assert "base_url=http://x" in command
    assert "sk-12" not in json.dumps(record)


def test_every_number_of_the_hosts_table_has_a_scale() -> None:
    shown = set()
    for benchmark in map(benchmarks.load, benchmarks.NAMES):
        for task in benchmark.tasks.values():
            for metric in compare.shown(task):
                shown.add(metric.name)
                scale = figures.scales()[metric.name]
                assert not metric.share or (scale.low, scale.high) == (0, 1)
        shown |= {name for join in benchmark.joins for name in join.shown}
    assert shown == set(figures.scales())


def test_the_hubs_own_reader_takes_it(run: Path, tmp_path: Path) -> None:
    from huggingface_hub import parse_eval_result_entries

    exchange.write("maia", [run], "hf", tmp_path)
    text = (tmp_path / "m" / ".eval_results" / "maia.yaml").read_text(encoding="utf-8")
    entries = parse_eval_result_entries(yaml.safe_load(text))
    (side,) = sides.read([run])
    record = records.of_run(benchmarks.load("maia"), side)
    wanted = {
        "maia_vsv": named(record, "pair_acc"),
        "maia_oevqa": named(record, "judge_acc"),
        "maia": named(record, "agg_acc"),
    }
    assert {one.task_id: one.value for one in entries} == {
        name: one["score_details"]["score"] for name, one in wanted.items()
    }
    assert {(one.dataset_id, one.date) for one in entries} == {
        ("giobin/MAIA", "2026-01-01T00:00:00")
    }
    judged = next(one for one in entries if one.task_id == "maia_oevqa")
    assert "Judge gpt-4o." in (judged.notes or "")


@pytest.mark.parametrize("name", [*MARKUP, "../../../etc/x", "..", "a|b\n## c", "\x1b[31m\u202e"])
def test_a_hostile_name_is_data(name: str, run: Path, whole: Record, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text(encoding="utf-8")) | {"model_name": name}
    file.write_text(json.dumps(results), encoding="utf-8")
    for form in ("eee", "hf"):
        exchange.write("maia", [folder], form, tmp_path / "out")
    written = [one for one in (tmp_path / "out").rglob("*") if one.is_file()]
    assert len(written) == 2
    assert all(re.fullmatch(r"[\w.-]+", part) for one in written for part in one.parts[-3:])
    assert wrong_in(json.loads(next(iter(tmp_path.glob("out/maia/*.json"))).read_text())) == []
    sent = copy.deepcopy(whole)
    sent["model_info"]["name"] = name
    put(sent, tmp_path / "sent" / "maia" / "m.json")
    (row,) = [one for one in exchange.page(tmp_path / "sent").splitlines() if "pool\\_acc" in one]
    assert len(re.findall(r"(?<!\\)\|", row)) == len(exchange.COLUMNS) + 1
    assert re.search(r"[<>]|\x1b", row) is None


# --- what is sent ---------------------------------------------------------------------------------


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
    (lambda _, o: o.update(evaluation_name="gpqa.diamond"), "error", "a record is of one of maia"),
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
    (told("warnings", [after.SAMPLE]), "error", "made with the packaged sample"),
    (told("warnings", ["saw 8 of 32 frames"]), "note", "saw 8 of 32 frames$"),
    (told("warnings", ["a\nerror: \x1b[31mb"]), "note", r"a error:  \[31mb$"),
    (told("limit", "10"), "error", "of a part of the docs .*run without"),
    (told("invalid", "too many"), "error", r"invalid \(too many\)"),
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


def test_a_run_on_the_sample_cannot_stand(run: Path, whole: Record, tmp_path: Path) -> None:
    exchange.write("maia", [run], "eee", tmp_path)
    file = tmp_path / "maia" / "m.json"
    done = CliRunner().invoke(app, ["leaderboard", "check", str(file)])
    assert isinstance(done.exception, TasksError)  # main() ends with 2
    assert "384 of 19,200 items of maia_vsv" in str(done.exception)
    assert "can stand" not in done.output


@pytest.mark.parametrize("name", ["maia", "movierecapsqa"])
def test_what_is_known_of_the_real_data_is_so(name: str) -> None:
    if not (SHARED / "data" / name).is_dir():
        pytest.skip(f"no real data of {name} at {SHARED}")
    assert benchmarks.load(name).status(SHARED / "data").version in figures.releases()[name]["part"]


def test_what_is_known_is_of_our_tasks() -> None:
    assert figures.releases().keys() == set(benchmarks.NAMES)
    for name, known in figures.releases().items():
        for pattern in known["items"]:
            assert fnmatch.filter(benchmarks.load(name).tasks, pattern), pattern


# --- the page -------------------------------------------------------------------------------------


def put(record: Record, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record), encoding="utf-8")


def test_a_row_that_is_sent_stands_on_the_page(whole: Record, tmp_path: Path) -> None:
    assert "No row has been sent yet." in exchange.page(tmp_path)
    put(whole, tmp_path / "maia" / "my model.json")
    page = exchange.page(tmp_path)
    one = named(whole, "judge_acc")["score_details"]
    value, count = f"{one['score']:.3f}", one["uncertainty"]["num_samples"]
    (row,) = [line for line in page.splitlines() if "judge\\_acc" in line]
    assert row.startswith(
        "| maia\\_oevqa | judge\\_acc | [org/m](../leaderboards/results/maia/my%20model.json) | "
        f"{value} [{one['score'] - 0.1:.3f}, {one['score'] + 0.1:.3f}] | {count} | gpt-4o | "
        "Some \\| lab | data"
    )
    refused(TasksError, "move it to maia/", _in_another, whole, tmp_path)


def _in_another(record: Record, folder: Path) -> None:
    put(record, folder / "haven" / "m.json")
    exchange.page(folder)


def test_a_row_that_cannot_stand_ends_the_page(whole: Record, tmp_path: Path) -> None:
    record = copy.deepcopy(whole)
    told("limit", "10")(record, named(record, "judge_acc"))
    put(record, tmp_path / "maia" / "m.json")
    refused(TasksError, "run without", exchange.page, tmp_path)


def test_the_page_is_of_what_was_sent() -> None:
    page = (REPOSITORY / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == exchange.page(REPOSITORY / "leaderboards" / "results")


def test_two_of_one_name_are_two_files(run: Path, tmp_path: Path) -> None:
    again = shutil.copytree(run, tmp_path / "again")
    exchange.write("maia", [run, again], "eee", tmp_path / "out")
    assert len(list(tmp_path.glob("out/maia/*.json"))) == 2


def test_a_run_without_our_hook_cannot_stand(run: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(run, tmp_path / "bare")
    next(bare.glob("*_results.json")).unlink()
    exchange.write("maia", [bare], "eee", tmp_path)
    (file,) = tmp_path.glob("maia/*.json")
    record = json.loads(file.read_text(encoding="utf-8"))
    assert wrong_in(record) == []
    assert "does not tell what it rests on" in said_of(record, tmp_path)[0].line


def test_runs_of_tasks_that_differ_are_not_taken_for_one(run: Path, tmp_path: Path) -> None:
    """A joined number of two runs of the host, of which the second had other data and judge."""
    both = tmp_path / "both"
    for number, task in enumerate(TASKS):
        part = both / str(number)
        part.mkdir(parents=True)
        for file in (*run.glob(f"*_{task}.jsonl"), *run.glob("*_results.json")):
            shutil.copy(file, part)
    results = both / "1" / "20260101_000000_results.json"
    content = json.loads(results.read_text(encoding="utf-8"))
    own = content["lmms_eval_tasks"]["maia"]
    own["data"]["hash"], own["prompts"]["it"]["hash"] = "0123456789ac", "000000000000"
    own["videos"]["asked"], own["judge"]["comparable"] = 97, False
    results.write_text(json.dumps(content), encoding="utf-8")
    (side,) = sides.read([both])
    joined = named(records.of_run(benchmarks.load("maia"), side), "agg_acc")
    assert facts(joined)["hash"] == f"{RELEASE}, 0123456789ac"
    assert facts(joined)["videos"] == "97 of 100"
    found = {
        what for _, what in received.of_result(benchmarks.load("maia"), "maia", "agg_acc", joined)
    }
    assert any("run on different data" in one for one in found)
    assert any("000000000000' is none of this package's" in one for one in found)
    del content["lmms_eval_tasks"]
    results.write_text(json.dumps(content), encoding="utf-8")
    (side,) = sides.read([both])
    assert facts(named(records.of_run(benchmarks.load("maia"), side), "agg_acc"))["hash"] == ""


@table(
    "runs, form, words",
    [
        ([], "hf", "is for results of your own"),
        (["nowhere"], "eee", "no such file"),
        (["run"], "eee", "no runs of HAVEN"),
    ],
)
def test_nothing_to_write(
    runs: list[str], form: str, words: str, run: Path, tmp_path: Path
) -> None:
    paths = [run if one == "run" else tmp_path / one for one in runs]
    refused(TasksError, words, exchange.write, "haven", paths, form, tmp_path / "out")
    assert not (tmp_path / "out").exists()
