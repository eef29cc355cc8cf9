"""What a model is given and never given, what a reply is worth, and what results say of a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import names
from lmms_eval_tasks.movierecapsqa import baselines
from lmms_eval_tasks.movierecapsqa import tasks as own
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, WITH_CONTEXT
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import after, before, scoring
from lmms_eval_tasks.utils.media import clips
from tests.movierecapsqa.asking import Rater, asked_for, judged_at, kind, numbers, score
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
    told = names.doc_to_text(doc())
    # The dialogue whole, without its times and its markup, and before the question.
    assert told.index(SPOKEN) < told.index("pictures above") < told.index(QUESTION)
    assert told.endswith(QUESTION)
    told = names.doc_to_text(doc(FRAMES)).lower()
    assert told.endswith(QUESTION.lower())
    for word in ("dialogue", "subtitle", "said", "spoken", *SPOKEN.lower().splitlines()):
        assert word not in told
    told = names.doc_to_text(doc(DIALOGUE))
    assert told.startswith("No picture of the movie is given.")
    assert told.index(SPOKEN) < told.index(QUESTION)
    for task in (BOTH, DIALOGUE):  # a segment without dialogue
        assert "has no dialogue" in names.doc_to_text(doc(task, 2))
    # What stands in the data is no template.
    asked = [question(1, question="{dialogue} {lines}?")]
    write(user, [entry(1, questions=asked, srt="00:00:01,000 --> 00:00:02,000\n{question}")])
    told = names.doc_to_text(doc(), {"pre_prompt": "<", "post_prompt": ">"})
    assert told.startswith("<Dialogue")
    assert "subtitle:\n{question}\n" in told
    assert told.endswith("\n{dialogue} {lines}?>")


def test_pictures_come_before_the_text(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = doc("movierecapsqa_scenes")
    (message,) = names.doc_to_messages(one)
    video, text = message["content"]
    assert (message["role"], text["type"]) == ("user", "text")
    assert video == {"type": "video", "url": names.doc_to_visual(one)[0]}
    monkeypatch.setenv(settings.FRAMES, "3")
    one = doc("movierecapsqa_recap_frames")
    (message,) = names.doc_to_messages(one)
    *images, text = message["content"]
    assert [part["type"] for part in (*images, text)] == ["image"] * 3 + ["text"]
    assert [second_of(part["url"]) for part in images] == [0, 5, 11]
    assert [second_of(image) for image in names.doc_to_visual(one)] == [0, 5, 11]

    def made(*_: Any) -> Any:
        raise AssertionError("a clip was made")

    monkeypatch.setattr(clips, "make", made)
    alone = doc(DIALOGUE)
    assert names.doc_to_visual(alone) == []
    assert [part["type"] for part in names.doc_to_messages(alone)[0]["content"]] == ["text"]
    assert own.handed(alone)["media"] == {"kind": "none", "dialogue": True}


# --- what the log keeps, and what a reply is worth ----------------------------------------------


def test_what_was_handed_over(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = doc()
    media = own.handed(one)["media"]
    assert (media["kind"], media["start"], media["end"]) == ("video", 3.2, 7.4)
    assert (media["n_frames"], media["dialogue"]) == (42, True)
    gone = {**one, "video_path": "/gone/talk.mp4"}
    assert names.process_results(gone, [""])["failed"]["media"] is None
    monkeypatch.setenv(settings.FRAMES, "50")
    made = own.handed(doc(FRAMES, 2))["media"]
    assert (made["kind"], made["asked"], made["n_frames"]) == ("frames", 50, 30)
    assert (made["start"], made["end"], made["dialogue"]) == (8, 11, False)


REPLY = "The captain waits."


def made(monkeypatch: pytest.MonkeyPatch, rater: Any, which: str = "", **changes: Any) -> Any:
    """The item of one reply to a doc with changes, and what the judge was asked."""
    with judged_at(rater, monkeypatch, baselines=which) as endpoint:
        found = names.process_results({**doc(DIALOGUE), **changes}, [REPLY])
        return found, [chat.json for chat in endpoint.chats]


def test_an_item_has_all_of_it(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, chats = made(monkeypatch, Rater(), "helmet,geval")
    item = found["failed"]
    assert item["rouge_l"] == pytest.approx(3 * 2 / (3 + 5))
    assert set(item["verdicts"]) == {"claims", *DIMENSIONS, *baselines.criteria()}
    assert "verdict" not in json.dumps({**item, "verdicts": None}).replace('"verdicts"', "")
    counts = Counter(asked_for(chat) for chat in chats)
    sampled = dict.fromkeys(baselines.GEVAL_NAMES, 2)  # without log-probabilities: again
    once = ("claims", *DIMENSIONS, *baselines.HELMET_NAMES)
    assert counts == {**dict.fromkeys(once, 1), **sampled}
    for chat in chats:
        text = json.dumps(chat, ensure_ascii=False)
        assert (f"The {SECRET} sleeps." in text) == (kind(chat) in WITH_CONTEXT)
        if asked_for(chat) == "claims":
            assert item["reference"] not in text
    # Elsewhere stands what the host's table needs: fifty whole items an answer would be gigabytes.
    short = {name: json.dumps(one) for name, one in found.items() if name != "failed"}
    assert set(short) == {"rouge_l", *(f"{name}_valid" for name in DIMENSIONS)}
    assert all(len(text) <= 80 for text in short.values()), short
    rows = {row["metric"]: row["aggregation"] for row in names.metrics_movierecapsqa_segment}
    for name, value in scoring.numbers(BENCHMARK.tasks[BOTH], [item]).items():
        assert name not in rows or rows[name]([found[name]]) == value


def test_an_item_without_a_reference(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = numbers([made(monkeypatch, Rater(), "geval,helmet", reference="")[0]["failed"]])
    assert found["factuality_valid"] is not None
    for name in ("rouge_l", "helmet_fluency", "geval_samples"):
        assert found[name] is None
    assert found["helmet_correctness_failed"] == 0


# --- what results say ---------------------------------------------------------------------------


def annotated(*tasks: str, items: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The benchmark's section, as the host writes it into its results file."""
    rows = {name: {"failed,none": scoring.carried(own)} for name, own in (items or {}).items()}
    results: dict[str, Any] = {"results": rows}
    after.annotate(results, tasks)
    section: dict[str, Any] = results["lmms_eval_tasks"]["movierecapsqa"]
    assert json.loads(json.dumps(section)) == section
    return section


