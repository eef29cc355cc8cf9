"""What holds of every benchmark's tables and findings, whatever its paper says."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.leaderboards import BENCHMARKS, leaderboard, render

ROOT = Path(__file__).resolve().parents[2]

# MAIA's findings are sentences of its tables' checks: no module of contradictions.
WITH_CONTRADICTIONS = [name for name in BENCHMARKS if name != "maia"]
BLOCKS = [(name, block) for name in BENCHMARKS for block in render.blocks(name)]


def found(benchmark: str, board: Any) -> tuple[Any, Any, Any]:
    """A board's claims and contradictions, and what nothing printed decides."""
    parts = f"lmms_eval_tasks.leaderboards.{benchmark}"
    claims = importlib.import_module(f"{parts}_claims")
    contradictions = importlib.import_module(f"{parts}_contradictions")
    undecided = getattr(claims, "UNDECIDED", ())
    return claims.claims(board), contradictions.contradictions(board), undecided


@pytest.mark.parametrize(("benchmark", "block"), BLOCKS)
def test_readme_shows_the_generated_block(benchmark, block):
    readme = ROOT / "lmms_eval_tasks" / benchmark / "README.md"
    text = readme.read_text(encoding="utf-8")
    assert text.count(f"<!-- leaderboard:{block} -->") == 1, f"{readme} lacks the block {block}"
    assert render.marked(block, render.blocks(benchmark)[block]) in text, (
        f"{block} is out of date; "
        f"run python -m lmms_eval_tasks.leaderboards.render {benchmark} {readme}"
    )


@pytest.mark.parametrize("benchmark", WITH_CONTRADICTIONS)
def test_the_list_shows_every_contradiction_and_what_is_followed(benchmark):
    text = render.blocks(benchmark)[f"{benchmark}:findings"]
    claims, contradictions, undecided = found(benchmark, leaderboard(benchmark))
    for each in contradictions:
        assert each.says in text
        assert each.follow in text
        assert all(f.text in text for f in each.findings)
    failed = [claim for claim in claims if not claim.holds]
    assert all(part in text for c in failed for part in (c.says, c.evidence, c.follow))
    assert all(says in text and why in text for _, says, why in undecided)
    assert text.count("\n- ") == len(contradictions) + len(failed) + len(undecided)


class _Read(dict):
    """A dict that remembers which of its keys were asked for."""

    def __init__(self, content):
        super().__init__(content)
        self.read = set()

    def __getitem__(self, key):
        self.read.add(key)
        return super().__getitem__(key)


# MAVERIX's counts of what it lists are compared with its text (test_maverix.py), not with tables.
@pytest.mark.parametrize("benchmark", [name for name in WITH_CONTRADICTIONS if name != "maverix"])
def test_every_stated_figure_and_every_list_is_compared_with_something(benchmark):
    board = leaderboard(benchmark)
    stated, named = _Read(board.stated), _Read(board.named)
    found(benchmark, board.model_copy(update={"stated": stated, "named": named}))
    assert stated.read == set(stated)
    assert named.read == set(named)
