"""Results in other people's forms."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from lmms_eval_tasks import leaderboards, registry
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.leaderboards import figures
from lmms_eval_tasks.report import compare, compared_runs
from lmms_eval_tasks.report.exchange import export, records
from tests.checks import refused, table
from tests.report.sent import RELEASE, TASKS, facts, named, wrong_in
from tests.report.test_run_page import MARKUP


@pytest.mark.parametrize("name", registry.NAMES)
def test_the_papers_rows_are_records(name: str, tmp_path: Path) -> None:
    export.export_runs(name, [], "eee", tmp_path)
    found = [json.loads(file.read_text("utf-8")) for file in tmp_path.glob(f"{name}/*.json")]
    assert sorted(len(one["evaluation_results"]) for one in found) == sorted(
        len(one["evaluation_results"])
        for one in records.published(registry.load_benchmark(name)).values()
    )
    results = [one for record in found for one in record["evaluation_results"]]
    assert len(results) == len(list(figures.of_models(leaderboards.stored(name))))
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
    record = records.published(registry.load_benchmark(name))[identity]
    found = [one["score_details"] for one in record["evaluation_results"]]
    own = [one for one in found if one["details"]["place"].startswith(model)]
    assert {"score": score, "printed": printed} in [
        {"score": one["score"], "printed": one["details"]["printed"]} for one in own
    ]


def test_a_judges_figures_are_the_judges() -> None:
    """Where a table's groups are judges, its rows are whose answers they judge."""
    record = records.published(registry.load_benchmark("cvrr_es"))["Collective thought"]
    assert {one["evaluation_name"] for one in record["evaluation_results"]} == {
        "cvrr_es.cvrr_judge_collective"
    }


def test_a_run_is_a_record(told_run: Path, tmp_path: Path) -> None:
    export.export_runs("maia", [told_run], "eee", tmp_path)
    record = json.loads((tmp_path / "maia" / "m.json").read_text(encoding="utf-8"))
    assert wrong_in(record) == []
    assert record["model_info"]["id"] == "org/m"
    assert record["evaluation_id"] == "maia/org/m/2026-01-01T00:00:00"
    (side,) = compared_runs.read_sides([told_run])
    benchmark = registry.load_benchmark("maia")
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
    for benchmark in map(registry.load_benchmark, registry.NAMES):
        for task in benchmark.tasks.values():
            for metric in compare.headline_metrics(task):
                shown.add(metric.name)
                scale = figures.scales()[metric.name]
                assert not metric.is_share or (scale.low, scale.high) == (0, 1)
        shown |= {name for join in benchmark.joint_metrics for name in join.host_fields}
    assert shown == set(figures.scales())


def test_the_hubs_own_reader_takes_it(told_run: Path, tmp_path: Path) -> None:
    from huggingface_hub import parse_eval_result_entries

    export.export_runs("maia", [told_run], "hf", tmp_path)
    text = (tmp_path / "m" / ".eval_results" / "maia.yaml").read_text(encoding="utf-8")
    entries = parse_eval_result_entries(yaml.safe_load(text))
    (side,) = compared_runs.read_sides([told_run])
    record = records.of_run(registry.load_benchmark("maia"), side)
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
def test_a_hostile_name_is_data(name: str, told_run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(told_run, tmp_path / "run")
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text(encoding="utf-8")) | {"model_name": name}
    file.write_text(json.dumps(results), encoding="utf-8")
    for form in ("eee", "hf"):
        export.export_runs("maia", [folder], form, tmp_path / "out")
    written = [one for one in (tmp_path / "out").rglob("*") if one.is_file()]
    assert len(written) == 2
    assert all(re.fullmatch(r"[\w.-]+", part) for one in written for part in one.parts[-3:])
    assert wrong_in(json.loads(next(iter(tmp_path.glob("out/maia/*.json"))).read_text())) == []


def test_facts_of_runs_that_differ_stand_side_by_side(told_run: Path, tmp_path: Path) -> None:
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
    own["data"]["hash"], own["videos"]["asked"] = "0123456789ac", 97
    results.write_text(json.dumps(content), encoding="utf-8")
    (side,) = compared_runs.read_sides([both])
    joined = named(records.of_run(registry.load_benchmark("maia"), side), "agg_acc")
    assert facts(joined)["hash"] == f"{RELEASE}, 0123456789ac"
    assert facts(joined)["videos"] == "97 of 100"
    del content["lmms_eval_tasks"]
    results.write_text(json.dumps(content), encoding="utf-8")
    (side,) = compared_runs.read_sides([both])
    assert (
        facts(named(records.of_run(registry.load_benchmark("maia"), side), "agg_acc"))["hash"] == ""
    )


def test_a_run_without_our_hook_is_a_record(told_run: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(told_run, tmp_path / "bare")
    next(bare.glob("*_results.json")).unlink()
    export.export_runs("maia", [bare], "eee", tmp_path)
    (file,) = tmp_path.glob("maia/*.json")
    assert wrong_in(json.loads(file.read_text(encoding="utf-8"))) == []


def test_two_of_one_name_are_two_files(told_run: Path, tmp_path: Path) -> None:
    again = shutil.copytree(told_run, tmp_path / "again")
    export.export_runs("maia", [told_run, again], "eee", tmp_path / "out")
    assert len(list(tmp_path.glob("out/maia/*.json"))) == 2


@table(
    "runs, form, words",
    [
        ([], "hf", "writes your results"),
        (["nowhere"], "eee", "no such file"),
        (["run"], "eee", "no runs of HAVEN"),
    ],
)
def test_nothing_to_write(
    runs: list[str], form: str, words: str, told_run: Path, tmp_path: Path
) -> None:
    paths = [told_run if one == "run" else tmp_path / one for one in runs]
    refused(TasksError, words, export.export_runs, "haven", paths, form, tmp_path / "out")
    assert not (tmp_path / "out").exists()
