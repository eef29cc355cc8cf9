"""The packaged sample in the released layout: two movies and their recaps, five segments, a key.

    movierecapsqa/segments.json  as released, with our additions (schema.py): windows in the movie,
                                 modality and category labels, several people's answers
    movierecapsqa/recaps/        recap-lantern.mp4, recap-stones.mp4: 320 x 240, 10 frames a second,
                                 without sound
    movierecapsqa/movies/        lantern-bridge.mp4, three-stones.mp4: the same with a tone
    movierecapsqa/key.json       {"answers": {question: reference},
                                  "lures": {question: false answer}}
    movierecapsqa/replay.jsonl   what a judge would reply that sees how the answers were built,
                                 for `--judge replay:FILE`

The sentences are templates (sample_story_yaml); what is to be seen comes from the scene that the
picture is drawn from (sample_scenes.py), so that a fact is true because it is asked of the same
fields. Answers of people and of two invented models are lists of claims, one sentence each, and
every claim has its labels because it was built with them: from the right answer, from the false
one, from something that nobody can check. The recorded judge shows that scores follow from labels,
and nothing about a judge. The key is for the demo's oracle and for tests; no task reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.movierecapsqa import judge, sample_scenes
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, Context
from lmms_eval_tasks.movierecapsqa.sample_scenes import Scene, Story
from lmms_eval_tasks.movierecapsqa.schema import SPLITS, Segment
from lmms_eval_tasks.sample import render
from lmms_eval_tasks.sample.second_code import AAC, TICKS, X264
from lmms_eval_tasks.utils.json_files import write_json, write_lines
from lmms_eval_tasks.utils.media.subtitles import clock

# They decide the sample too: what recordings look like, how texts are cleaned, names of labels.
ALSO = ("judge.py", "schema.py")
HERTZ, RATE = 440, 44_100  # of the movies' sound; samples a second
# How each segment's subtitles are written; the release has no counters.
STYLES = ("plain", "marked", "none", "windows", "counted")


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a video cannot be encoded.
    """
    (folder / "recaps").mkdir()
    (folder / "movies").mkdir()
    for story in sample_scenes.stories():
        write_video(story, story.video, folder / "recaps" / f"{story.video}.mp4")
        write_video(story, story.movie_id, folder / "movies" / f"{story.movie_id}.mp4")
    write_json(folder / "segments.json", segments())
    write_json(folder / "key.json", key())
    write_lines(folder / "replay.jsonl", replay())


def write_video(story: Story, name: str, path: Path) -> None:
    """Draw and encode a movie, which hums throughout, or a recap, which has no sound."""
    sound = None
    if name == story.movie_id:
        hum = render.Tone(0, story.movie_seconds, HERTZ)
        sound = render.soundtrack([hum], story.movie_seconds, RATE)
    frames = sample_scenes.frames(story, name)
    render.write_mp4(path, frames, TICKS, sound, RATE, picture_options=X264, sound_options=AAC)


def segments() -> list[dict[str, Any]]:
    """The data file: every form that the release has, and those that our schema adds."""
    found: list[dict[str, Any]] = []
    asked = 0
    for place, part in enumerate(parts()):
        questions = [
            _question(asked + qid, qid, one, lure(place)) for qid, one in enumerate(part.questions)
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
    asked = [one for part in parts() for one in part.questions]
    return {
        "answers": {one.question: one.reference for one in asked},
        "lures": {one.question: one.wrong for one in asked},
    }


def replay() -> Iterator[dict[str, Any]]:
    """Recorded replies (judges/providers/replay.py) about all answers that the sample knows."""
    entries = segments()
    for place, part in enumerate(parts()):
        segment = Segment.model_validate(entries[place])
        context = Context(segment.id, segment.facts, segment.dialogue)
        for one in part.questions:
            yield from recordings(context, one, lure(place))


def subtitles(part: Part, style: str) -> str:
    """A segment's dialogue as SubRip, in the movie's time, in one of STYLES."""
    start, end = part.scene.movie
    blocks = []
    for number, line in enumerate(part.dialogue, 1):
        times = (clock(start + share * (end - start)) for share in (line.start, line.end))
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
        **said(number, one, lure),
        **(labels if one.category else {}),
    }


# --- dialogue, facts and questions --------------------------------------------------------------

MODALITIES = {("seen",): "vision", ("said",): "dialogue"}  # of a question, by its facts' kinds

