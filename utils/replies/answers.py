"""A model's reply as a letter, or the reason why there is none (docs/metrics.md).

A reply is read without its reasoning, up to where another turn begins. A place that names a letter
is a statement, and statements have ranks (forms.yml has a row for each form):

- machine: `\\boxed{C}`, `<answer>C</answer>`, `{"answer": "C"}`, "Final answer: C";
- label: a label or a copula, "Answer: C", "la risposta è la C", in the languages of languages.yml;
- alone: the letter as the whole reply, its first line or its last, alone or before its own text;
- verdict: a verdict on letters, "C is correct", "A ✗, C ✓".

Only the best rank that occurs is read. Its statements must name one letter; if they do not, the
last counts where the words between say so ("wait", "anzi"), else the reply is unparsed. A lower
rank never changes the letter: it can only make the reply unparsed. An option's text stands for its
letter where it is the whole of a statement or of the reply. Denials, questions, suppositions,
quotations, hearsay and struck-out text are no statements. A letter is never guessed; guards keep
words and names from being read as one ("A man runs", "E poi", "G major", "Team B").
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import forms, refusals
from lmms_eval_tasks.utils.replies.denials import BEFORE, denies
from lmms_eval_tasks.utils.replies.letter_statements import (
    AFTER,
    LetterStatement,
    OptionTexts,
    Said,
    is_name,
    is_quoted,
    is_refuted,
    is_supposed,
    is_word,
    letters_of,
    named_option,
    statement_at,
    without_article,
)
from lmms_eval_tasks.utils.replies.reply_text import fold, has_words, normalise, shape

PLAIN_LETTERS = frozenset("BCDFGHJKLMNPQRSTUVWXYZ")  # A, E, I, O are words in one of the languages


class LetterChoice(NamedTuple):
    """A letter with the rank that read it, or None and None with the reason."""

    letter: str | None
    status: str  # ok | unparsed | empty | truncated | refused | model_error
    rule: str | None  # machine | label | alone | verdict | text


_UNPARSED = LetterChoice(None, "unparsed", None)


def read_choice(text: str, options: Sequence[str]) -> LetterChoice:
    """Return the letter that `text` chooses among `options` (option 0 is A).

    A refusal is looked for only in a reply in which nothing was found, so that "I'm sorry ...
    Answer: B" is B. Here "I cannot tell from the video" is one too: it chooses nothing, and must
    not pay (`refusals.declines`).

    Raises:
        ValueError: not 1 to 26 options. No text raises.
    """
    if not 1 <= len(options) <= len(string.ascii_uppercase):
        raise ValueError(f"{len(options)} options; letters exist for 1 to 26")
    reply = shape(text)
    if not reply.has_text:
        return LetterChoice(None, reply.status, None)
    texts = [normalise(option) for option in options]
    folded = dict(zip(string.ascii_uppercase, map(fold, texts), strict=False))
    item = OptionTexts(folded, max(map(len, texts)))
    visible = normalise(reply.text)
    for shown in (forms.guards("text")["quoted line"].sub("", reply.text), reply.text):
        lettered = _with_letters(normalise(shown), item)
        if choice := _read(lettered, item, _machine(lettered, item)):
            return choice
    if letter := _called(visible, item):
        return LetterChoice(letter, "ok", "text")
    declined = reply.status == "refused" or refusals.declines(visible, texts)
    return LetterChoice(None, "refused", None) if declined else _UNPARSED


def _called(text: str, item: OptionTexts) -> str | None:
    """The option that a reply gives in place of a letter: its whole text, or "Yes, he does."."""
    if text.endswith("?"):
        return None
    first = [x for x, end in item.opened(text) if text[end : end + 1] in (",", ".")]
    short = len(first) == 1 and len(item.options[first[0]].split()) < 3
    rest = f" {fold(text)} ".replace(f" {item.options[first[0]]} ", " ", 1) if short else ""
    only = short and not any(f" {option} " in rest for option in item.options.values())
    return first[0] if only else item.called(fold(text))


def _read(text: str, item: OptionTexts, machine: Sequence[Said] = ()) -> LetterChoice | None:
    """The choice by the best rank that occurs; None if no statement does.

    Args:
        machine: places in a machine's form. One without any letter says nothing; in all of them
            nothing else is a statement.
    """
    judged, is_all = _judged(text, item)
    listed = _listed(text)
    found = {
        "label": _outside(_find(text, item, "label"), (*machine, *listed)),
        # Not of a verdict on each letter.
        "alone": [] if is_all else _outside(_alone(text, item), (*machine, *listed)),
        "verdict": [
            *_outside(_find(text, item, "verdict"), machine),
            *(judged or _judged_items(text, listed, item)),
        ],
    }
    found = {"machine": [one for one in machine if one.says], **found}
    ranks = [rank for rank in found if found[rank]]
    if not ranks:
        return None
    *earlier, last = found[ranks[0]]
    if len(last.letters) != 1:
        return _UNPARSED
    others = [one for one in earlier if one.final or not last.final]
    opening = re.match(r"([A-Z]) [A-Z]\w", text)  # "C The answer ..."
    if first := item.named_by(text) or ({opening[1]} if opening else set()) & {*item.options}:
        found["text"] = [Said(frozenset(first), 0, 0)]
        ranks.append("text")
    for rank in ranks[1:] if not last.final else ():
        # Behind the statement only a letter alone makes it doubtful.
        always = rank == "alone" and ranks[0] != "machine"
        lower = [one for one in found[rank] if always or one.end <= last.start]
        lower = [one for one in lower if not forms.guards()["soft"].match(text, one.end)]
        if len({letter for one in lower for letter in one.letters}) == 1:
            others += lower[-1:]
    against = [one for one in others if one.letters != last.letters]
    correction, again = forms.guards()["correction"], forms.guards()["corrected letter"]
    doubted = not all(correction.search(text, one.end, last.end) for one in against)
    # Taken back behind it, in a form that is of a lower rank or of none.
    behind = [one for rank in ranks[1:] for one in found[rank] if one.start >= last.end]
    doubted |= any(
        one.letters != last.letters and correction.search(text, last.end, one.end) for one in behind
    )
    rest = text[last.end : last.end + AFTER]
    taken = {match["letter"] for match in again.finditer(rest)}
    for match in correction.finditer(rest):  # "No wait, G major", if that is an option's text
        taken |= item.named_by(rest[match.end() :].lstrip(" ,.:-"))
    if doubted or taken & {*item.options} - last.letters:
        return _UNPARSED
    return LetterChoice(min(last.letters), "ok", ranks[0])


def _listed(text: str) -> list[Said]:
    """The items of a list of options: lines that begin with A, B, ..., in this order.

    A list that was cut behind its first item is told by what announces it ("each option:").
    """
    guards = forms.guards()
    runs: list[list[Said]] = []
    expected = ""
    for match in guards["item"].finditer(text):
        letter, end = match["letter"], text.find("\n", match.end())
        if letter == "A":
            runs.append([])
        elif letter != expected:
            expected = ""
            continue
        runs[-1].append(Said(frozenset(letter), match.start(), end if end >= 0 else len(text)))
        expected = chr(ord(letter) + 1)

    def is_list(run: Sequence[Said]) -> bool:
        before = text[: run[0].start].rstrip().rpartition("\n")[2]
        return len(run) > 1 or guards["intro"].search(before) is not None

    return [one for run in runs if is_list(run) for one in run]


# --- statements by rank ---------------------------------------------------------------------------


def _machine(text: str, item: OptionTexts) -> list[Said]:
    """Places in a machine's form, in their order."""
    found = []
    for form in forms.of_rank("machine"):
        for match in form.pattern.finditer(text) if "content" in form.pattern.groupindex else ():
            content = match["content"] or re.sub("[][\"']", "", match.groupdict().get("list") or "")
            content = re.sub(r"\\[a-z]{2,8} ?\{([^{}]*)\}|\\[a-z]{2} ", r"\1", content).strip()
            choice = _read(content, item)
            letter = choice.letter if choice else item.called(fold(content))
            start, end = match.span()
            if form.name == "object":  # all between its braces, of which the second may be missing
                start, end = max(text.rfind("{", 0, start + 1), 0), text.find("}", end) + 1
            says = choice is not None or letter is not None
            opposite = forms.guards()["says the opposite"].search(text, start, end or len(text))
            if opposite or denies(text[max(0, start - BEFORE) : start]):
                letter = None
            found.append(Said(frozenset(letter or ""), start, end or len(text), says=says))
    found += _outside(_find(text, item, "machine"), tuple(found))
    return sorted(found, key=lambda one: one.end)


