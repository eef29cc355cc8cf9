"""MovieRecapsQA through the host: simple and chat, one and two processes, the same numbers.

The scripted model is right on about 70 % of the items and unreadable on 5 %, by item id. A local
endpoint takes answers apart by sentences and rates each claim by a hash of what it is asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from lmms_eval_tasks.movierecapsqa import benchmark, scores
from lmms_eval_tasks.movierecapsqa.bounds import LABELS
from lmms_eval_tasks.movierecapsqa.labels import CONDITIONS, DIMENSIONS, SOURCES
from lmms_eval_tasks.runs import rescore
from tests.conftest import HostRun, Launch, host, torchrun
from tests.local_endpoint import LocalEndpoint, last_user_text
from tests.movierecapsqa.asking import claims_of, kind

pytestmark = pytest.mark.host

TASKS = [
    "_".join(filter(None, ("movierecapsqa", source, condition)))
    for source in SOURCES
    for condition in CONDITIONS
]
RUNS = ("simple 1", "simple 2", "chat 1", "chat 2")


def drawn(text: str, choices: int) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % choices


def judged(request: dict[str, Any]) -> str:
    """Claims of an answer, or labels and a score for them."""
    asked, text = kind(request), last_user_text(request)
    if asked == "claims":
        candidate = text.rpartition("<candidate-")[2].split("\n", 2)[1]
        return json.dumps({"claims": [part for part in candidate.split(". ") if part]})
    words = LABELS[asked]
    labels = [
        {"id": number, "label": words[drawn(asked + claim, len(words))]}
        for number, claim in enumerate(claims_of(request), 1)
    ]
    return json.dumps({"labels": labels, "reason": "drawn", "score": drawn(text, 6)})


@pytest.fixture(scope="module")
def judge() -> Iterator[LocalEndpoint]:
    with LocalEndpoint(judged, model="local-judge") as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def runs(
    judge: LocalEndpoint, launch: Launch, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, HostRun]:
    done = {}
    for name in RUNS:
        interface, processes = name.split()
        out = tmp_path_factory.mktemp(name.replace(" ", "-"))
        arguments = ["--model", "tasks_scripted", "--tasks", "movierecapsqa_all"]
        arguments += ["--log_samples", "--output_path", str(out)]
        if interface == "simple":
            arguments.append("--force_simple")
        command = host(*arguments) if processes == "1" else torchrun(int(processes), *arguments)
        env = {"LMMS_EVAL_TASKS_JUDGE": f"checker@{judge.url}"}
        done[name] = launch(command, out, env=env)
        assert done[name].code == 0, done[name].stderr[-3000:]
    return done


def numbers(run: HostRun) -> dict[str, dict[str, Any]]:
    return rescore.numbers(run.results)


def test_every_task_ran(runs: dict[str, HostRun]) -> None:
    assert set(numbers(runs["chat 1"])) == {"movierecapsqa_all", *TASKS}


@pytest.mark.parametrize("name", RUNS[1:])
def test_same_numbers_in_every_run(name: str, runs: dict[str, HostRun]) -> None:
    assert numbers(runs[name]) == numbers(runs["simple 1"])


def test_main_numbers_lie_strictly_inside(runs: dict[str, HostRun]) -> None:
    """So that a number that is stuck at an end would show."""
    found = numbers(runs["chat 1"])
    for task in TASKS:
        for name in DIMENSIONS:
            assert 0 < found[task][f"{name}_valid"] < 5, task
            assert found[task][f"{name}_var"] > 0
            # Scores are drawn apart from labels, so that some break the bounds.
            assert found[task][f"{name}_inconsistent"] > 0
            low, high = found[task][f"{name}_low"], found[task][f"{name}_high"]
            assert 0 <= low < high < 5
        assert 0 < found[task]["rouge_l"] < 1


def test_facts_reach_the_judge_and_not_the_model(
    runs: dict[str, HostRun], judge: LocalEndpoint
) -> None:
    items = [
        sample[scores.FIRST]
        for file in rescore.find([runs["chat 1"].out])
        for sample in rescore.read(file).samples
    ]
    facts = {fact for item in items for fact in item["facts"]}
    asked = [last_user_text(chat.json) for chat in judge.chats]
    assert facts
    assert all(any(fact in text for text in asked) for fact in facts)
    for file in rescore.find([runs["chat 1"].out]):
        for sample in rescore.read(file).samples:
            item = sample[scores.FIRST]
            # What somebody says is a fact and a line of the dialogue alike.
            told = [fact for fact in item["facts"] if fact not in item["dialogue"]]
            assert told
            assert not [fact for fact in told if fact in sample["input"]]


def test_rescore_gives_the_same_numbers(runs: dict[str, HostRun]) -> None:
    saved = [rescore.read(file) for file in rescore.find([runs["chat 1"].out])]
    again = benchmark.rescore_saved(saved, None).numbers
    found = numbers(runs["chat 1"])
    assert set(again) == set(TASKS)
    for task, values in again.items():
        for name, value in values.items():
            assert found[task][name] == value, (task, name)


def test_tables_and_provenance(runs: dict[str, HostRun]) -> None:
    printed = " ".join(runs["chat 1"].stdout.split())
    for text in ("Table 4", "Table 5", "packaged sample", "only frames", "bounds"):
        assert text in printed
    section = runs["chat 1"].results["lmms_eval_tasks"]["movierecapsqa"]
    assert section["judge"]["model"] == "checker"
    assert section["data"]["segments"] == 5
    assert "model's own maximum" in section["frames"]["rule"]
    assert set(section["details"]) == set(TASKS)
