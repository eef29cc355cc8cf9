"""The judge study's tables and findings as markdown, and in the benchmark's README."""

from decimal import Decimal

from lmms_eval_tasks.leaderboards import BENCHMARKS, leaderboard, render
from tests.leaderboards.cvrr_es_boards import NAME, beside, table


def test_figures_keep_the_papers_digits_and_signs():
    assert "| LLaMA-VID | Video-LLaVA | 3.95 | 3.98 | 4.00 |" in render.markdown(table(4))
    five = render.markdown(table(5))
    assert "| Judge | Candidate | Cont. & Obj. |" in five
    # Kappas are not differences: no plus signs.
    assert "| Video-LLaVA | LLaMA-VID | 0.93 | -0.35 | 0.00 | -0.03 | 0.07 |" in five
    assert "| Collective thought | GPT-4o | 40.17 | 26.42 |" in render.markdown(table(6))
    assert "| Mixture Judge | Average | 33.13 | 50.40 |" in render.markdown(table(7))
    for number in (1, 4, 5, 6, 7):
        lines = render.markdown(table(number)).splitlines()
        rows = [line for line in lines if line.startswith("|")]
        assert len(rows) == 2 + len(table(number).rows)
        assert len({line.count("|") for line in rows}) == 1


def test_what_stands_beside_the_tables_has_its_own_heading():
    assert table(4).heading == "Table 4"
    blocks = render.blocks(NAME)
    headings = {name: blocks[f"{NAME}:{name}"].split(".**")[0] for name in leaderboard(NAME).beside}
    assert headings == {
        "figure6": "**Figure 6",
        "figure7": "**Figures 7 to 13",
        "release": "**Recomputed from the release",
    }
    assert "| gpt4o-mini | 4 | 4 | 4 | 4 | 4 | 2 | 2 |" in blocks[f"{NAME}:figure6"]
    assert "| Video-LLaVA | 21.47 | 25.22 |" in blocks[f"{NAME}:release"]


def test_papers_without_anything_beside_have_no_such_blocks():
    for name in BENCHMARKS:
        board = leaderboard(name)
        assert bool(board.beside) is (name == NAME)
        tables = [key for key in render.blocks(name) if key.startswith(f"{name}:table")]
        assert tables == [f"{name}:table{each.number}" for each in board.tables]


def test_our_own_accuracy_stands_beside_the_releases():
    whole = beside("release")
    ours = whole.rows[1].model_copy(update={"ours": {"average": Decimal("75.03")}})
    rows = [whole.rows[0], ours, *whole.rows[2:]]
    text = render.markdown(whole.model_copy(update={"rows": rows}))
    assert "| 78.42 | 75.03 | 75.03 |" in text
    assert text.splitlines()[2].endswith("| Mean | ours |")


def test_the_models_block_has_every_spelling():
    text = render.blocks(NAME)[f"{NAME}:models"]
    assert "| `Video-LLaVA` | Video-LLaVA, video_llava | Videl-LLaVA |" in text
    assert "| `GPT-4o` | GPT-4o, GPT4o | gpt4o |" in text
    named = [spelled for spelled, one in leaderboard(NAME).models.items() if one]
    assert all(spelled in text for spelled in named)
