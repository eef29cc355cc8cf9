"""What leaderboards/*.json stores is what the papers print, and leaderboards/*.md shows the same.

Where each table, figure and list stands in the papers' texts is in tests/cases/leaderboards.json.
"""

import json
import re
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import headline, printed_rows, source, stored
from lmms_eval_tasks.registry import NAMES as BENCHMARKS

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
CASES = json.loads((ROOT / "tests" / "cases" / "leaderboards.json").read_text(encoding="utf-8"))
ENTRIES = [(b, place) for b in BENCHMARKS for place in range(len(CASES[b]["tables"]))]
NUMERALS = ["zero", "one", "two", "three", "four", "five", "six", "seven"]
# A cell with figures: `8,231`, `~660 s (11 min)`, `43.3%`, `0.23 \pm 0.01`, `93.4 ^{47.0↑}`.
SECOND = r"(?: (?:\\pm |\^\{|\()?([+-]?[\d.]+)([↑↓]?)[})]?)?"
FIGURES = re.compile(rf"~?([+-]?\d[\d,]*(?:\.\d+)?)%?(?: s)?(?: \(\d+ min\))?{SECOND}")
# Read off the figures of the judge study's prompts (leaderboards/cvrr_es.md), not off its text.
IN_PROMPTS = {"asked_keys", "reply_keys", "notations", "weight_of_equal", "weight_of_farthest"}
IN_PROMPTS |= {"judges_shown_7", "judges_shown_8", "same_replies_7_10", "same_replies_8_9"}


def paper(benchmark):
    file = SHARED / "papers" / CASES[benchmark]["paper"]
    if not file.is_file():
        pytest.skip(f"the paper's text is not at {file}")
    return file.read_text(encoding="utf-8")


# --- tables ------------------------------------------------------------------------------------


def cells(line):
    """The fields of a table's line, without tags, colours and years of citations."""
    fields = line.split("\t") if "\t" in line else line.strip().strip("|").split("|")
    noise = r"<[^>]*>|\\rowcolor\w+!\d|(?<=\w) \(20\d\d[ab]?\)$"
    return [re.sub(noise, "", field.strip()).strip() for field in fields]


def figures(cell, width=1):
    """The figures of a cell as they are stored, None for a dash; nothing if it is a label."""
    if cell in ("–", "-"):
        return [None] * width
    if not (found := FIGURES.fullmatch(cell)):
        return []
    first, second, arrow = found.groups()
    both = [first.replace(",", ""), second and ("-" if arrow == "↓" else "") + second]
    return [figure.removeprefix("+") for figure in both if figure]


def blocks(benchmark):
    """The lines of each entry's table, in the entries' order, which is that of the text."""
    starts, found, inside = [entry["start"] for entry in CASES[benchmark]["tables"]], [], False
    for line in paper(benchmark).splitlines():
        if len(found) < len(starts) and line.startswith(starts[len(found)]):
            found.append([])
            inside = True
        inside = inside and ("\t" in line or line.startswith("|"))
        if inside:
            found[-1].append(line)
    return found


def tables(benchmark):
    """The stored tables by their number, or by their name beside them."""
    board = stored(benchmark)
    return {**{int(one["number"]): one for one in board["tables"]}, **board.get("beside", {})}


def columns(entry):
    return [name for part in entry["columns"] for name in part]


def printed(benchmark, place):
    """Every row of an entry's table: (group, name, attributes, figures)."""
    entry = CASES[benchmark]["tables"][place]
    attributes = tables(benchmark)[entry["number"]].get("attributes", [])
    groups, title, made = entry.get("groups", {}), "", []
    for line in blocks(benchmark)[place]:
        fields = cells(line)
        # Attributes (a size, an architecture) stand before the figures and may be dashes.
        front = 1 + len(attributes) if "\t" in line else 0
        found = [f for cell in fields[front:] for f in figures(cell, entry.get("width", 1))]
        labels = [field for field in fields if field and not figures(field)]
        if len(found) != len(columns(entry)):
            title = labels[0] if labels else title
            continue
        titled = fields[0] if entry.get("grouped") else len(labels) == 2 and not attributes
        title = labels[0] if titled else title
        name = labels[0] if attributes else labels[-1]
        known = groups if isinstance(groups, dict) else {title: groups[len(made)]}
        own = title if title in stored(benchmark)["groups"] else ""
        group = known.get(name, known.get(title, own))
        given = (fields[1:front] or labels[1:]) if attributes else []
        given = [{"✓": "yes", "–": None, "": None}.get(one, one) for one in given]
        made.append((group, name.split(": ")[0], given, found))
    return made


