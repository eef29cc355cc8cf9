"""Each trap of the host is a rule for our YAMLs, which are loaded through the installed host."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import random
import re
from pathlib import Path
from typing import Any

import pytest

import lmms_eval_tasks
from lmms_eval_tasks import benchmarks

PACKAGE = Path(lmms_eval_tasks.__file__).parent
YAMLS = sorted(PACKAGE.rglob("*.yaml"))
ALL_FILES = sorted([*YAMLS, *PACKAGE.rglob("*_yaml")])


@pytest.fixture(scope="module")
def manager() -> Any:
    """The host's own task manager, with our folder added by the hook."""
    from lmms_eval_tasks.host import plugin

    plugin.install()
    from lmms_eval.tasks import TaskManager

    return TaskManager("ERROR")


@pytest.fixture
def on_sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "offline")
    for name, place in (
        ("CANDIDATES", "predictions"),
        ("RATINGS", "ratings/first.jsonl"),
        ("REFERENCE", "ratings/reference.jsonl"),
    ):
        monkeypatch.setenv(f"LMMS_EVAL_TASKS_CVRR_{name}", str(sample_root / "cvrr_es" / place))


def our_names(manager: Any, kind: str) -> list[str]:
    return [
        name
        for name, entry in manager.task_index.items()
        if entry["type"] == kind and str(PACKAGE) in str(entry["yaml_path"])
    ]


def test_all_yamls_are_registered(manager: Any) -> None:
    assert len(our_names(manager, "task")) + len(our_names(manager, "group")) == len(YAMLS) >= 19


def test_functions_are_absolute() -> None:
    """A relative one executes its file again for every reference: nothing could be shared."""
    for file in ALL_FILES:
        for function in re.findall(r"!function\s+(\S+)", file.read_text(encoding="utf-8")):
            assert function.startswith("lmms_eval_tasks."), f"{file}: {function}"


def test_no_other_yaml_lies_under_the_task_path() -> None:
    """The host parses every .yaml it finds; an empty one breaks all of its commands."""
    for file in YAMLS:
        text = file.read_text(encoding="utf-8")
        assert re.search(r"^(task|group):", text, re.M), file


def test_names_are_ours_and_do_not_clash(manager: Any) -> None:
    """The first of two equal names wins silently, and the host's come first."""
    import lmms_eval.tasks as host

    theirs = host.TaskManager.__new__(host.TaskManager)
    theirs.logger = host.eval_logger
    index = theirs._get_task_and_group(str(Path(host.__file__).parent))
    for file in YAMLS:
        assert file.stem not in index
        assert benchmarks.of_task_name(file.stem) == file.parent.name


@pytest.mark.parametrize("kind", ["simple", "chat"])
def test_every_task_loads(kind: str, manager: Any, on_sample: None) -> None:
    for name in our_names(manager, "task"):
        task = manager.load_task_or_group(name, kind)[name]
        config = task.config
        assert config.generation_kwargs["until"] == [], f"{name}: missing becomes a blank line"
        assert config.process_results.__module__ in {
            f"lmms_eval_tasks.{b}.utils" for b in benchmarks.NAMES
        }
        assert isinstance(config.metadata["version"], float)
        assert benchmarks.of_task(vars(config)) in benchmarks.NAMES
        assert len(task.test_docs()) > 0
        metrics = [entry["metric"] for entry in config.metric_list]
        assert len(metrics) == len(set(metrics))


def test_replies_that_name_keyframes_have_room(manager: Any, on_sample: None) -> None:
    """15 % of the frames of a video of 20 minutes, at six tokens a number."""
    for name in our_names(manager, "task"):
        if name.startswith("haven_"):
            task = manager.load_task_or_group(name, "chat")[name]
            frames = name.removesuffix("_text").endswith(("v2v", "v2vt"))
            room = task.config.generation_kwargs["max_new_tokens"]
            assert room == (2048 if frames else 1024), name


def test_a_groups_metric_is_contained_in_no_other(manager: Any, on_sample: None) -> None:
    """The host matches group metrics by substring, and the last writer wins."""
    for group in our_names(manager, "group"):
        ((configured, tasks),) = manager.load_task_or_group(group, "chat").items()
        joined = configured.config.get("aggregate_metric_list") or []
        wanted = [metric["metric"] for metric in joined]
        for task in tasks.values():
            for entry in task.config.metric_list:
                for metric in wanted:
                    # Those that contain it belong to the joined family and are joined by design.
                    if metric in entry["metric"]:
                        assert entry["metric"].startswith(metric)


def scored(manager: Any, name: str, replies: list[str]) -> dict[str, list[Any]]:
    """Items by metric of the first docs of a task, each answered with one of `replies` in turn."""
    task = manager.load_task_or_group(name, "chat")[name]
    items: dict[str, list[Any]] = {}
    docs = task.test_docs()
    for index, doc in enumerate(docs.select(range(min(24, len(docs))))):
        reply = replies[index % len(replies)]
        for metric, item in task.process_results(doc, [reply]).items():
            items.setdefault(metric, []).append(item)
    assert set(items) <= set(task.aggregation()), "an unknown metric would be shown as []"
    return items


# Nothing a model says may raise: the host retries five times and then loses the whole run.
NASTY = [
    "A",
    "B",
    "",
    " \n",
    "<think>never closed",
    "\x00\ud83d",
    "[LMMS_EVAL_REQUEST_FAILED after 3 retries] x",
    "Mi dispiace, non posso aiutarti.",
    "{'lm_pairs': 1}",
    '{"lm_pairs": {"choice": 3}}',
    "C" * 20000,
]


def test_process_results_never_raises_and_items_are_plain(manager: Any, on_sample: None) -> None:
    plain = (str, int, float, bool, type(None))

    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)  # tuple keys crash json.dumps
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)
        else:
            assert type(value) in plain, type(value)  # np.float32 would become a string

    for name in our_names(manager, "task"):
        for metric, items in scored(manager, name, NASTY).items():
            for item in items:
                check(item)
                assert item.get("score", 0) is not None, f"{metric}: the host crashes on None"
                json.dumps(item)
                pickle.loads(pickle.dumps(item))


def test_aggregations_do_not_depend_on_the_order(manager: Any, on_sample: None) -> None:
    for name in our_names(manager, "task"):
        task = manager.load_task_or_group(name, "chat")[name]
        for metric, items in scored(manager, name, ["A", "B", "A", ""]).items():
            function = task.aggregation()[metric]
            assert "args" not in inspect.signature(function).parameters
            expected = function(list(items))
            for seed in range(3):
                shuffled = random.Random(seed).sample(items, len(items))
                again = function(shuffled)
                assert again == expected or (again != again and expected != expected)
                if hasattr(expected, "scores"):
                    assert again.scores == expected.scores
                    assert (
                        copy.deepcopy(expected).scores == pickle.loads(pickle.dumps(again)).scores
                    )


def test_aggregations_never_raise(manager: Any, on_sample: None, capsys: Any) -> None:
    for name in our_names(manager, "task"):
        task = manager.load_task_or_group(name, "chat")[name]
        for function in task.aggregation().values():
            function([])
            function([{"id": "x"}])  # nothing that an aggregation needs
    assert "reported as N/A" in capsys.readouterr().err
