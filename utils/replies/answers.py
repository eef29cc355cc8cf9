"""The letter that a model's reply chooses, or the reason why there is none (docs/metrics.md).

Reasoning is removed first, and so is any further turn of a conversation. A place in the rest that
names a letter is a statement. Statements have ranks, the best first (forms.yml lists their forms):

- machine: `\\boxed{C}`, `<answer>C</answer>`, `{"answer": "C"}`, "Final answer: C";
- label: a label or a copula, "Answer: C", "la risposta è la C", in the languages of languages.yml;
- alone: the letter as the whole reply, its first line or its last line, alone or before its
  option's text;
- verdict: a verdict on letters, "C is correct", "A ✗, C ✓".

Only the best rank that occurs decides. Its statements must name the same letter. If they do not,
the last one counts if words between them announce a correction ("wait", "anzi"); otherwise the
reply is unparsed. A statement of a lower rank never changes the letter, but it can contradict it
and so make the reply unparsed. The text of an option means its letter if it is a whole statement or
the whole reply. Denials, questions, suppositions, quotations, hearsay and struck-out text are no
statements. A letter is never guessed; rules (`guards`) tell letters from words and names ("A man
runs", "E poi", "G major", "Team B").
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

# Letters that are no word in any of the languages; A, E, I and O are.
PLAIN_LETTERS = frozenset("BCDFGHJKLMNPQRSTUVWXYZ")


class LetterChoice(NamedTuple):
    """The result of reading a reply: a letter, or a status that says why there is none."""

    letter: str | None
    status: str  # ok | unparsed | empty | truncated | refused | model_error
    rule: str | None  # rank of the statement: machine | label | alone | verdict | text; or None


_UNPARSED = LetterChoice(None, "unparsed", None)


def read_choice(text: str, options: Sequence[str]) -> LetterChoice:
    """Return the letter that the reply `text` chooses among `options` (option 0 is A).

    A reply is a refusal only if it has no statement, so "I'm sorry ... Answer: B" is B. "I cannot
    tell from the video" is a refusal, too, since it chooses no option and must not score
    (`refusals.declines`). No text raises an exception.

    Raises:
        ValueError: the number of options is not 1 to 26.
    """
    if not 1 <= len(options) <= len(string.ascii_uppercase):
        raise ValueError(f"{len(options)} options; letters exist for 1 to 26")
    reply = shape(text)
    if not reply.has_text:
        return LetterChoice(None, reply.status, None)
    if letter := _letter_alone(reply.text, options):
        return LetterChoice(letter, "ok", "alone")
    texts = [normalise(option) for option in options]
    folded = dict(zip(string.ascii_uppercase, map(fold, texts), strict=False))
    item = OptionTexts(folded, max(map(len, texts)))
    visible = normalise(reply.text)
    for shown in (forms.guards("text")["quoted line"].sub("", reply.text), reply.text):
        lettered = _with_letters(normalise(shown), item)
        if choice := _ranked(lettered, item, _machine(lettered, item)):
            return choice
    if called := _called(visible, item):
        return LetterChoice(called, "ok", "text")
    declined = reply.status == "refused" or refusals.declines(visible, texts)
    return LetterChoice(None, "refused", None) if declined else _UNPARSED


def _letter_alone(text: str, options: Sequence[str]) -> str:
    """Return the letter of a reply such as "A" or "A."; "" for any other reply.

    Most replies are so, and the rules for all others come to the same at 30 times the cost.
    """
    letter = text.strip().removesuffix(".")
    is_letter = letter in string.ascii_uppercase[: len(options)] and len(letter) == 1
    # An option's own text may be a letter or a short word: then these rules do not hold.
    return letter if is_letter and all(len(option) > 3 for option in options) else ""


def _called(text: str, item: OptionTexts) -> str | None:
    """Return the letter of the option whose text is the reply ("Yes, he does."); else None."""
    if text.endswith("?"):
        return None
    first = [x for x, end in item.opened(text) if text[end : end + 1] in (",", ".")]
    short = len(first) == 1 and len(item.options[first[0]].split()) < 3
    rest = f" {fold(text)} ".replace(f" {item.options[first[0]]} ", " ", 1) if short else ""
    only = short and not any(f" {option} " in rest for option in item.options.values())
    return first[0] if only else item.called(fold(text))


def _ranked(text: str, item: OptionTexts, machine: Sequence[Said] = ()) -> LetterChoice | None:
    """Return the choice by the best rank that occurs; None if there is no statement.

    Args:
        text: the reply, normalised.
        item: the options' texts.
        machine: the places of the rank "machine". A place that names no letter is no statement.
            Nothing else inside these places is a statement.
    """
    judged, is_all = _judged(text, item)
    listed = _listed(text)
    by_rank = {
        "label": _outside(_find(text, item, "label"), (*machine, *listed)),
        # If all letters have verdicts, no letter is a statement of the rank "alone".
        "alone": [] if is_all else _outside(_alone(text, item), (*machine, *listed)),
        "verdict": [
            *_outside(_find(text, item, "verdict"), machine),
            *(judged or _judged_items(text, listed, item)),
        ],
    }
    by_rank = {"machine": [place for place in machine if place.says], **by_rank}
    ranks = [rank for rank in by_rank if by_rank[rank]]
    if not ranks:
        return None
    *earlier, last = by_rank[ranks[0]]
    if len(last.letters) != 1:
        return _UNPARSED
    others = [place for place in earlier if place.final or not last.final]
    opening = re.match(r"([A-Z]) [A-Z]\w", text)  # "C The answer ..."
    if first := item.named_by(text) or ({opening[1]} if opening else set()) & {*item.options}:
        by_rank["text"] = [Said(frozenset(first), 0, 0)]
        ranks.append("text")
    for rank in ranks[1:] if not last.final else ():
        # Behind the statement, only the rank "alone" can contradict it.
        always = rank == "alone" and ranks[0] != "machine"
        lower = [place for place in by_rank[rank] if always or place.end <= last.start]
        lower = [place for place in lower if not forms.guards()["soft"].match(text, place.end)]
        if len({letter for place in lower for letter in place.letters}) == 1:
            others += lower[-1:]
    against = [place for place in others if place.letters != last.letters]
    correction, again = forms.guards()["correction"], forms.guards()["corrected letter"]
    doubted = not all(correction.search(text, place.end, last.end) for place in against)
    # A later correction by a statement of a lower rank, or by a letter in no form.
    behind = [place for rank in ranks[1:] for place in by_rank[rank] if place.start >= last.end]
    doubted |= any(
        place.letters != last.letters and correction.search(text, last.end, place.end)
        for place in behind
    )
    rest = text[last.end : last.end + AFTER]
    taken = {match["letter"] for match in again.finditer(rest)}
    for match in correction.finditer(rest):  # "No wait, G major", if that is an option's text
        taken |= item.named_by(rest[match.end() :].lstrip(" ,.:-"))
    if doubted or taken & {*item.options} - last.letters:
        return _UNPARSED
    return LetterChoice(min(last.letters), "ok", ranks[0])


def _listed(text: str) -> list[Said]:
    """Return the items of lists of options: consecutive lines that begin with A, B, ...

    A single line is such a list only if the line before it announces one ("each option:").
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
    """Return the places of the rank "machine", in order, also those that name no letter."""
    places = []
    for form in forms.of_rank("machine"):
        for match in form.pattern.finditer(text) if "content" in form.pattern.groupindex else ():
            content = match["content"] or re.sub("[][\"']", "", match.groupdict().get("list") or "")
            content = re.sub(r"\\[a-z]{2,8} ?\{([^{}]*)\}|\\[a-z]{2} ", r"\1", content).strip()
            choice = _ranked(content, item)
            letter = choice.letter if choice else item.called(fold(content))
            start, end = match.span()
            if form.name == "object":  # the whole object; its closing brace may be missing
                start, end = max(text.rfind("{", 0, start + 1), 0), text.find("}", end) + 1
            says = choice is not None or letter is not None
            opposite = forms.guards()["says the opposite"].search(text, start, end or len(text))
            if opposite or denies(text[max(0, start - BEFORE) : start]):
                letter = None
            places.append(Said(frozenset(letter or ""), start, end or len(text), says=says))
    places += _outside(_find(text, item, "machine"), tuple(places))
    return sorted(places, key=lambda place: place.end)


