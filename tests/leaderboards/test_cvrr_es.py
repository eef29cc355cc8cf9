"""The judge study's published figures are the paper's, and those of the release its own."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, PAPER_COUNTS
from lmms_eval_tasks.leaderboards import Table, leaderboard
from tests.leaderboards.cvrr_es_boards import NAME, beside, table

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
PAPER = SHARED / "papers" / "vlm_judge.txt"
RELEASE = SHARED / "data" / "cvrr_es" / "judge_results"
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper's text is not at {PAPER}")
needs_release = pytest.mark.skipif(
    not RELEASE.is_dir(), reason=f"the release's judgements are not at {RELEASE}"
)
NUMBERS = (4, 5, 6, 7)
KAPPA = {"kappa_percent"}
FIGURES = (7, 8, 9, 10, 11, 12, 13)


def whole():
    return PAPER.read_text(encoding="utf-8")


# --- tables ------------------------------------------------------------------------------------


def bare(cell):
    return re.sub(r"<[^>]*>", "", cell).strip()


def lines_of(number):
    """The lines of a table, as lists of cells; it ends at its caption and has no empty cell."""
    lines = whole().splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith(f"Table {number}:"))
    start = end
    while not lines[start].startswith(("Candidate\t", "Judge\t", "Judge &")):
        start -= 1
    return [[bare(cell) for cell in line.split("\t")] for line in lines[start:end] if line.strip()]


def printed(number):
    """Every row: (group, name, figures as text)."""
    rows, group = [], ""
    for name, *cells in lines_of(number)[2:]:
        if any(cells):
            rows.append((group, name, cells))
        elif not name.startswith("&"):
            group = name
    return rows


@needs_paper
@pytest.mark.parametrize(("number", "count"), [(4, 35), (5, 31), (6, 6), (7, 6)])
def test_every_figure_equals_the_paper(number, count):
    rows = printed(number)
    assert len(rows) == len(table(number).rows) == count
    for row, (group, name, cells) in zip(table(number).rows, rows, strict=True):
        assert (row.group, row.name) == (group, name)
        assert [str(figure) for figure in row.figures.values()] == cells


@needs_paper
@pytest.mark.parametrize("number", NUMBERS)
def test_the_order_of_the_columns_is_that_of_the_headers(number):
    titles = lines_of(number)[1][1:]
    assert [column.title for column in table(number).columns] == titles


@pytest.mark.parametrize("number", NUMBERS)
def test_columns_are_the_benchmarks_dimensions(number):
    columns = {column.name: column.title for column in table(number).columns}
    assert columns == {slug: dimension.short for slug, dimension in DIMENSIONS.items()}


@needs_paper
def test_table_1_lists_the_papers_models():
    lines = whole().splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("Table 1:"))
    rows = [line.split("\t") for line in lines[end - 6 : end] if "\t" in line]
    assert [[row.name, row.attributes["models"]] for row in table(1).rows] == rows
    assert [row.figures for row in table(1).rows] == [{}] * 4


def test_no_cell_of_tables_4_to_7_is_lost():
    for number in NUMBERS:
        assert all(None not in row.figures.values() for row in table(number).rows)


def test_units_differ_though_the_columns_are_the_same():
    units = {n: {column.unit for column in table(n).columns} for n in NUMBERS}
    assert units == {4: {"rating"}, 5: KAPPA, 6: KAPPA, 7: KAPPA}
    assert {column.unit for column in beside("release").columns} == {"percent"}


@pytest.mark.parametrize(("number", "figure"), [(4, "5.01"), (5, "100.01"), (7, "-100.01")])
def test_a_figure_outside_its_range_is_refused(number, figure):
    one = table(number)
    row = one.rows[0]
    wrong = row.model_copy(update={"figures": row.figures | {"partial_actions": Decimal(figure)}})
    with pytest.raises(ValidationError, match=f"partial_actions is {re.escape(figure)}, outside"):
        Table(**{**dict(one), "rows": [wrong]})


def test_every_model_has_one_name():
    rows = [row for number in NUMBERS for row in table(number).rows]
    rows += [row for name in ("figure6", "figure7", "release") for row in beside(name).rows]
    without = {row.name for row in rows if row.identity is None}
    assert without == {"Average", "questions"}
    assert {row.identity for row in rows} - {None} == {
        "Video-LLaVA", "LLaMA-VID", "GPT-4o mini", "Video-ChatGPT", "mPLUG-Owl-Video", "InternVL2",
        "GPT-4o", "GPT-3.5", "Agents-Debate", "TimeChat",
    }  # fmt: skip


@needs_paper
def test_every_spelling_stands_in_the_paper_or_the_release():
    text = whole()
    ours = [name for name in leaderboard(NAME).models if name not in text]
    assert ours == ["GPT4o", "TimeChat"]


# --- figures -----------------------------------------------------------------------------------


@needs_paper
def test_figure_6_equals_the_paper():
    text = whole()
    lines = text[: text.index("\nFigure 6: An example")].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Candidate \\ Judge\t"))
    titles = lines[start].split("\t")[1:]
    assert [column.title for column in beside("figure6").columns] == titles
    rows = [line.split("\t") for line in lines[start + 1 :] if line.count("\t") == 7]
    assert [[r.name, *map(str, r.figures.values())] for r in beside("figure6").rows] == [
        [row[0].split(":")[0], *row[1:]] for row in rows
    ]


def figure(number):
    """The text of a figure: what stands between the caption before it and its own."""
    text = whole()
    end = text.index(f"\nFigure {number}: An example")
    return text[text.rindex("\nFigure", 0, end) : end]


def replies(number):
    """(candidate, rating, reason) of each reply in a figure."""
    lines = re.findall(
        r"^(mpl?ug\w*|llama\w+|video\w+|gpt4o-mini): .*?\t(.*)$", figure(number), re.M
    )
    found = []
    for name, raw in lines:
        text = raw.replace('\\"', '"').replace("\\n", "")
        rating = re.search(r"""["']rating["']: ["']?\[*(\d)""", text)[1]
        reason = re.search(r"""["']reason["']: ["'](.*)""", text)[1].rstrip("'\"} ,")
        found.append((name, rating, reason))
    return found


@needs_paper
@pytest.mark.parametrize("number", FIGURES)
def test_figures_7_to_13_equal_the_paper(number):
    found = replies(number)
    stored = [[row.name, str(row.figures[f"figure_{number}"])] for row in beside("figure7").rows]
    assert [[name.replace("mpug", "mplug"), rating] for name, rating, _ in found] == stored


@needs_paper
@pytest.mark.parametrize(("panel", "single"), [(7, 10), (8, 9)])
def test_replies_that_two_figures_share(panel, single):
    pairs = zip(replies(panel), replies(single), strict=True)
    same = sum(one[1:] == other[1:] for one, other in pairs)
    assert same == leaderboard(NAME).stated[f"same_replies_{panel}_{single}"].value


@needs_paper
def test_the_judge_shown_in_figure_8_is_gpt_4o_about_another_answer():
    (shown,) = re.findall(r"\[The Start of Judge A's rating\](.*?)\[The End", figure(8))
    _, other, *_ = replies(9)
    assert other[0] == "llama_vid"
    assert f"Rating: '{other[1]}'" in shown
    assert other[2] in shown
    assert "unique dance routine" in figure(8).split("[The End of Assistant's Answer]")[0]


@needs_paper
@pytest.mark.parametrize("number", [7, 8])
def test_judges_shown_in_a_prompt(number):
    shown = set(re.findall(r"\[The Start of Judge (\w)'s rating\]", figure(number)))
    assert len(shown) == leaderboard(NAME).stated[f"judges_shown_{number}"].value


@needs_paper
@pytest.mark.parametrize("number", FIGURES)
def test_what_the_prompts_ask_for(number):
    named, place = leaderboard(NAME).named, FIGURES.index(number)
    text = figure(number)
    key, asked = (re.findall(p, text) for p in (r"in the key '(\w+)'", r"Use ['\"](\[+\d\]+)['\"]"))
    reply = re.findall(r"JSON format: \{+\s*[\"'](\w+)[\"']", text)
    assert key == [named["asked_keys"].names[place]]
    assert reply == [named["reply_keys"].names[place]]
    assert asked == [named["notations"].names[place]]


# --- the release -------------------------------------------------------------------------------


@needs_release
def test_the_release_gives_the_stored_accuracies():
    """Rows with another label than the two are left out; the mean is that of the dimensions."""
    rows = {row.name: row for row in beside("release").rows}
    folders = sorted(path.name for path in RELEASE.iterdir())
    assert sorted(rows) == sorted([*folders, "questions"])
    for name in folders:
        accuracies = []
        for slug in DIMENSIONS:
            judged = json.loads((RELEASE / name / f"{slug}.json").read_text(encoding="utf-8"))
            labels = [judgement["pred"].lower() for judgement, _ in judged]
            assert len(labels) == rows["questions"].printed(slug)
            known = [label for label in labels if label in ("correct", "incorrect")]
            accuracies.append(100 * known.count("correct") / len(known))
            assert f"{accuracies[-1]:.2f}" == str(rows[name].printed(slug))
        assert f"{sum(accuracies) / 11:.2f}" == str(rows[name].printed("average"))


def test_the_paper_has_as_many_questions_as_the_release():
    counts = beside("release").row("", "questions").cells
    assert sum(counts.values()) == PAPER_COUNTS["questions"]
    assert leaderboard(NAME).stated["questions"].value == PAPER_COUNTS["questions"]
