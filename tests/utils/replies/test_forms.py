"""Every row of the readers' data: its example is read, and the one beside it is not.

And the property of all ranks: a sentence about another option never makes it the answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils.replies import answers, forms, refusals, reply_text
from tests.checks import table
from tests.utils.replies.test_answers import CASES, OPTIONS, options_of

FORMS: list[dict[str, Any]] = forms.load_table("forms")["forms"]
GUARDS = [row for row in forms.load_table("forms")["guards"] if "stops" in row]
LANGUAGES: dict[str, dict[str, Any]] = forms.load_table("languages")
NEVER = re.compile("(?!)")


@table("row", FORMS)
def test_form(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers.read_choice(row["read"], OPTIONS) == answers.LetterChoice("B", "ok", row["rank"])
    assert answers.read_choice(row["refused"], OPTIONS).letter is None
    # Without this row the example is not read, or by another rank.
    kept = {rank: forms.of_rank(rank) for rank in forms.RANKS}
    without = {rank: [one for one in own if one.name != row["name"]] for rank, own in kept.items()}
    monkeypatch.setattr(forms, "of_rank", without.__getitem__)
    assert answers.read_choice(row["read"], OPTIONS) != answers.LetterChoice("B", "ok", row["rank"])


@table("row", GUARDS)
def test_guard(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers.read_choice(row["stops"], OPTIONS).letter is None
    always = row["name"].startswith("end")  # what must stand behind a letter, not what must not
    monkeypatch.setitem(forms.guards(), row["name"], re.compile("") if always else NEVER)
    assert answers.read_choice(row["stops"], OPTIONS).letter is not None


def test_languages() -> None:
    """Each with replies that choose B and replies that choose nothing; the page shows the first."""
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert len(LANGUAGES) >= 30
    assert f"The words of {len(LANGUAGES)} languages" in page
    assert all(f"`{words['read'][0]}`" in page for words in LANGUAGES.values())
    for name, words in LANGUAGES.items():
        assert words["read"], name
        for text in words["read"]:
            assert answers.read_choice(text, OPTIONS).letter == "B", (name, text)
        assert words["refused"], name
        for text in words["refused"]:
            assert answers.read_choice(text, OPTIONS).letter is None, (name, text)


@table("row", [row for row in forms.load_table("refusals")["guards"] if "read" in row])
def test_refusals(row: dict[str, Any]) -> None:
    def declines(text: str) -> bool:
        plain = reply_text.normalise(text)
        return refusals.is_refusal(plain) or refusals.declines(plain, ())

    assert declines(row["read"])
    assert not declines(row["refused"])


ABOUT_ANOTHER = """
{X} is correct for another scene only.
{X} would be right if the question were different.
Option {X} is correct in tone only, so {Y} is what the video shows.
{X} is true in the first half, but the question is on the whole.
One may think the answer is {X}. But no.
Some models say the answer is {X}.
{X} is the correct description of a different scene.
Why not {X}? Option {X} is correct about the park but not about the man.
In the quiz show the host says the answer is {X}.
If the answer were {X}, the man would run.
The wrong answer is {X}.
The second best answer is {X}.
The answer to the other question is {X}.
For the other video the correct answer is {X}.
At first I thought the answer is {X}.
People would choose {X}.
{X} is also plausible.
{X} might be true.
{X}: not supported.
{X}) is about another person.
Option {X}: somebody else is meant.
Is {X} correct? No.
{X} is true, too, but of the second clip.
- {X} is correct about the colour, but it does not turn.
The sign in the video says "Answer: {X}".
~~Final answer: {X}~~
{X} ✗
Question: who runs?\\nA) x\\nB) y\\nAnswer: {X}
Nota: {X} è giusta per il secondo video.
{X} è corretta solo in parte.
L'opzione {X} è falsa.
Alcuni direbbero che la risposta è {X}.
Se la domanda fosse un'altra, la risposta sarebbe {X}.
{X} corrisponde a un altro video.
{X} ist richtig, wenn man nur den Ton hört.
答案不是{X}。
""".strip().splitlines()


@functools.cache
def answered_rows() -> Sequence[tuple[str, list[str], str]]:
    """Every reply of the tables that is read: the text, its options, the letter."""
    texts = [(case["text"], options_of(case)) for case in CASES]
    texts += [(row["read"], OPTIONS) for row in FORMS]
    texts += [(text, OPTIONS) for words in LANGUAGES.values() for text in words["read"]]
    read = ((*one, answers.read_choice(*one).letter) for one in texts)
    return [(text, own, letter) for text, own, letter in read if letter and len(own) > 1]


def test_a_sentence_about_another_option_behind_any_reply() -> None:
    """All rows and sentences, each on its own line: the same letter or none, mostly the same.

    Each row with a fourth of the sentences, and each sentence with a fourth of the rows: all pairs
    took half a minute. test_sentences_about_other_options draws from all.
    """
    flipped, kept, read_texts = [], 0, 0
    for number, (text, options, letter) in enumerate(answered_rows()):
        other = next(x for x in "BA" if x != letter)
        for sentence in ABOUT_ANOTHER[number % 4 :: 4]:
            read_texts += 1
            more = sentence.replace("\\n", "\n").format(X=other, Y=letter)
            read = answers.read_choice(f"{text}\n\n{more}", options).letter
            kept += read == letter
            if read not in (letter, None):
                flipped.append((text, more))
    assert len(answered_rows()) > 300
    assert not flipped
    assert kept > 0.9 * read_texts


@settings(max_examples=600)
@given(
    row=st.deferred(lambda: st.sampled_from(answered_rows())),
    sentences=st.lists(st.sampled_from(ABOUT_ANOTHER), min_size=1, max_size=3),
    between=st.sampled_from([" ", "\n", "\n\n", " - "]),
    data=st.data(),
)
def test_sentences_about_other_options(
    row: tuple[str, list[str], str], sentences: list[str], between: str, data: st.DataObject
) -> None:
    """Several of them, about any other option, on lines of their own or behind the reply's end."""
    text, options, letter = row
    if between.startswith(" ") and text[-1] not in ".!?。)":
        between = "." + between
    others = [x for x in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(options)] if x != letter]
    for sentence in sentences:
        other = data.draw(st.sampled_from(others))
        text += between + sentence.replace("\\n", "\n").format(X=other, Y=letter)
    assert answers.read_choice(text, options).letter in (letter, None)


@table("row", [row for row in forms.load_table("statements")["guards"] if "found" in row])
def test_words_around_a_judges_statement(row: dict[str, str]) -> None:
    pattern = forms.guards("statements")[row["name"]]
    find = pattern.search if row["name"].endswith(("before", "concludes")) else pattern.match
    assert find(row["found"])
    assert not find(row["missed"])
