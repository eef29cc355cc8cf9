"""The printed tables: every number under its own name, none twice in a table, none cut off."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from lmms_eval_tasks.console import UNSEEN
from lmms_eval_tasks.haven import tables

Numbers = Mapping[str, Mapping[str, Any]]


def printed(rows: Sequence[tuple[str, Numbers]]) -> dict[str, list[str]]:
    """Lines of each table by its title, at the width of the user's console."""
    shown: dict[str, list[str]] = {}
    for table in tables.tables(rows):
        sink = io.StringIO()
        Console(file=sink, width=UNSEEN).print(table)
        lines = [line.rstrip() for line in sink.getvalue().splitlines()]
        assert "\u2026" not in sink.getvalue()  # rich's ellipsis: a cell did not fit
        assert all(len(line) <= UNSEEN for line in lines)
        assert lines[0] == str(table.title)
        for note in str(table.caption or "").splitlines():
            assert note in lines
        assert str(table.title) not in shown
        shown[str(table.title)] = lines
    return shown


def of(shown: Mapping[str, list[str]], part: str) -> list[str]:
    (lines,) = (lines for title, lines in shown.items() if part in title)
    return lines


def cells(lines: Sequence[str], *names: str) -> list[str]:
    """The cells of the one row with these names, which stand in one line each."""
    start = re.compile(r"\s*" + r"\s+".join(map(re.escape, names)) + r"\s{2,}(.*)")
    (match,) = filter(None, (start.fullmatch(line) for line in lines))
    return match[1].split()


RHO = {"spearman": 0.21, "spearman_sources": 0.22, "kendall": 0.11, "kendall_sources": 0.12}
MODEL: dict[str, dict[str, float]] = {
    "haven_v2t": {
        **{"bertscore": 0.86, "bertscore_sources": 0.85, "rouge": 0.31, "rouge_sources": 0.32},
        **{"geval_samples_valid": 3.25, "geval_samples_valid_sources": 3.5, "rouge_valid": 0.35},
        **{"failed": 2, "violations": 3, "rouge_tvsum": 0.29, "rouge_summe": 0.33},
    },
    "haven_v2v": {
        **{"f1": 0.4, "f1_sources": 0.41, "precision": 0.42, "recall": 0.43, "f1_valid": 0.5},
        **{"f1_random": 0.15, "f1_uniform": 0.16, "f1_first": 0.17, "f1_all": 0.26},
        **{"f1_best": 0.98, "videos": 50, "failed": 1, "violations": 0},
    },
    "haven_v2vt": {
        **{"f1": 0.44, "clipscore": 0.8, "rouge": 0.36, "geval_samples_valid": 3.0},
        **{"precision": 0.45, "recall": 0.46, "bertscore": 0.87, "failed": 9},
        **{"summary_failed": 4, "frames_failed": 5},
    },
    "haven_temporal": RHO,
    "haven_temporal_doc": {"spearman": 0.31, "kendall": 0.13},
    "haven_grounding": {
        **{"f1": 0.6, "iou": 0.5, "hit1": 0.7, "clips_predicted": 2.25, "hit1_all": 1.0}
    },
    "haven_saliency": {"spearman": -0.02, "kendall": -0.01, "undefined": 6, "spearman_best": 0.95},
    "haven": {
        **{"joined_clip_gain": -0.013, "joined_clip_videos": 9, "joined_saliency": 0.6},
        **{"joined_saliency_chance": 0.5, "joined_saliency_videos": 40, "joined_grounding": 0.4},
        **{"joined_grounding_chance": 0.55, "joined_grounding_videos": 39},
    },
}


