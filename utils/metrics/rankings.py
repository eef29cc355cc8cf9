"""Orders of numbered shots or sentences: what order a reply gives (paper, C), and what it is worth.

Everywhere a rank is 1 for the first, so that a correlation is between two lists of ranks
(metrics.md, "Ranks and orders"): places predicted and true places (temporal order), or places
predicted and ranks by importance, where the most important has rank 1 (saliency).

A reply's order ("Shot 3 > Shot 1 > Shot 2") is read strictly in meaning, not in typography:

1. A chain is units joined by ">" or an arrow. Of several the one that names most units counts, and
   of those the last: models correct themselves, and explain themselves with parts of the order.
2. Without a chain the whole reply may be a list, after one line that announces it: units with
   commas or a JSON array, or one unit a line, numbered 1, 2, 3, ... or not. Nothing else may stand
   in it, since "Shot 1: a man enters" on every line describes and does not order.
3. Numbers without the unit's name count in a chain that ends its line, and in lists with commas.

A chain with a tie ("Shot 1 = Shot 2 > ...", "Shot 3 > Shot 1, Shot 2"), one that is denied, asked
or announced as going from last to first is not read. Units outside the set are dropped and counted,
of repeated ones the first is kept and the others are counted, and missing ones are counted and make
the reply `unparsed`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lmms_eval_tasks.utils.replies import answers

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


@dataclass(frozen=True)
class Order:
    """What a reply orders.

    Attributes:
        units: distinct numbers of 1..n, first one first; may lack some.
        status: ok (names all n); unparsed; empty, refused, truncated or model_error without units.
        violations: by kind, those that occurred: `unknown`, `repeated` and `missing` units;
            `other_form` (1: not written as asked), `extra_text` (1: more than the order),
            `nothing_read` (1: no order in it, though it does not refuse).
    """

    units: tuple[int, ...]
    status: str
    violations: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Statement:
    """Numbers as written, in order, and whether other words surround them."""

    numbers: list[int]
    extra: bool


@dataclass(frozen=True)
class _Grammar:
    """The patterns of a unit's name."""

    element: re.Pattern[str]
    chain: re.Pattern[str]
    row: re.Pattern[str]
    name: re.Pattern[str]
    tied_before: re.Pattern[str]
    tied_after: re.Pattern[str]


def read_order(text: str, n: int, unit: str) -> Order:
    """The order that a reply gives.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n: number of units shown, which are numbered 1..n.
        unit: their name in the request, "Shot" or "Sentence".
    """
    reply = answers.shape(text)
    if not reply.there:
        return Order((), reply.status)
    found = _read(reply.text, n, _grammar(unit))
    if found is None:
        status = answers.unread(reply)
        return Order((), status, {"nothing_read": 1} if status == "unparsed" else {})
    known = [number for number in found.numbers if 1 <= number <= n]
    units = tuple(dict.fromkeys(known))
    violations = {
        "unknown": len(found.numbers) - len(known),
        "repeated": len(known) - len(units),
        "missing": n - len(units),
        "other_form": " > ".join(f"{unit} {number}" for number in found.numbers) not in reply.text,
        "extra_text": found.extra,
    }
    complete = len(units) == n and n > 1
    return Order(units, "ok" if complete else "unparsed", answers.nonzero(violations))


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


@lru_cache(maxsize=8)
def _grammar(unit: str) -> _Grammar:
    name = rf"{re.escape(unit)}s?[ #_-]{{0,2}}"
    element = rf"(?<![\w.])[\[(\"']{{0,2}}(?:{name})?\d+(?!\w|[.,:]\d)[\])\"']{{0,2}}"
    flags = re.IGNORECASE
    return _Grammar(
        element=re.compile(element, flags),
        chain=re.compile(rf"{element}{_COMMENT}(?: ?>{{1,3}} ?\n?{element}{_COMMENT})+", flags),
        row=re.compile(rf"(?:(?P<place>\d+)[.):] ?|[-•] ?)?{name}(?P<id>\d+)[.,;]?", flags),
        name=re.compile(rf"(?<!\w){name}\d", flags),
        tied_before=re.compile(rf"\d[\])\"']{{0,2}} ?{_TIE} ?\Z", flags),
        tied_after=re.compile(rf" ?{_TIE} ?(?:the )?(?:{name})?\d", flags),
    )


def _read(text: str, n: int, grammar: _Grammar) -> _Statement | None:
    visible = answers.normalise(_join_lines(text))
    chains = _chains(visible, grammar)
    if chains:
        # Later ones win: max() keeps the first of equals.
        return max(reversed(chains), key=lambda chain: len(_known(chain.numbers, n)))
    return None if grammar.chain.search(visible) else _listed(visible, grammar)


def _known(numbers: Sequence[int], n: int) -> set[int]:
    return {number for number in numbers if 1 <= number <= n}


def _join_lines(text: str) -> str:
    """Text with ">" for every arrow, and with lines that begin with ">" joined to the one before.

    A reply of which every line begins with ">" is a quotation: there the sign says nothing.
    """
    text = _ARROW.sub(" > ", re.sub(r"\r\n?", "\n", text))
    lines = [line.strip() for line in text.split("\n")]
    if all(line.startswith(">") for line in lines if line):
        return "\n".join(line.removeprefix(">") for line in lines)
    return re.sub(r"\n[^\S\n]*>", " >", text)


