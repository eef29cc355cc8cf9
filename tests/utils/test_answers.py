"""Choice letters and reply status against the table of cases, and properties of any text."""

from __future__ import annotations

import json
import string
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils import answer_patterns as patterns
from lmms_eval_tasks.utils import answers

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "choice_letters.json").read_text(encoding="utf-8")
)
OPTIONS = ["L'uomo corre nel parco", "La donna legge un libro"]
EIGHT = ["Red car", "Blue car", "A dog", "A cat", "Piano", "Guitar", "Rain", "Wind"]


def options_of(case: dict[str, Any]) -> list[str]:
    return case.get("options") or [f"testo {i + 1}" for i in range(case["n_options"])]


def read(case: dict[str, Any]) -> answers.Choice:
    return answers.read_choice(case["text"], options_of(case))


def wanted(case: dict[str, Any]) -> answers.Choice:
    return answers.Choice(case["letter"], case["status"], case["rule"])


def failing(cases: list[dict[str, Any]] = CASES) -> list[str]:
    return [case["id"] for case in cases if read(case) != wanted(case)]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    assert read(case) == wanted(case)


def test_the_table_is_as_large_as_required() -> None:
    covered = Counter(rule for case in CASES for rule in case["covers"])
    statuses = Counter(case["status"] for case in CASES)
    read_by = Counter(case["rule"] for case in CASES)
    assert len(CASES) >= 150
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert len({(case["text"], *options_of(case)) for case in CASES}) == len(CASES)
    assert all(covered[rule] >= 10 for rule in (1, 2, 3, 4, 5))
    assert all(read_by[rule] >= 10 for rule in (2, 3, 4))
    assert statuses["unparsed"] >= 40


def test_the_table_contradicts_itself_nowhere() -> None:
    for case in CASES:
        assert (case["letter"] is None) == (case["rule"] is None) == (case["status"] != "ok")
        assert case["rule"] is None or case["rule"] in case["covers"], case["id"]


# What removing a rule or a guard means: the name in `answers`, what stands in its place, and a
# case (of the many) that has to notice.
def _keep_all(text: str) -> tuple[str, bool]:
    return text, False


def _no(*_: object) -> bool:
    return False


def _yes(*_: object) -> bool:
    return True


REMOVED = {
    "rule 1, reasoning": ("strip_reasoning", _keep_all, "reasoning-02"),
    "rule 5, the last counts": ("_counted", lambda found: found[0], "several-01"),
    "rule 5, two letters": ("_names_two", _no, "several-12"),
    "article guard": ("_is_word", _no, "none-01"),
    "negation guard": ("_is_negated", _no, "none-44"),
    "range check": ("_in_range", _yes, "none-47"),
    "contradiction guard": ("_contradicts", _no, "none-52"),
    "refusals": ("is_refusal", _no, "status-09"),
    "abstentions": ("abstentions", SimpleNamespace(declines=_no), "none-59"),
}


