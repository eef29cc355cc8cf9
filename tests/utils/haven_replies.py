"""What the tests of HAVEN's replies share: tables, long replies, scores of many random ones."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

SIZE = 100_000  # characters
SECONDS = 5.0  # generous for a loaded machine; quadratic matching takes minutes at this size
DRAWS = 10_000
BOUND = 4.0  # standard errors, two-sided: 6 in 100,000 by chance, and the seed is fixed


def cases(name: str) -> list[dict[str, Any]]:
    """A table of tests/cases."""
    folder = Path(__file__).parents[1] / "cases"
    found: list[dict[str, Any]] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def check_size(table: Sequence[dict[str, Any]], ok: int, unparsed: int) -> None:
    """A table without repeats that has every status, and enough that are read or not."""
    keys = ("read", "text", "unit", "n_sentences")
    assert len({tuple(map(str, map(case.get, keys))) for case in table}) == len(table) >= 40
    statuses = Counter(case["status"] for case in table)
    assert statuses["ok"] >= ok
    assert statuses["unparsed"] >= unparsed
    assert {"empty", "truncated", "refused", "model_error"} <= statuses.keys()


def slow(read: Callable[[str], Any], pieces: Iterable[str], head: str = "") -> list[str]:
    """The pieces of which `read` takes too long over a reply of 100 kB that repeats them."""
    found = []
    for piece in pieces:
        text = head + piece * (SIZE // len(piece)) + "x"
        start = time.perf_counter()
        read(text)
        if time.perf_counter() - start > SECONDS:
            found.append(piece)
    return found


def check_chance(found: Sequence[Sequence[float]], expected: Sequence[float]) -> None:
    """Scores of DRAWS random replies have these means."""
    assert len(found) == DRAWS
    for column, mean in zip(zip(*found, strict=True), expected, strict=True):
        assert abs(fmean(column) - mean) < BOUND * stdev(column) / math.sqrt(DRAWS)
        assert stdev(column) > 0
