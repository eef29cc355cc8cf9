"""What a model is given and never given, what a reply is worth, and what results say of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.movierecapsqa import baselines
from lmms_eval_tasks.movierecapsqa import tasks as own
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, WITH_CONTEXT
from tests.checks import annotated, limits_of, table
from tests.movierecapsqa.asking import Rater, asked_for, judged_at, kind, score
from tests.movierecapsqa.entries import SECRET, SPOKEN, entry, question, second_of, write
from tests.movierecapsqa.test_data import docs

FOLDER = Path(own.__file__).parent
QUESTION = "Who waits at the harbour 10?"
BOTH = "movierecapsqa_segment"
FRAMES, DIALOGUE = f"{BOTH}_frames", f"{BOTH}_dialogue"


def doc(task: str = BOTH, place: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = docs(task)[place]
    return found


# --- what a model is given ----------------------------------------------------------------------


def test_texts_of_each_condition(user: Path) -> None:
    """To the byte: tests/golden."""
    told = task_functions.doc_to_text(doc())
    assert told.index(SPOKEN) < told.index("pictures above") < told.index(QUESTION)
    told = task_functions.doc_to_text(doc(FRAMES)).lower()
    for word in ("dialogue", "subtitle", "said", "spoken", *SPOKEN.lower().splitlines()):
        assert word not in told
    # What stands in the data is no template.
    write(user, [entry(1, questions=[question(1, question="{dialogue} {lines}?")])])
    assert task_functions.doc_to_text(doc()).endswith("\n{dialogue} {lines}?")


def test_pictures_come_before_the_text(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = doc("movierecapsqa_scenes")
    (message,) = task_functions.doc_to_messages(one)
    video, text = message["content"]
    assert (message["role"], text["type"]) == ("user", "text")
    assert video == {"type": "video", "url": task_functions.doc_to_visual(one)[0]}
    monkeypatch.setenv(settings.FRAMES, "3")
    (message,) = task_functions.doc_to_messages(doc("movierecapsqa_recap_frames"))
    assert [part["type"] for part in message["content"]] == ["image"] * 3 + ["text"]
    assert [second_of(part["url"]) for part in message["content"][:3]] == [0, 5, 11]
    alone = doc(DIALOGUE)
    assert task_functions.doc_to_visual(alone) == []
    assert [part["type"] for part in task_functions.doc_to_messages(alone)[0]["content"]] == [
        "text"
    ]
    assert own._media_log(alone)["media"] == {"kind": "none", "dialogue": True}


# --- what the log keeps, and what a reply is worth ----------------------------------------------


def test_what_was_handed_over(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    media = own._media_log(doc())["media"]
    told = {"kind": "video", "start": 3.2, "end": 7.4, "n_frames": 42, "dialogue": True}
    assert {name: media[name] for name in told} == told
    gone = {**doc(), "video_path": "/gone/talk.mp4"}
    assert task_functions.process_results(gone, [""])["failed"]["media"] is None
    monkeypatch.setenv(settings.FRAMES, "50")
    media = own._media_log(doc(FRAMES, 2))["media"]
    told = {"kind": "frames", "asked": 50, "n_frames": 30, "start": 8, "end": 11, "dialogue": False}
    assert {name: media[name] for name in told} == told


def test_an_item_has_all_of_it(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with judged_at(Rater(), monkeypatch, baselines="helmet,geval") as endpoint:
        found = task_functions.process_results(doc(DIALOGUE), ["The captain waits."])
        chats = [chat.json for chat in endpoint.chats]
    item = found["failed"]
    assert item["rouge_l"] == pytest.approx(3 * 2 / (3 + 5))
    assert set(item["verdicts"]) == {"claims", *DIMENSIONS, *baselines.criteria()}
    assert "verdict" not in json.dumps({**item, "verdicts": None}).replace('"verdicts"', "")
    for chat in chats:
        text = json.dumps(chat, ensure_ascii=False)
        assert (f"The {SECRET} sleeps." in text) == (kind(chat) in WITH_CONTEXT)
        if asked_for(chat) == "claims":
            assert item["reference"] not in text


# --- what results say ---------------------------------------------------------------------------


def test_segments_that_the_user_left_out(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    third = entry(3, videoId="gone", movieId=..., movieStartTime=..., movieEndTime=...)
    write(user, [entry(1), entry(2), third, entry(4, startTime=9, endTime=2)])
    items = {name: score(name, lambda _: "") for name in (BOTH, FRAMES, DIALOGUE)}
    section = annotated("movierecapsqa", *items, items=items)
    assert {name: set(own) for name, own in section["left_out"].items()} == {
        BOTH: {"talk.3", "talk.4"},
        FRAMES: {"talk.3", "talk.4"},
        DIALOGUE: {"talk.4"},
    }
    assert section["data"]["bad_segments"] == 1
    told = f"{BOTH}, {FRAMES}: 2 segments skipped (talk.3, talk.4), such as talk.3: missing: "
    assert any(line.startswith(told) for line in limits_of(section))
    # Table 5's differences would be between four questions and six.
    (told,) = [line for line in limits_of(section) if "different questions" in line]
    assert told.startswith("aligned recap segment: ")
    assert "(both 4, only frames 4, only dialogue 6)" in told


@table(
    "dimension, labels, score, against",
    [
        ("factuality", ["supported", "supported"], 0, True),
        ("factuality", ["supported", "supported"], 1, False),
        ("factuality", ["supported", "unsupported"], 0, False),
        ("factuality", ["unsupported", "contradictory"], 5, True),
        ("factuality", ["unsupported", "not_checkable"], 5, False),
        ("relevance", ["irrelevant"], 5, True),
        ("relevance", ["relevant"], 5, False),
        ("coherence", ["contradictory", "contradictory"], 5, True),
        ("coherence", ["redundant", "redundant"], 5, False),
        ("coherence", [], 0, False),
        ("coherence", [], 5, False),
        ("relevance", ["relevant"], None, False),
    ],
)
def test_scores_against_their_labels_are_counted(
    dimension: str, labels: list[str], score: int | None, against: bool
) -> None:
    """The score stays the judge's; a line says how many there are."""
    item = {"dimensions": {dimension: {"labels": labels, "score": score, "status": "ok"}}}
    assert own.opposed([item, item, {}]) == ({dimension: 2} if against else {})
    if against:
        assert f"({dimension} 2)" in own.told_opposed(own.opposed([item, item]))
        assert own.is_many({dimension: 2}, [item] * 13)
        assert not own.is_many({dimension: 2}, [item] * 14)
