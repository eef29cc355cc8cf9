"""The command `facts`: MovieRecapsQA's layer of facts and questions for a user's own recap."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_eval_tasks.commands.saved_runs import Concurrency, MaxCalls, MaxCost, set_limits
from lmms_eval_tasks.console import table_console
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.report.fold import show

if TYPE_CHECKING:
    from lmms_eval_tasks.movierecapsqa.facts.recap_file import Recap


def facts_command(
    recap: Annotated[
        Path,
        typer.Argument(help="A recap as JSON or YAML, or its transcript as .srt or .vtt."),
    ],
    *,
    out: Annotated[Path, typer.Option(help="The file of segments to write.")] = Path(
        "segments.json"
    ),
    append: Annotated[
        bool, typer.Option("--append", help="Add to the segments of other recaps in that file.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(help="Who writes, in the forms of a judge; the paper's gpt-4.1 if unset."),
    ] = None,
    video_id: Annotated[
        str | None, typer.Option(help="Of a transcript: the recap video's id.")
    ] = None,
    movie: Annotated[str | None, typer.Option(help="Of a transcript: the movie's title.")] = None,
    dialogue: Annotated[
        Path | None,
        typer.Option(help="The movie's subtitles, cut to segments with a window in movie time."),
    ] = None,
    draft: Annotated[
        Path | None,
        typer.Option(help="Ask nobody: write the recap as JSON, to fill in windows and dialogue."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask nobody: say what it would cost.")
    ] = False,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = None,
) -> None:
    """Write MovieRecapsQA's facts, questions and labels for your own recap; can be resumed."""
    from lmms_eval_tasks.judges import run, writer
    from lmms_eval_tasks.judges.config import KEY
    from lmms_eval_tasks.movierecapsqa.facts import build, recap_file, steps
    from lmms_eval_tasks.utils.json_files import check_output, write_json

    if draft is not None and dry_run:
        raise TasksError("either --draft writes a file or --dry-run an estimate, not both")
    check_output(draft or out)
    set_limits(max_calls, max_cost, concurrency)
    given = _recap(recap, video_id, movie)
    segments = recap_file.narrated(given, recap, None if draft else dialogue)
    if draft is not None:
        if draft.exists():
            raise TasksError(f"{draft}: is there already; name another file")
        write_json(draft, given.model_dump(mode="json", by_alias=True))
        print(f"{draft}: {len(segments)} segments")
        return
    # An estimate needs no key.
    config = build.model(model, {KEY: "none", **os.environ} if dry_run else os.environ)
    with run.use(run.from_settings(progress=False)):
        planned = build.plan(segments, config, out, append=append)
        if dry_run:
            todo = planned.todo
            units = [steps.unit(planned.prompt, one) for one in todo]
            made, notes = writer.estimated(units, config, steps.ASSUMED)
            show(table_console(), [made])
            print(f"{len(todo)} of {len(segments)} segments to ask about, the others are in {out}")
            print("\n".join(notes))
            return
        entries, written = build.build(planned)
        failed = [one for one in written if one.failures]
        for line in build.lines(planned, entries, len(written) - len(failed)):
            print(line)
        for line in writer.lines(written):
            print(line)
    if failed:
        raise typer.Exit(1)


def _recap(file: Path, video_id: str | None, movie: str | None) -> Recap:
    """The recap of a file, or of a transcript with what it does not say itself.

    Raises:
        TasksError: options that do not fit the file, or as recap_file.
    """
    from lmms_eval_tasks.movierecapsqa.facts import recap_file

    if file.suffix.lower() in recap_file.ENDINGS:
        if not (video_id or "").strip():
            raise TasksError(f"{file}: a transcript needs --video-id, the recap video's id")
        return recap_file.read_transcript(file, video_id or "", movie or "")
    if video_id or movie:
        raise TasksError(
            f"--video-id and --movie are for transcripts (.srt, .vtt): {file} says both itself"
        )
    return recap_file.read(file)
