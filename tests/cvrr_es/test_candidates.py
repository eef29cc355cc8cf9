"""Candidates: predictions as released, saved samples, and the five published models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import candidates, release
from lmms_eval_tasks.cvrr_es.candidates import Aligned, align, read
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.release_files import (
    predict,
    row,
    write,
)

PART, TIME = "partial_actions", "time_order_understanding"
CONTINUITY = "continuity_and_object_instance_count"
ALLOW = "LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS"


@pytest.fixture
def release(tmp_path: Path) -> release.Release:
    """Three questions and one that repeats."""
    rows = [row("A?", "a"), row("X?", "x1"), row("B?", "b"), row("X?", "x2")]
    write(tmp_path / "release", PART, rows)
    return release.read(tmp_path / "release")


def aligned(folder: Path, release: release.Release, rows: Any) -> Aligned:
    """The alignment of one candidate's answers in PART."""
    model = folder / "predictions" / "model"
    predict(model, PART, rows)
    (candidate,) = read([model])
    return align(candidate, release)


class TestPredictions:
    """Released files: what is cleaned, what is counted."""

    NO = "I'm sorry, but I can't assist with that."

    def test_tokens_and_ends(self, tmp_path: Path, release: release.Release) -> None:
        found = aligned(
            tmp_path,
            release,
            [
                ("<image> <image>\nA?", "Yes.</s>"),
                ("<|image|><video>\n X?", " No </s> \n"),
                ("<ImageHere> B?", "One.\n\nTwo </s>!"),
                ("X?", "</s>"),
            ],
        )
        assert list(found.answers.values()) == ["Yes.", "No", "One.\n\nTwo </s>!", ""]
        assert (found.tokens, found.ends) == (3, 3)
        assert found.empty == (f"{PART}/004",)
        assert found.ways == {"order": 4}
        assert (found.problems, found.notes) == ((), ())

    @pytest.mark.parametrize("question", ["A <image> here?", "<b> in bold?", "< image >?"])
    def test_what_is_no_image_token_stays(self, question: str, tmp_path: Path) -> None:
        write(tmp_path / "release", PART, [row(question)])
        found = aligned(tmp_path, release.read(tmp_path / "release"), [(question, "Yes.")])
        assert (found.tokens, len(found.answers)) == (0, 1)

    def test_white_space_is_folded(self, tmp_path: Path, release: release.Release) -> None:
        found = aligned(
            tmp_path, release, [(" A?\n", "1"), ("X?", "2"), ("B? ", "3"), ("\tX?", "4")]
        )
        assert found.ways == {"order": 4}

    def test_empty_answers_are_kept(self, tmp_path: Path, release: release.Release) -> None:
        found = aligned(
            tmp_path, release, [("A?", ""), ("X?", " "), ("B?", "..."), ("X?", self.NO)]
        )
        assert len(found.answers) == 4
        assert found.empty == (f"{PART}/001", f"{PART}/002", f"{PART}/003")
        assert found.answers[f"{PART}/004"] == self.NO  # a refusal is no empty answer
        candidates.check([found])

    def test_judgements_beside(self, tmp_path: Path, release: release.Release) -> None:
        beside = tmp_path / "judge_results" / "model"
        judged = [
            [{"pred": "correct"}, {"q": "<image>\nX?", "a": "x2 ", "pred": "first</s>"}],
            [[{"pred": "correct"}, {"q": "X?", "a": "x1", "pred": "second"}]],
            [{"score": 3}],
            [{"q": "X?", "a": None, "pred": "first"}],
        ]
        predict(beside, PART, judged)
        rows = [("X?", "first"), ("A?", "A"), ("X?", "second"), ("B?", "B")]
        found = aligned(tmp_path, release, rows)
        assert list(found.answers.values()) == ["A", "second", "B", "first"]
        assert found.ways == {"text": 2, "judgement": 2}

    def test_judgements_against_the_order(self, tmp_path: Path, release: release.Release) -> None:
        judged = [
            [{}, {"q": "X?", "a": "x2", "pred": "1"}],
            [{}, {"q": "X?", "a": "x1", "pred": "3"}],
            [{}, {"q": "A?", "a": "older", "pred": "0"}],
        ]
        predict(tmp_path / "judge_results" / "model", PART, judged)
        rows = [("A?", "0"), ("X?", "1"), ("B?", "2"), ("X?", "3")]
        found = aligned(tmp_path, release, rows)
        assert list(found.answers.values()) == ["0", "3", "2", "1"]
        assert "its judgements say that answers are not" in found.notes[0]
        assert "1 answer judged in judge_results against another reference" in found.notes[1]
        assert found.notes[1].endswith("entry 1 (A?)")


