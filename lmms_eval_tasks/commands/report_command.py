"""The command `report`: saved runs as one page, or as tables for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.json_files import check_output

Form = Literal["html", "md", "csv", "latex", "json"]
_ENDS = {"latex": "tex"}


def report_command(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders or sample files of runs; the first is compared with others."),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; report.html if unset.")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="Of the file.")] = "html",
    media: Annotated[
        Path | None,
        typer.Option(help="Folder for clips that the page plays; best beside the page."),
    ] = None,
) -> None:
    """Show saved runs (`--log_samples`) beside each other, beside the paper, and item by item."""
    settings.check()
    from lmms_eval_tasks.report import exports, run_page, sides

    if media is not None and form != "html":
        raise TasksError("--media is for the page: leave it out, or --format")
    page = output or Path(f"report.{_ENDS.get(form, form)}")
    check_output(page)
    found = sides.read(runs)
    if form == "html":
        text = run_page.html(found, media, page)
    else:
        text = exports.FORMS[form](list(exports.rows(found)))
    page.write_text(text, encoding="utf-8")
    print(f"{page}: {', '.join(side.label for side in found)}")
