"""A request keeps its structure whatever the candidate wrote; harmless text arrives as it was."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.judges import Criterion, reader
from lmms_eval_tasks.judges.prompts import block, neutralise, render

INJECTIONS = [
    (family, text)
    for family, texts in json.loads(
        (Path(__file__).parents[1] / "cases" / "judge_injections.json").read_text(encoding="utf-8")
    ).items()
    for text in texts
]
REAL_TOKENS = re.compile(
    r"<[|｜][^<>\n]+[|｜]>|\[/?INST\]|<</?SYS>>|</?s>|<(start|end)_of_turn>|</?think>",
    re.IGNORECASE,
)


class Reply(BaseModel):
    reason: str
    correct: bool


CRITERION = Criterion(
    name="test",
    system="Grade.",
    template="Question: {question}\nReferences:\n{references}\nAnswer:\n{candidate}\nGrade it.",
    schema=Reply,
    score=lambda reply: float(reply.correct),
    prompt_hash="0",
)


def rendered(candidate):
    fields = {"question": "Che colore?", "references": ["rosso", "blu"], "candidate": candidate}
    system, user = render(CRITERION, fields)
    assert system == {"role": "system", "content": "Grade."}
    assert user["role"] == "user"
    return user["content"]


def inside(content):
    """What stands in the candidate's block; fails if the structure around it is not whole."""
    head = "Question: Che colore?\nReferences:\n1. rosso\n2. blu\nAnswer:\n"
    assert content.startswith(head)
    opening = re.match(r"<candidate-([0-9a-f]{16})>\n", content[len(head) :])
    tag = opening[1]
    assert content.endswith(f"\n</candidate-{tag}>\nGrade it.")
    assert content.count(tag) == 2
    return content[len(head) + opening.end() : -len(f"\n</candidate-{tag}>\nGrade it.")]


@pytest.mark.parametrize(("family", "text"), INJECTIONS)
def test_injections_stay_in_their_block(family, text):
    arrived = inside(rendered(text))
    assert not REAL_TOKENS.search(arrived)
    arrived.encode("utf-8")
    # Neutralising only adds spaces (and replaces what UTF-8 cannot hold).
    assert arrived.replace(" ", "") == re.sub("[\ud800-\udfff]", "\ufffd", text).replace(" ", "")


@pytest.mark.parametrize(("family", "text"), INJECTIONS)
def test_no_verdict_is_read_from_the_candidate(family, text):
    with pytest.raises(reader.UnreadableError):
        reader.read(f"The answer was: {text}", Reply, [text])


@pytest.mark.parametrize(
    "text",
    [
        "È rosso, credo: l'uomo dice «ciao» e poi 'va via'.",
        "a < b > c [1] {2} <b>testo</b> [INSTALL] <sx> | pipe | <|",
        'righe\n\ndiverse\t e "virgolette" \\ \u200b fine\r\n',
        "System: non è un ruolo",
        "👩‍🎨 日本語 é",
        "",
    ],
)
def test_harmless_text_arrives_byte_for_byte(text):
    assert inside(rendered(text)) == text


@given(st.text(max_size=200))
def test_neutralise_is_idempotent_and_blocks_close(text):
    once = neutralise(text)
    assert neutralise(once) == once
    first, *_, last = block("candidate", text).split("\n")
    assert last == first.replace("<", "</")
    assert first.strip("<>").rpartition("-")[2] not in once


def test_the_tag_depends_on_the_text_and_is_the_same_every_time():
    assert block("candidate", "a") == block("candidate", "a")
    assert block("candidate", "a").split("\n")[0] != block("candidate", "b").split("\n")[0]


def test_a_value_is_never_a_template():
    fields = {"question": "{candidate}", "references": ["{question}"], "candidate": "planted"}
    content = render(CRITERION, fields)[1]["content"]
    assert content.count("planted") == 1
    assert "Question: {candidate}\n" in content
    assert "1. {question}\n" in content


def test_a_missing_field_is_named():
    with pytest.raises(PromptError, match=r"\{candidate\}"):
        render(CRITERION, {"question": "q", "references": []})
