"""The command `prompts`: the authors' own wording in the place of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks import benchmarks

prompts_app = typer.Typer(help="The texts that models and judges are given.", no_args_is_help=True)


@prompts_app.callback()
def _group() -> None:
    """Keeps `import` a command of its own."""


@prompts_app.command("import")
def import_command(
    benchmark: Annotated[str, typer.Argument(help="Whose prompts.")],
    clone: Annotated[Path, typer.Option("--from", help="Your clone of the authors' repository.")],
    to: Annotated[Path, typer.Option(help="The folder to write, for --prompts.")] = Path("prompts"),
) -> None:
    """Write the authors' exact wording, out of your clone of their repository, for --prompts."""
    from lmms_eval_tasks.utils import authors_prompts

    for line in authors_prompts.write(benchmarks.named(benchmark).name, clone, to):
        print(line)