@pytest.mark.parametrize(("benchmark", "place"), ENTRIES)
def test_every_cell_equals_the_paper(benchmark, place):
    entry, found = CASES[benchmark]["tables"][place], []
    table = tables(benchmark)[entry["number"]]
    for row, raw in zip(printed_rows(stored(benchmark), table), table["rows"], strict=True):
        values = [row.figures[name] for name in columns(entry)]
        as_text = [None if value is None else str(value) for value in values]
        assert len(raw.get("attributes", [])) == len(table.get("attributes", []))
        found.append((row.group, row.name, raw.get("attributes", []), as_text))
    assert found == printed(benchmark, place)
    lines = ["\t".join(filter(None, cells(line))) for line in blocks(benchmark)[place]]
    for part in entry["columns"]:
        header = "\t".join(filter(None, part.values()))
        assert any(header in line for line in lines), header


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_nothing_that_is_stored_is_left_out_of_the_cases(benchmark):
    board, case, looked_up = stored(benchmark), CASES[benchmark], {}
    for entry in case["tables"]:
        looked_up[entry["number"]] = [*looked_up.get(entry["number"], []), *columns(entry)]
    for table in board["tables"]:
        assert table["columns"] == looked_up.get(table["number"], [])
    assert set(board.get("stated", ())) - IN_PROMPTS == set(case["stated"])
    assert set(board.get("named", ())) - IN_PROMPTS == set(case["named"])


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_page_shows_every_stored_cell(benchmark):
    text = (ROOT / "leaderboards" / f"{benchmark}.md").read_text(encoding="utf-8")
    board = stored(benchmark)
    for number, table in tables(benchmark).items():
        part = text[text.index(f"**{table.get('label') or f'Table {number}'}.**") :]
        part = part[part.index("\n|") + 1 :].split("\n\n")[0]
        titles, _, *shown = [cells(line) for line in part.splitlines()]
        front = len(titles) - len(table["columns"])
        assert titles[front:] == [board["columns"][name]["title"] for name in table["columns"]]
        for row, raw, fields in zip(printed_rows(board, table), table["rows"], shown, strict=True):
            values = [None if value is None else str(value) for value in row.figures.values()]
            assert [one for cell in fields[front:] for one in figures(cell)] == values
            assert {row.name, row.identity} & set(fields[:front])
            known = {row.name, row.identity, board["groups"][row.group], ""}
            known |= {board["sources"][raw["source"]]["kind"]} if "source" in raw else set()
            assert set(fields[:front]) <= {*known, *raw.get("attributes", [])}
            # Kind, place and conditions of a row that others publish.
            told = source(board, table, raw) or {}
            assert [one for one in told.values() if one not in text] == []


def test_rows_of_others_have_a_kind_and_are_in_no_headline():
    board = stored("cvrr_es")
    elsewhere = board["beside"]["elsewhere"]
    found = {
        row["name"]: (source(board, elsewhere, row)["kind"], str(row["cells"][0]))
        for row in elsewhere["rows"]
    }
    assert found == {
        "DIVE": ("challenge", "81.44"),
        "CoPE-VideoLM-7B": ("paper", "49.1"),
        "LLaVA-Video-7B": ("paper", "43.6"),
        "LLaVA-OV-7B": ("paper", "42.6"),
        "TimeChat": ("paper", "35.9"),
    }
    # The release's rows, with its own TimeChat, stand beside a run's number.
    papers = headline("cvrr_es").papers
    assert len(papers) == 11
    assert papers["TimeChat", "TimeChat"] == pytest.approx(0.3289)
    assert papers["GPT4o", "GPT-4o"] == max(papers.values())


def test_the_card_has_table_5_by_model():
    """Table 5's rows of models are the means of the card's, to rounding."""
    board = stored("movierecapsqa")
    card, table = board["beside"]["card"], tables("movierecapsqa")[5]
    open_models = {"Qwen2.5-VL", "MiniCPM-o", "LLaVA-NeXT-Video"}
    for row in table["rows"]:
        score, _, group = row["group"].partition("_")
        if group == "human" or not row["name"].endswith("Models"):
            continue
        own = [
            one["cells"][1:]
            for one in card["rows"]
            if one["group"] == score and "Human" not in one["name"]
            if (one["name"] in open_models) == (group == "open")
        ]
        assert len(own) == (3 if group == "open" else 4)
        for printed_mean, column in zip(row["cells"], zip(*own, strict=True), strict=True):
            assert abs(printed_mean - sum(column) / len(column)) <= 0.01, row["group"]


# --- text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_what_is_stored_of_the_text_stands_in_it(benchmark):
    case, board = CASES[benchmark], stored(benchmark)
    text, cut = paper(benchmark), case.get("cut", ["$^", ""])
    both = (text, re.sub(*cut, text, flags=re.S))  # as it is; without a table inside a sentence
    text = "\n".join(re.sub("[ \n]+", " ", one) for one in both).replace("\\pm", "±")
    for key, pattern in case["stated"].items():
        (found,) = {match.replace(",", "") for match in re.findall(pattern, text)}
        found = found.replace("double", "two")
        value = str(NUMERALS.index(found)) if found in NUMERALS else found
        assert (key, str(board["stated"][key]["value"])) == (key, value)
    for key, (before, after) in case["named"].items():
        start = text.index(before)
        passage = text[start : text.index(after, start + len(before))]
        passage = passage.replace("Factualty", "Factuality").replace("fact-based ", "")
        assert [name for name in board["named"][key]["names"] if name not in passage] == [], key
        assert not any(name in passage for name in case.get("absent", {}).get(key, ()))
    assert [part for part in case["says"] if part not in text] == []
