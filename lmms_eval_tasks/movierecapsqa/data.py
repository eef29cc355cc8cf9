"""MovieRecapsQA's data: what can be asked about each source, docs per question, `data` commands.

A source needs its own file and nothing else: `segment` and `recap` the recap video, `scenes` and
`movie` the user's copy of the movie, and dialogue alone no video at all.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Cut, Doc, Found
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import schema
from lmms_eval_tasks.movierecapsqa.schema import (
    PAPER_COUNTS,
    RELEASED_COUNTS,
    SPLITS,
    UNLABELLED,
    Release,
    Segment,
)
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import clips, video_checks
from lmms_eval_tasks.utils.media.video_checks import bad_items, listed, missing_videos, stop
from lmms_eval_tasks.utils.released_files import DataStatus, Seen

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
# What of the movie a segment has to name; the site's file does not.
_FIELDS = {
    "scenes": "movieId, movieStartTime and movieEndTime (seconds in the movie)",
    "movie": "movieId",
}


class Condition(NamedTuple):
    """What of the source reaches the model (5.2)."""

    title: str
    picture: bool
    dialogue: bool


# By the slug in task names; the default has none.
CONDITIONS = {
    "": Condition("both", picture=True, dialogue=True),
    "frames": Condition("only frames", picture=True, dialogue=False),
    "dialogue": Condition("only dialogue", picture=False, dialogue=True),
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
_VALUES = {"facts": (ALL, ALIGNED), "dialogue": (GIVEN, NONE)}
BOTH_READINGS = "both readings of their indexes (from 0, from 1)"


class Options(NamedTuple):
    """What the judge is shown beside question and claims (`--movierecapsqa NAME=VALUE,...`).

    The authors' released code shows a question's own facts and no dialogue; the published scores
    were not made so: answers that rest on the dialogue alone have high ones.

    Attributes:
        facts: `all` of the segment's, or those that are `aligned` with the question.
        dialogue: the segment's, as `given`, or `none`.
    """

    facts: str = ALL
    dialogue: str = GIVEN


def options() -> Options:
    """The user's choice.

    Raises:
        TasksError: an option is unknown, given twice, or has another value.
    """
    return Options(**settings.chosen(settings.MOVIERECAPSQA, _VALUES))


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


def asked(release: Release) -> list[Segment]:
    """The good segments that have questions."""
    return [segment for segment in release.segments if segment.questions]


def held(release: Release, source: str, only: Collection[str] | None = None) -> Held:
    """Look for a visual source of all good segments that have questions.

    A window that ends a rounded second after its video ends with it.
    """
    wanted = {segment.id: _wanted(release, segment, source) for segment in asked(release)}
    paths = {one[0] for one in wanted.values() if not isinstance(one, str)}
    # As they are handed over (resolved), so that a whole movie is listed once in a process.
    resolved = {str(path): released_files.real(path) for path in sorted(paths)}
    infos, troubles = video_checks.look(resolved, only)
    ends = {path: infos[path].end if path in infos else math.inf for path in resolved}
    result = Held({}, {}, {})
    for name, one in wanted.items():
        if isinstance(one, str):
            result.absent[name] = one
            continue
        path, start, end = one
        if why := troubles.get(str(path)):
            result.absent[name] = why
        elif why := video_checks.outside(start, end, ends[str(path)]):
            result.bad[name] = why
        else:
            last = None if end is None else min(end, ends[str(path)])
            result.windows[name] = (str(released_files.real(path)), start, last)
    return result


def _wanted(
    release: Release, segment: Segment, source: str
) -> tuple[Path, float | None, float | None] | str:
    """The file and the window that a source shows of a segment, or why there is none."""
    if source in ("segment", "recap"):
        path = release.recap_path(segment)
        return (path, None, None) if source == "recap" else (path, segment.start, segment.end)
    movie = release.movie_path(segment)
    if movie is None:
        return "names no movie (movieId)"
    if source == "movie":
        return movie, None, None
    if segment.movie_start is None:
        return "has no window in the movie (movieStartTime, movieEndTime)"
    return movie, segment.movie_start, segment.movie_end


def _needs(release: Release, source: str) -> str:
    """What a source is read from, for messages: fields only if a segment lacks them."""
    if source not in _FIELDS:
        return "recap videos in recaps/, or beside the data file, named by videoId"
    wanted = (_wanted(release, segment, source) for segment in asked(release))
    lacking = any(isinstance(one, str) for one in wanted)
    fields = f"{_FIELDS[source]} in the data, and " if lacking else ""
    return f"{fields}the movie in movies/, named by movieId"


# --- the check before a run ---------------------------------------------------------------------


@dataclass(frozen=True)
class Checked(Found):
    """The data of a run; `held` is by source, of those that were looked at.

    `options` are what the judge is shown.
    """

    release: Release
    held: Mapping[str, Held]
    options: Options

    def left_out(self, task: str) -> dict[str, str]:
        """Segments whose questions a task leaves out because the user allowed it."""
        told = {**self.release.problems, **unspoken(self.release, self.options, [task])}
        if not shows(task):
            return told
        own = self.held[TASKS[task][0]]
        return {**told, **own.absent, **own.bad}


def unspoken(release: Release, chosen: Options, names: Sequence[str]) -> dict[str, str]:
    """Segments whose dialogue is not at hand, if a task's model or its judge is shown it."""
    told = any(CONDITIONS[TASKS[name][1]].dialogue for name in names)
    return release.without_subtitles if told or chosen.dialogue == GIVEN else {}


