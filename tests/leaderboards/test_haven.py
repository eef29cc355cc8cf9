"""HAVEN's published figures are the paper's: tables, and what its text states."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from lmms_eval_tasks.leaderboards import Table, leaderboard
from lmms_eval_tasks.leaderboards.haven_claims import UNDECIDED
from tests.leaderboards.haven_boards import NAME, table

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "papers" / "haven.txt"
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper's text is not at {PAPER}")
NUMBERS = (1, 2, 3, 4)
HEADERS = {
    ("Dataset", "#Videos"): 1,
    ("Level", "Metric"): 2,
    ("Model", "Summarization"): 3,
    ("Model", "V2T. Sum"): 4,
}


def lines_of(number):
    """The cells of every line of a table as printed, the lines of its header among them."""
    found, inside = [], False
    for line in PAPER.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]] if line[:1] == "|" else []
        if tuple(cells[:2]) in HEADERS:
            inside = HEADERS[cells[0], cells[1]] == number
        inside = inside and bool(cells)
        if inside and set(cells[0]) != {"-"}:
            found.append(cells)
    return found


def name_of(cell):
    """A row's name without the colour command and the citation of our copy."""
    return re.sub(r"^\\rowcolorblue!6|(?<=\w) \(20\d\d[ab]?\)$", "", cell)


def printed(number):
    """Every row: (level or "", name, figures as text, the other cells)."""
    rows, level = [], ""
    for line in lines_of(number)[{1: 1, 2: 1, 3: 2, 4: 2}[number] :]:
        cells = line
        if number == 2 and line[0] in ("Frame", "Shot", "Document", "Summary"):
            level, cells = line[0].lower(), line[1:]
        figures, words = [], []
        for cell in cells[1:]:
            if re.fullmatch(r"[-+()\d. %]+", cell):
                figures += re.findall(r"[-+]?\d+(?:\.\d+)?", cell)
            elif cell == "–":
                figures.append(None)
            elif cell:
                words.append(cell)
        rows.append((level, name_of(cells[0]), figures, words))
    return rows


@needs_paper
@pytest.mark.parametrize(("number", "count"), [(1, 7), (2, 11), (3, 7), (4, 5)])
def test_every_figure_equals_the_paper(number, count):
    rows = printed(number)
    assert len(rows) == len(table(number).rows) == count
    for row, (level, name, figures, _) in zip(table(number).rows, rows, strict=True):
        assert row.name == name
        assert [None if v is None else str(v) for v in row.figures.values()] == [
            None if figure is None else figure.removeprefix("+") for figure in figures
        ]
        assert number != 2 or row.group == level
    if number == 1:
        stored = [[row.attributes["modalities"]] for row in table(1).rows]
        assert stored == [words for *_, words in rows]


@needs_paper
def test_the_order_of_the_columns_is_that_of_the_headers():
    one, (two, *_) = lines_of(1)[0], lines_of(2)
    titles = {n: [column.title for column in table(n).columns] for n in NUMBERS}
    assert titles[1] == ["#Videos", "Avg Frames", "Avg Shots"]
    assert [cell for cell in one if cell in titles[1]] == titles[1]
    # Our copy has lost the signs of kappa and of Spearman's correlation.
    assert [cell for cell in two if cell] == ["Level", "Metric", "Score", "Exact"]
    text = PAPER.read_text(encoding="utf-8")
    measures = text[text.index("we report quadratic weighted") :]
    assert measures.index("Cohen") < measures.index("Spearman") < measures.index("exact agreement")
    three = [cell for line in lines_of(3)[:2] for cell in line if cell]
    assert three[:5] == ["Model", "Summarization", "Temporal", "Grounding", "Saliency"]
    groups = ["", "", "", "", "Temporal ", "Temporal ", "Grounding ", "Saliency ", "Saliency "]
    pairs = zip(groups, three[5:], strict=True)
    assert [group + title for group, title in pairs] == titles[3]
    four = [cell for line in lines_of(4)[:2] for cell in line if cell]
    assert four[:4] == ["Model", "V2T. Sum", "V2V. Sum", "V2VT. Sum"]
    groups = ["V2T. "] * 2 + ["V2V. "] * 2 + ["V2VT. "] * 4
    assert [g + t for g, t in zip(groups, four[4:-1], strict=True)] == titles[4][:8]
    assert four[-1].startswith(titles[4][8])


