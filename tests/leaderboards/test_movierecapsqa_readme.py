"""MovieRecapsQA's tables and findings as markdown, and in its README."""

from decimal import Decimal

import pytest

from lmms_eval_tasks.leaderboards import Table, leaderboard, render
from tests.leaderboards.movierecapsqa_boards import NAME, table


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