def _outside(statements: Iterable[Said], places: Sequence[Said]) -> list[Said]:
    """Statements whose letters stand in none of the places."""
    return [one for one in statements if not any(m.start < one.end <= m.end for m in places)]


def _find(text: str, item: OptionTexts, rank: str) -> Iterator[Said]:
    """Statements of the rank's forms in the order of their letters, without those denied."""
    found: dict[int, tuple[LetterStatement, int]] = {}
    heads: set[int] = set()
    said = fold(text)
    has_option = any(
        own in said for option in item.options.values() if (own := without_article(option))
    )
    for form in forms.of_rank(rank):
        for match in form.pattern.finditer(text) if "letter" in form.pattern.groupindex else ():
            at = match.start("letter")
            start = at if form.subject else match.start()
            one = statement_at(match["letter"], text, start, at + 1, item, subject=form.subject)
            plain = PLAIN_LETTERS if form.expects else frozenset[str]()
            no_letter = is_name(one, item) if form.subject else is_word(one, item, plain)
            if not no_letter or named_option(one, item):
                found.setdefault(at, (one, start))
                heads.add(match.start())
        for match in form.text.finditer(text) if form.text and has_option else ():
            opened = [] if match.start() in heads else item.opened(match["text"], without_article)
            if len(opened) == 1:
                [(letter, end)], at = opened, match.start("text")
                one = statement_at(letter, text, match.start(), at + end, item)
                found.setdefault(at, (one._replace(near=""), match.start()))
    for at in sorted(found):
        one, start = found[at]
        if not (is_refuted(one, item) or is_quoted(text, start) or is_supposed(text, start, at)):
            yield Said(letters_of(one, item), start, at + 1, rank == "machine")