def test_every_dash_of_table_3_has_its_reason():
    for row in table(3).rows:
        assert (row.dashes is None) == (None not in row.figures.values())
    reasons = {row.name: row.dashes for row in table(3).rows if row.dashes}
    assert sorted(reasons) == ["GLM-4.6V", "GPT-5.2", "text-proxy LLM"]
    assert all(reasons[name].startswith("not run") for name in ("GPT-5.2", "GLM-4.6V"))
    four = table(4)
    with pytest.raises(ValidationError, match="a reason for dashes, and no dash"):
        Table(**{**dict(four), "rows": [four.rows[0].model_copy(update={"dashes": "not run"})]})


@pytest.mark.parametrize(
    ("number", "column", "figure"),
    [(2, "kappa", "-1.01"), (2, "score_sd", "2.6"), (3, "temporal", "1.1"),
     (4, "clipscore", "2.6"), (4, "clipscore_change", "-2.6"), (4, "v2t_geval", "5.1")],
)  # fmt: skip
def test_a_figure_outside_its_range_is_refused(number, column, figure):
    whole = table(number)
    row = whole.rows[0]
    wrong = row.model_copy(update={"figures": row.figures | {column: Decimal(figure)}})
    with pytest.raises(ValidationError, match=f"{column} is {re.escape(figure)}, outside"):
        Table(**{**dict(whole), "rows": [wrong]})


STATED = {
    "dimensions": r"distinct tasks across (\w+) core dimensions",
    "datasets": r"built upon (\w+) video summarization datasets",
    "frames_per_video": r"average of ([\d.]+\d) frames per video",
    "keyframe_percent": r"The top (\d+)% of frames",
    "key_shot_percent": r"selected shots does not exceed (\d+)% of",
    "budget_percent": r"under a fixed (\d+)% budget",
    "assessed_videos": r"human evaluation on (\d+) sampled videos",
    "experts": r"We ask (\w+) human experts",
    "raters": r"rated by (\w+) annotators on",
    "rated_videos": r"on a subset of (\d+) videos sampled",
    "video_raters": r"independently evaluated by (\w+) human annotators",
    "rated_frames": r"\(1\) (\w+) sampled frame-level",
    "rated_shots": r"\(2\) (\w+) sampled shot-level",
    "good": r"(\d): good;",
    "tasks": r"We use the (\w+) tasks supported by",
    "subset": r"sampled subset of (\d+) videos from each",
    "internvideo_rouge": r"aggregated ROUGE score of ([\d.]+\d)",
    "internvideo_geval": r"G-Eval score below ([\d.]+\d)",
    "videollama3_p": r"\(([\d.]+) on precision",
    "videollama3_r": r"and ([\d.]+) on recall\)",
    "f1_low": r"F1 scores in the range of ([\d.]+)–",
    "f1_high": r"F1 scores in the range of [\d.]+–([\d.]+\d)",
    "bertscore_low": r"\(between ([\d.]+)–",
    "bertscore_high": r"\(between [\d.]+–([\d.]+\d)\)",
    "gain_first_percent": r"\(\+(\d+)% and",
    "gain_second_percent": r"% and \+([\d.]+)%, respectively",
}
WORDS = {"one": 1, "two": 2, "four": 4, "six": 6, "seven": 7}


def whole_text():
    return re.sub(r"\s+", " ", PAPER.read_text(encoding="utf-8"))


