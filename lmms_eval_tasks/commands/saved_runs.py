"""The commands for saved runs: `rescore` computes all metrics again, `judge` adds verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.command_options import LIMITS, with_settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.judges.verdict import NONE
from lmms_eval_tasks.runs.rescore import has_unjudged, saved_judge
from lmms_eval_tasks.runs.score_again import Saved, read_batch, score_again, write_batch
from lmms_eval_tasks.utils import saved_runs as saved_files

Logs = Annotated[
    list[Path], typer.Argument(help="Sample files of saved runs, or folders with them.")
]
Output = Annotated[Path | None, typer.Option(help="JSON file for the numbers.")]


def rescore_command(logs: Logs, *, output: Output = None) -> None:
    """Compute every metric again from samples saved with `--log_samples`; sends no request."""
    settings.check_settings()
    _score(_read(logs), {}, output)


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
    """Judge the answers of saved runs; verdicts that this judge gave before are kept.

    Without --judge, the judge is that of the saved run, or the paper's if the run has none. A key
    is required only if a judge has to be asked.
    """
    if batch is not None and batch_results is not None:
        raise TasksError(
            "--batch writes a file and --batch-results reads one: use one of the two options"
        )
    saved = _read(logs)
    specs = _judges(saved, settings.text(settings.JUDGE))
    if not specs:
        print(f"nothing to judge: {_why_not(saved)}")
        if batch is not None or (save is None and output is None):
            return
    if save is None:
        place = logs[0].absolute()
        place = place if place.is_dir() else place.parent
        save = place.with_name(f"{place.name}_judged")
    if specs and batch is not None:
        write_batch(saved, specs, batch)
    elif specs and batch_results is not None:
        read_batch(saved, specs, batch_results, output, save)
    else:
        _score(saved, specs, output, save)


def _judges(saved: Saved, spec: str) -> dict[str, str]:
    """Return the judge of each benchmark that has something to judge; `spec` is `--judge`."""
    judges: dict[str, str] = {}
    for name, own in saved:
        benchmark = registry.load_benchmark(name)
        judge = spec or saved_judge(benchmark, own)
        if spec == NONE or has_unjudged(benchmark, own, judge):
            if judge is None:
                raise TasksError(
                    f"{name}: answers are not judged, and the saved run's judge has settings that "
                    "only its file tells: name the file with --judge FILE.yml, or another judge"
                )
            judges[name] = judge
    return judges


def _why_not(saved: Saved) -> str:
    tasks = sorted(
        {
            run.task
            for name, own in saved
            for run in own
            if registry.load_benchmark(name).tasks[run.task].judgements
        }
    )
    if not tasks:
        return "no task of these runs asks a judge"
    numbers = "lmms-eval-tasks rescore prints the numbers"
    return f"every answer of {', '.join(tasks)} has its verdict ({numbers})"


def _score(
    saved: Saved, specs: Mapping[str, str], output: Path | None, save: Path | None = None
) -> None:
    from lmms_eval_tasks.judges import run

    with run.use(run.from_settings()) as made:
        score_again(saved, specs, output, made, save=save)


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
