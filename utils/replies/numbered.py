"""What a reply says of numbered units (HAVEN; paper, C): their order, or the clips of sentences.

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

An order ("Shot 3 > Shot 1 > Shot 2"):
1. A chain is units joined by ">" or an arrow. Of several of one rank those that name most units
   count: models explain themselves with parts of the order.
2. A list is units with commas, a JSON array, or one unit a line, numbered 1, 2, 3, ... or not. It
   counts under a label, or by itself on its lines, since "Shot 1: a man enters" on every line
   describes and does not order.
3. Numbers without the unit's name count in a chain that ends its line, and in lists.
A chain with a tie ("Shot 1 = Shot 2 > ...", "Shot 3 > Shot 1, Shot 2") is not read. An order that
is announced as running backwards is turned ("From least to most important: ..."), or not read where
that is not sure ("In reverse: ...").

Clips of sentences ("Summary 2: Clip 1, Clip 4"):
- A sentence's statement is what follows its name on the line, or on the lines below if nothing
  does. It may hold one list of clips, with words around it that name no other clip. "Clip 1-3" is
  clips 1, 2 and 3. "None" grounds the sentence to nothing.
- Numbers without "Clip" count if they are all that the statement holds.
- Of a sentence's statements those behind "Final answer:" count before others, and those at the head
  of a line before those inside one. A sentence whose statements differ is missing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import answers, forms, reply_text
from lmms_eval_tasks.utils.replies.reply_text import ShapedReply

Violations = dict[str, int]


class Order(NamedTuple):
    """`units`: distinct numbers of 1..n, first one first; status ok says that all n are there."""

    units: tuple[int, ...]
    status: str
    violations: Violations  # also `unknown`, `repeated` and `missing` units


class ClipAlignment(NamedTuple):
    """`sets`: of each sentence the clips given, empty without a statement; ok: all have one.

    A number that no clip has stays in the set: what was given is scored.
    """

    sets: tuple[frozenset[int], ...]
    status: str
    # Also `missing` and `unknown` sentences, `repeated` statements, `unknown_clips` and
    # `repeated_clips`.
    violations: Violations


def nothing(reply: ShapedReply, **more: int) -> tuple[str, Violations]:
    """Status and violations of a reply in which nothing was read."""
    status = reply_text.unread(reply)
    return status, nonzero({"nothing_read": 1, **more}) if status == "unparsed" else {}


# --- statements and their ranks -------------------------------------------------------------------

MACHINE, LABEL, ALONE, PROSE = 4, 3, 2, 1
_LEAD = 300  # characters before a statement in which its announcement is looked for
_OWN_LINE = re.compile(r"(?:\A|\n)[-•>\"'( ]{0,3}\Z")


class Statement(NamedTuple):
    """A place of a reply that states numbers; only statements of the highest `rank` count."""

    rank: int
    start: int
    end: int
    numbers: tuple[int, ...] = ()
    lead: str = ""  # the words that announce it
    whole: bool = False  # nothing else stands in the reply


def _guard(name: str) -> re.Pattern[str]:
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
        or not (cut := _guard("cut").search(shown[-60:]))
    ):
        return shown
    if 10 * number(cut[1]) <= highest:
        shown = shown[: len(shown) - len(cut[0])]
    return shown + "]" * (shown.rfind("[") > shown.rfind("]"))


def labelled(text: str) -> str:
    """A normalised reply with machines' forms as lines of their own under "Final answer:"."""

    def line(form: re.Match[str]) -> str:
        return f"\nFinal answer:\n{next(filter(None, form.groups()), '').strip()}\n\n"

    return _guard("machine form").sub(line, text)


