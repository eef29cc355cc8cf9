"""MAIA's data: where they are, which videos can be used, and docs per pair or per question."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Found
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia import schema
from lmms_eval_tasks.maia.schema import PAPER_COUNTS, POOL_SIZE, Question, Release
from lmms_eval_tasks.utils import released_files, video_checks
from lmms_eval_tasks.utils.released_files import DataStatus, Seen

HOW_TO_GET = (
    "MAIA's 20 % sample is public in the authors' repository (linked from the paper), the full set "
    "comes on request from them"
)


def load() -> Release:
    """The data the user pointed to.

    Raises:
        DataError: it is not there (the message says how to get it) or does not fit the schema.
    """
    place = released_files.required_folder(
        "maia",
        "MAIA",
        HOW_TO_GET,
        "ROOT/maia/data.json and ROOT/maia/videos/N.mp4",
    )
    return schema.read(place)


def video_problems(release: Release, only: Collection[str] | None = None) -> dict[str, str]:
    """Videos that cannot be used, by name, with the reason; empty if all are there and readable.

    Args:
        release: the user's data.
        only: as of `look`.
    """
    paths = {video.video: release.path_of(video.video) for video in release.videos}
    return video_checks.look(paths, only)[1]


@dataclass(frozen=True)
class Checked(Found):
    """The release with the videos that are evaluated, and those left out with the reason."""

    release: Release
    videos: Sequence[schema.Video]
    problems: Mapping[str, str]


def look(
    names: Sequence[str],  # noqa: ARG001 - all tasks show all videos
    *,
    videos: bool = True,
    only: Collection[str] | None = None,
) -> Checked:
    """The user's data as these tasks need them (Benchmark.look).

    Raises:
        DataError: they are not there or do not fit the schema; or videos are missing or unreadable
            and `--allow-missing-videos` was not given.
    """
    release = load()
    problems = video_problems(release, only) if videos else {}
    what = f"of {len(release.videos)} MAIA videos cannot be used"
    video_checks.stop(release.file, video_checks.missing_videos(problems, what))
    left = [video for video in release.videos if video.video not in problems]
    if not left:
        raise DataError(f"none of the {len(release.videos)} MAIA videos can be used")
    return Checked(release, release.digest, left, problems)


# --- rows: one per question, the common base of both tasks -----------------------------------


def question_id(video: str, question: Question) -> str:
    """Id of a question: its video and released category, which together are unique."""
    return f"{video}/{question.category}"


def true_letters(video: str, question: Question) -> list[str]:
    """The letter of the true statement in each of the pool's eight pairs.

    Depends on video, category, question and index only; exactly four are A, so that a model that
    always answers A solves no pool (metrics.md, Pools).
    """

    def rank(index: int) -> str:
        identity = "\x1f".join((video, question.category, question.question, str(index)))
        return hashlib.sha256(identity.encode("utf-8")).hexdigest()

    first_half = sorted(range(POOL_SIZE), key=rank)[: POOL_SIZE // 2]
    return ["A" if index in first_half else "B" for index in range(POOL_SIZE)]


def rows(found: Checked) -> list[dict[str, Any]]:
    """One row per question of the usable videos, in the file's order (all of a video together)."""
    return [
        {
            "id": question_id(video.video, question),
            "video": video.video,
            "video_path": str(found.release.path_of(video.video).resolve()),
            "category": question.slug,
            "question": question.question,
            "references": question.answer,
            "true_statements": question.true_statement,
            "false_statements": question.false_statement,
            "true_letters": true_letters(video.video, question),
            "n_frames": settings.frames_for(video.video),
            "data": found.digest,
        }
        for video in found.videos
        for question in video.questions
    ]


# --- docs ---------------------------------------------------------------------------------------

_STATEMENTS = ("true_statements", "false_statements", "true_letters")