def _outside(statements: Iterable[Said], places: Sequence[Said]) -> list[Said]:
    """Return the statements whose letters are in none of the places."""
    return [one for one in statements if not any(m.start < one.end <= m.end for m in places)]


def _find(text: str, item: OptionTexts, rank: str) -> Iterator[Said]:
    """Yield the statements of a rank by their places, without denied, quoted or supposed ones."""
    statements: dict[int, tuple[LetterStatement, int]] = {}
    heads: set[int] = set()
    folded = fold(text)
    has_option = any(
        bare in folded for option in item.options.values() if (bare := without_article(option))
    )
    for form in forms.of_rank(rank):
        for match in form.pattern.finditer(text) if "letter" in form.pattern.groupindex else ():
            at = match.start("letter")
            start = at if form.subject else match.start()
            stmt = statement_at(match["letter"], text, start, at + 1, item, subject=form.subject)
            plain = PLAIN_LETTERS if form.expects else frozenset[str]()
            no_letter = is_name(stmt, item) if form.subject else is_word(stmt, item, plain)
            if not no_letter or named_option(stmt, item):
                statements.setdefault(at, (stmt, start))
                heads.add(match.start())
        for match in form.text.finditer(text) if form.text and has_option else ():
            opened = [] if match.start() in heads else item.opened(match["text"], without_article)
            if len(opened) == 1:
                [(letter, end)], at = opened, match.start("text")
                stmt = statement_at(letter, text, match.start(), at + end, item)
                statements.setdefault(at, (stmt._replace(near=""), match.start()))
    for at in sorted(statements):
        stmt, start = statements[at]
        if not (is_refuted(stmt, item) or is_quoted(text, start) or is_supposed(text, start, at)):
            yield Said(letters_of(stmt, item), start, at + 1, rank == "machine")


