"""The command `models`: what the host's model classes do with our media."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from lmms_eval_tasks.console import table_console
from lmms_eval_tasks.report.fold import show


def models(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Models, as in --model.")
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print docs/models.md instead.")] = False,
) -> None:
    """Say how each model class takes videos, pictures and sound, and what to pass for 32 frames."""
    from lmms_eval_tasks.running import class_pages

    if markdown:
        print(class_pages.markdown(), end="")
        return
    for place, name in enumerate(names or ()):
        print("\n" * bool(place) + "\n".join(class_pages.facts(name)))
    if names:
        return
    table = Table(title="Model classes", title_justify="left")
    for column in class_pages.COLUMNS:
        table.add_column(column)
    for row in class_pages.rows():
        table.add_row(*row)
    show(table_console(), [table])
    print(f"take none of our media: {', '.join(class_pages.others())}")