def test_segments_that_the_user_left_out(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    third = entry(3, videoId="gone", movieId=..., movieStartTime=..., movieEndTime=...)
    write(user, [entry(1), entry(2), third, entry(4, startTime=9, endTime=2)])
    items = {name: score(name, lambda _: "") for name in (BOTH, FRAMES, DIALOGUE)}
    before._checked.clear()
    section = annotated(*items, items=items)
    assert {name: set(own) for name, own in section["left_out"].items()} == {
        BOTH: {"talk.3", "talk.4"},
        FRAMES: {"talk.3", "talk.4"},
        DIALOGUE: {"talk.4"},
    }
    assert section["data"]["bad_segments"] == 1
    assert f"{BOTH}: 2 segments left out: talk.3, talk.4" in section["warnings"]
    # Table 5's differences would be between four questions and six.
    (told,) = [line for line in section["warnings"] if "same" in line]
    assert told.startswith("aligned recap segment: ")
    assert "(both 4, only frames 4, only dialogue 6)" in told


def test_how_pictures_were_handed_over(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = annotated(BOTH, DIALOGUE)["frames"]
    assert "the model's own maximum of frames applies" in frames["rule"]
    monkeypatch.setenv(settings.FRAMES, "16,talk=4")
    expected = {"rule": "uniform frames in order, as images", "asked": 16}
    assert annotated(BOTH)["frames"] == expected
    assert annotated(DIALOGUE)["frames"] == {"rule": "no picture is handed over"}
