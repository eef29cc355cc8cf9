"""Functions for Python and notebooks: a task's docs, one reply's item, saved runs as data frames.

    >>> import lmms_eval_tasks
    >>> lmms_eval_tasks.read_run("out").numbers
    >>> lmms_eval_tasks.score_reply("maia_vsv", lmms_eval_tasks.load_docs("maia_vsv")[0], "A")

docs/python.md shows each of them. Each call reads the settings from the environment, as a run does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks import context, judges, registry, sample
from lmms_eval_tasks.benchmark import Benchmark, Doc
from lmms_eval_tasks.errors import TasksError, nearest
from lmms_eval_tasks.judges.asking import VerdictSource
from lmms_eval_tasks.report import compared_runs
from lmms_eval_tasks.report.compared_runs import Side
from lmms_eval_tasks.report.exchange import frames
from lmms_eval_tasks.runs import prepare, scoring
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.validation import quoted

if TYPE_CHECKING:
    import pandas


class RunFrames(NamedTuple):
    """Saved runs as pandas data frames, which join by `run`, `task` and `id`.

    runs: a row for each run: `run` (its name), `model`, `command`, and `folder`.
    items: a row for each item, with the fields of its task; fields of other tasks are NaN.
    verdicts: a row for each verdict of a judge: `verdict` is its name, `score` is NaN without one.
    numbers: a row for each headline number, with its 95 % interval, `valid` and `conditions`.
    """

    runs: pandas.DataFrame
    items: pandas.DataFrame
    verdicts: pandas.DataFrame
    numbers: pandas.DataFrame


def read_run(*paths: str | Path) -> RunFrames:
    """Read saved runs: output folders of lmms-eval, or files of samples in them.

    Several models, or one model in several folders, are several runs with different names.

    Raises:
        TasksError: no path is given, there is no saved run of our tasks, a file is damaged, or
            pandas is not installed (`pip install 'lmms-eval-tasks[report]'`).
    """
    if not paths or not all(isinstance(path, str | Path) for path in paths):
        given = ", ".join(map(repr, paths))
        raise TasksError(f"read_run({given}): name one or several folders: read_run('out', 'out2')")
    extras.require("report", "read_run")
    import pandas

    with context.begun():
        found = compared_runs.read_sides([Path(one) for one in paths])
        numbers = frames.frame([*frames.headline_rows(found)])
        runs = [
            {
                "run": side.label,
                "model": side.model,
                "command": next(filter(None, map(compared_runs.command, side.results)), ""),
                "folder": str(next(iter(side.runs.values())).file.parent),
            }
            for side in found
        ]
        items, verdicts = [*_items(found)], [*_verdicts(found)]
    columns = ["run", "task", "id", "verdict", "score", "status"]
    return RunFrames(
        pandas.DataFrame(runs),
        pandas.DataFrame(items),
        pandas.DataFrame(verdicts, columns=columns if not verdicts else None),
        numbers,
    )


def _items(sides: list[Side]) -> Iterator[Mapping[str, object]]:
    for side in sides:
        for task, item in side.task_items:
            own = {name: value for name, value in item.items() if name != "verdicts"}
            yield {"run": side.label, "task": task.name, **own}


def _verdicts(sides: list[Side]) -> Iterator[Mapping[str, object]]:
    for side in sides:
        for task, item in side.task_items:
            for name, verdict in (item.get("verdicts") or {}).items():
                yield {
                    **{"run": side.label, "task": task.name, "id": item["id"], "verdict": name},
                    **verdict,
                }


def load_docs(task: str) -> list[Doc]:
    """Return the docs of a task from the user's data (`LMMS_EVAL_TASKS_DATA`), in their order.

    Raises:
        TasksError: there is no such task, or its data are missing or invalid; the message says what
            to do.
    """
    benchmark = _benchmark(task)
    with context.begun():
        sample.ready()
        return prepare.usable_docs(benchmark, task)


def score_reply(task: str, doc: Doc, reply: str, *, judge: str = "none") -> JsonObject:
    """Return the item of one reply, in the form in which a run saves it.

    Args:
        task: name of the task.
        doc: an element of `load_docs(task)`.
        reply: the model's text.
        judge: a judge in the form of `--judge`. With `none`, no judge is asked, and an item that
            needs a verdict has the status `unjudged`.

    Raises:
        TasksError: there is no such task, the doc is not one of it, the reply is not a text, or the
            judge cannot be used.
    """
    benchmark = _benchmark(task)
    own = benchmark.tasks[task]
    if not isinstance(reply, str):
        raise TasksError(f"the reply has to be a text, not {quoted(reply)}")
    unfit = f"the doc is not one of {task}: take one of load_docs({task!r})"
    with context.begun():
        asker = VerdictSource(judges.make_judge(prepare.judge_config(benchmark, judge)))
        try:
            entry = own.log_entry(doc)
            next(iter(own.score(entry, reply)), None)  # up to its first request to a judge
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise TasksError(f"{unfit} ({type(error).__name__}: {error})") from None
        return scoring.scored(own, entry, reply, asker)


def _benchmark(task: str) -> Benchmark:
    if not isinstance(task, str):
        raise TasksError(f"the task has to be a name, not {quoted(task)}")
    known = {name: one for one in registry.usable_benchmarks() for name in one.tasks}
    if task not in known:
        raise TasksError(
            f"no task {task!r}{nearest(task, known)} (all tasks: lmms-eval-tasks list)"
        )
    return known[task]
