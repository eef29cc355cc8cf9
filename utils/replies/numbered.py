"""What a reply says of numbered units (HAVEN; paper, C): their order, or the clips of sentences.

Read strictly in meaning, not in typography. A reading has a `status`: ok; unparsed; empty, refused,
truncated or model_error where nothing was read; and `violations` of the form asked for, by kind,
those that occurred (`other_form`, `extra_text` and `nothing_read` are 1, others are counts).

An order ("Shot 3 > Shot 1 > Shot 2"):
1. A chain is units joined by ">" or an arrow. Of several the one that names most units counts, and
   of those the last: models correct themselves, and explain themselves with parts of the order.
2. Without a chain the whole reply may be a list, after one line that announces it: units with
   commas or a JSON array, or one unit a line, numbered 1, 2, 3, ... or not. Nothing else may stand
   in it, since "Shot 1: a man enters" on every line describes and does not order.
3. Numbers without the unit's name count in a chain that ends its line, and in lists with commas.
A chain with a tie ("Shot 1 = Shot 2 > ...", "Shot 3 > Shot 1, Shot 2"), one that is denied, asked
or announced as going from last to first is not read.

Clips of sentences ("Summary 2: Clip 1, Clip 4"):
- A sentence's statement is what follows its name on the line, or on the lines below if nothing
  does. It may hold one list of clips, with words around it that name no other clip. "Clip 1-3" is
  clips 1, 2 and 3. "None" grounds the sentence to nothing.
- Numbers without "Clip" count if they are all that the statement holds.
- Of several statements on a sentence the last that can be read counts. A list that is denied or
  asked about is not read.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import answers
from lmms_eval_tasks.utils.replies.answers import Reply

Violations = dict[str, int]


class Order(NamedTuple):
    """`units`: distinct numbers of 1..n, first one first; status ok says that all n are there."""

    units: tuple[int, ...]
    status: str
    violations: Violations  # also `unknown`, `repeated` and `missing` units


class Alignment(NamedTuple):
    """`sets`: of each sentence the clips given, empty without a statement; ok: all have one.

    A number that no clip has stays in the set: what was given is scored.
    """

    sets: tuple[frozenset[int], ...]
    status: str
    # Also `missing` and `unknown` sentences, `repeated` statements, `unknown_clips` and
    # `repeated_clips`.
    violations: Violations


def nothing(reply: Reply, **more: int) -> tuple[str, Violations]:
    """Status and violations of a reply in which nothing was read."""
    status = answers.unread(reply)
    return status, answers.nonzero({"nothing_read": 1, **more}) if status == "unparsed" else {}


# --- orders ---------------------------------------------------------------------------------------

_ARROW = re.compile(
    r"(?:-{1,3}|={1,2})>|[→⟶➔➜➝➞➡⇒⟹➤►▶»›≻]|&gt;|\\(?:rightarrow|Rightarrow|to|succ|gt)\b"
)
_REVERSED = re.compile(
    r"\b(?:least|last|latest|lowest|end)\b(?: [\w-]+){0,3},? to (?:the )?(?:\w+ )?"
    r"(?:most|first|earliest|highest|beginning|start)\b|\brevers(?:e|ed|al)\b|\bascending\b"
    r"|\b(?:least|last|latest)(?: \w+)? first\b",
    re.IGNORECASE,
)
_TIE = r"(?:[=<≥≤≈~,&/+]|\b(?:and|or|e|ed|o)\b)"
_COMMENT = r"(?: ?\([^()\n>\d]{1,200}\))?"
_ANNOUNCED = re.compile(r"[^\d\n>]{1,200}:")


class Given(NamedTuple):
    """Numbers as given, and whether other words surround them."""

    numbers: list[int]
    extra: bool


class _Grammar:
    """The patterns of a unit's name."""

    def __init__(self, unit: str) -> None:
        name = rf"{re.escape(unit)}s?[ #_-]{{0,2}}"
        one = rf"(?<![\w.])[\[(\"']{{0,2}}(?:{name})?\d+(?!\w|[.,:]\d)[\])\"']{{0,2}}"
        patterns = (
            one,
            rf"{one}{_COMMENT}(?: ?>{{1,3}} ?\n?{one}{_COMMENT})+",
            rf"(?:(?P<place>\d+)[.):] ?|[-•] ?)?{name}(?P<id>\d+)[.,;]?",
            rf"(?<!\w){name}\d",
            rf"\d[\])\"']{{0,2}} ?{_TIE} ?\Z",
            rf" ?{_TIE} ?(?:the )?(?:{name})?\d",
        )
        compiled = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
        self.element, self.chain, self.row, self.name, self.tied_before, self.tied_after = compiled


_grammar = lru_cache(maxsize=8)(_Grammar)


