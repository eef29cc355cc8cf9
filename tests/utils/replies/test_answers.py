"""Choice letters and reply status against the table of cases, and properties of any text."""

from __future__ import annotations

import importlib.util
import json
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils.replies import answers, forms, reasoning, reply_text
from tests.checks import refused, table

FOLDER = Path(__file__).parents[2] / "cases"
CASES: list[dict[str, Any]] = json.loads(
    (FOLDER / "choice_letters.json").read_text(encoding="utf-8")
)
TEXTS = json.loads((FOLDER / "reply_status.json").read_text(encoding="utf-8"))
OPTIONS = ["L'uomo corre nel parco", "La donna legge un libro"]
EIGHT = ["Red car", "Blue car", "A dog", "A cat", "Piano", "Guitar", "Rain", "Wind"]


def options_of(case: dict[str, Any]) -> list[str]:
    return case.get("options") or [f"testo {i + 1}" for i in range(case["n_options"])]


def read(case: dict[str, Any]) -> answers.LetterChoice:
    return answers.read_choice(case["text"], options_of(case))


def wanted(case: dict[str, Any]) -> answers.LetterChoice:
    return answers.LetterChoice(case["letter"], case["status"], case["rule"])


@table("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    assert read(case) == wanted(case)
    assert (case["letter"] is None) == (case["rule"] is None) == (case["status"] != "ok")


@table("n_options", range(1, 27))
def test_letters_reach_as_far_as_the_options(n_options: int) -> None:
    options = [f"testo {i}" for i in range(n_options)]
    for i, letter in enumerate(string.ascii_uppercase):
        for reply in (letter, f"({letter})", f"Risposta: {letter}", letter.lower()):
            assert answers.read_choice(reply, options).letter == (letter if i < n_options else None)
    for wrong in (0, 27):
        refused(ValueError, "1 to 26", answers.read_choice, "A", ["x"] * wrong)


def test_a_letter_alone_is_read_as_all_rules_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way for most replies: equal to the long one, or not taken."""
    texts = [
        "La A vince",
        "Vitamina B",
        "B è giusta",
        "Nessuna delle due",
        "both",
        "true",
        "Plan A",
    ]
    texts += [
        "A. Rossi",
        "option B",
        "I cannot tell from the video",
        "Yes, it is.",
        "vero",
        "C dur",
    ]
    pairs = [OPTIONS, EIGHT, *([a, b] for a in texts for b in texts if a != b)]
    replies = [
        f"{space}{letter}{dot}" for letter in "ABCH" for dot in ("", ".") for space in ("", " \n")
    ]
    short = {(r, *own): answers.read_choice(r, own) for own in pairs for r in replies}
    monkeypatch.setattr(answers, "_letter_alone", lambda *_: "")
    for (reply, *own), choice in short.items():
        assert answers.read_choice(reply, own) == choice, (reply, own)


SIGNS = [
    *"ABCHaeE()[]{}.,:;?!/-\n*`_'’\"“»\u200b\u0301Ａé",
    *["**", "\\boxed{", "\\text{", "<think>", "</think>", "<answer>", "</answer>", "[THINK]"],
]
WORDS = (
    "answer risposta opzione option is è e' not non the la or o and che sia if se because perché "
    "correct falsa I'm can't video"
)
PIECES = st.sampled_from([*SIGNS, *WORDS.split()])
REPLIES = st.one_of(
    st.text(max_size=80),
    st.lists(PIECES, max_size=25).map(" ".join),
    st.lists(PIECES, max_size=12).map("".join),
)
STATUSES = {"ok", "unparsed", "empty", "truncated", "refused", "model_error"}


@settings(max_examples=400)
@given(text=REPLIES, options=st.lists(st.text(max_size=12), min_size=1, max_size=8))
def test_any_text_gives_a_letter_in_range_or_none(text: str, options: list[str]) -> None:
    choice = answers.read_choice(text, options)
    assert choice.status in STATUSES
    if choice.status == "ok":
        assert choice.letter in string.ascii_uppercase[: len(options)]
        assert choice.rule in (*forms.RANKS, "text")
    else:
        assert choice.letter is None
        assert choice.rule is None
    blanks = " \t\n\u00a0\u2003\u200b\ufeff"  # around a reply they change nothing
    assert answers.read_choice(f"{blanks}{text}{blanks}", options) == choice
    # What no rule is asked about is the same for a letter and for free text.
    status = reply_text.reply_status(text)
    assert status in STATUSES - {"unparsed"}
    if status in ("empty", "truncated", "model_error"):
        assert choice.status == status


SLOW = [
    "a", "A ", " ", "\n", "\n ", "(", '"', "'", "*", "_", "a_", "`", "```", "<", "<|", "[", "...",
    "answer ", "answer:", "answer: A ", "answer: A o ", "the answer is ", "la risposta è la ",
    "if the answer is A ", "A is correct? ", "A is correct and ", "A) x\n", "\n- ", "no, ",
    "because ", "\\boxed{", "<think>", "</think>", "<think> </think>", "I'm sorry, ",
    "i can't watch or ", "\u0301\u0316", "[LMMS_EVAL_", "Video ", "A) x or B, no, ",
    "<|channel|>", "<|channel|>analysis<|message|>", "analysisA", "non è A, ", "la corretta ",
    "B. ", "A. Falso ", "team B ", "ASSISTANT: ", "- C\n",
]  # fmt: skip


@table("piece", SLOW)
def test_long_replies(piece: str) -> None:
    """30,000 characters, at which quadratic matching takes minutes."""
    text = (piece * 30_000)[:30_000]
    assert answers.read_choice(text, OPTIONS).status in STATUSES
    assert reply_text.reply_status(text) in STATUSES


@table("text, kept, unclosed")
def test_strip_reasoning(text: str, kept: str, unclosed: bool) -> None:
    assert reasoning.strip_reasoning(text) == (kept, unclosed)


TOO_LONG = "I'm sorry, but I can't assist with that. " * 20  # to be only that


@table(
    "text, free, choice",
    [
        *[(text, "refused", "refused") for text in TEXTS["refused"]],
        # A choice that picks nothing must not pay (docs/metrics.md): `refused` counts in `_valid`.
        *[(text, "ok", "refused") for text in TEXTS["declines_the_choice"]],
        # What the video does not show is an answer.
        *[(text, "ok", "unparsed") for text in (*TEXTS["answers"], TOO_LONG)],
        # The texts as lmms-eval 0.7.3 writes them, with an answer's words inside.
        *[(text, "model_error", "model_error") for text in TEXTS["host_failures"]],
    ],
)
def test_status_of_free_text_and_of_a_choice(text: str, free: str, choice: str) -> None:
    assert reply_text.reply_status(text) == free
    for options in (OPTIONS, EIGHT if choice == "refused" else OPTIONS):
        assert answers.read_choice(text, options) == answers.LetterChoice(None, choice, None)


def test_where_an_option_says_that_nothing_can_be_known_a_reply_may_mean_it() -> None:
    options = ["Guida Anna", "Non è possibile stabilire chi guida"]
    assert answers.read_choice(options[1], options).letter == "B"
    assert answers.read_choice("Non è possibile stabilirlo dal video", options).status == "unparsed"
    options = ["Anna", "It cannot be known"]
    assert answers.read_choice("I cannot tell from the video", options).status == "unparsed"


def test_the_hosts_markers_are_the_ones_known_here() -> None:
    """Every marker in the installed host's models is one that `reply_status` knows."""
    spec = importlib.util.find_spec("lmms_eval")
    assert spec is not None
    assert spec.submodule_search_locations
    models = Path(spec.submodule_search_locations[0]) / "models"
    marker = re.compile(r'f?"(\[LMMS_EVAL_[^"]*|Video \{video_path\} [^"]*check the source)"')
    found = {
        text
        for file in (*models.glob("simple/*.py"), *models.glob("chat/*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if "eval_logger" not in line
        for text in marker.findall(line)
    }
    assert len(found) >= 4
    assert {reply_text.reply_status(text) for text in found} == {"model_error"}
    assert reply_text.reply_status("The sign says [LMMS_EVAL_BUDGET_EXCEEDED]") == "ok"
