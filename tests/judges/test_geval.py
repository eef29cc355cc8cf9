"""G-Eval: the score's token found in odd tokenisations, and means computed by hand."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from lmms_eval_tasks.judges import geval, reader
from lmms_eval_tasks.judges.providers.exchange import JudgeReply, Token
from tests.checks import refused, table

FILE = Path(__file__).parents[1] / "cases" / "judge_geval.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))


class Rating(BaseModel):
    reason: str = ""
    score: int = Field(ge=1, le=5)


def expected(given: JudgeReply) -> tuple[float, float] | None:
    """As the reader asks for it."""

    def stated(text: str) -> int | None:
        try:
            return reader.read_reply(text, Rating, bare="score").score
        except reader.UnreadableError:
            return None

    return geval.expected(given, stated)


def reply(*texts: str, top: dict[str, float] | list[tuple[str, float]], at: str) -> JudgeReply:
    """A reply of these tokens; the one that equals `at` has the probabilities `top`."""
    pairs = list(top.items()) if isinstance(top, dict) else top
    listed = [(text, math.log(p) if p else -9999.0) for text, p in pairs]
    own = dict(listed).get(at, math.log(0.01))
    tokens = tuple(
        Token(text, own, listed) if text == at else Token(text, -0.1, [(text, -0.1), ("1", -2.4)])
        for text in texts
    )
    assert sum(text == at for text in texts) == 1
    return JudgeReply("".join(texts), tokens=tokens)


# 0.6 on 4, 0.3 on 5, 0.1 on 3: 2.4 + 1.5 + 0.3
SPREAD = {"4": 0.6, "5": 0.3, "3": 0.1}


@table("case", CASES["places"])
def test_the_place_in_many_tokenisations(case):
    at = case["at"]
    top = {at.replace("4", number): probability for number, probability in SPREAD.items()}
    found = expected(reply(*case["tokens"], top=top, at=at))
    assert found is not None
    assert found == (pytest.approx(4.2), pytest.approx(1.0))


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
    assert found == (pytest.approx(value), pytest.approx(mass))


def test_without_log_probabilities():
    for one in (
        JudgeReply('{"score": 4}'),
        JudgeReply("", tokens=()),
        JudgeReply(None, refusal="no"),
        JudgeReply("4", tokens=(Token("4", math.nan, [("4", math.nan)]),)),
        JudgeReply("4", tokens=(Token("4", -9999.0, [("4", -9999.0)]),)),
    ):
        assert expected(one) is None


TEXTS = st.sampled_from(["1", "2", " 3", '"4"', "4", "5}", " 5", "6", "x", "", ' "', "0", "10"])


@given(
    top=st.lists(st.tuples(TEXTS, st.floats(-30, 0)), min_size=1, max_size=12),
    own=st.floats(-30, 0),
    order=st.randoms(),
)
def test_on_the_scale_whatever_the_order(top, own, order):
    def found(pairs):
        tokens = (Token('{"score": ', 0.0, []), Token("4", own, pairs), Token("}", 0.0, []))
        return expected(JudgeReply('{"score": 4}', tokens=tokens))

    first = found(top)
    assert first is not None
    assert 1 <= first[0] <= 5
    assert 0 < first[1] <= 1
    assert found(order.sample(top, len(top))) == first


def test_the_share_of_the_scale():
    assert [geval.scaled(n, 1, 5) for n in (1, 4.2, 5)] == [0.0, pytest.approx(0.8), 1.0]
    for value, low, high in ((6, 1, 5), (0.9, 1, 5), (1, 1, 1)):
        refused(ValueError, "not on a scale", geval.scaled, value, low, high)
