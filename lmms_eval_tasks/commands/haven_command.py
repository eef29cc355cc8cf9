"""The commands `haven build`, `rate`, `agreement` and `picture`: HAVEN's records of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_eval_tasks.commands.saved_runs import Concurrency, MaxCalls, MaxCost, set_limits
from lmms_eval_tasks.console import say, table_console
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.report.fold import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_tasks.haven.records.build import Job
    from lmms_eval_tasks.haven.records.record import Record
    from lmms_eval_tasks.haven.records.structure import Choices
    from lmms_eval_tasks.judges import JudgeConfig

haven_app = typer.Typer(
    help="HAVEN's records: made of your own videos, rated, shown.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(help="HAVEN's files: processed/ and the sources' h5.")]


@haven_app.command("build")
def build_command(
    videos: Annotated[list[Path], typer.Argument(help="Video files.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder of files to write or to add to.")],
    source: Annotated[str, typer.Option(help="Under which source: own, or one of the six.")] = (
        "own"
    ),
    fps: Annotated[float, typer.Option(help="Frames a second, 1 to 2.")] = 2.0,
    shots: Annotated[
        str, typer.Option(help="target (a tenth of the frames), auto (KTS's penalty) or a number.")
    ] = "target",
    scores: Annotated[
        Path | None,
        typer.Option(help="Importance: one number per frame, .npy or .json; or a folder of them."),
    ] = None,
    picks: Annotated[
        Path | None,
        typer.Option(help="Annotators' picks, .json: a list of frame numbers of each; or a folder"),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(help="Your features, .npy (frames, d); or a folder. Unset: colours."),
    ] = None,
    size: Annotated[int, typer.Option(help="Longest side of a picture in pixels.")] = 512,
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
    from lmms_eval_tasks import judges
    from lmms_eval_tasks.haven.records import build, report, steps
    from lmms_eval_tasks.haven.records.structure import Choices
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.config import KEY

    option, file = _importance(scores, picks)
    choices = Choices(option, file, fps, shots, size, features)
    _check_source(source)
    if out.exists() and not out.is_dir():
        raise TasksError(f"--out {out}: not a folder")
    if dry_run and judge is None:
        raise TasksError("--dry-run says what the texts cost: name who writes them with --judge")
    set_limits(max_calls, max_cost, concurrency)
    # An estimate needs no key.
    env = {KEY: "none", **os.environ} if dry_run else os.environ
    config = build.model(judge, env) if judge is not None else None
    with run.use(run.from_settings(progress=False)) as current:
        jobs = build.plan(
            videos, choices, out, source, replace_old=replace, writes=config is not None
        )
        if dry_run and config is not None:
            _print_estimate(jobs, choices, config)
            return
        if config is not None:
            told = judges.announcement(config, steps.prompt().name)
            say(f"texts: {told.removeprefix('judge: ')}")
        failed = False
        for done in build.build(jobs, choices, out, source, config=config, keep_gaps=keep_gaps):
            failed |= bool(done.failures)
            for line in report.lines(done, source, cached=current.cache is not None):
                print(line)
        for line in current.told():
            print(line.removeprefix("judge "))
    for line in _validated(out, source):
        print(line)
    if failed:
        raise typer.Exit(1)


@haven_app.command("rate")
def rate_command(
    folder: Folder,
    *,
    out: Annotated[Path, typer.Option(help="The folder for the sheet: sheet.csv, sheet.html.")],
    source: Annotated[str | None, typer.Option(help="Of one source only.")] = None,
    videos: Annotated[int, typer.Option("--n", help="Number of videos to draw.")] = 15,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
) -> None:
    """Write a rating sheet (1 to 5, the paper's Appendix B) for two people to fill in."""
    from lmms_eval_tasks.haven.records import rating_sheet

    drawn = rating_sheet.draw(_records(folder, source), videos, seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TasksError(f"--out {out}: no folder can be made there ({error.strerror})") from None
    (out / "sheet.csv").write_text(rating_sheet.csv_text(drawn.rows), encoding="utf-8", newline="")
    evidence = {one.id: rating_sheet.evidence(one) for one in drawn.videos}
    form = rating_sheet.html(drawn, evidence)
    (out / "sheet.html").write_text(form, encoding="utf-8")
    unseen = [one.why for one in evidence.values() if one.why]
    told = (f"{why}: rate it with a copy of your own beside the form" for why in unseen)
    for line in (*drawn.notes, *told):
        print(line)
    print(f"{out}: sheet.csv and sheet.html, {len(drawn.videos)} videos, {len(drawn.rows)} ratings")


@haven_app.command("agreement")
def agreement_command(
    first: Annotated[Path, typer.Argument(help="The sheet of one rater, as CSV.")],
    second: Annotated[Path, typer.Argument(help="The sheet of the other rater.")],
    *,
    output: Annotated[Path | None, typer.Option(help="Write the numbers as JSON.")] = None,
) -> None:
    """Mean ratings and the agreement of two raters, as in the paper's Table 2."""
    from lmms_eval_tasks.haven.records import rating_agreement
    from lmms_eval_tasks.utils.json_files import check_output, write_json

    if output is not None:
        check_output(output)
    rows = rating_agreement.compare(first, second)
    console = table_console()
    show(console, [rating_agreement.table(rows)])
    for line in rating_agreement.notes(rows):
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
    out.write_text(picture.html(found, picture.thumbnails(found)), encoding="utf-8")
    print(f"{out}: {found.id}, {len(found.frames)} frames, {len(found.shots)} shots")


def _importance(scores: Path | None, picks: Path | None) -> tuple[str, Path]:
    if scores is not None and picks is None:
        return "--scores", scores
    if picks is not None and scores is None:
        return "--picks", picks
    raise TasksError(
        "importance comes from either --scores FILE (a number per frame) or --picks FILE "
        "(annotators' frames): give one of the two"
    )


def _check_source(source: str) -> None:
    from lmms_eval_tasks.haven.options import OWN, SOURCES

    known = list(dict.fromkeys([OWN, *SOURCES]))
    if source not in known:
        raise TasksError(f"--source {source}: expected one of {', '.join(known)}")


def _print_estimate(jobs: Sequence[Job], choices: Choices, config: JudgeConfig) -> None:
    from lmms_eval_tasks.haven.records import build, report

    works = []
    for job in jobs:
        if not job.complete:
            made, frames, have = build.structured(job, choices)
            works.append(report.Work(made, have, (frames.width, frames.height)))
    show(table_console(), [report.estimate(works, config)])
    print(f"{len(works)} videos to ask about, {len(jobs) - len(works)} are complete already")
    for note in report.notes(config):
        print(note)


def _records(folder: Path, source: str | None) -> Sequence[Record]:
    """The good records of a folder.

    Raises:
        DataError: there is none.
    """
    from lmms_eval_tasks.haven.options import Options
    from lmms_eval_tasks.haven.records import release as released

    if source is not None:
        _check_source(source)
    chosen = (source,) if source else ()
    release = released.read(folder, Options(sources=chosen, subset=0))
    if not release.records:
        raise DataError(f"{folder}: no video of HAVEN that can be used")
    return release.records


def _validated(out: Path, source: str) -> list[str]:
    """What whoever reads the written files will say about them."""
    from lmms_eval_tasks.haven.options import Options
    from lmms_eval_tasks.haven.records import files
    from lmms_eval_tasks.haven.records import release as released

    if not files.json_file(out, source).exists():
        return []
    release = released.read(out, Options(sources=(source,), subset=0))
    lines = [f"{out}: of the source {source}, videos that fit HAVEN's form: {len(release.records)}"]
    return lines + [f"{name}: {why}" for name, why in release.problems.items()]
