"""What a judge task rates and shows: no truth, no own ratings; the mixture's judges by its rule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.study import selection
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow
from lmms_eval_tasks.cvrr_es.study.selection import (
    Rated,
    Selection,
    judge_kappa,
    make,
    parse,
)
from lmms_eval_tasks.cvrr_es.study.study import Place, Stratum
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.host import names
from tests.checks import refused
from tests.cvrr_es.scored import PART, doc, row

# Ten questions, two candidates; fold 0 is the first half. The reference counts up and down.
ITEMS = [Item(f"d/{n:03d}", candidate) for n in range(1, 11) for candidate in "xy"]
TRUTH = {item: 1 + (int(item.question[2:]) + (item.candidate == "y")) % 5 for item in ITEMS}
FOLDS = {item: int(item.question > "d/005") for item in ITEMS}
STRATA = {item: Stratum(fold, "d") for item, fold in FOLDS.items()}
FIRST, SECOND, WHOLE = Stratum(0, "d"), Stratum(1, "d"), Stratum(None, "d")
OPPOSITE = {item: 6 - rating for item, rating in TRUTH.items()}
CONSTANT = dict.fromkeys(ITEMS, 4)


def wrong_in(fold: int) -> dict[Item, int]:
    """Right outside one fold, and the opposite in it."""
    return {item: OPPOSITE[item] if FOLDS[item] == fold else r for item, r in TRUTH.items()}


JUDGES = {"right": dict(TRUTH), "wrong in 0": wrong_in(0), "wrong in 1": wrong_in(1)}
JUDGES |= {"constant": CONSTANT, "silent": {}}


def choices(rule: str, **changes: Any) -> dict[Any, selection.Choice]:
    """By stratum."""
    given = {"ratings": JUDGES, "reference": TRUTH, "strata": STRATA, **changes}
    found = selection.choices(**given, selection=parse(rule))
    assert set(found) == set(given["strata"])
    return {one.stratum: one for one in found.values()}


def chosen(rule: str, **changes: Any) -> dict[Any, tuple[str, ...]]:
    return {stratum: choice.judges for stratum, choice in choices(rule, **changes).items()}


class TestChoices:
    def test_an_items_judges_are_chosen_on_the_other_folds(self) -> None:
        assert chosen("theta=0.9") == {
            FIRST: ("right", "wrong in 0"),  # by fold 1, where "wrong in 0" is right
            SECOND: ("right", "wrong in 1"),
        }
        assert chosen("theta=0.9,cross_fit=no") == {WHOLE: ("right",)}
        # The reference of a fold has no say in that fold's judges.
        other = {item: 6 - r if FOLDS[item] == 0 else r for item, r in TRUTH.items()}
        after = chosen("theta=0.9", reference=other)
        assert after == {FIRST: ("right", "wrong in 0"), SECOND: ("wrong in 0",)}

    def test_kappa_is_that_of_each_candidate_and_then_the_mean(self) -> None:
        """Within a candidate this judge is constant (0); pooled it agrees, since y is better."""
        reference = {i: (1 if i.candidate == "x" else 4) + (i.question > "d/005") for i in ITEMS}
        tells = {item: 1 if item.candidate == "x" else 5 for item in ITEMS}
        assert judge_kappa(tells, reference, ITEMS) == 0
        picked = chosen("theta=0.1,fallback=none", ratings={"j": tells}, reference=reference)
        assert set(picked.values()) == {()}
        # A candidate without a kappa is left out of the mean.
        reference = {item: 3 if item.candidate == "x" else TRUTH[item] for item in ITEMS}
        assert judge_kappa(reference, reference, ITEMS) == 1
        assert judge_kappa({}, reference, ITEMS) is None

    def test_theta_and_top(self) -> None:
        assert "constant" in chosen("theta=-0.0001,cross_fit=no")[WHOLE]
        assert "constant" not in chosen("theta=0,cross_fit=no")[WHOLE]  # 0 itself does not pass
        assert chosen("top=1")[FIRST] == ("right",)  # as good as "wrong in 0", first by name
        assert chosen("top=2")[FIRST] == ("right", "wrong in 0")
        # Nobody without a kappa.
        assert chosen("top=9")[FIRST] == ("constant", "right", "wrong in 0", "wrong in 1")

    def test_fallbacks(self) -> None:
        ratings = {"worse": OPPOSITE, "bad": CONSTANT}
        for fallback, judges in (("all", ("bad", "worse")), ("best", ("bad",)), ("none", ())):
            found = choices(f"theta=0.5,fallback={fallback}", ratings=ratings)
            assert [(one.judges, one.fell_back) for one in found.values()] == [(judges, True)] * 2
            assert found[FIRST].kappas["bad"] == 0
        # A dimension without reference in other folds falls back.
        alone = Stratum(0, "e")
        strata = {item: alone if item.question == "d/001" else s for item, s in STRATA.items()}
        found = choices("theta=0.9,fallback=all", strata=strata)
        assert set(found) == {FIRST, alone, SECOND}
        assert (found[alone].fell_back, found[FIRST].fell_back) == (True, False)
        assert found[alone].judges == tuple(sorted(JUDGES))
        assert choices("theta=0.9", strata=strata)[alone].judges == ()

    def test_what_cannot_be_chosen_by_is_one_line(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"ratings": {"silent": {}}}, "no judges to choose from"),
            ({"reference": {}}, "none of these items has one"),
            ({"strata": dict.fromkeys(ITEMS, FIRST)}, "needs two folds of videos or more"),
        ]
        for changes, line in cases:
            refused(DataError, line, chosen, "theta=0.1", **changes)


def test_the_options_text() -> None:
    for text, expected in {
        "": Selection(),
        " theta = 0.2 , cross_fit = no ": Selection(theta=0.2, cross_fit=False),
        "top=3": Selection(top=3),
        "theta=-1,fallback=best": Selection(theta=-1.0, fallback="best"),
        "theta=0.08,fallback=all,own=no": Selection(theta=0.08, fallback="all", own=False),
    }.items():
        assert parse(text) == parse(str(expected)) == expected
    for text, line in {
        **dict.fromkeys(("tetha=0.2", "=3"), "no such name"),
        **dict.fromkeys(("theta=0.2,theta=0.3", "theta=0.2,top=2"), "twice, or theta and top"),
        **dict.fromkeys(("theta", "theta=20", "theta=nan", "theta="), "theta: "),
        **dict.fromkeys(("top=0", "top=-1", "top=²"), "top: "),
        "fallback=some": "'all', 'best' or 'none'",
        "own=never": "own: ",
    }.items():
        refused(TasksError, f"{line}.*; expected a form like theta=", parse, text)


# --- what a judge task rates ----------------------------------------------------------------------

QUESTIONS = 6  # of PART, on as many videos


def candidate(name: str, answers: dict[int, str]) -> Aligned:
    texts = {f"{PART}/{place:03d}": text for place, text in answers.items()}
    empty = tuple(name for name, text in texts.items() if not text)
    return Aligned(name, texts, empty, 0, 0, {}, (), ())


ADA = candidate("ada", {n: f"Ada's answer {n}." for n in range(1, QUESTIONS + 1)})
BOB = candidate("bob", {1: "Bob's answer.", 2: ""})
RIGHT = (1, 5, 2, 4, 3, 5)  # of ada's answers


def rows(judge: str, ratings: Sequence[float | None], **more: Any) -> list[RatingRow]:
    return [row(n, one, judge, reason=f"{judge} says", **more) for n, one in enumerate(ratings, 1)]


REFERENCE = rows("debate", RIGHT, round="reference")
GOOD = rows("Zoe", RIGHT)
BAD = rows("Yan", [6 - one for one in RIGHT])  # kappa below 0
OWN = rows("GPT-4o mini", RIGHT)


def material(first: Sequence[RatingRow], rule: str = "cross_fit=no", **more: Any) -> dict[str, Any]:
    numbers = [f"{PART}/{n:03d}" for n in range(1, QUESTIONS + 1)]
    made: dict[str, Any] = {
        "candidates": [ADA, BOB],
        "place_of": {name: Place(PART, f"{PART}/{int(name[-3:])}.mp4") for name in numbers},
        "reference": REFERENCE,
        "judge": "gpt4o_Mini",
    }
    return {"first": first, "rule": parse(rule), **made, **more}


def docs(rated: Rated) -> dict[str, dict[str, Any]]:
    """By id; through JSON, as what a dataset holds."""
    made = rated.docs([doc(n) for n in range(1, QUESTIONS + 1)])
    assert json.loads(json.dumps(made)) == made
    return {one["id"]: {**one, "task": "cvrr_judge"} for one in made}


def judges(rated: Rated) -> set[tuple[str, ...]]:
    return {tuple(o["judge"] for o in one["others"]) for one in docs(rated).values()}


class TestDocs:
    def test_fields_without_the_truth(self) -> None:
        rated = make("cvrr_judge", **material([]))
        found = docs(rated)
        first = [f"{PART}/00{n}/{name}" for n in (1, 2) for name in ("ada", "bob")]
        assert list(found) == [*first, *(f"{PART}/{n:03d}/ada" for n in (3, 4, 5, 6))]
        asked = doc(2)
        for truth in ("reference", "references", "lure"):
            del asked[truth]
        assert found[f"{PART}/002/ada"] == {
            **asked,
            "id": f"{PART}/002/ada",
            "task": "cvrr_judge",
            "question_id": f"{PART}/002",
            "candidate": "ada",
            "answer": "Ada's answer 2.",
            "empty": False,
            "others": [],
            "fell_back": False,
            "round": "first",
            "reference_rating": 5,
        }
        empty = found[f"{PART}/002/bob"]
        assert (empty["answer"], empty["empty"], empty["reference_rating"]) == ("", True, None)
        assert [one["id"] for one in rated.docs([doc(9), doc(3)])] == [f"{PART}/003/ada"]

    def test_collective(self) -> None:
        """All others and never its own, whatever case and punctuation its name has."""
        first = [*GOOD, *OWN, *BAD, *rows("Zoe", [1, 2], candidate="carl")]
        first += [*rows("Xu", RIGHT, round="collective"), *REFERENCE]  # rounds that are not shown
        rated = make("cvrr_judge_collective", **material(first))
        assert judges(rated) == {("Zoe", "Yan"), ()}  # nobody rated bob
        assert (rated.elsewhere, rated.own) == (2, QUESTIONS)
        # Names of judges do not reach the model; their reasons do, as they wrote them.
        text = names.doc_to_text(docs(rated)[f"{PART}/001/ada"])
        assert "Judge A rated the reply" in text
        assert "Zoe says" in text
        text = text.replace("Zoe says", "").replace("Yan says", "")
        for name in ("Judge C", "Zoe", "GPT-4o", "ada", "debate", "A dog runs away."):
            assert name not in text
        first = [*rows("Zoe", [None, 3]), *BAD[:3]]
        found = docs(make("cvrr_judge_collective", **material(first)))  # failed ones are not shown
        shown = [[o["judge"] for o in found[f"{PART}/{n:03d}/ada"]["others"]] for n in range(1, 5)]
        assert shown == [["Yan"], ["Zoe", "Yan"], ["Yan"], []]

    def test_nobody_else_or_too_many(self) -> None:
        for first in (OWN, rows("Zoe", RIGHT, candidate="carl"), REFERENCE):
            with pytest.raises(DataError, match=r"a judge other than gpt4o_Mini: name them with"):
                make("cvrr_judge_collective", **material(first))
        many = [row(1, 3, f"judge {n}") for n in range(27)]
        with pytest.raises(DataError, match="27 judges rated one answer; at most 26"):
            make("cvrr_judge_mixture", **material(many))
        failed = row(1, None, "judge 26")  # is not shown, and needs no name
        rated = make("cvrr_judge_collective", **material([*many[:26], failed]))
        assert "Judge Z rated" in names.doc_to_text(docs(rated)[f"{PART}/001/ada"])

    def test_mixture(self) -> None:
        rated = make("cvrr_judge_mixture", **material([*GOOD, *OWN, *BAD]))
        assert judges(rated) == {("Zoe", "GPT-4o mini"), ()}  # its own among them
        assert rated.own == 0
        assert list(rated.choices) == [(None, PART)]
        assert {(one["round"], one["fell_back"]) for one in docs(rated).values()} == {
            ("mixture", False)
        }
        # Or not, where the rule says so: top 1 is then the bad judge.
        rated = make("cvrr_judge_mixture", **material([*OWN, *BAD], "top=1,cross_fit=no,own=no"))
        assert (judges(rated), rated.own) == ({("Yan",), ()}, QUESTIONS)
        # Where nobody passes, nobody is shown.
        rated = make("cvrr_judge_mixture", **material(BAD))
        assert (judges(rated), next(iter(rated.chosen.values())).fell_back) == ({()}, True)
        given = material(GOOD, reference=[])
        refused(DataError, "reference", make, "cvrr_judge_mixture", **given)

    def test_cross_fitted_by_video(self) -> None:
        """Chosen on the other videos: who is right on one video alone is not chosen there.

        Lea is perfect on five videos and off by four on the first; there, others choose her.
        """
        lea = rows("Lea", [5, *RIGHT[1:]])
        rated = make("cvrr_judge_mixture", **material([*lea, *BAD], "theta=0.95"))
        strata = {item: choice.stratum for item, choice in rated.chosen.items()}
        assert len(rated.choices) == 5
        found = docs(rated)
        assert [o["judge"] for o in found[f"{PART}/001/ada"]["others"]] == ["Lea"]
        own = strata[Item(f"{PART}/001", "ada")]
        for n in range(2, QUESTIONS + 1):
            item = Item(f"{PART}/{n:03d}", "ada")
            assert strata[item] == own or found[f"{item.question}/ada"]["fell_back"], n
