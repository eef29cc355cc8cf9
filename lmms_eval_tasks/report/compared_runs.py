"""Saved runs as the sides of a report."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.benchmark import ASKED, Benchmark, Item, Items, Task
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.notify import hide_secrets, visible
from lmms_eval_tasks.report import aggregation, readings
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils import saved_runs as saved
from lmms_eval_tasks.utils.conditions import Condition, Kind, Record, is_valid, merged, record
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.metrics import aggregate


@dataclass(frozen=True)
class Side:
    """The saved tasks of one model below one path; the label distinguishes it from other sides."""

    label: str
    runs: Mapping[str, saved.SavedRun]  # by task, in our order

    @property
    def model(self) -> str:
        """The last part of its checkpoint's name, or its class."""
        return _name(next(iter(self.runs.values())))

    @functools.cached_property
    def items(self) -> dict[str, Items]:
        """The items of each task, in the form in which its numbers count them.

        Raises:
            DataError: an item lacks a field that every item of its task has.
        """
        items_by_task: dict[str, Items] = {}
        for task, run in self.runs.items():
            items, of = saved.saved_items(run), registry.of(task).tasks[task]
            needed = [of.cluster_field, *({"right"} & of.failed_item.keys())]
            for item, name in product(items, needed):
                if name not in item:
                    raise DataError(f"{run.file}: {item['id']} has no `{name}`")
            with_hash = [{**item, ASKED: item.get(ASKED) or of.hash_of(item)} for item in items]
            items_by_task[task] = aggregate.as_counted(with_hash)
        return items_by_task

    @functools.cached_property
    def task_items(self) -> list[tuple[Task, Item]]:
        """Every item, with its task."""
        return [
            (registry.of(name).tasks[name], item)
            for name, own in self.items.items()
            for item in own
        ]

    @functools.cached_property
    def prompts(self) -> dict[tuple[str, str], str]:
        """The text of the model's prompt, by task and id of the item."""
        return {
            (task, sample[saved.CARRIER]["id"]): str(sample.get("input", ""))
            for task, run in self.runs.items()
            for sample in run.samples
        }

    @property
    def results(self) -> list[Mapping[str, Json]]:
        """The results files, one for each run of lmms-eval."""
        files = {run.results_file: run.results for run in self.runs.values() if run.results}
        return list(files.values())

    def sections(self, benchmark: str) -> list[Mapping[str, Json]]:
        """Return our sections on a benchmark, one for each run of lmms-eval."""
        found = {run.results_file: run.section(benchmark) for run in self.runs.values()}
        return [one for one in found.values() if one]

    def record(self, tasks: Iterable[str]) -> Record:
        """Return the conditions of a number of these tasks, as far as the side has them."""
        for name in (own := [name for name in tasks if name in self.runs]):
            if name not in self._records:
                self._records[name] = self._conditions_of(name)
        return record(
            [*merged({name: self._records[name] for name in own}), *self._not_joined(own)]
        )

    def _not_joined(self, names: Sequence[str]) -> Iterator[Condition]:
        """Yield the conditions of joint numbers whose tasks differ in data or setting."""
        for benchmark, _ in registry.benchmarks_of(names):
            for joint in benchmark.joint_metrics:
                own = {name: self.items[name] for name in joint.tasks if name in names}
                if differ := aggregation.data_of(own):
                    data = ", ".join(f"{name} {one}" for name, one in differ.items())
                    told = (
                        f"{joint.group}: not computed, because its tasks have "
                        f"different data ({data})"
                    )
                    yield Condition(Kind.OTHER_ITEMS, told, tuple(own))

    @functools.cached_property
    def _records(self) -> dict[str, Record]:
        """A cache of conditions by task, since readings take long."""
        return {}

    def _conditions_of(self, name: str) -> Record:
        """Return the conditions of one task; those that follow from its items are computed anew."""
        benchmark, items = registry.of(name), self.items[name]
        task = benchmark.tasks[name]
        saved_ones = self.runs[name].conditions(benchmark.name, settings.may_fail())
        found = [one for one in saved_ones if one.kind not in (Kind.READING, Kind.FEW)]
        waiting = sum(i["status"] == "unjudged" or "judge_" in i["status"] for i in items)
        if waiting:
            told = f"{name}: {waiting:,} of {len(items):,} replies have no verdict from a judge"
            found.append(Condition(Kind.UNJUDGED, told, (name,)))
        for note in readings.reply_notes(task, items):
            found.append(Condition(Kind.READING, f"{name}: {note.text}", (name,)))
        return record([*found, *aggregation.few_videos(task, items)])

    def is_valid(self, tasks: Iterable[str]) -> bool:
        """Return False if a number of these tasks is INVALID."""
        own = (self.runs[name] for name in tasks if name in self.runs)
        return all(
            is_valid(run.conditions(registry.of(run.task).name, settings.may_fail())) for run in own
        )


