"""CVRR-ES behind the shared commands."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.benchmarks import Benchmark
from lmms_eval_tasks.cvrr_es import benchmark
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.host import script as host_script
from tests.cvrr_es.release_files import predict
from tests.cvrr_es.scored import PART, TIME, eight, shown, values


def task(name: str) -> dict[str, Any]:
    return {"task": name, "generation_kwargs": {"max_new_tokens": 77}}


def test_it_offers_what_the_shared_code_asks_for() -> None:
    wanted = {name for name, _ in inspect.getmembers(Benchmark, inspect.isfunction)}
    wanted = {name for name in wanted if not name.startswith("_")}
    assert wanted <= set(benchmark.__all__)
    assert benchmarks.load("cvrr_es") is benchmark


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("cvrr_es", "cvrr_es"),
        (f"cvrr_es_{PART}", "cvrr_es"),
        ("cvrr_judge", "cvrr_es"),
        ("cvrr_judge_mixture", "cvrr_es"),
        ("cvrr", None),  # the host's own
        ("cvrr_partial_actions", None),
        ("cvrr_judges", None),
    ],
)
def test_names_of_tasks(name: str, found: str | None) -> None:
    assert benchmarks.of_task_name(name) == found


def test_options_of_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("candidates", "ratings", "reference", "selection", "name"):
        variable = f"LMMS_EVAL_TASKS_CVRR_{name.upper()}"
        monkeypatch.setenv(variable, "before")
        assert host_script._take_own_options([f"--cvrr-{name}", "a,b", "--tasks", "x"]) == [
            "--tasks",
            "x",
        ]
        assert os.environ[variable] == "a,b"


class TestWorkload:
    def test_of_answers(self, user: Path) -> None:
        """The reference stands in for an answer; each is one request to the judge."""
        found = benchmark.workload(task(f"cvrr_es_{TIME}"))
        assert [prompt.rpartition("Question: ")[2] for prompt in found.prompts] == ["When?", "Why?"]
        assert found.max_reply_tokens == 77
        asked = [fields for ((_, fields),) in found.judged]
        assert asked[0] == {
            "id": f"{TIME}/001",
            "question": "When?",
            "reference": "At planted noon.",
            "candidate": "At planted noon.",
        }
        assert {criterion.name for ((criterion, _),) in found.judged} == {"cvrr_es"}

    def test_of_ratings(self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        predict(tmp_path / "ada", PART, [("What happens?", "a")] * 2 + [("Who is there?", "b")])
        predict(tmp_path / "ada", TIME, [("When?", "c"), ("Why?", "")])
        monkeypatch.setenv(settings.CVRR_CANDIDATES, str(tmp_path / "ada"))
        found = benchmark.workload(task("cvrr_judge"))
        assert len(found.prompts) == 5
        assert "planted" not in "".join(found.prompts)
        assert list(found.judged) == []


def test_tables_of_the_hosts_results() -> None:
    numbers = {f"{name},none": value for name, value in shown(values(eight())).items()}
    results = {
        "results": {"cvrr_judge": numbers, "maia_vsv": {"acc,none": 1.0}},
        "lmms_eval_tasks": {"cvrr_es": {"warnings": ["one", "two"]}},
    }
    *made, one, two = benchmark.tables(results)
    assert len(made) == 3
    assert (one, two) == ("Note: one", "Note: two")


def test_what_there_is_not() -> None:
    assert benchmark.submission([]) is None  # type: ignore[func-returns-value]
    with pytest.raises(DataError, match="no subtitles"):
        benchmark.make_subtitles(Path(), None)  # type: ignore[arg-type]  # never looked at