def _chains(text: str, grammar: _Grammar) -> list[_Statement]:
    """Rule 1: all chains that state an order."""
    found = []
    for match in grammar.chain.finditer(text):
        start, end = match.span()
        before, after = text[max(0, start - 300) : start], text[end : end + 80]
        if grammar.tied_before.search(before) or grammar.tied_after.match(after):
            continue
        if answers.is_denied(before, after) or _is_reversed(before):
            continue
        if not grammar.name.search(match[0]) and not _fills_line(before, after):
            continue
        outside = answers.has_words(text[:start]) or answers.has_words(text[end:])
        numbers = [answers.number(digits) for digits in re.findall(r"\d+", match[0])]
        found.append(_Statement(numbers, outside or "(" in match[0]))
    return found


def _fills_line(before: str, after: str) -> bool:
    """Whether a chain of bare numbers is no arithmetic in a sentence: it stands on its own."""
    return bool(re.search(r"(?:\A|[\n:]) ?\Z", before) and re.match(r" ?\.?(?:\n|\Z)", after))


def _is_reversed(before: str) -> bool:
    """Whether the line of a statement, or the one before it, says that it runs backwards."""
    return bool(_REVERSED.search("\n".join(before.split("\n")[-2:])))


def _listed(text: str, grammar: _Grammar) -> _Statement | None:
    """Rule 2: the whole reply is a list, after what announces it."""
    announced = _ANNOUNCED.match(text)
    body = text[announced.end() :].strip() if announced else text
    if announced and _is_reversed(announced[0]):
        return None
    extra = announced is not None
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1].strip().replace("\n", " ")
    lines = body.split("\n")
    numbers = _in_a_row(body, grammar) if len(lines) == 1 else _in_lines(lines, grammar)
    return _Statement(numbers, extra) if len(numbers) > 1 else None


def _in_a_row(line: str, grammar: _Grammar) -> list[int]:
    parts = [part.strip() for part in re.split(r"[,;](?: (?:and|then)\b)?", line.rstrip(" .,"))]
    if not all(grammar.element.fullmatch(part) for part in parts):
        return []
    return [answers.number(digits) for part in parts for digits in re.findall(r"\d+", part)]


def _in_lines(lines: Sequence[str], grammar: _Grammar) -> list[int]:
    rows = [grammar.row.fullmatch(line.strip()) for line in lines]
    places = [row and row["place"] and answers.number(row["place"]) for row in rows]
    if any(places) and places != list(range(1, len(rows) + 1)):
        return []
    numbers = [answers.number(row["id"]) for row in rows if row]
    return numbers if len(numbers) == len(rows) else []


# --- what an order is worth -----------------------------------------------------------------------

IMPORTANCE_DIGITS = 6  # significant; the release stores 32-bit floats, which have seven


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho and Kendall's tau-b in -1..1, or None for both with the reason."""

    spearman: float | None
    kendall: float | None
    reason: str = ""


def predicted_ranks(order: Sequence[int], n: int) -> list[float]:
    """Rank of each unit 1..n in an order; units that it leaves out are tied last.

    Args:
        order: distinct numbers of 1..n, first one first; all of them, some, or none.
        n: number of units.

    Returns:
        n ranks; those of `order` are 1, 2, ..., the others share the mean of the places left.
    """
    ranks = [(len(order) + 1 + n) / 2] * n
    for place, unit in enumerate(order, 1):
        ranks[unit - 1] = float(place)
    return ranks


def importance_ranks(importance: Sequence[float]) -> list[float]:
    """Ranks of units by importance, the most important 1; ties share the mean of their places.

    Values that agree to `IMPORTANCE_DIGITS` significant digits are ties: means of the same scores
    over shots of different lengths differ in their last bits.

    Raises:
        ValueError: a value is not finite.
    """
    if not all(math.isfinite(value) for value in importance):
        raise ValueError("an importance is not finite; such an item has no ranking")
    values = [float(f"{value:.{IMPORTANCE_DIGITS}g}") for value in importance]
    above = {value: sum(other > value for other in values) for value in set(values)}
    sizes = Counter(values)
    return [above[value] + (sizes[value] + 1) / 2 for value in values]


def correlations(predicted: Sequence[float], truth: Sequence[float]) -> Correlation:
    """Spearman's rho and Kendall's tau-b (scipy) between two lists of ranks.

    Args:
        predicted: rank of each unit, as `predicted_ranks` gives it.
        truth: true rank of each unit, 1 first, as `importance_ranks` gives it; ties allowed.

    Returns:
        None with the reason for fewer than two units, or if all units of a side have one rank.
    """
    if len(truth) < 2:
        return Correlation(None, None, "fewer than two units to order")
    for side, ranks in (("true", truth), ("predicted", predicted)):
        if len(set(ranks)) == 1:
            return Correlation(None, None, f"all {side} ranks are equal")

    from scipy.stats import kendalltau, spearmanr  # slow to import

    rho = float(spearmanr(predicted, truth).statistic)
    return Correlation(rho, float(kendalltau(predicted, truth, variant="b").statistic))


def best_reachable(truth: Sequence[float]) -> Correlation:
    """Correlations of the best strict order; below 1 for tau-b and rho if the truth has ties.

    A reply cannot say that two shots are equal. Every order that agrees with the truth reaches the
    same: units of equal rank may stand in any order.
    """
    order = sorted(range(1, len(truth) + 1), key=lambda unit: truth[unit - 1])
    return correlations(predicted_ranks(order, len(truth)), truth)


def identity(truth: Sequence[float]) -> Correlation:
    """Correlations of the order as shown, 1, 2, ..., n."""
    return correlations([float(unit) for unit in range(1, len(truth) + 1)], truth)


def chance(truth: Sequence[float]) -> Correlation:
    """Expected correlations of a strict order drawn at random: 0 for both, if defined.

    An order and its reverse are equally likely, and their correlations cancel, with ties too.
    """
    found = identity(truth)
    return found if found.reason else Correlation(0.0, 0.0)
