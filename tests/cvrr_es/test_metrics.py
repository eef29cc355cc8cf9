"""The numbers, by hand: accuracy and score in their forms, means, kappas, leniency, details."""

from __future__ import annotations

from typing import Any

import pytest
from rich.table import Table

from lmms_eval_tasks.cvrr_es import metrics
from lmms_eval_tasks.cvrr_es.tasks import BENCHMARK
from lmms_eval_tasks.report import aggregation
from tests.checks import rows
from tests.cvrr_es.scored import (
    FAILED,
    PART,
    REFUSED,
    TIME,
    Item,
    Stated,
    answered,
    details,
    rated,
    rated_doc,
    values,
)


def several(*replies: str, dimension: str = PART) -> list[Item]:
    return [answered(reply, place, dimension) for place, reply in enumerate(replies, 1)]


def few(*pairs: tuple[Any, float | None], **changes: Any) -> list[Item]:
    """Ratings (or replies) of one candidate's answers in PART, each with its reference."""
    return [
        rated(rating, rated_doc(place, reference=reference, **changes))
        for place, (rating, reference) in enumerate(pairs, 1)
    ]


def test_forms_of_answers(stated: Stated) -> None:
    """Two right, one wrong, an empty answer, a refusal, a failed verdict, a failed request."""
    found = values(several("right 5", "right 4.5", "wrong 1", "", REFUSED, "hm", FAILED))
    assert {name: found[name] for name in found if "refusals_wrong" not in name} == {
        "acc": pytest.approx(2 / 7),
        "acc_valid": pytest.approx(2 / 5),
        "acc_skip_empty": pytest.approx(2 / 4),
        "acc_failed": 2,
        "failed": 3,
        "empty": 1,
        "refusals": 1,
        "score_valid": pytest.approx((5 + 4.5 + 1) / 5),
        "score_skip_empty": pytest.approx((5 + 4.5 + 1) / 4),
        "score_authors": pytest.approx((5 + 4 + 1) / 4),
    }
    assert found["acc_skip_empty_refusals_wrong"] == 2 / 4
    # Abstaining does not pay; as the published scripts count there is no number.
    found = values(several("", " "))
    assert (found["acc"], found["acc_valid"], found["acc_skip_empty"]) == (0.0, 0.0, None)
    assert (found["empty"], found["score_valid"], found["score_skip_empty"]) == (2, 0.0, None)
    assert details(several("", " "))["intervals"].keys() == {"acc", "acc_valid", "score_valid"}
    found = values(several("hm", "hm"))
    assert (found["acc"], found["acc_valid"], found["score_valid"]) == (0.0, None, None)


def test_before_a_judge_came() -> None:
    waiting = several("right 5", "wrong 1", "")
    assert values(waiting)["acc_valid"] is values(waiting)["score_valid"] is None
    assert details(waiting)["intervals"] == {}


def test_means_weigh_dimensions_the_same(
    stated: Stated, capsys: pytest.CaptureFixture[str]
) -> None:
    def joined(*replies: str) -> Any:
        sides = {PART: several("right 5"), TIME: several(*replies, dimension=TIME)}
        return aggregation.joint_numbers(
            BENCHMARK.joint_metrics[0], {f"cvrr_es_{n}": own for n, own in sides.items()}
        )

    found = joined("right 2", "wrong 0", "wrong 1")
    assert found["mean_acc"] == found["mean_acc_skip_empty"] == pytest.approx(2 / 3)
    assert found["mean_score_valid"] == pytest.approx((5 + 1) / 2)
    found = joined("right 2", "")
    assert (found["mean_acc_skip_empty"], found["mean_acc_valid"]) == (1, 0.75)
    found = joined("hm")
    assert (found["mean_acc_valid"], found["mean_acc"]) == (None, 0.5)
    # What broke is no number, and was told: a mean over fewer dimensions would be another one.
    broken = {f"cvrr_es_{PART}": several("right 5"), f"cvrr_es_{TIME}": [{"status": "ok"}]}
    assert metrics.means(broken)["mean_acc"] is None
    assert "acc cannot be computed and is reported as N/A" in capsys.readouterr().err
    assert aggregation.joint_numbers(BENCHMARK.joint_metrics[0], {}) == {}


