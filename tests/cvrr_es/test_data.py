"""What can be asked and rated: what stops a run, docs, media, and what a run's results say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import data, release
from lmms_eval_tasks.cvrr_es.settings import (
    CVRR_CANDIDATES,
    CVRR_NAME,
    CVRR_RATINGS,
    CVRR_REFERENCE,
    CVRR_SELECTION,
)
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.cvrr_es.tasks import BENCHMARK
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.runs import prepare
from tests.checks import annotated, limits_of
from tests.cvrr_es.release_files import predict, row, write
from tests.cvrr_es.scored import PART, TIME, write_ratings
from tests.cvrr_es.scored import row as rating

ASKED = {PART: ["What happens?", "What happens?", "Who is there?"], TIME: ["When?", "Why?"]}
ANSWER, OTHER = f"cvrr_es_{PART}", f"cvrr_es_{TIME}"


def look(*tasks: str) -> data.Checked:
    return BENCHMARK.load(tasks)


def docs(task: str) -> list[Any]:
    return prepare.usable_docs(BENCHMARK, task)


def ran(*names: str) -> dict[str, Any]:
    prepare.check_tasks(names)
    return annotated("cvrr_es", *names)


def say(folder: Path, name: str, dimensions: Any = tuple(ASKED)) -> None:
    """A candidate that answers everything in some dimensions."""
    for one in dimensions:
        predict(folder / name, one, [(q, f"{name} {n}") for n, q in enumerate(ASKED[one])])


@pytest.fixture
def folder(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Candidates ada and bob, named by the user."""
    for name in ("ada", "bob"):
        say(tmp_path / "said", name)
    monkeypatch.setenv(CVRR_CANDIDATES, str(tmp_path / "said"))
    return tmp_path


