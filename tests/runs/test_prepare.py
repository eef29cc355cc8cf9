"""The judge before a run: chosen, checked, told; where none can be used nothing is lost."""

from __future__ import annotations

import json

import pytest

from lmms_eval_tasks import registry
from lmms_eval_tasks.errors import JudgeError, about_file
from lmms_eval_tasks.judges import asking
from lmms_eval_tasks.runs import prepare

JUDGED = ("maia", "maverix", "movierecapsqa", "haven", "cvrr_es")


@pytest.mark.parametrize("name", JUDGED)
def test_the_papers_judge_or_the_users(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = registry.load_benchmark(name)
    with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
        prepare.check_judge(benchmark)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    prepare.check_judge(benchmark)
    assert prepare.judge_config(benchmark).model == benchmark.paper_judge
    described = prepare.describe_judge(benchmark)
    assert described["comparable"] is (name != "haven")  # its paper names no judge
    assert described["prompt"]["hash"] in prepare.judge_prompt(benchmark)
    assert "planted" not in json.dumps(described)
    assert prepare.judge_config(benchmark, "none").provider == "none"
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "mine@http://127.0.0.1:9/v1")
    assert prepare.judge_config(benchmark).model == "mine"
    assert all(one.name.isidentifier() for one in benchmark.criteria())


def test_without_a_usable_judge_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """As under the host's own commands where the hook could not check it before the run."""
    benchmark = registry.load_benchmark("maia")
    asking._say_once.cache_clear()  # another test's line
    for _ in range(3):
        judge = asking.usable(lambda: prepare.judge_config(benchmark))
        verdict = judge.verdict(benchmark.criteria()[0], {})
        assert (verdict.score, verdict.status) == (None, "skipped")
    said = capsys.readouterr().err
    assert said.count("answers are not judged in this run") == 1
    assert "OPENAI_API_KEY" in said


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(2, "No such file", "x/y"), "x/y: No such file"),
        (ConnectionError("refused"), ""),
    ],
)
def test_pythons_own_errors_about_files_are_one_line(error: OSError, told: str) -> None:
    assert about_file(error) == told
