"""The printed tables: every number is there, none is cut off, none stands under a wrong name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.movierecapsqa import tables
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from tests import checks
from tests.checks import lines_of as of

Numbers = Mapping[str, Mapping[str, Any]]
BOTH = "movierecapsqa_segment"
FRAMES, DIALOGUE = f"{BOTH}_frames", f"{BOTH}_dialogue"


def printed(rows: Sequence[tuple[str, Numbers]]) -> dict[str, list[str]]:
    made = tables.tables(rows)
    assert len({str(one.title) for one in made}) == len(made)
    return checks.printed(made)


def cells(lines: Sequence[str], *names: str) -> list[str]:
    """The numbers of the one row with these names, which stand in one line each."""
    start = re.compile(r"\s*" + r"\s+".join(map(re.escape, names)) + r"\s{2,}(.*)")
    (match,) = filter(None, (start.fullmatch(line) for line in lines))
    return [cell for cell in re.split(r"\s{2,}", match[1]) if cell]


def heads(lines: Sequence[str]) -> list[str]:
    (line,) = (line for line in lines if line.split()[:3] == ["model", "source", "input"])
    return re.split(r"\s{2,}", line.strip())[3:]


SEGMENT = "aligned recap segment"
# Table 5's rows of proprietary models: factuality of the question types and of two categories.
PROPRIETARY = {
    BOTH: {"dialogue": 3.63, "vision": 3.15, "multimodal": 3.46, "sta": 2.98, "th": 3.38},
    FRAMES: {"dialogue": 3.15, "vision": 3.06, "multimodal": 3.21, "sta": 2.79, "th": 3.00},
    DIALOGUE: {"dialogue": 4.12, "vision": 3.88, "multimodal": 4.16, "sta": 3.61, "th": 3.97},
}


def test_table_5_as_in_the_paper() -> None:
    numbers: dict[str, dict[str, float]] = {}
    for task, values in PROPRIETARY.items():
        numbers[task] = {"factuality_valid": 3.5}
        for slug, value in values.items():
            split = "category" if slug in ("sta", "th") else "modality"
            numbers[task][f"factuality_valid_{split}_{slug}"] = value
    lines = of(printed([("P", numbers)]), "factuality, 0 to 5, by question type")
    assert heads(lines) == ["all", "Dialogue", "Vision", "Multim.", "STA", "TH"]
    both = ["3.50", "3.63", "3.15", "3.46", "2.98", "3.38"]
    assert cells(lines, "P", SEGMENT, "both") == both
    found = cells(lines, "P", SEGMENT, "only frames")
    assert found == ["0.00", "-0.48", "-0.09", "-0.25", "-0.19", "-0.38"]
    found = cells(lines, "P", SEGMENT, "only dialogue")
    assert found == ["0.00", "+0.49", "+0.73", "+0.70", "+0.63", "+0.59"]
    # A label that both lacks is a dash.
    del numbers[BOTH]["factuality_valid_category_th"]
    lines = of(printed([("P", numbers)]), "factuality")
    assert cells(lines, "P", SEGMENT, "only frames")[-1] == "-"


def relevance(**values: float) -> dict[str, dict[str, float]]:
    return {f"movierecapsqa_{name}": {"relevance_valid": one} for name, one in values.items()}


def test_differences_are_to_the_same_source_and_model() -> None:
    first = relevance(segment=3.0, segment_frames=2.0)
    second = relevance(segment=1.0, segment_frames=4.0, movie=0.5, movie_frames=0.25)
    third = relevance(segment_frames=2.0, movie=3.0, movie_frames=2.9999)
    shown = printed([("one", first), ("two", second), ("three", third)])
    assert len([title for title in shown if "Table 5" in title]) == 1
    lines = of(shown, "relevance")
    assert cells(lines, "one", SEGMENT, "only frames") == ["-1.00"]
    assert cells(lines, "two", SEGMENT, "only frames") == ["+3.00"]
    assert cells(lines, "two", "full movie", "both") == ["0.50"]
    assert cells(lines, "two", "full movie", "only frames") == ["-0.25"]
    assert cells(lines, "three", SEGMENT, "only frames") == ["2.00"]  # without both: itself
    assert cells(lines, "three", "full movie", "only frames") == ["0.00"]  # no sign before zero


def test_an_invalid_run_is_marked_and_nothing_is_compared_with_it() -> None:
    numbers = {f"{BOTH} INVALID": {"relevance_valid": 1.0}, FRAMES: {"relevance_valid": 2.5}}
    for label, title in (
        ("", ("this run", "INVALID")),
        ("m [bold]x[/]", ("m [bold]x[/] INVALID",)),
    ):
        lines = of(printed([(label, numbers)]), "relevance")
        assert cells(lines, *title, SEGMENT, "both") == ["1.00"]
        assert cells(lines, label or "this run", SEGMENT, "only frames") == ["2.50"]
    other = {BOTH: {"relevance_valid": 1.0}, f"{FRAMES} INVALID": {"relevance_valid": 2.5}}
    lines = of(printed([("m", other)]), "relevance")
    assert cells(lines, "m INVALID", SEGMENT, "only frames") == ["2.50"]


def test_no_table_of_others_or_without_numbers() -> None:
    for name in ("movierecapsqa", "movierecapsqa_segmented", "xmovierecapsqa_segment", "maverix_v"):
        assert tables.tables([("m", {name: {"rouge_l": 0.5, "relevance_valid": 3.0}})]) == []
    assert tables.tables([("m", {BOTH: {"relevance_valid": None, "rouge_l": math.nan}})]) == []
    # Counts of missing verdicts alone make no table of the judge's scores.
    values: dict[str, float] = {"rouge_l": 0.5, "rouge_l_var": 0.25, "no_claims": 0}
    values |= {f"{name}_failed": 0 for name in DIMENSIONS}
    (title,) = printed([("", {BOTH: values})])
    assert "Table 4" in title


def test_conditions_that_were_not_asked_the_same_questions() -> None:
    a, b, c = ({"id": name} for name in "abc")
    asked = {BOTH: [a, b], FRAMES: [b, a], "movierecapsqa_movie": [c]}
    assert tables.unlike(asked) == tables.unlike({}) == []
    # As many, and others: that is unlike too.
    (note,) = tables.unlike({**asked, DIALOGUE: [a, c]})
    assert note.startswith("aligned recap segment: ")
    assert "(both 2, only frames 2, only dialogue 2)" in note


# --- groups of models ---------------------------------------------------------------------------

QWEN = "qwen2_5_vl (pretrained=Qwen/Qwen2.5-VL-7B-Instruct,max_num_frames=32)"
LLAVA = "llava_vid (pretrained=lmms-lab/LLaVA-Video-7B-Qwen2)"
GPT = "openai (model_version=gpt-4o-2024-11-20)"


def test_groups_of_models_by_their_names() -> None:
    served = "openai (model_version=Qwen/Qwen2.5-VL-72B,base_url=http://gpu)"
    gemini = "gemini_api (model_version=gemini-2.5-flash)"
    others = ["my_variant (pretrained=x)", "tasks_oracle"]
    found = tables.grouped([QWEN, GPT, LLAVA, served, *others, gemini, GPT])
    assert found == {"open-source": [QWEN, LLAVA, served], "proprietary": [GPT, gemini]}
    assert tables.grouped([QWEN, GPT]) == {}  # one model is no group
    groups, papers = leaderboards.stored("movierecapsqa")["groups"], {}
    for row in leaderboards.table("movierecapsqa", 4):
        if row.identity:
            papers.setdefault(groups[row.group], []).append(row.identity)
    assert tables.grouped(name for models in papers.values() for name in models) == papers
    one = {"factuality_valid": 3.0, "factuality_var": 1.0, "relevance_valid": 4.0}
    two = {"factuality_valid": 4.0, "factuality_var": 2.0, "relevance_valid": None}
    assert tables.mean_of([one, two]) == {"factuality_valid": 3.5, "relevance_valid": None}


def test_rows_of_groups_and_their_differences() -> None:
    def numbers(both: float, frames: float) -> dict[str, dict[str, float]]:
        return {BOTH: {"factuality_valid": both}, FRAMES: {"factuality_valid": frames}}

    rows = [(QWEN, numbers(3.0, 2.0)), (LLAVA, numbers(4.0, 2.5)), (GPT, numbers(5.0, 1.0))]
    text = " ".join(" ".join(of(printed(rows), "factuality, 0 to 5")).split())
    assert "mean of 2 open-source models" in text.replace("open- source", "open-source")
    assert "proprietary" not in text
    assert "3.50" in text
    assert "-1.25" in text