def read_order(text: str, n: int, unit: str) -> Order:
    """The order that a reply gives.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n: number of units shown, which are numbered 1..n.
        unit: their name in the request, "Shot" or "Sentence".
    """
    reply = answers.shape(text)
    if not reply.there:
        return Order((), reply.status, {})
    grammar, arrows = _grammar(unit), _ARROW.sub(" > ", re.sub(r"\r\n?", "\n", reply.text))
    lines = [line.strip() for line in arrows.split("\n")]
    # Lines that begin with ">" go on with the one before; if all do, it is a quotation and says
    # nothing.
    if all(line.startswith(">") for line in lines if line):
        joined = "\n".join(line.removeprefix(">") for line in lines)
    else:
        joined = re.sub(r"\n[^\S\n]*>", " >", arrows)
    visible = answers.normalise(joined)
    if chains := _chains(visible, grammar):
        # Later ones win: max() keeps the first of equals.
        known = (len({*one.numbers} & {*range(1, n + 1)}) for one in reversed(chains))
        found = max(zip(known, reversed(chains), strict=True), key=lambda one: one[0])[1]
    elif grammar.chain.search(visible) or not (listed := _listed(visible, grammar)):
        return Order((), *nothing(reply))
    else:
        found = listed
    known_units = [number for number in found.numbers if 1 <= number <= n]
    units = tuple(dict.fromkeys(known_units))
    violations = {
        "unknown": len(found.numbers) - len(known_units),
        "repeated": len(known_units) - len(units),
        "missing": n - len(units),
        "other_form": " > ".join(f"{unit} {number}" for number in found.numbers) not in reply.text,
        "extra_text": found.extra,
    }
    status = "ok" if len(units) == n and n > 1 else "unparsed"
    return Order(units, status, answers.nonzero(violations))


def authors_order(text: str, n: int, unit: str, *, in_time: bool) -> tuple[int, ...]:
    """The order that the code of HAVEN's authors reads in a reply; () where it reads none.

    Every number behind the unit's name counts, wherever it stands: all units, and no other. In time
    one that comes again is too much, and without the name bare numbers will do.
    """
    reply = answers.shape(text).text
    digits = re.findall(rf"{unit}\s+([0-9]+)", reply, re.IGNORECASE)
    if in_time and not digits:
        digits = re.findall(r"\b[0-9]+\b", reply)
    units = tuple(dict.fromkeys(map(answers.number, digits)))
    repeated = in_time and len(units) < len(digits)
    return () if repeated or {*units} != {*range(1, n + 1)} else units


def _chains(text: str, grammar: _Grammar) -> list[Given]:
    """Rules 1 and 3: all chains that state an order."""
    found = []
    for match in grammar.chain.finditer(text):
        start, end = match.span()
        before, after = text[max(0, start - 300) : start], text[end : end + 80]
        # Bare numbers in a sentence are arithmetic: they have to stand on their own.
        alone = re.search(r"(?:\A|[\n:]) ?\Z", before) and re.match(r" ?\.?(?:\n|\Z)", after)
        if (
            grammar.tied_before.search(before)
            or grammar.tied_after.match(after)
            or answers.is_denied(before, after)
            or _is_reversed(before)
            or not (grammar.name.search(match[0]) or alone)
        ):
            continue
        outside = answers.has_words(text[:start]) or answers.has_words(text[end:])
        found.append(Given(_digits(match[0]), outside or "(" in match[0]))
    return found


def _digits(text: str) -> list[int]:
    return [answers.number(digits) for digits in re.findall(r"\d+", text)]


def _is_reversed(before: str) -> bool:
    """Whether the line of a statement, or the one before it, says that it runs backwards."""
    return bool(_REVERSED.search("\n".join(before.split("\n")[-2:])))


def _listed(text: str, grammar: _Grammar) -> Given | None:
    """Rule 2: the whole reply is a list, after what announces it."""
    announced = _ANNOUNCED.match(text)
    body = text[announced.end() :].strip() if announced else text
    if announced and _is_reversed(announced[0]):
        return None
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1].strip().replace("\n", " ")
    lines = body.split("\n")
    if len(lines) == 1:
        parts = re.split(r"[,;](?: (?:and|then)\b)?", body.rstrip(" .,"))
        given = all(grammar.element.fullmatch(part.strip()) for part in parts)
        numbers = _digits(" ".join(parts)) if given else []
    else:
        rows = [row for line in lines if (row := grammar.row.fullmatch(line.strip()))]
        places = [row["place"] and answers.number(row["place"]) for row in rows]
        counted = not any(places) or places == list(range(1, len(lines) + 1))
        given = len(rows) == len(lines) and counted
        numbers = [answers.number(row["id"]) for row in rows] if given else []
    return Given(numbers, announced is not None) if len(numbers) > 1 else None


# --- clips of sentences ---------------------------------------------------------------------------

