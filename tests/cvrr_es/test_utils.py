"""What the host calls: texts, media, items. The requests of the judge tasks hold no truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL.Image import Image

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.cvrr_es import data, inputs, sample, sample_answers, utils
from lmms_eval_tasks.cvrr_es.sample_answers import CAREFUL, FLAT, HASTY, MODELS
from lmms_eval_tasks.errors import MediaError, PromptError
from lmms_eval_tasks.utils import clips
from tests.cvrr_es.scored import Stated, doc, rated, rated_doc

TASKS = ("cvrr_judge", "cvrr_judge_collective", "cvrr_judge_mixture")


@pytest.fixture
def on_sample(sample_folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packaged sample with its candidates, ratings and reference."""
    from lmms_eval_tasks.cvrr_es import data

    data.remember(None)
    folder = sample_folder
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, str(folder.parent))
    monkeypatch.setenv(settings.CVRR_CANDIDATES, str(folder / sample.PREDICTIONS))
    monkeypatch.setenv(settings.CVRR_RATINGS, str(folder / sample.FIRST))
    monkeypatch.setenv(settings.CVRR_REFERENCE, str(folder / sample.REFERENCE))
    return folder


def docs(task: str) -> list[dict[str, Any]]:
    from datasets import Dataset

    return list(data.process_docs(task)(Dataset.from_list(data.rows(data.load()))))


def request(given: dict[str, Any]) -> str:
    """All that a chat model is sent, but for the media's own bytes."""
    return json.dumps(utils.doc_to_messages(given), default=str, ensure_ascii=False)