@pytest.mark.parametrize("rule", [2, 3, 4])
def test_without_a_reading_rule_cases_fail(rule: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not failing()
    monkeypatch.setattr(answers, "RULES", tuple(r for r in answers.RULES if r[0] != rule))
    lost = set(failing())
    assert lost
    assert {case["id"] for case in CASES if case["rule"] == rule} <= lost


@pytest.mark.parametrize("name", REMOVED)
def test_without_a_rule_or_guard_cases_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, replacement, witness = REMOVED[name]
    assert not failing()
    monkeypatch.setattr(answers, attribute, replacement)
    assert witness in failing()


@pytest.mark.parametrize("pattern", range(len(patterns.STATEMENTS)))
def test_without_a_form_of_statement_cases_fail(
    pattern: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tuple(p for i, p in enumerate(patterns.STATEMENTS) if i != pattern)
    monkeypatch.setattr(patterns, "STATEMENTS", kept)
    assert failing()


@pytest.mark.parametrize("n_options", range(1, 27))
def test_letters_reach_as_far_as_the_options(n_options: int) -> None:
    options = [f"testo {i}" for i in range(n_options)]
    for i, letter in enumerate(string.ascii_uppercase):
        for reply in (letter, f"({letter})", f"Risposta: {letter}", letter.lower()):
            assert answers.read_choice(reply, options).letter == (letter if i < n_options else None)


@pytest.mark.parametrize("n_options", [0, 27])
def test_options_without_letters_are_an_error(n_options: int) -> None:
    with pytest.raises(ValueError, match="1 to 26"):
        answers.read_choice("A", ["x"] * n_options)


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


@settings(max_examples=400, deadline=None)
@given(text=REPLIES, options=st.lists(st.text(max_size=12), min_size=1, max_size=8))
def test_any_text_gives_a_letter_in_range_or_none(text: str, options: list[str]) -> None:
    choice = answers.read_choice(text, options)
    assert choice.status in STATUSES
    if choice.status == "ok":
        assert choice.letter in string.ascii_uppercase[: len(options)]
        assert choice.rule in (2, 3, 4)
    else:
        assert choice.letter is None
        assert choice.rule is None
    # What no rule is asked about is the same for a letter and for free text.
    status = answers.reply_status(text)
    assert status in STATUSES - {"unparsed"}
    if status in ("empty", "truncated", "model_error"):
        assert choice.status == status


BLANKS = st.text(alphabet=" \t\n\r\u00a0\u2003\u200b\ufeff", max_size=6)


@settings(max_examples=300, deadline=None)
@given(
    text=REPLIES | st.sampled_from([case["text"] for case in CASES]), before=BLANKS, after=BLANKS
)
def test_blanks_around_a_reply_change_nothing(text: str, before: str, after: str) -> None:
    assert answers.read_choice(before + text + after, OPTIONS) == answers.read_choice(text, OPTIONS)
    assert answers.reply_status(before + text + after) == answers.reply_status(text)


SLOW = [
    "a", "A ", " ", "\n", "\n ", "(", '"', "'", "*", "_", "a_", "`", "```", "<", "<|", "[", "...",
    "answer ", "answer:", "answer: A ", "answer: A o ", "the answer is ", "la risposta è la ",
    "if the answer is A ", "A is correct? ", "A is correct and ", "A) x\n", "\n- ", "no, ",
    "because ", "\\boxed{", "<think>", "</think>", "<think> </think>", "I'm sorry, ",
    "i can't watch or ", "\u0301\u0316", "[LMMS_EVAL_", "Video ",
]  # fmt: skip


@pytest.mark.parametrize("piece", [*SLOW, "A) " + "x or B, no, "])
def test_long_replies_take_linear_time(piece: str) -> None:
    """200,000 characters: at most 1.5 s measured, where quadratic behaviour takes minutes."""
    text = (piece * 200_000)[:200_000]
    begun = time.perf_counter()
    answers.read_choice(text, OPTIONS)
    answers.reply_status(text)
    assert time.perf_counter() - begun < 15


def test_an_answer_is_found_at_the_end_of_a_long_reply() -> None:
    text = "L'uomo corre e la risposta potrebbe essere A. " * 4000 + "La risposta corretta è B."
    assert answers.read_choice(text, OPTIONS) == answers.Choice("B", "ok", 2)


@pytest.mark.parametrize(
    ("text", "kept", "unclosed"),
    [
        ("A", "A", False),
        ("<think>x</think> A", "A", False),
        ("<think>x</think>A<thinking>y</thinking>B", "AB", False),
        ("x</think> A", "A", False),
        ("x</think>y</think>", "", False),
        ("B <think>x", "B", True),
        ("<think>x</analysis> A", "", True),
        ("<think>x</thinking> A", "A", False),
        ("2 < 3 and <b>bold</b>", "2 < 3 and <b>bold</b>", False),
    ],
)
def test_strip_reasoning(text: str, kept: str, unclosed: bool) -> None:
    assert answers.strip_reasoning(text) == (kept, unclosed)


REFUSALS = [
    "Mi dispiace, non posso aiutarti con questa richiesta",
    "Mi dispiace, ma come modello linguistico non sono in grado di guardare video.",
    "Mi dispiace, non sono in grado di visualizzare o analizzare contenuti video.",
    "Non posso visualizzare i video.",
    "In quanto intelligenza artificiale, non posso guardare video. Se vuoi, posso aiutarti.",
    "Purtroppo non posso accedere al video.",
    "I’m sorry, but I can’t help with that request.",
    "I'm sorry, I can't help with identifying people in videos.",
    "As an AI language model I cannot watch videos",
    "I'm unable to watch or analyze videos.",
    "I cannot view videos directly. If you describe the video, I can help!",
    "I can't process video files, but if you describe it I can help.",
    "<think>Not allowed.</think>Sorry, but I can't assist.",
]
# Answers to an open question that pick nothing from a choice: there they are refusals.
ABSTENTIONS = [
    "Non è possibile stabilirlo dal video",
    "Mi dispiace, ma non è possibile stabilirlo dal video.",
    "Non posso rispondere a questa domanda: il video non lo mostra.",
    "Non ho abbastanza informazioni per rispondere a questa domanda",
    "Non lo so",
    "Non saprei dire.",
    "Non sono in grado di dire quale delle due. Il video non lo mostra.",
    "Impossibile stabilirlo.",
    "I cannot tell from the video",
    "I'm sorry, but I cannot determine who the mother is from the video.",
    "I'm sorry, I can't answer that question based on the video.",
    "Based on the video, I cannot determine which option is correct.",
    "The answer cannot be determined from the audio.",
    "I can't answer this. The audio does not contain any speech.",
    "The video does not provide enough information.",
    "It's unclear from the video.",
    "I don't know",
    "I'm not sure.",
    "<think>A? B?</think>I do not know which one.",
]
ANSWERS = [
    "Non riesco a vedere nel video chi guida",
    "Non posso vedere il volto dell'uomo",
    "Non vedo balconi",
    "L'uomo dice: non posso aiutarti",
    "Mi dispiace, il video è completamente nero.",
    "Non posso guardare i video, ma dalle immagini l'uomo corre.",
    "I can't see any dog in the video",
    "I cannot view the video clearly enough to tell.",
    "I can't watch videos. The man is running.",
    "I can't help but notice the red boat.",
    "As an AI, I cannot feel, but the man looks happy.",
    "The man can't help with the boat.",
    "I cannot tell, but the man runs.",
    "I can't tell which. The man is running.",
    "I'm not sure, maybe the dog",
    "I don't know his name and he picks the red one",
    "Non lo so, forse la donna",
    "He does not know the answer.",
    "Nessuna delle due",
    "I'm sorry, but I can't assist with that. " * 20,  # too long to be only that
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    assert answers.reply_status(text) == "refused"
    assert answers.read_choice(text, OPTIONS).status == "refused"


@pytest.mark.parametrize("text", ABSTENTIONS)
def test_who_does_not_choose_has_refused_the_choice(text: str) -> None:
    """A choice that picks nothing must not pay (metrics.md): `refused` counts in `_valid`."""
    assert answers.reply_status(text) == "ok"
    for options in (OPTIONS, EIGHT):
        assert answers.read_choice(text, options) == answers.Choice(None, "refused", None)


def test_where_an_option_says_that_nothing_can_be_known_a_reply_may_mean_it() -> None:
    options = ["Guida Anna", "Non è possibile stabilire chi guida"]
    assert answers.read_choice(options[1], options).letter == "B"
    assert answers.read_choice("Non è possibile stabilirlo dal video", options).status == "unparsed"
    options = ["Anna", "It cannot be known"]
    assert answers.read_choice("I cannot tell from the video", options).status == "unparsed"


@pytest.mark.parametrize("text", ANSWERS)
def test_what_the_video_does_not_show_is_an_answer(text: str) -> None:
    assert answers.reply_status(text) == "ok"
    assert answers.read_choice(text, OPTIONS).status == "unparsed"


def test_the_hosts_failures_are_no_answers() -> None:
    """The texts as lmms-eval 0.7.3 writes them, with an answer's words inside."""
    for text in (
        "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Connection error.",
        "  [LMMS_EVAL_REQUEST_FAILED after 5 retries] <think> answer: A",
        "[LMMS_EVAL_BUDGET_EXCEEDED]",
        "[LMMS_EVAL_BUDGET_EXCEEDED] A",
        "[GENERATION_FAILED] no output",
        "Video /videos/5.mp4 generate failed, check the source",
    ):
        assert answers.reply_status(text) == "model_error"
        assert answers.read_choice(text, OPTIONS) == answers.Choice(None, "model_error", None)
    assert answers.reply_status("The sign says [LMMS_EVAL_BUDGET_EXCEEDED]") == "ok"


def test_the_hosts_markers_are_the_ones_known_here() -> None:
    """Every marker in the installed host's models is one that `reply_status` knows."""
    import importlib.util
    import re

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
    assert {answers.reply_status(text) for text in found} == {"model_error"}
