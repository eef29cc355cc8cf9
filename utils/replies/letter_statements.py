"""A place of a reply that names a letter: its letters, or the reason why it states none.

A letter may be a word of the sentence ("A man", "E poi") or a part of a name ("G major"). A
statement may be denied, asked, supposed, quoted or somebody else's. answers.py finds the places and
decides which count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import forms
from lmms_eval_tasks.utils.replies.denials import BEFORE, denies
from lmms_eval_tasks.utils.replies.reply_text import fold

AFTER = 400  # characters after a statement that count, plus twice the longest option
# The end of an option's text: no comma or point inside a number.
_END = re.compile(r"[.,](?!\d)|[!?;:\n()\"<}✓✗]| - | (?:is|è|because|since|perch)\b")
_ARTICLE = re.compile(
    r"^(?:the|an?|la|il|lo|l|una?|uno|el|los|las|le|les|der|die|das|een|het|um|uma) "
)


class OptionTexts(NamedTuple):
    """The options' texts by letter, as `fold` returns them, and the length of the longest one."""

    options: Mapping[str, str]
    longest: int

    def opened(self, text: str, plain: Callable[[str], str] = str) -> list[tuple[str, int]]:
        """Return the options whose text begins `text` and fills a clause or line, with their ends.

        Args:
            text: the text after a letter or label.
            plain: applied to both texts before comparison, such as `without_article`.
        """
        heads = _heads(text[: 2 * self.longest + AFTER], plain)
        return [(x, heads[own]) for x, one in self.options.items() if (own := plain(one)) in heads]

    def named_by(self, text: str) -> set[str]:
        """Return the letters of the options whose text begins `text` (`opened`)."""
        return {letter for letter, _ in self.opened(text)}

    def called(self, text: str) -> str | None:
        """Return the letter of the only option that equals a folded text; None for several or none.

        Articles count if an option equals the text with its article, else they are ignored.
        """
        for plain in (str, without_article):
            found = [x for x, one in self.options.items() if one and plain(one) == plain(text)]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def hold(self, first: str, second: str) -> bool:
        """Return True if these two words stand side by side in an option's text."""
        pair = f" {fold(first)} {fold(second)} "
        return any(pair in f" {option} " for option in self.options.values())


@lru_cache(maxsize=256)  # several rules ask about the same statement
def _heads(window: str, plain: Callable[[str], str]) -> Mapping[str, int]:
    """Return the beginnings of a text up to each end of a clause or line, folded, with the ends."""
    ends = [match.start() for match in _END.finditer(window)][:16]
    heads = {plain(fold(window[:end])): end for end in (len(window), *reversed(ends))}
    heads.pop("", None)
    return heads


class LetterStatement(NamedTuple):
    """A place that names a letter: the letter as written, and the text on both sides.

    Another letter in `near`, the first part of `after`, makes the statement unclear.
    """

    letter: str
    before: str
    after: str
    near: str
    subject: bool = False  # the form "B is correct"


class Said(NamedTuple):
    """The result of a statement: one letter, several, or none of the options."""

    letters: frozenset[str]
    start: int
    end: int
    final: bool = False  # the form declares a final answer
    says: bool = True


def statement_at(
    letter: str, text: str, start: int, end: int, item: OptionTexts, *, subject: bool = False
) -> LetterStatement:
    """Return the statement that begins at `start` and whose letter ends at `end`."""
    after = text[end : end + 2 * item.longest + AFTER]
    near = "\n".join(after.split("\n", 2)[:2])  # the statement's line and the next one
    return LetterStatement(letter, text[max(0, start - BEFORE) : start], after, near, subject)


def letters_of(statement: LetterStatement, item: OptionTexts) -> frozenset[str]:
    """Return a statement's letters; none if no option has them, or against the option's text."""
    if is_name(statement, item) and (named := named_option(statement, item)):
        return frozenset(named)
    letter, texts = statement.letter.upper(), item.named_by(statement.after)
    whole = item.named_by(statement.letter + statement.after)
    if len(whole) == 1 and not texts and not statement.subject:  # "Answer: B > A", an option's text
        return frozenset(whole)
    contradicts = bool(texts) and letter not in texts  # "A) text of B"
    if contradicts or letter not in item.options or is_name(statement, item):
        return frozenset()
    return frozenset({letter, *_seconds(statement, item)})


