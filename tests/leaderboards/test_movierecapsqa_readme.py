"""MovieRecapsQA's tables and findings as markdown, and in its README."""

from decimal import Decimal
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import Table, leaderboard, render
from lmms_eval_tasks.leaderboards.movierecapsqa_claims import claims
from lmms_eval_tasks.leaderboards.movierecapsqa_contradictions import contradictions
from tests.leaderboards.movierecapsqa_boards import NAME, table

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "lmms_eval_tasks" / "movierecapsqa" / "README.md"


def test_figures_keep_the_papers_digits_and_signs():
    five = render.markdown(table(5))
    assert "| Relevance, open-source | (only frames) | +0.06 | +0.14 | +0.15 |" in five
    assert "| +0.00 |" in five
    assert (
        "| Factuality, people | Human* | 4.17 | 3.84 | 3.98 | 4.07 | 3.86 | 4.15 | – | 4.14 |"
        in five
    )
    four = render.markdown(table(4))
    assert "| proprietary | GPT-4o | 0.28 | 0.03 | 0.68 |" in four
    assert "| 3.99 |  | 2.01 | 3.97 |  | 1.92 |" in four
    assert "| people | Best Human* | 0.19 | 0.01 | 0.87 | 0.00 | – | – | – | – | 0.93 |" in four
    for number in (2, 3, 4, 5):
        lines = render.markdown(table(number)).splitlines()
        assert len(lines) == 4 + len(table(number).rows)
        assert len({line.count("|") for line in lines[2:]}) == 1


def test_our_change_is_signed_too():
    five = table(5)
    row = five.rows[1].model_copy(update={"ours": {"sta": Decimal("0.10")}})
    text = render.markdown(five.model_copy(update={"rows": [five.rows[0], row, *five.rows[2:]]}))
    assert "| +0.08 | +0.10 | +0.00 |" in text


def test_a_change_outside_its_range_is_refused():
    five = table(5)
    row = five.rows[1]
    figures = row.figures | {"sta": Decimal("-0.1")}
    change = row.model_copy(update={"figures": figures})
    rating = row.model_copy(update={"figures": figures, "unit": None})
    assert Table(**{**dict(five), "rows": [change]}).rows == [change]
    with pytest.raises(ValueError, match=r"sta is -0\.1, outside 0\.\.5"):
        Table(**{**dict(five), "rows": [rating]})


def test_the_models_block_has_every_spelling():
    text = render.blocks(NAME)[f"{NAME}:models"]
    for spelled, identity in leaderboard(NAME).models.items():
        assert (spelled in text) == (identity is not None)
    assert "elsewhere" not in render.blocks("maverix")["maverix:models"]


def test_the_list_shows_every_contradiction_and_what_is_followed():
    text = render.blocks(NAME)[f"{NAME}:findings"]
    board = leaderboard(NAME)
    for each in contradictions(board):
        assert each.says in text
        assert each.follow in text
        assert all(f.text in text for f in each.findings)
    failed = [claim for claim in claims(board) if not claim.holds]
    assert all(part in text for c in failed for part in (c.says, c.evidence, c.follow))
    assert text.count("\n- ") == len(contradictions(board)) + len(failed)


@pytest.mark.parametrize("name", list(render.blocks(NAME)))
def test_readme_shows_the_generated_block(name):
    text = README.read_text(encoding="utf-8")
    assert text.count(f"<!-- leaderboard:{name} -->") == 1, f"{README} lacks the block {name}"
    assert render.marked(name, render.blocks(NAME)[name]) in text, (
        f"{name} is out of date; run python -m lmms_eval_tasks.leaderboards.render {NAME} {README}"
    )
