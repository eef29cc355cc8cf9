"""The packaged sample in the released layout: two movies and their recaps, five segments.

    movierecapsqa/segments.json  as released, with our additions (release.py): windows in the movie,
                                 modality and category labels
    movierecapsqa/recaps/        recap-lantern.mp4, recap-stones.mp4: 320 x 240, 10 frames a second,
                                 without sound
    movierecapsqa/movies/        lantern-bridge.mp4, three-stones.mp4: the same with a tone
    movierecapsqa/replay.jsonl   a judge's replies about the right answer to each question and
                                 about another segment's answer, for `--judge replay:FILE`

The story, the dialogue and the questions are in sample_story_yaml. A segment is one scene. It is
acted once in the movie and again, faster, in the recap; between scenes the stage is empty. The
recorded judge shows that scores follow from replies, and says nothing about a judge.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

from typing_extensions import NotRequired

from lmms_eval_tasks.models.fake_replies import Chance, Played
from lmms_eval_tasks.movierecapsqa import judge
from lmms_eval_tasks.movierecapsqa.data import CONDITIONS, task_name
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, HIGHEST, SegmentContext
from lmms_eval_tasks.movierecapsqa.release import SPLITS, Segment
from lmms_eval_tasks.sample import scenes
from lmms_eval_tasks.sample.render import Clip, Tone
from lmms_eval_tasks.sample.scenes import Actor
from lmms_eval_tasks.utils.media.second_code import TICKS
from lmms_eval_tasks.utils.media.subtitles import clock

SIZE = (320, 240)
HERTZ, RATE = 440, 44_100  # tone of the movies in Hz, and samples a second
SKIES = {"bright": (190, 210, 225), "dark": (20, 24, 70), "orange": (252, 200, 150)}
CURTAIN = (66, 66, 72)  # colour between scenes
STAR_Y, STAR_HALF = 68, 7  # pixels
# The form of each segment's subtitles; the release has no counters.
STYLES = ("plain", "marked", "none", "windows", "counted")
# Label of a question, by the kind of its facts.
MODALITIES = {"seen": "vision", "said": "dialogue", "both": "multimodal"}

_TASKS = tuple(task_name("segment", slug) for slug in CONDITIONS)
_BEST = {"rouge_l": 1.0, **{f"{name}_valid": float(HIGHEST) for name in DIMENSIONS}}
PLAYED = Played(
    tasks=("movierecapsqa",),
    expected=dict.fromkeys(_TASKS, _BEST),
    chances=(
        Chance(
            "answers",
            _TASKS,
            lambda item: item["dimensions"]["factuality"]["score"] / HIGHEST,
            lambda _: 0.5,
        ),
    ),
    headline=(_TASKS[0], "factuality_valid"),
)


class DialogueLine(TypedDict):
    """A line of dialogue; `start` and `end` are shares of the scene's length."""

    start: float
    end: float
    text: str


class SceneQuestion(TypedDict):
    """A question about a scene."""

    ask: str
    answer: str
    facts: Sequence[int]  # numbers of the facts that the answer rests on, from 1
    category: NotRequired[str]


class RecapScene(TypedDict):
    """The content of a segment (sample_story_yaml explains the fields)."""

    movie: tuple[float, float]  # start and end in the movie, in seconds
    recap: tuple[float, float]
    sky: str
    stars: NotRequired[int]
    actors: Mapping[str, Mapping[str, Any]]  # fields of scenes.Actor
    dialogue: Sequence[DialogueLine]
    facts: Sequence[Mapping[str, str]]  # kind -> text
    questions: Sequence[SceneQuestion]


class RecapStory(TypedDict):
    """A movie and its recap."""

    movie: str
    video: str
    movie_seconds: float
    recap_seconds: float
    scenes: Sequence[RecapScene]


@functools.cache
def stories() -> dict[str, RecapStory]:
    """Return both movies with their recaps, by the name of the movie's file."""
    stored_stories: dict[str, RecapStory] = scenes.load_scenes(__file__, "sample_story_yaml")
    return stored_stories


# --- the videos -----------------------------------------------------------------------------------


def sample_videos() -> dict[str, Clip]:
    """Return the recaps and the movies, by path; movies have a tone throughout."""
    found = {}
    for movie, story in stories().items():
        for kind, name in (("movie", movie), ("recap", story["video"])):
            is_movie = kind == "movie"
            seconds = story["movie_seconds" if is_movie else "recap_seconds"]
            own = ((scene, scene["movie" if is_movie else "recap"]) for scene in story["scenes"])
            actors = [actor for scene, window in own for actor in _acted(scene, window)]
            hum = [Tone(0, seconds, HERTZ)] if is_movie else []
            made = scenes.clip(actors, SIZE, CURTAIN, TICKS, seconds, tones=hum, rate=RATE)
            found[f"{kind}s/{name}.mp4"] = made
    return found


