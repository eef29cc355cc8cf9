"""MAVERIX's rotations, ratings and robustness on items whose values can be checked by eye."""

from __future__ import annotations

import math

import pytest

from lmms_eval_tasks.maverix import scores
from lmms_eval_tasks.maverix.labels import LETTERS
from tests.maverix.items import answer, own, pair, rotations


class TestCircular:
    """Eight of eight, and the letters."""

    @pytest.mark.parametrize(
        ("letters", "plain", "valid", "failed"),
        [
            ("ABCDEFGH", 1.0, 1.0, 0),
            ("ABCDEFGA", 0.0, 0.0, 0),
            ("ABCDEFG", 0.0, None, 1),  # --limit
            ("ABCDEFG-", 0.0, None, 1),
        ],
    )
    def test_one_question(
        self, letters: str, plain: float, valid: float | None, failed: int
    ) -> None:
        items = rotations("q", letters)
        assert scores.CIRCULAR["circ_acc"](items) == plain
        assert scores.CIRCULAR["circ_acc_valid"](items) == valid
        assert scores.CIRCULAR["circ_acc_failed"](items) == failed

    def test_always_the_same_letter(self) -> None:
        items = rotations("q", "CCCCCCCC")
        assert scores.CIRCULAR["position_bias"](items) == 7 / 8
        assert scores.CIRCULAR["acc"](items) == 1 / 8
        assert scores.CIRCULAR["chose_c"](items) == 1
        assert scores.CIRCULAR["chose_a"](items) == 0
        assert own("acc_at_c", items, "circular") == 1
        assert own("acc_at_a", items, "circular") == 0

    def test_always_right_or_wrong_alike_is_no_bias(self) -> None:
        assert scores.CIRCULAR["position_bias"](rotations("q", "ABCDEFGH")) == 0
        assert scores.CIRCULAR["position_bias"](rotations("q", "BCDEFGHA")) == 0

    def test_shares_are_of_readable_answers(self) -> None:
        """Of A A C D (true A B C D): A is half of what was chosen, a quarter of the truth."""
        items = rotations("q", "AACD----")
        assert scores.CIRCULAR["chose_a"](items) == 0.5
        assert scores.CIRCULAR["chose_b"](items) == 0
        assert scores.CIRCULAR["position_bias"](items) == 0.25
        assert scores.CIRCULAR["acc"](items) == 3 / 8
        assert scores.CIRCULAR["acc_valid"](items) == 3 / 4
        assert scores.CIRCULAR["acc_failed"](items) == 4
        shares = [scores.CIRCULAR[f"chose_{x.lower()}"](items) for x in LETTERS]
        assert math.fsum(shares) == 1

    def test_a_letter_counts_only_where_it_could_be_read(self) -> None:
        items = rotations("q", "AB")
        items[1]["status"] = "truncated"
        assert scores.CIRCULAR["chose_a"](items) == 1

    def test_nothing_readable_is_no_number(self) -> None:
        items = rotations("q", "--------")
        assert scores.CIRCULAR["position_bias"](items) is None
        assert scores.CIRCULAR["chose_a"](items) is None

    def test_three_questions_by_hand(self) -> None:
        """All right; B answered A; A everywhere, with B's turn unreadable.

        Chosen: A 1 + 2 + 7, B 1, C to H twice each, of 23 readable. True among those: A 3, B 2 (the
        unreadable one was B's), C to H 3 each.
        """
        items = rotations("p", "ABCDEFGH") + rotations("q", "AACDEFGH")
        items += rotations("r", "A-AAAAAA")
        assert scores.CIRCULAR["acc"](items) == (8 + 7 + 1) / 24
        assert scores.CIRCULAR["acc_valid"](items) == 16 / 23
        assert scores.CIRCULAR["circ_acc"](items) == 1 / 3
        assert scores.CIRCULAR["circ_acc_valid"](items) == 1 / 2
        assert scores.CIRCULAR["circ_acc_failed"](items) == 1
        assert scores.CIRCULAR["position_bias"](items) == (7 + 1 + 6 * 1) / (2 * 23)
        chosen = {"a": 10 / 23, "b": 1 / 23, **dict.fromkeys("cdefgh", 2 / 23)}
        for letter, share in chosen.items():
            assert scores.CIRCULAR[f"chose_{letter}"](items) == pytest.approx(share)
        right = {"a": 3 / 3, "b": 1 / 3, **dict.fromkeys("cdefgh", 2 / 3)}
        for letter, share in right.items():
            assert own(f"acc_at_{letter}", items, "circular") == share

    def test_withheld_questions_do_not_count(self) -> None:
        hidden = rotations("w", "ABCDEFGH", withheld=True)
        items = rotations("q", "AACDEFGH") + hidden
        assert scores.CIRCULAR["circ_acc"](items) == 0
        assert scores.CIRCULAR["circ_acc_failed"](items) == 0
        assert scores.CIRCULAR["circ_acc"](hidden) is None
        assert scores.CIRCULAR["position_bias"](hidden) is None


