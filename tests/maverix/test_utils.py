"""From a reply to an item: letters, statuses, ratings, withheld answers, and errors of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from lmms_eval_tasks import running
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.judges.providers import NoJudge
from lmms_eval_tasks.maverix import scores, utils
from lmms_eval_tasks.maverix.labels import DIMENSIONS, LETTERS, MODES
from tests.maverix import runs
from tests.maverix.runs import sample

__all__ = ["sample"]
pytestmark = pytest.mark.usefixtures("sample")

REFUSAL = "I'm sorry, but I can't watch videos."
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a bug of ours")


def plain(value: Any) -> None:
    """Only what JSON has, by exact type: np.float64 is a float and would pass isinstance."""
    if isinstance(value, Mapping):
        assert all(type(key) is str for key in value)
        for inner in value.values():
            plain(inner)
    elif isinstance(value, list):
        for inner in value:
            plain(inner)
    else:
        assert type(value) in (str, int, float, bool, type(None)), type(value)


class TestChoice:
    """One eight-option question."""

    @pytest.mark.parametrize(
        ("reply", "status", "words"),
        [
            ("The best answer is: {right}", "ok", 5),
            ("{wrong}", "ok", 1),
            ("<think>is it A? or B?</think>\n{right}", "ok", 1),
            ("Either A or B.", "unparsed", 4),
            ("", "empty", 0),
            (" \n", "empty", 0),
            ("<think>hm hm hm", "truncated", 0),
            (REFUSAL, "refused", 7),
            ("I'm sorry, I can't answer that question based on the video.", "refused", 11),
            (FAILED, "model_error", 5),
        ],
    )
    def test_every_status(self, reply: str, status: str, words: int) -> None:
        doc = runs.docs("choice")[0]
        text = reply.format(right=doc["answer"], wrong=runs.wrong(doc))
        made = utils.choice_process_results(doc, [text])
        item = made["acc"]
        assert (item["status"], item["words"], item["reply"]) == (status, words, text)
        right = int("{right}" in reply)
        assert (item["right"], item["score"]) == (right, right)
        assert (item["letter"] is None) is (status != "ok")
        assert (item["file_letter"] is None) is (status != "ok")

    def test_every_letter_goes_back_to_the_file(self) -> None:
        released = {entry.id: entry for entry in runs.data.load().items}
        moved = 0
        for doc in runs.docs("choice"):
            entry = released[doc["id"]]
            for place, letter in enumerate(LETTERS):
                item = utils.choice_process_results(doc, [letter])["acc"]
                in_file = LETTERS.index(item["file_letter"])
                assert entry.options[in_file] == doc["options"][place]
                assert item["right"] == int(in_file == entry.answer)
                moved += item["file_letter"] != letter
        assert moved > 100

    def test_which_metrics_have_the_item(self) -> None:
        doc = runs.docs("choice")[0]
        made = utils.choice_process_results(doc, ["A"])
        assert next(iter(made)) == "acc"
        assert made.keys() <= scores.CHOICE.keys()
        assert {f"acc_{split}_{doc[split]}" for split in ("difficulty", "topic")} <= made.keys()
        # The host makes a clustered standard error of whatever has `score`.
        assert {name for name, item in made.items() if "score" in item} == {
            name for name in made if scores.is_mean(name)
        }
        for name, item in made.items():
            assert ("reply" in item) is (name == "acc")
            assert item["video"] == doc["video"]

    def test_a_withheld_answer_carries_no_score(self) -> None:
        doc = runs.withheld(runs.docs("choice")[0])
        made = utils.choice_process_results(doc, ["C"])
        for item in made.values():
            assert "score" not in item
            assert item["right"] is None
            assert item["withheld"] is True
        assert made["acc"]["file_letter"] == doc["file_letters"][2]
        assert scores.CHOICE["acc"]([made["acc"]]) is None

    @pytest.mark.parametrize("results", [[], [None], [["A"]]])
    def test_no_reply_at_all_is_an_empty_one(self, results: Any) -> None:
        item = utils.choice_process_results(runs.docs("choice")[0], results)["acc"]
        assert (item["status"], item["right"]) == ("empty", 0)

    def test_identity_outlives_its_files(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The answer was paid for: it counts although the subtitle file is gone by now."""
        doc = {**runs.docs("choice")[0], "subtitle_path": "/gone/x.srt"}
        item = utils.choice_process_results(doc, [doc["answer"]])["acc"]
        assert (item["right"], item["media"]) == (1, None)
        assert "Traceback" not in capsys.readouterr().err


