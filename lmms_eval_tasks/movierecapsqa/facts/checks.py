"""What a person should look at in written questions: found by rules, told, and never dropped."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_WORD = re.compile(r"[^\W\d_](?:[\w'\u2019-]*\w)?")
_CONTENT = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_SENTENCE_END = re.compile(r"[.!?:\u2026]['\"\u201d)\]]*\s*$")
_TITLE = re.compile(r"\b(?:Capt|Col|Dr|Gen|Jr|Lt|Mrs?|Ms|Prof|Rev|Sgt|Sr|St|[A-Z])\.\s*$")
_SHORT = 4  # letters; shorter words are mostly articles and pronouns


def folded(text: str) -> str:
    """A text without what does not change it: case, signs, spaces, compatibility forms."""
    return " ".join(_CONTENT.findall(unicodedata.normalize("NFKC", text).casefold()))


def leaks(question: str, answer: str) -> bool:
    """Whether a question holds its answer: as it is, or all words of it that carry meaning.

    These are the words of at least four letters and the numbers, or all words if there are none.
    """
    asked, answered = folded(question), folded(answer)
    if not answered:
        return False
    if f" {answered} " in f" {asked} ":
        return True
    words = set(answered.split())
    content = {word for word in words if len(word) >= _SHORT or word.isdigit()} or words
    return content <= set(asked.split())


def names_left(question: str, facts: Sequence[str]) -> list[str]:
    """Words of a question that look like names of its segment's facts, in their order.

    Those that are capitalised in both. At the beginning of a sentence every word is: there one
    counts only if a fact has it capitalised elsewhere. Languages that capitalise all nouns have
    more words like that than names, and scripts without capitals have none.
    """
    anywhere: set[str] = set()
    inside: set[str] = set()
    for fact in facts:
        for word, first in _capitalised(fact):
            anywhere.add(word)
            if not first:
                inside.add(word)
    found = (
        word for word, first in _capitalised(question) if word in (inside if first else anywhere)
    )
    return list(dict.fromkeys(found))


def _capitalised(text: str) -> Iterator[tuple[str, bool]]:
    """Capitalised words of two letters or more, and whether a sentence begins with them."""
    for match in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", match[0])
        if len(word) > 1 and word[0].isupper():
            before = text[: match.start()].rstrip("\"'\u201c\u2018([ ")
            ended = _SENTENCE_END.search(before) and not _TITLE.search(before)
            yield word, not before or bool(ended)


def review(segment: Mapping[str, Any]) -> dict[str, list[str]]:
    """What to look at in a segment of the released form: lines by kind, kinds always the same."""
    found: dict[str, list[str]] = {"answer": [], "name": [], "repeated": []}
    questions = segment["questions"]
    often = Counter(folded(question["question"]) for question in questions)
    for question in questions:
        asked, place = question["question"], f"{segment['id']}/{question['qid']}"
        answer = question.get("datasetAnswer") or ""
        if leaks(asked, answer):
            found["answer"].append(f"{place}: {asked} -> {answer}")
        if names := names_left(asked, segment["facts"]):
            found["name"].append(f"{place}: {asked} ({', '.join(names)})")
        if often[folded(asked)] > 1:
            found["repeated"].append(f"{place}: {asked}")
    return found
