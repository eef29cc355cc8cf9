"""The commands `haven build`, `rate`, `agreement` and `picture`: HAVEN's records of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_eval_tasks.commands.saved_runs import Concurrency, MaxCalls, MaxCost, set_limits
from lmms_eval_tasks.console import table_console
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.report.fold import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_tasks.haven.records.record import Record

haven_app = typer.Typer(
    help="HAVEN's records: made of your own videos, rated, shown.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(help="HAVEN's files: processed/ and the sources' h5.")]


@haven_app.command("build")
def build_command(
    videos: Annotated[list[Path], typer.Argument(help="Video files.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder of files to write or to add to.")],
    scores: Annotated[
        Path,
        typer.Option(help="Importance: one number per frame, .npy or .json; or a folder of them."),
    ],
    source: Annotated[str, typer.Option(help="Under which source: own, or one of the six.")] = (
        "own"
    ),
    fps: Annotated[float, typer.Option(min=1, max=2, help="Frames a second.")] = 2.0,
    shots: Annotated[
        int | None, typer.Option(min=1, help="Number of shots; unset: a tenth of the frames.")
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(help="Your features, .npy (frames, d); or a folder. Unset: colours."),
    ] = None,
    size: Annotated[int, typer.Option(min=16, help="Longest side of a picture in pixels.")] = 512,
    judge: Annotated[
        str | None,
        typer.Option(help="The model that writes the texts; unset: they stay missing."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Make videos and their texts again.")
    ] = False,
    keep_gaps: Annotated[
        bool, typer.Option("--keep-gaps", help="Write a record also where some texts failed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask and write nothing: say what it would cost.")
    ] = False,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = None,
) -> None:
    """Make HAVEN's record of your own videos: frames, shots, keyframes, texts; can be resumed."""
    from lmms_eval_tasks.haven.options import parse
    from lmms_eval_tasks.haven.records import build, release
    from lmms_eval_tasks.haven.records.structure import Choices
    from lmms_eval_tasks.judges import run, writer
    from lmms_eval_tasks.judges.config import KEY

    choices, every = (
        Choices(scores, fps, shots, size, features),
        parse(f"sources={source},subset=0"),
    )
    if out.exists() and not out.is_dir():
        raise TasksError(f"--out {out}: not a folder")
    if dry_run and judge is None:
        raise TasksError("--dry-run says what the texts cost: name who writes them with --judge")
    set_limits(max_calls, max_cost, concurrency)
    config = None
    if judge is not None:  # the paper names none, so no default; an estimate needs no key
        env = {KEY: "none", **os.environ} if dry_run else os.environ
        config = writer.writer(judge, env, "--judge", "one model that sees writes the texts")
    with run.use(run.from_settings(progress=False)):
        jobs = build.plan(videos, choices, out, source, replace_old=replace)
        if dry_run and config is not None:
            table, notes = build.estimate(jobs, config)
            show(table_console(), [table])
            print(*notes, sep="\n")
            return
        lines, written = build.build(jobs, out, source, config=config, keep_gaps=keep_gaps)
        for line in (*lines, *writer.lines(written, also=", or add --keep-gaps")):
            print(line)
    if build.json_file(out, source).exists():
        made = release.read(out, every)
        fit = len(made.records)
        print(f"{out}: of the source {source}, videos that fit HAVEN's form: {fit}")
        for name, why in made.problems.items():
            print(f"{name}: {why}")
    if any(one.failures for one in written):
        raise typer.Exit(1)


@haven_app.command("rate")
def rate_command(
    folder: Folder,
    *,
    out: Annotated[Path, typer.Option(help="The folder for the sheet: sheet.csv, sheet.html.")],
    source: Annotated[str | None, typer.Option(help="Of one source only.")] = None,
    videos: Annotated[int, typer.Option("--n", min=1, help="Number of videos to draw.")] = 15,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
) -> None:
    """Write a rating sheet (1 to 5, the paper's Appendix B) for two people to fill in."""
    from lmms_eval_tasks.haven.records import ratings
    from lmms_eval_tasks.utils.json_files import check_folder

    drawn, notes = ratings.draw(_records(folder, source), videos, seed)
    check_folder(out, "--out")
    rows = ratings.rows(drawn)
    (out / "sheet.csv").write_text(ratings.csv_text(rows), encoding="utf-8", newline="")
    page, unseen = ratings.html(drawn)
    (out / "sheet.html").write_text(page, encoding="utf-8")
    told = (f"{why}: rate it with a copy of your own beside the form" for why in unseen)
    for line in (*notes, *told):
        print(line)
    print(f"{out}: sheet.csv and sheet.html, {len(drawn)} videos, {len(rows)} ratings")


@haven_app.command("agreement")
def agreement_command(
    first: Annotated[Path, typer.Argument(help="The sheet of one rater, as CSV.")],
    second: Annotated[Path, typer.Argument(help="The sheet of the other rater.")],
    *,
    output: Annotated[Path | None, typer.Option(help="Write the numbers as JSON.")] = None,
) -> None:
    """Mean ratings and the agreement of two raters, as in the paper's Table 2."""
    from lmms_eval_tasks.haven.records import ratings
    from lmms_eval_tasks.utils.json_files import check_output, write_json

    if output is not None:
        check_output(output)
    rows = ratings.compare(first, second)
    show(table_console(), ratings.tables(rows))
    for line in ratings.notes(rows):
        print(line)
    if output is not None:
        write_json(output, [vars(row) for row in rows])


@haven_app.command("picture")
def picture_command(
    folder: Folder,
    video: Annotated[str, typer.Argument(help="Its id, such as own/video_1.")],
    *,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
) -> None:
    """Draw one record as HTML: frames, shots, keyframes, sentences and their alignment."""
    from lmms_eval_tasks.haven.records import picture
    from lmms_eval_tasks.utils.json_files import check_output

    check_output(out)
    records = _records(folder, video.partition("/")[0])
    found = next((record for record in records if record.id == video), None)
    if found is None:
        some = ", ".join(record.id for record in records[:5])
        raise DataError(f"{folder}: has no video {video} that can be used; it has {some}")
    there = found.path is not None and found.path.is_file()
    images = picture.taken(found, range(1, len(found.picks) + 1)) if there else {}
    out.write_text(picture.html(found, images), encoding="utf-8")
    print(f"{out}: {found.id}, {len(found.picks)} frames, {len(found.shots)} shots")


def _records(folder: Path, source: str | None) -> Sequence[Record]:
    """The good records of a folder; there is one."""
    from lmms_eval_tasks.haven.options import parse
    from lmms_eval_tasks.haven.records import release

    chosen = f"sources={source}," if source else ""
    return release.read(folder, parse(f"{chosen}subset=0")).records
