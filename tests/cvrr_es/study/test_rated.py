"""What a judge task rates and shows: no truth, no own ratings, the judges that the rule chose."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.study.rated import JudgeTask, make_judge_task
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.cvrr_es.study.selection import parse
from lmms_eval_tasks.cvrr_es.study.study import QuestionPlace
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.host import task_functions
from tests.checks import refused
from tests.cvrr_es.scored import PART, doc, row

QUESTIONS = [f"{PART}/{n:03d}" for n in range(1, 7)]  # on as many videos
ADA = Aligned("ada", {name: f"Ada's answer {name[-1]}." for name in QUESTIONS}, (), ())
BOB = Aligned("bob", {QUESTIONS[0]: "Bob's answer.", QUESTIONS[1]: ""}, (QUESTIONS[1],), ())
RIGHT = (1, 5, 2, 4, 3, 5)  # of ada's answers


def rows(judge: str, ratings: Sequence[float | None], **more: Any) -> list[RatingRow]:
    return [row(n, one, judge, reason=f"{judge} says", **more) for n, one in enumerate(ratings, 1)]


REFERENCE = rows("debate", RIGHT, round="reference")
GOOD = rows("Zoe", RIGHT)
BAD = rows("Yan", [6 - one for one in RIGHT])  # kappa below 0
OWN = rows("GPT-4o mini", RIGHT)


def rated(
    task: str, first: Sequence[RatingRow], rule: str = "cross_fit=no", **more: Any
) -> JudgeTask:
    given: dict[str, Any] = {
        "candidates": [ADA, BOB],
        "places": {name: QuestionPlace(PART, f"{PART}/{name[-3:]}.mp4") for name in QUESTIONS},
        "reference": REFERENCE,
        "judge": "gpt4o_Mini",
        **more,
    }
    return make_judge_task(f"cvrr_judge{task}", first=first, rule=parse(rule), **given)


def docs(made: JudgeTask) -> dict[str, dict[str, Any]]:
    """By id; through JSON, as what a dataset holds."""
    found = made.docs([doc(n) for n in range(1, 7)])
    assert json.loads(json.dumps(found)) == found
    return {one["id"]: {**one, "task": "cvrr_judge"} for one in found}


def shown(made: JudgeTask) -> list[list[str]]:
    """Judges of each of ada's answers; of bob's nobody's."""
    found = docs(made)
    assert not any(one["others"] for name, one in found.items() if name.endswith("bob"))
    return [[one["judge"] for one in found[f"{name}/ada"]["others"]] for name in QUESTIONS]


def test_fields_without_the_truth() -> None:
    found = docs(rated("", []))
    first = [f"{PART}/00{n}/{name}" for n in (1, 2) for name in ("ada", "bob")]
    assert list(found) == [*first, *(f"{PART}/{n:03d}/ada" for n in (3, 4, 5, 6))]
    one, empty = (found[f"{PART}/002/{name}"] for name in ("ada", "bob"))
    assert doc(2).keys() - one.keys() == {"reference", "references", "lure"}
    assert (one["answer"], one["empty"], one["reference_rating"]) == ("Ada's answer 2.", False, 5)
    assert (empty["answer"], empty["empty"], empty["reference_rating"]) == ("", True, None)


def test_collective() -> None:
    """All others and never its own, whatever case and punctuation its name has."""
    first = [*GOOD, *OWN, *BAD, *rows("Zoe", [1, 2], candidate="carl")]
    first += [*rows("Xu", RIGHT, round="collective"), *REFERENCE]  # rounds that are not shown
    made = rated("_collective", first)
    assert shown(made) == [["Zoe", "Yan"]] * 6
    # Names of judges do not reach the model; their reasons do, as they wrote them.
    text = task_functions.doc_to_text(docs(made)[f"{PART}/001/ada"])
    assert "Judge A rated the reply" in text
    assert "Zoe says" in text
    text = text.replace("Zoe says", "").replace("Yan says", "")
    for name in ("Judge C", "Zoe", "GPT-4o", "ada", "debate", "A dog runs away."):
        assert name not in text
    failed = rated("_collective", [*rows("Zoe", [None, 3]), *BAD[:3]])  # is not shown
    assert shown(failed)[:4] == [["Yan"], ["Zoe", "Yan"], ["Yan"], []]


def test_nobody_else_or_too_many() -> None:
    for first in (OWN, rows("Zoe", RIGHT, candidate="carl"), REFERENCE):
        told = r"a judge other than gpt4o_Mini: name them with"
        refused(DataError, told, rated, "_collective", first)
    many = [row(1, 3, f"judge {n}") for n in range(27)]
    refused(DataError, "27 judges rated one answer; at most 26", rated, "_mixture", many)


def test_mixture() -> None:
    made = rated("_mixture", [*GOOD, *OWN, *BAD])
    assert shown(made) == [["Zoe", "GPT-4o mini"]] * 6  # its own among them
    found = {(one["round"], one["fell_back"]) for one in docs(made).values()}
    assert found == {("mixture", False)}
    made = rated("_mixture", BAD)  # where nobody passes, nobody is shown
    assert shown(made) == [[]] * 6
    assert all(one["fell_back"] for one in docs(made).values())
    refused(DataError, "reference", rated, "_mixture", GOOD, reference=[])
    # Lea is perfect on five videos and off by four on the first. By her ratings of other folds she
    # is chosen there, and in no other fold; two of the six videos share one.
    lea = shown(rated("_mixture", [*rows("Lea", [5, *RIGHT[1:]]), *BAD], "theta=0.95"))
    assert (lea[0], lea.count([]) >= 4) == (["Lea"], True)
