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

Logs = Annotated[list[Path], typer.Argument(help="Sample files, or folders with them.")]
Output = Annotated[Path | None, typer.Option(help="Write the numbers as JSON.")]


def rescore_command(logs: Logs, *, output: Output = None) -> None:
    """Compute every metric again from samples saved with `--log_samples`; asks nobody."""
    settings.check_settings()
    _score(_read(logs), None, output)


@with_settings(settings.JUDGE, *LIMITS)
def judge_command(
    logs: Logs,
    *,
    batch: Annotated[
        Path | None,
        typer.Option(help="Ask nobody: write the requests as an OpenAI batch (half the price)."),
    ] = None,
    batch_results: Annotated[
        Path | None, typer.Option(help="Take the replies from a batch's results.")
    ] = None,
    output: Output = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Folder for the run with its verdicts; LOGS_judged if unset."),
    ] = None,
) -> None:
    """Give saved answers this judge's verdicts; those that it gave before are kept."""
    if batch is not None and batch_results is not None:
        raise TasksError("either --batch writes a file or --batch-results reads one, not both")
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
        raise DataError(f"no tasks of this suite in {', '.join(str(run.file) for run in runs)}")
    return found
