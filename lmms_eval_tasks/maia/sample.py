"""MAIA's packaged sample in the released layout: two videos, 48 questions, 384 pairs.

    maia/data.json        as released: 12 categories x (A, B) x 8 answers, true and false statements
    maia/videos/N.mp4     the clip of "videoN"
    maia/replay.jsonl     a judge's replies to the answers in the data and to those of fake models,
                          for `--judge replay:FILE`

The scenes and their words are in sample_scenes_yaml. The sentences are templates for both videos,
in sample_texts_A_yaml and sample_texts_B_yaml. Every question occurs once. No statement is true of
one video and false of the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from lmms_eval_tasks.maia import judge
from lmms_eval_tasks.models.fake_replies import UNKNOWN, Chance, Played
from lmms_eval_tasks.sample import scenes
from lmms_eval_tasks.sample.render import Clip, Tone

SIZE, FPS, AUDIO_RATE = (384, 240), 15, 16_000
# The value of `link`; in the release, this is the video's address.
LINK = "packaged sample of lmms-eval-tasks"

PLAYED = Played(
    tasks=("maia",),
    expected={
        "maia_vsv": {"pair_acc": 1.0, "pool_acc": 1.0},
        "maia_oevqa": {"judge_acc": 1.0},
        "maia": {"agg_acc": 1.0},
    },
    chances=(
        Chance("pairs", ("maia_vsv",), lambda item: item["right"], lambda _: 0.5),
        Chance("answers", ("maia_oevqa",), lambda item: item["right"], lambda _: 0.5),
    ),
    headline=("maia", "agg_acc"),
)


def sample_videos() -> dict[str, Clip]:
    """Return both clips, by path."""
    return {
        f"videos/{scene['video']}.mp4": scenes.clip(
            list(map(scenes.actor, scene["actors"])),
            *(SIZE, scenes.colour(scene["ground"]), FPS, scene["seconds"]),
            tones=[Tone(*tone) for tone in scene["tones"]],
            rate=AUDIO_RATE,
        )
        for scene in sample_scenes()
    }


def sample_files() -> dict[str, object]:
    """Return all files except the videos, by path."""
    data = json.dumps([entry(scene) for scene in sample_scenes()], ensure_ascii=False, indent=1)
    return {"data.json": f"{data}\n", "replay.jsonl": replay()}


class MaiaScene(TypedDict):
    """One video's entry of sample_scenes_yaml."""

    video: int
    seconds: float
    ground: Sequence[int]
    actors: Sequence[Mapping[str, Any]]  # fields of scenes.Actor
    tones: Sequence[tuple[float, float, float]]
    words: Mapping[str, str | Sequence[str]]


def sample_scenes() -> list[MaiaScene]:
    """Return the scenes of sample_scenes_yaml."""
    stored_scenes: list[MaiaScene] = scenes.load_scenes(__file__, "sample_scenes_yaml")
    return stored_scenes


def entry(scene: MaiaScene) -> dict[str, object]:
    """Return one video's entry of data.json (README.md describes the form)."""
    video: dict[str, object] = {"video": f"video{scene['video']}", "link": LINK}
    for part in "AB":
        video[f"question_categories_{part}"] = [
            {
                "category": item.category,
                "question": item.question,
                "answer": item.answers,
                "true_statement": [true for true, _ in item.pairs],
                "false_statement": [false for _, false in item.pairs],
            }
            for item in items(scene, part)
        ]
    return video


def replay() -> Iterator[dict[str, object]]:
    """Yield a judge's replies, as recordings (replay.py), to every answer of the fake models."""
    for item in (one for scene in sample_scenes() for part in "AB" for one in items(scene, part)):
        _, false = item.pairs[0]  # a fake model's wrong answer
        for candidate in (*item.answers, item.lure, false, UNKNOWN):
            label, _ = judge.LABELS[0 if candidate in item.answers else 1]
            fields = {"question": item.question, "references": item.answers, "candidate": candidate}
            yield {"criterion": judge.NAME, "fields": fields, "reply": label}


class QuestionTexts(NamedTuple):
    """One question with all its texts; `lure` is an answer, made wrong by other words."""

    category: str  # the released name with its suffix
    question: str
    answers: list[str]  # eight answers
    pairs: list[tuple[str, str]]  # eight pairs (true, false)
    lure: str


def items(scene: MaiaScene, part: str) -> list[QuestionTexts]:
    """Return the twelve questions of set `part` ("A" or "B") about a scene.

    Raises:
        KeyError: a template has a `{slot}` that the scene's words lack.
        ValueError: a template has no `[true|false]`, or more than one.
    """
    words = dict(_words(scene))
    found = []
    for told in scenes.load_scenes(__file__, f"sample_texts_{part}_yaml"):
        answers, lure = scenes.true_and_false([line.format_map(words) for line in told["answers"]])
        pairs = [scenes.both(line.format_map(words)) for line in told["pairs"]]
        found.append(
            QuestionTexts(
                f"{told['category']}_{part}",
                told["question"].format_map(words),
                list(map(_sentence, answers)),
                [(_sentence(true), _sentence(false)) for true, false in pairs],
                _sentence(lure),
            )
        )
    return found


def _words(scene: MaiaScene) -> Iterator[tuple[str, str]]:
    for name, word in scene["words"].items():
        if isinstance(word, str):
            yield name, word
        elif len(word) == 2:
            yield from ((name, word[0]), (f"{name}_x", word[1]))
        else:
            yield from ((f"{name}_{place}", one) for place, one in enumerate(word))


def _sentence(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]