def look(
    names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
) -> Checked:
    """The user's data as the tasks need them (Benchmark.look).

    Raises:
        DataError: they are not there (says how to get them) or do not fit the schema; segments are
            bad and `--allow-bad-items` was not given, or a source is not there and
            `--allow-missing-videos` was not given, or nothing is left of one; says all of it.
    """
    place = released_files.required_folder(
        "movierecapsqa",
        "MovieRecapsQA",
        HOW_TO_GET,
        "ROOT/movierecapsqa/segments.json, ROOT/movierecapsqa/recaps/VIDEOID.mp4 and "
        "ROOT/movierecapsqa/movies/MOVIEID.mp4",
    )
    release, chosen = schema.read(place), options()
    shown: dict[str, list[str]] = {}
    for name in names if videos else ():
        if shows(name):
            shown.setdefault(TASKS[name][0], []).append(name)
    total = len(release.segments) + len(release.problems)
    told = bad_items(release.problems, f"of {total} MovieRecapsQA segments cannot be used")
    if not asked(release):
        told.append("its segments have no questions")
    if chosen.facts == ALIGNED and (lacking := without_own(release)):
        told.append(lacking)
    silent = unspoken(release, chosen, names)
    cure = "The addresses are all in data status. Put them there"
    told += missing_videos(silent, "segments have no dialogue at hand", cure)
    if len(silent) == len(release.segments):
        told.append("no segment is left: fetch subtitles (data status lists them)")
    found = {source: held(release, source, only) for source in shown}
    for source, tasks in shown.items():
        needed = f"This source needs {_needs(release, source)}"
        told += _complaints(f"{SOURCES[source]} ({', '.join(tasks)})", needed, found[source])
    stop(release.file, told)
    return Checked(release, release.digest, found, chosen)


def without_own(release: Release) -> str:
    """That questions have no facts of their own, which `facts=aligned` needs; "" if none."""
    lacking = [s.question_id(q) for s, q in release.questions() if q.aligned is None]
    if not lacking:
        return ""
    return (
        f"{settings.MOVIERECAPSQA}=facts={ALIGNED}: {len(lacking)} questions, such as "
        f"{lacking[0]}, have no facts of their own (aligned_fact_ids, alignedFacts or factsUsed)"
    )


def _complaints(what: str, needed: str, found: Held) -> list[str]:
    """What the user has to mend, or to allow, before the tasks of a source can run."""
    windows, absent, bad = found
    total = len(windows) + len(absent) + len(bad)
    if total and not windows:
        return [
            f"none of {total} segments can be shown as the {what}:\n{listed({**absent, **bad})}\n"
            f"{needed}. Tasks that end in _dialogue need no video"
        ]
    return [
        *missing_videos(
            absent,
            f"of {total} segments cannot be shown as the {what}",
            f"{needed}. Put it there",
        ),
        *bad_items(bad, f"of {total} segments are not inside the {what}"),
    ]


# --- docs ---------------------------------------------------------------------------------------


def docs(found: Found, task: str) -> list[dict[str, Any]]:
    """One doc per question of the segments that can be shown, in the file's order.

    `video_path`, `start` and `end` are what is shown, in seconds (None and None is the whole file);
    `n_frames` is what the user asked for, 0 for the clip as a file. With dialogue alone, or where
    no video was looked at, nothing is shown: the path is "". `lure`, for scripted models as
    `references` is, answers another segment's question: of this one it would be true.
    """
    known = cast(Checked, found)
    source, condition = TASKS[task]
    silent = unspoken(known.release, known.options, [task])
    own = known.held.get(source) if shows(task) else None
    questions = list(known.release.questions())
    answers = [(segment.id, question.reference) for segment, question in questions]
    made = []
    for place, (segment, question) in enumerate(questions):
        if segment.id in silent or (own is not None and segment.id not in own.windows):
            continue
        path, start, end = own.windows[segment.id] if own else ("", None, None)
        made.append(
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
                "aligned": list(question.aligned or ()),
                "dialogue": segment.dialogue,
                "shown": known.options._asdict(),
                "modality": question.modality or UNLABELLED,
                "category": question.category or UNLABELLED,
                "data": known.digest,
                "judged_baselines": list(settings.value(settings.BASELINES)),
                "source": source,
                "condition": condition,
                "video_path": path,
                "start": start,
                "end": end,
                "n_frames": settings.frames_for(segment.video, default=0) if own else 0,
            }
        )
    return made


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


