"""The packaged sample in the released layout: two movies and their recaps, five segments.

    movierecapsqa/segments.json  as released, with our additions (schema.py): windows in the movie,
                                 modality and category labels, several people's answers
    movierecapsqa/recaps/        recap-lantern.mp4, recap-stones.mp4: 320 x 240, 10 frames a second,
                                 without sound
    movierecapsqa/movies/        lantern-bridge.mp4, three-stones.mp4: the same with a tone
    movierecapsqa/replay.jsonl   what a judge would reply that sees how the answers were built,
                                 for `--judge replay:FILE`

What happens, is said and is asked stands in sample_story_yaml. A segment is one scene, acted once
in the movie and again, faster, in the recap; between scenes the stage is empty. Answers of people
and of two invented models are lists of claims, one sentence each, and every claim has its labels
because it was built with them: from the right answer, from the false one, from something that
nobody can check. The recorded judge shows that scores follow from labels, and nothing about a
judge.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lmms_eval_tasks.movierecapsqa import judge
from lmms_eval_tasks.movierecapsqa.data import CONDITIONS, task_name
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, HIGHEST, Context
from lmms_eval_tasks.movierecapsqa.schema import SPLITS, Segment
from lmms_eval_tasks.sample import scenes
from lmms_eval_tasks.sample.players import Chance, Played
from lmms_eval_tasks.sample.render import Clip, Tone
from lmms_eval_tasks.sample.scenes import Actor
from lmms_eval_tasks.sample.second_code import TICKS
from lmms_eval_tasks.utils.media.subtitles import clock

# They decide the sample too: what recordings look like, how texts are cleaned, names of labels.
ALSO = ("judge.py", "schema.py")
SIZE = (320, 240)
HERTZ, RATE = 440, 44_100  # of the movies' sound; samples a second
SKIES = {"bright": (190, 210, 225), "dark": (20, 24, 70), "orange": (252, 200, 150)}
CURTAIN = (66, 66, 72)  # between scenes
STAR_Y, STAR_HALF = 68, 7  # pixels
# How each segment's subtitles are written; the release has no counters.
STYLES = ("plain", "marked", "none", "windows", "counted")
MODALITIES = {("seen",): "vision", ("said",): "dialogue"}  # of a question, by its facts' kinds

_TASKS = tuple(task_name("segment", slug) for slug in CONDITIONS)
_BEST = {"rouge_l": 1.0, **{f"{name}_valid": float(HIGHEST) for name in DIMENSIONS}}
PLAYED = Played(
    tasks=("movierecapsqa",),
    oracle=dict.fromkeys(_TASKS, _BEST),
    coin=(
        Chance(
            "answers",
            _TASKS,
            lambda item: item["dimensions"]["factuality"]["score"] / HIGHEST,
            lambda _: 0.5,
        ),
    ),
    headline=(_TASKS[0], "factuality_valid"),
)


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
    """A segment."""

    id: str
    movie: str  # of a story, its key
    story: dict[str, Any]
    scene: dict[str, Any]
    facts: tuple[tuple[str, str], ...]  # kind (seen, said, both) and text
    questions: tuple[Asked, ...]


@functools.cache
def stories() -> dict[str, Any]:
    """Both movies, by the name of the file."""
    found: dict[str, Any] = scenes.load(__file__, "sample_story_yaml")
    return found


@functools.cache
def parts() -> tuple[Part, ...]:
    """All segments of both movies.

    Raises:
        ValueError: an answer has no choice or more than one.
    """
    return tuple(
        _part(movie, story, number, scene)
        for movie, story in stories().items()
        for number, scene in enumerate(story["scenes"], 1)
    )


def _part(movie: str, story: dict[str, Any], number: int, scene: dict[str, Any]) -> Part:
    facts = [(kind, text) for one in scene["facts"] for kind, text in one.items()]
    asked = []
    for told in scene["questions"]:
        answer, wrong = scenes.chosen(told["answer"])
        kinds = tuple(sorted({facts[fact - 1][0] for fact in told["facts"]}))
        category = told.get("category", "")
        modality = MODALITIES.get(kinds, "multimodal") if category else ""
        texts = (tuple(told["facts"]), tuple(answer), wrong, told.get("partly", ""))
        asked.append(Asked(told["ask"], modality, category, *texts))
    return Part(f"{story['video']}.{number}", movie, story, scene, tuple(facts), tuple(asked))


def lure(number: int) -> str:
    """What answers a question of another segment, in place of those of segment `number`."""
    every = parts()
    return every[(number + 1) % len(every)].questions[0].reference


# --- the videos -----------------------------------------------------------------------------------


def videos() -> dict[str, Clip]:
    """The recaps, and the movies, which hum throughout."""
    found = {}
    for movie, story in stories().items():
        for kind, name in (("movie", movie), ("recap", story["video"])):
            seconds = story[f"{kind}_seconds"]
            actors = [actor for scene in story["scenes"] for actor in _acted(scene, scene[kind])]
            hum = [Tone(0, seconds, HERTZ)] if kind == "movie" else []
            made = scenes.clip(actors, SIZE, CURTAIN, TICKS, seconds, tones=hum, rate=RATE)
            found[f"{kind}s/{name}.mp4"] = made
    return found


def _acted(scene: dict[str, Any], window: Sequence[float]) -> Iterator[Actor]:
    """Sky, stars and actors of a scene that is acted in a window of a video, in seconds."""
    start, end = window
    (width, height), stars = SIZE, scene.get("stars", 0)

    def at(share: float) -> float:
        return min(start + share * (end - start), end)

    middle = [[0.0, width / 2, height / 2]]
    sky = SKIES[scene["sky"]]
    yield Actor("square", sky, middle, (width / 2, height / 2), (start, end))
    for number in range(1, stars + 1):
        place = [[0.0, width * number / (stars + 1), STAR_Y]]
        yield Actor("circle", "white", place, STAR_HALF, (start, end))
    for told in scene["actors"].values():
        shown = told.get("shown", (0.0, 1.0))
        path = [(start + share * (end - start), x, y) for share, x, y in told["path"]]
        seen = {"path": path, "shown": (at(shown[0]), at(shown[1]))}
        yield Actor(**{"half": 16, **told, **seen})


# --- the data file --------------------------------------------------------------------------------


def files() -> dict[str, Any]:
    """All other files."""
    return {"segments.json": segments(), "replay.jsonl": replay()}


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
                "movie": part.story["movie"],
                "videoId": part.story["video"],
                **dict(zip(("startTime", "endTime"), part.scene["recap"], strict=True)),
                "movieId": part.movie,
                **dict(zip(("movieStartTime", "movieEndTime"), part.scene["movie"], strict=True)),
                "facts": [
                    f"{number}. {fact}" if place % 2 == 0 else fact
                    for number, (_, fact) in enumerate(part.facts, 1)
                ],
                "srt": subtitles(part, STYLES[place]),
                "questions": questions,
            }
        )
    return found


def subtitles(part: Part, style: str) -> str:
    """A segment's dialogue as SubRip, in the movie's time, in one of STYLES."""
    start, end = part.scene["movie"]
    blocks = []
    for number, line in enumerate(part.scene["dialogue"], 1):
        times = (clock(start + line[share] * (end - start)) for share in ("start", "end"))
        counter, blank = ("", "") if style == "plain" else (f"{number}\n", "\n")
        blocks.append(f"{counter}{' --> '.join(times)}\n{line['text']}\n{blank}")
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


# --- answers whose worth is known -----------------------------------------------------------------

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
    "invented_careful.response": ["right", "padded", "right", "twice", "partly", "dreamy"],
    "invented_hasty.response": [
        *("wrong", "torn", "empty", "lure", "right", "refused", "wrong", "idle")
    ],
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
    alone = {"humanAnswer": people[0] if people else None}
    humans = {"humanAnswers": people} if len(people) > 1 else alone
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


def replay() -> Iterator[dict[str, Any]]:
    """Recorded replies (judges/providers/replay.py) about all answers that the sample knows."""
    for place, (part, entry) in enumerate(zip(parts(), segments(), strict=True)):
        segment = Segment.model_validate(entry)
        context = Context(segment.id, segment.facts, segment.dialogue)
        for one in part.questions:
            yield from recordings(context, one, lure(place))


def recordings(context: Context, one: Asked, lure: str) -> Iterator[dict[str, Any]]:
    """Lines for the judge `replay` about every answer that was built to a question."""

    def line(criterion: str, fields: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        return {"criterion": criterion, "fields": fields, "reply": json.dumps(reply)}

    asked = {"question": one.question}
    for kind in ("refused", "idle"):
        yield line(judge.CLAIMS, {**asked, "candidate": NO_CLAIMS[kind]}, {"claims": []})
    for claims in dict.fromkeys(replies(one, lure).values()):
        found = [claim.text for claim in claims]
        yield line(judge.CLAIMS, {**asked, "candidate": text(claims)}, {"claims": found})
        for name in DIMENSIONS:
            told = [{"id": n, "label": label} for n, label in enumerate(labels(name, claims), 1)]
            why = "known by construction"
            rated = {"labels": told, "reason": why, "score": score(name, claims)}
            yield line(judge.LABELS, judge.asked(context, name, one.question, found), rated)
