"""Pictures as inline SVG: heat maps, stacked bars, bars with intervals, points.

Colours are classes and variables of the page's style (html.py), so that pictures follow the
reader's light or dark setting. Nothing is loaded and nothing moves.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 960  # of every picture, in its own units; a page of 1000 pixels shows them as they are
_LABEL = 208  # room for names at the left
_ROW = 24
_TOP = 31  # of bars, below the names of their bands
_WEAKEST, _STRONGEST = -8, 7  # levels beyond have text in the other colour, so it can be read
_TOLD = 216  # room at the right of stacked bars


@dataclass(frozen=True)
class Cell:
    """One field of a heat map.

    Attributes:
        text: what stands in it.
        level: -10 to 10, how strongly it is coloured and in which of the two colours; None: empty.
        hint: shown where the pointer rests.
    """

    text: str
    level: int | None
    hint: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a picture; rows with the same `group` stand under that heading."""

    label: str
    cells: tuple[Cell, ...]
    group: str = ""


def heat_map(about: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    """A field for every row and column.

    Args:
        about: for those who cannot see it.
        columns: headings, broken into lines where they are long.
        rows: as many cells as columns.
    """
    width = (WIDTH - _LABEL) / len(columns)
    headings = [_wrapped(one, max(6, int(width / 6.3))) for one in columns]
    top = 13 * max(map(len, headings)) + 8
    parts = [
        _text(_LABEL + (place + 0.5) * width, top - 8 - 13 * (len(lines) - 1 - number), line, "mid")
        for place, lines in enumerate(headings)
        for number, line in enumerate(lines)
    ]
    y: float = top
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            parts.append(_text(0, y + 18, group, "group"))
            y += _ROW + 2
        parts.append(_label(row.label, y))
        for place, cell in enumerate(row.cells):
            x = _LABEL + place * width
            strong = cell.level is not None and not _WEAKEST <= cell.level <= _STRONGEST
            parts.append(
                f"<g>{_hint(cell.hint)}"
                f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{width - 2:.1f}" '
                f'height="{_ROW - 2}" rx="2" class="{_colour(cell.level)}"/>'
                f"{_text(x + width / 2, y + 16, cell.text, 'mid on' if strong else 'mid')}</g>"
            )
        y += _ROW
    return _svg(about, y + 2, parts)


def _colour(level: int | None) -> str:
    if level is None:
        return "no"
    return f"{'n' if level < 0 else 'p'}{min(abs(level), 10)}"


@dataclass(frozen=True)
class Stack:
    """A bar of shares that add up to 1, or nothing at all, and what is said behind it."""

    label: str
    shares: tuple[float, ...]
    told: str


def stacked_bars(about: str, names: Sequence[str], bars: Sequence[Stack]) -> str:
    """Shares beside each other, with their legend above.

    Args:
        about: for those who cannot see it.
        names: of the shares.
        bars: as many shares as names, or none.
    """
    width = WIDTH - _LABEL - _TOLD
    parts = []
    for place, name in enumerate(names):
        x = _LABEL + place * 110.0
        parts.append(f'<rect x="{x}" y="2" width="12" height="12" class="s{place}"/>')
        parts.append(_text(x + 17, 12, name, ""))
    y = 24.0
    for bar in bars:
        parts.append(_label(bar.label, y))
        x = float(_LABEL)
        for place, share in enumerate(bar.shares):
            long = share * width
            shown = f"{100 * share:.0f}"
            inside = _text(x + long / 2, y + 16, shown, f"mid t{place}") if long > 22 else ""
            parts.append(
                f"<g>{_hint(f'{bar.label}: {names[place]} {100 * share:.1f} %')}"
                f'<rect x="{x:.1f}" y="{y + 2:.1f}" width="{long:.1f}" height="{_ROW - 4}" '
                f'class="s{place}"/>{inside}</g>'
            )
            x += long
        parts.append(_text(_LABEL + width + 8, y + 16, bar.told, "soft"))
        y += _ROW
    return _svg(about, y + 2, parts)


@dataclass(frozen=True)
class Bar:
    """A value with its interval, if there is one; `kind` 0 to 3 is its colour."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    kind: int
    group: str


def bars(about: str, rows: Sequence[Bar], stripes: Sequence[tuple[float, str]]) -> str:
    """Bars from zero with their intervals, on an axis up to 1.

    Args:
        about: for those who cannot see it.
        rows: in the order shown.
        stripes: upper limits and names of the bands that are marked behind the bars, from 0.
    """
    ends = [end for bar in rows for end in (bar.value, bar.low) if end is not None]
    lowest = min([0.0, *ends])
    left, right = _LABEL + 4, WIDTH - 150
    unit = (right - left) / (1 - lowest)

    def at(value: float) -> float:
        return left + (value - lowest) * unit

    groups = len({bar.group for bar in rows})
    bottom = _TOP + 4 + _ROW * len(rows) + (_ROW + 2) * groups
    parts = []
    below = 0.0
    for number, (limit, name) in enumerate(stripes):
        parts.append(
            f'<rect x="{at(below):.1f}" y="{_TOP}" width="{(limit - below) * unit:.1f}" '
            f'height="{bottom - _TOP}" class="b{number % 2}"/>'
        )
        # Names of neighbours stand on two lines: with kappas below 0 the stripes are narrow.
        parts.append(_text(at((below + limit) / 2), 12 + 13 * (number % 2), name, "mid soft"))
        below = limit
    y, group = _TOP + 2.0, ""
    for bar in rows:
        if bar.group != group:
            group = bar.group
            parts.append(_text(0, y + 18, group, "group"))
            y += _ROW + 2
        parts.append(_label(bar.label, y))
        parts.append(_bar(bar, y, at))
        y += _ROW
    zero = at(0)
    parts.append(f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="{_TOP}" y2="{y:.1f}" class="axis"/>')
    ticks = [tick / 5 for tick in range(-5, 6) if tick / 5 >= lowest]
    parts += [_text(at(tick), y + 14, f"{tick:g}", "mid soft") for tick in ticks]
    return _svg(about, y + 20, parts)


def _bar(bar: Bar, y: float, at: Callable[[float], float]) -> str:
    if bar.value is None:
        return _text(at(0) + 6, y + 16, "no kappa", "soft")
    start, end = sorted((at(0), at(bar.value)))
    drawn = (
        f'<rect x="{start:.1f}" y="{y + 5:.1f}" width="{max(end - start, 1):.1f}" height="14" '
        f'class="k{bar.kind}"/>'
    )
    told = f"{bar.value:.3f}"
    if bar.low is not None and bar.high is not None:
        low, high, middle = at(bar.low), at(bar.high), y + 12
        drawn += (
            f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 4:.1f}v8'
            f'M{high:.1f} {middle - 4:.1f}v8" class="whisker"/>'
        )
        told += f" [{bar.low:.3f}, {bar.high:.3f}]"
    return f"<g>{_hint(f'{bar.label}: {told}')}{drawn}{_text(WIDTH - 144, y + 16, told, '')}</g>"


def points(about: str, marks: Sequence[tuple[str, float, float]], names: tuple[str, str]) -> str:
    """Points with their names; y from the lowest or 0 to 1.

    Args:
        about: for those who cannot see it.
        marks: name, x (all shares, or all in %) and y (at most 1) of each.
        names: of the two axes.
    """
    most = 1 if max(x for _, x, _ in marks) <= 1 else 100
    least = min([0.0, *(y for _, _, y in marks)]) - 0.03
    left, right, top, bottom = 60, WIDTH - 260, 14, 300

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + x / most * (right - left),
            bottom - (y - least) / (1 - least) * (bottom - top),
        )

    zero = at(0, 0)[1]
    parts = [
        f'<path d="M{left} {top}V{bottom}H{right}M{left} {zero:.1f}H{right}" class="frame"/>',
        *(_text(left - 6, at(0, y / 5)[1] + 4, f"{y / 5:g}", "end soft") for y in range(6)),
        *(
            _text(at(most * part / 5, 0)[0], bottom + 15, f"{most * part / 5:g}", "mid soft")
            for part in range(6)
        ),
        _text((left + right) / 2, bottom + 32, names[0], "mid"),
        _text(4, 10, names[1], ""),
    ]
    taken: list[tuple[float, float]] = []
    for name, x, y in sorted(marks, key=lambda mark: mark[1:]):
        along, up = at(x, y)
        place = up + 4
        # Names of points that lie close to each other go one above the other.
        while any(abs(along - a) < 7 * len(name) + 20 and abs(place - b) < 13 for a, b in taken):
            place -= 13
        taken.append((along, place))
        parts.append(
            f"<g>{_hint(f'{name}: {x:g}, {y:.3f}')}"
            f'<circle cx="{along:.1f}" cy="{up:.1f}" r="5" class="k0"/>'
            f"{_text(along + 9, place, name, '')}</g>"
        )
    return _svg(about, bottom + 38, parts)


def _svg(about: str, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(about)}">'
        f"{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}>{escape(text)}</text>'


def _label(text: str, y: float) -> str:
    """A row's name, cut to its room, whole where the pointer rests."""
    room = _LABEL // 7
    shown = text if len(text) <= room else f"{text[: room - 1]}…"
    return f"<g>{_hint(text)}{_text(_LABEL - 8, y + 16, shown, 'end')}</g>"


def _hint(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _wrapped(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, room, max_lines=4, placeholder="…", break_long_words=False) or [""]
