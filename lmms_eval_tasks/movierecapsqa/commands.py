"""The command `facts`: MovieRecapsQA's facts and questions for a user's own recap."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks.command_options import LIMITS, DryRun, with_settings
from lmms_eval_tasks.judges.config import environment
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.tables.terminal_tables import show

PAPER_MODEL = "gpt-4.1"  # paper, 3.2


@with_settings(*LIMITS)
def facts_command(
    recap: Annotated[Path, typer.Argument(help="JSON file of a recap.")],
    *,
    out: Annotated[
        Path, typer.Option(help="File to write segments to; segments of other recaps stay in it.")
    ] = Path("segments.json"),
    model: Annotated[
        str | None,
        typer.Option(
            help="Model that writes the texts, in the forms of a judge; default: the "
            "paper's gpt-4.1."
        ),
    ] = None,
    dialogue: Annotated[
        Path | None,
        typer.Option(
            help="Subtitles of the movie, to be cut to the segments with times in the movie."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Write MovieRecapsQA's facts, questions and labels for your own recap; can be resumed."""
    from lmms_eval_tasks.judges import run, writer
    from lmms_eval_tasks.movierecapsqa.facts import build, recap_file, steps
    from lmms_eval_tasks.utils.json_files import check_output

    check_output(out)
    segments = recap_file.read_recap(recap, dialogue)
    env, writes = environment(dry_run), "facts require one language model"
    config = writer.writer(model or PAPER_MODEL, env, "--model", writes, PAPER_MODEL)
    planned = build.FactsPlan(out, config, writer.load_step_prompt("facts", steps.STEPS), segments)
    with run.use(run.from_settings(progress=False)):
        if dry_run:
            todo = planned.todo
            units = [steps.unit(planned.prompt, one) for one in todo]
            made, notes = writer.estimated(units, config, steps.ASSUMED)
            show(table_console(), [made])
            print(f"{len(todo)} of {len(segments)} segments to write; the others are in {out}")
            print("\n".join(notes))
            return
        written = build.build_facts(planned)
        for line in writer.outcome_lines(written):
            print(line)
    if any(one.failures for one in written):
        raise typer.Exit(1)


def add(app: typer.Typer) -> None:
    """Add the command `facts` to `lmms-eval-tasks`."""
    app.command("facts")(facts_command)
