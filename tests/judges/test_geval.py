"""G-Eval: the score's token found in odd tokenisations, and means computed by hand."""

import json
import math
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from lmms_eval_tasks.judges import geval, reader
from lmms_eval_tasks.judges.verdict import Reply, Token
from tests.checks import refused, table

FILE = Path(__file__).parents[1] / "cases" / "judge_geval.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))


class Rating(BaseModel):
    reason: str = ""
    score: int = Field(ge=1, le=5)


class Tenth(BaseModel):
    score: int = Field(ge=0, le=10)


class Hundredth(BaseModel):
    score: int = Field(ge=0, le=100)


class Label(BaseModel):
    score: Literal[0, 2, 4]


class Balance(BaseModel):
    score: Annotated[int, Field(gt=-3, lt=3)]


def expected(given: Reply, schema: type[BaseModel] = Rating) -> geval.Expected | None:
    """As the reader asks for it."""

    def stated(text: str) -> int | None:
        try:
            return reader.read(text, schema, bare="score").score
        except reader.UnreadableError:
            return None

    return geval.expected(given, geval.scale(schema, "score"), stated)


def reply(*texts: str, top: dict[str, float] | list[tuple[str, float]], at: str) -> Reply:
    """A reply of these tokens; the one that equals `at` has the probabilities `top`."""
    pairs = list(top.items()) if isinstance(top, dict) else top
    listed = [(text, math.log(p) if p else -9999.0) for text, p in pairs]
    own = dict(listed).get(at, math.log(0.01))
    tokens = tuple(
        Token(text, own, listed) if text == at else Token(text, -0.1, [(text, -0.1), ("1", -2.4)])
        for text in texts
    )
    assert sum(text == at for text in texts) == 1
    return Reply("".join(texts), tokens=tokens)


# 0.6 on 4, 0.3 on 5, 0.1 on 3: 2.4 + 1.5 + 0.3
SPREAD = {"4": 0.6, "5": 0.3, "3": 0.1}


@table("case", CASES["places"])
def test_the_place_in_many_tokenisations(case):
    at = case["at"]
    top = {at.replace("4", number): probability for number, probability in SPREAD.items()}
    found = expected(reply(*case["tokens"], top=top, at=at))
    assert found is not None
    assert (found.value, found.mass) == (pytest.approx(4.2), pytest.approx(1.0))


@table("texts", CASES["no_single_place"])
def test_no_single_place(texts):
    """Off the scale, no whole number, in two tokens, two ratings, cut off, in reasoning."""
    at = next(text for text in texts if text in ("4", "7"))
    given = reply(*texts, top={"4": 0.5, "5": 0.3, "7": 0.2}, at=at)
    assert expected(given) is None


@table("top, value, mass")
def test_means_by_hand(top, value, mass):
    found = expected(reply('{"score": ', "4", "}", top=top, at="4"))
    assert found is not None
    assert (found.value, found.mass) == (pytest.approx(value), pytest.approx(mass))


def test_without_log_probabilities():
    for one in (
        Reply('{"score": 4}'),
        Reply("", tokens=()),
        Reply(None, refusal="no"),
        Reply("4", tokens=(Token("4", math.nan, [("4", math.nan)]),)),
        Reply("4", tokens=(Token("4", -9999.0, [("4", -9999.0)]),)),
        reply('{"score": ', "1", "0", "}", top={"1": 0.8, "9": 0.2}, at="1"),  # 10 in two tokens
    ):
        schema = Tenth if "10" in (one.text or "") else Rating
        assert expected(one, schema) is None


@table(
    "schema, chosen, top, value",
    [
        (Tenth, "10", {"10": 0.5, "9": 0.5}, 9.5),
        (Tenth, "8", {"8": 0.5, "7": 0.5}, 7.5),  # neither begins another number of the scale
        (Tenth, "8", {"8": 0.5, "1": 0.25, "10": 0.25}, 6.75),  # 10 is one token here
        (Tenth, "8", {"8": 0.5, "1": 0.25}, None),  # 1, or the first digit of 10
        (Tenth, "1", {"1": 0.9, "2": 0.1}, None),
        (Hundredth, "85", {"85": 0.5, "80": 0.25, "90": 0.25}, 85.0),
        (Hundredth, "8", {"8": 0.5, "9": 0.5}, None),  # 8, or the first digit of 80 to 89
        (Hundredth, "85", {"85": 0.5, "10": 0.5}, None),  # 10, or the beginning of 100
        (Hundredth, "85", {"85": 0.5, "10": 0.25, "100": 0.25}, 70.0),
        (Label, "2", {"2": 0.5, "4": 0.25, "3": 0.25}, 8 / 3),
        (Balance, "-1", {"-1": 0.5, "2": 0.25, "-": 0.25}, 0.0),
    ],
)
def test_scales(schema, chosen, top, value):
    found = expected(reply('{"score": ', chosen, "}", top=top, at=chosen), schema)
    assert (found and found.value) == (value if value is None else pytest.approx(value))


def test_the_scale_comes_from_the_schema():
    class Other(BaseModel):
        half: int = Field(gt=0.0, le=3)
        share: float = Field(ge=0, le=1)
        free: int
        above: int = Field(ge=0)
        word: Literal["good", "bad"]
        mixed: Literal[1, "bad"]
        truth: bool

    assert list(geval.scale(Rating, "score")) == [1, 2, 3, 4, 5]
    assert list(geval.scale(Label, "score")) == [0, 2, 4]
    assert list(geval.scale(Balance, "score")) == [-2, -1, 0, 1, 2]
    assert list(geval.scale(Other, "half")) == [1, 2, 3]
    for name in ("share", "free", "above", "word", "mixed", "truth"):
        refused(ValueError, rf"Other\.{name}", geval.scale, Other, name)


TEXTS = st.sampled_from(["1", "2", " 3", '"4"', "4", "5}", " 5", "6", "x", "", ' "', "0", "10"])


@given(
    top=st.lists(st.tuples(TEXTS, st.floats(-30, 0)), min_size=1, max_size=12),
    own=st.floats(-30, 0),
    order=st.randoms(),
)
def test_on_the_scale_whatever_the_order(top, own, order):
    def found(pairs):
        tokens = (Token('{"score": ', 0.0, []), Token("4", own, pairs), Token("}", 0.0, []))
        return expected(Reply('{"score": 4}', tokens=tokens))

    first = found(top)
    assert first is not None
    assert 1 <= first.value <= 5
    assert 0 < first.mass <= 1
    assert found(order.sample(top, len(top))) == first


def test_the_share_of_the_scale():
    assert [geval.scaled(n, 1, 5) for n in (1, 4.2, 5)] == [0.0, pytest.approx(0.8), 1.0]
    for value, low, high in ((6, 1, 5), (0.9, 1, 5), (1, 1, 1)):
        refused(ValueError, "not on a scale", geval.scaled, value, low, high)
