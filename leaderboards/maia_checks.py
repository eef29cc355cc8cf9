"""Where MAIA's printed tables contradict each other or themselves. Pure functions over tables.

All arithmetic is on whole hundredths, the last printed place: a printed figure p stands for any
value in [p - 1/2, p + 1/2] hundredths, and a finding is reported only if no values in those ranges
agree. (The exception is `repeated_cells`, whose findings are suspicious, not impossible.)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from lmms_eval_tasks.leaderboards import Row, Table
from lmms_eval_tasks.leaderboards.findings import Finding

POOL_SIZE = 8
RUN_LENGTH = 4  # consecutive columns that repeat before we call it suspicious


def hundredths(value: float) -> int:
    """A figure printed with two decimals as a whole number of hundredths."""
    return round(value * 100)


def averages(table: Table) -> list[Finding]:
    """Rows whose printed average cannot be the mean of their printed cells.

    Both the average and the mean of the cells are off by at most half a hundredth, so together by
    at most one (0.01).
    """
    found = []
    for row in table.rows:
        if row.average is None:
            continue
        cells = [hundredths(value) for value in row.cells.values()]
        exact = Fraction(sum(cells), len(cells))
        if abs(hundredths(row.average) - exact) <= 1:
            continue
        true = round(float(exact) / 100, 4)
        found.append(
            Finding(
                kind="average",
                tables=(table.number,),
                setting=row.group,
                model=row.name,
                column="average",
                figures={"printed": row.average, "mean_of_cells": true},
                text=f"the average is printed as {row.average:.2f}; the mean of the row is "
                f"{true:.4f}",
            )
        )
    return found


def pool_bounds(pairs: Table, pools: Table) -> list[Finding]:
    """Pool accuracy that no set of answers with the printed pair accuracy can have.

    With a share p of pairs right: every wrong pool holds at most 8 wrong pairs, so at most a share
    p of pools is right; every wrong pair spoils at most one pool, so at least 1 - 8(1 - p) are. The
    same holds for the averages over categories. With rounding the upper bound is p + 0.01 and the
    lower 1 - 8(1 - p + 0.005) - 0.005.
    """
    found = []
    for row, other in _joined(pools, pairs):
        for column in ("average", *row.cells):
            pool, pair = row.value(column), other.value(column)
            lowest = 1 - POOL_SIZE * (1 - pair)
            cents, pair_cents = hundredths(pool), hundredths(pair)
            if cents > pair_cents + 1:
                kind, bound = "pool_above_pair", pair
                why = (
                    "a pool is right only if all its pairs are, so no more pools than pairs can be"
                )
            elif 2 * cents < 2 * (100 - POOL_SIZE * (100 - pair_cents)) - POOL_SIZE - 1:
                kind, bound = "pool_below_bound", lowest
                why = (
                    f"a wrong pair spoils one pool, so at least 1 - {POOL_SIZE} x {1 - pair:.2f} = "
                    f"{lowest:.2f} of pools must be right "
                    f"({lowest - POOL_SIZE * 0.005:.2f} with rounding)"
                )
            else:
                continue
            found.append(
                Finding(
                    kind=kind,
                    tables=(pools.number, pairs.number),
                    setting=row.group,
                    model=row.name,
                    column=column,
                    figures={"pool_acc": pool, "pair_acc": pair, "bound": round(bound, 2)},
                    text=f"pool accuracy {pool:.2f} with pair accuracy {pair:.2f}; {why}",
                )
            )
    return found


def aggregate_bounds(pools: Table, answers: Table, both: Table) -> list[Finding]:
    """Aggregate accuracy outside what its two parts allow.

    Both conditions hold for at most min(pool, answer) and at least pool + answer - 1 of the
    questions; with rounding, 0.01 above the one or 0.015 below the other.
    """
    found = []
    for row, pool_row in _joined(both, pools):
        answer_row = answers.row(row.group, row.name)
        for column in ("average", *row.cells):
            pool, answer = pool_row.value(column), answer_row.value(column)
            total = row.value(column)
            cents = hundredths(total)
            if cents > min(hundredths(pool), hundredths(answer)) + 1:
                kind, bound = "aggregate_above_bound", min(pool, answer)
            elif 2 * cents < 2 * (hundredths(pool) + hundredths(answer) - 100) - 3:
                kind, bound = "aggregate_below_bound", round(pool + answer - 1, 2)
            else:
                continue
            found.append(
                Finding(
                    kind=kind,
                    tables=(both.number, pools.number, answers.number),
                    setting=row.group,
                    model=row.name,
                    column=column,
                    figures={
                        "agg_acc": total,
                        "pool_acc": pool,
                        "judge_acc": answer,
                        "bound": bound,
                    },
                    text=f"aggregate accuracy {total:.2f} with pool accuracy {pool:.2f} and judged "
                    f"accuracy {answer:.2f}, which allow no value beyond {bound:.2f}",
                )
            )
    return found


def repeated_cells(table: Table) -> list[Finding]:
    """A model whose cells repeat from one setting to another in at least 4 columns running.

    Cells repeat if they differ by at most one hundredth. Different videos (black, one frame, 32
    frames) should give that rarely; it suggests a copied block, and proves nothing.
    """
    found = []
    for index, row in enumerate(table.rows):
        for other in table.rows[index + 1 :]:
            if other.name != row.name:
                continue
            close = [
                abs(hundredths(row.cells[name]) - hundredths(other.cells[name])) <= 1
                for name in row.cells
            ]
            start, length = _longest_run(close)
            if length < RUN_LENGTH:
                continue
            names = list(row.cells)[start : start + length]
            found.append(_repeat(table, row, other, names))
    return found


def findings(tables: Sequence[Table]) -> list[Finding]:
    """Every numeric contradiction within and between MAIA's Tables 1, 2, 3 and 5, in that order."""
    by_number = {table.number: table for table in tables}
    printed = [by_number[number] for number in (1, 2, 3, 5)]
    return [
        *(found for table in printed for found in averages(table)),
        *pool_bounds(pairs=by_number[5], pools=by_number[1]),
        *aggregate_bounds(by_number[1], by_number[2], by_number[3]),
        *(found for table in printed for found in repeated_cells(table)),
    ]


