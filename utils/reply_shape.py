"""What every structured reply goes through before it is parsed: is there a reply, and what is it?

The rules are those of choices (answers.py): reasoning is dropped, a block left open is `truncated`,
the host's own failures are `model_error`. A refusal is told last, so that "I'm sorry ... Shot 2 >
Shot 1" is an order.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lmms_eval_tasks.utils import abstentions, answers
from lmms_eval_tasks.utils import answer_patterns as patterns

BEYOND = 10**9  # stands for every number of more than 9 digits: no video has that many frames
BEFORE = 80  # characters looked at before a statement, for a negation

_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`~]*$", re.MULTILINE)


@dataclass(frozen=True)
class Reply:
    """A reply without its reasoning, or why there is none.

    status: ok, or empty, truncated, model_error with an empty text. `refused` is a first opinion
    and keeps the text: it stands only if nothing can be read (`unread`).
    """

    status: str
    text: str

    @property
    def there(self) -> bool:
        """Whether there is a text to parse."""
        return self.status in ("ok", "refused")


def shape(text: str) -> Reply:
    """A model's text as the parsers take it. No text raises."""
    status = answers.reply_status(text)
    if status not in ("ok", "refused"):
        return Reply(status, "")
    return Reply(status, answers.strip_reasoning(text)[0])


def unread(reply: Reply) -> str:
    """Status of a reply in which nothing could be read: `refused` or `unparsed`.

    "I cannot determine the order" gives none and must not pay: it is a refusal too.
    """
    declined = reply.status == "refused" or abstentions.declines(answers.normalise(reply.text), ())
    return "refused" if declined else "unparsed"


def number(digits: str) -> int:
    """Value of decimal digits of any script, with leading zeros or not; `BEYOND` if too long.

    Raises:
        ValueError: a character is no decimal digit.
    """
    plain = "".join(str(unicodedata.decimal(c)) for c in digits).lstrip("0")
    return int(plain or "0") if len(plain) <= 9 else BEYOND


def is_denied(before: str, after: str = "") -> bool:
    """Whether a statement is denied or supposed by the words around it, or asked.

    Args:
        before: the text in front of it, normalised; its last `BEFORE` characters count.
        after: the text behind it.
    """
    clause = patterns.CLAUSE_END.split(before[-BEFORE:])[-1]
    return bool(
        patterns.DENIED_BEFORE.search(clause)
        or patterns.DENIED_AFTER.match(after)
        or patterns.ASKED.match(after)
    )


def plain_lines(text: str) -> str:
    """A reply whose sentences are to be kept as written: one kind of line end, no fence lines."""
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    text = patterns.SPECIAL_TOKEN.sub("", patterns.INVISIBLE.sub("", text))
    return _FENCE_LINE.sub("", text).strip()


def has_words(text: str) -> bool:
    """Whether a text holds a letter or digit."""
    return any(c.isalnum() for c in text)


def nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    """Violations as results keep them: by kind, without the kinds that did not occur."""
    return {kind: int(count) for kind, count in counts.items() if count}


def repeats(numbers: list[int]) -> int:
    """How many of `numbers` were there before."""
    return len(numbers) - len(Counter(numbers))
