"""The command `reliability`: how far CVRR-ES's judges can be relied on, alone and together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands.options import with_settings
from lmms_eval_tasks.cvrr_es.study import page, tables
from lmms_eval_tasks.cvrr_es.study import ratings as rating_files
from lmms_eval_tasks.cvrr_es.study.report import report
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.runs.invalid import stop
from lmms_eval_tasks.tables.fold import show
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.conditions import OF_JUDGE, Kind
from lmms_eval_tasks.utils.json_files import check_output, write_json, write_text
from lmms_eval_tasks.utils.released_files import listed

BENCHMARK = "cvrr_es"


@with_settings(settings.ALLOW_BAD_ITEMS)
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
    output: Annotated[Path | None, typer.Option(help="Write everything as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML page.")] = None,
) -> None:
    """How far judges agree with a reference: kappas, intervals, panels, as tables and a page."""
    if html is not None:
        extras.require("report", "--html")
    for file in filter(None, (output, html)):
        check_output(file)
    loaded = rating_files.load(ratings)
    compared = rating_files.load(reference) if reference else None
    found = report(loaded.rows, compared.rows if compared else [])
    told = [line for one in (loaded, compared) if one for line in _told(one)]
    found["notes"] = [*dict.fromkeys(told), *found["notes"]]
    show(table_console(), tables.printed(found))
    for note in found["notes"]:
        print(note)
    if output is not None:
        write_json(output, found)
        print(f"{output}: everything as JSON")
    if html is not None:
        write_text(html, page.html(found))
        print(f"{html}: the report as a page")
    stop(
        {
            f"{run.model}, {run.task}": one.text
            for run in loaded.runs
            for one in run.conditions(BENCHMARK, settings.may_fail())
            if one.kind == Kind.INVALID
        }
    )


def _told(found: rating_files.Loaded) -> Sequence[str]:
    """Lines on rows that are left out, and what runs told."""
    left_out = listed(found.problems).split("\n") if found.problems else []
    notes = [f"left out: {line.strip()}" for line in left_out]
    for run in found.runs:
        # The judge's are of answers, not of its ratings.
        own = [
            one.line
            for one in run.conditions(BENCHMARK, settings.may_fail())
            if one.kind not in OF_JUDGE
        ]
        notes += [f"{run.model}: {line}" for line in own]
    return notes
