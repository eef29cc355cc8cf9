"""MovieRecapsQA's data: what can be asked about each source, docs per question, `data` commands.

A source needs its own file and nothing else: `segment` and `recap` the recap video, `scenes` and
`movie` the user's copy of the movie, and dialogue alone no video at all.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, cast

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Cut, Doc, Found
from lmms_eval_tasks.media import clips, video_checks
from lmms_eval_tasks.media.video_checks import bad_items, missing_videos, stop
from lmms_eval_tasks.movierecapsqa import schema
from lmms_eval_tasks.movierecapsqa.schema import UNLABELLED, Release
from lmms_eval_tasks.movierecapsqa.settings import BASELINES, MOVIERECAPSQA
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import Seen, listed

HOW_TO_GET = (
    "the full set is four tables on the hub (sshaar/movierecapsqa); a sample is on the project's "
    "site (segments.json). Recap videos, subtitles and movies are for the user to fetch"
)

# --- what a task's name says --------------------------------------------------------------------

# Visual source: slug in task names -> title (abstract, (a) to (d)).
SOURCES = {
    "segment": "aligned recap segment",
    "recap": "full recap",
    "scenes": "aligned movie scenes",
    "movie": "full movie",
}
_RECAP = "recap videos in recaps/, or beside the data file, named by videoId"
_MOVIE = "the movie in movies/, named by movieId"
# By source: the kind of its file (Release.path), and what the user has to hold.
_NEEDS = {
    "segment": ("recaps", _RECAP),
    "recap": ("recaps", _RECAP),
    "scenes": (
        "movies",
        f"movieId, movieStartTime and movieEndTime (seconds in the movie), and {_MOVIE}",
    ),
    "movie": ("movies", f"movieId, and {_MOVIE}"),
}


class Condition(NamedTuple):
    """What of the source reaches the model (5.2); `prompt` is its part of the prompt file."""

    title: str
    picture: bool
    dialogue: bool
    prompt: str


# By the slug in task names; the default has none.
CONDITIONS = {
    "": Condition("both", picture=True, dialogue=True, prompt="both"),
    "frames": Condition("only frames", picture=True, dialogue=False, prompt="only_frames"),
    "dialogue": Condition("only dialogue", picture=False, dialogue=True, prompt="only_dialogue"),
}


def task_name(source: str, condition: str) -> str:
    """The task of a source and a condition, by their slugs."""
    return "_".join(filter(None, ("movierecapsqa", source, condition)))


TASKS = {task_name(source, slug): (source, slug) for source in SOURCES for slug in CONDITIONS}


def shows(task: str) -> bool:
    """Whether a task shows a picture."""
    return CONDITIONS[TASKS[task][1]].picture


# --- what the judge is shown ---------------------------------------------------------------------

ALL, ALIGNED = "all", "aligned"
GIVEN, NONE = "given", "none"


class Options(NamedTuple):
    """What the judge is shown beside question and claims (`--movierecapsqa NAME=VALUE,...`).

    The authors' released code shows a question's own facts and no dialogue; the published scores
    were not made so: answers that rest on the dialogue alone have high ones.
    """

    facts: str = ALL  # of the segment, or those that are `aligned` with the question
    dialogue: str = GIVEN  # the segment's, or `none`


def options() -> Options:
    """The user's choice.

    Raises:
        TasksError: an option is unknown, given twice, or has another value.
    """
    values = {"facts": (ALL, ALIGNED), "dialogue": (GIVEN, NONE)}
    return Options(**settings.chosen(MOVIERECAPSQA, values))


# --- what of a source is there ------------------------------------------------------------------

Window = tuple[str, float | None, float | None]  # a file, seconds; None and None is all of it


class Held(NamedTuple):
    """What of a source the user holds, by id of the segment; every segment is in one of the three.

    windows: what is shown.
    absent: no file, or nothing that says which: the reason. `--allow-missing-videos` leaves them
        out.
    bad: a window that is not inside its video: the reason. `--allow-bad-items` leaves them out.
    """

    windows: dict[str, Window]
    absent: dict[str, str]
    bad: dict[str, str]


def held(release: Release, source: str, only: Collection[str] | None = None) -> Held:
    """Look for a visual source of all good segments that have questions."""
    result, kind = Held({}, {}, {}), _NEEDS[source][0]
    own: dict[str, Window] = {}
    for one in release.asked:
        path, start, end = release.path(one, kind), None, None
        if source == "segment":
            start, end = one.start, one.end
        elif source == "scenes":
            start, end = one.movie_start, one.movie_end
        if path is None:
            result.absent[one.id] = "names no movie (movieId)"
        elif source == "scenes" and start is None:
            result.absent[one.id] = "has no window in the movie (movieStartTime, movieEndTime)"
        else:
            own[one.id] = str(path), start, end
    # As they are handed over (resolved), so that a whole movie is listed once in a process.
    files = sorted({file for file, *_ in own.values()})
    resolved = {file: released_files.real(Path(file)) for file in files}
    infos, troubles = video_checks.look(resolved, only)
    for name, (file, first, last) in own.items():
        seconds = infos[file].end if file in infos else math.inf
        if why := troubles.get(file):
            result.absent[name] = why
        elif why := video_checks.outside(first, last, seconds):
            result.bad[name] = why
        else:
            end = None if last is None else min(last, seconds)  # a window's end may be rounded
            result.windows[name] = (str(resolved[file]), first, end)
    return result


# --- the check before a run ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Checked(Found):
    """The data of a run."""

    release: Release
    held: Mapping[str, Held]  # by source, of those that were looked at
    options: Options  # what the judge is shown

    def left_out(self, task: str) -> dict[str, str]:
        """Segments whose questions a task leaves out because the user allowed it."""
        told = {**self.release.problems, **self.unspoken([task])}
        if not shows(task):
            return told
        own = self.held[TASKS[task][0]]
        return {**told, **own.absent, **own.bad}

    def unspoken(self, names: Sequence[str]) -> dict[str, str]:
        """Segments whose dialogue is not at hand, if a task's model or its judge is shown it."""
        told = any(CONDITIONS[TASKS[name][1]].dialogue for name in names)
        return self.release.without_subtitles if told or self.options.dialogue == GIVEN else {}


