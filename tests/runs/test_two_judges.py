"""Two judges side by side: agreement, flips, cost."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from lmms_eval_tasks.judges import Usage, Verdict, prices
from lmms_eval_tasks.runs import two_judges
from lmms_eval_tasks.runs.rescore import Pair


def verdict(score: float | None, judge: str, tokens: int | None = 1000) -> Verdict:
    return Verdict(
        score,
        "ok" if score is not None else "parse_failure",
        judge=judge,
        usage=Usage(1, tokens, 0 if tokens is not None else None),
    )


@pytest.fixture
def price_list(tmp_path: Path) -> prices.PriceList:
    own = tmp_path / "p.yml"
    own.write_text(
        "models:\n  old: {input: 1, output: 2}\n  new@http://h/v1: {input: 3, output: 4}\n"
    )
    return prices.load_prices(own)


#          both right   up        down      both wrong  only old  only new     nobody
SCORES = [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1.0, None), (None, 1.0), (None, None)]


def test_counts_by_hand(price_list: prices.PriceList) -> None:
    pairs = [
        Pair(f"q{number}", verdict(before, "old"), verdict(after, "new@http://h/v1"))
        for number, (before, after) in enumerate(SCORES)
    ]
    found = two_judges.compared(pairs, price_list)
    assert found is not None
    assert (found["before"], found["after"]) == ("old", "new@http://h/v1")
    assert (found["n"], found["up"], found["down"], found["agreement"]) == (4, 1, 1, 0.5)
    assert (found["only_before"], found["only_after"]) == (1, 1)
    assert found["kappa"] == pytest.approx(0.0)  # 0.5 observed, 0.5 by chance
    assert (found["mean_before"], found["mean_after"]) == (0.5, 0.5)
    assert found["flipped"] == ["q1", "q2"]
    # Failed verdicts were paid for too.
    assert found["cost_before"] == pytest.approx(7 * 1000 * 1 / 1e6)
    assert found["cost_after"] == pytest.approx(7 * 1000 * 3 / 1e6)
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(two_judges.table({"maia_oevqa": found}))
    shown = console.export_text()
    for text in ("maia_oevqa", "old", "new@http://h/v1", "50.0%", "0.00", "$0.0070 / $0.0210"):
        assert text in shown


def test_nothing_to_compare_with(price_list: prices.PriceList) -> None:
    assert two_judges.compared([Pair("q", None, verdict(1.0, "new"))], price_list) is None
    assert two_judges.compared([], price_list) is None


def test_cost(price_list: prices.PriceList) -> None:
    """A panel's is that of its members, a batch's half; an unknown price is not zero."""
    free = Verdict(1.0, "ok", judge="none")
    members = (verdict(1.0, "old"), verdict(0.0, "Agent A, round 1: new@http://h/v1"))
    panel = Verdict(1.0, "ok", judge="panel", usage=Usage(2, 2000, 0), parts=members)
    batch = Verdict(1.0, "ok", judge="old", usage=Usage(1, 1000, 0, batch=True))
    for given, cost in (
        ([verdict(1.0, "mystery")], None),
        ([verdict(1.0, "old", tokens=None)], None),
        ([None, free], 0.0),
        ([verdict(1.0, "old")], 0.001),
        ([panel], 0.004),
        ([batch], 0.0005),
    ):
        expected = None if cost is None else pytest.approx(cost)
        assert two_judges.cost(given, price_list) == expected
