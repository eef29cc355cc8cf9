"""MAIA's packaged sample in the released layout: two videos, 48 questions, 384 pairs, and a key.

    maia/data.json      as released: 12 categories x (A, B) x 8 answers, true and false statements
    maia/videos/N.mp4   the clip of "videoN"
    maia/key.json       {"pairs": [[true, false], ...],
                         "answers": {question: right answer},
                         "lures": {question: wrong answer that looks right}}
    maia/replay.jsonl   what a judge would reply to the answers of data and players, for
                        `--judge replay:FILE`

The key is for the demo's oracle and for tests, by text: every question occurs once, and no
statement is true of one video and false of the other. No task reads it.

The sentences are templates (sample_texts_A_yaml, sample_texts_B_yaml). What differs between scenes
comes from `slots`, which asks the scene and never the other way round: a statement is true because
the picture is drawn from the same fields. The name of a slot that ends in `_x` says what is false.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.maia import judge, sample_draw, sample_scene
from lmms_eval_tasks.maia.sample_scene import Scene
from lmms_eval_tasks.sample import render
from lmms_eval_tasks.sample.players import UNKNOWN

ALSO = ("judge.py",)  # the criterion's name and reply decide the recordings
PARTS = ("A", "B")
LINK = "packaged sample of lmms-eval-tasks"  # stands where the release names the source on the web


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a clip cannot be encoded.
    """
    (folder / "videos").mkdir()
    for scene in sample_scene.SCENES:
        write_video(scene, folder / "videos" / f"{scene.number}.mp4")
    _write_json(folder / "data.json", [entry(scene) for scene in sample_scene.SCENES])
    _write_json(folder / "key.json", key())
    lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in replay())
    (folder / "replay.jsonl").write_text("".join(lines), encoding="utf-8")


def write_video(scene: Scene, path: Path) -> None:
    """Draw and encode one scene with its sound."""
    rate = sample_scene.AUDIO_RATE
    sound = render.soundtrack(scene.tones(), scene.seconds, rate)
    render.write_mp4(path, sample_draw.frames(scene), sample_scene.FPS, sound, rate)


def entry(scene: Scene) -> dict[str, Any]:
    """One video of data.json (data_schemas.md, MAIA)."""
    video: dict[str, Any] = {"video": f"video{scene.number}", "link": LINK}
    for part in PARTS:
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


def key() -> dict[str, Any]:
    """What is right, over all videos; see the module's docstring for the form."""
    found = _all_items()
    return {
        "pairs": [list(pair) for item in found for pair in item.pairs],
        "answers": {item.question: item.right for item in found},
        "lures": {item.question: item.lure for item in found},
    }


def replay() -> Iterator[dict[str, Any]]:
    """Recorded replies (replay.py) about every answer that the sample's players give."""
    for item in _all_items():
        _, false = item.pairs[0]  # what the scripted player says
        for candidate in (*item.answers, item.lure, false, UNKNOWN):
            label, _ = judge.LABELS[0 if candidate in item.answers else 1]
            fields = {"question": item.question, "references": item.answers, "candidate": candidate}
            yield {"criterion": judge.NAME, "fields": fields, "reply": label}


def _all_items() -> list[Item]:
    return [item for scene in sample_scene.SCENES for part in PARTS for item in items(scene, part)]


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


# --- the texts ----------------------------------------------------------------------------------

NUMBERS = ("zero", "uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove")
SIDES = {"sinistra": "sinistro", "destra": "destro"}  # feminine noun and adjective: masculine
# Eight words for each of the two moods, masculine, with their opposites.
MOODS = (
    ("felice", "triste"),
    ("contento", "scontento"),
    ("allegro", "infelice"),
    ("raggiante", "afflitto"),
    ("sereno", "abbattuto"),
    ("gioioso", "malinconico"),
    ("di buon umore", "di cattivo umore"),
    ("sorridente", "imbronciato"),
)

_ALTERNATIVES = re.compile(r"\[([^][|]*)\|([^][|]*)\]")


class Item(NamedTuple):
    """One question with all its texts; `lure` is `right` with its decisive words changed."""

    category: str  # as released, with its suffix
    question: str
    answers: list[str]  # 8, `right` among them
    pairs: list[tuple[str, str]]  # 8 of (true, false)
    right: str
    lure: str


def items(scene: Scene, part: str) -> list[Item]:
    """The twelve questions of set `part` ("A" or "B") about a scene.

    Raises:
        KeyError, ValueError: a template names an unknown slot or has no, or more than one, choice.
    """
    import yaml

    file = Path(__file__).with_name(f"sample_texts_{part}_yaml")
    words = slots(scene)
    return [_item(entry, part, words) for entry in yaml.safe_load(file.read_text(encoding="utf-8"))]