class TestCircular:
    """The same question, turned eight times."""

    def test_one_option_text_is_one_letter_of_the_file(self) -> None:
        turns = runs.docs("circular")[:8]
        for text in runs.docs("choice")[0]["options"]:
            items = [
                utils.circular_process_results(doc, [LETTERS[doc["options"].index(text)]])["acc"]
                for doc in turns
            ]
            assert {item["letter"] for item in items} == set(LETTERS)
            assert len({item["file_letter"] for item in items}) == 1
            assert len({item["right"] for item in items}) == 1
        assert [item["rotation"] for item in items] == list(range(8))
        assert {item["question_id"] for item in items} == {turns[0]["question_id"]}

    def test_always_right_and_always_a(self) -> None:
        turns = runs.docs("circular")
        good = runs.aggregated("circular", runs.score("circular", turns, runs.right))
        assert (good["circ_acc"], good["position_bias"]) == (1, 0)
        always = runs.aggregated("circular", runs.score("circular", turns, lambda _: "A"))
        assert (always["circ_acc"], always["position_bias"], always["acc"]) == (0, 7 / 8, 1 / 8)


class TestOpen:
    """What is no judge's affair; the judge itself is in test_maverix_judge.py."""

    def test_withheld_references_are_not_judged(self) -> None:
        doc = runs.withheld(runs.docs("open")[0])
        made = utils.open_process_results(doc, ["<think>x</think> It is red."])
        item = made[scores.FIRST["open"]]
        assert (item["candidate"], item["status"], item["words"]) == ("It is red.", "ok", 3)
        assert (item["dimensions"], item["withheld"]) == ({}, True)
        assert all(
            scores.OPEN[name]([made[name]]) is None for name in made if name.startswith(DIMENSIONS)
        )

    @pytest.mark.parametrize(
        ("reply", "status"),
        [("", "empty"), (REFUSAL, "refused"), ("<think>x", "truncated"), (FAILED, "model_error")],
    )
    @pytest.mark.parametrize("hidden", [True, False])
    def test_what_is_no_answer_is_no_candidate(self, reply: str, status: str, hidden: bool) -> None:
        """Whether the reference is there or not: a submission must not hold a host's error."""
        doc = runs.docs("open")[0]
        doc = runs.withheld(doc) if hidden else doc
        item = utils.open_process_results(doc, [reply])[scores.FIRST["open"]]
        assert (item["candidate"], item["status"]) == ("", status)
        assert item["words"] == len(reply.split()) * (status in ("refused", "model_error"))


@pytest.mark.parametrize("kind", ["choice", "circular", "open"])
@pytest.mark.parametrize("hidden", [True, False])
def test_items_are_plain(kind: str, hidden: bool) -> None:
    for doc in runs.docs(kind)[:6]:
        shown = runs.withheld(doc) if hidden else doc
        for reply in ("A", "", "\x00\ud83d", "C" * 20000, FAILED):
            for item in runs.PROCESS[kind](shown, [reply]).values():
                plain(item)
                json.dumps(item)