def test_failed_ratings_are_in_no_kappa() -> None:
    """Nor are items without a reference, or with one that is no whole number."""
    found = values(few((1, 1), (5, 5), (None, 5), (FAILED, 1), (3, None), (2, 4.5)))
    assert found["kappa"] == found["kappa_pooled"] == 1
    assert (found["rating_failed"], found["rating_coverage"]) == (2, pytest.approx(4 / 6))
    assert found["rating_valid"] == pytest.approx((1 + 5 + 3 + 2) / 4)
    assert found["leniency"] == pytest.approx((0 + 0 - 2.5) / 3)
    # Distances over the levels that occur, 1, 2 and 5, whose places are 0, 1 and 2: squares 1 of 3,
    # by chance 3 * (5 + 8) - 2 * 3 * 4 = 15 of 9.
    found = values(some := few((1, 1), (5, 5), (2, 5)))
    assert found["kappa"] == pytest.approx(1 - 3 * 9 / (3 * (30 + 51) - 2 * 8 * 11))
    assert found["kappa_authors"] == found[f"kappa_authors_{PART}"] == pytest.approx(1 - 3 / 15)
    assert [found[f"rating_share_{n}_of_ada"] for n in (1, 3)] == [1 / 3, 0]
    assert (values(some[::-1]), details(some[::-1])) == (found, details(some))
    found = values(few((None, 3), ("", 4)))
    assert found["rating_share_4"] is found["rating_valid"] is found["kappa"] is None
    assert (found["rating_failed"], found["rating_coverage"], found["leniency"]) == (2, 0, None)
    some = few(("4", 4), ('{"rating": 2, "reason": " "}', 2), (5, 5), (None, 1))
    assert (values(some)["no_reason"], values(some)["kappa"]) == (2, 1)


def test_empty_answers() -> None:
    """Rated or failed on; the published scripts skip them: without them kappa is 1.

    With the one rated 5 for 1: squares 16 of 3; by chance 3 * 78 - 2 * 11 * 7 = 80 of 9.
    """
    empty = [rated(r, rated_doc(n, "ada", 1, empty=True)) for n, r in ((3, 5), (4, None))]
    found = values([*few((1, 1), (5, 5)), *empty])
    assert (found["kappa_skip_empty"], found["kappa"]) == (1, pytest.approx(1 - 48 / 80))
    assert (found["empty_rated"], found["empty_failed"], found["rating_failed"]) == (1, 1, 1)
    assert values(few((1, 1), (2, 2), answer="", empty=True))["kappa_skip_empty"] is None


def test_names_of_candidates() -> None:
    for name, slug in {
        "Video-LLaVA": "video_llava",
        "tiny (a=1,b=2)": "tiny_a_1_b_2",
        "模型": "模型",
        "ＧＰＴ４o": "gpt4o",
        "+++": "unnamed",
    }.items():
        assert metrics.slug(name) == slug
        names = {one.name for one in metrics.by_candidate([rated(4, rated_doc(candidate=name))])}
        assert len(names) == 9
        assert f"kappa_of_{slug}" in names


def test_tables_name_models_and_mark_invalid_numbers() -> None:
    tables = BENCHMARK.tables
    """Their numbers are in tests/golden."""

    def names(table: Table, column: int = 0) -> list[str]:
        return [str(cell) for cell in table.columns[column].cells]

    judged = {"cvrr_judge": {"kappa": 0.5}}
    assert names(tables([*rows(judged, "a (x)"), *rows(judged, "b [y]")])[0]) == [
        "a (x)",
        r"b \[y]",
    ]
    one, other = (f"cvrr_es_{name}" for name in (PART, TIME))
    half = {one: {"acc": 0.5}, other: {"acc": 0.5}, "cvrr_es": {"mean_acc": 0.5}}
    (whole,) = tables(rows(half, bad=f"{one} cvrr_es"))
    assert [*map(names, [whole] * 3, (9, 10, 13))] == [["50.00!"], ["50.00"], ["50.00!"]]
    both = {"cvrr_es": {"mean_acc": 0.25}, "cvrr_es_hint": {"mean_acc": 0.5}}
    made = tables([*rows(both), *rows(both, "a")])
    assert names(made[0]) == ["this run", "this run with hint", "a", "a with hint"]
    assert tables(rows({"cvrr_es_other": {"acc": 1.0}, "cvrr": {"acc": 1.0}})) == []
