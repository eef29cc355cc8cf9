"""One place of a reply that names a letter: which letters it names, or why it names none.

A letter may be a word of the sentence ("A man", "E poi") or a part of a name ("G major"); a
statement may be denied, asked, supposed, quoted or told of somebody else. Which places there are,
and which of them count: answers.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import forms
from lmms_eval_tasks.utils.replies.denials import BEFORE, denies
from lmms_eval_tasks.utils.replies.reply_text import fold

AFTER = 400  # characters looked at after a statement, beyond twice the longest option
# Where an option's text may end: at no comma or point inside of a number.
_END = re.compile(r"[.,](?!\d)|[!?;:\n()\"<}✓✗]| - | (?:is|è|because|since|perch)\b")
_ARTICLE = re.compile(
    r"^(?:the|an?|la|il|lo|l|una?|uno|el|los|las|le|les|der|die|das|een|het|um|uma) "
)


class OptionTexts(NamedTuple):
    """The options as `fold` leaves them, by letter, and the size of the longest one."""

    options: Mapping[str, str]
    longest: int

    def opened(self, text: str, plain: Callable[[str], str] = str) -> list[tuple[str, int]]:
        """Options whose text opens `text`, up to the end of a clause or line; and where it ends.

        Args:
            plain: what of both is compared, `without_article` for a text without its article.
        """
        heads = _heads(text[: 2 * self.longest + AFTER], plain)
        return [(x, heads[own]) for x, one in self.options.items() if (own := plain(one)) in heads]

    def named_by(self, text: str) -> set[str]:
        """Letters of the options whose text opens `text` (`opened`)."""
        return {letter for letter, _ in self.opened(text)}

    def called(self, text: str) -> str | None:
        """The letter of the one option that a folded text is, article or not; None of several."""
        for plain in (str, without_article):
            found = [x for x, one in self.options.items() if one and plain(one) == plain(text)]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def hold(self, first: str, second: str) -> bool:
        """Whether these two words stand side by side in an option's text."""
        pair = f" {fold(first)} {fold(second)} "
        return any(pair in f" {option} " for option in self.options.values())


@lru_cache(maxsize=256)  # several rules ask of one statement, and forms meet in one place
def _heads(window: str, plain: Callable[[str], str]) -> Mapping[str, int]:
    """What opens a text up to the end of each clause or line, folded; and where it ends."""
    ends = [match.start() for match in _END.finditer(window)][:16]
    heads = {plain(fold(window[:end])): end for end in (len(window), *reversed(ends))}
    heads.pop("", None)
    return heads


class LetterStatement(NamedTuple):
    """One place where a letter is named: the letter as written, and the text on both sides.

    `near` is the part of `after` in which another letter makes the statement unclear.
    """

    letter: str
    before: str
    after: str
    near: str
    subject: bool = False  # the form "B is correct"


class Said(NamedTuple):
    """What a statement comes to: one letter, several, or none that can be."""

    letters: frozenset[str]
    start: int
    end: int
    final: bool = False  # it says that it is the last word
    says: bool = True


def statement_at(
    letter: str, text: str, start: int, end: int, item: OptionTexts, *, subject: bool = False
) -> LetterStatement:
    """The statement whose letter ends at `end`, and which begins at `start`."""
    after = text[end : end + 2 * item.longest + AFTER]
    near = "\n".join(after.split("\n", 2)[:2])  # its own line and the next
    return LetterStatement(letter, text[max(0, start - BEFORE) : start], after, near, subject)


def letters_of(statement: LetterStatement, item: OptionTexts) -> frozenset[str]:
    """The letters that a statement names; none if out of range, or against its own text."""
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
    """Article guard: whether the letter is a word of the sentence ("A man", "E poi", "a sinistra").

    It is a letter if punctuation, the end, a reason or a second letter follows, or its own
    option's text; or any word, for the letters in `plain` (capitals that are no word).
    """
    guards = forms.guards()
    end = guards["end of whole"] if whole else guards["end"]
    if end.match(statement.after) or _joined(statement, item):
        return False
    if statement.letter in plain and statement.after.startswith(" "):
        return False
    return statement.letter.upper() not in item.named_by(statement.after)


def is_name(statement: LetterStatement, item: OptionTexts) -> bool:
    """Whether the letter is part of a name ("B flat", "Team B", "B. B. King").

    So it is if it stands beside the same word in an option's text; not if its own text follows.
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
    """The option whose whole text is the name that holds the letter ("The answer is G major")."""
    line = statement.before.rpartition("\n")[2] if statement.subject else ""
    name = fold(line + statement.letter + ("" if statement.subject else statement.after))
    return None if statement.after.endswith("?") else item.called(name)


def is_refuted(statement: LetterStatement, item: OptionTexts) -> bool:
    """Whether the statement denies, doubts, supposes, asks, or tells what somebody else says."""
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
        return False  # its own option's text, which goes on
    after = statement.after[own or 0 :]
    return bool(guards["denied after"].match(after) or guards["not shown"].match(after))


def is_supposed(text: str, start: int, at: int) -> bool:
    """Whether a statement in the conditional ("would be B") stands behind a supposition."""
    if not forms.guards()["conditional"].search(text, start, at):
        return False
    sentence = re.split(r"[.!?\n]", text[max(0, start - 2 * BEFORE) : start])[-1]
    return forms.guards()["supposed"].search(sentence) is not None


def is_quoted(text: str, start: int) -> bool:
    """Whether a place stands between quotation marks, in its own line."""
    line = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    return text.count('"', line, start) % 2 == 1 and '"' in text[start : end if end >= 0 else None]


def _seconds(statement: LetterStatement, item: OptionTexts) -> Iterator[str]:
    """Other letters that the statement names: joined to the first, a correction, or a list."""
    guards = forms.guards()
    before = guards["pair before"] if statement.subject else guards["either before"]
    yield from (match["letter"] for match in before.finditer(statement.before))
    letter, rest = statement.letter.upper(), fold(statement.after)
    # Its own option's text may hold any letters; other text may name or list a second one.
    if not rest or rest != item.options.get(letter):
        yield _joined(statement, item) or letter
        if guards["marker"].match(statement.after):
            listed = (
                match["letter"].upper() for match in guards["listed"].finditer(statement.near)
            )
            yield from (other for other in listed if other > letter)


def _joined(statement: LetterStatement, item: OptionTexts) -> str | None:
    """A second letter right after the first: "or B", "e B", "/B", or ", B" and what ends there."""
    second = forms.guards()["pair"].match(statement.after)
    if not second:
        return None
    following: str | None = second["next"]  # nothing joins it, so it may be an initial or a word
    if following and following.upper() not in item.options:
        return None
    return str(second["either"] or second["also"] or following).upper()


def without_article(option: str) -> str:
    """An option's folded text without the article that it begins with."""
    return _ARTICLE.sub("", option, count=1)
