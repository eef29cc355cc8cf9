"""MAIA's packaged sample: the released schema, and texts made true or false by construction."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.maia import sample, schema
from lmms_eval_tasks.maia.judge import criterion
from lmms_eval_tasks.maia.sample_scene import BALL, CAR, SCENES, Scene
from lmms_eval_tasks.sample import players
from tests.checks import table
from tests.conftest import recorded_judge

CATEGORIES = [  # data_schemas.md
    *("CausaleEsplicita", "Controfattuale", "ImplicitoParziale", "ImplicitoTot", "Incertezza"),
    *("OutofScope", "Pianificazione", "Sentiment", "SpazialeParziale", "SpazialeTotale"),
    *("TemporaleDurata", "TemporaleParziale"),
]


@pytest.fixture
def data(sample_root: Path) -> list[dict[str, Any]]:
    return json.loads((sample_root / "maia" / "data.json").read_text(encoding="utf-8"))


@pytest.fixture
def key(sample_root: Path) -> dict[str, Any]:
    return json.loads((sample_root / "maia" / "key.json").read_text(encoding="utf-8"))


def questions(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [q for v in data for part in "AB" for q in v[f"question_categories_{part}"]]


def folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.lower())
    return " ".join(re.findall(r"[a-z0-9]+", "".join(c for c in plain if c.isascii())))


def test_it_is_of_the_released_schema(sample_root, data):
    for video in data:
        for part in "AB":
            entries = video[f"question_categories_{part}"]
            assert sorted(e["category"] for e in entries) == [f"{c}_{part}" for c in CATEGORIES]
    release = schema.read(sample_root / "maia")
    assert release.counts == {"videos": 2, "questions": 48, "pairs": 384}
    assert all(release.path_of(video.video).is_file() for video in release.videos)


def test_texts_are_unique_and_never_true_and_false(data, key):
    entries = questions(data)
    assert len({entry["question"] for entry in entries}) == 48
    pairs = [
        pair
        for entry in entries
        for pair in zip(entry["true_statement"], entry["false_statement"], strict=True)
    ]
    assert [list(pair) for pair in pairs] == key["pairs"]
    assert len(set(pairs)) == 384
    trues, falses = ({folded(pair[side]) for pair in pairs} for side in (0, 1))
    assert len(trues) == 384
    assert not trues & falses
    for entry in entries:
        assert len({folded(answer) for answer in entry["answer"]}) == 8, entry["answer"]


def test_false_statement_differs_in_one_place(key):
    for true, false in key["pairs"]:
        one, other = folded(true).split(), folded(false).split()
        codes = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
        changed = [code for code in codes if code[0] != "equal"]
        first, last = changed[0], changed[-1]
        assert max(last[2] - first[1], last[4] - first[3]) <= 5, (true, false)
        assert max(last[2] - first[1], last[4] - first[3]) < 0.6 * len(one), (true, false)


def test_lures_look_right_and_are_no_answers(data, key):
    entries = {entry["question"]: entry for entry in questions(data)}
    assert set(key["answers"]) == set(key["lures"]) == set(entries)
    for question, entry in entries.items():
        right, lure = key["answers"][question], key["lures"][question]
        assert right in entry["answer"]
        assert folded(lure) not in {folded(answer) for answer in entry["answer"]}
        shared = set(folded(lure).split()) & set(folded(right).split())
        assert len(shared) >= 0.6 * len(set(folded(lure).split())), (right, lure)


def test_recorded_judge_accepts_answers_and_rejects_lures(sample_root, data, key):
    judge = judges.make(judges.resolve(recorded_judge(sample_root), {}, default_model=""))
    for entry in questions(data):
        given = {"question": entry["question"], "references": entry["answer"]}
        wrong = (key["lures"][entry["question"]], players.UNKNOWN)
        for candidates, score in ((entry["answer"], 1.0), (wrong, 0.0)):
            for candidate in candidates:
                found = judge.verdict(criterion(), {**given, "candidate": candidate})
                assert (found.score, found.status) == (score, "ok"), (given, candidate)


def test_spelling_of_what_templates_produce(data):
    for entry in questions(data):
        texts = [*entry["answer"], *entry["true_statement"], *entry["false_statement"]]
        for text in [entry["question"], *texts]:
            assert not re.search(r"[{}\[\]|]|\s\s|^\s|\s$|hè\b|\s[,.?]", text), text
            assert text[0] == text[0].upper()
            assert not re.search(r"\b(il|la|del|della|al|alla|un|una) (il|la|un|una)\b", text), text
        assert entry["question"].endswith("?")


def test_no_sentence_is_copied_from_the_release(data, maia_data):
    def sentences(videos: list[dict[str, Any]]) -> set[str]:
        texts = {
            folded(text)
            for entry in questions(videos)
            for field in ("answer", "true_statement", "false_statement")
            for text in [*entry[field], entry["question"]]
        }
        return {text for text in texts if len(text.split()) > 3}

    released = json.loads((maia_data / "data.json").read_text(encoding="utf-8"))
    copied = sentences(data) & sentences(released)
    assert copied == set()


def test_texts_follow_the_scene():
    def truths(scene: Scene, part: str, category: str) -> list[tuple[str, str]]:
        items = {item.category: item for item in sample.items(scene, part)}
        return items[f"{category}_{part}"].pairs

    mirrored = replace(
        BALL, start_x=334, target_x=88, character_x=32, glad_at_end=False, night=True, winter=True
    )
    late_bird = replace(CAR, bird_path=tuple((t + 6.2, x, y) for t, x, y in CAR.bird_path))
    for part, category, before, after in (
        ("A", "SpazialeParziale", BALL, mirrored),
        ("B", "Sentiment", BALL, mirrored),
        ("A", "ImplicitoTot", BALL, mirrored),
        ("B", "TemporaleParziale", CAR, late_bird),
    ):
        was, now = truths(before, part, category), truths(after, part, category)
        flipped = [(false, true) for true, false in was]
        assert now == flipped, category


@table(
    "scene, part, category, end",
    [
        (BALL, "A", "SpazialeParziale", "palla rossa si trova a sinistra della scatola blu"),
        (BALL, "B", "SpazialeParziale", "palla rossa si trova a destra della scatola blu"),
        (BALL, "A", "Sentiment", "il pagliaccio è triste"),
        (BALL, "B", "Sentiment", "il pagliaccio è felice"),
        (BALL, "A", "ImplicitoTot", "si svolge di giorno"),
        (BALL, "B", "ImplicitoTot", "è ambientato in primavera"),
        (BALL, "A", "TemporaleDurata", "per circa due secondi"),
        (BALL, "B", "TemporaleDurata", "dopo circa cinque secondi"),
        (BALL, "B", "TemporaleParziale", "si nasconde dopo la caduta del birillo bianco"),
        (CAR, "A", "SpazialeParziale", "macchina verde si trova a destra della casa gialla"),
        (CAR, "B", "SpazialeParziale", "macchina verde si trova a sinistra della casa gialla"),
        (CAR, "A", "Sentiment", "il robot è felice"),
        (CAR, "B", "Sentiment", "il robot è triste"),
        (CAR, "A", "ImplicitoTot", "si svolge di notte"),
        (CAR, "B", "ImplicitoTot", "è ambientato in inverno"),
        (CAR, "A", "TemporaleDurata", "per circa tre secondi"),
        (CAR, "B", "TemporaleDurata", "dopo circa sei secondi"),
        (CAR, "B", "TemporaleParziale", "si nasconde prima della caduta del cono arancione"),
    ],
)
def test_truths_that_a_person_saw_in_the_clips(scene, part, category, end):
    items = {item.category: item for item in sample.items(scene, part)}
    true, false = items[f"{category}_{part}"].pairs[0]
    assert true.endswith(end)
    assert not false.endswith(end)


def test_absent_things_are_absent():
    for scene in SCENES:
        things = (scene.mover, scene.occluder, scene.target, scene.character, scene.bird)
        nouns = {thing.noun for thing in things}
        assert not nouns & {*scene.absent_animal, *scene.absent_thing}
        assert scene.wrong_colour not in {thing.adjective for thing in things}


def test_rounded_seconds_are_close():
    for scene in SCENES:
        vanished, reappeared = scene.hidden_from_to()
        for seconds in (reappeared - vanished, scene.hit):
            assert abs(seconds - round(seconds)) < 0.1


@table("line", ["no choice", "[a|b] and [c|d]", "[a|b|c]", "[a b]"])
def test_a_pair_without_exactly_one_choice_is_an_error(line):
    with pytest.raises(ValueError, match="exactly one"):
        sample._both(line)