def _alone(text: str, item: OptionTexts) -> list[Said]:
    """Return the statements of the rank "alone", in the order of their ends."""
    places = [*([first] if (first := _opening(text, item)) else []), *_find(text, item, "alone")]
    start = text.find("\n") + 1
    for line in text.split("\n")[1:]:
        if (place := _opening(line, item)) is not None:
            rest = line[place.end :]
            if not has_words(rest) or fold(rest) in {
                item.options.get(letter) for letter in place.letters
            }:
                places.append(place._replace(start=start, end=start + place.end))
        start += len(line) + 1
    return sorted(places, key=lambda place: place.end)


def _opening(text: str, item: OptionTexts) -> Said | None:
    """Return the letter that opens a text, alone or before its option's text or a reason."""
    match = forms.guards()["whole"].match(text)
    if not match or re.match(r"\{ ?[\"'][A-Z][\"'] ?:", text):  # an object with a key for each
        return None
    end = match.end("letter")
    stmt = statement_at(match["letter"], text, 0, end, item)
    bare_article = match["lead"] and not match["noun"] and stmt.letter.islower()  # "la a", "the a"
    if (
        bare_article
        or stmt.letter.upper() not in item.options
        or is_refuted(stmt, item)
        or is_word(stmt, item, frozenset(), whole=True)
        or is_name(stmt, item)
        or (has_words(stmt.after) and fold(text) in item.options.values())  # "A. Rossi" is a text
    ):
        return None
    line = text.partition("\n")[0]
    shown = line if re.search(r"[^\W\d]{2}", text) else text
    bare = re.findall(r"(?<!\w)[A-Z](?!\w)", shown)
    others = bare if not re.search(r"[^\W\d]{2}", shown) else ()  # letters and numbers alone
    return Said(letters_of(stmt, item) | (frozenset(others) & {*item.options}), 0, end)


def _judged(text: str, item: OptionTexts) -> tuple[list[Said], bool]:
    """Return the verdicts on letters, such as "A is wrong, B is right" or "A ✗, B ✓".

    Words count only if the text has verdicts on all letters and nothing else; otherwise only check
    marks count, since words may be about anything.

    Returns:
        The statements, and True if the text has verdicts on all letters and nothing else.
    """
    matches = list(forms.guards()["judged"].finditer(text))
    letters = [match["letter"] or match["named"] or match["marked"] for match in matches]
    marks = [bool(match["tick"] or match["mark"]) for match in matches]
    kinds = [
        bool(m or match["right"] or match["first"]) for m, match in zip(marks, matches, strict=True)
    ]
    judged = list(zip(letters, kinds, strict=True))
    right = [letter for letter, is_right in judged if is_right]
    whole = sorted(letters) == list(item.options) and not has_words(
        forms.guards()["judged"].sub("", text)
    )
    if not whole:  # words may be about anything: check marks only
        right = [letter for letter, is_mark in zip(letters, marks, strict=True) if is_mark]
    contradicts = any((letter, False) in judged for letter in right)
    if not right or contradicts or not {*right} <= {*item.options}:
        return [], whole and not contradicts
    return [Said(frozenset(right), matches[0].start(), matches[-1].end())], whole


def _judged_items(text: str, listed: Sequence[Said], item: OptionTexts) -> list[Said]:
    """Return the affirmed item of a list of options; [] unless all other items are denied."""
    guards = forms.guards()
    kinds = [
        bool(guards["item affirmed"].search(text, one.start, one.end))
        - bool(guards["item denied"].search(text, one.start, one.end))
        for one in listed
    ]
    whole = len(listed) == len(item.options) and kinds.count(1) == 1 and 0 not in kinds
    return [listed[kinds.index(1)]] if whole else []


def _with_letters(text: str, item: OptionTexts) -> str:
    """Return a text with letters in place of ordinals: "la seconda affermazione" is "opzione B"."""

    def lettered(match: re.Match[str]) -> str:
        name = str(match.lastgroup)  # o1, o2, ...
        place, word = int(name[1:]) - 1, match[name].lower()
        is_text = any(f" {word} " in f" {option} " for option in item.options.values())
        known = place < len(item.options) and not is_text
        return f"option {string.ascii_uppercase[place]}" if known else match[0]

    return forms.guards()["ordinal"].sub(lettered, text)
