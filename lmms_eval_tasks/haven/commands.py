"""The commands `haven build` and `haven picture`, for HAVEN records of a user's own videos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks.command_options import LIMITS, with_settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.judges.config import environment
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.tables.terminal_tables import show

haven_app = typer.Typer(
    help="Make HAVEN's records from your videos, and show them.", no_args_is_help=True
)


@haven_app.command("build")
@with_settings(*LIMITS)
def build_command(
    videos: Annotated[list[Path], typer.Argument(help="Video files.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder to write, or to add records to.")],
    scores: Annotated[
        Path,
        typer.Option(
            help="Importance scores, one per frame: a .npy or .json file, or a folder of them."
        ),
    ],
    fps: Annotated[float, typer.Option(min=1, max=2, help="Sampled frames per second.")] = 2.0,
    shots: Annotated[
        int | None, typer.Option(min=1, help="Number of shots; default: a tenth of the frames.")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Model that writes the texts; default: no texts."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Send no request and write nothing; print what it would cost."
        ),
    ] = False,
) -> None:
    """Make HAVEN's records from your videos: frames, shots, keyframes, texts; can be resumed."""
    from lmms_eval_tasks.haven.options import OWN, HavenOptions
    from lmms_eval_tasks.haven.records import build, release
    from lmms_eval_tasks.judges import run, writer

    if out.exists() and not out.is_dir():
        raise TasksError(f"--out {out}: not a folder")
    if dry_run and judge is None:
        raise TasksError(
            "--dry-run prints the cost of the texts: name the model that writes them with --judge"
        )
    config = None
    if judge is not None:  # no default, since the paper names no judge
        env = environment(dry_run)
        config = writer.writer(
            judge, env, "--judge", "the texts require one model that takes pictures"
        )
    with run.use(run.from_settings(progress=False)):
        jobs = build.plan(videos, out, scores, fps, shots)
        if dry_run and config is not None:
            table, notes = build.estimate(jobs, config)
            show(table_console(), [table])
            print(*notes, sep="\n")
            return
        lines, written = build.build_records(jobs, out, config)
        print(*lines, *writer.outcome_lines(written), sep="\n")
    made = release.read_haven(out, HavenOptions(sources=(OWN,)))
    print(f"{out}: videos of the source `own` in HAVEN's form: {len(made.records)}")
    for name, why in made.problems.items():
        print(f"{name}: {why}")
    if any(one.failures for one in written):
        raise typer.Exit(1)


@haven_app.command("picture")
def picture_command(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder with HAVEN's files: processed/ and the sources' h5 files."),
    ],
    video: Annotated[str, typer.Argument(help="Id of the video, such as own/video_1.")],
    *,
    out: Annotated[Path, typer.Option(help="HTML file to write.")],
) -> None:
    """Draw one record as HTML: frames, shots, keyframes, sentences and their alignment."""
    from lmms_eval_tasks.haven.options import parse
    from lmms_eval_tasks.haven.records import picture, release
    from lmms_eval_tasks.utils.json_files import check_output, write_text

    check_output(out)
    records = release.read_haven(
        folder, parse(f"sources={video.partition('/')[0]},subset=0")
    ).records
    found = next((record for record in records if record.id == video), None)
    if found is None:
        some = ", ".join(record.id for record in records[:5])
        raise DataError(f"{folder}: no usable video {video}; it has {some}")
    write_text(out, picture.html(found, picture.data_uris(found)))
    print(f"{out}: {found.id}, {len(found.picks)} frames, {len(found.shots)} shots")


def add(app: typer.Typer) -> None:
    """Add the command group `haven` to `lmms-eval-tasks`."""
    app.add_typer(haven_app, name="haven")
