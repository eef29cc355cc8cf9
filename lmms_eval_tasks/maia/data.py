"""MAIA's data: where they are, which videos can be used, and docs per pair or per question."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.benchmark import Found
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia import release as files
from lmms_eval_tasks.maia.release import PAPER_COUNTS, POOL_SIZE, Question, Release
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import Seen

HOW_TO_GET = (
    "MAIA's full set is on the Hugging Face hub (giobin/MAIA, tables gen and mc; access may have "
    "to be asked for), its videos and a 20 % sample are in the authors' repository"
)


# What a user can choose, its default first: LMMS_EVAL_TASKS_MAIA=NAME=VALUE,... or --maia
CHOICES = {
    "media": ("clip", "images"),  # form of the frames
    "order": ("released", "balanced"),  # of a pair's statements, where the release has one
}


def options() -> dict[str, str]:
    """The user's choice.

    Raises:
        TasksError: an option is unknown, given twice, or has none of its values.
    """
    return settings.chosen(settings.MAIA, CHOICES)


def video_problems(release: Release, only: Collection[str] | None = None) -> dict[str, str]:
    """Videos that cannot be used, by name, with the reason; `only` as of `look`."""
    paths = {video.video: release.path_of(video.video) for video in release.videos}
    return video_checks.look(paths, only)[1]


def look(
    names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
) -> Found:
    """The user's data as these tasks need them (Benchmark.look).

    Raises:
        DataError: they are not there (says how to get them) or do not fit the schema; or videos are
            missing or unreadable and `--allow-missing-videos` was not given.
    """
    options()
    release = files.read(settings.required_folder("maia", "MAIA", HOW_TO_GET))
    shown = videos and set(names) != {"maia_unimodal"}
    problems = video_problems(release, only) if shown else {}
    what = f"of {len(release.videos)} MAIA videos cannot be used"
    video_checks.stop(release.files[0], video_checks.missing_videos(problems, what))
    if len(problems) == len(release.videos):
        raise DataError(f"none of the {len(release.videos)} MAIA videos can be used")
    return Found(release, release.digest, problems)


# --- docs ---------------------------------------------------------------------------------------


def true_letters(video: str, question: Question) -> list[str]:
    """The letter of the true statement in each of the pool's eight pairs.

    Depends on video, category, question and index only; exactly four are A, so that a model that
    always answers A solves no pool (docs/metrics.md, Pools).
    """

    def rank(index: int) -> str:
        identity = "\x1f".join((video, question.category, question.question, str(index)))
        return hashlib.sha256(identity.encode("utf-8")).hexdigest()

    first_half = sorted(range(POOL_SIZE), key=rank)[: POOL_SIZE // 2]
    return ["A" if index in first_half else "B" for index in range(POOL_SIZE)]


def still() -> bool:
    """Whether a single picture goes as a clip that repeats it: the user's wish or the model's."""
    return settings.value(settings.STILL_CLIP) or context.current().plan.pictures_as_videos


def _asked(found: Found, setting: str) -> Iterator[tuple[Question, dict[str, Any]]]:
    """Each question of the usable videos with what all its docs share, in the file's order."""
    release: Release = found.release
    for video in release.videos:
        if video.video in found.bad:
            continue
        shows_video = setting == "32frames" or (setting == "black" and still())
        n_frames = settings.frames_for(video.video) if shows_video else int(setting != "text")
        shared = {
            "video": video.video,
            "video_path": str(released_files.real(release.path_of(video.video))),
            "setting": setting,
            "n_frames": n_frames,
            "data": found.digest,
        }
        for asked in video.questions:
            own = {"category": asked.slug, "question": asked.question}
            yield asked, {"question_id": f"{video.video}/{asked.category}", **own, **shared}


def pairs(found: Found, setting: str) -> list[dict[str, Any]]:
    """One doc per TS-FS pair; a pool's eight docs follow each other."""
    docs = []
    for asked, shared in _asked(found, setting):
        letters = ["AB"[target] for target in asked.target or ()]
        if not letters or options()["order"] == "balanced":
            letters = true_letters(shared["video"], asked)
        columns = zip(asked.true_statement, asked.false_statement, letters, strict=True)
        for index, (true, false, letter) in enumerate(columns):
            docs.append(
                {
                    "id": f"{shared['question_id']}/{index}",
                    "index": index,
                    "options": [true, false] if letter == "A" else [false, true],
                    "answer": letter,
                    **shared,
                }
            )
    return docs


def questions(found: Found, setting: str) -> list[dict[str, Any]]:
    """One doc per question, with the eight references and a lure for scripted models."""
    return [
        {
            "id": shared["question_id"],
            "references": asked.answer,
            "lure": asked.false_statement[0],
            **shared,
        }
        for asked, shared in _asked(found, setting)
    ]


# --- the user's data --------------------------------------------------------------------------


def seen(place: Path) -> Seen:
    """What lies in a folder (Benchmark.seen)."""
    release = files.read(place)
    problems = video_problems(release)
    questions, pairs = release.counts["questions"], release.counts["pairs"]
    counts = {"questions": questions, "pools": questions, "pairs": pairs}
    usable = len(release.videos) - len(problems)
    notes = [released_files.compared(release.counts, PAPER_COUNTS)]
    return Seen(release.files[0], release.digest, counts, usable, problems, notes)


def placed(source: Path) -> dict[str, Path]:
    """The files of a release (Benchmark.files): the JSON file or the tables, and videos."""
    release = files.read(source)
    paths = [release.path_of(video.video) for video in release.videos]
    videos = {f"videos/{path.name}": path for path in paths if path.is_file()}
    return {f.relative_to(release.folder).as_posix(): f for f in release.files} | videos