_ALTERNATIVES = re.compile(r"\[([^][|]*)\|([^][|]*)\]")


class Line(NamedTuple):
    """A line of dialogue; start and end are shares of its scene."""

    start: float
    end: float
    text: str


class Asked(NamedTuple):
    """One question. `wrong` is an answer that is false; `partly` one that is half true, or ""."""

    question: str
    modality: str  # of schema.SPLITS, "" if unlabelled
    category: str
    facts: tuple[int, ...]  # numbers of the facts that it rests on, from 1 on
    answer: tuple[str, ...]  # its sentences
    wrong: str
    partly: str

    @property
    def reference(self) -> str:
        """The right answer."""
        return " ".join(self.answer)


class Part(NamedTuple):
    """A segment: a scene with its texts."""

    id: str
    story: Story
    scene: Scene
    dialogue: tuple[Line, ...]
    facts: tuple[tuple[str, str], ...]  # kind (seen, said, both) and text
    questions: tuple[Asked, ...]


@lru_cache(maxsize=1)
def parts() -> tuple[Part, ...]:
    """All segments of both movies.

    Raises:
        KeyError, ValueError: a template names an unknown slot, has no choice or more than one.
    """
    return tuple(part for story in sample_scenes.stories() for part in _parts(story))


def lure(number: int) -> str:
    """What answers a question of another segment, in place of those of segment `number`."""
    every = parts()
    return every[(number + 1) % len(every)].questions[0].reference


def _parts(story: Story) -> Iterator[Part]:
    for number, (scene, entry) in enumerate(zip(story.scenes, story.texts, strict=True), 1):
        words = scene.words()
        facts = [
            (kind, text.format_map(words)) for one in entry["facts"] for kind, text in one.items()
        ]
        asked = (_asked(one, [kind for kind, _ in facts], words) for one in entry["questions"])
        lines = (Line(**line) for line in entry["dialogue"])
        name = f"{story.video}.{number}"
        yield Part(name, story, scene, tuple(lines), tuple(facts), tuple(asked))


def _asked(entry: dict[str, Any], kinds: Sequence[str], words: dict[str, str]) -> Asked:
    question = entry["ask"].format_map(words)
    answer = [sentence.format_map(words) for sentence in entry["answer"]]
    choices = [sentence for sentence in answer if _ALTERNATIVES.search(sentence)]
    if len(choices) != 1 or len(_ALTERNATIVES.findall(choices[0])) != 1:
        raise ValueError(f"expected exactly one [true|false] in the answer to: {question}")
    used = tuple(sorted({kinds[number - 1] for number in entry["facts"]}))
    category = entry.get("category", "")
    return Asked(
        question=question,
        modality=MODALITIES.get(used, "multimodal") if category else "",
        category=category,
        facts=tuple(entry["facts"]),
        answer=tuple(_ALTERNATIVES.sub(r"\1", sentence) for sentence in answer),
        wrong=_ALTERNATIVES.sub(r"\2", choices[0]),
        partly=entry.get("partly", "").format_map(words),
    )


# --- answers whose worth is known ---------------------------------------------------------------

# Answers without a claim; the judge is asked about all but the empty one, and finds nothing.
NO_CLAIMS = {
    "empty": "",
    "refused": "I'm sorry, but I can't assist with that.",
    "idle": "What a question!",
}
HUM = "Somebody far away hums a tune."  # in no scene
DREAM = "It all feels like a dream."

# What the two models say, in turn over all questions; kinds of `replies` or of NO_CLAIMS.
MODELS = {
    "invented_careful.response": ("right", "padded", "right", "twice", "partly", "dreamy"),
    "invented_hasty.response": (
        "wrong",
        "torn",
        "empty",
        "lure",
        "right",
        "refused",
        "wrong",
        "idle",
    ),
}
PEOPLE = (("partly", "right"), ("right",), ("padded",), ("right", "torn"), ())  # in turn, too
_PUBLISHED = ("factuality", "relevance")
_PUBLISHED_OFF = 3  # every third published score is one off from what the labels are worth

# A label's part in a score, 0 to 5, before the published rules are kept (judge.bounds). Ours.
_WORTH = {
    **dict.fromkeys(("supported", "relevant", "consistent"), 5),
    **dict.fromkeys(("partially_supported", "partially_relevant", "redundant"), 3),
    **dict.fromkeys(("unsupported", "contradictory", "not_checkable", "irrelevant"), 0),
}