def cut(doc: Doc) -> Cut | None:
    """The clip of a doc, or its frames; None with dialogue alone."""
    if not doc["video_path"]:
        return None
    window = (doc["video_path"], doc["start"], doc["end"], doc["n_frames"])
    return Cut(doc["segment"], window, functools.partial(clips.make, *window))


# --- the user's data ------------------------------------------------------------------------------


def status(root: Path) -> DataStatus:
    """Look at MovieRecapsQA's data under a data root, without raising."""
    return released_files.status("movierecapsqa", root, HOW_TO_GET, _seen)


def _seen(place: Path) -> Seen:
    release = schema.read(place)
    videos = {name: released_files.real(path) for name, path in _videos(release).items()}
    found, problems = video_checks.look(videos)
    return Seen(release.file, release.digest, release.counts, len(found), problems, _notes(release))


def _videos(release: Release) -> dict[str, Path]:
    """Recap videos by their id, and movies by "ID (movie)", where they are or would be."""
    paths = {segment.video: release.recap_path(segment) for segment in release.segments}
    for segment in release.segments:
        if (path := release.movie_path(segment)) is not None:
            paths[f"{segment.movie_id} (movie)"] = path
    return paths


def _notes(release: Release) -> Iterator[str]:
    if release.tables:
        parts = [f"{release.counts[name]:,} of {n:,} {name}" for name, n in RELEASED_COUNTS.items()]
        yield f"{', '.join(parts)} of the released tables"
        yield "recap videos: https://www.youtube.com/watch?v=VIDEOID, to recaps/VIDEOID.mp4"
    else:
        yield released_files.compared(release.counts, PAPER_COUNTS)
    for one in release.subtitles.values():
        if one.path is None:
            yield f"to fetch: {one.name}, the subtitles of {one.movie!r}: {one.url}"
    questions = {segment.id: len(segment.questions) for segment in asked(release)}
    total = f"of {len(questions):,} segments, {{:,}} of {sum(questions.values()):,} questions"
    for source, title in SOURCES.items():
        own = held(release, source)
        shown = total.format(sum(questions[name] for name in own.windows))
        line = f"movierecapsqa_{source} ({title}): can be run for {len(own.windows):,} {shown}"
        yield line if own.windows else f"{line}; not held, it needs {_needs(release, source)}"
        for name, why in own.bad.items():
            yield f"{name}: {title}: {why}"
    yield "tasks that end in _dialogue need no video"
    unknown = release.without_subtitles
    if silent := sum(not one.dialogue and one.id not in unknown for one in release.segments):
        yield f"segments without dialogue: {silent:,} (the prompt says so)"
    for split in SPLITS:
        unlabelled = sum(not getattr(question, split) for _, question in release.questions())
        if unlabelled:
            yield f"questions without a {split}: {unlabelled:,} (a row of their own)"
    for name, why in release.problems.items():
        yield f"{name}: {why}"


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a data file and put it, and those of its videos that are there, under the data root.

    Args:
        source: the data file, or its or the tables' folder; recap videos beside it or in recaps/,
            movies in movies/, subtitles in subtitles/. Other files there are left alone.
        root: the data root.
        link: link instead of copying.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
    """
    release = schema.read(source.expanduser().resolve())
    target = root / "movierecapsqa"
    places = {f"{name}{path.suffix}": path for name, path in release.tables.items()}
    places = places or {schema.FILE_NAMES[0]: release.file}
    if release.labels is not None:
        places[release.labels.name] = release.labels
    fixed = list(places)
    for one in release.subtitles.values():
        if one.path is not None:
            places[f"subtitles/{one.path.name}"] = one.path
    for path in _videos(release).values():
        if path.is_file():
            folder = "movies" if path.parent == release.folder / "movies" else "recaps"
            places[f"{folder}/{path.name}"] = path
    done = released_files.place(target, places, link, fixed=fixed)
    placed = _check_placed(release, target)
    return "\n".join(
        [
            f"{done}: {len(release.segments)} segments, {release.counts['questions']} questions; "
            f"{len(release.problems)} segments with problems",
            *_notes(placed),
        ]
    )


def _check_placed(release: Release, target: Path) -> Release:
    """The data read again from their place: nothing that lies there may change what they say.

    Raises:
        DataError: something does.
    """
    placed = schema.read(target)
    if placed.digest != release.digest:
        raise DataError(
            f"{placed.file}: is read as other data than {release.file}; remove {target} first"
        )
    there = _videos(placed)
    released_files.check_placed((there[name], path) for name, path in _videos(release).items())
    return placed
