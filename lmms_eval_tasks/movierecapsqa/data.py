"""MovieRecapsQA's files as docs of the host: one per question, for each source and condition.

The YAMLs name `DATASET_PATH` and one of these `process_docs` functions, both computed when a
selected task asks for them (PEP 562), so that nothing is read at import:

    SOURCE    SOURCE_frames    SOURCE_dialogue

SOURCE is one of labels.SOURCES, the rest one of labels.CONDITIONS.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import rows_store
from lmms_eval_tasks.movierecapsqa import checked, schema, usability
from lmms_eval_tasks.movierecapsqa.labels import CONDITIONS, SOURCES, UNLABELLED
from lmms_eval_tasks.movierecapsqa.schema import Release
from lmms_eval_tasks.movierecapsqa.usability import Held
from lmms_eval_tasks.utils import released_files

if TYPE_CHECKING:
    from datasets import Dataset

HOW_TO_GET = (
    "MovieRecapsQA's project site has a sample (segments.json and recap videos); its authors are "
    "asked for the rest through the paper. Movies are the user's own copies"
)

Row = dict[str, Any]


def __getattr__(name: str) -> Any:
    if name == "DATASET_PATH":
        return str(rows_store.folder("movierecapsqa", rows(load())))
    if match := _PROCESS_DOCS.fullmatch(name):
        return process_docs(match[1], match[2] or "")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_PROCESS_DOCS = re.compile(rf"({'|'.join(SOURCES)})(?:_({'|'.join(filter(None, CONDITIONS))}))?")


def load() -> Release:
    """The data the user pointed to.

    Raises:
        DataError: it is not there (the message says how to get it) or does not fit the schema.
    """
    place = released_files.required_folder(
        "movierecapsqa",
        "MovieRecapsQA",
        HOW_TO_GET,
        "ROOT/movierecapsqa/segments.json, ROOT/movierecapsqa/recaps/VIDEOID.mp4 and "
        "ROOT/movierecapsqa/movies/MOVIEID.mp4",
    )
    return schema.read(schema.find_file(place))


def usable(release: Release, tasks: Sequence[str]) -> dict[str, Held]:
    """What there is of each source that the tasks show, by its slug (usability.py).

    Args:
        release: the user's data.
        tasks: names; those with dialogue alone show nothing.

    Raises:
        DataError: something is missing or bad that the user did not allow to leave out.
    """
    return usability.usable(release, usability.shown_by(tasks))


# --- rows: one per question, the common base of all tasks -------------------------------------


def rows(release: Release) -> list[Row]:
    """One row per question of the good segments, in the file's order; no video is looked at.

    `lure`, for scripted models as `references` is, answers another segment's question: of this one
    it would be true.

    Raises:
        DataError: segments are bad and `--allow-bad-items` was not given, or there is no question.
    """
    usability.usable(release, {})
    questions = list(release.questions())
    answers = [(segment.id, question.reference) for segment, question in questions]
    return [
        {
            "id": segment.question_id(question),
            "segment": segment.id,
            "video": segment.video,
            "movie": segment.movie,
            "question": question.question,
            "reference": question.reference,
            "references": [question.reference] if question.reference else [],
            "lure": _lure(answers, place),
            "facts": list(segment.facts),
            "dialogue": segment.dialogue,
            "modality": question.modality or UNLABELLED,
            "category": question.category or UNLABELLED,
            "data": release.digest,
        }
        for place, (segment, question) in enumerate(questions)
    ]


def _lure(answers: Sequence[tuple[str, str]], place: int) -> str:
    """The next reference in the file, around its end, that is of another segment; "" without any.

    Args:
        answers: segment and reference ("" if it has none) of each question.
        place: of the question.
    """
    (own, right), size = answers[place], len(answers)
    others = (answers[(place + step) % size] for step in range(1, size))
    return next(
        (text for segment, text in others if segment != own and text not in ("", right)), ""
    )


# --- docs: what `process_docs` of the YAMLs makes of the rows ---------------------------------


@functools.cache
def process_docs(source: str, condition: str) -> Callable[[Dataset], Dataset]:
    """The function that makes a task's docs of the rows.

    A doc is its row with `source` and `condition`; `video_path`, `start` and `end` of what is
    shown, in seconds (None and None is the whole file); `n_frames`, which the user asked for, 0 for
    the clip as a file. With dialogue alone nothing is shown: the path is "".

    Args:
        source: a slug of labels.SOURCES.
        condition: a slug of labels.CONDITIONS.
    """

    def docs(dataset: Dataset) -> Dataset:
        from datasets import Dataset

        shared = {"source": source, "condition": condition}
        if not CONDITIONS[condition].picture:
            nothing = {"video_path": "", "start": None, "end": None, "n_frames": 0}
            return Dataset.from_list([{**row, **shared, **nothing} for row in dataset])
        task = "_".join(filter(None, ("movierecapsqa", source, condition)))
        windows = usable(load(), [task])[source].windows
        before = checked.last()
        uncut = before.uncut if before else {}
        kept = []
        for row in dataset:
            window = windows.get(row["segment"])
            if window is None or window in uncut:
                continue
            shown = dict(zip(("video_path", "start", "end"), window, strict=True))
            n_frames = settings.frames_for(row["video"], default=0)
            kept.append({**row, **shared, **shown, "n_frames": n_frames})
        return Dataset.from_list(kept)

    return docs