def read_sides(paths: Sequence[Path]) -> list[Side]:
    """Return the sides of saved runs: one for each path and model.

    Raises:
        DataError: there is no run of our tasks, or two runs of a task and model are below one path.
    """
    entries: list[tuple[Path, str, dict[str, saved.SavedRun]]] = []
    for path in paths:
        runs = saved.join_parts(
            [saved.read_saved_run(file) for file in saved.find_sample_files([path])],
            settings.may_fail(),
        )
        our_runs = [run for run in runs if registry.of_task_name(run.task)]
        if not our_runs:
            raise DataError(
                f"{path}: no tasks of lmms-eval-tasks, only {', '.join(r.task for r in runs)}"
            )
        saved.refuse_twice(our_runs)
        for run in our_runs:
            extras.require(registry.of(run.task).tasks[run.task].extra, run.task)
        for model in dict.fromkeys(run.model for run in our_runs):
            tasks = {run.task: run for run in our_runs if run.model == model}
            entries.append((path, _name(next(iter(tasks.values()))), tasks))
    names = [name for _, name, _ in entries]
    labels = [f"{name} ({path})" if names.count(name) > 1 else name for path, name, _ in entries]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise DataError(f"{twice} is named twice; a report requires different runs")
    return [
        Side(label, {task: runs[task] for task in _ordered(runs)})
        for label, (_, _, runs) in zip(labels, entries, strict=True)
    ]


def _ordered(names: Iterable[str]) -> list[str]:
    """Return tasks in their benchmarks' order."""
    given = list(names)
    return [task for one, own in registry.benchmarks_of(given) for task in one.tasks if task in own]


def tasks_of(sides: Sequence[Side]) -> list[tuple[Benchmark, list[Task]]]:
    """Return the benchmarks of some sides, each with the tasks that any side has."""
    names = _ordered({task for side in sides for task in side.runs})
    return [(one, [one.tasks[name] for name in own]) for one, own in registry.benchmarks_of(names)]


def _name(run: saved.SavedRun) -> str:
    """Return a model's short name: the last part of its checkpoint's name, or its class."""
    name = run.results.get("model_name") or (run.model or run.file.parent.name).partition(" ")[0]
    short = str(name).rstrip("/").rpartition("/")[2]
    return visible(short or str(name))


def command(results: Mapping[str, Json]) -> str:
    """Return the command that repeats a run of lmms-eval, as far as its results tell.

    API keys are replaced.
    """
    config = results.get("config", {})
    given = config.get("resolved_cli_args") or {}
    options = {name: config.get(name) for name in ("model", "model_args", "gen_kwargs", "limit")}
    options |= {name: given.get(name) for name in ("tasks", "batch_size", "offset")}
    told = [f"--{k} {shlex.quote(str(v))}" for k, v in options.items() if v not in (None, "", 0)]
    return hide_secrets(" ".join(["lmms_eval", *told, "--log_samples", "--output_path out"]))