def is_word(
    statement: LetterStatement, item: OptionTexts, plain: frozenset[str], *, whole: bool = False
) -> bool:
    """Return True if the letter is a word of the sentence ("A man", "E poi", "a sinistra").

    It is a letter before punctuation, an end, a reason, a second letter or its option's text.
    Letters in `plain` (capitals that are no word) are letters before any word.
    """
    guards = forms.guards()
    end = guards["end of whole"] if whole else guards["end"]
    if end.match(statement.after) or _joined(statement, item):
        return False
    if statement.letter in plain and statement.after.startswith(" "):
        return False
    return statement.letter.upper() not in item.named_by(statement.after)


def is_name(statement: LetterStatement, item: OptionTexts) -> bool:
    """Return True if the letter is part of a name ("B flat", "Team B", "B. B. King").

    A letter next to the same word as in an option's text is part of a name; a letter before its own
    option's text is not.
    """
    if statement.letter.upper() in item.named_by(statement.after):
        return False
    if statement.subject:
        word = forms.guards()["word before"].search(statement.before)
        named = forms.guards()["named before"].search(statement.before)
        return bool(named or (word and item.hold(word[1], statement.letter)))
    word = forms.guards()["next word"].match(statement.after)
    named = forms.guards()["named after"].match(statement.after)
    return bool(named or (word and item.hold(statement.letter, word[1])))


def named_option(statement: LetterStatement, item: OptionTexts) -> str | None:
    """Return the letter of the option whose whole text is the name around the letter, else None.

    "The answer is G major" gives the option "G major".
    """
    line = statement.before.rpartition("\n")[2] if statement.subject else ""
    name = fold(line + statement.letter + ("" if statement.subject else statement.after))
    return None if statement.after.endswith("?") else item.called(name)


def is_refuted(statement: LetterStatement, item: OptionTexts) -> bool:
    """Return True if the reply denies, doubts, supposes, asks or only reports the statement."""
    guards = forms.guards()
    if denies(statement.before):
        return True
    question = guards["asked verdict"] if statement.subject else guards["asked"]
    if question.match(statement.after) or (
        statement.subject and guards["restricted"].match(statement.after)
    ):
        return True
    letter = statement.letter.upper()
    own, text = dict(item.opened(statement.after)).get(letter), item.options.get(letter)
    if own is None and text and f"{fold(statement.after)} ".startswith(f"{text} "):
        return False  # its option's text, with more words
    after = statement.after[own or 0 :]
    return bool(guards["denied after"].match(after) or guards["not shown"].match(after))


def is_supposed(text: str, start: int, at: int) -> bool:
    """Return True if a conditional statement ("would be B") follows a supposition."""
    if not forms.guards()["conditional"].search(text, start, at):
        return False
    sentence = re.split(r"[.!?\n]", text[max(0, start - 2 * BEFORE) : start])[-1]
    return forms.guards()["supposed"].search(sentence) is not None


def is_quoted(text: str, start: int) -> bool:
    """Return True if a place is between quotation marks of its line."""
    line = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    return text.count('"', line, start) % 2 == 1 and '"' in text[start : end if end >= 0 else None]


def _seconds(statement: LetterStatement, item: OptionTexts) -> Iterator[str]:
    """Yield further letters of the statement: joined to the first, a correction, or a list."""
    guards = forms.guards()
    before = guards["pair before"] if statement.subject else guards["either before"]
    yield from (match["letter"] for match in before.finditer(statement.before))
    letter, rest = statement.letter.upper(), fold(statement.after)
    # The letter's option text may hold any letters; other text may name or list a second one.
    if not rest or rest != item.options.get(letter):
        yield _joined(statement, item) or letter
        if guards["marker"].match(statement.after):
            listed = (
                match["letter"].upper() for match in guards["listed"].finditer(statement.near)
            )
            yield from (other for other in listed if other > letter)


def _joined(statement: LetterStatement, item: OptionTexts) -> str | None:
    """Return a second letter right after the first: "or B", "e B", "/B", or ", B" before an end."""
    second = forms.guards()["pair"].match(statement.after)
    if not second:
        return None
    following: str | None = second["next"]  # without a joining word it may be an initial or a word
    if following and following.upper() not in item.options:
        return None
    return str(second["either"] or second["also"] or following).upper()


def without_article(option: str) -> str:
    """Return an option's folded text without an article at its beginning."""
    return _ARTICLE.sub("", option, count=1)