_SENTENCE = r"(?:summary sentence|summary|sentence|summaries)[ _#-]{0,2}"
_PLACE = r"\d+(?!\w|[.,]\d)"
_CLOSED = r"[\"')\]]{0,2} ?"
# At the head of a line, or inside one if a colon or arrow follows.
_HEAD = re.compile(
    rf"(?:^[^\w\n]{{0,6}}(?:\d{{1,3}}[.)] ?)?{_SENTENCE}(?P<id>{_PLACE}){_CLOSED}(?::|=?-?>|=)?"
    rf"|(?<!\w){_SENTENCE}(?P<inner>{_PLACE}){_CLOSED}(?::|=?-?>|=))",
    re.IGNORECASE | re.MULTILINE,
)
_CLIP = r"clips?[ _#-]{0,2}"
_TO = r"(?: ?-{1,2} ?| (?:to|through) )"
# A bare number that a word follows counts something else: "Clip 1, 2 people".
_ENDED = r"(?= ?(?:[,;&+/\n.:!?(-]|and\b|\Z))"
_NUMBERS = rf"\d+(?:{_TO}(?:{_CLIP}\d+|\d+{_ENDED}))?(?!\w|[.,:]\d)"
_ENTRY = rf"(?:{_CLIP})?{_NUMBERS}"
_MORE = rf"(?:(?: ?[,;&+/\n] ?(?:and )?| and )(?:{_CLIP}{_NUMBERS}|{_NUMBERS}{_ENDED}))*"
_NAMED = re.compile(rf"(?<!\w)(?={_CLIP}\d){_ENTRY}{_MORE}", re.IGNORECASE)
_BARE = re.compile(rf"{_ENTRY}{_MORE}", re.IGNORECASE)
_CLIP_NUMBER = re.compile(rf"(?<!\w){_CLIP}\d", re.IGNORECASE)
_RANGE = re.compile(rf"(\d+)(?:{_TO}(?:{_CLIP})?(\d+))?", re.IGNORECASE)
_NONE = re.compile(r"(?:none|no clips?|n/a|no match(?:ing clips?)?|-)", re.IGNORECASE)
_FORM = re.compile(r"^Summary \d+: Clip \d+(?:, Clip \d+)*[ \t\r]*$", re.MULTILINE)


def read_alignment(text: str, n_sentences: int, n_clips: int) -> Alignment:
    """The clips that a reply grounds each sentence to.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n_sentences: number of sentences asked about, which are numbered 1..m as shown.
        n_clips: number of clips, which are numbered 1..n.
    """
    reply = answers.shape(text)
    none = (frozenset[int](),) * n_sentences
    if not reply.there:
        return Alignment(none, reply.status, {})
    visible = answers.normalise(reply.text)
    heads = list(_HEAD.finditer(visible))
    ends = [*(head.start() for head in heads), len(visible)][1:]
    counts: Counter[str] = Counter()
    found: dict[int, Given] = {}
    extra = answers.has_words(visible[: heads[0].start()] if heads else visible)
    for head, end in zip(heads, ends, strict=True):
        statement, rest = _statement(visible[head.end() : end], n_clips)
        extra = extra or answers.has_words(rest) or statement is None
        sentence = answers.number(head["id"] or head["inner"])
        if statement and not 1 <= sentence <= n_sentences:
            counts["unknown"] += 1
        elif statement:
            counts["repeated"] += sentence in found
            found[sentence] = statement
    if not found:
        status, violations = nothing(reply)
        return Alignment(none, status, {**answers.nonzero(counts), **violations})
    for one in found.values():
        counts["unknown_clips"] += sum(not 1 <= clip <= n_clips for clip in set(one.numbers))
        counts["repeated_clips"] += answers.repeats(one.numbers)
    counts["missing"] = n_sentences - len(found)
    counts["other_form"] = len(_FORM.findall(reply.text)) < len(found)
    counts["extra_text"] = extra or any(one.extra for one in found.values())
    sets = tuple(
        frozenset(found[sentence].numbers if sentence in found else ())
        for sentence in range(1, n_sentences + 1)
    )
    return Alignment(sets, "unparsed" if counts["missing"] else "ok", answers.nonzero(counts))


def _statement(text: str, n_clips: int) -> tuple[Given | None, str]:
    """What follows a sentence's name, and the lines after it that are no part of it."""
    first, _, below = text.lstrip(" ,").partition("\n")
    if answers.has_words(first) or first.strip(" \"'[({") == "-":
        return _clips(first, n_clips), below
    lines = below.split("\n")
    bare = [line.lstrip(" -•").rstrip(" .,;") for line in lines]
    own = next((at for at, line in enumerate(bare) if not _BARE.fullmatch(line)), len(bare)) or 1
    return _clips(", ".join(bare[:own]), n_clips), "\n".join(lines[own:])


def _clips(text: str, n_clips: int) -> Given | None:
    body = " ".join(re.sub(r"[\"'\[\]{}|]", " ", text).split()).strip("() ")
    bare = body.rstrip(" .,;")
    if _NONE.fullmatch(bare):
        return Given([], False)
    match = _BARE.fullmatch(bare) or _NAMED.search(body)
    if match is None:
        return None
    before, after = body[: match.start()], body[match.end() :]
    others = _CLIP_NUMBER.search(before) or _CLIP_NUMBER.search(after)
    if others or answers.is_denied(before, after):
        return None
    clips: list[int] = []
    for start, end in _RANGE.findall(match[0]):
        low = answers.number(start)
        high = answers.number(end) if end else low
        if high < low:
            return None
        # One number stands for all of a range that lie beyond the last clip.
        clips.extend(range(low, (min(high, max(low, n_clips + 1)) if end else high) + 1))
    return Given(clips, answers.has_words(before + after))