class Claim(NamedTuple):
    """A sentence of an answer with its label in each of judge.DIMENSIONS."""

    text: str
    factuality: str
    relevance: str
    coherence: str = "consistent"


def replies(one: Asked, lure: str) -> dict[str, tuple[Claim, ...]]:
    """Answers to a question by their kind; `partly` is as `right` where there is no such text.

    Args:
        one: the question.
        lure: an answer to a question of another segment.
    """
    right = tuple(Claim(sentence, "supported", "relevant") for sentence in one.answer)
    again = right[0]._replace(coherence="redundant")
    wrong = Claim(one.wrong, "contradictory", "relevant")
    partly = (Claim(one.partly, "partially_supported", "relevant"),) if one.partly else right
    return {
        "right": right,
        "wrong": (wrong,),
        "partly": partly,
        "twice": (*right, again),
        "torn": (*right, wrong._replace(coherence="contradictory")),
        "padded": (*right, Claim(HUM, "unsupported", "irrelevant")),
        "dreamy": (*right, Claim(DREAM, "not_checkable", "irrelevant")),
        "lure": (Claim(lure, "unsupported", "irrelevant"),),
    }


def text(claims: Sequence[Claim]) -> str:
    """The answer."""
    return " ".join(claim.text for claim in claims)


def labels(dimension: str, claims: Sequence[Claim]) -> list[str]:
    """The claims' labels in one of judge.DIMENSIONS."""
    return [getattr(claim, dimension) for claim in claims]


def score(dimension: str, claims: Sequence[Claim]) -> int:
    """The score, 0 to 5, of the recorded judge: what the labels are worth, inside the bounds."""
    found = labels(dimension, claims)
    low, high = judge.bounds(dimension, found)
    worth = [_WORTH[one] for one in found]
    mean = (2 * sum(worth) + len(worth)) // (2 * len(worth))  # halves up
    return min(max(mean, low), high)


def said(number: int, one: Asked, lure: str) -> dict[str, Any]:
    """The answers of people and models to question `number` (from 0 on), in the released form."""
    known = replies(one, lure)
    people = [_answer(known, kind, number) for kind in PEOPLE[number % len(PEOPLE)]]
    models = [
        {"model": model, **_answer(known, kinds[number % len(kinds)], number + place)}
        for place, (model, kinds) in enumerate(MODELS.items())
    ]
    several = len(people) > 1
    one_or_none = people[0] if people and not several else None
    humans = {"humanAnswers": people} if several else {"humanAnswer": one_or_none}
    return {**humans, "modelAnswers": models}


def _answer(known: dict[str, tuple[Claim, ...]], kind: str, number: int) -> dict[str, Any]:
    """An answer with its published scores; as in the release an empty one has none."""
    if kind == "empty":
        return {"answer": ""}
    if kind in NO_CLAIMS:
        return {"answer": NO_CLAIMS[kind], "scores": {"factuality": 0, "relevance": 0}}
    scores = {name: score(name, known[kind]) for name in _PUBLISHED}
    for place, name in enumerate(_PUBLISHED):
        if number % _PUBLISHED_OFF == place:
            scores[name] += -1 if scores[name] > 2 else 1
    return {"answer": text(known[kind]), "scores": scores}


def recordings(context: Context, one: Asked, lure: str) -> Iterator[dict[str, Any]]:
    """Lines for the judge `replay` about every answer that was built to a question."""
    for kind in ("refused", "idle"):
        idle = {"question": one.question, "candidate": NO_CLAIMS[kind]}
        yield {"criterion": judge.CLAIMS, "fields": idle, "reply": json.dumps({"claims": []})}
    for claims in dict.fromkeys(replies(one, lure).values()):
        found = [claim.text for claim in claims]
        fields = {"question": one.question, "candidate": text(claims)}
        yield {"criterion": judge.CLAIMS, "fields": fields, "reply": json.dumps({"claims": found})}
        for name in DIMENSIONS:
            reply = {
                "labels": [
                    {"id": number, "label": label}
                    for number, label in enumerate(labels(name, claims), 1)
                ],
                "reason": "known by construction",
                "score": score(name, claims),
            }
            yield {
                "criterion": judge.LABELS,
                "fields": judge.asked(context, name, one.question, found),
                "reply": json.dumps(reply),
            }
