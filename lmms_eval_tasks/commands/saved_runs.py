"""The commands for saved runs: `rescore` computes all metrics again, `judge` adds verdicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.command_options import LIMITS, with_settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.runs.score_again import Saved, read_batch, score_again, write_batch
from lmms_eval_tasks.utils import saved_runs as saved_files

Logs = Annotated[
    list[Path], typer.Argument(help="Sample files of saved runs, or folders with them.")
]
Output = Annotated[Path | None, typer.Option(help="JSON file for the numbers.")]


def rescore_command(logs: Logs, *, output: Output = None) -> None:
    """Compute every metric again from samples saved with `--log_samples`; sends no request."""
    settings.check_settings()
    _score(_read(logs), None, output)


@with_settings(settings.JUDGE, *LIMITS)
def judge_command(
    logs: Logs,
    *,
    batch: Annotated[
        Path | None,
        typer.Option(
            help="File to write the requests to, as an OpenAI batch (half the price); no judge is "
            "asked."
        ),
    ] = None,
    batch_results: Annotated[
        Path | None,
        typer.Option(help="File with the results of such a batch; the replies are read from it."),
    ] = None,
    output: Output = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Folder for a copy of the run with its verdicts; default: LOGS_judged."),
    ] = None,
) -> None:
    """Judge the answers of saved runs; verdicts that this judge gave before are kept."""
    if batch is not None and batch_results is not None:
        raise TasksError(
            "--batch writes a file and --batch-results reads one: use one of the two options"
        )
    saved = _read(logs)
    spec = settings.text(settings.JUDGE)
    spec = spec or prepare.judge_config(registry.load_benchmark(saved[0][0]), env=os.environ).model
    if save is None:
        place = logs[0].absolute()
        place = place if place.is_dir() else place.parent
        save = place.with_name(f"{place.name}_judged")
    if batch is not None:
        write_batch(saved, spec, batch)
    elif batch_results is not None:
        read_batch(saved, spec, batch_results, output, save)
    else:
        _score(saved, spec, output, save)


def _score(saved: Saved, spec: str | None, output: Path | None, save: Path | None = None) -> None:
    from lmms_eval_tasks.judges import run

    with run.use(run.from_settings()) as made:
        score_again(saved, spec, output, made, save=save)


def _read(logs: Sequence[Path]) -> Saved:
    """Return saved runs by benchmark; a DataError if there is no run of our tasks."""
    may_fail = settings.may_fail()
    read = [saved_files.read_saved_run(file) for file in saved_files.find_sample_files(logs)]
    runs = saved_files.join_parts(read, may_fail)
    found = [
        (name, own)
        for name in registry.NAMES
        if (own := [run for run in runs if registry.of_task_name(run.task) == name])
    ]
    if not found:
        raise DataError(
            f"no tasks of lmms-eval-tasks in {', '.join(str(run.file) for run in runs)}"
        )
    return found