def look(
    names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
) -> Checked:
    """The user's data as the tasks need them (Benchmark.look).

    Raises:
        DataError: they are not there (says how to get them) or do not fit the schema; segments are
            bad and `--allow-bad-items` was not given, or a source is not there and
            `--allow-missing-videos` was not given, or nothing is left of one; says all of it.
    """
    place = settings.required_folder("movierecapsqa", "MovieRecapsQA", HOW_TO_GET)
    release = schema.read(place)
    shown = [name for name in names if videos and shows(name)]
    sources = dict.fromkeys(TASKS[name][0] for name in shown)
    found = {source: held(release, source, only) for source in sources}
    checked = Checked(release=release, digest=release.digest, held=found, options=options())
    total = len(release.segments) + len(release.problems)
    told = bad_items(release.problems, f"of {total} MovieRecapsQA segments cannot be used")
    if not release.asked:
        told.append("its segments have no questions")
    told += without_own(release, checked.options)
    silent = checked.unspoken(names)
    cure = "The addresses are all in data status. Put them there"
    told += missing_videos(silent, "segments have no dialogue at hand", cure)
    if len(silent) == len(release.segments):
        told.append("no segment is left: fetch subtitles (data status lists them)")
    for source, (windows, absent, bad) in found.items():
        tasks = ", ".join(name for name in shown if TASKS[name][0] == source)
        what, needed = f"{SOURCES[source]} ({tasks})", f"This source needs {_NEEDS[source][1]}"
        total = len(windows) + len(absent) + len(bad)
        if total and not windows:
            told.append(
                f"none of {total} segments can be shown as the {what}:\n"
                f"{listed({**absent, **bad})}\n{needed}. Tasks that end in _dialogue need no video"
            )
            continue
        left_out = f"of {total} segments cannot be shown as the {what}"
        told += missing_videos(absent, left_out, f"{needed}. Put it there")
        told += bad_items(bad, f"of {total} segments are not inside the {what}")
    stop(release.file, told)
    return checked


def without_own(release: Release, chosen: Options) -> list[str]:
    """The complaint about questions without facts of their own, which `facts=aligned` needs."""
    lacking = [s.question_id(q) for s, q in release.questions() if q.aligned is None]
    if chosen.facts == ALL or not lacking:
        return []
    return [
        f"{MOVIERECAPSQA}=facts={ALIGNED}: {len(lacking)} questions, such as "
        f"{lacking[0]}, have no facts of their own (aligned_fact_ids or alignedFacts)"
    ]


# --- docs ---------------------------------------------------------------------------------------


