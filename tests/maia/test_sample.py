"""The texts of MAIA's packaged sample: true or false by construction."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.maia import sample
from lmms_eval_tasks.maia.judge import criterion
from lmms_eval_tasks.maia.sample_scene import BALL, CAR
from lmms_eval_tasks.sample import players
from tests.conftest import recorded_judge


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


def test_recorded_judge_accepts_answers_and_rejects_lures(sample_root, data, key):
    judge = judges.make(judges.resolve(recorded_judge(sample_root), {}, default_model=""))
    for entry in questions(data):
        given = {"question": entry["question"], "references": entry["answer"]}
        wrong = (key["lures"][entry["question"]], players.UNKNOWN)
        for candidates, score in ((entry["answer"], 1.0), (wrong, 0.0)):
            for candidate in candidates:
                found = judge.verdict(criterion(), {**given, "candidate": candidate})
                assert (found.score, found.status) == (score, "ok"), (given, candidate)


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


# What a person saw in the clips: the truth of the first pair in each of these questions.
SEEN = {
    BALL: {
        "SpazialeParziale_A": "palla rossa si trova a sinistra della scatola blu",
        "SpazialeParziale_B": "palla rossa si trova a destra della scatola blu",
        "Sentiment_A": "il pagliaccio è triste",
        "Sentiment_B": "il pagliaccio è felice",
        "ImplicitoTot_A": "si svolge di giorno",
        "ImplicitoTot_B": "è ambientato in primavera",
        "TemporaleDurata_A": "per circa due secondi",
        "TemporaleDurata_B": "dopo circa cinque secondi",
        "TemporaleParziale_B": "si nasconde dopo la caduta del birillo bianco",
    },
    CAR: {
        "SpazialeParziale_A": "macchina verde si trova a destra della casa gialla",
        "SpazialeParziale_B": "macchina verde si trova a sinistra della casa gialla",
        "Sentiment_A": "il robot è felice",
        "Sentiment_B": "il robot è triste",
        "ImplicitoTot_A": "si svolge di notte",
        "ImplicitoTot_B": "è ambientato in inverno",
        "TemporaleDurata_A": "per circa tre secondi",
        "TemporaleDurata_B": "dopo circa sei secondi",
        "TemporaleParziale_B": "si nasconde prima della caduta del cono arancione",
    },
}


def test_truths_that_a_person_saw_in_the_clips():
    for scene, seen in SEEN.items():
        items = {one.category: one for part in "AB" for one in sample.items(scene, part)}
        for category, end in seen.items():
            true, false = items[category].pairs[0]
            assert true.endswith(end)
            assert not false.endswith(end)
