"""The commands `leaderboard NAME`, one for each benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lmms_eval_tasks import registry, sample, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.notify import table_console

Form = Literal["text", "html", "md", "csv", "json", "eee", "hf"]

leaderboard_app = typer.Typer(
    help="The papers' results beside yours, and how to make both again.", no_args_is_help=True
)


def _add(benchmark: str) -> None:
    @leaderboard_app.command(benchmark, help="The paper's rows, and those of your runs.")
    def _leaderboard(
        runs: Annotated[
            list[Path] | None, typer.Argument(help="Folders or sample files of your runs.")
        ] = None,
        *,
        form: Annotated[
            Form,
            typer.Option("--format", help="eee: Every Eval Ever records; hf: the Hub's results."),
        ] = "text",
        output: Annotated[
            Path | None, typer.Option("--output", "-o", help="The file, or the folder of records.")
        ] = None,
        same: Annotated[
            list[str] | None,
            typer.Option(
                "--as", help="The paper's model that is a run's; once for each run, in their order."
            ),
        ] = None,
        plan: Annotated[
            bool, typer.Option("--plan", help="The commands that make the paper's rows again.")
        ] = False,
        slurm: Annotated[
            bool, typer.Option("--slurm", help="With --plan: as a Slurm job array.")
        ] = False,
        engine: Annotated[
            Literal["vllm"] | None,
            typer.Option(
                "--engine", help="With --plan: by this engine, through our class tasks_vllm."
            ),
        ] = None,
        force: Annotated[
            bool,
            typer.Option("--force", help="hf: also INVALID numbers, and those of a part."),
        ] = False,
    ) -> None:
        settings.check_settings()
        sample.ready()
        if force and form != "hf":
            raise TasksError("--force is for --format hf: leave it out")
        if engine and not (plan or slurm):
            raise TasksError("--engine is for --plan: add it, or leave --engine out")
        if plan or slurm:
            from lmms_eval_tasks.runs import reproduce

            print("\n".join(reproduce.script_lines(benchmark, slurm=slurm, engine=engine)))
        elif form in ("eee", "hf"):
            from lmms_eval_tasks.report.exchange import export

            export.export_runs(benchmark, runs or [], form, output or Path(form), force=force)
        else:
            from lmms_eval_tasks.report import board

            board.show(benchmark, runs or [], form, output, table_console(), names=same or [])


for _name in registry.NAMES:
    _add(_name)
