"""The commands on saved runs: `rescore` computes every metric again, `judge` asks for verdicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.runs.score_again import Saved, score_again
from lmms_eval_tasks.utils import saved_runs as saved_files

Logs = Annotated[list[Path], typer.Argument(help="Sample files, or folders with them.")]
Output = Annotated[Path | None, typer.Option(help="Write the numbers as JSON.")]
MaxCalls = Annotated[int | None, typer.Option(help="Pay for at most so many replies.")]
MaxCost = Annotated[float | None, typer.Option(help="Pay at most so many dollars.")]
Concurrency = Annotated[
    int | None, typer.Option("--judge-concurrency", help="Requests in flight at most.")
]


def rescore_command(logs: Logs, *, output: Output = None) -> None:
    """Compute every metric again from samples saved with `--log_samples`; asks nobody."""
    settings.check()
    _score(_read(logs), None, output)


def judge_command(
    logs: Logs,
    *,
    judge: Annotated[
        str | None, typer.Option(help="The judge; LMMS_EVAL_TASKS_JUDGE or the paper's if unset.")
    ] = None,
    output: Output = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Folder for the run with its verdicts; LOGS_judged if unset."),
    ] = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = None,
) -> None:
    """Give saved answers this judge's verdicts; those that it gave before are kept."""
    set_limits(max_calls, max_cost, concurrency)
    saved = _read(logs)
    spec = judge or settings.text(settings.JUDGE)
    spec = spec or before.judge_config(benchmarks.load(saved[0][0]), env=os.environ).model
    if save is None:
        place = logs[0].absolute()
        place = place if place.is_dir() else place.parent
        save = place.with_name(f"{place.name}_judged")
    _score(saved, spec, output, save)


def set_limits(max_calls: int | None, max_cost: float | None, concurrency: int | None) -> None:
    """Options of a command are the settings that a run of the host reads."""
    settings.say(
        {
            settings.MAX_CALLS: max_calls,
            settings.MAX_COST: max_cost,
            settings.JUDGE_CONCURRENCY: concurrency,
        }
    )
    settings.check()


def _score(saved: Saved, spec: str | None, output: Path | None, save: Path | None = None) -> None:
    from lmms_eval_tasks.judges import run

    with run.use(run.from_settings()) as made:
        score_again(saved, spec, output, made, save=save)


def _read(logs: Sequence[Path]) -> Saved:
    """Saved runs by benchmark.

    Raises:
        DataError: nothing of ours is there.
    """
    runs = [saved_files.read(file) for file in saved_files.find(logs)]
    found = [
        (name, own)
        for name in benchmarks.NAMES
        if (own := [run for run in runs if benchmarks.of_task_name(run.task) == name])
    ]
    if not found:
        raise DataError(f"no tasks of this suite in {', '.join(str(run.file) for run in runs)}")
    return found
