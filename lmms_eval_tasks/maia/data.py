"""MAIA's released files as docs of the host: one per pair, or one per question.

The YAMLs name `DATASET_PATH` and one of the `process_docs` functions below. Nothing is read at
import: `DATASET_PATH` is computed when a selected task asks for it (PEP 562).
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.host import rows_store
from lmms_eval_tasks.maia import schema
from lmms_eval_tasks.maia.schema import POOL_SIZE, Question, Release
from lmms_eval_tasks.utils import released_files

if TYPE_CHECKING:
    from datasets import Dataset

HOW_TO_GET = (
    "MAIA's 20 % sample is public in the authors' repository (linked from the paper), the full set "
    "comes on request from them"
)


def __getattr__(name: str) -> Any:
    if name == "DATASET_PATH":
        return str(rows_store.folder("maia", rows(load())))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    return schema.read(schema.find_file(place))


def video_problems(release: Release) -> dict[str, str]:
    """Videos that cannot be used, by name, with the reason; empty if all are there and readable."""
    from lmms_eval_tasks.utils import media

    def problem(path: Path) -> str | None:
        if not path.is_file():
            return f"missing: {path}"
        try:
            media.probe(path)
        except MediaError as error:
            return f"unreadable: {error}"
        return None

    paths = {video.video: release.path_of(video.video) for video in release.videos}
    # The first look at a file costs a child process: side by side, 100 videos take seconds.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        found = zip(paths, pool.map(problem, paths.values()), strict=True)
        return {video: why for video, why in found if why is not None}


def usable(release: Release) -> tuple[list[schema.Video], dict[str, str]]:
    """The videos to evaluate, and those left out because the user allowed it.

    Raises:
        DataError: videos are missing or unreadable and `--allow-missing-videos` was not given.
    """
    problems = video_problems(release)
    if problems and not settings.allow_missing_videos():
        listed = "\n".join(f"  {video}: {reason}" for video, reason in problems.items())
        raise DataError(
            f"{len(problems)} of {len(release.videos)} MAIA videos cannot be used:\n{listed}\n"
            "Put them there, or leave their questions out (they are counted in the results) with "
            f"--allow-missing-videos or {settings.ALLOW_MISSING}=1"
        )
    videos = [video for video in release.videos if video.video not in problems]
    if not videos:
        raise DataError(f"none of the {len(release.videos)} MAIA videos can be used")
    return videos, problems


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


def rows(release: Release) -> list[dict[str, Any]]:
    """One row per question of the usable videos, in the file's order (all of a video together)."""
    videos, _ = usable(release)
    return [
        {
            "id": question_id(video.video, question),
            "video": video.video,
            "video_path": str(release.path_of(video.video).resolve()),
            "category": question.slug,
            "question": question.question,
            "references": question.answer,
            "true_statements": question.true_statement,
            "false_statements": question.false_statement,
            "true_letters": true_letters(video.video, question),
            "n_frames": settings.frames_for(video.video),
            "data": release.digest,
        }
        for video in videos
        for question in video.questions
    ]


# --- docs: what `process_docs` of the YAMLs makes of the rows ---------------------------------

_STATEMENTS = ("true_statements", "false_statements", "true_letters")


def pairs(dataset: Dataset, setting: str) -> Dataset:
    """One doc per TS-FS pair; a pool's eight docs follow each other."""
    from datasets import Dataset

    docs = []
    for row in dataset:
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
    return Dataset.from_list(docs)


def questions(dataset: Dataset, setting: str) -> Dataset:
    """One doc per question, with the eight references and a lure for scripted models."""
    from datasets import Dataset

    return Dataset.from_list(
        [
            {
                "question_id": row["id"],
                "lure": row["false_statements"][0],
                "setting": setting,
                **{k: v for k, v in row.items() if k not in _STATEMENTS},
                "n_frames": _frames(setting, row["n_frames"]),
            }
            for row in dataset
        ]
    )


def _frames(setting: str, n_frames: int) -> int:
    """Number of frames asked for in a setting; the black clip has as many as the video's."""
    return {"1frame": 1, "text": 0}.get(setting, n_frames)


def vsv_32frames(dataset: Dataset) -> Dataset:
    """Statement verification on 32 uniform frames (paper, 4.4)."""
    return pairs(dataset, "32frames")


def vsv_1frame(dataset: Dataset) -> Dataset:
    """Statement verification on the first frame (paper, 4.3)."""
    return pairs(dataset, "1frame")


def vsv_black(dataset: Dataset) -> Dataset:
    """Statement verification on a black clip (paper, 4.3)."""
    return pairs(dataset, "black")


def vsv_text(dataset: Dataset) -> Dataset:
    """Statement pairs without any video: the unimodal baseline (paper, 4.3)."""
    return pairs(dataset, "text")


def oevqa_32frames(dataset: Dataset) -> Dataset:
    """Open-ended QA on 32 uniform frames."""
    return questions(dataset, "32frames")


def oevqa_1frame(dataset: Dataset) -> Dataset:
    """Open-ended QA on the first frame."""
    return questions(dataset, "1frame")


def oevqa_black(dataset: Dataset) -> Dataset:
    """Open-ended QA on a black clip."""
    return questions(dataset, "black")