def named(variable: str, rows: list[RatingRow], tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / f"{variable}.jsonl"
    write_ratings(file, rows)
    monkeypatch.setenv(variable, str(file))


def test_every_task_leaves_out_the_same_questions(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of other dimensions: its means are over the same videos."""
    found = look(ANSWER, OTHER)
    assert (found.left_out(ANSWER), found.candidates, found.rated) == ({}, (), {})
    write(user, TIME, [row("When?", "Noon."), row("", "x")])
    (user / PART / "1.mp4").unlink()
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    assert look(ANSWER).left_out(ANSWER).keys() == {f"{PART}/001", f"{TIME}/002"}


class TestCandidates:
    def test_what_stops(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = look("cvrr_judge", ANSWER)
        assert [one.candidate for one in found.candidates] == ["ada", "bob"]
        assert list(found.rated) == ["cvrr_judge"]
        say(folder / "said", "carl", (TIME,))
        with pytest.raises(DataError, match="carl: no answers in partial_actions"):
            look("cvrr_judge")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert len(look("cvrr_judge").candidates[2].answers) == 2
        say(folder / "said", "Ada!")
        with pytest.raises(DataError, match=r"candidates Ada! and ada .*kappa_of_ada.*rename"):
            look("cvrr_judge")
        monkeypatch.setenv(CVRR_CANDIDATES, "")
        with pytest.raises(
            DataError, match=r"no answers to judge: .*--cvrr-candidates PATH,PATH .or LMMS"
        ):
            look("cvrr_judge")


class TestRatings:
    def test_shown(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Off the scale they stop, or are left out: nobody is shown a 7."""
        for kind in ("collective", "mixture"):
            with pytest.raises(DataError, match=r"no ratings by other judges: .*--cvrr-ratings"):
                look("cvrr_judge", f"cvrr_judge_{kind}")
        named(CVRR_RATINGS, [rating(1, 7), rating(2, 4)], tmp_path, monkeypatch)
        with pytest.raises(DataError, match="rating: Input should be less than or equal to 5"):
            look("cvrr_judge_collective")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        shown = {one["id"]: one["others"] for one in docs("cvrr_judge_collective")}
        assert shown[f"{PART}/001/ada"] == []
        assert [one["rating"] for one in shown[f"{PART}/002/ada"]] == [4.0]

    def test_reference(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert data.reference() == []
        both = [rating(1, 2, who, round="reference") for who in ("debate", "single")]
        for rows, told in (
            ([rating(1, 4)], r"no ratings of the round `reference` .*tasks debate"),
            (
                both,
                "partial_actions/001, ada: reference ratings by debate and single; name only one",
            ),
            (
                [rating(1, 3, "debate", "Z", round="reference")],
                "no reference rating belongs to these",
            ),
        ):
            named(CVRR_REFERENCE, rows, tmp_path, monkeypatch)
            with pytest.raises(DataError, match=told):
                look("cvrr_judge")
        rows = [rating(3, 2, "debate", "bob", round="reference"), rating(3, 4, "Zoe", "bob")]
        named(CVRR_REFERENCE, rows, tmp_path, monkeypatch)
        made = docs("cvrr_judge")
        known = {one["id"]: one["reference_rating"] for one in made}
        assert known.pop(f"{PART}/003/bob") == 2
        assert set(known.values()) == {None}
        assert "planted" not in json.dumps(made)


def test_docs_of_questions(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = docs(ANSWER)
    assert [one["id"] for one in made] == [f"{PART}/{n:03d}" for n in (1, 2, 3)]
    assert made[1] == {
        "id": f"{PART}/002",
        "dimension": PART,
        "video": f"{PART}/2.mp4",
        "video_path": str((user / PART / "2.mp4").resolve()),
        "start": None,
        "end": None,
        "n_frames": 0,
        "question": "What happens?",
        "reference": "A planted cat sleeps.",
        "references": ["A planted cat sleeps."],
        "lure": "Nobody planted is there.",
        "data": release.read_cvrr(settings.required_folder("cvrr_es", "CVRR-ES", "")).digest,
        "task": ANSWER,
    }
    second = docs(OTHER)
    assert second[-1]["lure"] == "A planted dog runs."
    # Both have a 1.mp4: intervals are clustered by the dimension's own.
    assert (made[0]["video"], second[0]["video"]) == (f"{PART}/1.mp4", f"{TIME}/1.mp4")
    monkeypatch.setenv(settings.FRAMES, "8,2.mp4=4")
    assert [one["n_frames"] for one in (*docs(ANSWER), *docs(OTHER))] == [8, 4, 4, 8, 8]


# --- what a run's results say ---------------------------------------------------------------------

TRUTH = (1, 5, 2)


@pytest.fixture
def study(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """ada's answers to all of PART; ratings by Zoe, Yan (who is wrong, on a part) and the model."""
    shutil.rmtree(user / TIME)
    predict(tmp_path / "said" / "ada", PART, list(zip(ASKED[PART], ("A.", "", "C."), strict=True)))
    first = [rating(n, r, judge) for judge in ("Zoe", "mine") for n, r in enumerate(TRUTH, 1)]
    first += [rating(1, 5, "Yan"), rating(2, None, "Yan")]
    reference = [rating(n, r, "debate", round="reference") for n, r in enumerate(TRUTH, 1)]
    for variable, rows in (
        (CVRR_RATINGS, first),
        (CVRR_REFERENCE, reference),
    ):
        named(variable, rows, tmp_path, monkeypatch)
    monkeypatch.setenv(CVRR_CANDIDATES, str(tmp_path / "said"))
    monkeypatch.setenv(CVRR_NAME, "Mine!")
    return tmp_path


class TestResults:
    def test_who_was_chosen(self, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (by_part,) = ran("cvrr_judge_mixture")["selected"].values()
        assert set(by_part) == {f"fold 0, {PART}", f"fold 1, {PART}"}
        monkeypatch.setenv(CVRR_SELECTION, "theta=0.5,cross_fit=no")
        section = ran("cvrr_judge_mixture", "cvrr_judge_collective")
        assert section["selection"] == "theta=0.5,cross_fit=no"
        kappa = {"Yan": 0.0, "Zoe": 1.0, "mine": 1.0}
        chosen = {"judges": ["Zoe", "mine"], "fell_back": False, "kappa": kappa}
        assert section["selected"] == {"cvrr_judge_mixture": {f"all, {PART}": chosen}}
        assert set(section["first_ratings"]) == {"cvrr_judge_mixture", "cvrr_judge_collective"}
        monkeypatch.delenv(CVRR_REFERENCE)
        (warning,) = limits_of(ran("cvrr_judge"))
        assert warning.startswith("no reference ratings (--cvrr-reference)")

    def test_where_nobody_was_chosen(self, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The paper does not say what happens: it is named."""
        monkeypatch.setenv(CVRR_SELECTION, "theta=0.99,cross_fit=no")
        assert limits_of(ran("cvrr_judge_mixture")) == []
        named(
            CVRR_RATINGS,
            [rating(n, 3, "Zoe") for n in (1, 2, 3)],
            study,
            monkeypatch,
        )
        assert limits_of(ran("cvrr_judge_mixture")) == [
            "cvrr_judge_mixture: no judge passed in 1 of 1 choices (one for each fold and "
            "dimension; theta=0.99,cross_fit=no); there the final judge rates alone",
            "cvrr_judge_mixture: no first rating by Mine! itself, which the published mixture may "
            "also see: name its cvrr_judge run with --cvrr-ratings",
        ]
