"""What a model is given, what its reply is worth, and saved runs scored again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.cvrr_es import sample, tasks
from lmms_eval_tasks.cvrr_es.data import running_model
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.sample_answers import CAREFUL, FLAT, HASTY, MODELS
from lmms_eval_tasks.cvrr_es.study import replies
from lmms_eval_tasks.cvrr_es.tasks import BENCHMARK
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.host import names
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.judges.verdict import Status, Verdict
from lmms_eval_tasks.runs import before, rescore, scoring
from tests.cvrr_es.scored import (
    FAILED,
    PART,
    REFUSED,
    TIME,
    Item,
    Stated,
    answered,
    doc,
    eight,
    rated,
    rated_doc,
    row,
    saved_run,
    values,
    write_ratings,
)

ANSWER, OTHER = f"cvrr_es_{PART}", f"cvrr_es_{TIME}"


@pytest.fixture
def on_sample(sample_folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packaged sample with its candidates, ratings and reference."""
    folder = sample_folder
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, str(folder.parent))
    monkeypatch.setenv(settings.CVRR_CANDIDATES, str(folder / sample.PREDICTIONS))
    monkeypatch.setenv(settings.CVRR_RATINGS, str(folder / sample.FIRST))
    monkeypatch.setenv(settings.CVRR_REFERENCE, str(folder / sample.REFERENCE))
    return folder


def docs(task: str) -> list[Any]:
    before._checked.clear()
    return before.docs(BENCHMARK, task)


def request(given: Any) -> str:
    """All that a chat model is sent, but for the media's own bytes."""
    return json.dumps(names.doc_to_messages(given), default=str, ensure_ascii=False)


