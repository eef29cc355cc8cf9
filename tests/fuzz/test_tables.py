"""Hostile texts in tables: each form has the shape that it has with harmless ones, and the text."""

from __future__ import annotations

import csv
import io
import json

import pytest
from rich.console import Console

from lmms_eval_tasks import notify
from lmms_eval_tasks.report.exchange import frames
from lmms_eval_tasks.tables import escaping, terminal_tables
from tests.fuzz.hostile import TEXTS

ROW = {"benchmark": "maia", "task": "maia_vsv", "metric": "acc", "value": -0.5, "low": None}
ROW |= {"valid": True, "judge": "", "limit": "", "conditions": []}
ROW |= {"high": None, "n": 3, "videos": 2}
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rows(text):
    """As sides name them."""
    return [{**ROW, "run": "harmless"}, {**ROW, "run": notify.visible(text)}]


@pytest.mark.parametrize("text", TEXTS)
def test_every_form(text):
    shown = notify.visible(text)
    made = list(csv.DictReader(io.StringIO(frames.as_csv(rows(text)), newline="")))
    assert [one["value"] for one in made] == ["-0.5", "-0.5"]
    assert made[1]["run"] in (shown, f"'{shown}")
    assert not made[1]["run"].startswith(FORMULA)
    assert [one["run"] for one in json.loads(frames.as_json(rows(text)))] == ["harmless", shown]
    shape = [line.count("|") for line in frames.as_markdown(rows("other")).splitlines()]
    lines = frames.as_markdown(rows(text)).splitlines()
    assert [line.replace("\\\\", "").replace("\\|", "").count("|") for line in lines] == shape
    assert not any(one in lines[0].replace(f"\\{one}", "") for one in "<`*[")
    tex, plain = frames.as_latex(rows(text)), frames.as_latex(rows("other"))
    head, usual = (one.splitlines()[4] for one in (tex, plain))
    for sign in "&%$#{}":
        free = head.replace(f"\\{sign}", "").replace("{}", "")
        assert free.count(sign) == usual.count(sign), head
    assert "\\input" not in tex


@pytest.mark.parametrize("text", TEXTS)
def test_on_a_terminal(text):
    """Neither its codes nor rich's markup do anything; the text is all there."""
    out = io.StringIO()
    screen = Console(file=out, width=400, force_terminal=True, color_system=None)
    terminal_tables.show(screen, [*frames.run_tables(rows(text)), text])
    told = out.getvalue()
    assert not set(told) & {"\0", "\x07", "\x9b", "\u202e", "\ud83d"}
    assert "\x1b[2J" not in told
    assert "\x1b]8" not in told
    # Long names fold in their column: what is left of the line below the tables is whole.
    assert told.replace("\r", "").endswith(f"{notify.visible(text).expandtabs()}\n")


def test_lines_for_the_user(capsys):
    notify.notify("\x1b[2Jm\ud83d")
    assert capsys.readouterr().err == "lmms-eval-tasks: \\x1b[2Jm\\ud83d\n"


def test_numbers_and_dashes_are_no_formulas():
    frame = escaping.frame([{"a": -1.5, "b": "-", "c": " =1", "d": None}])
    assert frame.to_dict("records") == [{"a": -1.5, "b": "-", "c": "' =1", "d": None}]