class TestProblems:
    """One line each, with the file and the first place; left out only where the user says so."""

    @pytest.mark.parametrize(
        ("rows", "told", "left"),
        [
            (
                [("A?", "1"), ("X?", "2"), ("B?", "3")],
                [
                    ": 3 answers to the release's 4 questions",
                    f": questions without an answer: 1, first {PART}/004 (X?)",
                ],
                3,
            ),
            (
                [("A?", "1"), ("X?", "2"), ("Z?", "3"), ("X?", "4")],
                [
                    ": 1 answer to a question that is not in the release, first entry 3 (Z?)",
                    ": 2 answers to a repeated question in another order than the release's and "
                    "there is no judge_results beside, first entry 2 (X?)",
                    f": questions without an answer: 1, first {PART}/003 (B?)",
                ],
                1,
            ),
            (
                [("X?", "1"), ("B?", "2"), ("X?", "3"), ("A?", "4")],
                [
                    ": 2 answers to a repeated question in another order than the release's and "
                    "there is no judge_results beside, first entry 1 (X?)",
                ],
                2,
            ),
            (
                [("A?", "1"), ("A?", "1"), ("X?", "2"), ("B?", "3"), ("X?", "4")],
                [
                    ": 5 answers to the release's 4 questions",
                    ": 2 answers to a question that is answered more than once, first entry 1 (A?)",
                ],
                3,
            ),
            (
                [
                    {"Q": "A?", "A": "1"},
                    {"Q": "X?"},
                    {"Q": "B?", "A": 3},
                    {"Q": "X?", "A": None},
                ],
                [": 3 answers whose `A` is no text, first entry 2 (X?)"],
                1,
            ),
            (
                [{"Q": "A?", "A": "1"}, {"question": "B?", "A": "2"}, {"Q": 3, "A": "3"}],
                [
                    ": 3 answers to the release's 4 questions",
                    ": 2 answers whose `Q` is no text, first entry 2",
                    f": questions without an answer: 3, first {PART}/002 (X?)",
                ],
                1,
            ),
        ],
    )
    def test_one_line_each(
        self,
        rows: Any,
        told: list[str],
        left: int,
        tmp_path: Path,
        release: release.Release,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        found = aligned(tmp_path, release, rows)
        file = tmp_path / "predictions" / "model" / f"{PART}.json"
        assert list(found.problems) == [f"{file}{line}" for line in told]
        assert len(found.answers) == left
        with pytest.raises(DataError, match="answers do not fit the release") as error:
            candidates.check([found])
        assert str(error.value).count("\n") == len(told) + 1
        monkeypatch.setenv(ALLOW, "1")
        candidates.check([found])

    def test_a_bad_row_of_the_release_is_no_problem_of_the_answers(self, tmp_path: Path) -> None:
        write(tmp_path / "release", PART, [row("A?"), row("X?", ""), row("X?", "x2")])
        release = release.read(tmp_path / "release")
        found = aligned(tmp_path, release, [("A?", "1"), ("X?", "2"), ("X?", "3")])
        assert found.answers == {f"{PART}/001": "1", f"{PART}/003": "3"}
        assert found.problems == ()

    def test_dimensions(self, tmp_path: Path, release: release.Release) -> None:
        model = tmp_path / "model"
        predict(model, TIME, [("When?", "Now.")])
        (candidate,) = read([model])
        found = align(candidate, release)
        assert found.problems == (f"model: no answers in {PART} (4 questions)",)
        assert found.notes == (f"model: answers in {TIME}: not in the release",)
        with pytest.raises(DataError, match="model: not one answer fits the release: model: no an"):
            candidates.check([found])


class TestRead:
    """Where candidates are found, and what is no candidate."""

    def test_folders(self, tmp_path: Path) -> None:
        for model in ("two", "one"):
            predict(tmp_path / "all" / model, PART, [("A?", model)])
        (tmp_path / "all" / "notes").mkdir()
        predict(tmp_path / "alone", TIME, [("A?", "x")])
        found = read([tmp_path / "alone", tmp_path / "all", tmp_path / "all"])
        assert [(one.name, list(one.answers)) for one in found] == [
            ("alone", [TIME]),
            ("one", [PART]),
            ("two", [PART]),
        ]

    def test_two_of_one_name(self, tmp_path: Path) -> None:
        for folder in ("a", "b"):
            predict(tmp_path / folder / "model", PART, [("A?", "x")])
        with pytest.raises(DataError, match=r"two candidates are called model: .*a.* and .*b"):
            read([tmp_path / "a", tmp_path / "b"])

    @pytest.mark.parametrize(
        ("content", "told"),
        [("{", "not valid JSON"), ('{"a": 1}', "expected a list"), ("[]", "holds no answers")],
    )
    def test_no_predictions(self, content: str, told: str, tmp_path: Path) -> None:
        file = predict(tmp_path / "model", PART, [])
        file.write_text(content)
        with pytest.raises(DataError, match=told) as error:
            read([tmp_path / "model"])
        assert str(error.value).startswith(str(file))

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="nowhere: no such file or folder"):
            read([tmp_path / "nowhere"])
        with pytest.raises(DataError, match="no answers of a candidate"):
            read([tmp_path])

    def test_one_file_has_no_name(self, tmp_path: Path) -> None:
        file = predict(tmp_path / "model", PART, [("A?", "x")])
        with pytest.raises(DataError, match=r"json: name its folder, whose name is the candidate"):
            read([file])
