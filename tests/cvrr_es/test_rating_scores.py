"""A judge's numbers from its ratings, by hand: kappa in all its forms, leniency, distribution."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import data, metrics
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from tests.cvrr_es.release_files import predict
from tests.cvrr_es.scored import FAILED, PART, TIME, Made, eight, rated, rated_doc, values


def few(*pairs: tuple[Any, float | None], **changes: Any) -> list[Made]:
    """Ratings (or replies) of one candidate's answers in PART, each with its reference."""
    return [
        rated(rating, rated_doc(place, reference=reference, **changes))
        for place, (rating, reference) in enumerate(pairs, 1)
    ]


class TestKappa:
    """Cells are 1, -1, 0 and 2/3 (scored.CELLS)."""

    def test_means(self) -> None:
        found = values(eight())
        assert found[f"kappa_{PART}"] == 0
        assert found[f"kappa_{TIME}"] == pytest.approx(1 / 3)
        assert found["kappa"] == pytest.approx(1 / 6)
        assert found["kappa_percent"] == pytest.approx(100 / 6)
        assert found["kappa_of_ada"] == pytest.approx(1 / 2)
        assert found["kappa_of_bob"] == pytest.approx(-1 / 6)

    def test_pooled(self) -> None:
        """Squares 38 of 8, by chance 344 of 64; in the dimensions 32 and 128, 6 and 48."""
        found = values(eight())
        assert found["kappa_pooled"] == pytest.approx(1 - 8 * 38 / 344)
        assert found[f"kappa_pooled_{PART}"] == 0
        assert found[f"kappa_pooled_{TIME}"] == pytest.approx(1 / 2)

    def test_without_a_reference(self) -> None:
        """The ratings count all the same."""
        found = values(few((4, None), (2, None)))
        for name, value in found.items():
            if name.startswith(("kappa", "leniency")):
                assert value is None, name
        assert found["rating_valid"] == found[f"rating_valid_{PART}"] == 3
        assert (found["rating_failed"], found["rating_coverage"]) == (0, 1)

    def test_constant_ratings(self) -> None:
        assert values(few((4, 1), (4, 5)))["kappa"] == 0
        assert values(few((4, 4), (4, 4)))["kappa"] is None
        assert values(few((4, 3), (4, 3)))["kappa"] == 0  # constant both, on two labels

    def test_failed_ratings_are_in_no_kappa(self) -> None:
        """Nor are items without a reference, or with one that is no whole number."""
        some = few((1, 1), (5, 5), (None, 5), (FAILED, 1), (3, None), (2, 4.5))
        found = values(some)
        assert found["kappa"] == found["kappa_pooled"] == 1
        assert (found["rating_failed"], found["rating_coverage"]) == (2, pytest.approx(4 / 6))
        assert found["rating_valid"] == pytest.approx((1 + 5 + 3 + 2) / 4)
        assert found["leniency"] == pytest.approx((0 + 0 - 2.5) / 3)

    @pytest.mark.parametrize("rating", ["7", "0", "4.5", "[[6]]", '{"rating": -1}', "4 or 5"])
    def test_ratings_off_the_scale(self, rating: str) -> None:
        made = rated(rating, rated_doc())
        assert made["kappa"]["rating"] is None
        assert made["kappa"]["status"] == "unparsed"
        assert values([made])["rating_failed"] == 1


