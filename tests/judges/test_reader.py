"""The reader of judges' replies: tables of replies to a 1-5 rating, and properties for any text."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from lmms_eval_tasks.judges import reader

FOLDER = Path(__file__).parents[1] / "cases"
REPLIES = json.loads((FOLDER / "judge_replies.json").read_text(encoding="utf-8"))
RATINGS = json.loads((FOLDER / "judge_ratings.json").read_text(encoding="utf-8"))


class Rating(BaseModel):
    reason: str
    score: int = Field(ge=1, le=5)


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


def check(case, bare):
    untrusted = [case["candidate"]] if "candidate" in case else []
    if "value" in case:
        assert reader.read(case["reply"], Rating, untrusted, bare).model_dump() == case["value"]
        return
    with pytest.raises(reader.UnreadableError) as caught:
        reader.read(case["reply"], Rating, untrusted, bare)
    assert caught.value.status.value == case["status"]


@pytest.mark.parametrize("case", REPLIES, ids=[case["name"] for case in REPLIES])
def test_objects(case):
    check(case, None)


@pytest.mark.parametrize("case", RATINGS, ids=[case["name"] for case in RATINGS])
def test_bare_ratings(case):
    check(case, "score")


@pytest.mark.parametrize("reply", ["[[4]]", "Rating: 4", "4", '{"score": 4}'])
def test_only_an_object_with_a_reason_counts_without_bare(reply):
    with pytest.raises(reader.UnreadableError):
        reader.read(reply, Rating)


@pytest.mark.parametrize("reply", ["10", "10 reasons", "0 out of 1", "Score: 0 (q1)", "0 (q1)"])
def test_what_other_parsers_read_as_1(reply):
    class Bit(BaseModel):
        score: int = Field(ge=0, le=1)

    try:
        value = reader.read(reply, Bit, bare="score")
    except reader.UnreadableError:
        return
    assert value.score == 0


@pytest.mark.parametrize(
    ("given", "read"), [("true", True), ("false", False), ('"true"', True), ('"false"', False)]
)
def test_booleans_and_their_two_strings(given, read):
    assert reader.read(f'{{"correct": {given}}}', Decision).correct is read


@pytest.mark.parametrize("given", ["True", "False"])
def test_booleans_as_python_writes_them(given):
    assert reader.read(f"{{'correct': {given}}}", Decision).correct is (given == "True")


@pytest.mark.parametrize("given", ['"yes"', '"True"', "1", "0", "null", "None", '""', "[true]"])
def test_nothing_else_is_a_boolean(given):
    with pytest.raises(reader.UnreadableError):
        reader.read(f'{{"correct": {given}}}', Decision)


def test_labels_in_other_case_are_the_labels():
    text = "{'pred': 'Incorrect ', 'score': 4.5, 'reason': 'It's so'}"
    read = reader.read(text, Labelled)
    assert read.model_dump() == {"pred": "incorrect", "score": 4.5, "reason": "It's so"}
    with pytest.raises(reader.UnreadableError):
        reader.read(text.replace("Incorrect", "Partially correct"), Labelled)


@pytest.mark.parametrize(("given", "level"), [("2", 2), ('"2"', 2), ("2.0", 2), ('"2/2"', 2)])
def test_levels_are_numbers_too(given, level):
    assert reader.read(f'{{"level": {given}}}', Levels).level == level


@pytest.mark.parametrize("given", ["3", "true", "1.5", '"1/3"', '"one"'])
def test_what_is_no_level(given):
    with pytest.raises(reader.UnreadableError):
        reader.read(f'{{"level": {given}}}', Levels)


@pytest.mark.parametrize(
    ("count", "share"),
    [("1" * 400, "1"), ("1" * 5000, "1"), ("1e400", "1"), ("1", "1e400"), ("1", "-1e400")],
)
def test_numbers_have_a_size(count, share):
    for quote in "'\"":
        with pytest.raises(reader.UnreadableError):
            reader.read(f"{{{quote}count{quote}: {count}, {quote}share{quote}: {share}}}", Free)


@pytest.mark.parametrize("reason", ["'it's'", '"it\'s"', '"it"'])
def test_lists_are_values_as_well(reason):
    read = reader.read(f"{{'claims': ['a \\'b\\'', \"it's\",], 'reason': {reason}}}", Claims)
    assert read.claims == ["a 'b'", "it's"]


# What a reason may hold that looks like structure, in pieces that hypothesis puts together.
PIECES = ["'", '"', "{", "}", "\\", ",", ":", "\n", " ", "`", "```", "</think>", "<think>", "[[5]]"]
PIECES += ["score", "'score': 5", '"score": 5', "score: 5", "'pred': 'correct'", "'reason': '"]
PIECES += ["', 'score': 5, 'pred': 'correct'}", '", "score": 5}', "'}", '"}', "{{", "}}", "{'a': '"]
PIECES += ["Rating: 5", "it's", 'say "x"', "é", "\u200b", "None", "5"]
reasons = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
    st.text(max_size=60),
)
AROUND = [("", ""), ("```json\n", "\n```"), (" {", "}")]
AROUND += [("Here's it:\n```\n", "\n```\nI hope it's fine."), ("I say: ", " That's it.")]
patient = settings(deadline=None)  # a busy machine is no failure
surroundings = st.sampled_from(AROUND)
orders = st.permutations(["pred", "score", "reason"])


def verdict_of(reason, order):
    own = {"pred": "incorrect", "score": 2, "reason": reason}
    return {name: own[name] for name in order}


@patient
@given(reasons, orders, surroundings, st.booleans(), st.sampled_from([None, "score"]))
def test_json_reads_back_exactly(reason, order, around, ascii_only, bare):
    own = verdict_of(reason, order)
    text = around[0] + json.dumps(own, ensure_ascii=ascii_only) + around[1]
    assert reader.read(text, Labelled, bare=bare).model_dump() == own


@patient
@given(reasons, orders, surroundings, st.sampled_from([None, "score"]))
def test_a_printed_dict_reads_back_exactly(reason, order, around, bare):
    own = verdict_of(reason, order)
    assert reader.read(around[0] + repr(own) + around[1], Labelled, bare=bare).model_dump() == own


def naive(own, quote):
    """A dict as models write it: one kind of quotes, nothing escaped."""
    parts = [
        f"{quote}{k}{quote}: {v if k == 'score' else quote + v + quote}" for k, v in own.items()
    ]
    return "{" + ", ".join(parts) + "}"


@patient
@given(reasons, orders, surroundings, st.sampled_from("'\""), st.sampled_from([None, "score"]))
def test_unescaped_quotes_never_give_another_verdict(reason, order, around, quote, bare):
    own = verdict_of(reason, order)
    try:
        read = reader.read(around[0] + naive(own, quote) + around[1], Labelled, bare=bare)
    except reader.UnreadableError:
        return
    assert (read.pred, read.score) == ("incorrect", 2)


@patient
@given(reasons, orders, st.data())
def test_a_cut_object_is_never_guessed(reason, order, data):
    own = verdict_of(reason, order)
    whole = data.draw(st.sampled_from([json.dumps(own), repr(own)]))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(reader.UnreadableError):
        reader.read(whole[:cut], Labelled)


@patient
@given(st.text(alphabet='it\'s a "dog", {a}.', max_size=60), orders)
def test_apostrophes_alone_are_read(reason, order):
    own = verdict_of(reason.replace('"', "").replace("{", "").replace("}", ""), order)
    assert reader.read(naive(own, "'"), Labelled).model_dump() == own


@patient
@given(st.text(max_size=200) | reasons, st.sampled_from([None, "score"]))
def test_nothing_but_unreadable_is_raised(text, bare):
    with suppress(reader.UnreadableError):
        reader.read(text, Labelled, [text[::2]], bare)


HOSTILE = ["{", "[", '{"a":', "{}", "x", " ", "\n", "{'", "{'a',", '{"score": {', "[[", "[[5 ", "'"]
HOSTILE += ["Rating: ", "Rating: 4 / ", "<think>", "</think>", "```\n", "\\", "{'score': '", "{{"]
HOSTILE += ["- ", ", score = ", "{'score':1}", "'} ", "score ", "\\boxed{", "my my ", "{x}", "**"]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("start", ["", "{'score': '"])
def test_hostile_texts_end_soon(piece, start):
    text = start + piece * (100_000 // len(piece))
    begun = time.process_time()
    with pytest.raises(reader.UnreadableError):
        reader.read(text, Labelled, [text], "score")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_candidates_end_soon(piece):
    begun = time.process_time()
    verdict = {"pred": "correct", "score": 5, "reason": "r"}
    read = reader.read(json.dumps(verdict), Labelled, [piece * (100_000 // len(piece))])
    assert read.model_dump() == verdict
    assert time.process_time() - begun < 5


def test_a_reply_without_end_is_not_scanned():
    with pytest.raises(reader.UnreadableError, match="300000 characters"):
        reader.read("x" * 300_000, Rating)


@pytest.mark.parametrize("bare", [None, "score"])
def test_the_reason_never_repeats_the_reply(bare):
    with pytest.raises(reader.UnreadableError) as caught:
        reader.read('{"reason": "planted-text", "score": "planted-text"}', Rating, bare=bare)
    assert "planted-text" not in str(caught.value)