class TestRatings:
    """Means of ratings: the candidate's failures are 0, the judge's are left out and counted."""

    def test_one_dimension(self) -> None:
        items = [answer(f"q{n}", "original", mark) for n, mark in enumerate("53ejm")]
        assert scores.OPEN["correctness_valid"](items) == 8 / 3
        assert scores.OPEN["correctness_failed"](items) == 2
        assert scores.OPEN["correctness_coverage"](items) == 3 / 5

    def test_dimensions_fail_apart(self) -> None:
        marks = {"correctness": "j", "detail": "2", "context": "0", "temporal": "5"}
        items = [answer("q", "original", marks), answer("r", "original", "4")]
        assert scores.OPEN["correctness_valid"](items) == 4
        assert scores.OPEN["correctness_failed"](items) == 1
        assert scores.OPEN["detail_valid"](items) == 3
        assert scores.OPEN["context_valid"](items) == 2
        assert scores.OPEN["temporal_coverage"](items) == 1

    def test_waiting_for_a_judge_is_not_zero(self) -> None:
        items = [answer("q", "original", "s"), answer("q", "paraphrase", "e")]
        items += pair("r", "ee")
        assert scores.OPEN["correctness_valid"](items) is None
        assert scores.OPEN["robust_both"](items) is None
        assert scores.OPEN["robust_diff"](items) is None
        assert scores.OPEN["robust_n"](items) == 0

    def test_an_error_of_ours_has_no_ratings(self) -> None:
        broken = answer("q", "original", "5", status="error", dimensions={})
        items = [broken, answer("r", "original", "4")]
        assert scores.OPEN["correctness_valid"](items) == 4
        assert scores.OPEN["correctness_failed"](items) == 1

    def test_by_agentic_category(self) -> None:
        items = [answer("q", "original", "5"), answer("r", "original", "1", agentic="gaming")]
        assert own("detail_valid_social", items, "open") == 5
        assert own("detail_valid_gaming", items, "open") == 1
        assert own("detail_valid_sports", items, "open") is None

    def test_withheld(self) -> None:
        hidden = pair("w", "55", withheld=True, dimensions={})
        items = pair("q", "42") + hidden
        assert scores.OPEN["correctness_valid"](items) == 3
        assert scores.OPEN["correctness_failed"](items) == 0
        assert scores.OPEN["robust_failed"](items) == 0
        assert scores.OPEN["n_withheld"](items) == 2
        for name, metric in scores.OPEN.items():
            if not name.startswith(("n_", "words_")):
                assert metric(hidden) is None, name


class TestRobustness:
    """A question and its paraphrase: both with correctness 4 or more, and how far apart."""

    def test_pairs(self) -> None:
        """Pairs 5-4, 4-3, 5-empty count; 5-judge and a lone answer do not."""
        items = pair("a", "54") + pair("b", "43") + pair("c", "5e") + pair("d", "5j")
        items += [answer("e", "paraphrase", "5")]
        assert scores.OPEN["robust_both"](items) == 1 / 3
        assert scores.OPEN["robust_diff"](items) == (1 + 1 + 5) / 3
        assert scores.OPEN["robust_n"](items) == 3
        assert scores.OPEN["robust_failed"](items) == 2

    def test_only_correctness_counts(self) -> None:
        marks = {"correctness": "4", "detail": "j", "context": "0", "temporal": "0"}
        items = [answer("q", version, marks) for version in ("original", "paraphrase")]
        assert scores.OPEN["robust_both"](items) == 1

    def test_two_items_of_one_version_are_no_pair(self) -> None:
        items = [*pair("q", "55"), {**answer("q", "original", "0"), "id": "other"}]
        assert scores.OPEN["robust_n"](items) == 0
        assert scores.OPEN["robust_failed"](items) == 1
