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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import forms, refusals
from lmms_eval_tasks.utils.replies.reply_text import fold, has_words, normalise, shape

BEFORE = 80  # characters looked at before a statement, for a negation
AFTER = 400  # characters looked at after a statement, beyond twice the longest option
PLAIN_LETTERS = frozenset("BCDFGHJKLMNPQRSTUVWXYZ")  # A, E, I, O are words in one of the languages
# Where an option's text may end: at no comma or point inside of a number.
_END = re.compile(r"[.,](?!\d)|[!?;:\n()\"<}✓✗]| - | (?:is|è|because|since|perch)\b")
_ARTICLE = re.compile(
    r"^(?:the|an?|la|il|lo|l|una?|uno|el|los|las|le|les|der|die|das|een|het|um|uma) "
)


class LetterChoice(NamedTuple):
    """A letter with the rank that read it, or None and None with the reason."""

    letter: str | None
    status: str  # ok | unparsed | empty | truncated | refused | model_error
    rule: str | None  # machine | label | alone | verdict | text


_UNPARSED = LetterChoice(None, "unparsed", None)


class _OptionTexts(NamedTuple):
    """The options as `fold` leaves them, by letter, and the size of the longest one."""

    options: Mapping[str, str]
    longest: int

    def opened(self, text: str, plain: Callable[[str], str] = str) -> list[tuple[str, int]]:
        """Options whose text opens `text`, up to the end of a clause or line; and where it ends.

        Args:
            plain: what of both is compared, `_bare` for a text without its article.
        """
        heads = _heads(text[: 2 * self.longest + AFTER], plain)
        return [(x, heads[own]) for x, one in self.options.items() if (own := plain(one)) in heads]

    def named_by(self, text: str) -> set[str]:
        """Letters of the options whose text opens `text` (`opened`)."""
        return {letter for letter, _ in self.opened(text)}

    def called(self, text: str) -> str | None:
        """The letter of the one option that a folded text is, article or not; None of several."""
        for plain in (str, _bare):
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


class _LetterStatement(NamedTuple):
    """One place where a letter is named: the letter as written, and the text on both sides.

    `near` is the part of `after` in which another letter makes the statement unclear.
    """

    letter: str
    before: str
    after: str
    near: str
    subject: bool = False  # the form "B is correct"


class _Said(NamedTuple):
    """What a statement comes to: one letter, several, or none that can be."""

    letters: frozenset[str]
    start: int
    end: int
    final: bool = False  # it says that it is the last word
    says: bool = True


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
    if not reply.there:
        return LetterChoice(None, reply.status, None)
    texts = [normalise(option) for option in options]
    folded = dict(zip(string.ascii_uppercase, map(fold, texts), strict=False))
    item = _OptionTexts(folded, max(map(len, texts)))
    visible = normalise(reply.text)
    for shown in (forms.guards("text")["quoted line"].sub("", reply.text), reply.text):
        lettered = _with_letters(normalise(shown), item)
        if choice := _read(lettered, item, _machine(lettered, item)):
            return choice
    if letter := _called(visible, item):
        return LetterChoice(letter, "ok", "text")
    declined = reply.status == "refused" or refusals.declines(visible, texts)
    return LetterChoice(None, "refused", None) if declined else _UNPARSED


def _called(text: str, item: _OptionTexts) -> str | None:
    """The option that a reply gives in place of a letter: its whole text, or "Yes, he does."."""
    if text.endswith("?"):
        return None
    first = [x for x, end in item.opened(text) if text[end : end + 1] in (",", ".")]
    short = len(first) == 1 and len(item.options[first[0]].split()) < 3
    rest = f" {fold(text)} ".replace(f" {item.options[first[0]]} ", " ", 1) if short else ""
    only = short and not any(f" {option} " in rest for option in item.options.values())
    return first[0] if only else item.called(fold(text))


def _read(text: str, item: _OptionTexts, machine: Sequence[_Said] = ()) -> LetterChoice | None:
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
        found["text"] = [_Said(frozenset(first), 0, 0)]
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