def test_each_stated_figure_is_looked_up():
    assert set(STATED) == set(leaderboard(NAME).stated)


@needs_paper
@pytest.mark.parametrize("key", STATED)
def test_stated_figures_equal_the_text(key):
    found = set(re.findall(STATED[key], whole_text()))
    assert len(found) == 1, found
    value = found.pop()
    assert str(leaderboard(NAME).stated[key].value) == str(WORDS.get(value, value))


# Where a list stands: the words before it and after it.
PLACES = {
    "dimensions": ("across four core dimensions", "enabling a multi-faceted"),
    "large_sources": ("Due to the large scale of", "randomly sampled subset"),
    "videoxum_title": ("- VideoXum: Cross-Modal", "IEEE Transactions on Multimedia 26"),
    "evaluated_models": ("both commercial and open-source models, including", "in a zero-shot"),
    "without_summaries": ("We note that", "models impose strict limits"),
    "gaining_most": ("generally improves performance across models, with", "benefiting the most"),
    "announced_metrics": ("Evaluation Metrics", "reported for additional analysis"),
    "frame_ratings": ("Each sampled frame description is evaluated on", "Shot-level annotation."),
    "shot_ratings": ("Each sampled shot description is evaluated on", "Full-document annotation."),
    "document_ratings": ("Each full-document annotation is evaluated on", "Summary annotation."),
    "summary_ratings": ("Each summary annotation is evaluated on", "B.3"),
    "proxy_orders_in_text": ("we replace each", "and ask GPT-5.4 to recover"),
    "proxy_orders_in_prompt": ("w/o Doc text-proxy | Shuffled", "only |"),
    "benchmark_names": ("HAVEN: Hierarchically", "B.2 Evaluation Dimensions"),
}


@needs_paper
@pytest.mark.parametrize("key", PLACES)
def test_listed_names_stand_in_the_text_in_their_order(key):
    text = whole_text()
    start = text.index(PLACES[key][0])
    passage = text[start : text.index(PLACES[key][1], start)]
    places = [passage.index(name) for name in leaderboard(NAME).named[key].names]
    assert places == sorted(places)
    if key.endswith("_ratings"):
        assert re.findall(r"\(\d\) (\w+):", passage) == leaderboard(NAME).named[key].names


def test_each_list_is_looked_up():
    assert set(PLACES) == set(leaderboard(NAME).named)


@needs_paper
def test_models_and_groups_are_those_of_the_text():
    text, board = whole_text(), leaderboard(NAME)
    rows = table(3).rows
    assert {row.identity for row in rows if row.group != "proxy"} == set(
        board.named["evaluated_models"].names
    )
    assert "text-proxy LLM baseline, GPT-5.4" in text
    assert [row.identity for row in rows if row.group == "proxy"] == ["GPT-5.4"]
    assert "Commercial model GPT-5.2" in text
    assert [row.name for row in rows if row.group == "commercial"] == ["GPT-5.2"]
    assert "Among open-source models in Fig. 4(b), Qwen3-VL and GLM-4.6V" in text
    assert {r.name: r.group for t in (3, 4) for r in table(t).rows if r.group == "open"}.keys() == {
        "GLM-4.6V", "InternVideo2.5", "Qwen3-VL", "Qwen2.5-VL", "VideoLLaMA3",
    }  # fmt: skip


@needs_paper
@pytest.mark.parametrize(
    "part",
    [
        "Hit@1 > F1 > IoU",
        "GPT-5.2 achieves best scores across metrics",
        "GLM-4.6V achieves higher F1 and IoU than Qwen3-VL, but lower Hit@1",
        "downward shift of their datapoints",
        "covers the largest area in the radar plot",
        "performance drops substantially on tasks that require explicit visual grounding",
        "but show weaker performance in keyframe selection",
    ],
)
def test_what_no_figure_decides_stands_in_the_text(part):
    assert part in whole_text()
    assert len(UNDECIDED) == 7
