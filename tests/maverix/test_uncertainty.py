"""No number of MAVERIX depends on the order of its items; the intervals that stand beside them."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.maverix import scores, table3
from lmms_eval_tasks.maverix.labels import SPLITS
from tests.maverix.items import choice, choices, pair, rotations, withheld

# --- order ------------------------------------------------------------------------------------

MARKS = st.sampled_from("10uemx")
SHARED = {
    "words": st.integers(0, 400),
    "agentic": st.sampled_from(list(SPLITS["agentic"])),
    "withheld": st.booleans(),
    "sound": st.sampled_from(table3.SOUND),
}


@st.composite
def many(draw: st.DrawFn, kind: str) -> list[dict[str, Any]]:
    items = []
    for n in range(draw(st.integers(1, 6))):
        more = draw(st.fixed_dictionaries(SHARED))
        if kind == "choice":
            items.append(choice(f"q{n}", draw(MARKS), **more))
        elif kind == "circular":
            items += rotations(f"q{n}", draw(st.text("ABCDEFGH-", min_size=1, max_size=8)), **more)
        else:
            found = pair(f"q{n}", draw(st.text("012345ejms", min_size=2, max_size=2)), **more)
            items += draw(st.sampled_from([found, found[:1], found[1:]]))
    return items


@pytest.mark.parametrize("kind", list(scores.METRICS))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_number_depends_on_the_order(kind: str, data: st.DataObject) -> None:
    items = data.draw(many(kind))
    again = data.draw(st.permutations(items))
    for name, metric in scores.METRICS[kind].items():
        first, second = metric(items), metric(again)
        if name in scores.JOINED:
            assert first.scores == second.scores
        else:
            assert first == second, name
    for name in scores.METRICS[kind]:
        value = scores.METRICS[kind][name](items)
        assert value is None or name in scores.JOINED or math.isfinite(value)


# --- what stands beside -----------------------------------------------------------------------


class TestDetails:
    def test_choice(self) -> None:
        """Two videos with 1, 1 and 0: mean 2/3, residuals 2/3 and -2/3, se sqrt(2 * 8/9) / 3."""
        items = [choice("a", video="x"), choice("b", video="x"), choice("c", "u", video="y")]
        found = scores.details("choice", [*items, withheld("w")])
        assert (found["items"], found["withheld"]) == (4, 1)
        assert found["status"] == {"ok": 3, "unparsed": 1}
        assert found["sound"] == {"delivered": 4}
        interval = found["intervals"]["acc"]
        assert interval["estimate"] == 2 / 3
        assert interval["se"] == pytest.approx(math.sqrt(2 * 8 / 9) / 3)
        assert (interval["n"], interval["clusters"]) == (3, 2)

    def test_circular(self) -> None:
        items = rotations("q", "ABCDEFGH") + rotations("r", "AAAAAAAA")
        found = scores.details("circular", items)
        assert found["pools"] == 2
        assert found["intervals"]["circ_acc"]["estimate"] == 0.5
        assert found["intervals"]["circ_acc"]["low"] == 0
        assert "bootstrap" in found["intervals"]["circ_acc"]["method"]
        assert found["intervals"]["acc"]["estimate"] == 9 / 16

    def test_open(self) -> None:
        items = pair("a", "54") + pair("b", "4j") + pair("c", "03")
        found = scores.details("open", items)
        assert found["ratings"]["detail"] == {"judge_api_error": 1, "ok": 5}
        intervals = found["intervals"]
        assert intervals["correctness_valid"]["estimate"] == scores.OPEN["correctness_valid"](items)
        assert intervals["correctness_valid"]["n"] == 5
        assert (intervals["robust_both"]["estimate"], intervals["robust_both"]["n"]) == (0.5, 2)
        assert intervals["robust_diff"]["estimate"] == 2

    def test_where_nothing_is_known_there_is_no_interval(self) -> None:
        assert scores.details("choice", [withheld("w")])["intervals"] == {}
        assert scores.details("open", pair("q", "ss"))["intervals"] == {}
        assert scores.details("circular", [])["intervals"] == {}

    @pytest.mark.parametrize("kind", list(scores.METRICS))
    def test_order(self, kind: str) -> None:
        items = {
            "choice": choices("110u"),
            "circular": rotations("q", "ABCDEFGH") + rotations("r", "AACDEFGH"),
            "open": pair("a", "54") + pair("b", "42") + pair("c", "0j"),
        }[kind]
        expected = scores.details(kind, items)
        for seed in range(3):
            again = random.Random(seed).sample(items, len(items))
            assert scores.details(kind, again) == expected
