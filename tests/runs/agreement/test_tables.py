"""What the command `agreement` prints."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from lmms_eval_tasks.runs.agreement.order import order
from lmms_eval_tasks.runs.agreement.tables import agreement_table, order_table
from lmms_eval_tasks.utils.metrics.agreement import Pair, Row, rows

GIVEN = [
    Pair("a", "q1", "v1", 5, 4),
    Pair("a", "q2", "v2", 3, 3),
    Pair("b", "q1", "v1", 1, 4),
    Pair("b", "q2", "v2", 4, 4),
    Pair("c", "q1", "v1", 0, 1),
    Pair("c", "q2", "v2", None, 5),
    Pair("c", "q3", "v2", 5, 5),
]


def printed(table: Table) -> list[list[str]]:
    written = io.StringIO()
    Console(width=150, file=written).print(table)
    return [line.split() for line in written.getvalue().splitlines()]


def test_a_row_of_numbers() -> None:
    made = printed(agreement_table("factuality", "answers of", _rows(GIVEN)))
    (first,) = [cells for cells in made if cells[:1] == ["b"]]
    assert first[:3] == ["b", "2", "0"]
    assert first[-2:] == ["2.50±2.25", "4.00±0.00"]
    (third,) = [cells for cells in made if cells[:1] == ["c"]]
    assert third[:3] == ["c", "2", "1"]
    # One video gives an interval no width, and no scores give no number.
    alone = printed(agreement_table("factuality", "answers of", _rows([Pair("a", "q", "v", 5, 4)])))
    assert ["a", "1", "0", "0.00", "-", "1.00", "5.00±0.00", "4.00±0.00"] in alone
    assert "No intervals: all answers are about one video." in map(" ".join, alone)
    nothing = printed(
        agreement_table("factuality", "answers of", _rows([Pair("a", "q", "v", None, 4)]))
    )
    assert ["a", "0", "1", *["-"] * 5] in nothing


def _rows(pairs: list[Pair]) -> dict[str, Row]:
    models = sorted({pair.rater for pair in pairs})
    return rows(pairs, models, "people", {}, scale=range(6), resamples=20)


def test_the_best_published_model_comes_first_and_equal_ones_share_a_place() -> None:
    found = order(GIVEN, ["a", "b"], ["a", "b"], resamples=20)
    made = printed(order_table("factuality", found, 3, 2))
    a, b = (next(cells for cells in made if cells[:1] == [name]) for name in "ab")
    assert a == ["a", "4.00", "3.50", "1", "2"]
    assert b == ["b", "2.50", "4.00", "2", "1"]
    assert made.index(b) < made.index(a)
    text = "\n".join(map(" ".join, made))
    assert "2 of 3 questions have a published score of all 2 models." in text
    assert "0 of 1 pairs of models are in the same order" in text
    assert text.rstrip().endswith("(over 2 videos: too narrow).")
    tied = order(
        [*GIVEN[:2], *[Pair("b", f"q{n}", f"v{n}", 4, 4) for n in (1, 2)]], *[["a", "b"]] * 2
    )
    made = printed(order_table("factuality", tied, 3, 2))
    assert [cells[-2:] for cells in made if cells[:1] in (["a"], ["b"])] == [["1", "1"], ["1", "2"]]
    assert "1 tied in one of the two or both" in "\n".join(map(" ".join, made))
