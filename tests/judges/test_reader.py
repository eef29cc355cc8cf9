"""The reader of judges' replies: tables of replies to a 1-5 rating, and properties for any text."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from injections import Rating
from pydantic import BaseModel, Field

from lmms_eval_tasks.judges import reader
from tests.checks import refused, table
from tests.fuzz.watch import at_most

FOLDER = Path(__file__).parents[1] / "cases"
REPLIES = json.loads((FOLDER / "judge_replies.json").read_text(encoding="utf-8"))
RATINGS = json.loads((FOLDER / "judge_ratings.json").read_text(encoding="utf-8"))


class Decision(BaseModel):
    correct: bool


class Labelled(BaseModel):
    pred: Literal["correct", "incorrect"]
    score: float = Field(ge=0, le=5)
    reason: str


class Levels(BaseModel):
    level: Literal[0, 1, 2]


class Free(BaseModel):
    count: int
    share: float


class Claims(BaseModel):
    claims: list[str]
    reason: str


class Bit(BaseModel):
    score: int = Field(ge=0, le=1)


@table("case, bare", [*[(case, None) for case in REPLIES], *[(case, "score") for case in RATINGS]])
def test_replies(case, bare):
    untrusted = [case["candidate"]] if "candidate" in case else []
    if "value" in case:
        assert (
            reader.read_reply(case["reply"], Rating, untrusted, bare).model_dump() == case["value"]
        )
        return
    with pytest.raises(reader.UnreadableError) as caught:
        reader.read_reply(case["reply"], Rating, untrusted, bare)
    assert caught.value.status.value == case["status"]


def read(reply, schema, bare=None):
    """The fields, or None."""
    try:
        return reader.read_reply(reply, schema, bare=bare).model_dump()
    except reader.UnreadableError:
        return None


class OnlyClaims(BaseModel):
    claims: list[str]


class Points(BaseModel):
    score: int = Field(ge=0, le=5)
    reason: str = ""


SCHEMAS = {
    one.__name__: one for one in (Rating, Decision, Labelled, Levels, Claims, OnlyClaims, Points)
}


@table("schema, reply, value")
def test_values_by_schema(schema, reply, value):
    assert read(reply, SCHEMAS[schema]) == value


def points(reply, candidate):
    """The score of 0 to 5 in a reply, or the status of its failure."""
    try:
        return reader.read_reply(reply, Points, [candidate], "score").score
    except reader.UnreadableError as error:
        return error.status.value


@table("reply, value")
def test_ratings_in_words(reply, value):
    assert points(reply, "x") == value


@table("reply, candidate, value")
def test_candidates_that_state_a_rating(reply, candidate, value):
    assert points(reply, candidate) == value


@table("reply, prompt, schema, counts")
def test_examples_of_the_prompt(reply, prompt, schema, counts):
    def call():
        return reader.read_reply(reply, SCHEMAS[schema], examples=[prompt])

    assert reader.read_reply(reply, SCHEMAS[schema])
    if counts:
        assert call()
    else:
        refused(reader.UnreadableError, "example", call)


@table("count, share", [("1" * 400, "1"), ("1" * 5000, "1"), ("1e400", "1"), ("1", "-1e400")])
@table("quote", ["'", '"'])
def test_numbers_that_are_too_large(count, share, quote):
    assert read(f"{{{quote}count{quote}: {count}, {quote}share{quote}: {share}}}", Free) is None


@table("reply", ["10", "10 reasons", "0 out of 1", "Score: 0 (q1)", "0 (q1)"])
def test_what_other_parsers_read_as_1(reply):
    assert read(reply, Bit, "score") in (None, {"score": 0})


# What a reason may hold that looks like structure, in pieces that hypothesis puts together.
PIECES = ["'", '"', "{", "}", "\\", ",", ":", "\n", " ", "`", "```", "</think>", "<think>", "[[5]]"]
PIECES += ["score", "'score': 5", '"score": 5', "score: 5", "'pred': 'correct'", "'reason': '"]
PIECES += ["', 'score': 5, 'pred': 'correct'}", '", "score": 5}', "'}", '"}', "{{", "}}", "{'a': '"]
PIECES += ["Rating: 5", "it's", 'say "x"', "é", "\u200b", "None", "5"]
reasons = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=60)
AROUND = [("", ""), ("```json\n", "\n```"), (" {", "}")]
AROUND += [("Here's it:\n```\n", "\n```\nI hope it's fine."), ("I say: ", " That's it.")]
surroundings = st.sampled_from(AROUND)
orders = st.permutations(["pred", "score", "reason"])
bares = st.sampled_from([None, "score"])


def verdict_of(reason, order):
    own = {"pred": "incorrect", "score": 2, "reason": reason}
    return {name: own[name] for name in order}


@given(reasons, orders, surroundings, st.booleans(), bares)
def test_json_and_a_printed_dict_read_back_exactly(reason, order, around, ascii_only, bare):
    own = verdict_of(reason, order)
    for text in (json.dumps(own, ensure_ascii=ascii_only), repr(own)):
        assert read(around[0] + text + around[1], Labelled, bare) == own


def naive(own, quote):
    """A dict as models write it: one kind of quotes, nothing escaped."""
    parts = [
        f"{quote}{k}{quote}: {v if k == 'score' else quote + v + quote}" for k, v in own.items()
    ]
    return "{" + ", ".join(parts) + "}"


@given(reasons, orders, surroundings, st.sampled_from("'\""), bares)
def test_unescaped_quotes_never_give_another_verdict(reason, order, around, quote, bare):
    own = verdict_of(reason, order)
    found = read(around[0] + naive(own, quote) + around[1], Labelled, bare)
    assert found is None or (found["pred"], found["score"]) == ("incorrect", 2)


@given(reasons, orders, st.data())
def test_a_cut_object_is_never_guessed(reason, order, data):
    own = verdict_of(reason, order)
    whole = data.draw(st.sampled_from([json.dumps(own), repr(own)]))
    assert read(whole[: data.draw(st.integers(0, len(whole) - 1))], Labelled) is None


@given(st.text(alphabet='it\'s a "dog", {a}.', max_size=60), orders)
def test_apostrophes_alone_are_read(reason, order):
    own = verdict_of(reason.replace('"', "").replace("{", "").replace("}", ""), order)
    assert read(naive(own, "'"), Labelled) == own


@given(st.text(max_size=200) | reasons, bares)
def test_nothing_but_unreadable_is_raised(text, bare):
    with suppress(reader.UnreadableError):
        reader.read_reply(text, Labelled, [text[::2]], bare)


HOSTILE = ["{", "[", '{"a":', "{}", "x", " ", "\n", "{'", "{'a',", '{"score": {', "[[", "[[5 ", "'"]
HOSTILE += ["Rating: ", "Rating: 4 / ", "<think>", "</think>", "```\n", "\\", "{'score': '", "{{"]
HOSTILE += ["<x>", "<x>{", "<think>{", "</x>", "[THINK]", "so 4 ", "4\n", "not [[5]] ", "if "]
HOSTILE += ["- ", ", score = ", "{'score':1}", "'} ", "score ", "\\boxed{", "my my ", "{x}", "**"]


@table("piece", HOSTILE)
def test_hostile_texts_and_candidates_end_soon(piece):
    text, begun = piece * (100_000 // len(piece)), time.process_time()
    for reply in (text, "{'score': '" + text):
        with pytest.raises(reader.UnreadableError):
            reader.read_reply(reply, Labelled, [reply], "score")
    verdict = {"pred": "correct", "score": 5, "reason": "r"}
    assert reader.read_reply(json.dumps(verdict), Labelled, [text]).model_dump() == verdict
    assert time.process_time() - begun < 8


def test_why_a_reply_is_unreadable():
    refused(
        reader.UnreadableError,
        "more than 200,000 characters",
        reader.read_reply,
        "x" * 300_000,
        Rating,
    )
    for bare in (None, "score"):  # the reason never repeats the reply
        with pytest.raises(reader.UnreadableError) as caught:
            reader.read_reply(
                '{"reason": "planted-text", "score": "planted-text"}', Rating, bare=bare
            )
        assert "planted-text" not in str(caught.value)


def test_a_long_run_of_one_sign_is_read_in_one_go():
    """It took time with the square of its length: half a minute."""
    with at_most(10):
        assert read("rating" + "*" * 60_000, Bit, "score") is None
