"""Each trap of the host is a rule for our YAMLs, which are loaded through the installed host."""

from __future__ import annotations

import functools
import inspect
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import lmms_eval_tasks
from lmms_eval_tasks import registry

pytestmark = pytest.mark.usefixtures("on_sample")

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


def our_names(manager: Any, kind: str) -> list[str]:
    return [
        name
        for name, entry in manager.task_index.items()
        if entry["type"] == kind and str(PACKAGE) in str(entry["yaml_path"])
    ]


@functools.cache
def loaded(manager: Any, kind: str) -> dict[str, Any]:
    """All our tasks as the host builds them for a simple or a chat model."""
    names = our_names(manager, "task")
    return {name: manager.load_task_or_group(name, kind)[name] for name in names}


def test_all_yamls_are_registered(manager: Any) -> None:
    """Under their own names: the first of two equal names wins silently, the host's before ours.

    And the host parses every .yaml it finds; an empty one breaks all of its commands.
    """
    names = our_names(manager, "task") + our_names(manager, "group")
    assert sorted(names) == sorted(file.stem for file in YAMLS)
    assert len(names) >= 19
    for file in YAMLS:
        assert registry.of_task_name(file.stem) == file.parent.name


def test_functions_are_absolute() -> None:
    """A relative one executes its file again for every reference: nothing could be shared."""
    for file in ALL_FILES:
        for function in re.findall(r"!function\s+(\S+)", file.read_text(encoding="utf-8")):
            assert function.startswith("lmms_eval_tasks."), f"{file}: {function}"


@pytest.mark.parametrize("kind", ["simple", "chat"])
def test_every_task_loads(kind: str, manager: Any) -> None:
    for name, task in loaded(manager, kind).items():
        config = task.config
        assert config.generation_kwargs["until"] == [], f"{name}: missing becomes a blank line"
        assert config.process_results.__module__ == "lmms_eval_tasks.host.task_functions"
        assert isinstance(config.metadata["version"], float)
        assert len(task.test_docs()) > 0
        if name.startswith("haven_"):  # 15 % of the frames of 20 minutes, at six tokens a number
            frames = name.removesuffix("_text").endswith(("v2v", "v2vt"))
            assert config.generation_kwargs["max_new_tokens"] == (2048 if frames else 1024), name
        metrics = [entry["metric"] for entry in config.metric_list]
        assert len(metrics) == len(set(metrics))


def test_a_groups_metric_is_contained_in_no_other(manager: Any) -> None:
    """The host matches group metrics by substring, and the last writer wins."""
    for group in our_names(manager, "group"):
        ((configured, tasks),) = manager.load_task_or_group(group, "chat").items()
        joined = configured.config.get("aggregate_metric_list") or []
        for task in tasks.values():
            for entry in task.config.metric_list:
                for metric in (one["metric"] for one in joined):
                    # Those that contain it belong to the joined family and are joined by design.
                    assert metric not in entry["metric"] or entry["metric"].startswith(metric)


# Nothing a model says may raise: the host retries five times and then loses the whole run.
NASTY = [
    *("A", "B", "", " \n", "<think>never closed", "\x00\ud83d", "C" * 20000),
    *("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "Mi dispiace, non posso aiutarti."),
    *("{'lm_pairs': 1}", '{"lm_pairs": {"choice": 3}}'),
]


@functools.cache
def scored(manager: Any) -> dict[str, dict[str, list[Any]]]:
    """By task and metric the items of its first docs, each answered with a nasty reply."""
    found: dict[str, dict[str, list[Any]]] = {}
    for name, task in loaded(manager, "chat").items():
        items = found[name] = {}
        docs = task.test_docs()
        for doc, reply in zip(docs.select(range(min(22, len(docs)))), 2 * NASTY, strict=False):
            for metric, item in task.process_results(doc, [reply]).items():
                items.setdefault(metric, []).append(item)
        assert set(items) <= set(task.aggregation()), "an unknown metric would be shown as []"
    return found


def test_items_are_plain_and_aggregations_do_not_depend_on_their_order(manager: Any) -> None:
    for name, items in scored(manager).items():
        for metric, of_metric in items.items():
            for item in of_metric:
                assert json.loads(json.dumps(item)) == item
                assert item.get("score", 0) is not None, f"{metric}: the host crashes on None"
            function = loaded(manager, "chat")[name].aggregation()[metric]
            assert "args" not in inspect.signature(function).parameters
            expected = function(list(of_metric))
            for seed in range(3):
                again = function(random.Random(seed).sample(of_metric, len(of_metric)))
                assert again == expected or (again != again and expected != expected)


def test_aggregations_never_raise(manager: Any, capsys: Any) -> None:
    for task in loaded(manager, "chat").values():
        for function in task.aggregation().values():
            function([])
            function([{"id": "x"}])  # nothing that an aggregation needs
    assert "reported as N/A" in capsys.readouterr().err