class TestErrors:
    """An exception of ours while scoring must not lose the run."""

    @pytest.mark.parametrize("kind", ["choice", "circular", "open"])
    @pytest.mark.parametrize("mode", ["a", "vs"])
    def test_before_scoring_too(
        self, kind: str, mode: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is told of the sound and of the media may fail as well."""
        docs = runs.docs(kind, mode)[:8]
        good = [set(one) for one in runs.score(kind, docs, runs.right)]
        monkeypatch.setattr(utils.running, "hears", fail)
        scored = runs.score(kind, docs, runs.right)
        assert [one[scores.FIRST[kind]]["status"] for one in scored] == ["error"] * 8
        assert [one[scores.FIRST[kind]]["sound"] for one in scored] == [
            "unknown" if mode == "a" else ""
        ] * 8
        assert [set(one) for one in scored] == good  # it counts in the same metrics
        monkeypatch.undo()
        monkeypatch.setattr(utils, "_media_log", fail)
        assert runs.score(kind, docs[:1], runs.right)[0][scores.FIRST[kind]]["media"] is None

    @pytest.fixture
    def broken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(utils, "choice_metrics", fail)
        monkeypatch.setattr(utils, "open_metrics", fail)

    @pytest.mark.parametrize("kind", ["choice", "circular", "open"])
    @pytest.mark.parametrize("hidden", [True, False])
    def test_an_item_with_status_error_stays(
        self, kind: str, hidden: bool, broken: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        docs = [runs.withheld(doc) if hidden else doc for doc in runs.docs(kind)[:8]]
        scored = runs.score(kind, docs, lambda _: "B")
        said = capsys.readouterr().err
        assert f"scoring {docs[0]['id']} failed" in said
        assert "a bug of ours" in said
        for one in scored:
            item = one[scores.FIRST[kind]]
            assert (item["status"], item["reply"], item["right"]) == ("error", "B", None)
            assert not [1 for values in one.values() if "score" in values]
        assert all(name in scored[0] for name in scores.JOINED if kind == "choice")
        capsys.readouterr()
        found = runs.aggregated(kind, scored)
        for entry in getattr(scores, f"{kind.upper()}_METRICS"):
            own = [one[entry["metric"]] for one in scored if entry["metric"] in one]
            entry["aggregation"](own)
        assert "N/A" not in capsys.readouterr().err
        expected = None if hidden else 0 if kind != "open" else None
        assert found[scores.FIRST[kind]] == expected
        assert found["words_mean"] is None
        assert found["n_withheld"] == (8 if hidden else 0)

    def test_beside_good_items(self, monkeypatch: pytest.MonkeyPatch) -> None:
        docs = runs.docs("choice")[:4]
        good = runs.score("choice", docs[:3], runs.right)
        monkeypatch.setattr(utils, "choice_metrics", fail)
        found = runs.aggregated("choice", [*good, *runs.score("choice", docs[3:], runs.right)])
        assert (found["acc"], found["acc_valid"], found["acc_failed"]) == (3 / 4, 1, 1)

    def test_open_error_is_no_rating(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(utils, "open_metrics", fail)
        found = runs.aggregated("open", runs.score("open", runs.docs("open")[:2], runs.right))
        for dimension in DIMENSIONS:
            assert found[f"{dimension}_valid"] is None
            assert found[f"{dimension}_failed"] == 2
            assert found[f"{dimension}_coverage"] == 0
        assert (found["robust_n"], found["robust_failed"]) == (0, 1)


def test_no_judge_is_looked_for_where_the_reference_is_withheld(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(utils.judging, "config", fail)
    item = utils.open_process_results(runs.withheld(runs.docs("open")[0]), ["red"])
    assert item[scores.FIRST["open"]]["status"] == "ok"
    assert capsys.readouterr().err == ""


def test_every_item_tells_what_the_model_hears() -> None:
    """Of modes without sound too: S stands for A in Table 3 if the model has none."""
    with running.model(running.Model("openai", "simple")):
        items = {mode: utils.identity(runs.docs("choice", mode)[0]) for mode in MODES}
    hears = {"a": "delivered", "av": "not delivered"}
    assert [item["hears"] for item in items.values()] == [hears] * 5
    assert {mode: item["sound"] for mode, item in items.items()} == {
        **dict.fromkeys(MODES, ""),
        **hears,
    }


def test_nobody_is_asked_without_a_judge() -> None:
    item = utils.identity(runs.docs("open")[0])
    made = utils.open_metrics(scores.OPEN, item, "red", judge=NoJudge(JudgeConfig(NONE)))
    assert made[scores.FIRST["open"]]["status"] == "unjudged"
    assert scores.OPEN["correctness_valid"]([made["correctness_valid"]]) is None