# Part of a table's title -> names of a row, its place in the row's cells, and the cells from there.
EXPECTED: list[tuple[str, tuple[str, ...], int, str]] = [
    ("Table 3", ("M", "videos"), 0, "0.860 0.400 0.870 0.440 0.210 0.110 0.310 0.130"),
    ("Table 3", ("M", "videos"), 8, "0.600 -0.020 -0.010 - -"),
    ("Table 3", ("M", "sources"), 0, "0.850 0.410 - - 0.220 0.120"),
    ("Table 4", ("M", "videos"), 0, "- 3.250 0.310 0.420 0.430"),
    ("Table 4", ("M", "videos"), 6, "3.000 0.360 0.450 0.460 0.800 -0.013"),
    ("Table 4", ("M", "sources"), 0, "- 3.500 0.320"),
    ("Table 4", ("N", "videos"), 0, "2.500 -"),
    # One column for each way of rating that any run has.
    ("worth", ("M", "v2v", "f1"), 0, "50 0.400 0.500 0.150 - 0.160 0.170 0.260 0.980 1 0 - -"),
    ("worth", ("M", "saliency", "spearman"), 8, "0.950 - - 6 -"),
    ("worth", ("M", "grounding", "f1"), -1, "2.2"),  # half to even, as Python's
    ("worth", ("M", "grounding", "hit1"), -6, "1.000 -"),
    ("worth", ("M", "v2t", "rouge"), -4, "2 3 - -"),
    ("worth", ("M", "v2vt", "clipscore"), 1, "0.800 - 0.700 - 0.750 0.650 - -"),
    # Each part of a joint reply has its own failures.
    *(("worth", ("M", "v2vt", m), 9, n) for m, n in (("rouge", "4"), ("f1", "5"))),
    ("by source", ("M", "v2t", "rouge"), 0, "0.330 0.290"),
    ("keyframes agree", ("M",), 0, "0.600 0.500 +0.100 40 0.400 0.550 -0.150 39"),
]


def test_every_table() -> None:
    baselines = {"clipscore_random": 0.7, "clipscore_uniform": 0.75, "clipscore_first": 0.65}
    joint = {**MODEL["haven_v2vt"], **baselines}
    other = {
        "haven_v2t": {"geval_logprobs_valid": 2.5},
        **{"haven_v2v": {"f1": 0.3}, "haven_saliency": {"failed": 0}},
    }
    shown = printed([("M", {**MODEL, "haven_v2vt": joint}), ("N", other)])
    for part, names, place, told in EXPECTED:
        found = cells(of(shown, part), *names)[place:]
        assert found[: len(told.split())] == told.split(), (part, names)
    # A task that was not run: dashes, and no row of what its numbers are worth.
    assert cells(of(shown, "Table 3"), "N", "videos")[-4:] == ["-"] * 4
    assert not any("saliency" in line and " N " in line for line in of(shown, "worth"))
    heads = " ".join(of(shown, "Table 3")[:4]).split()
    names = ("temp.", "temp.+doc", "sal.", "sal.+doc")
    assert [heads.count(name) for name in names] == [2, 2, 2, 2]
    (head,) = (line for line in of(shown, "by source") if line.split()[:2] == ["model", "task"])
    assert head.split() == ["model", "task", "metric", "SumMe", "TVSum"]
    # A single way of rating is a single column.
    alone = of(printed([("M", MODEL)]), "Table 4")
    assert cells(alone, "M", "videos")[:2] == ["3.250", "0.310"]


def test_models_and_text_proxies() -> None:
    """Models that were rescored together have their names behind the task's."""
    numbers = {
        "haven_v2v one (a=b)": {"f1": 0.4},
        "haven_v2vt one (a=b)": {"clipscore": 0.8},
        "haven one (a=b)": {"joined_clip_gain": 0.1},
        "haven_v2v two [c]": {"f1": 0.3},
        "haven_v2v_text two [c]": {"f1": 0.7},
        "haven_text two [c]": {"joined_saliency": 0.1},
    }
    shown = printed([("", numbers)])
    for name, f1 in (("one (a=b)", 0.4), ("two [c]", 0.3), ("two [c] (text proxy)", 0.7)):
        assert cells(of(shown, "Table 3"), name, "videos")[1] == f"{f1:.3f}"
    assert cells(of(shown, "Table 4"), "one (a=b)", "videos")[-1] == "+0.100"
    assert cells(of(shown, "keyframes agree"), "two [c] (text proxy)")[0] == "0.100"
    invalid = {"haven_v2t INVALID": {"rouge": 0.1}, "haven_v2v": {"f1": 0.2}}
    for label, name in (("", "this run"), ("m", "m")):
        lines = of(printed([(label, invalid)]), "worth")
        assert cells(lines, f"{name} INVALID", "v2t", "rouge")[1] == "0.100"
        assert cells(lines, name, "v2v", "f1")[1] == "0.200"
    nothing: list[Numbers] = [{}, {"haven_v2t": {"rouge": None}}, {"haven_v2tx": {"rouge": 0.5}}]
    nothing += [{"maia_vsv": {"f1": 0.5}}, {"haven": {"joined_clip_gain": float("nan")}}]
    assert [tables.tables([("m", numbers)]) for numbers in nothing] == [[]] * 5
