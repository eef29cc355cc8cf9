"""The command `reliability`: how far CVRR-ES's judges can be relied on, alone and together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks import settings
from lmms_eval_tasks.console import table_console
from lmms_eval_tasks.cvrr_es.study import leniency, page, panel_sheets
from lmms_eval_tasks.cvrr_es.study import ratings as rating_files
from lmms_eval_tasks.cvrr_es.study import selection as mixture
from lmms_eval_tasks.cvrr_es.study.kappas import RESAMPLES
from lmms_eval_tasks.cvrr_es.study.report import Options, report
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.report.fold import show
from lmms_eval_tasks.runs.invalid import stop
from lmms_eval_tasks.utils.json_files import check_output, write_json
from lmms_eval_tasks.utils.media.video_checks import listed


def reliability_command(
    ratings: Annotated[
        list[Path],
        typer.Argument(help="Files of ratings and saved samples, of all judges and rounds."),
    ],
    *,
    reference: Annotated[
        list[Path] | None,
        typer.Option(help="Reference ratings (`debate` makes them); repeatable; of one rater."),
    ] = None,
    accuracies: Annotated[
        Path | None,
        typer.Option(help="Judges' own accuracy on the benchmark: JSON, judge to number."),
    ] = None,
    final_judge: Annotated[
        str | None,
        typer.Option(help="Of collective and mixture; unset: every judge that has such ratings."),
    ] = None,
    selection: Annotated[
        str | None,
        typer.Option(help="The mixture's rule, such as theta=0.1 or top=2,own=no."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write everything as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML page.")] = None,
    resamples: Annotated[
        int, typer.Option(help="Of each interval, 1000 or more; 0: no bootstrap.")
    ] = RESAMPLES,
    seed: Annotated[int, typer.Option(help="Of the resamples and folds.")] = 0,
    allow_bad_items: Annotated[
        bool, typer.Option("--allow-bad-items", help="Leave out ratings that cannot be right.")
    ] = False,
) -> None:
    """How far judges agree with a reference: kappas, intervals, panels, as tables and a page."""
    for file in filter(None, (output, html)):
        check_output(file)
    if resamples and resamples < RESAMPLES:
        raise TasksError(
            f"--resamples {resamples}: an interval needs {RESAMPLES} or more; 0 leaves them out"
        )
    if allow_bad_items:
        settings.say({settings.ALLOW_BAD_ITEMS: 1})
    options = Options(
        accuracies=leniency.read_accuracies(accuracies) if accuracies else {},
        final_judge=final_judge,
        selection=mixture.parse(selection or ""),
        resamples=resamples,
        seed=seed,
    )
    loaded, notes = _read(ratings)
    compared, more = _read(reference) if reference else (None, [])
    found = report(loaded.rows, compared.rows if compared else [], options)
    found["notes"] = [*notes, *more, *found["notes"]]
    console = table_console()
    for table in panel_sheets.tables(found):
        show(console, [table])
    for note in found["notes"]:
        print(note)
    if output is not None:
        write_json(output, found)
        print(f"{output}: everything as JSON")
    if html is not None:
        html.write_text(page.html(found), encoding="utf-8")
        print(f"{html}: the report as a page")
    stop({f"{run.model}, {run.task}": run.invalid for run in loaded.runs if run.invalid})


def _read(paths: Sequence[Path]) -> tuple[rating_files.Loaded, list[str]]:
    """What is in files; lines on those without rows, rows that are left out, what runs told.

    Raises:
        DataError: as ratings.read.
    """
    found = rating_files.load(paths)
    notes = [f"{file}: has no rows" for file in found.blank]
    if found.problems:
        # Of ratings off the scale the rows stay, as failures: the report counts them.
        notes += [f"left out: {line.strip()}" for line in listed(found.problems).split("\n")]
    for run in found.runs:
        told = run.conditions("cvrr_es", judged_anew=True)  # of answers, not of its ratings
        told += [f"INVALID: {run.invalid}"] if run.invalid else []
        notes += [f"{run.model}: {line}" for line in told]
    return found, list(dict.fromkeys(notes))