def _alone(text: str, item: OptionTexts) -> list[Said]:
    """The letter as the whole text or its first line, as its own line, or as a closing word."""
    found = [*([first] if (first := _whole(text, item)) else []), *_find(text, item, "alone")]
    start = text.find("\n") + 1
    for line in text.split("\n")[1:]:
        if (one := _whole(line, item)) is not None:
            rest = line[one.end :]
            if not has_words(rest) or fold(rest) in {
                item.options.get(letter) for letter in one.letters
            }:
                found.append(one._replace(start=start, end=start + one.end))
        start += len(line) + 1
    return sorted(found, key=lambda one: one.end)


def _whole(text: str, item: OptionTexts) -> Said | None:
    """A letter that opens a text, with its option's text or a reason behind it or nothing."""
    match = forms.guards()["whole"].match(text)
    if not match or re.match(r"\{ ?[\"'][A-Z][\"'] ?:", text):  # an object with a key for each
        return None
    end = match.end("letter")
    one = statement_at(match["letter"], text, 0, end, item)
    bare_article = match["lead"] and not match["noun"] and one.letter.islower()  # "la a", "the a"
    if (
        bare_article
        or one.letter.upper() not in item.options
        or is_refuted(one, item)
        or is_word(one, item, frozenset(), whole=True)
        or is_name(one, item)
        or (has_words(one.after) and fold(text) in item.options.values())  # "A. Rossi" is a text
    ):
        return None
    line = text.partition("\n")[0]
    shown = line if re.search(r"[^\W\d]{2}", text) else text
    bare = re.findall(r"(?<!\w)[A-Z](?!\w)", shown)
    others = bare if not re.search(r"[^\W\d]{2}", shown) else ()  # letters and numbers alone
    return Said(letters_of(one, item) | (frozenset(others) & {*item.options}), 0, end)


def _judged(text: str, item: OptionTexts) -> tuple[list[Said], bool]:
    """Verdicts on letters: on all of them, and then whether that is all, or by check marks."""
    found = list(forms.guards()["judged"].finditer(text))
    letters = [match["letter"] or match["named"] or match["marked"] for match in found]
    marks = [bool(match["tick"] or match["mark"]) for match in found]
    kinds = [
        bool(m or match["right"] or match["first"]) for m, match in zip(marks, found, strict=True)
    ]
    judged = list(zip(letters, kinds, strict=True))
    right = [letter for letter, is_right in judged if is_right]
    whole = sorted(letters) == list(item.options) and not has_words(
        forms.guards()["judged"].sub("", text)
    )
    if not whole:  # words can be about anything: check marks alone
        right = [letter for letter, is_mark in zip(letters, marks, strict=True) if is_mark]
    contradicts = any((letter, False) in judged for letter in right)
    if not right or contradicts or not {*right} <= {*item.options}:
        return [], whole and not contradicts
    return [Said(frozenset(right), found[0].start(), found[-1].end())], whole


def _judged_items(text: str, listed: Sequence[Said], item: OptionTexts) -> list[Said]:
    """The one item of a list of all options that is affirmed, where all others are denied."""
    guards = forms.guards()
    kinds = [
        bool(guards["item affirmed"].search(text, one.start, one.end))
        - bool(guards["item denied"].search(text, one.start, one.end))
        for one in listed
    ]
    whole = len(listed) == len(item.options) and kinds.count(1) == 1 and 0 not in kinds
    return [listed[kinds.index(1)]] if whole else []


def _with_letters(text: str, item: OptionTexts) -> str:
    """A text in which ordinals are letters: "la seconda affermazione" is "opzione B"."""

    def lettered(match: re.Match[str]) -> str:
        name = str(match.lastgroup)  # o1, o2, ...
        place, word = int(name[1:]) - 1, match[name].lower()
        is_text = any(f" {word} " in f" {option} " for option in item.options.values())
        known = place < len(item.options) and not is_text
        return f"option {string.ascii_uppercase[place]}" if known else match[0]

    return forms.guards()["ordinal"].sub(lettered, text)