def placed(text: str, start: int, end: int, asked: str, *, bare: bool) -> Statement | None:
    """The statement at a place, without its numbers; None if it is none, or of something else.

    Args:
        asked: "order" or "frames".
        bare: its numbers have no name, so that their announcement has to say what they are.
    """
    before, after = text[max(0, start - _LEAD) : start], text[end : end + answers.BEFORE]
    lead = _lead(before)
    named = _guard(f"{asked} label").search(lead)
    if answers.is_denied(before, after) or _guard("something else behind").match(after):
        return None
    if _guard("supposed" if named else "something else").search(lead):
        return None
    if bare and not named:
        known = _guard(f"{asked} mention").search(lead) or not lead.isascii()
        unknown = _guard("labelled").search(lead) and not (known or corrections(lead))
        if unknown or _guard("not chosen").search(before) or _guard("quantity").search(lead):
            return None
    announced = start <= _LEAD and re.fullmatch(r"[^\d\n>]{1,200}:[\s\"']{0,2}", before)
    opens = bool(announced) or not reply_text.has_words(text[:start])
    closes = not reply_text.has_words(text[end:])
    goes_on = _guard("goes on").match(after)
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
    return _guard("corrected").findall(text)


def settled(
    found: Iterable[Statement],
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
    for one in sorted(found, key=lambda one: one.start):
        # What stands behind a correction ("Wait, no: ...") is as good as what it corrects.
        between = text[end : one.start] if best and not near else one.lead
        corrects = bool(corrections(between)) and not _guard("goes on").match(text, one.end)
        end = one.end
        best = max(best, one.rank)
        ranked.append(one._replace(rank=best) if corrects else one)
    own = [one for one in ranked if one.rank == best]
    differing = [one for one in own if same(one.numbers) != same(own[-1].numbers)]
    if differing and not corrections(text[differing[-1].end : own[-1].start]):
        return None
    return own[-1] if own else None


# --- orders ---------------------------------------------------------------------------------------

_ARROW = re.compile(
    r"(?:-{1,3}|={1,2})>|[→⟶➔➜➝➞➡⇒⟹➤►▶»›≻]|&gt;|\\(?:rightarrow|Rightarrow|to|succ|gt)\b"
)
_NOT = re.compile(r"\b(?:not|non)\b|n't", re.IGNORECASE)
_LIST_ENDED = re.compile(r"[\"')\]}]{0,2} ?(?:,?\Z|[\n.;(]|- )")  # a list, at its last item
_TIE = r"(?:[=<≥≤≈~,&/+]|\b(?:and|or|e|ed|o)\b)"
_COMMENT = r"(?: ?\([^()\n>\d]{1,200}\))?"


class _Grammar:
    """The patterns of a unit's name."""

    def __init__(self, unit: str) -> None:
        name = rf"{re.escape(unit)}s?[ #_-]{{0,2}}"
        one = rf"(?<![\w.])[\[(\"']{{0,2}}(?:{name})?\d+(?!\w|[.,:]\d)[\])\"']{{0,2}}"
        item = rf"[(\"']?(?:{name})?\d+(?!\w|\.\d)[)\"']?"
        comma = r"(?: ?[,;]\s?(?:(?:and|then|e|poi) )?| (?:and|e) )"
        row = rf"(?:\d+[.):] ?|[-•] ?)?{name}\d+[.,;]?"
        patterns = (
            rf"{one}{_COMMENT}(?: ?>{{1,3}} ?\n?{one}{_COMMENT})+",
            rf"(?<![\w.,])(?:\[\s?)?{item}(?:{comma}{item})+(?:\s?,?\s?\])?(?!\w)",
            rf"^{row}(?:\n{row})+$",
            rf"^(?:(\d+)[.):] ?|[-•] ?)?{name}(\d+)",
            rf"(?<!\w){name}\d",
            rf"\d[\])\"']{{0,2}} ?{_TIE} ?\Z",
            rf" ?{_TIE} ?(?:the )?(?:{name})?\d",
            rf"(?:[^\d\n>]{{1,200}}:[ \n])?[\[(]?(?:\d+ ?> ?\d|(?:1[.):] ?|[-•] ?)?{item}"
            rf"(?: ?[,;]|\n| and )\s?(?:\d+[.):] ?|[-•] ?)?{item})",
        )
        compiled = [re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns]
        self.chain, self.list, self.rows, self.row, self.name = compiled[:5]
        self.tied_before, self.tied_after, self.opening = compiled[5:]

    def numbers(self, match: re.Match[str]) -> list[int]:
        """Units of a chain or list; none of rows that are not numbered 1, 2, 3, ..."""
        if match.re is not self.rows:
            return _digits(match[0])
        rows = self.row.findall(match[0])
        places = [place and number(place) for place, _ in rows]
        counted = not any(places) or places == [*range(1, len(rows) + 1)]
        return [number(unit) for _, unit in rows] if counted else []


_grammar = lru_cache(maxsize=8)(_Grammar)


def read_order(text: str, n: int, unit: str, *, at_limit: bool = False) -> Order:
    """The order that a reply gives.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n: number of units shown, which are numbered 1..n.
        unit: their name in the request, "Shot" or "Sentence".
        at_limit: the reply is as long as its limit of tokens (`uncut`).
    """
    reply = reply_text.shape(text)
    if not reply.there:
        return Order((), reply.status, {})
    shown = re.sub(r"\r\n?", "\n", uncut(text, reply, n, at_limit=at_limit))
    grammar, arrows = _grammar(unit), _ARROW.sub(" > ", shown)
    lines = [line.strip() for line in arrows.split("\n")]
    # Lines that begin with ">" go on with the one before; if all do, it is a quotation and says
    # nothing.
    if all(line.startswith(">") for line in lines if line):
        joined = "\n".join(line.removeprefix(">") for line in lines)
    else:
        joined = re.sub(r"\n[^\S\n]*>", " >", arrows)
    visible = labelled(reply_text.normalise(joined))
    known = {one: len({*one.numbers} & {*range(1, n + 1)}) for one in _orders(visible, grammar, n)}
    most = max(((one.rank, number) for one, number in known.items()), default=(0, 0))[1]
    found = settled([one for one, number in known.items() if number >= most], visible)
    # A reply that begins with a list means this one, even if something else in it is an order.
    if found is None or (found.rank == PROSE and found.start and grammar.opening.match(visible)):
        return Order((), *nothing(reply))
    known_units = [number for number in found.numbers if 1 <= number <= n]
    units = tuple(dict.fromkeys(known_units))
    outside = visible[: found.start] + visible[found.end :]
    violations = {
        "unknown": len(found.numbers) - len(known_units),
        "repeated": len(known_units) - len(units),
        "missing": n - len(units),
        "other_form": " > ".join(f"{unit} {number}" for number in found.numbers) not in reply.text,
        "extra_text": reply_text.has_words(outside) or "(" in visible[found.start : found.end],
    }
    status = "ok" if len(units) == n and n > 1 else "unparsed"
    return Order(units, status, nonzero(violations))


def authors_order(text: str, n: int, unit: str, *, in_time: bool) -> tuple[int, ...]:
    """The order that the code of HAVEN's authors reads in a reply; () where it reads none.

    Every number behind the unit's name counts, wherever it stands: all units, and no other. In time
    one that comes again is too much, and without the name bare numbers will do.
    """
    reply = reply_text.shape(text).text
    digits = re.findall(rf"{unit}\s+([0-9]+)", reply, re.IGNORECASE)
    if in_time and not digits:
        digits = re.findall(r"\b[0-9]+\b", reply)
    units = tuple(dict.fromkeys(map(number, digits)))
    repeated = in_time and len(units) < len(digits)
    return () if repeated or {*units} != {*range(1, n + 1)} else units


def _orders(text: str, grammar: _Grammar, n: int) -> Iterator[Statement]:
    """Rules 1 to 3: all that states an order, turned if it is announced as running backwards."""
    for pattern in (grammar.chain, grammar.list, grammar.rows):
        for match in pattern.finditer(text):
            start, end = match.span()
            before, after = text[max(0, start - _LEAD) : start], text[end : end + answers.BEFORE]
            chain, numbers = pattern is grammar.chain, grammar.numbers(match)
            if comment := re.search(r" ?\([^()\d]*\)\Z", match[0]):  # it may be on all units
                end -= len(comment[0])
                after = text[end : end + answers.BEFORE]
            if chain and (grammar.tied_before.search(before) or grammar.tied_after.match(after)):
                continue
            # Bare numbers in a sentence are arithmetic: they have to stand on their own.
            alone = re.search(r"(?:\A|[\n:]) ?\Z", before) and re.match(r" ?\.?(?:\n|\Z)", after)
            if not (alone or grammar.name.search(match[0]) if chain else _LIST_ENDED.match(after)):
                continue
            if not numbers:
                continue
            found = placed(text, start, end, "order", bare=not chain)
            turn = _direction(found.lead, before, after) if found else 0
            if not found or not turn:
                continue
            # A list of a part of the reply may be of anything; a part of the order explains it,
            # but on the first line.
            first = _guard("line end").match(text, end) and not reply_text.has_words(text[:start])
            if chain and found.rank == ALONE and len({*numbers}) < n and not first:
                found = found._replace(rank=PROSE)
            elif not chain and found.rank <= ALONE and not found.whole:
                found = found._replace(rank=found.rank - 1)
            if found.rank:
                yield found._replace(numbers=tuple(numbers[::turn]))


def _digits(text: str) -> list[int]:
    return [number(digits) for digits in re.findall(r"\d+", text)]


def _direction(lead: str, before: str, after: str) -> int:
    """1 of an order as asked for, -1 of one announced as running backwards, 0 if that is unsure."""
    announced = _guard("turned").search(lead.rstrip(" :\"'")) and not _NOT.search(lead)
    if announced or _guard("turned behind").match(after):
        return -1
    near = "\n".join(before.split("\n")[-2:])
    return 0 if _guard("unsure").search(near) or _guard("unsure behind").match(after) else 1


# --- clips of sentences ---------------------------------------------------------------------------


class ClipList(NamedTuple):
    """Numbers as given, and whether other words surround them."""

    numbers: list[int]
    extra: bool


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
_NUMBERS = rf"\d+(?:{_TO}(?:{_CLIP}\d+|\d+{_ENDED}))?(?!\w|[.,:-]\d)"
_ENTRY = rf"(?:{_CLIP})?{_NUMBERS}"
_MORE = rf"(?:(?: ?[,;&+/\n] ?(?:and )?| and )(?:{_CLIP}{_NUMBERS}|{_NUMBERS}{_ENDED}))*"
_NAMED = re.compile(rf"(?<!\w)(?={_CLIP}\d){_ENTRY}{_MORE}", re.IGNORECASE)
_BARE = re.compile(rf"{_ENTRY}{_MORE}", re.IGNORECASE)
_CLIP_NUMBER = re.compile(rf"(?<!\w){_CLIP}\d", re.IGNORECASE)
_RANGE = re.compile(rf"(\d+)(?:{_TO}(?:{_CLIP})?(\d+))?", re.IGNORECASE)
_NONE = re.compile(r"(?:none|no clips?|n/a|no match(?:ing clips?)?|-)", re.IGNORECASE)
_FINAL = re.compile(r"^[^\w\n]{0,6}final \w{1,20} ?:", re.IGNORECASE | re.MULTILINE)
_FORM = re.compile(r"^Summary \d+: Clip \d+(?:, Clip \d+)*[ \t\r]*$", re.MULTILINE)


def read_alignment(
    text: str, n_sentences: int, n_clips: int, *, at_limit: bool = False
) -> ClipAlignment:
    """The clips that a reply grounds each sentence to.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n_sentences: number of sentences asked about, which are numbered 1..m as shown.
        n_clips: number of clips, which are numbered 1..n.
        at_limit: the reply is as long as its limit of tokens (`uncut`).
    """
    reply = reply_text.shape(text)
    none = (frozenset[int](),) * n_sentences
    if not reply.there:
        return ClipAlignment(none, reply.status, {})
    visible = labelled(reply_text.normalise(uncut(text, reply, n_clips, at_limit=at_limit)))
    heads = list(_HEAD.finditer(visible))
    ends = [*(head.start() for head in heads), len(visible)][1:]
    final = max((match.end() for match in _FINAL.finditer(visible)), default=len(visible))
    counts: Counter[str] = Counter()
    stated: dict[int, dict[Statement, ClipList | None]] = {}
    extra = reply_text.has_words(visible[: heads[0].start()] if heads else visible)
    for head, end in zip(heads, ends, strict=True):
        body = visible[head.end() : end]
        statement, rest = _statement(body, n_clips)
        extra = extra or reply_text.has_words(rest) or statement is None
        sentence = number(head["id"] or head["inner"])
        line = visible[visible.rfind("\n", 0, head.start()) + 1 : head.start()]
        at_head = head["id"] or (
            len(line) <= _LEAD and not reply_text.has_words(_guard("corrected").sub("", line))
        )
        rank = MACHINE if head.start() >= final else LABEL if at_head else PROSE
        if not statement:  # numbers with words behind them count before one inside a line
            rank = ALONE if at_head and re.match(rf" ?(?i:{_CLIP})?\d", body) else 0
        numbers = tuple(statement.numbers) if statement else ()
        if rank and not 1 <= sentence <= n_sentences:
            counts["unknown"] += statement is not None
        elif rank:
            own = stated.setdefault(sentence, {})
            counts["repeated"] += any(own.values()) and statement is not None
            own[Statement(rank, head.start(), head.end(), numbers)] = statement
    chosen = {one: settled(own, visible, frozenset, near=True) for one, own in stated.items()}
    read = {
        one: next(said for own, said in stated[one].items() if own.start == place.start)
        for one, place in chosen.items()
        if place
    }
    found = {sentence: statement for sentence, statement in read.items() if statement}
    if not found:
        status, violations = nothing(reply)
        return ClipAlignment(none, status, {**nonzero(counts), **violations})
    for one in found.values():
        counts["unknown_clips"] += sum(not 1 <= clip <= n_clips for clip in set(one.numbers))
        counts["repeated_clips"] += repeats(one.numbers)
    counts["missing"] = n_sentences - len(found)
    counts["other_form"] = len(_FORM.findall(reply.text)) < len(found)
    counts["extra_text"] = extra or any(one.extra for one in found.values())
    sets = tuple(
        frozenset(found[sentence].numbers if sentence in found else ())
        for sentence in range(1, n_sentences + 1)
    )
    return ClipAlignment(sets, "unparsed" if counts["missing"] else "ok", nonzero(counts))


def _statement(text: str, n_clips: int) -> tuple[ClipList | None, str]:
    """What follows a sentence's name, and the lines after it that are no part of it."""
    first, _, below = text.lstrip(" ,").partition("\n")
    if reply_text.has_words(first) or first.strip(" \"'[({") == "-":
        return _clips(first, n_clips), below
    lines = below.split("\n")
    bare = [line.lstrip(" -•").rstrip(" .,;") for line in lines]
    own = next((at for at, line in enumerate(bare) if not _BARE.fullmatch(line)), len(bare)) or 1
    return _clips(", ".join(bare[:own]), n_clips), "\n".join(lines[own:])


def _clips(text: str, n_clips: int) -> ClipList | None:
    body = " ".join(re.sub(r"[\"'\[\]{}|]", " ", text).split()).strip("() ")
    bare = body.rstrip(" .,;")
    if _NONE.fullmatch(bare):
        return ClipList([], False)
    match = _BARE.fullmatch(bare) or _NAMED.search(body)
    if match is None:
        return None
    before, after = body[: match.start()], body[match.end() :]
    others = _CLIP_NUMBER.search(before) or _CLIP_NUMBER.search(after)
    if others or answers.is_denied(before, after) or _guard("something else behind").match(after):
        return None
    clips: list[int] = []
    for start, end in _RANGE.findall(match[0]):
        low = number(start)
        high = number(end) if end else low
        if high < low:
            return None
        # One number stands for all of a range that lie beyond the last clip.
        clips.extend(range(low, (min(high, max(low, n_clips + 1)) if end else high) + 1))
    return ClipList(clips, reply_text.has_words(before + after))


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