class TestRatings:
    def test_leniency(self) -> None:
        """26 points against 22 in eight; 12 and 12, 14 and 10 in the dimensions."""
        found = values(eight())
        assert found["leniency"] == pytest.approx(0.5)
        assert (found[f"leniency_{PART}"], found[f"leniency_{TIME}"]) == (0, 1)
        assert found["leniency_of_ada"] == found["leniency_of_bob"] == pytest.approx(0.5)

    def test_distribution(self) -> None:
        """1, 5, 1, 5, 4, 4, 2, 4."""
        found = values(eight())
        assert found["rating_valid"] == 3.25
        assert found[f"rating_valid_{TIME}"] == 3.5
        assert found["rating_valid_of_bob"] == 3
        assert [found[f"rating_share_{n}"] for n in range(1, 6)] == [2 / 8, 1 / 8, 0, 3 / 8, 2 / 8]
        of_time = [found[f"rating_share_{n}_{TIME}"] for n in range(1, 6)]
        assert of_time == [0, 1 / 4, 0, 3 / 4, 0]
        of_ada = [found[f"rating_share_{n}_of_ada"] for n in range(1, 6)]
        assert of_ada == [1 / 4, 0, 0, 2 / 4, 1 / 4]

    def test_failures_by_part(self) -> None:
        made = [rated(4, rated_doc(1, "ada")), rated("hm", rated_doc(2, "ada"))]
        found = values([*made, rated(2, rated_doc(1, "bob", 1, TIME))])
        assert found["rating_coverage"] == pytest.approx(2 / 3)
        assert found[f"rating_coverage_{PART}"] == found["rating_coverage_of_ada"] == 0.5
        assert found[f"rating_coverage_{TIME}"] == found["rating_coverage_of_bob"] == 1

    def test_nothing_could_be_read(self) -> None:
        found = values(few((None, 3), ("", 4)))
        assert found["rating_share_4"] is None is found["rating_valid"]
        assert (found["kappa"], found["leniency"]) == (None, None)
        assert (found["rating_failed"], found["rating_coverage"]) == (2, 0)

    def test_a_rating_without_a_reason_counts(self) -> None:
        some = few(("4", 4), ('{"rating": 2, "reason": " "}', 2), (5, 5), (None, 1))
        found = values(some)
        assert found["no_reason"] == 2
        assert found["kappa"] == 1
        assert some[0]["kappa"]["notes"] == {"no_object": 1, "no_reason": 1}


class TestEmptyAnswers:
    """Items that are rated or failed on; the published scripts skip them."""

    def test_both_ways(self) -> None:
        """Without the two empty answers kappa is 1; with the one rated 5 for 1 it is 3/35.

        Squares 16 of 3; by chance 3 * 78 - 2 * 11 * 7 = 80 of 9: 1 - 48 / 80.
        """
        some = few((1, 1), (5, 5))
        some += few((5, 1), (None, 1), answer="", empty=True)
        for place, one in enumerate(some):
            for item in one.values():
                item["question"] = f"{PART}/{place:03d}"
                item["id"] = f"{item['question']}/ada"
        found = values(some)
        assert found["kappa_skip_empty"] == 1
        assert found["kappa"] == pytest.approx(1 - 48 / 80)
        assert (found["empty_rated"], found["empty_failed"], found["rating_failed"]) == (1, 1, 1)

    def test_nothing_else(self) -> None:
        found = values(few((1, 1), (2, 2), answer="", empty=True))
        assert (found["kappa"], found["kappa_skip_empty"]) == (1, None)


