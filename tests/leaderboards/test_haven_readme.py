"""HAVEN's tables and findings as markdown, and in its README."""

from decimal import Decimal

from lmms_eval_tasks.leaderboards import leaderboard, render
from tests.leaderboards.haven_boards import NAME, table


def test_figures_keep_the_papers_digits_and_signs():
    assert "| HAVEN | V+TV+T | 11055 | 164.9 | 16.2 |" in render.markdown(table(1))
    assert "| Summary | Conciseness | 4.07 | 0.42 | 0.00 | 0.00 | 53.3 |" in render.markdown(
        table(2)
    )
    four = render.markdown(table(4))
    assert "| 0.218 | 0.558 | 0.850 | +0.044 |" in four
    assert "| 0.173 | 0.178 | 0.899 | -0.024 |" in four
    three = render.markdown(table(3))
    assert "| commercial | GPT-5.2 | – | – |  | – | – | 0.280 |  | 0.461 | 0.510 |  |" in three
    for number in (1, 2, 3, 4):
        lines = render.markdown(table(number)).splitlines()
        rows = [line for line in lines if line.startswith("|")]
        assert len(rows) == 2 + len(table(number).rows)
        assert len({line.count("|") for line in rows}) == 1


def test_dashes_are_explained_below_the_table_alone_that_has_reasons():
    last = render.markdown(table(3)).splitlines()[-1]
    assert last.startswith("Dashes: text-proxy LLM: ")
    assert "; GPT-5.2, GLM-4.6V: not run, " in last
    assert all("Dashes:" not in render.markdown(table(number)) for number in (1, 2, 4))


def test_our_own_figures_stand_beside_the_papers():
    three = table(3)
    ours = three.rows[3].model_copy(update={"ours": {"v2t_bs": Decimal("0.850")}})
    text = render.markdown(
        three.model_copy(update={"rows": [*three.rows[:3], ours, *three.rows[4:]]})
    )
    assert "| open-source | InternVideo2.5 | 0.847 | 0.850 | 0.273 |  |" in text
    assert "| V2T. BS | ours | V2V. F1 | ours |" in text


def test_the_models_block_has_every_spelling():
    text = render.blocks(NAME)[f"{NAME}:models"]
    assert "| `GLM-4.6V-Flash` | GLM-4.6V | GLM |" in text
    assert all(f"`{identity}`" in text for identity in leaderboard(NAME).models.values())
