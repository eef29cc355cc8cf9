"""What a model is given for a doc in each condition, what it is never given, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.movierecapsqa import utils
from lmms_eval_tasks.movierecapsqa.labels import SOURCES
from lmms_eval_tasks.utils import clips
from tests.movierecapsqa.entries import SECRET, SPOKEN, entry, question, second_of, write
from tests.movierecapsqa.test_data import TASKS, docs
from tests.movierecapsqa.test_inputs import doc

QUESTION = "Who waits at the harbour 10?"


def plain(value: Any) -> None:
    """Only what JSON has, by exact type: np.float64 is a float and would pass isinstance."""
    if isinstance(value, Mapping):
        for inner in value.values():
            plain(inner)
    elif isinstance(value, list):
        for inner in value:
            plain(inner)
    else:
        assert type(value) in (str, int, float, bool, type(None)), type(value)


class TestText:
    """Dialogue, instruction, question."""

    def test_both(self, user: Path) -> None:
        told = utils.doc_to_text(doc("segment"))
        # Whole, without its times and its markup, and before the question.
        assert SPOKEN in told
        assert told.index(SPOKEN) < told.index("pictures above") < told.index(QUESTION)
        assert told.endswith(QUESTION)
        for markup in ("-->", "00:10", "<i>"):
            assert markup not in told

    def test_frames_alone_say_nothing_of_dialogue(self, user: Path) -> None:
        for source in SOURCES:
            told = utils.doc_to_text(doc(source, condition="frames")).lower()
            assert told.endswith(QUESTION.lower())
            for word in ("dialogue", "subtitle", "said", "spoken", *SPOKEN.lower().splitlines()):
                assert word not in told

    def test_dialogue_alone_says_that_there_is_no_picture(self, user: Path) -> None:
        told = utils.doc_to_text(doc("segment", condition="dialogue"))
        assert told.startswith("No picture of the movie is given.")
        assert "pictures above" not in told
        assert told.index(SPOKEN) < told.index(QUESTION)

    @pytest.mark.parametrize("condition", ["", "dialogue"])
    def test_a_segment_without_dialogue(self, condition: str, user: Path) -> None:
        told = utils.doc_to_text(doc("segment", "talk.2", condition))
        assert "has no dialogue" in told
        assert "subtitle by subtitle" not in told

    @pytest.mark.parametrize("condition", ["", "frames", "dialogue"])
    def test_the_same_in_every_source(self, condition: str, user: Path) -> None:
        assert len({utils.doc_to_text(doc(source, condition=condition)) for source in SOURCES}) == 1

    def test_kwargs_and_texts_of_the_data_that_look_like_templates(self, user: Path) -> None:
        asked = question(1, question="{dialogue} {lines}?")
        write(user, [entry(1, questions=[asked], srt="00:00:01,000 --> 00:00:02,000\n{question}")])
        told = utils.doc_to_text(doc("segment"), {"pre_prompt": "<", "post_prompt": ">"})
        assert told.startswith("<Dialogue")
        assert "subtitle:\n{question}\n" in told
        assert told.endswith("\n{dialogue} {lines}?>")


class TestGiven:
    """Messages for chat models, visuals for simple ones."""

    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("frames", ["", "2"])
    def test_facts_never_reach_the_model(
        self, task: str, frames: str, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nor do reference, the lure, the answers of others, or the movie's title."""
        monkeypatch.setenv(settings.FRAMES, frames)
        for one in docs(task):
            assert SECRET in one["reference"]
            assert all(SECRET in fact for fact in one["facts"])
            (message,) = utils.doc_to_messages(one)
            texts = [part["text"] for part in message["content"] if part["type"] == "text"]
            assert texts == [utils.doc_to_text(one)]
            given = f"{message} {utils.doc_to_visual(one)}"
            assert one["question"] in given
            for hidden in (SECRET, "captain", "snows", "1999"):
                assert hidden not in given

    def test_a_clip_is_a_video_before_the_text(self, user: Path) -> None:
        one = doc("scenes")
        (message,) = utils.doc_to_messages(one)
        video, text = message["content"]
        assert message["role"] == "user"
        assert video == {"type": "video", "url": utils.doc_to_visual(one)[0]}
        assert text["type"] == "text"

    def test_frames_are_images_in_order(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.FRAMES, "3")
        one = doc("recap", condition="frames")
        (message,) = utils.doc_to_messages(one)
        *images, text = message["content"]
        assert {part["type"] for part in images} == {"image"}
        assert [second_of(part["url"]) for part in images] == [0, 5, 11]
        assert [second_of(image) for image in utils.doc_to_visual(one)] == [0, 5, 11]
        assert text["type"] == "text"

    def test_dialogue_alone_is_no_visual(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.FRAMES, "3")
        one = doc("movie", condition="dialogue")
        assert utils.doc_to_visual(one) == []
        (message,) = utils.doc_to_messages(one)
        assert [part["type"] for part in message["content"]] == ["text"]


class TestIdentity:
    """What the sample log keeps of a doc."""

    @pytest.mark.parametrize("task", TASKS)
    def test_plain_and_whole(self, task: str, user: Path) -> None:
        for one in docs(task):
            kept = utils.identity(one)
            plain(kept)
            assert json.loads(json.dumps(kept)) == kept
            assert kept.keys() - {"media"} == {
                *("id", "segment", "video", "source", "condition", "question", "reference"),
                *("facts", "dialogue", "modality", "category", "data"),
            }
            for name in kept.keys() - {"media"}:
                assert kept[name] == one[name]

    def test_what_was_handed_over(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert utils.identity(doc("segment"))["media"] == {
            "kind": "video",
            "start": 3.2,
            "end": 7.4,
            "duration": pytest.approx(4.2),
            "n_frames": 42,
            "asked": 0,
            "size": [64, 48],
            "dialogue": True,
        }
        monkeypatch.setenv(settings.FRAMES, "50")
        made = utils.identity(doc("segment", "talk.2", "frames"))["media"]
        assert (made["kind"], made["asked"], made["n_frames"]) == ("frames", 50, 30)
        assert (made["start"], made["end"], made["dialogue"]) == (8, 11, False)
        alone = [utils.identity(one)["media"] for one in docs("movierecapsqa_recap_dialogue")]
        assert alone[0] == {"kind": "none", "dialogue": True}
        assert alone[2] == {"kind": "none", "dialogue": False}

    def test_it_outlives_its_files(self, user: Path) -> None:
        one = {**doc("segment"), "video_path": "/gone/talk.mp4"}
        kept = utils.identity(one)
        assert kept["media"] is None
        assert kept["id"] == "talk.1/10"

    def test_nothing_is_made_for_dialogue_alone(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def made(*_: Any) -> Any:
            raise AssertionError("a clip was made")

        monkeypatch.setattr(clips, "make", made)
        one = doc("segment", condition="dialogue")
        utils.doc_to_messages(one)
        assert utils.identity(one)["media"] == {"kind": "none", "dialogue": True}
