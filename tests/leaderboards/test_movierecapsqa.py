"""MovieRecapsQA's published figures are the paper's: tables, and what its text states."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import model_groups
from tests.leaderboards.movierecapsqa_boards import NAME, table

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "papers" / "movierecapsqa.txt"
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper's text is not at {PAPER}")
NUMBERS = (2, 3, 4, 5)


HEADERS = {
    ("Statistic", "Value"): 2,
    ("Question Modality", ""): 3,
    ("Model", "Semantic Metrics"): 4,
    ("Model", "Question Types"): 5,
}
# Lines of a table that have no figures: titles of blocks, and what stands above the figures.
BLOCKS = {
    "Dataset Size": "size",
    "Temporal Statistics": "seconds",
    "Facts and Questions": "facts",
    "Question Modality": "modality",
    "Question Categories": "category",
    "Relevance Score": "relevance",
    "Factuality Score": "factuality",
}


def paper_rows():
    """Every row of Tables 2 to 5 as printed: (table, title of its block, name, cells).

    Read from the text alone: a table begins where its header stands, and all of its lines are
    fields between tabs.
    """
    rows, number, block = [], 0, ""
    for line in PAPER.read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 2:
            number = number if fields[0] in BLOCKS and number else 0
        for header, which in HEADERS.items():
            if len(fields) > 1 and (fields[0], fields[1]) == header:
                number, block = which, ""
        if fields[0] in BLOCKS:
            block = BLOCKS[fields[0]]
        elif number and any(re.match(r"[~+-]?\d", field) for field in fields[1:]):
            rows.append((number, block, fields[0], fields[1:]))
    return rows


def digits(cell):
    """The figures of a printed cell: `~6,446 s (107 min)` is 6446, a dash is None."""
    if cell in ("–", "-"):
        return [None]
    values = re.fullmatch(r"~?([+-]?[\d.,]+)(?: s \(\d+ min\)| s)?(?: \\pm ([\d.]+))?", cell)
    return [Decimal(v.replace(",", "")) for v in values.groups() if v]


@needs_paper
def test_every_figure_equals_the_paper():
    printed: dict[int, list] = {number: [] for number in NUMBERS}
    for number, _, name, cells in paper_rows():
        width = 2 if number == 4 else 1
        values = [digits(cell) for cell in cells]
        figures = [v for cell in values for v in (cell * width if cell == [None] else cell)]
        printed[number].append((name, [None if v is None else str(v) for v in figures]))
    assert [len(printed[number]) for number in NUMBERS] == [10, 9, 9, 14]
    for number in NUMBERS:
        stored = [
            (row.name, [None if v is None else str(v) for v in row.figures.values()])
            for row in table(number).rows
        ]
        assert stored == printed[number], f"Table {number}"


@needs_paper
def test_groups_equal_the_paper():
    rows = paper_rows()
    for number in (2, 3):
        stored = [(row.group, row.name) for row in table(number).rows if row.name != "Total"]
        printed = [(block, name) for n, block, name, _ in rows if n == number and name != "Total"]
        assert stored == printed
    five, group = [], ""
    for number, block, name, _ in rows:
        if number == 5:
            group = {"Open-Source Models": "open", "Proprietary Models": "proprietary"}.get(
                name, "human" if name == "Human*" else group
            )
            five.append((f"{block}_{group}", name))
    assert [(row.group, row.name) for row in table(5).rows] == five
    assert len(set(five)) == 14
    changes = [row.unit == "rating_change" for row in table(5).rows]
    assert changes == [name.startswith("(only") for _, name in five]


@needs_paper
def test_the_order_of_the_columns_is_that_of_the_headers():
    text = PAPER.read_text(encoding="utf-8").splitlines()
    lines = [[field for field in line.split("\t") if field] for line in text]
    four = [column.title for column in table(4).columns]
    assert four[1::2] == ["±"] * 8
    metrics = four[0::2]
    # HELMET's two columns stand under one another in two lines of the header.
    assert [*metrics[:4], "HELMET", "HELMET", *metrics[6:]] in lines
    assert [title.removeprefix("HELMET ") for title in metrics[4:6]] in lines
    assert [column.title for column in table(5).columns] in lines


@needs_paper
def test_models_are_grouped_as_in_5_1():
    text = PAPER.read_text(encoding="utf-8")
    passage = text[text.index("5.1. Models") : text.index("5.2. Input Formats")]
    proprietary, rest = passage.split("which represent")
    assert "proprietary models:" in proprietary
    assert "open-source alternatives" in rest
    board, groups = leaderboard(NAME), model_groups(leaderboard(NAME))
    for key, part in (("proprietary", proprietary), ("open", rest)):
        listed = board.named[f"{key}_models"].names
        assert all(name in part for name in listed)
        assert {groups[name] for name in listed} == {key}
        identities = {board.models[name] for name in listed}
        assert identities == {r.identity for r in table(4).rows if r.group == key}
    assert {row.group for row in table(4).rows if not row.identity} == {"human"}
    assert groups["gpt_4o.response"] == groups["GPT-4o"] == "proprietary"
    assert "Avg. Human*" not in groups


STATED = {
    "abstract_videos": r"\(recap summary\) of (\d+) recap videos",
    "abstract_questions_k": r"generate \$\\approx ([\d.]+)K\$ questions",
    "abstract_recap_min": r"\(≈ (\d+) min\) recap video",
    "abstract_scenes_min": r"≈ (\d+) min of aligned movie scenes",
    "abstract_segment_min": r"≈ ([\d.]+) min of aligned recap video scenes",
    "abstract_models": r"setting \(d\)\) (\w+) state-of-the-art",
    "introduction_recap_min": r"short \(~(\d+) min\) summary",
    "introduction_questions": r"comprising ≈([\d,]+) open-ended questions",
    "introduction_videos": r"open-ended questions across (\d+) videos",
    "introduction_models": r"performance of (\d+) multimodal LLMs",
    "genre_low_min": r"in an (\d+)–15 minute continuous format",
    "genre_high_min": r"in an 8–(\d+) minute continuous format",
    "table1_questions": r"\(Ours\)\tAuto\t([\d,]+)\t",
    "table1_seconds": r"\(Ours\)\tAuto\t[\d,]+\t(\d+)\t",
    "table2_recap_min": r"Full Recap Video\t~660 s \((\d+) min\)",
    "table2_movie_min": r"Full Movie\t~6,446 s \((\d+) min\)",
    "table2_scenes_min": r"Segment \(Full\)\t~863 s \((\d+) min\)",
    "statistics_films": r"is built on (\d+) films",
    "statistics_questions": r"a corpus of ([\d,]+) open-ended",
    "statistics_table": r"key statistics is presented in Table (\d)",
    "table3_questions": r"\(bottom\) over ([\d,]+) total questions",
    "correctness_top": r"reference answer on a 0–(\d) scale",
    "dimensions": r"(?:evaluate a along|seven models and) (\w+) dimensions",
    "score_low": r"integer scores in the range (\d)–5",
    "score_top": r"(?:integer scores in the range 0–|our reference-free metrics from 0–)(\d)",
    "human_questions": r"randomly sampled (\d+) questions",
    "human_participants": r"presented to (\w+) human participants",
    "table4_human_questions": r"HUMAN\* performance on a sampled set of (\d+) questions",
    "table5_human_questions": r"category using the sampled set of (\d+) questions",
    "helmet_top": r"HELMET scores range from 0–(\d)",
    "rouge_low": r"ROUGE-L ranged only ([\d.]+)–",
    "rouge_high": r"ROUGE-L ranged only [\d.]+–([\d.]+\d)",
    "bertscore_low": r"BERTSCORE ([\d.]+)–",
    "bertscore_high": r"BERTSCORE [\d.]+–([\d.]+\d)",
    "bartscore_low": r"BARTSCORE ([\d.]+)–",
    "bartscore_high": r"BARTSCORE [\d.]+–([\d.]+\d)",
    "semantic_variance": r"variance of each metric is ≤ ([\d.]+\d)",
    "minicpm_correctness": r"rates MINICPM-o, ([\d.]+\d), above",
    "best_correctness": r"above the best, ([\d.]+\d), and",
    "average_correctness": r"and average human, ([\d.]+\d)\.",
    "llava_correctness": r"LLaVA-NeXT-VIDEO, ([\d.]+\d), is scored on par",
    "factuality_low": r"FACTUALITY scores range from ([\d.]+)–",
    "factuality_high": r"FACTUALITY scores range from [\d.]+–([\d.]+\d)",
    "average_factuality": r"complimented with ([\d.]+) and [\d.]+ for average and best",
    "best_factuality": r"complimented with [\d.]+ and ([\d.]+) for average and best",
    "variance_low": r"our metric \(([\d.]+)–[\d.]+ on FACTUALITY\)",
    "variance_high": r"our metric \([\d.]+–([\d.]+) on FACTUALITY\)",
    "reference_variance_low": r"reference-based metrics \(([\d.]+)–",
    "reference_variance_high": r"reference-based metrics \([\d.]+–([\d.]+)\)",
    "proprietary_dialogue": r"Proprietary models drop from ([\d.]+) \(dialogue\)",
    "proprietary_vision": r"drop from [\d.]+ \(dialogue\) to ([\d.]+) \(vision\)",
    "open_dialogue": r"open-source models from ([\d.]+) to",
    "open_vision": r"open-source models from [\d.]+ to ([\d.]+\d)",
    "human_dialogue": r"falling from ([\d.]+) to",
    "human_vision": r"falling from [\d.]+ to ([\d.]+\d)",
    "proprietary_relevance_high": r"for proprietary, ([\d.]+)–",
    "proprietary_relevance_low": r"for proprietary, [\d.]+–([\d.]+\d)",
    "open_relevance_low": r"open-source, ([\d.]+)–",
    "open_relevance_high": r"open-source, [\d.]+–([\d.]+\d)",
    "human_relevance": r"\(\\approx ([\d.]+)\+\)",
    "gain_dialogue": r"improves by \+([\d.]+\d), \+",
    "gain_vision": r"improves by \+[\d.]+, \+([\d.]+\d), and",
    "gain_multimodal": r"improves by \+[\d.]+, \+[\d.]+, and \+([\d.]+\d)",
    "open_frames_vision": r"better than proprietary \(([\d.]+) vs",
    "proprietary_frames_vision": r"better than proprietary \([\d.]+ vs\. ([\d.]+)\)",
    "proprietary_crd": r"easiest for models \(([\d.]+), ",
    "proprietary_npa": r"easiest for models \([\d.]+, ([\d.]+) proprietary",
    "proprietary_sta": r"wide margin \(([\d.]+) proprietary",
    "open_sta": r"wide margin \([\d.]+ proprietary, ([\d.]+) open-source",
    "human_sta": r"show no such drop \(([\d.]+)\)",
    "sta_gap_low": r"gap on STA \(([\d.]+)–",
    "sta_gap_high": r"gap on STA \([\d.]+–([\d.]+)\)",
    "sta_times": r"roughly (double) that of CRD or NPA",
    "sta_dialogue_only": r"dialogue-only \*improve\* by \+([\d.]+\d)",
    "sta_frames_only": r"frames-only \*decline\* by (-[\d.]+\d)",
}
WORDS = {"double": 2, "three": 3, "five": 5, "seven": 7}


def whole_text():
    return re.sub(r"[ \n]+", " ", PAPER.read_text(encoding="utf-8"))


def test_each_stated_figure_is_looked_up():
    assert set(STATED) == set(leaderboard(NAME).stated)


@needs_paper
@pytest.mark.parametrize("key", STATED)
def test_stated_figures_equal_the_text(key):
    text = whole_text()
    # Table 4 stands in the middle of a sentence on Factuality.
    joined = re.sub(r"range Model\tSemantic Metrics.*?normalized to 1\. ", "range ", text)
    found = {match.replace(",", "") for match in re.findall(STATED[key], f"{text}\n{joined}")}
    assert len(found) == 1, found
    value = found.pop()
    assert Decimal(WORDS.get(value, value)) == leaderboard(NAME).stated[key].value


@needs_paper
def test_listed_names_stand_in_the_text():
    text, named = whole_text(), leaderboard(NAME).named
    places = {
        "benchmark_names": ("MOVIECAPSQA: A", "References"),
        "promised_dimensions": ("ground an LLM judge in assessing", "without relying on a unique"),
        "open_ended_benchmarks": ("or an open-ended format", "Open-ended benchmarks, however"),
        "choice_benchmarks": ("Dataset\tAnnotation", "Table 1."),
        "dialogue_statistics": ("Each question is aligned with a specific segment", "A summary of"),
        "dialogue_inputs": ("the matched dialogue", "for that interval"),
        "listed_dimensions": ("along three dimensions:", "All reference-free evaluations"),
        "proprietary_models": ("leading proprietary models:", "which represent"),
        "open_models": ("open-source alternatives:", "All models are evaluated"),
        "human_metrics": ("We then scored human answers", "For each question, we compute"),
    }
    assert set(places) == set(named)
    for key, (start, end) in places.items():
        passage = text[text.index(start) : text.index(end, text.index(start))]
        passage = passage.replace("Factualty", "Factuality").replace("fact-based ", "")
        assert all(re.search(rf"{re.escape(n)}\b", passage) for n in named[key].names), key
    lines = PAPER.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" [")[0] for line in lines if line.endswith("\tNo\tMC")]
    assert rows == named["choice_benchmarks"].names
    dimensions = text[text.index("along three dimensions:") : text.index("All reference-free eval")]
    assert re.findall(r"- \*\*(\w+)\*\*", dimensions) == named["listed_dimensions"].names
    spelled = set(re.findall(r"\b(?i:movierecapsqa|movie\w*caps\w*)\b", text))
    assert spelled == set(named["benchmark_names"].names)


@needs_paper
@pytest.mark.parametrize(
    "part",
    [
        "(maximum across participants)",
        "± variance",  # Table 4's caption says what ± is; in the text it is \pm
        "as the answers are too short",
        "future work can incorporate script-based annotations",
        "average performance of an open-source model and a proprietary model",
        "Results on the coherence dimension are reported in Appendix G",
    ],
)
def test_what_the_findings_say_in_words_stands_in_the_text(part):
    assert part in whole_text().replace("\\pm", "±")
