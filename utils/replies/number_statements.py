"""Statements of numbered units in a reply, their ranks, and the statement that counts (HAVEN).

Meaning is read strictly, typography is not. A result has a `status` (ok; unparsed; empty, refused,
truncated or model_error if nothing was read) and `violations` of the requested form: counts by
kind, only of kinds that occur (`other_form`, `extra_text` and `nothing_read` are 1).

Statements have ranks (docs/metrics.md, "What a reply says"), and only the best rank in the reply is
read:

1. a machine's form: `\\boxed{}`, `<answer>`, a JSON key, "Final answer:";
2. a statement under a label of the requested thing ("Correct order:");
3. a statement alone on the first or last line; for orders, a list that is only part of the reply;
4. a statement inside prose.

Of several statements any counts if they are equal, and the last if the words between correct the
one before; else the reply is unparsed. Denied, asked and supposed text, and text about something
else ("Given order:", "Timestamps:"), is no statement.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import denials, forms, reply_text
from lmms_eval_tasks.utils.replies.reply_text import ShapedReply

Violations = dict[str, int]

MACHINE, LABEL, ALONE, PROSE = 4, 3, 2, 1
LEAD = 300  # characters before a statement that may announce it
_OWN_LINE = re.compile(r"(?:\A|\n)[-•>\"'( ]{0,3}\Z")


class Statement(NamedTuple):
    """A place of a reply that states numbers; only statements of the highest `rank` count."""

    rank: int
    start: int
    end: int
    numbers: tuple[int, ...] = ()
    lead: str = ""  # the words that announce it
    whole: bool = False  # True if the reply has nothing else


def guard(name: str) -> re.Pattern[str]:
    """Return a compiled guard of lists.yml."""
    return forms.guards("lists")[name]


def uncut(text: str, reply: ShapedReply, highest: int, *, at_limit: bool) -> str:
    """Return the text of `reply` without a last number that the limit of tokens may have cut.

    A reply that ends in a closed bracket or a full stop lost no digit; nor did a last number that
    could have no further digit.

    Args:
        text: the reply before `reply_text.shape`.
        reply: the result of `reply_text.shape`.
        highest: the highest number that exists.
        at_limit: True if the reply is as long as its limit of tokens. An array left open is then
            closed.
    """
    shown = reply.text
    if (
        not at_limit
        or not text.endswith(shown[-40:])
        or not (cut := guard("cut").search(shown[-60:]))
    ):
        return shown
    if 10 * number(cut[1]) <= highest:
        shown = shown[: len(shown) - len(cut[0])]
    return shown + "]" * (shown.rfind("[") > shown.rfind("]"))


def labelled(text: str) -> str:
    """Return a normalised reply with machines' forms as lines under "Final answer:"."""

    def line(form: re.Match[str]) -> str:
        return f"\nFinal answer:\n{next(filter(None, form.groups()), '').strip()}\n\n"

    return guard("machine form").sub(line, text)


def to_statement(text: str, start: int, end: int, subject: str, *, bare: bool) -> Statement | None:
    """Return the statement at a place, without its numbers; None if the place states nothing here.

    Args:
        text: the reply, normalised.
        start, end: the place.
        subject: "order" or "frames".
        bare: True if the numbers have no name, so that an announcement must name them.
    """
    before, after = text[max(0, start - LEAD) : start], text[end : end + denials.BEFORE]
    lead = _lead(before)
    named = guard(f"{subject} label").search(lead)
    if denials.is_denied(before, after) or guard("something else behind").match(after):
        return None
    if guard("supposed" if named else "something else").search(lead):
        return None
    if bare and not named:
        has_mention = guard(f"{subject} mention").search(lead) or not lead.isascii()
        unknown = guard("labelled").search(lead) and not (has_mention or corrections(lead))
        if unknown or guard("not chosen").search(before) or guard("quantity").search(lead):
            return None
    announced = start <= LEAD and re.fullmatch(r"[^\d\n>]{1,200}:[\s\"']{0,2}", before)
    opens = bool(announced) or not reply_text.has_words(text[:start])
    closes = not reply_text.has_words(text[end:])
    goes_on = guard("goes on").match(after)
    if named and not (goes_on and goes_on[1] == " "):
        rank = MACHINE if "final" in named[0].lower() else LABEL
    else:
        rank = ALONE if (opens or _OWN_LINE.search(before)) and not goes_on else PROSE
    return Statement(rank, start, end, (), lead, opens and closes)


def _lead(before: str) -> str:
    """Return the words that announce a place: of its sentence, or else the line above it."""
    line = re.split(r"[.!?;] |\n|[\]{}]", before)[-1]
    if not reply_text.has_words(line):
        above = re.search(r"([^\n]+)\n[-•>\"'( ]{0,3}\Z", before)
        line = above[1].strip() if above else ""
        if not line.endswith(":") and (len(line) > 60 or re.search(r"\d|[.!?,;\])]\Z", line)):
            return ""
    return line.replace("_", " ").lstrip(" -•>\"'(|")


def corrections(text: str) -> list[str]:
    """Return the words in a text that announce a correction of earlier text."""
    return guard("corrected").findall(text)


def settled(
    statements: Iterable[Statement],
    text: str,
    same: Callable[[Iterable[int]], object] = tuple,
    *,
    near: bool = False,
) -> Statement | None:
    """Return the statement that counts; None if there is none, or several differ uncorrected.

    Args:
        statements: statements in any order.
        text: the reply.
        same: the part of the numbers that must be equal.
        near: True if only the words that announce a statement may correct, since other statements
            stand between.
    """
    ranked: list[Statement] = []
    best, end = 0, 0
    for one in sorted(statements, key=lambda one: one.start):
        # A statement after a correction ("Wait, no: ...") has at least the rank of the corrected
        # one.
        between = text[end : one.start] if best and not near else one.lead
        corrects = bool(corrections(between)) and not guard("goes on").match(text, one.end)
        end = one.end
        best = max(best, one.rank)
        ranked.append(one._replace(rank=best) if corrects else one)
    own = [one for one in ranked if one.rank == best]
    differing = [one for one in own if same(one.numbers) != same(own[-1].numbers)]
    if differing and not corrections(text[differing[-1].end : own[-1].start]):
        return None
    return own[-1] if own else None


def nothing(reply: ShapedReply, **more: int) -> tuple[str, Violations]:
    """Return status and violations of a reply in which nothing was read."""
    status = reply_text.unread(reply)
    return status, nonzero({"nothing_read": 1, **more}) if status == "unparsed" else {}


# --- numbers --------------------------------------------------------------------------------------

BEYOND = 10**9  # for numbers of more than 9 digits: no video has so many frames


def number(digits: str) -> int:
    """Return the value of decimal digits of any script; `BEYOND` for more than 9 digits.

    Raises:
        ValueError: a character is no decimal digit.
    """
    plain = "".join(str(unicodedata.decimal(c)) for c in digits).lstrip("0")
    return int(plain or "0") if len(plain) <= 9 else BEYOND


def nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the violations for the results: by kind, without kinds that did not occur."""
    return {kind: int(count) for kind, count in counts.items() if count}


def repeats(numbers: list[int]) -> int:
    """Return how many of `numbers` are repetitions."""
    return len(numbers) - len(Counter(numbers))
