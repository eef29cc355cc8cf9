"""MAVERIX's numbers on items whose values can be checked by eye."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmms_eval_tasks.maverix import metrics
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from lmms_eval_tasks.report import aggregation
from tests.checks import table
from tests.maverix.items import answer, choice, choices, pair, rotations

TASKS = {"choice": "maverix_av", "circular": "maverix_av_circular", "open": "maverix_av_oe"}
Items = list[dict[str, Any]]


def numbers(kind: str, items: Items) -> dict[str, Any]:
    return aggregation.numbers(BENCHMARK.tasks[TASKS[kind]], items)


def details(kind: str, items: Items) -> dict[str, Any]:
    return aggregation.details(BENCHMARK.tasks[TASKS[kind]], items)


def firsts(marks: str, **more: Any) -> Items:
    """Answers to first wordings alone."""
    return [answer(f"q{n}", "original", mark, **more) for n, mark in enumerate(marks)]


def forms(name: str, plain: float | None, valid: float | None, failed: int) -> dict[str, Any]:
    return {name: plain, f"{name}_valid": valid, f"{name}_failed": failed}


AUTHORS = choices("11uu")
AUTHORS[2]["letter_authors"] = "A"
WORDS = [choice(f"q{n}", words=n_words) for n, n_words in enumerate((2, 4, 4, 6))]
LOST = [choice("m", "m", words=9), choice("x", "x", words=0)]
STATES = ("delivered", "unknown", "raises", "not delivered")
MIXED = {"correctness": "j", "detail": "2", "context": "0", "temporal": "5"}
# All right; B answered A; A everywhere, with B's turn unreadable. Chosen: A 1 + 2 + 7, B 1, C to H
# twice each, of 23 readable. True among those: A 3, B 2, C to H 3 each.
THREE = rotations("p", "ABCDEFGH") + rotations("q", "AACDEFGH") + rotations("r", "A-AAAAAA")
CUT_OFF = rotations("q", "AAC")
CUT_OFF[2]["status"] = "truncated"
# Pairs 5-4, 4-3, 5-empty count; 5-judge and a lone answer do not.
PAIRS = pair("a", "54") + pair("b", "43") + pair("c", "5e") + pair("d", "5j")


@table(
    "kind, items, expected",
    [
        # Three forms: what cannot be read is wrong, and left out of valid; what the candidate did
        # itself is wrong in both, since abstaining does not pay.
        ("choice", choices("1100"), forms("acc", 0.5, 0.5, 0)),
        *(("choice", choices(f"11{x}0"), forms("acc", 0.5, 2 / 3, 1)) for x in "umx"),
        *(("choice", choices(f"11{x}0"), forms("acc", 0.5, 0.5, 0)) for x in "eft"),
        ("choice", choices("u"), forms("acc", 0.0, None, 1)),
        ("choice", [], {"failed": 0}),
        (
            "choice",
            [*choices("110"), choice("hard", "0", difficulty="hard", duration="short")],
            {
                **{"acc_difficulty_easy": 2 / 3, "acc_difficulty_hard": 0},
                **{"acc_duration_short": 0, "acc_difficulty_medium": ...},
            },
        ),
        ("choice", AUTHORS, {"acc": 0.5, "acc_authors": 0.75}),
        # A failed request was no reply, an empty one was.
        ("choice", [*WORDS, *LOST], {"words_mean": 4}),
        ("choice", [*WORDS, choice("e", "e", words=0)], {"words_mean": 16 / 5}),
        (
            "choice",
            [choice(f"q{n}", sound=state) for n, state in enumerate(STATES)],
            {"n_sound_missing": 2, "n_sound_unknown": 1},
        ),
        # Where A was not run, the items of S say whether S stands in for it.
        (
            "choice",
            choices("111", mode="s", hears={"a": "raises", "av": "delivered"}),
            {"n_sound_missing_a": 3, "n_sound_missing_av": 0, "n_sound_missing": ...},
        ),
        ("choice", choices("1", mode="a"), {"n_sound_missing_a": ...}),
        ("circular", rotations("q", "ABCDEFGH"), forms("circ_acc", 1.0, 1.0, 0)),
        ("circular", rotations("q", "ABCDEFGA"), forms("circ_acc", 0.0, 0.0, 0)),
        ("circular", rotations("q", "ABCDEFG"), forms("circ_acc", 0.0, None, 1)),  # --limit
        ("circular", rotations("q", "ABCDEFG-"), forms("circ_acc", 0.0, None, 1)),
        ("circular", THREE, forms("circ_acc", 1 / 3, 1 / 2, 1)),
        ("circular", THREE, {"acc": (8 + 7 + 1) / 24, "acc_valid": 16 / 23}),
        ("circular", THREE, {"position_bias": (7 + 1 + 6 * 1) / (2 * 23)}),
        ("circular", rotations("q", "CCCCCCCC"), {"position_bias": 7 / 8}),
        # Always wrong alike is no bias.
        ("circular", rotations("q", "BCDEFGHA"), {"position_bias": 0}),
        # True A B C D: A is half of the chosen, a quarter of the truth.
        ("circular", rotations("q", "AACD----"), {"position_bias": 1 / 4}),
        ("circular", rotations("q", "--------"), {"position_bias": None}),
        ("circular", CUT_OFF, {"position_bias": 1 / 2}),
        # The candidate's failures are 0, the judge's are left out and counted.
        ("open", firsts("53ejm"), {"correctness_valid": 8 / 3, "correctness_failed": 2}),
        ("open", firsts("53ejm"), {"correctness_coverage": 3 / 5}),
        (
            "open",
            [answer("q", "original", MIXED), answer("r", "original", "4")],
            {
                **{"correctness_valid": 4, "correctness_failed": 1, "detail_valid": 3},
                **{"context_valid": 2, "temporal_coverage": 1},
            },
        ),
        (
            "open",
            firsts("5") + firsts("1", agentic="gaming"),
            {"detail_valid_social": 5, "detail_valid_gaming": 1, "detail_valid_sports": ...},
        ),
        # As the authors count: empty, a judge's failure and a failed request are 0.
        (
            "open",
            [*firsts("53ejm"), answer("q0", "paraphrase", "1")],
            {f"{name}_authors": 8 / 5 for name in DIMENSIONS},
        ),
        # Answers to another question are left out of ours, with their pair; the authors count them.
        (
            "open",
            pair("a", "54") + pair("b", "13", borrowed=True),
            {
                **{"correctness_valid": 5, "correctness_authors": 3, "n_borrowed": 1},
                **{"correctness_both_wordings": (5 + 4 + 3) / 3, "robust_n": 1, "robust_both": 1},
            },
        ),
        ("open", pair("a", "54"), {"n_borrowed": ...}),
        # Waiting for a judge is not zero.
        (
            "open",
            [answer("q", "original", "s"), answer("q", "paraphrase", "e"), *pair("r", "ee")],
            {"correctness_valid": None, "robust_both": None, "robust_n": 0},
        ),
        ("open", pair("q", "ss"), {"detail_authors": None}),
        ("open", [*PAIRS, answer("e", "paraphrase", "5")], {"robust_both": 1 / 3, "robust_n": 3}),
    ],
)
def test_numbers(kind: str, items: Items, expected: Mapping[str, Any]) -> None:
    """`...` stands for no such number."""
    found = numbers(kind, items)
    assert {name: found.get(name, ...) for name in expected} == expected


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
    ) -> dict[str, Items]:
        hears = {mode: (sound or {}).get(mode, "delivered") for mode in metrics.WITH_SOUND}
        return {
            f"maverix_{mode}": choices(marks, mode=mode, sound=hears.get(mode, ""), hears=hears)
            for mode, marks in self.MARKS.items()
            if mode not in without
        }

    @table(
        "sound, without, uni, multi",
        [
            # A mode that is missing leaves no number.
            ({}, "", 0.5, 0.7),
            ({}, "a", None, 0.7),
            ({}, "vs", 0.5, None),
            ({}, "a av", None, None),
            # As the paper's rows of models without sound, whose A and V+A were never run (dashes).
            # The items of S, V and V+S tell it too: `check` says to leave A and V+A out.
            *(
                ({"a": state, "av": state}, without, 0.4, 0.6)
                for state in ("not delivered", "raises")
                for without in ("", "a", "a av")
            ),
            ({"a": "raises", "av": "raises"}, "a av s", None, 0.6),
            # The state is the mode's own: simple `openai` sends a wav and drops an mp4's track.
            ({"av": "not delivered"}, "", 0.5, 0.6),
            ({"a": "raises"}, "", 0.4, 0.7),
            ({"a": "raises"}, "a", 0.4, 0.7),
            ({"a": "raises"}, "a av", 0.4, None),
            ({"a": "unknown", "av": "unknown"}, "a av", None, None),
        ],
    )
    def test_best_modes(
        self, sound: Mapping[str, str], without: str, uni: float | None, multi: float | None
    ) -> None:
        (join,) = BENCHMARK.joint_metrics
        found = aggregation.joint_numbers(join, self.sides(sound, without.split()))
        delta = None if uni is None or multi is None else multi - uni
        assert [found[name] for name in metrics.JOINED] == [uni, multi, delta]

    def test_a_mode_s_own_items_go_before_the_others(self) -> None:
        """Runs of one model, simple and chat, scored together."""
        silent = {"a": "not delivered", "av": "not delivered"}
        sides = {**self.sides(silent, ("a", "av")), "maverix_a": self.sides()["maverix_a"]}
        assert metrics.table3(sides)["best_uni"] == 0.5
        assert metrics.table3(self.sides(None, ("a", "av", "s", "v"))) == {}


def test_intervals() -> None:
    """Two videos with 1, 1 and 0: mean 2/3, 0 and 1 without one, se sqrt((4/9 + 1/9) / 2)."""
    items = [choice("a", video="x"), choice("b", video="x"), choice("c", "u", video="y")]
    interval = details("choice", items)["intervals"]["acc"]
    assert (interval["estimate"], interval["n"], interval["clusters"]) == (2 / 3, 3, 2)
    assert interval["se"] == pytest.approx(math.sqrt(5 / 18))
    interval = details("circular", rotations("q", "ABCDEFGH") + rotations("r", "AAAAAAAA"))
    assert interval["intervals"]["circ_acc"]["estimate"] == 0.5
    found = details("open", pair("a", "54") + pair("b", "4j") + pair("c", "03"))["intervals"]
    assert (found["correctness_valid"]["n"], found["robust_both"]["estimate"]) == (3, 0.5)
    assert details("open", pair("q", "ss"))["intervals"] == {}


def test_prose_is_no_bad_python(recwarn: pytest.WarningsRecorder) -> None:
    """Their code reads a reply as Python, whose parser warns of what it would not run."""
    assert metrics.score_of_authors("It is 4or 5 of 5in all") == 0
    assert metrics.score_of_authors("{'score': 4.5}") == 4
    assert [one for one in recwarn.list if not issubclass(one.category, ResourceWarning)] == []
