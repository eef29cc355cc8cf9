"""MovieRecapsQA's data: the questions that each visual source can show, and a doc for each of them.

A visual source needs only its own file: `segment` and `recap` need the recap video, `scenes` and
`movie` need the user's copy of the movie. Dialogue alone needs no video.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Doc, LoadedData, MediaJob
from lmms_eval_tasks.media import clips
from lmms_eval_tasks.media.downloads import HubFiles
from lmms_eval_tasks.media.sources import Source, Window
from lmms_eval_tasks.movierecapsqa.items import RecapDoc
from lmms_eval_tasks.movierecapsqa.release import UNLABELLED, MovieRelease
from lmms_eval_tasks.movierecapsqa.settings import BASELINES, MOVIERECAPSQA

BY_HAND = (
    "recap videos from YouTube and the movies' subtitles, whose addresses "
    "lmms-eval-tasks data status movierecapsqa prints, and your own copies of the movies"
)
HOW_TO_GET = (
    "lmms-eval-tasks data get movierecapsqa downloads the full set, four tables on the Hugging "
    "Face hub (sshaar/movierecapsqa); a sample is on the project's site (segments.json). Get by "
    f"hand: {BY_HAND}"
)
DOWNLOADS = (HubFiles("sshaar/movierecapsqa", ("data/*.json", "data/*.parquet")),)

# --- names of tasks -------------------------------------------------------------------------------

# Visual source: slug in task names -> title (abstract, (a) to (d)).
SOURCES = {
    "segment": "aligned recap segment",
    "recap": "full recap",
    "scenes": "aligned movie scenes",
    "movie": "full movie",
}
_RECAP = "recap videos in recaps/, or next to the data file, named by videoId"
_MOVIE = "the movie in movies/, named by movieId"
# Visual source -> the kind of its file (MovieRelease.path), and what the user has to provide.
_NEEDS = {
    "segment": ("recaps", _RECAP),
    "recap": ("recaps", _RECAP),
    "scenes": (
        "movies",
        f"movieId, movieStartTime and movieEndTime (seconds in the movie), and {_MOVIE}",
    ),
    "movie": ("movies", f"movieId, and {_MOVIE}"),
}


class InputCondition(NamedTuple):
    """The parts of the source that reach the model (5.2).

    `prompt` is the part of the prompt file.
    """

    title: str
    picture: bool
    dialogue: bool
    prompt: str


# By the slug in task names; the default condition has the slug "".
CONDITIONS = {
    "": InputCondition("both", picture=True, dialogue=True, prompt="both"),
    "frames": InputCondition("only frames", picture=True, dialogue=False, prompt="only_frames"),
    "dialogue": InputCondition(
        "only dialogue", picture=False, dialogue=True, prompt="only_dialogue"
    ),
}


def task_name(source: str, condition: str) -> str:
    """Return the name of the task of a visual source and a condition, given their slugs."""
    return "_".join(filter(None, ("movierecapsqa", source, condition)))


TASKS = {task_name(source, slug): (source, slug) for source in SOURCES for slug in CONDITIONS}


def shows(task: str) -> bool:
    """Return True if a task shows a picture."""
    return CONDITIONS[TASKS[task][1]].picture


# --- the judge's context --------------------------------------------------------------------------

ALL, ALIGNED = "all", "aligned"
GIVEN, NONE = "given", "none"


class JudgeOptions(NamedTuple):
    """The judge's context, beside question and claims (`--movierecapsqa NAME=VALUE,...`).

    The authors' released code gives the judge a question's own facts and no dialogue. The published
    scores were computed otherwise, because answers that rest on the dialogue alone have high
    scores.
    """

    facts: str = ALL  # `all` facts of the segment, or those `aligned` with the question
    dialogue: str = GIVEN  # `given`: the segment's dialogue; or `none`


def options() -> JudgeOptions:
    """Return the user's choice of the judge's context.

    Raises:
        TasksError: an option is unknown, is given twice, or has another value.
    """
    values = {"facts": (ALL, ALIGNED), "dialogue": (GIVEN, NONE)}
    return JudgeOptions(**settings.read_choices(MOVIERECAPSQA, values))


# --- the files that a task needs ------------------------------------------------------------------


def media_sources(release: MovieRelease, names: Sequence[str]) -> list[Source]:
    """Return the visual sources of tasks that show a picture, and the subtitles."""
    shown = [name for name in names if shows(name)]
    by_source = {one: [name for name in shown if TASKS[name][0] == one] for one in SOURCES}
    of_videos = [_source(release, one, own) for one, own in by_source.items() if own]
    # If the model or the judge of a task gets the dialogue, the task needs the movie's subtitles.
    to_judge = options().dialogue == GIVEN
    told = [name for name in names if to_judge or CONDITIONS[TASKS[name][1]].dialogue]
    cure = "lmms-eval-tasks data status prints the addresses. Put them there"
    silent = Source(
        tasks=told,
        noun="subtitles",
        absent=release.without_subtitles,
        cure=cure,
        is_video=False,
    )
    return [*of_videos, silent]


def _source(release: MovieRelease, source: str, tasks: Sequence[str]) -> Source:
    kind, needed = _NEEDS[source]
    windows: dict[str, Window] = {}
    absent: dict[str, str] = {}
    for one in release.segments_with_questions:
        path, start, end = release.path(one, kind), None, None
        if source == "segment":
            start, end = one.start, one.end
        elif source == "scenes":
            start, end = one.movie_start, one.movie_end
        if path is None:
            absent[one.id] = "names no movie (movieId)"
        elif source == "scenes" and start is None:
            absent[one.id] = "has no window in the movie (movieStartTime, movieEndTime)"
        else:
            name = one.video if kind == "recaps" else f"{one.movie_id} (movie)"
            windows[one.id] = Window(name, path, kind, start, end)
    return Source(
        tasks=tasks,
        windows=windows,
        absent=absent,
        cure=f"This requires {needed} (tasks that end in _dialogue require no video). Put it there",
        hint=f" as the {SOURCES[source]} ({', '.join(tasks)})",
    )


def complaints(release: MovieRelease, names: Sequence[str]) -> list[str]:  # noqa: ARG001
    """Return complaints: there are no questions, or questions without the facts that are needed."""
    empty = [] if release.segments_with_questions else ["its segments have no questions"]
    return empty + without_own(release, options())


def without_own(release: MovieRelease, options: JudgeOptions) -> list[str]:
    """Return the complaint about questions without own facts, which `facts=aligned` needs."""
    lacking = [s.question_id(q) for s, q in release.questions() if q.aligned is None]
    if options.facts == ALL or not lacking:
        return []
    return [
        f"{MOVIERECAPSQA.option} facts={ALIGNED}: {len(lacking)} questions, "
        f"such as {lacking[0]}, have no facts of their own (aligned_fact_ids or "
        "alignedFacts)"
    ]


# --- docs ---------------------------------------------------------------------------------------


def make_recap_docs(loaded: LoadedData, task: str) -> list[RecapDoc]:
    """Return one doc for each question of the segments that can be shown, in the file's order.

    `lure` is the answer to a question about another segment. An answer about the same segment could
    be true here, too.
    """
    release: MovieRelease = loaded.release
    source, condition = TASKS[task]
    left_out, chosen = loaded.left_out(task), options()._asdict()
    held = loaded.source(task) if shows(task) else None
    windows = held.windows if held and held.source.is_video else None
    questions = list(release.questions())
    answered = [
        (place, segment.id, question.reference)
        for place, (segment, question) in enumerate(questions)
        if question.reference
    ]
    docs: list[RecapDoc] = []
    for place, (segment, question) in enumerate(questions):
        if segment.id in left_out:
            continue
        window = None if windows is None else windows[segment.id]
        # The search for a lure begins behind this question, and continues at the first one.
        first = bisect.bisect(answered, place, key=itemgetter(0))
        others = (answered[(first + step) % len(answered)] for step in range(len(answered)))
        lures = (
            text for _, other, text in others if other != segment.id and text != question.reference
        )
        docs.append(
            {
                "id": segment.question_id(question),
                "segment": segment.id,
                "video": segment.video,
                "movie": segment.movie,
                "question": question.question,
                "reference": question.reference,
                "references": [question.reference] if question.reference else [],
                "lure": next(lures, ""),
                "facts": list(segment.facts),
                "aligned": list(question.aligned or ()),
                "dialogue": segment.dialogue,
                "shown": chosen,
                "modality": question.modality or UNLABELLED,
                "category": question.category or UNLABELLED,
                "data": loaded.digest,
                "judged_baselines": list(settings.value(BASELINES)),
                "source": source,
                "condition": condition,
                "video_path": "" if window is None else str(window.path),
                "start": None if window is None else window.start,
                "end": None if window is None else window.end,
                "n_frames": settings.frames_for(segment.video, default=0) if window else 0,
            }
        )
    return docs


def cut(doc: Doc) -> MediaJob | None:
    """Return the job that makes a doc's clip or frames; None with dialogue alone."""
    if not doc["video_path"]:
        return None
    window = (doc["video_path"], doc["start"], doc["end"], doc["n_frames"])
    return MediaJob(doc["segment"], window, functools.partial(clips.make_clip, *window))


# --- the user's data ------------------------------------------------------------------------------


def status_notes(release: MovieRelease) -> list[str]:
    """Return lines for `data status`: files to download, and that dialogue needs no video."""
    lines = []
    if release.is_tables:
        lines.append("recap videos: https://www.youtube.com/watch?v=VIDEOID, to recaps/VIDEOID.mp4")
    for one in release.subtitles.values():
        if one.path is None:
            lines.append(f"to download: {one.name}, the subtitles of {one.movie!r}: {one.url}")
    return [*lines, "tasks that end in _dialogue require no video"]