def _listed(text: str) -> list[_Said]:
    """The items of a list of options: lines that begin with A, B, ..., in this order.

    A list that was cut behind its first item is told by what announces it ("each option:").
    """
    guards = forms.guards()
    runs: list[list[_Said]] = []
    expected = ""
    for match in guards["item"].finditer(text):
        letter, end = match["letter"], text.find("\n", match.end())
        if letter == "A":
            runs.append([])
        elif letter != expected:
            expected = ""
            continue
        runs[-1].append(_Said(frozenset(letter), match.start(), end if end >= 0 else len(text)))
        expected = chr(ord(letter) + 1)

    def is_list(run: Sequence[_Said]) -> bool:
        before = text[: run[0].start].rstrip().rpartition("\n")[2]
        return len(run) > 1 or guards["intro"].search(before) is not None

    return [one for run in runs if is_list(run) for one in run]


# --- statements by rank ---------------------------------------------------------------------------


def _machine(text: str, item: _OptionTexts) -> list[_Said]:
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
            if opposite or _denies(text[max(0, start - BEFORE) : start]):
                letter = None
            found.append(_Said(frozenset(letter or ""), start, end or len(text), says=says))
    found += _outside(_find(text, item, "machine"), tuple(found))
    return sorted(found, key=lambda one: one.end)


def _outside(said: Iterable[_Said], places: Sequence[_Said]) -> list[_Said]:
    """Statements whose letters stand in none of the places."""
    return [one for one in said if not any(m.start < one.end <= m.end for m in places)]


def _find(text: str, item: _OptionTexts, rank: str) -> Iterator[_Said]:
    """Statements of the rank's forms in the order of their letters, without those denied."""
    found: dict[int, tuple[_LetterStatement, int]] = {}
    heads: set[int] = set()
    said = fold(text)
    has_option = any(own in said for option in item.options.values() if (own := _bare(option)))
    for form in forms.of_rank(rank):
        for match in form.pattern.finditer(text) if "letter" in form.pattern.groupindex else ():
            at = match.start("letter")
            start = at if form.subject else match.start()
            one = _statement(match["letter"], text, start, at + 1, item, subject=form.subject)
            plain = PLAIN_LETTERS if form.expects else frozenset[str]()
            is_word = _is_name(one, item) if form.subject else _is_word(one, item, plain)
            if not is_word or _named(one, item):
                found.setdefault(at, (one, start))
                heads.add(match.start())
        for match in form.text.finditer(text) if form.text and has_option else ():
            opened = [] if match.start() in heads else item.opened(match["text"], _bare)
            if len(opened) == 1:
                [(letter, end)], at = opened, match.start("text")
                one = _statement(letter, text, match.start(), at + end, item)
                found.setdefault(at, (one._replace(near=""), match.start()))
    for at in sorted(found):
        one, start = found[at]
        if not (_is_denied(one, item) or _is_quoted(text, start) or _is_supposed(text, start, at)):
            yield _Said(_letters(one, item), start, at + 1, rank == "machine")


def _statement(
    letter: str, text: str, start: int, end: int, item: _OptionTexts, *, subject: bool = False
) -> _LetterStatement:
    after = text[end : end + 2 * item.longest + AFTER]
    near = "\n".join(after.split("\n", 2)[:2])  # its own line and the next
    return _LetterStatement(letter, text[max(0, start - BEFORE) : start], after, near, subject)


def _alone(text: str, item: _OptionTexts) -> list[_Said]:
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


