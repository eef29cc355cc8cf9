"""All five benchmarks through the host: simple and chat, one and two processes.

The runs are those of tests/golden, where their numbers are compared with the recorded ones, and the
items of the simple interface with those of the other. Here is what must hold of what a run writes
beside its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import sample as sample_answers
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.sample import CAREFUL, FLAT, HASTY, MODELS
from lmms_eval_tasks.cvrr_es.settings import CVRR_CANDIDATES
from tests.conftest import HostRun
from tests.cvrr_es.hosted import sklearn_kappas
from tests.golden.command import tasks_command
from tests.golden.run import Golden

pytestmark = pytest.mark.host

Items = Mapping[str, list[dict[str, Any]]]

# Joined over tasks: only a group may show it.
JOINED = {
    "maia": ("agg_acc",),
    "haven": ("joined_",),
    "maverix": ("best_uni", "best_multi", "delta_multi"),
    "cvrr": ("mean_",),
}


@pytest.fixture(scope="module")
def runs(golden_twice: Golden, golden_once: Golden) -> Mapping[str, HostRun]:
    """Two processes first: another worker makes the runs in one for the golden numbers."""
    return {**golden_once.runs, **golden_twice.runs}


@pytest.fixture(scope="module")
def items(golden_once: Golden) -> Items:
    """The chat run's saved items, by task."""
    run = golden_once.runs["chat"]
    found = {task: run.items(task) for task in run.results["n-samples"]}
    assert len(found) > 60
    return found


def items_of(items: Items, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Task and item of all tasks whose names start so."""
    own = {task: found for task, found in items.items() if task.startswith(prefix)}
    assert own
    return ((task, item) for task, found in own.items() for item in found)


def test_two_processes_really_ran(runs: Mapping[str, HostRun]) -> None:
    """Rank 0 of two gathers every other doc, so the saved order is 0, 2, 4, ..., 1, 3, 5."""
    order = [sample["doc_id"] for sample in runs["chat 2"].samples("maia_vsv")]
    assert order != sorted(order)
    assert sorted(order) == list(range(384))


def test_only_groups_show_what_is_joined(runs: Mapping[str, HostRun]) -> None:
    run = runs["chat"]
    numbers, groups = run.numbers, run.results["group_subtasks"]
    for benchmark, names in JOINED.items():
        shown = {
            task
            for task, values in numbers.items()
            for name, value in values.items()
            if task.startswith(benchmark) and name.startswith(names) and value is not None
        }
        assert shown
        assert shown <= set(groups)


# --- nothing leaks ------------------------------------------------------------------------------


def test_no_truth_reaches_the_model(items: Items) -> None:
    for task, item in items_of(items, "haven"):
        if item["kind"] != "grounding":  # which shows the summary's sentences
            assert not [text for text in item["summary"] if text in item["input"]]
        if not item["with_document"] and not task.endswith("temporal_text"):
            assert not [text for text in item["document"] if text in item["input"]]
    for _, item in items_of(items, "movierecapsqa"):
        # What somebody says is a fact and a line of the dialogue alike.
        told = [fact for fact in item["facts"] if fact not in item["dialogue"]]
        assert told
        assert not [fact for fact in told if fact in item["input"]]


def test_facts_reach_the_judge(golden_once: Golden, items: Items) -> None:
    asked = "\n".join(golden_once.asked)
    facts = {fact for _, item in items_of(items, "movierecapsqa") for fact in item["facts"]}
    assert facts
    assert [fact for fact in facts if fact not in asked] == []


def test_no_truth_and_no_name_reaches_a_judge(items: Items) -> None:
    """But for the answers that say the reference themselves."""
    kinds = {f"{one.id}/{name}": one for name in MODELS for one in sample_answers.answered(name)}
    searched = 0
    for _, item in items_of(items, "cvrr_judge"):
        made = kinds[item["id"]]
        assert made.question.question in item["input"]
        names = (*MODELS, FLAT, "invented", "Hasty")
        assert not [name for name in names if name in item["input"]]
        if made.question.reference not in made.text:
            searched += 1
            assert made.question.reference not in item["input"]
    assert searched > len(kinds)


# --- the study of judges ------------------------------------------------------------------------


def test_kappas_are_those_of_the_saved_ratings(runs: Mapping[str, HostRun], items: Items) -> None:
    """Computed again by scikit-learn: of each candidate and dimension, then the means."""
    for task in JUDGE_TASKS:
        shown = runs["chat"].numbers[task]
        again = sklearn_kappas(items[task])
        assert again["kappa"] is not None
        for metric in again.keys() & shown.keys():
            value = again[metric]
            expected = None if value is None else pytest.approx(value, abs=1e-12)
            assert shown[metric] == expected, metric


def test_what_each_round_is_shown(runs: Mapping[str, HostRun], items: Items) -> None:
    """The model bears a first judge's name: its own ratings are shown by the mixture alone."""
    shown = {
        task: {o["judge"] for item in items[task] for o in item["others"]} for task in JUDGE_TASKS
    }
    assert shown["cvrr_judge"] == set()
    assert shown["cvrr_judge_collective"] == {CAREFUL, FLAT}
    assert HASTY in shown["cvrr_judge_mixture"]
    for item in items["cvrr_judge_collective"]:
        told = [letter for letter in "ABC" if f"Judge {letter} rated" in item["input"]]
        assert told == list("ABC")[: len(item["others"])]
        assert item["judge"] == "Invented Hasty"
    for task in JUDGE_TASKS:
        (empty,) = (item for item in items[task] if item["empty"])
        assert (empty["candidate"], empty["answer"]) == (HASTY, "")
        assert "The assistant's reply is empty" in empty["input"]


def test_saved_answers_are_a_candidate(runs: Mapping[str, HostRun], cache: Path) -> None:
    env = {CVRR_CANDIDATES: str(runs["simple"].out), settings.JUDGE: "none"}
    said = tasks_command("estimate", "--tasks", "cvrr_judge", cache=cache, env=env)
    assert re.search(r"cvrr_judge +25 ", said.stdout), said  # one, with all questions
