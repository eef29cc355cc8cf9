"""HAVEN's part of the demo: what the oracle must get, and the coin within four standard errors."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import demo, sample_players
from lmms_eval_tasks.haven.options import SUMMARIES, TASKS
from lmms_eval_tasks.haven.tasks import BENCHMARK, keep
from lmms_eval_tasks.judges.asking import Asker
from lmms_eval_tasks.judges.config import NONE
from lmms_eval_tasks.runs import before, scoring
from lmms_eval_tasks.sample import demo as demos
from tests.haven.docs import chat
from tests.haven.sample_requests import build, docs

Numbers = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(frames: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CACHE, str(frames))
    monkeypatch.setenv(settings.DATA, str(folder.parent))


def run(folder: Path, player: Callable[[list[Any]], str | None], spec: str) -> Numbers:
    """Every task's numbers that the demo checks, as a run computes them, but for texts."""
    rater = judges.make(before.judge_config(BENCHMARK, spec, {}))
    found: Numbers = {}
    oracle = demo.ORACLE
    for name in TASKS:
        task = BENCHMARK.tasks[name]
        items = [
            scoring.scored(task, keep(doc), player(chat(doc)) or "", Asker(rater))
            for doc in docs(folder, name)
        ]
        wanted = {*oracle[name], "f1", "spearman", "hit1", "spearman_best", "kendall_best"}
        some = [metric for metric in task.metrics if metric.name in wanted]
        found[name] = scoring.numbers(dataclasses.replace(task, metrics=some), items)
    return found


def check(numbers: Numbers, folder: Path) -> list[str]:
    """As the host names metrics."""
    results = {
        name: {f"{metric},none": value for metric, value in values.items()}
        for name, values in numbers.items()
    }
    return demo.check_coin({"results": results}, folder, folder / "key.json")


def test_the_oracle_gets_what_the_demo_expects(folder: Path) -> None:
    numbers = run(folder, sample_players.oracle, demo.judge(demos.ORACLE, folder))
    oracle = demo.ORACLE
    demos._check_oracle(numbers, oracle)
    assert set(oracle) == set(TASKS)
    for name, task in TASKS.items():
        expected = oracle[name]
        assert expected["failed"] == expected["violations"] == 0
        assert expected.get("geval_samples_valid", 0) == 5 * (task.kind in SUMMARIES)
        for metric in ("spearman", "kendall"):
            if task.kind == "saliency":
                assert 0.9 < expected[metric] < 0.999
            elif task.kind == "temporal":
                assert expected[metric] == 1
        # The table's own column says the same.
        if task.kind == "saliency":
            best = [numbers[name][f"{metric}_best"] for metric in ("spearman", "kendall")]
            assert best == pytest.approx([expected["spearman"], expected["kendall"]])
    worse = {**numbers, "haven_saliency": {**numbers["haven_saliency"], "spearman": 1.0}}
    with pytest.raises(TasksError, match=r"spearman = 1\.0 on haven_saliency, not 0\.9"):
        demos._check_oracle(worse, oracle)


def test_the_coin_gets_chance_and_its_lines_say_so(folder: Path) -> None:
    numbers = run(folder, sample_players.coin, NONE)
    lines = check(numbers, folder)
    assert [re.sub(r"-?\d\.\d+", "x", line) for line in lines] == [
        "coin: f1 x on 32 HAVEN keyframes (chance x, standard error x)",
        "coin: spearman x on 48 HAVEN orders (chance x, standard error x)",
        "coin: hit1 x on 16 HAVEN alignments (chance x, standard error x)",
    ]


@pytest.mark.parametrize(
    ("kinds", "metric"),
    [(("v2v", "v2vt"), "f1"), (("temporal", "saliency"), "spearman"), (("grounding",), "hit1")],
)
def test_a_coin_that_is_none_stops_the_demo(
    kinds: tuple[str, ...], metric: str, folder: Path
) -> None:
    at_chance = {name: {"f1": 0.147, "spearman": 0.0, "hit1": 0.24} for name in TASKS}
    assert len(check(at_chance, folder)) == 3
    lucky = {
        name: {**values, metric: 0.6} if TASKS[name].kind in kinds else values
        for name, values in at_chance.items()
    }
    with pytest.raises(TasksError, match=rf"the coin got {metric} = 0\.600 on"):
        check(lucky, folder)
    del at_chance[f"haven_{kinds[0]}"][metric]
    with pytest.raises(TasksError, match=f"the coin has no {metric} on haven_{kinds[0]}"):
        check(at_chance, folder)
