"""The reading of judges' replies: a table, quotations by a judge, and any text at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.cvrr_es.study import replies
from tests.checks import table
from tests.fuzz.watch import at_most
from tests.judges.injections import INJECTIONS

FILE = Path(__file__).parents[2] / "cases" / "cvrr_ratings.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))
STATUSES = {"ok", "empty", "truncated", "refused", "model_error", "unparsed"}


def test_replies() -> None:
    for case in CASES:
        found = replies.read_rating(case["reply"], case.get("shown", ()))
        assert (found.rating, found.status) == (case["rating"], case["status"]), case["name"]
        assert found.rating is None or type(found.rating) is int
        expected = case.get("reason", found.reason) if found.rating else ""
        assert found.reason == expected, case["name"]
    assert len({case["name"] for case in CASES}) == len(CASES) >= 60
    assert {case["status"] for case in CASES} == STATUSES
    figures = {case["name"].split(",")[0] for case in CASES if case["name"].startswith("Figure")}
    assert figures == {f"Figure {number}" for number in range(7, 14)}


FORMS: dict[str, Callable[[float, str], str]] = {
    "JSON": lambda rating, reason: json.dumps({"rating": rating, "reason": reason}),
    "single quotes": lambda rating, reason: f"{{'rating': '{rating}', 'reason': '{reason}'}}",
    "double braces": lambda rating, reason: f"{{{{'rating': {rating}, 'reason': '{reason}'}}}}",
    "no braces": lambda rating, reason: f"json\n\n 'rating': '{rating}',\n 'reason': '{reason}'\n",
    "escaped": lambda rating, reason: json.dumps(json.dumps({"rating": rating, "reason": reason})),
    "lines": lambda rating, reason: f"Rating: {rating}\nReason: {reason}",
}
REASONS = [
    "The user's dog isn't named.",
    "It says 'a man', not 'the man', and that's all.",
    "In 3 of 5 scenes it's right; rated low for the rest.",
    "Everyone (2 men, 1 dog) is there - even the neighbour's cat",
]


def test_every_form_with_every_reason() -> None:
    for name, form in FORMS.items():
        for rating in range(1, 6):
            for reason in REASONS:
                found = replies.read_rating(form(rating, reason))
                assert (found.rating, found.reason) == (rating, reason), name
        for off in (0, 6, 10, 45, -1, 2.5):  # nothing is clipped
            found = replies.read_rating(form(off, "It's so."))
            assert (found.rating, found.status) == (None, "unparsed"), name
        other = FORMS["double braces" if name == "JSON" else "JSON"]
        for one, two in ((4, 2), (2, 4)):
            assert (
                replies.read_rating(f"{form(one, 'One.')}\n\n{other(two, 'Other.')}").rating is None
            )


# Texts by which a candidate asks for a good grade, here of 1 to 5; the judge's own is 1.
ASKING = [text.replace("score", "rating").replace("Score", "Rating") for _, text in INJECTIONS]


def test_a_quoted_candidate_is_no_rating() -> None:
    for text in ASKING:
        for reply in (
            text,
            f"The answer was: {text}",
            f"The answer was:\n{text}\n",
            f"> {text}\n\nI cannot grade this.",
            "The answer was " + json.dumps(text),
        ):
            assert replies.read_rating(reply, [text]).rating is None, reply
        own = json.dumps({"rating": 1, "reason": f"It says {text}"})
        assert replies.read_rating(own, [text]).rating == 1
        for reply in (f"{text}\n{own}", f"It says {text}.\nRating: 1", f"{own}\n{text}"):
            assert replies.read_rating(reply, [text]).rating in (None, 1), reply
    # The rules cost little: a reader that refuses everything would pass the above.
    own = json.dumps({"rating": 1, "reason": "It asks for more."})
    count = sum(replies.read_rating(f"{text}\n{own}", [text]).rating == 1 for text in ASKING)
    assert count > 0.6 * len(ASKING)


PIECES = ["'", '"', "{", "}", "\\", ",", ": ", "\n", " ", "```", "</think>", "<think>", "[[5]]"]
PIECES += ["rating", "Rating: 5", "'rating': '5'", '"rating": 5', "reason", "'reason': 'it's'"]
PIECES += ["Good", "Excellent (5)", "Judgement: [5]", "[5]", "4.5", "5", "5/5", "json\n"]
PIECES += ["a rating of 5", "out of", '\\"rating\\": ', "{{", "}}", "I'm sorry", "1", "-"]


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*PIECES, "Judge A:"]), max_size=9).map("".join))
def test_no_text_raises_and_no_rating_is_off_the_scale(text: str) -> None:
    found = replies.read_rating(text)
    assert found.status in STATUSES
    assert (found.rating in {1, 2, 3, 4, 5}) == (found.status == "ok")
    assert found.rating in (None, 1, 4, 5)  # 2 and 3 stand nowhere


def test_long_replies_take_no_time() -> None:
    texts = ("[" * 100_000, "Rating: " * 20_000, "{" * 5_000, "Good (4) Fair (2) " * 10_000)
    for text in (*texts, "\\n" * 50_000):
        assert replies.read_rating(text).rating is None


@table("text", ["{" * 60_000, "{ " * 30_000, "rating" + "*" * 60_000])
def test_a_long_run_of_one_sign_is_read_in_one_go(text: str) -> None:
    """Each took time with the square of its length: a minute and more."""
    with at_most(10):
        assert replies.read_rating(text).status == "unparsed"


def test_runs_of_quotes_and_of_lines_are_read_in_one_go() -> None:
    """They took time with the square of their length: over a minute."""
    with at_most(10):
        for sign in ('"', "`", "``` "):
            assert replies.read_rating(sign * 20_000 + "4").rating in (None, 4)
        assert replies.read_rating('"\n' * 20_000 + '{"rating": 4}', ["\n" * 100_000]).rating == 4
