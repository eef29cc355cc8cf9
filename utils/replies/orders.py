"""The order of units that a reply states (HAVEN; paper, C): "Shot 3 > Shot 1 > Shot 2".

number_statements.py has statements and their ranks. In addition:

1. A chain is units joined by ">" or an arrow. Of several chains of one rank only those with most
   units count: models explain themselves with parts of the order.
2. A list is units with commas, a JSON array, or one unit a line, numbered 1, 2, 3, ... or not. It
   counts under a label, or alone on its lines: "Shot 1: a man enters" on every line describes shots
   and does not order them.
3. Numbers without the unit's name count in a chain that ends its line, and in lists.

A chain with a tie ("Shot 1 = Shot 2 > ...", "Shot 3 > Shot 1, Shot 2") is not read. An order
announced as reversed is turned ("From least to most important: ..."), or not read if that is not
certain ("In reverse: ...").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import denials, reply_text
from lmms_eval_tasks.utils.replies.number_statements import (
    ALONE,
    LEAD,
    PROSE,
    Statement,
    Violations,
    guard,
    labelled,
    nonzero,
    nothing,
    number,
    settled,
    to_statement,
    uncut,
)


class Order(NamedTuple):
    """Distinct numbers of 1..n in the stated order; status is ok if all n occur."""

    units: tuple[int, ...]
    status: str
    violations: Violations  # also `unknown`, `repeated` and `missing` units


_ARROW = re.compile(
    r"(?:-{1,3}|={1,2})>|[→⟶➔➜➝➞➡⇒⟹➤►▶»›≻]|&gt;|\\(?:rightarrow|Rightarrow|to|succ|gt)\b"
)
_NOT = re.compile(r"\b(?:not|non)\b|n't", re.IGNORECASE)
_LIST_ENDED = re.compile(r"[\"')\]}]{0,2} ?(?:,?\Z|[\n.;(]|- )")  # after the last item of a list
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
        """Return the units of a chain or list; none for rows not numbered 1, 2, 3, ..."""
        if match.re is not self.rows:
            return _digits(match[0])
        rows = self.row.findall(match[0])
        places = [place and number(place) for place, _ in rows]
        counted = not any(places) or places == [*range(1, len(rows) + 1)]
        return [number(unit) for _, unit in rows] if counted else []


_grammar = lru_cache(maxsize=8)(_Grammar)


def read_order(text: str, n: int, unit: str, *, at_limit: bool = False) -> Order:
    """Return the order that a reply states; never raises.

    Args:
        text: the model's reply, as lmms-eval passes it.
        n: the number of units, numbered 1..n.
        unit: their name in the prompt, "Shot" or "Sentence".
        at_limit: True if the reply is as long as its limit of tokens (`uncut`).
    """
    reply = reply_text.shape(text)
    if not reply.has_text:
        return Order((), reply.status, {})
    shown = re.sub(r"\r\n?", "\n", uncut(text, reply, n, at_limit=at_limit))
    grammar, arrows = _grammar(unit), _ARROW.sub(" > ", shown)
    lines = [line.strip() for line in arrows.split("\n")]
    # A line that begins with ">" continues the line before. If all lines do, they are a quotation
    # mark without meaning.
    if all(line.startswith(">") for line in lines if line):
        joined = "\n".join(line.removeprefix(">") for line in lines)
    else:
        joined = re.sub(r"\n[^\S\n]*>", " >", arrows)
    visible = labelled(reply_text.normalise(joined))
    known = {one: len({*one.numbers} & {*range(1, n + 1)}) for one in _orders(visible, grammar, n)}
    most = max(((one.rank, number) for one, number in known.items()), default=(0, 0))[1]
    found = settled([one for one, number in known.items() if number >= most], visible)
    # A reply that begins with a list means that list, even if its prose holds an order.
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
    """Return the order that the code of HAVEN's authors reads in a reply; () if it reads none.

    It takes every number after the unit's name, anywhere in the reply; together they must be 1..n.
    For an order in time (`in_time`) no number may repeat, and without the name bare numbers count.
    """
    reply = reply_text.shape(text).text
    digits = re.findall(rf"{unit}\s+([0-9]+)", reply, re.IGNORECASE)
    if in_time and not digits:
        digits = re.findall(r"\b[0-9]+\b", reply)
    units = tuple(dict.fromkeys(map(number, digits)))
    repeated = in_time and len(units) < len(digits)
    return () if repeated or {*units} != {*range(1, n + 1)} else units


def _orders(text: str, grammar: _Grammar, n: int) -> Iterator[Statement]:
    """Yield the statements of an order by rules 1 to 3, turned if announced as reversed."""
    for pattern in (grammar.chain, grammar.list, grammar.rows):
        for match in pattern.finditer(text):
            start, end = match.span()
            before, after = text[max(0, start - LEAD) : start], text[end : end + denials.BEFORE]
            chain, numbers = pattern is grammar.chain, grammar.numbers(match)
            # The comment may be about all units.
            if comment := re.search(r" ?\([^()\d]*\)\Z", match[0]):
                end -= len(comment[0])
                after = text[end : end + denials.BEFORE]
            if chain and (grammar.tied_before.search(before) or grammar.tied_after.match(after)):
                continue
            # Bare numbers in a sentence may be arithmetic: they count only on a line of their own.
            alone = re.search(r"(?:\A|[\n:]) ?\Z", before) and re.match(r" ?\.?(?:\n|\Z)", after)
            if not (alone or grammar.name.search(match[0]) if chain else _LIST_ENDED.match(after)):
                continue
            if not numbers:
                continue
            found = to_statement(text, start, end, "order", bare=not chain)
            turn = _direction(found.lead, before, after) if found else 0
            if not found or not turn:
                continue
            # A list inside a reply may be of anything. A part of the order inside a reply explains
            # the order, but not on the first line.
            first = guard("line end").match(text, end) and not reply_text.has_words(text[:start])
            if chain and found.rank == ALONE and len({*numbers}) < n and not first:
                found = found._replace(rank=PROSE)
            elif not chain and found.rank <= ALONE and not found.whole:
                found = found._replace(rank=found.rank - 1)
            if found.rank:
                yield found._replace(numbers=tuple(numbers[::turn]))


def _digits(text: str) -> list[int]:
    return [number(digits) for digits in re.findall(r"\d+", text)]


def _direction(lead: str, before: str, after: str) -> int:
    """Return 1 for an order as requested, -1 for an announced reversed one, 0 if uncertain."""
    announced = guard("turned").search(lead.rstrip(" :\"'")) and not _NOT.search(lead)
    if announced or guard("turned behind").match(after):
        return -1
    near = "\n".join(before.split("\n")[-2:])
    return 0 if guard("unsure").search(near) or guard("unsure behind").match(after) else 1