def _whole(text: str, item: _OptionTexts) -> _Said | None:
    """A letter that opens a text, with its option's text or a reason behind it or nothing."""
    match = forms.guards()["whole"].match(text)
    if not match or re.match(r"\{ ?[\"'][A-Z][\"'] ?:", text):  # an object with a key for each
        return None
    end = match.end("letter")
    one = _statement(match["letter"], text, 0, end, item)
    bare_article = match["lead"] and not match["noun"] and one.letter.islower()  # "la a", "the a"
    if (
        bare_article
        or one.letter.upper() not in item.options
        or _is_denied(one, item)
        or _is_word(one, item, frozenset(), whole=True)
        or _is_name(one, item)
        or (has_words(one.after) and fold(text) in item.options.values())  # "A. Rossi" is a text
    ):
        return None
    line = text.partition("\n")[0]
    shown = line if re.search(r"[^\W\d]{2}", text) else text
    bare = re.findall(r"(?<!\w)[A-Z](?!\w)", shown)
    others = bare if not re.search(r"[^\W\d]{2}", shown) else ()  # letters and numbers alone
    return _Said(_letters(one, item) | (frozenset(others) & {*item.options}), 0, end)


def _judged(text: str, item: _OptionTexts) -> tuple[list[_Said], bool]:
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
    return [_Said(frozenset(right), found[0].start(), found[-1].end())], whole


def _judged_items(text: str, listed: Sequence[_Said], item: _OptionTexts) -> list[_Said]:
    """The one item of a list of all options that is affirmed, where all others are denied."""
    guards = forms.guards()
    kinds = [
        bool(guards["item affirmed"].search(text, one.start, one.end))
        - bool(guards["item denied"].search(text, one.start, one.end))
        for one in listed
    ]
    whole = len(listed) == len(item.options) and kinds.count(1) == 1 and 0 not in kinds
    return [listed[kinds.index(1)]] if whole else []


# --- one statement --------------------------------------------------------------------------------


def _letters(one: _LetterStatement, item: _OptionTexts) -> frozenset[str]:
    """The letters that a statement names; none if out of range, or against its own text."""
    if _is_name(one, item) and (named := _named(one, item)):
        return frozenset(named)
    letter, texts = one.letter.upper(), item.named_by(one.after)
    whole = item.named_by(one.letter + one.after)
    if len(whole) == 1 and not texts and not one.subject:  # "Answer: B > A", an option's text
        return frozenset(whole)
    contradicts = bool(texts) and letter not in texts  # "A) text of B"
    if contradicts or letter not in item.options or _is_name(one, item):
        return frozenset()
    return frozenset({letter, *_seconds(one, item)})


def _is_word(
    one: _LetterStatement, item: _OptionTexts, plain: frozenset[str], *, whole: bool = False
) -> bool:
    """Article guard: whether the letter is a word of the sentence ("A man", "E poi", "a sinistra").

    It is a letter if punctuation, the end, a reason or a second letter follows, or its own
    option's text; or any word, for the letters in `plain` (capitals that are no word).
    """
    guards = forms.guards()
    end = guards["end of whole"] if whole else guards["end"]
    if end.match(one.after) or _joined(one, item):
        return False
    if one.letter in plain and one.after.startswith(" "):
        return False
    return one.letter.upper() not in item.named_by(one.after)


def _is_name(one: _LetterStatement, item: _OptionTexts) -> bool:
    """Whether the letter is part of a name ("B flat", "Team B", "B. B. King").

    So it is if it stands beside the same word in an option's text; not if its own text follows.
    """
    if one.letter.upper() in item.named_by(one.after):
        return False
    if one.subject:
        word = forms.guards()["word before"].search(one.before)
        named = forms.guards()["named before"].search(one.before)
        return bool(named or (word and item.hold(word[1], one.letter)))
    word = forms.guards()["next word"].match(one.after)
    named = forms.guards()["named after"].match(one.after)
    return bool(named or (word and item.hold(one.letter, word[1])))


def _named(one: _LetterStatement, item: _OptionTexts) -> str | None:
    """The option whose whole text is the name that holds the letter ("The answer is G major")."""
    line = one.before.rpartition("\n")[2] if one.subject else ""
    name = fold(line + one.letter + ("" if one.subject else one.after))
    return None if one.after.endswith("?") else item.called(name)


