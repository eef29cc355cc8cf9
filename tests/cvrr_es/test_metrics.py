"""The numbers, by hand: accuracy and score in their forms, means, kappas, leniency, details."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rich.table import Table

from lmms_eval_tasks.cvrr_es import metrics
from lmms_eval_tasks.cvrr_es.tables import tables
from lmms_eval_tasks.cvrr_es.tasks import BENCHMARK
from lmms_eval_tasks.runs import scoring
from tests.cvrr_es.scored import (
    FAILED,
    PART,
    REFUSED,
    TIME,
    Item,
    Stated,
    answered,
    details,
    eight,
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


class TestAnswers:
    def test_forms(self, stated: Stated) -> None:
        """Two right, one wrong, an empty answer, a refusal, a failed verdict, a failed request."""
        found = values(several("right 5", "right 4.5", "wrong 1", "", REFUSED, "hm", FAILED))
        assert found["acc"] == pytest.approx(2 / 7)
        assert found["acc_valid"] == pytest.approx(2 / 5)
        assert found["acc_skip_empty"] == pytest.approx(2 / 4)
        assert (found["acc_failed"], found["failed"], found["empty"]) == (2, 3, 1)
        assert (found["refusals"], found["acc_skip_empty_refusals_wrong"]) == (1, 2 / 4)
        assert found["score_valid"] == pytest.approx((5 + 4.5 + 1) / 5)
        assert found["score_skip_empty"] == pytest.approx((5 + 4.5 + 1) / 4)
        assert found["score_authors"] == pytest.approx((5 + 4 + 1) / 4)
        # Abstaining does not pay; as the published scripts count there is no number.
        found = values(several("", " "))
        assert (found["acc"], found["acc_valid"], found["acc_skip_empty"]) == (0.0, 0.0, None)
        assert (found["empty"], found["score_valid"], found["score_skip_empty"]) == (2, 0.0, None)
        assert details(several("", " "))["intervals"].keys() == {"acc", "acc_valid", "score_valid"}
        found = values(several("hm", "hm"))
        assert (found["acc"], found["acc_valid"], found["score_valid"]) == (0.0, None, None)

    def test_intervals_by_video(self, stated: Stated) -> None:
        """Means 0.4 and 0.5, 1 0 1 0 on four videos: t(3) * sqrt(1/12) leaves 0 to 1."""
        found = details(several("right 5", "wrong 1", "right 4", "", "hm"))
        assert (found["items"], found["status"]) == (5, {"empty": 1, "judge_api_error": 1, "ok": 3})
        intervals = found["intervals"]
        assert intervals["acc"]["estimate"] == pytest.approx(0.4)
        assert intervals["acc_valid"]["estimate"] == pytest.approx(0.5)
        assert intervals["acc_valid"]["se"] == pytest.approx(1 / 12**0.5)
        assert (intervals["acc_valid"]["low"], intervals["acc_valid"]["high"]) == (0, 1)
        assert intervals["acc_skip_empty"]["estimate"] == pytest.approx(2 / 3)
        assert intervals["score_valid"]["estimate"] == pytest.approx(2.5)
        assert intervals["score_skip_empty"]["estimate"] == pytest.approx(10 / 3)
        assert details(several("hm", "hm"))["intervals"].keys() == {"acc"}

    def test_before_a_judge_came(self) -> None:
        waiting = several("right 5", "wrong 1", "")
        assert values(waiting)["acc_valid"] is values(waiting)["score_valid"] is None
        assert details(waiting)["intervals"] == {}

    def test_means_weigh_dimensions_the_same(
        self, stated: Stated, capsys: pytest.CaptureFixture[str]
    ) -> None:
        join, _ = BENCHMARK.joins
        large = several("right 2", "wrong 0", "wrong 1", dimension=TIME)
        sides = {f"cvrr_es_{PART}": several("right 5"), f"cvrr_es_{TIME}": large}
        found = scoring.joined(join, sides)
        assert found["mean_acc"] == pytest.approx(2 / 3)
        assert found["mean_score_valid"] == pytest.approx((5 + 1) / 2)
        assert found["mean_acc_skip_empty"] == found["mean_acc"]
        sides[f"cvrr_es_{TIME}"] = several("right 2", "", dimension=TIME)
        found = scoring.joined(join, sides)
        assert (found["mean_acc_skip_empty"], found["mean_acc_valid"]) == (1, 0.75)
        sides[f"cvrr_es_{TIME}"] = several("hm", dimension=TIME)
        found = scoring.joined(join, sides)
        assert (found["mean_acc_valid"], found["mean_acc"]) == (None, 0.5)
        # What broke is no number, and was told: a mean over fewer dimensions would be another one.
        sides[f"cvrr_es_{TIME}"] = [{"id": "x", "status": "ok"}]
        assert scoring.joined(join, sides)["mean_acc"] is None
        assert "acc failed and is reported as N/A" in capsys.readouterr().err
        assert scoring.joined(join, {}) == {}


class TestKappa:
    """Cells are 1, -1, 0 and 2/3 (scored.CELLS)."""

    def test_by_hand(self) -> None:
        found = values(eight())
        assert found[f"kappa_{PART}"] == 0
        assert found[f"kappa_{TIME}"] == pytest.approx(1 / 3)
        assert found["kappa"] == pytest.approx(1 / 6)
        assert found["kappa_percent"] == pytest.approx(100 / 6)
        assert found["kappa_of_ada"] == pytest.approx(1 / 2)
        assert found["kappa_of_bob"] == pytest.approx(-1 / 6)
        # Pooled: squares 38 of 8, by chance 344 of 64; by dimension 32 and 128, 6 and 48.
        assert found["kappa_pooled"] == pytest.approx(1 - 8 * 38 / 344)
        assert found[f"kappa_pooled_{PART}"] == 0
        assert found[f"kappa_pooled_{TIME}"] == pytest.approx(1 / 2)
        # Bob's ratings in TIME are 2 1 and 4 3: all of 1 to 4 occur. In few() 1, 2 and 5 do.
        assert found["kappa_authors"] == found["kappa"]
        some = values(few((1, 1), (5, 5), (2, 5)))
        assert some["kappa"] == pytest.approx(1 - 3 * 9 / (3 * (30 + 51) - 2 * 8 * 11))
        # Their places are 0, 1 and 2: squares 1 of 3, by chance 3 * (5 + 8) - 2 * 3 * 4 = 15 of 9.
        assert some["kappa_authors"] == some[f"kappa_authors_{PART}"] == pytest.approx(1 - 3 / 15)
        mixed = eight()
        random.Random(3).shuffle(mixed)
        assert values(mixed) == found
        assert details(mixed) == details(eight())

    def test_failed_ratings_are_in_no_kappa(self) -> None:
        """Nor are items without a reference, or with one that is no whole number."""
        found = values(few((1, 1), (5, 5), (None, 5), (FAILED, 1), (3, None), (2, 4.5)))
        assert found["kappa"] == found["kappa_pooled"] == 1
        assert (found["rating_failed"], found["rating_coverage"]) == (2, pytest.approx(4 / 6))
        assert found["rating_valid"] == pytest.approx((1 + 5 + 3 + 2) / 4)
        assert found["leniency"] == pytest.approx((0 + 0 - 2.5) / 3)

    def test_empty_answers(self) -> None:
        """Rated or failed on; the published scripts skip them: without them kappa is 1.

        With the one rated 5 for 1: squares 16 of 3; by chance 3 * 78 - 2 * 11 * 7 = 80 of 9.
        """
        empty = [rated(r, rated_doc(n, "ada", 1, empty=True)) for n, r in ((3, 5), (4, None))]
        found = values([*few((1, 1), (5, 5)), *empty])
        assert found["kappa_skip_empty"] == 1
        assert found["kappa"] == pytest.approx(1 - 48 / 80)
        assert (found["empty_rated"], found["empty_failed"], found["rating_failed"]) == (1, 1, 1)
        found = values(few((1, 1), (2, 2), answer="", empty=True))
        assert (found["kappa"], found["kappa_skip_empty"]) == (1, None)


def test_what_ratings_rest_on() -> None:
    """26 points against 22 in eight; 12 and 12, 14 and 10 by dimension. 1 5 1 5 4 4 2 4."""
    found = values(eight())
    assert (found["leniency"], found[f"leniency_{PART}"], found[f"leniency_{TIME}"]) == (0.5, 0, 1)
    assert (found["rating_valid"], found["rating_valid_of_bob"]) == (3.25, 3)
    shares = [found[f"rating_share_{n}_of_ada"] for n in range(1, 6)]
    assert shares == [1 / 4, 0, 0, 2 / 4, 1 / 4]
    found = values(few((None, 3), ("", 4)))
    assert found["rating_share_4"] is found["rating_valid"] is found["kappa"] is None
    assert (found["rating_failed"], found["rating_coverage"], found["leniency"]) == (2, 0, None)
    some = few(("4", 4), ('{"rating": 2, "reason": " "}', 2), (5, 5), (None, 1))
    assert (values(some)["no_reason"], values(some)["kappa"]) == (2, 1)


def test_names_of_candidates() -> None:
    for name, slug in {
        "Video-LLaVA": "video_llava",
        "tiny (a=1,b=2)": "tiny_a_1_b_2",
        "模型": "模型",
        "Модель 2": "модель_2",
        "ＧＰＴ４o": "gpt4o",
        "+++": "unnamed",
    }.items():
        assert metrics.slug(name) == slug
        names = {one.name for one in metrics.by_candidate([rated(4, rated_doc(candidate=name))])}
        assert len(names) == 9
        assert f"kappa_of_{slug}" in names


def names(table: Table, column: int = 0) -> list[str]:
    return [str(cell) for cell in table.columns[column].cells]


def test_tables_name_rounds_models_and_invalid_ones() -> None:
    """Their numbers are in tests/golden."""
    own = values(eight())
    numbers = {f"cvrr_judge{end}": own for end in ("_mixture", "", "_collective")}
    (rounds,) = (one for one in tables([("", numbers)]) if "Tables 5-7" in str(one.title))
    assert names(rounds, 1)[::3] == ["alone", "collective", "mixture"]
    several = ("cvrr_judge a (x)", "cvrr_judge b [y]", "cvrr_judge INVALID")
    made = tables([("", dict.fromkeys(several, own))])
    assert names(made[0])[::3] == ["a (x)", r"b \[y]", "this run INVALID"]
    one, other = (f"cvrr_es_{name}" for name in ("partial_actions", "time_order_understanding"))
    half = {
        f"{one} INVALID": {"acc": 0.5},
        other: {"acc": 0.5},
        "cvrr_es INVALID": {"mean_acc": 0.5},
    }
    (whole,) = tables([("", half)])
    assert [names(whole, place) for place in (0, 9, 10, 13)] == [
        ["this run"],
        ["50.00!"],
        ["50.00"],
        ["50.00!"],
    ]
    assert "! INVALID" in str(whole.caption)
    both = {"cvrr_es": {"mean_acc": 0.25}, "cvrr_es_hint": {"mean_acc": 0.5}}
    made = tables([("", both), ("a", both)])
    means = dict(zip(names(made[0]), names(made[0], 13), strict=True))
    titles = ("this run", "this run with hint", "a", "a with hint")
    assert [means[title] for title in titles] == ["25.00", "50.00"] * 2
    assert tables([("", {"cvrr_es_other": {"acc": 1.0}, "cvrr": {"acc": 1.0}})]) == []