def pairs(found: Found, setting: str) -> list[dict[str, Any]]:
    """One doc per TS-FS pair; a pool's eight docs follow each other."""
    docs = []
    for row in rows(cast(Checked, found)):
        shared = {k: v for k, v in row.items() if k not in (*_STATEMENTS, "references", "id")}
        columns = zip(*(row[name] for name in _STATEMENTS), strict=True)
        for index, (true, false, letter) in enumerate(columns):
            docs.append(
                {
                    "id": f"{row['id']}/{index}",
                    "question_id": row["id"],
                    "index": index,
                    "options": [true, false] if letter == "A" else [false, true],
                    "answer": letter,
                    "setting": setting,
                    **shared,
                    "n_frames": _frames(setting, row["n_frames"]),
                }
            )
    return docs


def questions(found: Found, setting: str) -> list[dict[str, Any]]:
    """One doc per question, with the eight references and a lure for scripted models."""
    return [
        {
            "question_id": row["id"],
            "lure": row["false_statements"][0],
            "setting": setting,
            **{k: v for k, v in row.items() if k not in _STATEMENTS},
            "n_frames": _frames(setting, row["n_frames"]),
        }
        for row in rows(cast(Checked, found))
    ]


def _frames(setting: str, n_frames: int) -> int:
    """Number of frames asked for in a setting; the black clip has as many as the video's."""
    return {"1frame": 1, "text": 0}.get(setting, n_frames)


def describe(found: Found) -> tuple[dict[str, Any], list[str]]:
    """Data and left-out videos for the results, and what warns of them."""
    known = cast(Checked, found)
    release, left_out = known.release, known.problems
    lost = sum(len(v.questions) for v in release.videos if v.video in left_out)
    section = {
        "data": {"file": str(release.file), "hash": release.digest, **release.counts},
        "left_out": dict(left_out),
        "questions_left_out": lost,
    }
    if not left_out:
        return section, []
    names = ", ".join(left_out)
    return section, [f"{lost} questions of {len(left_out)} videos left out: {names}"]


# --- the user's data --------------------------------------------------------------------------


def status(root: Path) -> DataStatus:
    """Look at MAIA's data under a data root, without raising."""
    return released_files.status("maia", root, HOW_TO_GET, _seen)


def _seen(place: Path) -> Seen:
    release = schema.read(place)
    problems = video_problems(release)
    questions, pairs = release.counts["questions"], release.counts["pairs"]
    counts = {"questions": questions, "pools": questions, "pairs": pairs}
    usable = len(release.videos) - len(problems)
    notes = [compare_with_paper(release)]
    return Seen(release.file, release.digest, counts, usable, problems, notes)


def compare_with_paper(release: Release) -> str:
    """One line: how many videos, questions and pairs there are, of how many in the paper."""
    return released_files.compared(release.counts, PAPER_COUNTS)


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a release and put it under the data root.

    Args:
        source: the data file, or a folder that holds it; videos are taken from `videos/` beside it.
        root: the data root; files go to `root/maia`.
        link: make symbolic links instead of copies.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
    """
    release = schema.read(source.expanduser().resolve())
    file = release.file
    target = root / "maia"
    (target / "videos").mkdir(parents=True, exist_ok=True)
    present = [p for p in target.glob("*.json") if p.resolve() != file and p.name != file.name]
    if present:
        raise DataError(f"{target}: holds {present[0].name} already; remove it first")
    paths = {video.video: release.path_of(video.video) for video in release.videos}
    videos = {f"videos/{path.name}": path for path in paths.values() if path.is_file()}
    done = released_files.place(target, {file.name: file, **videos}, link)
    lines = [done, compare_with_paper(release)]
    absent = [video for video, path in paths.items() if not path.is_file()]
    if absent:
        lines.append(
            f"{len(absent)} videos are not beside the file: {', '.join(absent)}; put them into "
            f"{target / 'videos'} as N.mp4"
        )
    return "\n".join(lines)
