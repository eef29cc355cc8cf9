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
    help="Compare the papers' results with yours, and print the commands that reproduce them.",
    no_args_is_help=True,
)


def _add(benchmark: str) -> None:
    @leaderboard_app.command(benchmark, help="Print the paper's rows and those of your runs.")
    def _leaderboard(
        runs: Annotated[
            list[Path] | None, typer.Argument(help="Folders or sample files of your saved runs.")
        ] = None,
        *,
        form: Annotated[
            Form,
            typer.Option(
                "--format",
                help="Format of the output; eee: Every Eval Ever records; hf: results for the "
                "Hugging Face hub.",
            ),
        ] = "text",
        output: Annotated[
            Path | None,
            typer.Option("--output", "-o", help="File to write, or folder for eee and hf."),
        ] = None,
        same: Annotated[
            list[str] | None,
            typer.Option(
                "--as",
                help="The paper's name of a run's model; once for each run, in the same order.",
            ),
        ] = None,
        plan: Annotated[
            bool, typer.Option("--plan", help="Print the commands that reproduce the paper's rows.")
        ] = False,
        slurm: Annotated[
            bool, typer.Option("--slurm", help="With --plan: print a Slurm job array.")
        ] = False,
        engine: Annotated[
            Literal["vllm"] | None,
            typer.Option(
                "--engine",
                help="With --plan: run the models with this engine, through the class tasks_vllm.",
            ),
        ] = None,
        force: Annotated[
            bool,
            typer.Option(
                "--force",
                help="With --format hf: write also INVALID numbers and numbers of a part of the "
                "data.",
            ),
        ] = False,
    ) -> None:
        settings.check_settings()
        sample.ready()
        if force and form != "hf":
            raise TasksError("--force works only with --format hf: leave it out")
        if engine and not (plan or slurm):
            raise TasksError("--engine works only with --plan: add --plan, or leave --engine out")
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