def _item(entry: dict[str, Any], part: str, words: dict[str, str]) -> Item:
    pairs = [_both(_filled(line, words)) for line in entry["pairs"]]
    choices = [line for line in entry["answers"] if _ALTERNATIVES.search(line)]
    if len(choices) != 1:
        raise ValueError(f"{entry['category']}_{part}: {len(choices)} answers with a lure, not 1")
    right, lure = _both(_filled(choices[0], words))
    answers = [
        right if line == choices[0] else _sentence(_filled(line, words))
        for line in entry["answers"]
    ]
    question = _filled(entry["question"], words)
    return Item(f"{entry['category']}_{part}", question, answers, pairs, right, lure)


def _filled(template: str, words: dict[str, str]) -> str:
    return template.format_map(words)


def _both(text: str) -> tuple[str, str]:
    """The true and the false reading of a text with exactly one `[true|false]`."""
    if len(_ALTERNATIVES.findall(text)) != 1:
        raise ValueError(f"expected exactly one [true|false] in: {text}")
    return _sentence(_ALTERNATIVES.sub(r"\1", text)), _sentence(_ALTERNATIVES.sub(r"\2", text))


def _sentence(text: str) -> str:
    """With a capital first letter."""
    return text[:1].upper() + text[1:]


def slots(scene: Scene) -> dict[str, str]:
    """Every word that a template can ask for."""
    start, end = ("sinistra", "destra") if scene.heading > 0 else ("destra", "sinistra")
    vanished, reappeared = scene.hidden_from_to()
    hidden, hit = round(reappeared - vanished), round(scene.hit)
    animal, animals = scene.absent_animal
    thing, things = scene.absent_thing
    words = {
        "mover": scene.mover.name,
        "mover_noun": scene.mover.noun,
        "mover_colour": scene.mover.adjective,
        "mover_colour_x": scene.wrong_colour,
        "occluder": scene.occluder.name,
        "target": scene.target.name,
        "character": scene.character.name,
        "bird": scene.bird.adjective,
        "animal": animal,
        "animals": animals,
        "thing": thing,
        "things": things,
        "start": start,
        "end": end,
        "start_m": SIDES[start],
        "end_m": SIDES[end],
        "on_ground": "sulla neve" if scene.winter else "sul prato",
        "seen_signs": "Vista la neve a terra" if scene.winter else "Visti i fiori sul prato",
        "light": "la luna" if scene.night else "il sole",
    }
    words |= _number("hidden", hidden, hidden + 3) | _number("hit", hit, hit - 3)
    words |= _moods(scene) | _order(scene)
    for name, (day, night) in {
        "hour": ("giorno", "notte"),
        "during": ("durante il giorno", "durante la notte"),
        "hour_adjective": ("diurna", "notturna"),
        "hour_plural": ("diurne", "notturne"),
    }.items():
        words |= _pair(name, day, night, first=not scene.night)
    # A false season is one that the picture rules out: no winter in bloom, no summer in snow.
    bloom, snow, heat = (
        ("primavera", "la primavera", "alla primavera"),
        ("inverno", "l'inverno", "all'inverno"),
        ("estate", "l'estate", "all'estate"),
    )
    true, false = (snow, heat) if scene.winter else (bloom, snow)
    for name, is_so, is_not in zip(("season", "season_the", "season_to"), true, false, strict=True):
        words |= _pair(name, is_so, is_not, first=True)
    return words


def _pair(name: str, one: str, other: str, *, first: bool) -> dict[str, str]:
    """The slots `name` and `name_x`: `one` is the true word if `first`, else `other` is."""
    true, false = (one, other) if first else (other, one)
    return {name: true, f"{name}_x": false}


def _number(name: str, true: int, false: int) -> dict[str, str]:
    """A number from 2 to 9 as a word and as a digit."""
    digits = _pair(f"{name}_digit", str(true), str(false), first=True)
    return _pair(name, NUMBERS[true], NUMBERS[false], first=True) | digits


def _moods(scene: Scene) -> dict[str, str]:
    """How the character looks before and after the fall, eight words and a noun each."""
    words: dict[str, str] = {}
    for place, time in (("start", 0.0), ("end", scene.seconds)):
        glad = scene.is_glad(time)
        words |= {f"{place}_{i}": moods[0 if glad else 1] for i, moods in enumerate(MOODS)}
        words[f"{place}_emotion"] = "gioia" if glad else "tristezza"
    return words


def _order(scene: Scene) -> dict[str, str]:
    """Whether the bird hides before or after the target falls, said in many ways."""
    hides = scene.bird_hidden_from()
    after = hides > scene.hit
    words: dict[str, str] = {}
    for name, (if_after, if_before) in {
        "when": ("dopo", "prima"),
        "when_the": ("dopo la", "prima della"),
        "target_is": ("già a terra", "ancora in piedi"),
        "bird_is": ("ancora visibile", "già nascosto"),
        "follows": ("segue", "precede"),
        "later": ("successivo", "precedente"),
        "fall_is": ("prima della", "dopo la"),
    }.items():
        words |= _pair(name, if_after, if_before, first=after)
    words |= _pair("bird_part", "finale", "iniziale", first=hides > scene.seconds / 2)
    return words | _pair("mood_then", *MOODS[0], first=scene.is_glad(hides))