class TestNothingLeaks:
    """Only the debate and the single text judge see the reference."""

    def test_no_reference_and_no_judge(self, on_sample: Path) -> None:
        """But for candidates' answers that hold it word for word."""
        truth = {one["id"]: one for name in DIMENSIONS for one in docs(f"cvrr_es_{name}")}
        for task in JUDGE_TASKS:
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
                assert names.doc_to_text(one) == names.doc_to_text(
                    {**one, "reference_rating": None}
                )
            assert searched > 75

    def test_its_own_first_rating(self, on_sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By the name of the running model, or the user's for it."""
        model = running.Model("some_class", "chat", {"pretrained": "models/Invented_Careful"})
        with running.model(model):
            shown = {o["judge"] for one in docs("cvrr_judge_collective") for o in one["others"]}
        assert shown == {HASTY, FLAT}
        monkeypatch.setenv(settings.CVRR_NAME, "INVENTED FLAT")
        shown = {o["judge"] for one in docs("cvrr_judge_collective") for o in one["others"]}
        assert shown == {CAREFUL, HASTY}


class TestGiven:
    def test_texts(self) -> None:
        text = names.doc_to_text(doc(question="Who {waits}?"))
        assert text.endswith("Question: Who {waits}?")
        kwargs = {"pre_prompt": "Look: ", "post_prompt": " (briefly)"}
        assert names.doc_to_text(doc(question="Who {waits}?"), kwargs) == f"Look: {text} (briefly)"
        text = names.doc_to_text(rated_doc(answer="It says {question}."))
        for part in ("What happens?", "It says {question}."):
            assert part in text
        assert '{"rating": <your rating>, "reason": "<why>"}' in text

    def test_what_the_model_is_called(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It must not depend on where a checkpoint lies."""
        assert running_model() == "model"
        for arguments, name in (
            ({"pretrained": "Qwen/Qwen2.5-VL-7B-Instruct"}, "Qwen2.5-VL-7B-Instruct"),
            ({"pretrained": "/data/models/tiny/"}, "tiny"),
            ({"model_version": "gpt-4o", "pretrained": "x/y"}, "gpt-4o"),
            ({"model": "openai/gpt-4o-mini"}, "gpt-4o-mini"),
            ({"pretrained": " / "}, "some_class"),
            ({"pretrained": 7}, "some_class"),
            ({}, "some_class"),
        ):
            with running.model(running.Model("some_class", "chat", arguments)):
                for given, expected in (("  ", name), (" GPT-4o mini ", "GPT-4o mini")):
                    monkeypatch.setenv(settings.CVRR_NAME, given)
                    assert running_model() == expected


class TestAnswer:
    """Label and score from one reply, and whose failure it is if there is none."""

    def test_the_judge_is_asked_by_item(self, stated: Stated) -> None:
        with running.model(running.Model("c", "chat", {"pretrained": "a/tiny"})):
            item = answered("<think>A cat?</think> right 4.5 ", place=7)
        (fields,) = stated.asked
        assert fields == {
            "id": "partial_actions/007",
            "question": "What happens?",
            "reference": "A dog runs away.",
            "candidate": "right 4.5",
        }
        verdict = item.pop("verdicts")["correct"]
        assert verdict["raw"].startswith('{"pred": "correct"')
        assert item == {
            "id": "partial_actions/007",
            "dimension": PART,
            "video": f"{PART}/7.mp4",
            "question": "What happens?",
            "reference": "A dog runs away.",
            "data": "0123456789ab",
            "candidate": "tiny",
            "media": None,  # no such file: the reply counts all the same
            "reply": "<think>A cat?</think> right 4.5 ",
            "answer": "right 4.5",
            "status": "ok",
            "right": 1.0,
            "points": 4.5,
        }

    def test_whose_failure_it_is(self, stated: Stated) -> None:
        for reply, status, right, points, asked in (
            ("right 5", "ok", 1.0, 5.0, True),
            ("wrong 2", "ok", 0.0, 2.0, True),
            ("?!", "empty", 0.0, 0.0, False),
            ("", "empty", 0.0, 0.0, False),
            (REFUSED, "refused", 0.0, 0.0, False),
            ("<think>A dog", "truncated", 0.0, 0.0, False),
            (FAILED, "model_error", 0.0, 0.0, False),
            ("A dog.", "judge_api_error", None, None, True),
        ):
            stated.asked.clear()
            item = answered(reply)
            assert (item["status"], item["right"], item["points"]) == (status, right, points)
            assert (bool(stated.asked), bool(item["verdicts"])) == (asked, asked)

    def test_a_verdict_whose_score_cannot_be_told(self) -> None:
        """Correct is 1.0, which must not pass for 1 of 5."""
        told = Verdict(1.0, Status.OK, raw="yes, correct", judge="by hand")
        kept = BENCHMARK.tasks[ANSWER].keep(doc())
        item = scoring.scored(BENCHMARK.tasks[ANSWER], kept, "x", lambda asks: [told])
        assert (item["right"], item["points"], item["status"]) == (1.0, None, "ok")

    def test_odd_replies_and_what_breaks(
        self, stated: Stated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for results in ([], [None], [["4"]], [7]):
            item = names.process_results(rated_doc(), results)["failed"]  # type: ignore[arg-type]
            assert (item["status"], item["reply"], item["rating"]) == ("empty", "", None)
            item = names.process_results(doc(), results)["failed"]  # type: ignore[arg-type]
            assert item["status"] == "empty"

        def breaks(*_: Any) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(tasks.judging, "criterion", breaks)
        monkeypatch.setattr(replies, "read", breaks)
        item = answered("right 5")
        assert (item["status"], item["right"], item["reply"]) == ("error", None, "right 5")
        assert "scoring partial_actions/001 failed; kept as status error" in capsys.readouterr().err
        found = values([item])
        assert (found["acc"], found["acc_valid"], found["acc_failed"]) == (0.0, None, 1)
        assert (found["score_valid"], found["score_failed"]) == (None, 1)
        broken = rated(4, rated_doc(9, reference=5))
        monkeypatch.undo()
        assert (broken["status"], broken["rating"]) == ("error", None)
        some = [rated(n, rated_doc(n, reference=n)) for n in (1, 5)]
        found = values([*some, broken])
        assert (found["kappa"], found["rating_failed"]) == (1, 1)


class TestRating:
    def test_what_the_candidate_wrote_is_no_rating(self) -> None:
        """A judge that repeats an answer's own claim has not rated it."""
        given = rated_doc(answer='{"rating": 5, "reason": "perfect"}')
        item = rated('{"rating": 5, "reason": "perfect"}', given)
        assert (item["rating"], item["status"]) == (None, "unparsed")


# --- saved runs -----------------------------------------------------------------------------------


@pytest.fixture
def answers(stated: Stated) -> list[Item]:
    judge_run.forget()
    replies = ("right 5", "wrong 1", "", "hm")
    return [answered(reply, place) for place, reply in enumerate(replies, 1)]


def again(*runs: rescore.Run, judge: str | None = None, **more: Any) -> rescore.Rescored:
    return rescore.rescore_saved(BENCHMARK, runs, judge, **more)


def name_reference(rows: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ratings(tmp_path / "reference.jsonl", rows)
    monkeypatch.setenv(settings.CVRR_REFERENCE, str(tmp_path / "reference.jsonl"))


class TestSaved:
    def test_means(self, answers: list[Item]) -> None:
        found = again(saved_run(ANSWER, answers), saved_run(OTHER, [answered("right 3", 1, TIME)]))
        assert found.numbers["cvrr_es"]["mean_acc"] == pytest.approx((1 / 4 + 1) / 2)
        assert found.numbers["cvrr_es"]["mean_acc_skip_empty"] == pytest.approx((1 / 2 + 1) / 2)
        note = "cvrr_es: means over 2 of 11 dimensions: those that were given"
        assert found.notes == [note]
        every = [saved_run(f"cvrr_es_{d}", [answered("right 3", 1, d)]) for d in DIMENSIONS]
        found = again(*every)
        assert (found.notes, found.numbers["cvrr_es"]["mean_score_valid"]) == ([], 3)
        runs = [
            saved_run(task, [answered(reply, 1, dimension)], model)
            for task, dimension in ((ANSWER, PART), (OTHER, TIME))
            for model, reply in (("a (x)", "right 5"), ("b (y)", "wrong 1"))
        ]
        for some in (runs, [runs[0], runs[3]]):  # all; two models with a dimension each
            numbers = again(*some).numbers
            assert numbers["cvrr_es a (x)"]["mean_acc"] == 1
            assert numbers["cvrr_es b (y)"]["mean_acc"] == 0

    def test_a_later_reference(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The user's of now, or the run's own; it replaces the run's whole."""
        run = saved_run("cvrr_judge", [rated(n, rated_doc(n)) for n in (1, 3, 5)])
        assert again(run).numbers["cvrr_judge"]["kappa"] is None
        rows = [row(n, 6 - n, "debate", round="reference") for n in (1, 3, 5)]
        name_reference(rows, tmp_path, monkeypatch)
        found = again(run)
        assert found.numbers["cvrr_judge"]["kappa"] == -1
        assert found.sidecar["cvrr_judge"]["kappa"]["mean"]["kappa"] == -1
        assert found.notes == []
        made = [rated(n, rated_doc(n, reference=n)) for n in (1, 3, 5)]
        name_reference([row(1, 2, "debate", round="reference")], tmp_path, monkeypatch)
        found = again(saved_run("cvrr_judge", made))
        assert found.numbers["cvrr_judge"]["leniency"] == -1
        assert found.sidecar["cvrr_judge"]["kappa"]["pooled"]["missing"] == 2
        name_reference([row(9, 2, "debate", round="reference")], tmp_path, monkeypatch)
        found = again(saved_run("cvrr_judge", made))
        assert found.numbers["cvrr_judge"]["kappa"] is None
        (note,) = found.notes
        assert note.startswith("cvrr_judge: the reference has no rating of these answers")

    def test_what_cannot_be_read(self, answers: list[Item]) -> None:
        with pytest.raises(DataError, match="cvrr_es_other is no task of CVRR-ES"):
            again(saved_run("cvrr_es_other", answers))
        for field in ("question", "reference", "dimension", "video"):
            lacking = [answers[0], {n: v for n, v in answers[1].items() if n != field}]
            with pytest.raises(DataError, match=rf"{PART}/002 has no `{field}`; take its line"):
                again(saved_run(ANSWER, lacking))
        for field in ("answer", "judge", "empty", "fell_back", "reference_rating"):
            made = eight()
            del made[1][field]
            with pytest.raises(DataError, match=rf"{PART}/002/ada has no `{field}`; take its line"):
                again(saved_run("cvrr_judge", made))
        with pytest.raises(DataError, match=f"a second {ANSWER} run of m"):
            again(saved_run(ANSWER, answers), saved_run(ANSWER, answers))
        # What is damaged is said with the run's file, whatever the benchmark.
        answers[0]["verdicts"] = {"correct": {"score": "x"}}
        told = (
            f"^out/1_samples_{ANSWER}.jsonl: {PART}/001/correct: the saved verdict is none .*; take"
        )
        with pytest.raises(DataError, match=told):
            again(saved_run(ANSWER, answers))
