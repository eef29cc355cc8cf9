"""Places of a reply that state numbered units, their ranks, and the one that counts (HAVEN).

Read strictly in meaning, not in typography. A reading has a `status`: ok; unparsed; empty, refused,
truncated or model_error where nothing was read; and `violations` of the form asked for, by kind,
those that occurred (`other_form`, `extra_text` and `nothing_read` are 1, others are counts).

Statements have ranks (docs/metrics.md, "What a reply says"), and only the best rank that occurs
is read: a machine's form (`\\boxed{}`, `<answer>`, a JSON key, "Final answer:"); a statement under
a label of what was asked for ("Correct order:"); one alone on the first or last line; for orders a
list that is only a part of the reply; one inside prose. Of several the last counts if what stands
between corrects the one before, and any if they are equal; else the reply is unparsed. What is
denied, asked or supposed, and what is said of something else ("Given order:", "Timestamps:"), is no
statement.
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
LEAD = 300  # characters before a statement in which its announcement is looked for
_OWN_LINE = re.compile(r"(?:\A|\n)[-•>\"'( ]{0,3}\Z")


class Statement(NamedTuple):
    """A place of a reply that states numbers; only statements of the highest `rank` count."""

    rank: int
    start: int
    end: int
    numbers: tuple[int, ...] = ()
    lead: str = ""  # the words that announce it
    whole: bool = False  # nothing else stands in the reply


def guard(name: str) -> re.Pattern[str]:
    """Return a compiled guard of lists.yml."""
    return forms.guards("lists")[name]


def uncut(text: str, reply: ShapedReply, highest: int, *, at_limit: bool) -> str:
    """The text of `reply` without a number at its end that a limit of tokens may have cut.

    A reply that ends otherwise, in a closed bracket or a full stop, lost no digit. Nor did one
    whose last number could have had no further one.

    Args:
        text: the reply as it came; `reply` is what `reply_text.shape` made of it.
        highest: the highest number that there is.
        at_limit: the reply is as long as its limit of tokens. An array left open is then closed.
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
    """A normalised reply with machines' forms as lines of their own under "Final answer:"."""

    def line(form: re.Match[str]) -> str:
        return f"\nFinal answer:\n{next(filter(None, form.groups()), '').strip()}\n\n"

    return guard("machine form").sub(line, text)


def placed(text: str, start: int, end: int, subject: str, *, bare: bool) -> Statement | None:
    """The statement at a place, without its numbers; None if it is none, or of something else.

    Args:
        asked: "order" or "frames".
        bare: its numbers have no name, so that their announcement has to say what they are.
    """
    before, after = text[max(0, start - LEAD) : start], text[end : end + denials.BEFORE]
    lead = _lead(before)
    named = guard(f"{subject} label").search(lead)
    if denials.is_denied(before, after) or guard("something else behind").match(after):
        return None
    if guard("supposed" if named else "something else").search(lead):
        return None
    if bare and not named:
        known = guard(f"{subject} mention").search(lead) or not lead.isascii()
        unknown = guard("labelled").search(lead) and not (known or corrections(lead))
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
    """The words that announce what follows: those of its sentence, or the line above it."""
    line = re.split(r"[.!?;] |\n|[\]{}]", before)[-1]
    if not reply_text.has_words(line):
        above = re.search(r"([^\n]+)\n[-•>\"'( ]{0,3}\Z", before)
        line = above[1].strip() if above else ""
        if not line.endswith(":") and (len(line) > 60 or re.search(r"\d|[.!?,;\])]\Z", line)):
            return ""
    return line.replace("_", " ").lstrip(" -•>\"'(|")


def corrections(text: str) -> list[str]:
    """The words of a text that say that what follows is meant in place of what stands before."""
    return guard("corrected").findall(text)


def settled(
    statements: Iterable[Statement],
    text: str,
    same: Callable[[Iterable[int]], object] = tuple,
    *,
    near: bool = False,
) -> Statement | None:
    """The statement that counts; None if there is none, or if they differ and none is corrected.

    Args:
        found: in any order.
        text: where they stand.
        same: what has to be equal in their numbers.
        near: a correction counts only in the words that announce a statement, since others stand
            between them.
    """
    ranked: list[Statement] = []
    best, end = 0, 0
    for one in sorted(statements, key=lambda one: one.start):
        # What stands behind a correction ("Wait, no: ...") is as good as what it corrects.
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
    """Status and violations of a reply in which nothing was read."""
    status = reply_text.unread(reply)
    return status, nonzero({"nothing_read": 1, **more}) if status == "unparsed" else {}


# --- numbers --------------------------------------------------------------------------------------

BEYOND = 10**9  # stands for every number of more than 9 digits: no video has that many frames


def number(digits: str) -> int:
    """Value of decimal digits of any script, with leading zeros or not; `BEYOND` if too long.

    Raises:
        ValueError: a character is no decimal digit.
    """
    plain = "".join(str(unicodedata.decimal(c)) for c in digits).lstrip("0")
    return int(plain or "0") if len(plain) <= 9 else BEYOND


def nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    """Violations as results keep them: by kind, without the kinds that did not occur."""
    return {kind: int(count) for kind, count in counts.items() if count}


def repeats(numbers: list[int]) -> int:
    """How many of `numbers` were there before."""
    return len(numbers) - len(Counter(numbers))