def _is_denied(one: _LetterStatement, item: _OptionTexts) -> bool:
    """Whether the statement denies, doubts, supposes, asks, or tells what somebody else says."""
    guards = forms.guards()
    if _denies(one.before):
        return True
    question = guards["asked verdict"] if one.subject else guards["asked"]
    if question.match(one.after) or (one.subject and guards["restricted"].match(one.after)):
        return True
    letter = one.letter.upper()
    own, text = dict(item.opened(one.after)).get(letter), item.options.get(letter)
    if own is None and text and f"{fold(one.after)} ".startswith(f"{text} "):
        return False  # its own option's text, which goes on
    after = one.after[own or 0 :]
    return bool(guards["denied after"].match(after) or guards["not shown"].match(after))


def _denies(before: str) -> bool:
    """Whether the words in front of a statement deny or suppose it, or make it somebody else's."""
    guards, before = forms.guards(), before[-BEFORE:]
    clause = guards["clause end"].split(before)[-1]
    sentence = re.split(r"[.!?\n]", before)[-1]
    kinds = ("denied before", "supposed", "hearsay", "of each", "whose")
    return any(guards[kind].search(clause) for kind in kinds) or bool(
        guards["elsewhere"].search(sentence)
    )


def _is_supposed(text: str, start: int, at: int) -> bool:
    """Whether a statement in the conditional ("would be B") stands behind a supposition."""
    if not forms.guards()["conditional"].search(text, start, at):
        return False
    sentence = re.split(r"[.!?\n]", text[max(0, start - 2 * BEFORE) : start])[-1]
    return forms.guards()["supposed"].search(sentence) is not None


def _is_quoted(text: str, start: int) -> bool:
    """Whether a place stands between quotation marks, in its own line."""
    line = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    return text.count('"', line, start) % 2 == 1 and '"' in text[start : end if end >= 0 else None]


def _seconds(one: _LetterStatement, item: _OptionTexts) -> Iterator[str]:
    """Other letters that the statement names: joined to the first, a correction, or a list."""
    guards = forms.guards()
    before = guards["pair before"] if one.subject else guards["either before"]
    yield from (match["letter"] for match in before.finditer(one.before))
    letter, rest = one.letter.upper(), fold(one.after)
    # Its own option's text may hold any letters; other text may name or list a second one.
    if not rest or rest != item.options.get(letter):
        yield _joined(one, item) or letter
        if guards["marker"].match(one.after):
            listed = (match["letter"].upper() for match in guards["listed"].finditer(one.near))
            yield from (other for other in listed if other > letter)


def _joined(one: _LetterStatement, item: _OptionTexts) -> str | None:
    """A second letter right after the first: "or B", "e B", "/B", or ", B" and what ends there."""
    second = forms.guards()["pair"].match(one.after)
    if not second:
        return None
    following: str | None = second["next"]  # nothing joins it, so it may be an initial or a word
    if following and following.upper() not in item.options:
        return None
    return str(second["either"] or second["also"] or following).upper()


def _with_letters(text: str, item: _OptionTexts) -> str:
    """A text in which ordinals are letters: "la seconda affermazione" is "opzione B"."""

    def lettered(match: re.Match[str]) -> str:
        name = str(match.lastgroup)  # o1, o2, ...
        place, word = int(name[1:]) - 1, match[name].lower()
        is_text = any(f" {word} " in f" {option} " for option in item.options.values())
        known = place < len(item.options) and not is_text
        return f"option {string.ascii_uppercase[place]}" if known else match[0]

    return forms.guards()["ordinal"].sub(lettered, text)


def _bare(option: str) -> str:
    return _ARTICLE.sub("", option, count=1)


# --- what every reply goes through before it is read ----------------------------------------------


def is_denied(before: str, after: str = "") -> bool:
    """Whether a statement is denied or supposed by the words around it, or asked.

    Args:
        before: the text in front of it, normalised; its last `BEFORE` characters count.
        after: the text behind it.
    """
    guards = forms.guards()
    return bool(
        _denies(before) or guards["denied after"].match(after) or guards["asked"].match(after)
    )
