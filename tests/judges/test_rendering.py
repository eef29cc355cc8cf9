"""A request keeps its structure whatever the candidate wrote; harmless text arrives as it was."""

import re

from hypothesis import given
from hypothesis import strategies as st
from injections import INJECTIONS, Decision
from PIL import Image

from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.judges import Criterion
from lmms_eval_tasks.judges.engine import block, image_part, neutralise, render
from tests.checks import refused, table

# Special tokens as the tokenizers of the families in prompts.py list them.
REAL_TOKENS = re.compile(
    r"<[|｜][^<>\n]+[|｜]>|\[/?(INST|SYSTEM_PROMPT|TOOL_RESULTS|THINK|IMG|gMASK)\]|<</?SYS>>|</?s>"
    r"|<(start|end)_of_(turn|image)>|</?(think|tool_response|tool_call)>|<(bos|eos|sop|image)>"
    r"|<(IMG_CONTEXT|image_soft_token)>|\[\|(system|user|assistant|endofturn)\|\]",
    re.IGNORECASE,
)
CRITERION = Criterion(
    name="test",
    system="Grade.",
    template="Question: {question}\nReferences:\n{references}\nAnswer:\n{candidate}\nGrade it.",
    schema=Decision,
    score=lambda reply: float(reply.correct),
    prompt_hash="0",
)
FIELDS = {"question": "Che colore?", "references": ["rosso", "blu"]}


def inside(candidate):
    """What arrives in the candidate's block; fails if the structure around it is not whole."""
    system, user = render(CRITERION, {**FIELDS, "candidate": candidate})
    assert system == {"role": "system", "content": "Grade."}
    assert user["role"] == "user"
    content = user["content"]
    head = "Question: Che colore?\nReferences:\n1. rosso\n2. blu\nAnswer:\n"
    assert content.startswith(head)
    opening = re.match(r"<candidate-([0-9a-f]{16})>\n", content[len(head) :])
    tag = opening[1]
    assert content.endswith(f"\n</candidate-{tag}>\nGrade it.")
    assert content.count(tag) == 2
    return content[len(head) + opening.end() : -len(f"\n</candidate-{tag}>\nGrade it.")]


@table("family, text", INJECTIONS)
def test_injections_stay_in_their_block(family, text):
    arrived = inside(text)
    assert not REAL_TOKENS.search(arrived)
    arrived.encode("utf-8")
    # Neutralising only adds spaces (and replaces what UTF-8 cannot hold).
    assert arrived.replace(" ", "") == re.sub("[\ud800-\udfff]", "\ufffd", text).replace(" ", "")
    assert "tokens" not in family or neutralise(text) != text


@table("text")
def test_harmless_text_arrives_byte_for_byte(text):
    assert inside(text) == text


@given(st.text(max_size=200), st.text(max_size=20))
def test_neutralise_is_idempotent_and_blocks_close(text, other):
    once = neutralise(text)
    assert neutralise(once) == once
    first, *_, last = block("candidate", text).split("\n")
    assert last == first.replace("<", "</")
    assert first.strip("<>").rpartition("-")[2] not in once
    # The tag depends on the text, and is the same every time.
    assert (block("candidate", other).split("\n")[0] == first) == (once == neutralise(other))


def test_a_value_is_never_a_template():
    fields = {"question": "{candidate}", "references": ["{question}"], "candidate": "planted"}
    content = render(CRITERION, fields)[1]["content"]
    assert content.count("planted") == 1
    assert "Question: {candidate}\n" in content
    assert "1. {question}\n" in content
    refused(PromptError, r"\{candidate\}", render, CRITERION, FIELDS)


def seeing(template="Look:\n{frames}\nAnswer:\n{candidate}", system="Grade.", images=("frames",)):
    return Criterion("seen", system, template, Decision, lambda _: 0.0, "0", images=images)


def frames(count):
    return [Image.new("RGB", (3, 2), (40 * n,) * 3) for n in range(count)]


def test_images_stand_where_their_placeholder_stands():
    fields = {"frames": frames(3), "candidate": "rosso {frames}"}
    _, user = render(seeing(), fields)
    first, *images, last = user["content"]
    assert [part["type"] for part in user["content"]] == ["text", *["image_url"] * 3, "text"]
    assert first["text"] == "Look:\n"
    assert last["text"].startswith("\nAnswer:\n<candidate-")
    assert "rosso {frames}" in last["text"]
    urls = [part["image_url"]["url"] for part in images]
    assert all(url.startswith("data:image/png;base64,") for url in urls)
    assert len(set(urls)) == 3
    (noted,) = frames(1)
    noted.info = {"comment": b"taken today", "dpi": (300, 300)}  # no part of the pixels
    assert image_part(noted)["image_url"]["url"] == urls[0]
    criterion = seeing("{before}then{frames}", images=("frames", "before"))
    _, user = render(criterion, {"frames": frames(2), "before": frames(1)})
    kinds = [part["type"] for part in user["content"]]
    assert kinds == ["image_url", "text", "image_url", "image_url"]
    _, user = render(seeing(), {"frames": [], "candidate": "a"})  # without images: one string
    assert user["content"].startswith("Look:\n\nAnswer:\n<candidate-")
