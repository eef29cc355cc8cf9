"""What a judge task rates: docs without the truth, others' ratings without the judge's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import inputs
from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.study import selection
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow
from lmms_eval_tasks.cvrr_es.study.selection import Material, Rated
from lmms_eval_tasks.cvrr_es.study.study import Place
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.scored import PART, TIME, doc, row

QUESTIONS = 6  # of PART, on as many videos


def candidate(name: str, answers: dict[int, str]) -> Aligned:
    texts = {f"{PART}/{place:03d}": text for place, text in answers.items()}
    empty = tuple(name for name, text in texts.items() if not text)
    return Aligned(name, texts, empty, 0, 0, {}, (), ())


ADA = candidate("ada", {n: f"Ada's answer {n}." for n in range(1, QUESTIONS + 1)})
BOB = candidate("bob", {1: "Bob's answer.", 2: ""})
TRUTH = (1, 5, 2, 4, 3, 5)  # of ada's answers


def rows(judge: str, ratings: Sequence[float | None], **more: Any) -> list[RatingRow]:
    return [row(n, one, judge, reason=f"{judge} says", **more) for n, one in enumerate(ratings, 1)]


REFERENCE = rows("debate", TRUTH, round="reference")
GOOD = rows("Zoe", TRUTH)
BAD = rows("Yan", [6 - one for one in TRUTH])  # kappa below 0
OWN = rows("GPT-4o mini", TRUTH)


def material(first: Sequence[RatingRow], rule: str = "cross_fit=no", **more: Any) -> Material:
    made = {
        "candidates": [ADA, BOB],
        "place_of": {
            f"{PART}/{n:03d}": Place(PART, f"{PART}/{n}.mp4") for n in range(1, QUESTIONS + 1)
        },
        "reference": REFERENCE,
        "judge": "gpt4o_Mini",
    }
    return Material(first=first, rule=selection.parse(rule), **{**made, **more})


def docs(rated: Rated) -> dict[str, dict[str, Any]]:
    """By id; through JSON, as what a dataset holds."""
    made = rated.docs([doc(n) for n in range(1, QUESTIONS + 1)])
    assert json.loads(json.dumps(made)) == made
    return {one["id"]: one for one in made}


def judges(rated: Rated) -> set[tuple[str, ...]]:
    return {tuple(o["judge"] for o in one["others"]) for one in docs(rated).values()}


class TestDocs:
    def test_by_question_then_candidate(self) -> None:
        found = docs(selection.make("cvrr_judge", material([])))
        first = [f"{PART}/001/ada", f"{PART}/001/bob", f"{PART}/002/ada", f"{PART}/002/bob"]
        assert list(found) == [*first, *(f"{PART}/{n:03d}/ada" for n in (3, 4, 5, 6))]

    def test_fields(self) -> None:
        found = docs(selection.make("cvrr_judge", material([])))
        one = found[f"{PART}/002/ada"]
        assert (one["question_id"], one["candidate"]) == (f"{PART}/002", "ada")
        assert (one["answer"], one["empty"]) == ("Ada's answer 2.", False)
        assert (one["round"], one["reference_rating"]) == ("first", 5)
        assert (one["others"], one["fell_back"]) == ([], False)
        assert one["video_path"] == doc(2)["video_path"]

    def test_the_truth_is_not_in_a_doc(self) -> None:
        for one in docs(selection.make("cvrr_judge", material([]))).values():
            assert not {"reference", "references", "lure"} & one.keys()
            assert "A dog runs away." not in json.dumps(one)
            assert "A cat sleeps." not in json.dumps(one)

    def test_an_empty_answer_is_an_item(self) -> None:
        one = docs(selection.make("cvrr_judge", material([])))[f"{PART}/002/bob"]
        assert (one["answer"], one["empty"], one["reference_rating"]) == ("", True, None)
        assert "reply is empty" in inputs.text(one)

    def test_a_question_of_the_data_that_is_not_asked(self) -> None:
        rated = selection.make("cvrr_judge", material([]))
        assert [one["id"] for one in rated.docs([doc(9), doc(3)])] == [f"{PART}/003/ada"]


class TestCollective:
    def test_all_others_and_never_its_own(self) -> None:
        """Whatever case and punctuation its name has."""
        elsewhere = rows("Zoe", [1, 2], candidate="carl")
        first = [*GOOD, *OWN, *BAD, *elsewhere]
        rated = selection.make("cvrr_judge_collective", material(first))
        assert judges(rated) == {("Zoe", "Yan"), ()}  # nobody rated bob
        assert rated.elsewhere == 2
        assert rated.own == QUESTIONS
        assert {one["round"] for one in docs(rated).values()} == {"collective"}

    def test_the_request(self) -> None:
        """Names of judges do not reach the model; their reasons do, as they wrote them."""
        rated = selection.make("cvrr_judge_collective", material([*GOOD, *OWN, *BAD]))
        text = inputs.text(docs(rated)[f"{PART}/001/ada"]).replace("Zoe says", "")
        assert "Judge A rated the reply" in text
        assert "Judge C" not in text
        for name in ("Zoe", "GPT-4o", "ada", "debate", "A dog runs away."):
            assert name not in text

    def test_failed_ratings_are_not_shown(self) -> None:
        first = [*rows("Zoe", [None, 3, None, None, None, None]), *BAD[:3]]
        found = docs(selection.make("cvrr_judge_collective", material(first)))
        shown = [[o["judge"] for o in found[f"{PART}/{n:03d}/ada"]["others"]] for n in range(1, 5)]
        assert shown == [["Yan"], ["Zoe", "Yan"], ["Yan"], []]

    def test_other_rounds_are_not_shown(self) -> None:
        first = [*GOOD, *rows("Xu", TRUTH, round="collective"), *REFERENCE]
        rated = selection.make("cvrr_judge_collective", material(first))
        assert judges(rated) == {("Zoe",), ()}

    @pytest.mark.parametrize("first", [[], OWN, rows("Zoe", TRUTH, candidate="carl"), REFERENCE])
    def test_nobody_else(self, first: list[RatingRow]) -> None:
        with pytest.raises(DataError, match=r"a judge other than gpt4o_Mini: name them with LMMS_"):
            selection.make("cvrr_judge_collective", material(first))

    def test_more_judges_than_names(self) -> None:
        many = [row(1, 3, f"judge {n}") for n in range(27)]
        for kind in ("collective", "mixture"):
            with pytest.raises(DataError, match="27 judges rated ada's answer to partial_actions/"):
                selection.make(f"cvrr_judge_{kind}", material(many))
        failed = row(1, None, "judge 26")  # is not shown, and needs no name
        rated = selection.make("cvrr_judge_collective", material([*many[:26], failed]))
        assert "Judge Z rated" in inputs.text(docs(rated)[f"{PART}/001/ada"])


class TestMixture:
    def test_those_above_the_threshold(self) -> None:
        rated = selection.make("cvrr_judge_mixture", material([*GOOD, *OWN, *BAD]))
        assert judges(rated) == {("Zoe",), ()}
        assert rated.chosen is not None
        assert list(rated.chosen) == [(None, PART)]
        assert not any(one["fell_back"] for one in docs(rated).values())
        assert {one["round"] for one in docs(rated).values()} == {"mixture"}

    def test_its_own_ratings_are_not_chosen_from(self) -> None:
        """Top 1 is then the bad judge, not the judge itself."""
        rated = selection.make("cvrr_judge_mixture", material([*OWN, *BAD], "top=1,cross_fit=no"))
        assert judges(rated) == {("Yan",), ()}

    @pytest.mark.parametrize(
        ("fallback", "shown"), [("all", ("Xu", "Yan")), ("best", ("Xu",)), ("none", ())]
    )
    def test_nobody_passes(self, fallback: str, shown: tuple[str, ...]) -> None:
        first = [*rows("Xu", [3] * QUESTIONS), *BAD]
        given = material(first, f"theta=0.5,cross_fit=no,fallback={fallback}")
        rated = selection.make("cvrr_judge_mixture", given)
        assert judges(rated) == {shown, ()}
        assert all(one["fell_back"] for one in docs(rated).values())

    def test_cross_fitted_by_video(self) -> None:
        """Chosen on the other videos: who is right on one video alone is not chosen there.

        Lea is perfect on five videos and off by four on the first; there, others choose her.
        """
        lea = rows("Lea", [5, *TRUTH[1:]])
        rated = selection.make("cvrr_judge_mixture", material([*lea, *BAD], "theta=0.95"))
        assert rated.fold_of is not None
        assert len(set(rated.fold_of.values())) == 5
        found = docs(rated)
        assert [o["judge"] for o in found[f"{PART}/001/ada"]["others"]] == ["Lea"]
        own_fold = rated.fold_of[Item(f"{PART}/001", "ada")]
        for n in range(2, QUESTIONS + 1):
            item = Item(f"{PART}/{n:03d}", "ada")
            if rated.fold_of[item] != own_fold:
                assert found[f"{item.question}/ada"]["fell_back"], n

    def test_without_a_reference(self) -> None:
        with pytest.raises(DataError, match="reference"):
            selection.make("cvrr_judge_mixture", material(GOOD, reference=[]))


class TestReference:
    def test_of_halves(self) -> None:
        """4.5 is chosen by nowhere, and handed on as it is."""
        half = row(1, 4.5, "debate", round="reference")
        given = material([*GOOD, *BAD], reference=[half, *REFERENCE[1:]])
        rated = selection.make("cvrr_judge_mixture", given)
        assert judges(rated) == {("Zoe",), ()}
        assert docs(rated)[f"{PART}/001/ada"]["reference_rating"] == 4.5

    def test_none_is_no_error(self) -> None:
        for task in ("cvrr_judge", "cvrr_judge_collective"):
            rated = selection.make(task, material(GOOD, reference=[]))
            assert {one["reference_rating"] for one in docs(rated).values()} == {None}

    def test_of_some_answers(self) -> None:
        failed = row(2, None, "debate", round="reference")
        rated = selection.make("cvrr_judge", material([], reference=[REFERENCE[0], failed]))
        assert rated.reference == {Item(f"{PART}/001", "ada"): 1}

    @pytest.mark.parametrize("task", ["cvrr_judge", "cvrr_judge_mixture"])
    def test_of_other_answers(self, task: str) -> None:
        other = rows("debate", TRUTH, round="reference", candidate="Ada")
        with pytest.raises(DataError, match=f"{task}: no reference rating is of these answers"):
            selection.make(task, material(GOOD, reference=other))
        elsewhere = [row(1, 3, "debate", dimension=TIME, question=f"{TIME}/001", round="reference")]
        with pytest.raises(DataError, match="no reference rating is of these answers"):
            selection.make(task, material(GOOD, reference=elsewhere))
