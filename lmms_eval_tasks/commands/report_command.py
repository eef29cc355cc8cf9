"""The command `report`: saved runs as one page, or as tables for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lmms_eval_tasks import settings
from lmms_eval_tasks.command_options import with_settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.tables.terminal_tables import show
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.json_files import check_folder, check_output, write_text

Form = Literal["html", "text", "md", "csv", "latex", "json", "inspect"]
_ENDS = {"latex": "tex", "text": "txt"}


@with_settings(settings.DATA)
def report_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders or sample files of saved runs; the others are compared with the first."
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, or with --format inspect a folder; default: report.FORMAT.",
        ),
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--format",
            help="Format of the output; text: on the terminal; inspect: logs for `inspect view`.",
        ),
    ] = "html",
    media: Annotated[
        Path | None,
        typer.Option(help="Folder for clips that the page plays, best next to the page."),
    ] = None,
) -> None:
    """Compare saved runs (`--log_samples`) with each other and with the paper, item by item."""
    from lmms_eval_tasks.report import compared_runs, run_page
    from lmms_eval_tasks.report.exchange import frames, inspect_logs

    if media is not None and form != "html":
        raise TasksError("--media works only with --format html: leave one of the two options out")
    page = output or Path(f"report.{_ENDS.get(form, form)}")
    if form == "inspect":
        inspect_logs.check_inspect()
        check_folder(page, "--output")
        logs = inspect_logs.write_logs(compared_runs.read_sides(runs), page)
        print(f"{page}: {len(logs)} logs; to look at them: inspect view --log-dir {page}")
        return
    if form == "text" and output is None:
        found = compared_runs.read_sides(runs)
        show(
            table_console(),
            [
                *frames.run_tables(list(frames.headline_rows(found))),
                *frames.condition_notes(found),
            ],
        )
        return
    if form not in ("text", "json"):
        extras.require("report", f"--format {form}")
    check_output(page)
    found = compared_runs.read_sides(runs)
    if form == "html":
        text = run_page.html(found, media, page)
    else:
        text = frames.FORMS[form](list(frames.headline_rows(found)), frames.condition_notes(found))
    write_text(page, text)
    print(f"{page}: {', '.join(side.label for side in found)}")
