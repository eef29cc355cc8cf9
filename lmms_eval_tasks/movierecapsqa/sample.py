"""The packaged sample in the released layout: two movies and their recaps, five segments, a key.

    movierecapsqa/segments.json  as released, with our additions (entry.py): windows in the movie,
                                 modality and category labels, several people's answers
    movierecapsqa/recaps/        recap-lantern.mp4, recap-stones.mp4: 320 x 240, 10 frames a second,
                                 without sound
    movierecapsqa/movies/        lantern-bridge.mp4, three-stones.mp4: the same with a tone
    movierecapsqa/key.json       {"answers": {question: reference},
                                  "lures": {question: false answer}}
    movierecapsqa/replay.jsonl   what a judge would reply that sees how the answers were built
                                 (sample_answers.py), for `--judge replay:FILE`

Every second of every video has its own colours, and in the movies its own tone (sample_code.py).
The key is for the demo's oracle and for tests; no task reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmms_eval_tasks.movierecapsqa import sample_answers, sample_draw, sample_texts
from lmms_eval_tasks.movierecapsqa.answer_judging import Context
from lmms_eval_tasks.movierecapsqa.entry import Segment
from lmms_eval_tasks.movierecapsqa.labels import SPLITS
from lmms_eval_tasks.movierecapsqa.sample_scenes import STORIES, Story
from lmms_eval_tasks.movierecapsqa.sample_texts import Asked, Part
from lmms_eval_tasks.sample import render
from lmms_eval_tasks.sample.second_code import AAC, TICKS, X264

# They decide the sample too: what recordings look like, how texts are cleaned, names of labels.
ALSO = ("answer_judging.py", "bounds.py", "entry.py", "judge.py", "labels.py")
# How each segment's subtitles are written; the release has no counters.
STYLES = ("plain", "marked", "none", "windows", "counted")


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a video cannot be encoded.
    """
    (folder / "recaps").mkdir()
    (folder / "movies").mkdir()
    for story in STORIES:
        write_video(story, story.video, folder / "recaps" / f"{story.video}.mp4")
        write_video(story, story.movie_id, folder / "movies" / f"{story.movie_id}.mp4")
    _write(folder / "segments.json", _indented(segments()))
    _write(folder / "key.json", _indented(key()))
    lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in replay())
    _write(folder / "replay.jsonl", "".join(lines))


def write_video(story: Story, name: str, path: Path) -> None:
    """Draw and encode a movie with its sound, or a recap, which has none."""
    sound = sample_draw.sound(name) if name == story.movie_id else None
    render.write_mp4(
        path,
        sample_draw.frames(story, name),
        TICKS,
        sound,
        sample_draw.RATE,
        picture_options=X264,
        sound_options=AAC,
    )


def segments() -> list[dict[str, Any]]:
    """The data file: every form that the release has, and those that our schema adds."""
    found: list[dict[str, Any]] = []
    asked = 0
    for place, part in enumerate(sample_texts.parts()):
        questions = [
            _question(asked + qid, qid, one, sample_texts.lure(place))
            for qid, one in enumerate(part.questions)
        ]
        asked += len(questions)
        found.append(
            {
                "id": part.id,
                "movie": part.story.movie,
                "videoId": part.story.video,
                "startTime": part.scene.recap[0],
                "endTime": part.scene.recap[1],
                "movieId": part.story.movie_id,
                "movieStartTime": part.scene.movie[0],
                "movieEndTime": part.scene.movie[1],
                "facts": [
                    f"{number}. {fact}" if place % 2 == 0 else fact
                    for number, (_, fact) in enumerate(part.facts, 1)
                ],
                "srt": subtitles(part, STYLES[place]),
                "questions": questions,
            }
        )
    return found


def key() -> dict[str, dict[str, str]]:
    """What is right and what looks right, by question."""
    asked = [one for part in sample_texts.parts() for one in part.questions]
    return {
        "answers": {one.question: one.reference for one in asked},
        "lures": {one.question: one.wrong for one in asked},
    }


def replay() -> Iterator[dict[str, Any]]:
    """Recorded replies (judges/replay.py) about all answers that the sample knows."""
    entries = segments()
    for place, part in enumerate(sample_texts.parts()):
        segment = Segment.model_validate(entries[place])
        context = Context(segment.id, segment.facts, segment.dialogue)
        for one in part.questions:
            yield from sample_answers.recordings(context, one, sample_texts.lure(place))


def subtitles(part: Part, style: str) -> str:
    """A segment's dialogue as SubRip, in the movie's time, in one of STYLES."""
    start, end = part.scene.movie
    blocks = []
    for number, line in enumerate(part.dialogue, 1):
        times = (_clock(start + share * (end - start)) for share in (line.start, line.end))
        timing = " --> ".join(times)
        counter = "" if style == "plain" else f"{number}\n"
        blank = "" if style == "plain" else "\n"
        blocks.append(f"{counter}{timing}\n{line.text}\n{blank}")
    text = "".join(blocks)
    if style == "marked":
        return f"\ufeff{text}"
    return text.replace("\n", "\r\n") if style == "windows" else text


def _question(number: int, qid: int, one: Asked, lure: str) -> dict[str, Any]:
    """Question `number` of all; every other one counts facts from 1 and spells labels out."""
    spelled = bool(number % 2)
    labels = {"modality": one.modality, "category": one.category.upper()}
    if spelled and one.category:
        titles = {"modality": one.modality, "category": one.category}
        labels = {split: SPLITS[split][slug] for split, slug in titles.items()}
    return {
        "qid": qid,
        "factsUsed": [fact - (not spelled) for fact in one.facts],
        "question": one.question,
        "datasetAnswer": one.reference,
        **sample_answers.said(number, one, lure),
        **(labels if one.category else {}),
    }


def _clock(seconds: float) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"00:{whole // 60:02}:{whole % 60:02},{milliseconds:03}"


def _indented(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
