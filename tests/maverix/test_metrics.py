"""MAVERIX's numbers on items whose values can be checked by eye."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmms_eval_tasks.maverix import metrics
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from lmms_eval_tasks.runs import scoring
from tests.maverix.items import (
    answer,
    choice,
    choices,
    number,
    pair,
    rotations,
)

TASKS = {"choice": "maverix_av", "circular": "maverix_av_circular", "open": "maverix_av_oe"}


def numbers(kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return scoring.numbers(BENCHMARK.tasks[TASKS[kind]], items)


def details(kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return scoring.details(BENCHMARK.tasks[TASKS[kind]], items)


class TestChoice:
    """Accuracy in three forms, by label, and what withheld items are worth."""

    def test_three_forms(self) -> None:
        for marks, plain, valid, failed in (
            ("1100", 0.5, 0.5, 0),
            ("11u0", 0.5, 2 / 3, 1),  # unreadable: wrong, and left out of valid
            ("11e0", 0.5, 0.5, 0),  # the candidate's own: abstaining does not pay
            ("11f0", 0.5, 0.5, 0),
            ("11t0", 0.5, 0.5, 0),
            ("11m0", 0.5, 2 / 3, 1),  # the host's request failed
            ("11x0", 0.5, 2 / 3, 1),  # our own error
            ("u", 0.0, None, 1),
        ):
            found = numbers("choice", choices(marks))
            assert (found["acc"], found["acc_valid"]) == (plain, valid), marks
            assert found["acc_failed"] == failed
            assert found["failed"] == sum(mark not in "10" for mark in marks)
        assert numbers("choice", []) == {"failed": 0}

    def test_each_label_takes_its_own_items(self) -> None:
        items = [*choices("110"), choice("hard", "0", difficulty="hard", duration="short")]
        found = numbers("choice", items)
        assert found["acc_difficulty_easy"] == 2 / 3
        assert found["acc_difficulty_hard"] == found["acc_duration_short"] == 0
        assert "acc_difficulty_medium" not in found

    def test_lengths_of_replies(self) -> None:
        """2, 4, 4 and 6 words: a failed request was no reply, an empty one was."""
        items = [choice(f"q{n}", words=n_words) for n, n_words in enumerate((2, 4, 4, 6))]
        items += [choice("m", "m", words=9), choice("x", "x", words=0)]
        assert number("words_mean", items) == 4
        assert number("words_mean", [*items, choice("e", "e", words=0)]) == 16 / 5
        assert number("words_mean", items[4:]) is None

    def test_the_authors_letters(self) -> None:
        """Of four two are right by our rule and three by theirs."""
        items = choices("11uu")
        items[2]["letter_authors"] = "A"
        found = numbers("choice", items)
        assert (found["acc"], found["acc_authors"]) == (0.5, 0.75)

    def test_sound_that_does_not_arrive_is_counted(self) -> None:
        states = ("delivered", "unknown", "raises", "not delivered")
        found = numbers("choice", [choice(f"q{n}", sound=s) for n, s in enumerate(states)])
        assert (found["n_sound_missing"], found["n_sound_unknown"]) == (2, 1)
        # Where A was not run, the items of S say whether S stands in for it.
        hears = {"a": "raises", "av": "delivered"}
        found = numbers("choice", [choice(f"q{n}", mode="s", hears=hears) for n in range(3)])
        assert (found["n_sound_missing_a"], found["n_sound_missing_av"]) == (3, 0)
        assert "n_sound_missing" not in found
        assert "n_sound_missing_a" not in numbers("choice", [choice("q", mode="a")])


class TestCircular:
    """Eight of eight, and the letters."""

    def test_one_question(self) -> None:
        for letters, plain, valid, failed in (
            ("ABCDEFGH", 1.0, 1.0, 0),
            ("ABCDEFGA", 0.0, 0.0, 0),
            ("ABCDEFG", 0.0, None, 1),  # --limit
            ("ABCDEFG-", 0.0, None, 1),
        ):
            found = numbers("circular", rotations("q", letters))
            assert (found["circ_acc"], found["circ_acc_valid"]) == (plain, valid), letters
            assert found["circ_acc_failed"] == failed

    def test_letters(self) -> None:
        for letters, bias in (
            ("CCCCCCCC", 7 / 8),
            ("ABCDEFGH", 0),  # always right, and wrong alike, is no bias
            ("BCDEFGHA", 0),
            ("AACD----", 1 / 4),  # true A B C D: A is half of the chosen, a quarter of the truth
            ("--------", None),
        ):
            assert number("position_bias", rotations("q", letters), "circular") == bias
        cut_off = rotations("q", "AAC")
        cut_off[2]["status"] = "truncated"
        assert number("position_bias", cut_off, "circular") == 1 / 2

    def test_three_questions_by_hand(self) -> None:
        """All right; B answered A; A everywhere, with B's turn unreadable.

        Chosen: A 1 + 2 + 7, B 1, C to H twice each, of 23 readable. True among those: A 3, B 2 (the
        unreadable one was B's), C to H 3 each.
        """
        items = rotations("p", "ABCDEFGH") + rotations("q", "AACDEFGH")
        items += rotations("r", "A-AAAAAA")
        found = numbers("circular", items)
        assert (found["acc"], found["acc_valid"]) == ((8 + 7 + 1) / 24, 16 / 23)
        assert (found["circ_acc"], found["circ_acc_valid"]) == (1 / 3, 1 / 2)
        assert found["circ_acc_failed"] == 1
        assert found["position_bias"] == (7 + 1 + 6 * 1) / (2 * 23)


class TestOpen:
    """Means of ratings: the candidate's failures are 0, the judge's are left out and counted."""

    def test_ratings(self) -> None:
        items = [answer(f"q{n}", "original", mark) for n, mark in enumerate("53ejm")]
        found = numbers("open", items)
        assert (found["correctness_valid"], found["correctness_failed"]) == (8 / 3, 2)
        assert found["correctness_coverage"] == 3 / 5
        marks = {"correctness": "j", "detail": "2", "context": "0", "temporal": "5"}
        found = numbers("open", [answer("q", "original", marks), answer("r", "original", "4")])
        assert (found["correctness_valid"], found["correctness_failed"]) == (4, 1)
        assert (found["detail_valid"], found["context_valid"]) == (3, 2)
        assert found["temporal_coverage"] == 1
        items = [answer("q", "original", "5"), answer("r", "original", "1", agentic="gaming")]
        found = numbers("open", items)
        assert (found["detail_valid_social"], found["detail_valid_gaming"]) == (5, 1)
        assert "detail_valid_sports" not in found

    def test_first_wordings_as_the_authors_count(self) -> None:
        """5, 3, and 0 for empty, for a judge's failure and for a failed request; no paraphrase."""
        items = [answer(f"q{n}", "original", mark) for n, mark in enumerate("53ejm")]
        found = numbers("open", [*items, answer("q0", "paraphrase", "1")])
        assert {found[f"{name}_authors"] for name in DIMENSIONS} == {8 / 5}
        assert number("detail_authors", pair("q", "ss"), "open") is None

    def test_answers_to_another_question(self) -> None:
        """Left out of ours, with their pair; the authors count them."""
        items = pair("a", "54") + pair("b", "13", borrowed=True)
        found = numbers("open", items)
        assert (found["correctness_valid"], found["correctness_authors"]) == (5, 3)
        assert found["correctness_both_wordings"] == (5 + 4 + 3) / 3
        assert (found["robust_n"], found["robust_both"]) == (1, 1)
        assert found["n_borrowed"] == 1
        assert "n_borrowed" not in numbers("open", items[:2])

    def test_waiting_for_a_judge_is_not_zero(self) -> None:
        items = [answer("q", "original", "s"), answer("q", "paraphrase", "e"), *pair("r", "ee")]
        found = numbers("open", items)
        assert found["correctness_valid"] is found["robust_both"] is None
        assert found["robust_n"] == 0

    def test_a_question_and_its_paraphrase(self) -> None:
        """Pairs 5-4, 4-3, 5-empty count; 5-judge and a lone answer do not."""
        items = pair("a", "54") + pair("b", "43") + pair("c", "5e") + pair("d", "5j")
        found = numbers("open", [*items, answer("e", "paraphrase", "5")])
        assert (found["robust_both"], found["robust_n"]) == (1 / 3, 3)
        marks = {"correctness": "4", "detail": "j", "context": "0", "temporal": "0"}
        items = [answer("q", version, marks) for version in metrics.VERSIONS]
        assert number("robust_both", items, "open") == 1  # only correctness counts
        twice = [*pair("q", "55"), {**answer("q", "original", "0"), "id": "other"}]
        assert numbers("open", twice)["robust_n"] == 0


class TestTable3:
    """Best-Uni = max(A, S, V), Best-Multi = max(V+S, V+A), the row of Qwen 2.5 Omni in tenths."""

    MARKS: Mapping[str, str] = {
        "a": "1111100000",
        "s": "1111000000",
        "v": "1110000000",
        "vs": "1111110000",
        "av": "1111111000",
    }

    def sides(
        self, sound: Mapping[str, str] | None = None, without: Sequence[str] = ()
    ) -> dict[str, list[dict[str, Any]]]:
        hears = {mode: (sound or {}).get(mode, "delivered") for mode in metrics.WITH_SOUND}
        return {
            f"maverix_{mode}": choices(marks, mode=mode, sound=hears.get(mode, ""), hears=hears)
            for mode, marks in self.MARKS.items()
            if mode not in without
        }

    def joined(self, sound: Mapping[str, str] | None = None, *without: str) -> list[Any]:
        (join,) = BENCHMARK.joins
        found = scoring.joined(join, self.sides(sound, without))
        return [found[name] for name in metrics.JOINED]

    def test_five_modes_and_fewer(self) -> None:
        """A mode that is missing leaves no number."""
        assert self.joined() == [0.5, 0.7, 0.7 - 0.5]
        assert self.joined(None, "a") == [None, 0.7, None]
        assert self.joined(None, "vs") == [0.5, None, None]
        assert self.joined(None, "a", "av") == [None, None, None]
        assert metrics.table3(self.sides(None, ("a", "av", "s", "v"))) == {}

    def test_without_sound_a_and_av_are_left_out(self) -> None:
        """As the paper's rows of models without sound, whose A and V+A were never run (dashes)."""
        for state in ("not delivered", "raises"):
            silent = {"a": state, "av": state}
            # The items of S, V and V+S tell it too: `check` says to leave A and V+A out.
            for without in ((), ("a",), ("a", "av")):
                assert self.joined(silent, *without) == [0.4, 0.6, 0.6 - 0.4]
            assert self.joined(silent, "a", "av", "s") == [None, 0.6, None]

    def test_the_state_is_the_modes_own(self) -> None:
        """Simple `openai` sends a wav and drops an mp4's track."""
        assert self.joined({"av": "not delivered"}) == [0.5, 0.6, 0.6 - 0.5]
        assert self.joined({"a": "raises"}) == [0.4, 0.7, 0.7 - 0.4]
        assert self.joined({"a": "raises"}, "a") == [0.4, 0.7, 0.7 - 0.4]
        assert self.joined({"a": "raises"}, "a", "av") == [0.4, None, None]
        unknown = {"a": "unknown", "av": "unknown"}
        assert self.joined(unknown)[0] == 0.5
        assert self.joined(unknown, "a", "av") == [None, None, None]

    def test_a_mode_s_own_items_go_before_the_others(self) -> None:
        """Runs of one model, simple and chat, scored together; the worst item tells of its mode."""
        silent = {"a": "not delivered", "av": "not delivered"}
        sides = {**self.sides(silent, ("a", "av")), "maverix_a": self.sides()["maverix_a"]}
        assert metrics.table3(sides)["best_uni"] == 0.5
        sides["maverix_a"][-1]["hears"] = silent
        assert metrics.table3(sides)["best_uni"] == 0.4

    def test_notes(self) -> None:
        sides = self.sides(without=["av"])
        assert metrics.table3_notes(self.sides()) == []
        assert metrics.table3_notes(sides) == ["without V+A"]
        sides["maverix_s"] = sides["maverix_s"][:7]
        assert metrics.table3_notes(sides)[1] == (
            "the modes were not asked the same items (A 10, S 7, V 10, V+S 10)"
        )


# --- what stands beside ---------------------------------------------------------------------------


def test_intervals() -> None:
    """Two videos with 1, 1 and 0: mean 2/3, residuals 2/3 and -2/3, se sqrt(2 * 8/9) / 3."""
    items = [choice("a", video="x"), choice("b", video="x"), choice("c", "u", video="y")]
    found = details("choice", items)
    interval = found["intervals"]["acc"]
    assert (interval["estimate"], interval["n"], interval["clusters"]) == (2 / 3, 3, 2)
    assert interval["se"] == pytest.approx(math.sqrt(2 * 8 / 9) / 3)
    found = details("circular", rotations("q", "ABCDEFGH") + rotations("r", "AAAAAAAA"))
    assert (found["intervals"]["circ_acc"]["n"], found["intervals"]["circ_acc"]["estimate"]) == (
        2,
        0.5,
    )
    found = details("open", pair("a", "54") + pair("b", "4j") + pair("c", "03"))
    assert found["intervals"]["correctness_valid"]["n"] == 3
    assert found["intervals"]["robust_both"]["estimate"] == 0.5
    assert details("open", pair("q", "ss"))["intervals"] == {}
