"""MAIA's data: where to get them, the videos that they need, and the docs made of them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Iterator, Sequence

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.benchmark import LoadedData
from lmms_eval_tasks.maia.items import AskedQuestion, OevqaDoc, PairDoc
from lmms_eval_tasks.maia.release import POOL_SIZE, MaiaQuestion, MaiaRelease
from lmms_eval_tasks.maia.settings import MAIA, STILL_CLIP
from lmms_eval_tasks.media.downloads import GitFiles, HubFiles
from lmms_eval_tasks.media.sources import Source, Window
from lmms_eval_tasks.utils import released_files

REPOSITORY = "https://github.com/Caput97/MAIA-Multimodal_AI_Assessment"
HOW_TO_GET = (
    "lmms-eval-tasks data get maia downloads MAIA's full set from the Hugging Face hub "
    f"(giobin/MAIA, tables gen and mc; it may require access) and its videos from {REPOSITORY}, "
    "which also has a 20 % sample"
)
DOWNLOADS = (
    HubFiles("giobin/MAIA", ("*.csv", "*.parquet")),
    # The commit that has all 100 videos, Videos/Video1.mp4 to Videos/Video100.mp4.
    GitFiles(REPOSITORY, "6c8f356c2cc865f89f08dfc044cdb9f7b960b06d", ("Videos/*.mp4",)),
)
BY_HAND = (
    "where the hub refuses, ask the authors for the full set, or use the folder dataset/ of "
    f"{REPOSITORY}, a 20 % sample"
)


# The options of `--maia NAME=VALUE,...`, each with its values, of which the first is the default.
CHOICES = {
    "media": ("clip", "images"),  # form of the frames
    "order": ("released", "balanced"),  # order of a pair's statements, if the release has one
}


def options() -> dict[str, str]:
    """Return the user's options.

    Raises:
        TasksError: an option is unknown, is given twice, or has another value.
    """
    return settings.read_choices(MAIA, CHOICES)


def media_sources(release: MaiaRelease, names: Sequence[str]) -> list[Source]:
    """Return the video files that tasks need (Benchmark.sources).

    If one task of a run shows videos, all its tasks need them, so that all ask the same questions.
    """
    shown = set(names) != {"maia_unimodal"}
    windows = {v.video: Window(v.video, release.path_of(v.video), "videos") for v in release.videos}
    return [Source(tasks=names if shown else (), windows=windows)]


# --- docs ---------------------------------------------------------------------------------------


def true_letters(video: str, question: MaiaQuestion) -> list[str]:
    """Return the letter of the true statement for each of a question's eight pairs.

    The letters depend only on video, category, question and index. Exactly four are A, so that a
    model that always answers A solves no pool (docs/metrics.md, Pools).
    """

    return list(_letters("\x1f".join((video, question.category, question.question))))


@functools.lru_cache(maxsize=2**13)  # of all questions: their docs are made several times in a run
def _letters(question: str) -> str:
    def rank(index: int) -> str:
        return hashlib.sha256(f"{question}\x1f{index}".encode()).hexdigest()

    first_half = sorted(range(POOL_SIZE), key=rank)[: POOL_SIZE // 2]
    return "".join("A" if index in first_half else "B" for index in range(POOL_SIZE))


def still() -> bool:
    """Return True if a picture is sent as a clip that repeats it.

    Reasons are the option `--still-clip`, and a model class that takes only videos.
    """
    return settings.value(STILL_CLIP) or context.current().plan.pictures_as_videos


def _asked(
    loaded: LoadedData, setting: str, left_out: Collection[str]
) -> Iterator[tuple[MaiaQuestion, AskedQuestion]]:
    """Yield each question, in the file's order, with the fields that all its docs share."""
    release: MaiaRelease = loaded.release
    for video in release.videos:
        if video.video in left_out:
            continue
        shows_video = setting == "32frames" or (setting == "black" and still())
        n_frames = settings.frames_for(video.video) if shows_video else int(setting != "text")
        path = str(released_files.real(release.path_of(video.video)))
        for asked in video.questions:
            yield (
                asked,
                {
                    "question_id": f"{video.video}/{asked.category}",
                    "category": asked.slug,
                    "question": asked.question,
                    "video": video.video,
                    "video_path": path,
                    "setting": setting,
                    "n_frames": n_frames,
                    "data": loaded.digest,
                },
            )


def pairs(loaded: LoadedData, setting: str, left_out: Collection[str] = ()) -> list[PairDoc]:
    """Return one doc for each pair of a true and a false statement, pool by pool."""
    docs: list[PairDoc] = []
    for asked, shared in _asked(loaded, setting, left_out):
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


def questions(loaded: LoadedData, setting: str, left_out: Collection[str] = ()) -> list[OevqaDoc]:
    """Return one doc for each question, with eight references and a wrong answer, the lure."""
    return [
        {
            "id": shared["question_id"],
            "references": asked.answer,
            "lure": asked.false_statement[0],
            **shared,
        }
        for asked, shared in _asked(loaded, setting, left_out)
    ]
