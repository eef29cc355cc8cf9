"""Which questions can be asked and which answers rated; what stops a run, in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import data
from lmms_eval_tasks.cvrr_es.data import Checked
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.errors import DataError, TasksError
from tests.cvrr_es.release_files import predict, row, write
from tests.cvrr_es.scored import PART, TIME
from tests.cvrr_es.scored import row as rating

ASKED = {PART: ["What happens?", "What happens?", "Who is there?"], TIME: ["When?", "Why?"]}
ANSWER, OTHER = f"cvrr_es_{PART}", f"cvrr_es_{TIME}"


def look(*tasks: str) -> Checked:
    return data.look(data.load(), tasks)


def say(folder: Path, name: str, dimensions: Any = tuple(ASKED)) -> None:
    """A candidate that answers everything in some dimensions."""
    for dimension in dimensions:
        predict(
            folder / name, dimension, [(q, f"{name} {n}") for n, q in enumerate(ASKED[dimension])]
        )


@pytest.fixture
def folder(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Candidates ada and bob, named by the user."""
    for name in ("ada", "bob"):
        say(tmp_path / "said", name)
    monkeypatch.setenv(settings.CVRR_CANDIDATES, str(tmp_path / "said"))
    return tmp_path


def named(variable: str, rows: list[RatingRow], tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / f"{variable}.jsonl"
    ratings.write(file, rows)
    monkeypatch.setenv(variable, str(file))


class TestQuestions:
    def test_all_is_well(self, user: Path) -> None:
        found = look(ANSWER, OTHER)
        assert (found.left_out(), found.candidates, found.rated) == ({}, (), {})
        assert list(found.by_id) == [one["id"] for one in data.rows(data.load())]

    def test_everything_is_told_at_once(self, user: Path) -> None:
        write(user, TIME, [row("When?", "Noon."), row("", "x"), row("How?", "So.", "9.mp4")])
        (user / PART / "2.mp4").write_text("bad")
        with pytest.raises(DataError) as error:
            look(OTHER)
        told = str(error.value)
        assert "1 of 6 CVRR-ES questions cannot be used:\n  time_order_understanding/002: " in told
        assert "the videos of 1 of 6 CVRR-ES questions are not there" in told
        assert "the videos of 2 of 6 CVRR-ES questions cannot be read" in told
        assert "--allow-bad-items" in told
        assert told.count("--allow-missing-videos") == 2

    def test_left_out(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(user, TIME, [row("When?", "Noon."), row("", "x")])
        (user / PART / "1.mp4").unlink()
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        with pytest.raises(DataError, match="are not there"):
            look(ANSWER)
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        found = look(ANSWER).left_out()
        assert found.keys() == {f"{PART}/001", f"{TIME}/002"}
        assert found[f"{PART}/001"].startswith("missing: ")

    def test_nothing_is_left_of_a_task(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("1", "3"):
            (user / TIME / f"{name}.mp4").unlink()
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        assert look(ANSWER)
        with pytest.raises(DataError, match=f"{OTHER}: not one question can be asked"):
            look(ANSWER, OTHER)
        with pytest.raises(DataError, match="cvrr_es_partial_actions_x: not one question"):
            look("cvrr_es_partial_actions_x")


class TestCandidates:
    def test_aligned(self, folder: Path) -> None:
        found = look("cvrr_judge", ANSWER)
        assert [one.candidate for one in found.candidates] == ["ada", "bob"]
        assert list(found.rated) == ["cvrr_judge"]

    def test_none_is_named(self, user: Path) -> None:
        with pytest.raises(
            DataError, match=r"no candidates to judge: .*--cvrr-candidates or LMMS_"
        ):
            look("cvrr_judge")

    def test_answers_that_do_not_fit(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        say(folder / "said", "carl", (TIME,))
        with pytest.raises(DataError, match="carl: no answers in partial_actions"):
            look("cvrr_judge")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert len(look("cvrr_judge").candidates[2].answers) == 2

    def test_names_that_metrics_cannot_tell_apart(self, folder: Path) -> None:
        say(folder / "said", "Ada!")
        with pytest.raises(DataError, match=r"candidates Ada! and ada .*kappa_of_ada.*rename"):
            look("cvrr_judge")

    def test_no_answer_to_what_can_be_asked(
        self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        say(tmp_path, "carl", (TIME,))
        monkeypatch.setenv(settings.CVRR_CANDIDATES, str(tmp_path / "carl"))
        for name in (settings.ALLOW_BAD_ITEMS, settings.ALLOW_MISSING):
            monkeypatch.setenv(name, "1")
        for name in ("1", "3"):
            (user / TIME / f"{name}.mp4").unlink()
        with pytest.raises(DataError, match="no candidate answered a question that can be asked"):
            look("cvrr_judge")


class TestRatings:
    def test_none_are_named(self, folder: Path) -> None:
        for kind in ("collective", "mixture"):
            with pytest.raises(DataError, match=r"no ratings of other judges: .*--cvrr-ratings"):
                look("cvrr_judge", f"cvrr_judge_{kind}")

    def test_shown(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        named(settings.CVRR_RATINGS, [rating(1, 4), rating(2, None)], tmp_path, monkeypatch)
        (rated,) = look("cvrr_judge_collective").rated.values()
        assert [len(one) for one in rated.first.values()] == [1, 1]

    def test_off_the_scale(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They stop, or count as failures of the judge who gave them: nobody is shown a 7."""
        named(settings.CVRR_RATINGS, [rating(1, 7), rating(2, 4)], tmp_path, monkeypatch)
        with pytest.raises(DataError, match="7 is off the scale of 1 to 5"):
            look("cvrr_judge_collective")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        rated = look("cvrr_judge_collective").rated["cvrr_judge_collective"]
        made = rated.docs(data.rows(data.load()))
        shown = {one["id"]: [o["rating"] for o in one["others"]] for one in made}
        assert (shown[f"{PART}/001/ada"], shown[f"{PART}/002/ada"]) == ([], [4.0])

    def test_a_misspelt_selection(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.CVRR_SELECTION, "theta=8")
        with pytest.raises(TasksError, match="expected a form like theta"):
            look("cvrr_judge")


class TestReference:
    def test_none(self) -> None:
        assert data.reference() == []

    def test_rows_of_its_round_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [rating(1, 4), rating(1, 2, "debate", round="reference")]
        named(settings.CVRR_REFERENCE, rows, tmp_path, monkeypatch)
        assert [one.judge for one in data.reference()] == ["debate"]

    def test_first_ratings_are_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        named(settings.CVRR_REFERENCE, [rating(1, 4)], tmp_path, monkeypatch)
        with pytest.raises(DataError, match=r"no rows of the round `reference` .*tasks debate"):
            data.reference()

    def test_two_of_one_answer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [rating(1, n, name, round="reference") for n, name in ((2, "debate"), (3, "single"))]
        named(settings.CVRR_REFERENCE, rows, tmp_path, monkeypatch)
        message = "partial_actions/001, ada: reference ratings by debate and single; name one"
        with pytest.raises(DataError, match=message):
            data.reference()

    def test_a_reference_of_other_candidates(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = [rating(1, 3, "debate", "Video-LLaVA", round="reference")]
        named(settings.CVRR_REFERENCE, rows, tmp_path, monkeypatch)
        with pytest.raises(DataError, match="no reference rating is of these answers"):
            look("cvrr_judge")

    def test_joined(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [rating(3, 2, "debate", "bob", round="reference")]
        named(settings.CVRR_REFERENCE, rows, tmp_path, monkeypatch)
        made = look("cvrr_judge").rated["cvrr_judge"].docs(data.rows(data.load()))
        known = {one["id"]: one["reference_rating"] for one in made}
        assert known.pop(f"{PART}/003/bob") == 2
        assert set(known.values()) == {None}
        assert "planted" not in json.dumps(made)