def docs(found: Found, task: str) -> list[dict[str, Any]]:
    """One doc per question of the segments that can be shown, in the file's order.

    `video_path`, `start` and `end` are what is shown, in seconds (None and None is the whole file);
    `n_frames` is what the user asked for, 0 for the clip as a file. With dialogue alone, or where
    no video was looked at, the path is "". `lure`, for scripted models as `references` is, answers
    another segment's question: of this one it would be true.
    """
    known = cast(Checked, found)
    source, condition = TASKS[task]
    silent = known.unspoken([task])
    own = known.held.get(source) if shows(task) else None
    questions = list(known.release.questions())
    told = [
        (place, segment.id, question.reference)
        for place, (segment, question) in enumerate(questions)
        if question.reference
    ]
    made = []
    for place, (segment, question) in enumerate(questions):
        if segment.id in silent or (own is not None and segment.id not in own.windows):
            continue
        path, start, end = own.windows[segment.id] if own else ("", None, None)
        # From the next reference on, around the end.
        first = bisect.bisect(told, place, key=itemgetter(0))
        others = (told[(first + step) % len(told)] for step in range(len(told)))
        lures = (
            text for _, other, text in others if other != segment.id and text != question.reference
        )
        made.append(
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
                "shown": known.options._asdict(),
                "modality": question.modality or UNLABELLED,
                "category": question.category or UNLABELLED,
                "data": known.digest,
                "judged_baselines": list(settings.value(BASELINES)),
                "source": source,
                "condition": condition,
                "video_path": path,
                "start": start,
                "end": end,
                "n_frames": settings.frames_for(segment.video, default=0) if own else 0,
            }
        )
    return made


def cut(doc: Doc) -> Cut | None:
    """The clip of a doc, or its frames; None with dialogue alone (Benchmark.cut)."""
    if not doc["video_path"]:
        return None
    window = (doc["video_path"], doc["start"], doc["end"], doc["n_frames"])
    return Cut(doc["segment"], window, functools.partial(clips.make, *window))


# --- the user's data ------------------------------------------------------------------------------


def seen(place: Path) -> Seen:
    """What lies in a folder (Benchmark.seen)."""
    release = schema.read(place)
    paths = {name: released_files.real(path) for name, (_, path) in _videos(release).items()}
    found, problems = video_checks.look(paths)
    notes = [released_files.compared(release.counts, schema.PAPER_COUNTS)]
    if release.tables:
        notes.append("recap videos: https://www.youtube.com/watch?v=VIDEOID, to recaps/VIDEOID.mp4")
    for one in release.subtitles.values():
        if one.path is None:
            notes.append(f"to fetch: {one.name}, the subtitles of {one.movie!r}: {one.url}")
    questions = {segment.id: len(segment.questions) for segment in release.asked}
    total = f"of {len(questions):,} segments, {{:,}} of {sum(questions.values()):,} questions"
    for source, title in SOURCES.items():
        own = held(release, source).windows
        shown = total.format(sum(questions[name] for name in own))
        line = f"movierecapsqa_{source} ({title}): can be run for {len(own):,} {shown}"
        notes.append(line if own else f"{line}; not held, it needs {_NEEDS[source][1]}")
    notes.append("tasks that end in _dialogue need no video")
    notes += [f"{name}: {why}" for name, why in release.problems.items()]
    return Seen(release.file, release.digest, release.counts, len(found), problems, notes)


def _videos(release: Release) -> dict[str, tuple[str, Path]]:
    """Recap videos by their id, and movies by "ID (movie)": their kind and where they would be."""
    paths = {}
    for segment in release.segments:
        for kind, name in (("recaps", segment.video), ("movies", f"{segment.movie_id} (movie)")):
            if (path := release.path(segment, kind)) is not None:
                paths[name] = (kind, path)
    return paths


def placed(source: Path) -> dict[str, Path]:
    """The files of a release (Benchmark.files): data, labels, subtitles and videos."""
    release = schema.read(source)
    places = {f"{name}{path.suffix}": path for name, path in release.tables.items()}
    places = places or {schema.FILE_NAME: release.file}
    if release.labels is not None:
        places[release.labels.name] = release.labels
    spoken = (one.path for one in release.subtitles.values() if one.path is not None)
    places |= {f"subtitles/{path.name}": path for path in spoken}
    videos = _videos(release).values()
    return places | {f"{kind}/{path.name}": path for kind, path in videos if path.is_file()}