def _joined(left: Table, right: Table) -> list[tuple[Row, Row]]:
    """Rows of `left` with their counterparts in `right`; KeyError if one is missing there."""
    return [(row, right.row(row.group, row.name)) for row in left.rows]


def _longest_run(flags: Sequence[bool]) -> tuple[int, int]:
    """Start and length of the first longest run of True; (0, 0) if there is none."""
    best = (0, 0)
    start = 0
    for index, flag in enumerate(flags):
        if not flag:
            start = index + 1
        elif index + 1 - start > best[1]:
            best = (start, index + 1 - start)
    return best


def _repeat(table: Table, row: Row, other: Row, names: list[str]) -> Finding:
    first = [row.cells[name] for name in names]
    second = [other.cells[name] for name in names]
    how = "equal" if first == second else "equal to within 0.01"
    figures = {f"{row.group}:{name}": value for name, value in zip(names, first, strict=True)}
    figures |= {f"{other.group}:{name}": value for name, value in zip(names, second, strict=True)}
    listed = [" ".join(f"{value:.2f}" for value in values) for values in (first, second)]
    return Finding(
        kind="repeated",
        tables=(table.number,),
        setting=other.group,
        model=row.name,
        column=f"{names[0]}..{names[-1]}",
        figures=figures,
        text=f"{len(names)} columns running are {how} to those with {table.groups[row.group]} "
        f"({listed[1]}; {table.groups[row.group]}: {listed[0]}): suspicious, not impossible",
    )