class TestNames:
    @pytest.mark.parametrize(
        ("name", "slug"),
        [
            ("Video-LLaVA", "video_llava"),
            ("GPT-4o mini", "gpt_4o_mini"),
            ("tiny (a=1,b=2)", "tiny_a_1_b_2"),
            ("模型", "模型"),
            ("Модель 2", "модель_2"),
            ("ＧＰＴ４o", "gpt4o"),
            ("+++", "unnamed"),
        ],
    )
    def test_slugs(self, name: str, slug: str) -> None:
        assert metrics.slug(name) == slug

    def test_a_candidates_name_says_nothing_of_a_metrics_direction(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(data, "candidates", lambda: ["ends_failed", "模型", "no reason"])
        better = {one["metric"]: one["higher_is_better"] for one in metrics.METRICS}
        for slug in ("ends_failed", "模型", "no_reason"):
            assert better[f"kappa_of_{slug}"] is True
            assert better[f"leniency_of_{slug}"] is better[f"rating_valid_of_{slug}"] is None
        worse = {name for name, value in better.items() if value is False}
        assert worse == {"rating_failed", "empty_failed", "no_reason"}

    def test_an_item_has_the_metrics_of_its_dimension_and_candidate(self) -> None:
        made = rated(4, rated_doc(candidate="Bob B."))
        own = {name for name in made if name.endswith("_of_bob_b")}
        shares = [f"rating_share_{n}" for n in range(1, 6)]
        kinds = ("kappa", "leniency", "rating_valid", "rating_coverage", *shares)
        assert own == {f"{name}_of_bob_b" for name in kinds}
        kinds += ("kappa_pooled",)
        dimensions = {f"{kind}_{name}" for kind in kinds for name in DIMENSIONS}
        assert {name for name in made if name in dimensions} == {f"{k}_{PART}" for k in kinds}
        assert made.keys() - own < metrics.SCORES.keys()
        assert dimensions < metrics.SCORES.keys()

    def test_the_first_metric_alone_has_the_whole_item(self) -> None:
        made = rated(4, rated_doc(others=[{"judge": "Zoe"}]))
        assert made["kappa"]["others"] == [{"judge": "Zoe"}]
        assert made["kappa"]["reply"] == '{"rating": 4, "reason": "so"}'
        light = made["kappa_pooled"]
        assert not {"others", "reply", "answer", "asked"} & light.keys()
        assert light == made[f"kappa_{PART}"] == made["kappa_of_ada"]
        assert light["reason"] == ""
        assert made["kappa"]["reason"] == made["no_reason"]["reason"] == "so"


class TestHostsList:
    def test_of_the_users_candidates(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("Bob B.", "ada"):
            predict(tmp_path / name, PART, [("A?", "a")])
        monkeypatch.setenv(settings.CVRR_CANDIDATES, str(tmp_path))
        listed = {one["metric"]: one["higher_is_better"] for one in metrics.METRICS}
        own = {name for name in listed if "_of_bob_b" in name or "_of_ada" in name}
        assert len(own) == 2 * 9
        assert listed.keys() == {*metrics.SCORES, *own}
        assert listed["kappa"] is listed["kappa_of_ada"] is listed["rating_coverage"] is True
        worse = {"rating_failed", "no_reason", "empty_failed"}
        assert {name for name, better in listed.items() if better is False} == worse
        assert listed["leniency"] is listed["rating_share_3"] is listed["empty_rated"] is None

    @pytest.mark.parametrize("named", ["", "/nowhere/at/all"])
    def test_without_candidates(self, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.CVRR_CANDIDATES, named)
        assert [one["metric"] for one in metrics.METRICS] == list(metrics.SCORES)

    def test_an_aggregation_never_raises(self, capsys: pytest.CaptureFixture[str]) -> None:
        for one in metrics.METRICS:
            assert one["aggregation"]([None]) is None
            line = f"{one['metric']} failed and is reported as N/A"
            assert line in capsys.readouterr().err

    def test_order_and_copies_do_not_matter(self) -> None:
        some = eight()
        mixed = pickle.loads(pickle.dumps(copy.deepcopy(some)))
        random.Random(3).shuffle(mixed)
        assert values(mixed) == values(some)

    def test_no_other_names(self) -> None:
        with pytest.raises(AttributeError, match="METRIC'"):
            metrics.METRIC  # noqa: B018


def test_rating_that_broke(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(*_: Any) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(metrics.rating_reply, "read", breaks)
        broken = rated(4, rated_doc(9, reference=5))
    assert "scoring partial_actions/009/ada failed" in capsys.readouterr().err
    assert (broken["kappa"]["status"], broken["kappa"]["rating"]) == ("error", None)
    found = values([*few((1, 1), (5, 5)), broken])
    assert (found["kappa"], found["rating_failed"]) == (1, 1)
