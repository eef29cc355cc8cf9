"""Before every parser: is there a reply, numbers of any length, statements that are denied."""

from __future__ import annotations

from lmms_eval_tasks.utils import reply_shape
from tests.checks import refused, table


@table("text, status, left")
def test_shape(text: str, status: str, left: str) -> None:
    reply = reply_shape.shape(text)
    assert (reply.status, reply.text) == (status, left)
    assert reply.there == bool(left)


def test_what_cannot_be_read() -> None:
    """A reply that chooses nothing is a refusal only if it says so."""
    for text, status in (
        ("I cannot tell which frames matter.", "refused"),
        ("I'm sorry, I can't help with that.", "refused"),
        ("A man walks in.", "unparsed"),
    ):
        assert reply_shape.unread(reply_shape.shape(text)) == status
    assert reply_shape.is_denied("The order is not ")
    assert reply_shape.is_denied("", "?")
    assert reply_shape.is_denied("", " is wrong")
    assert not reply_shape.is_denied("It does not rain. The order is ")
    assert not reply_shape.is_denied("not " + "x " * 60 + "the order is ")
    assert reply_shape.plain_lines("```text\r\nA “b” c.\u200b\r\nD\r\n```") == "A “b” c.\nD"


def test_numbers_and_counts() -> None:
    digits = {"0": 0, "7": 7, "007": 7, "٣": 3, "१२": 12, "999999999": 999999999}
    assert {text: reply_shape.number(text) for text in digits} == digits
    # Longer than Python converts.
    assert reply_shape.number("9" * 5000) == reply_shape.BEYOND
    assert reply_shape.number("0" * 5000 + "3") == 3
    refused(ValueError, "not a decimal", reply_shape.number, "²")
    assert reply_shape.nonzero({"a": 0, "b": True, "c": 3, "d": False}) == {"b": 1, "c": 3}
    assert reply_shape.repeats([1, 1, 2, 1]) == 2
