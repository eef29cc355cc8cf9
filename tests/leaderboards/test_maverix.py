"""MAVERIX's published figures: transcription, and the README's generated blocks."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import leaderboard, render
from tests.leaderboards.maverix_boards import table

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "papers" / "maverix.txt"
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper's text is not at {PAPER}")
NUMBERS = (2, 3, 4, 5, 6, 7, 8, 9, 10)


# --- transcription ---------------------------------------------------------------------------


def paper_rows():
    """Every row of the paper's tables as printed: (table, label of its group, name, cells).

    Read from the text alone: a table begins where its header stands, and all of its lines are
    fields between tabs. Titles of blocks inside a table have no cell.
    """
    headers = {
        ("Statistic", "Audio Type"): 2,
        ("Model", "Audio Support", "Size"): 3,
        ("Model", "Easy"): 4,
        ("Models", "Taxonomy (AV)"): 5,
        ("Models", "Audio Category (AV)"): 5,
        ("Model", "Audio Support", "Judged Score"): 6,
        ("Modality", "Task"): 7,
        ("Model", "Temporal Consistency"): 8,
        ("Model", "Context"): 9,
        ("", "", "GPT-4o", "Gemini 2.5 FL"): 10,
    }
    rows, number, group = [], 0, ""
    for line in PAPER.read_text(encoding="utf-8").splitlines():
        fields = [re.sub(r"</?i>", "", field).strip() for field in line.split("\t")]
        if len(fields) < 2:
            number = 0 if line.strip() else number
            continue
        for header, which in headers.items():
            dense = [field for field in fields if field] if header[0] else fields
            if tuple(dense[: len(header)]) == header:
                number, group, fields = which, "", []
        if not number or not fields:
            continue
        if number in (7, 10) and fields[0]:
            group = fields[0]
        labels = {7: 2, 10: 2, 3: 5, 6: 2}.get(number, 1)
        cells = [cell for field in fields[labels:] for cell in split(field)]
        if not any(re.fullmatch(r"[+-]?[\d.]+", cell) for cell in cells):
            group = fields[0] if number == 2 else group  # a block's title, or more of the header
            continue
        if number == 2 and fields[0] == "Sub-class of QA":
            continue
        name = fields[1] if number in (7, 10) and fields[1] else fields[0]
        rows.append((number, group, name, fields[1:labels], cells))
    return rows


def split(field):
    """`93.4 ^{47.0↑}` is a figure and its signed change; anything else is one cell."""
    change = re.fullmatch(r"(\S+) \^\{([\d.]+)([↑↓])\}", field)
    return [change[1], ("-" if change[3] == "↓" else "") + change[2]] if change else [field]


def as_printed(figure):
    return "–" if figure is None else str(figure)


@needs_paper
def test_every_figure_equals_the_paper():
    printed: dict[int, list] = {number: [] for number in NUMBERS}
    for number, group, name, _, cells in paper_rows():
        printed[number].append((group, name, [cell.lstrip("+") for cell in cells]))
    first, second = printed[5][:7], printed[5][7:]  # Table 5 is printed as two panels
    assert [row[1] for row in first] == [row[1] for row in second]
    printed[5] = [(g, n, a + b) for (g, n, a), (_, _, b) in zip(first, second, strict=True)]
    assert [len(printed[number]) for number in NUMBERS] == [13, 18, 7, 7, 17, 21, 18, 17, 37]
    for number in NUMBERS:
        stored = [
            (row.name, [as_printed(figure) for figure in row.figures.values()])
            for row in table(number).rows
        ]
        assert stored == [(name, cells) for _, name, cells in printed[number]], f"Table {number}"


@needs_paper
def test_groups_and_attributes_equal_the_paper():
    slugs = {
        "Agentic Abilities": "counts",
        "QA Lengths": "words",
        "Video-Audio Statistics": "seconds",
        "Visual": "v",
        "Audio": "a",
        "Both (A+V)": "av",
        "Difficulty": "difficulty",
        "Agentic Tasks": "agentic",
        "Audio Type": "audio",
        "Topics": "topic",
        "Multimodal Abilities": "ability",
        "Overall": "all",
    }
    rows = paper_rows()
    for number in (2, 7, 10):
        stored = [(row.group, row.name) for row in table(number).rows]
        assert stored == [(slugs[g], name) for n, g, name, _, _ in rows if n == number]
    words = {"✓": "yes", "–": None, "": None}
    for number in (3, 6):
        stored = [list(row.attributes.values()) for row in table(number).rows]
        assert stored == [[words.get(a, a) for a in row[3]] for row in rows if row[0] == number]


@needs_paper
def test_the_order_of_the_columns_is_that_of_the_headers():
    text = PAPER.read_text(encoding="utf-8").splitlines()
    lines = [[field for field in line.split("\t") if field] for line in text]

    def titles(number):
        return [column.title for column in table(number).columns]

    assert [*titles(3)[:-1], r"$\Delta Multi$"] in lines
    assert titles(5)[:4] in lines
    assert titles(5)[4:] in lines
    assert titles(10) in lines
    assert ["Modality", "Task", *(f"{title} (%)" for title in titles(7))] in lines
    assert [name.split()[-1] for name in titles(4) if "Δ" not in name] == ["A", "V", "AV"] * 3
    assert titles(8)[:3] == ["Temporal V", "Temporal A/S", "Temporal V + A/S"]
    assert ["Video", "Audio/Sub", "V + A/Sub"] * 2 in lines
    assert ["A/S", "V", "AV/SV", "Avg", "Max", "Std"] in lines


STATED = {
    "abstract_accuracy": r"show performance around (\d+)% accuracy",
    "abstract_human": r"near-ceiling performance of ([\d.]+)%",
    "questions": r"curates ([\d,]+) questions",
    "videos": r"questions from (\d+) videos",
    "gemini_av": r"achieves ([\d.]+)% accuracy on multiple choice",
    "open_models": r"averaging only ([\d.]+)/5",
    "open_human": r"vs\. human ([\d.]+)/5",
    "dimensions": r"measures the models in (\w+) evaluation dimensions",
    "divisions": r"MAVERIX\t700\t106\t2,556\tV\+S\+A\t8-MCQ\t(\d)",
    "options_questions": r"Each of the (\d+) questions offers",
    "random_accuracy": r"random accuracy to ([\d.]+) %",
    "rubric_factors": r"on a (\w+)-factor rubric",
    "rubric_dimensions": r"assesses the output in (\w+) dimensions",
    "judge_aspects": r"evaluations in (\d) different aspects",
    "hours": r"contains ([\d.]+) hours",
    "shortest_s": r"ranging from (\d+) seconds",
    "longest_min": r"seconds to (\d+) minutes",
    "long_class_min": r"long-form content \(10-(\d+) minutes\)",
    "share_short": r"categories: ([\d.]+)% short",
    "share_medium": r"understanding, ([\d.]+)% medium",
    "share_long": r"and ([\d.]+)% long-form",
    "mean_length": r"average video length is ([\d.]+) seconds",
    "std_length": r"an std\. of ([\d.]+\d)",
    "choice_questions": r"including (\d+) eight-option",
    "open_prompts": r"and (\d+) open-ended prompts",
    "models": r"suite of (\d+) MLLMs",
    "families": r"across (\w+) architectural families",
    "best_uni_low": r"span \$\\sim (\d+)",
    "best_uni_high": r"span \$\\sim \d+\\text\{--\}(\d+)",
    "usual_gain": r"improve by roughly \$\\sim (\d+)",
    "gemini20_easy": r"2\.0-FL improves by \+([\d.]+)%",
    "gemini20_hard": r"easy items and \+([\d.]+)% on hard items, and Gemini",
    "gemini25_easy": r"2\.5-FL improves by \+([\d.]+)%",
    "gemini25_hard": r"on easy items and \+([\d.]+)% on hard items\. Qwen",
    "human_v": r"the jump from ([\d.]+)% with video-only",
    "human_av": r"video-only to ([\d.]+)% with audiovisual",
    "human_subset": r"answering a 1/(\d) subset",
    "survey_questions": r"a total of (\d+) questions",
    "survey_conditions": r"across (\w+) different conditions",
    "clips": r"provide all (\d+) video clips",
}
WORDS = {"three": 3, "five": 5, "six": 6}


def test_each_stated_figure_is_looked_up():
    assert set(STATED) == set(leaderboard("maverix").stated)


@needs_paper
@pytest.mark.parametrize("key", STATED)
def test_stated_figures_equal_the_text(key):
    text = PAPER.read_text(encoding="utf-8")
    # Table 5 stands in the middle of the sentence on the gains of the Gemini models.
    text = re.sub(r"\n\nTable 5: .*?\n\n(?=on easy items)", " ", text, flags=re.DOTALL)
    whole = re.sub(r"[ \n]+", " ", text)
    found = {match.replace(",", "") for match in re.findall(STATED[key], whole)}
    assert len(found) == 1, found
    value = found.pop()
    assert Decimal(WORDS.get(value, value)) == leaderboard("maverix").stated[key].value


@needs_paper
def test_listed_names_stand_in_the_text():
    text = " ".join(PAPER.read_text(encoding="utf-8").split())
    named = leaderboard("maverix").named
    places = {
        "introduction_abilities": ("agentic scenario categories:", "covering 700 videos"),
        "rubric_factors": ("five-factor rubric covering", "Together, the MCQ"),
        "judge_aspects": ("4 different aspects:", "We prompt the judge"),
        "named_models": ("suite of 17 MLLMs", "Among them, Ola"),
        "design_dimensions": ("six evaluation dimensions, covering", "Prevention of guess"),
        "statistics_dimensions": ("across evaluation dimensions including", "These are compl"),
        "survey_inputs": ("to answer the questions with", "as inputs with media"),
        "survey_conditions": ("three different conditions:", "Each "),
        "figure_abilities": ("Figure 4:", "Figure 11:"),
    }
    assert set(places) == set(named)
    for key, (start, end) in places.items():
        passage = text[text.index(start) : text.index(end, text.index(start))]
        assert all(name in passage for name in named[key].names), key
    models = text[text.index("suite of 17 MLLMs") : text.index("Among them, Ola")]
    assert "Qwen2-VL" not in models
    assert "Qwen-2-VL" not in models
    assert "GPT-4o-mini" not in models
    ten = {row.name for row in table(10).rows if row.group == "ability"}
    assert set(named["figure_abilities"].names) <= ten


@needs_paper
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("human experts reach", "gathered through MTurk with 382 participants"),
        ("generated with Whisper-v3", "Subtitles (Whisper-base-v3)"),
        ("hybrid human-AI pipeline", "human-authored questions"),
        ("Gemini 2.5 Flash-Lite", "Gemini 2.5-FL"),
    ],
)
def test_the_contradictions_in_words_stand_in_the_text(one, other):
    text = " ".join(PAPER.read_text(encoding="utf-8").split())
    assert one in text
    assert other in text


# --- markdown --------------------------------------------------------------------------------


def test_figures_keep_the_papers_digits_and_signs():
    assert "| EgoGPT-7B | 1.6420 | 1.5599 | 1.8732 |" in render.markdown(table(9))
    assert "| Visual | Overall | 28.91 | 96.34 | 80 |" in render.markdown(table(7))
    three = render.markdown(table(3))
    assert "| Qwen-2-VL |  | 7B | ViT-LLM | SFT | – |  | 43.0 |  | 48.0 |" in three
    assert three.endswith("| 55.8 | +9.2 |")
    assert "| -21.2 |" in three
    for number in NUMBERS:
        lines = render.markdown(table(number)).splitlines()
        assert len(lines) == 4 + len(table(number).rows)
        assert len({line.count("|") for line in lines[2:]}) == 1


def test_our_figures_appear_beside_any_column():
    five = table(5)
    row = five.rows[0].model_copy(update={"ours": {"gaming": Decimal("74.0")}})
    text = render.markdown(five.model_copy(update={"rows": [row, *five.rows[1:]]}))
    assert "| Gaming | ours | Natural |" in text
    assert "| 74.5 | 74.0 | 88.4 |" in text
    assert "ours" not in render.markdown(five)