class TestNothingLeaks:
    """Only the debate and the single text judge see the reference."""

    @pytest.mark.parametrize("task", TASKS)
    def test_no_reference_and_no_judge(self, task: str, on_sample: Path) -> None:
        """But for candidates' answers that hold it word for word."""
        truth = {one["id"]: one for one in data.rows(data.load())}
        searched = 0
        for one in docs(task):
            sent = request(one)
            assert one["question"] in sent
            for name in (*MODELS, FLAT, "invented"):
                assert name not in sent
            for text in (truth[one["question_id"]][name] for name in ("reference", "lure")):
                if text not in one["answer"]:
                    searched += 1
                    assert text not in sent, one["id"]
        assert searched > 75

    def test_the_reference_rating_changes_nothing(self, on_sample: Path) -> None:
        for one in docs("cvrr_judge_collective"):
            other = {**one, "reference_rating": None}
            assert utils.doc_to_text(one) == utils.doc_to_text(other)

    def test_its_own_first_rating(self, on_sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By the name of the running model, or the user's for it."""
        model = running.Model("some_class", "chat", {"pretrained": "models/Invented_Careful"})
        with running.model(model):
            shown = {o["judge"] for one in docs("cvrr_judge_collective") for o in one["others"]}
        assert shown == {HASTY, FLAT}
        monkeypatch.setenv(settings.CVRR_NAME, "INVENTED FLAT")
        shown = {o["judge"] for one in docs("cvrr_judge_collective") for o in one["others"]}
        assert shown == {CAREFUL, HASTY}

    def test_the_same_video_in_every_round(self, on_sample: Path) -> None:
        media = [[utils.doc_to_visual(one) for one in docs(task)[:4]] for task in TASKS]
        assert media[0] == media[1] == media[2]


class TestInputs:
    def test_text(self) -> None:
        text = utils.doc_to_text(doc(question="Who {waits}?"))
        assert text.endswith("Question: Who {waits}?")
        kwargs = {"pre_prompt": "Look: ", "post_prompt": " (briefly)"}
        assert utils.doc_to_text(doc(question="Who {waits}?"), kwargs) == f"Look: {text} (briefly)"

    def test_a_judges_text(self) -> None:
        text = utils.doc_to_text(rated_doc(answer="It says {question}."))
        assert "What happens?" in text
        assert "It says {question}." in text
        assert '{"rating": <your rating>, "reason": "<why>"}' in text

    def test_video_then_text(self, on_sample: Path) -> None:
        (one, *_) = docs("cvrr_judge")
        (path,) = utils.doc_to_visual(one)
        (message,) = utils.doc_to_messages(one, {"post_prompt": "!"})
        assert message["role"] == "user"
        assert message["content"] == [
            {"type": "video", "url": path},
            {"type": "text", "text": utils.doc_to_text(one) + "!"},
        ]
        assert Path(path).is_file()

    def test_frames(self, on_sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.FRAMES, "3")
        (one, *_) = docs("cvrr_judge")
        shown = utils.doc_to_visual(one)
        assert len(shown) == 3
        assert all(isinstance(image, Image) for image in shown)
        (message,) = utils.doc_to_messages(one)
        assert [part["type"] for part in message["content"]] == ["image"] * 3 + ["text"]

    def test_the_users_prompt(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "cvrr_es" / "task.yml"
        file.parent.mkdir()
        file.write_text("question: 'Mine: {question}'\n", encoding="utf-8")
        monkeypatch.setenv(settings.PROMPTS, str(tmp_path))
        assert utils.doc_to_text(doc()) == "Mine: What happens?"
        file.write_text("question: 'Nothing'\n", encoding="utf-8")
        inputs._task_prompts.cache_clear()
        with pytest.raises(PromptError, match="question"):
            utils.doc_to_text(doc())
        inputs._task_prompts.cache_clear()


class TestItems:
    def test_an_answers_identity(self, stated: Stated) -> None:
        with running.model(running.Model("c", "chat", {"pretrained": "a/tiny"})):
            found = utils.answer_identity(doc())
        assert found == {
            "id": "partial_actions/001",
            "dimension": "partial_actions",
            "video": "partial_actions/1.mp4",
            "question": "What happens?",
            "reference": "A dog runs away.",
            "data": "0123456789ab",
            "candidate": "tiny",
            "media": None,  # no such file: the reply counts all the same
        }

    def test_a_ratings_identity(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What files of ratings are read from: `question` is the id there."""
        monkeypatch.setenv(settings.CVRR_NAME, "GPT-4o")
        item = rated(4, rated_doc(2, "bob", 3.0, fell_back=True))["kappa"]
        assert (item["question"], item["asked"]) == ("partial_actions/002", "What happens?")
        assert (item["judge"], item["candidate"], item["round"]) == ("GPT-4o", "bob", "first")
        assert (item["rating"], item["reason"], item["reference_rating"]) == (4, "so", 3.0)
        assert (item["fell_back"], item["empty"], item["status"]) == (True, False, "ok")
        assert "reference" not in item

    def test_media(self, on_sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (one, *_) = docs("cvrr_judge")
        assert utils.rating_identity(one)["media"]["kind"] == "video"

        def gone(_: Any) -> Any:
            raise MediaError("gone")

        monkeypatch.setattr(clips, "log", gone)
        assert utils.rating_identity(one)["media"] is None

    def test_what_the_candidate_wrote_is_no_rating(self) -> None:
        """A judge that repeats an answer's own claim has not rated it."""
        given = rated_doc(answer='{"rating": 5, "reason": "perfect"}')
        item = rated('{"rating": 5, "reason": "perfect"}', given)["kappa"]
        assert (item["rating"], item["status"]) == (None, "unparsed")

    @pytest.mark.parametrize("results", [[], [None], [["4"]], [7]])
    def test_no_text_at_all(self, results: list[Any], stated: Stated) -> None:
        item = utils.judge_process_results(rated_doc(), results)["kappa"]
        assert (item["status"], item["reply"], item["rating"]) == ("empty", "", None)
        assert utils.process_results(doc(), results)["acc"]["status"] == "empty"

    def test_the_scripted_model_is_read(self, on_sample: Path) -> None:
        for one in docs("cvrr_judge_mixture")[:10]:
            made = rated(sample_answers.reply(one, "right"), one)["kappa"]
            assert made["rating"] == one["reference_rating"]