def _acted(scene: RecapScene, window: Sequence[float]) -> Iterator[Actor]:
    """Yield sky, stars and actors of a scene in a window of a video; the window is in seconds."""
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


def sample_files() -> dict[str, object]:
    """Return all files except the videos, by path."""
    return {"segments.json": segments(), "replay.jsonl": replay()}


def segments() -> list[dict[str, object]]:
    """Return the content of the data file, with every form of the release and our additions."""
    entries: list[dict[str, object]] = []
    n_questions = 0
    numbered_scenes = [
        (movie, story, number, scene)
        for movie, story in stories().items()
        for number, scene in enumerate(story["scenes"], 1)
    ]
    for style, (movie, story, number, scene) in zip(STYLES, numbered_scenes, strict=True):
        facts = [(kind, text) for fact in scene["facts"] for kind, text in fact.items()]
        numbered = len(entries) % 2 == 0
        questions = []
        for qid, question in enumerate(scene["questions"]):
            questions.append(_question(qid, question, facts, spelled=n_questions % 2 == 1))
            n_questions += 1
        entries.append(
            {
                "id": f"{story['video']}.{number}",
                "movie": story["movie"],
                "videoId": story["video"],
                **dict(zip(("startTime", "endTime"), scene["recap"], strict=True)),
                "movieId": movie,
                **dict(zip(("movieStartTime", "movieEndTime"), scene["movie"], strict=True)),
                "facts": [
                    f"{place}. {text}" if numbered else text
                    for place, (_, text) in enumerate(facts, 1)
                ],
                "srt": subtitles(scene, style),
                "questions": questions,
            }
        )
    return entries


def subtitles(scene: RecapScene, style: str) -> str:
    """Return a segment's dialogue as SubRip in the movie's time, in one of STYLES."""
    start, end = scene["movie"]
    blocks = []
    for number, line in enumerate(scene["dialogue"], 1):
        times = (clock(start + line[share] * (end - start)) for share in ("start", "end"))
        counter, blank = ("", "") if style == "plain" else (f"{number}\n", "\n")
        blocks.append(f"{counter}{' --> '.join(times)}\n{line['text']}\n{blank}")
    text = "".join(blocks)
    if style == "marked":
        return f"\ufeff{text}"
    return text.replace("\n", "\r\n") if style == "windows" else text


def _question(
    qid: int, question: SceneQuestion, facts: Sequence[tuple[str, str]], *, spelled: bool
) -> dict[str, object]:
    """Return a question in the file's form; with `spelled`, its labels are titles, else slugs."""
    own = [facts[number - 1] for number in question["facts"]]
    made = {
        "qid": qid,
        "question": question["ask"],
        "datasetAnswer": question["answer"],
        "alignedFacts": [text for _, text in own],
    }
    if "category" not in question:
        return made
    kinds = {kind for kind, _ in own}
    modality = MODALITIES[kinds.pop()] if len(kinds) == 1 else "multimodal"
    labels = {"modality": modality, "category": question["category"]}
    titles = {split: SPLITS[split][slug] for split, slug in labels.items()}
    return made | (titles if spelled else {**labels, "category": question["category"].upper()})


# --- the recorded judge ---------------------------------------------------------------------------


def replay() -> Iterator[dict[str, object]]:
    """Yield recorded replies (judges/providers/replay.py) about right answers and about lures."""

    def line(criterion: str, fields: object, reply: object) -> dict[str, object]:
        return {"criterion": criterion, "fields": fields, "reply": json.dumps(reply)}

    # Without these, the lure would score as well.
    worst = {"factuality": "unsupported", "relevance": "irrelevant"}
    entries = [Segment.model_validate(entry) for entry in segments()]
    for segment, after in zip(entries, [*entries[1:], entries[0]], strict=True):
        context = SegmentContext(segment.id, segment.facts, segment.dialogue)
        for one in segment.questions:
            for claim in (one.reference, after.questions[0].reference):  # the lures of data.py
                fields = {"question": one.question, "candidate": claim}
                yield line(judge.CLAIMS, fields, {"claims": [claim]})
                for name in DIMENSIONS:
                    is_worst = name in worst and claim != one.reference
                    label = worst[name] if is_worst else judge.WORDS[name][0]
                    score = judge.LOWEST if is_worst else HIGHEST
                    told = {
                        "labels": [{"id": 1, "label": label}],
                        "reason": "known by construction",
                    }
                    asked = judge.request_fields(context, name, one.question, [claim])
                    yield line(judge.LABELS, asked, {**told, "score": score})
