"""Leaderboards as markdown, and the generated blocks of a benchmark's README.

A block stands between `<!-- leaderboard:<name> -->` and `<!-- /leaderboard -->`. To renew all
blocks of a README: `python -m lmms_eval_tasks.leaderboards.render maia PATH/README.md`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from lmms_eval_tasks.leaderboards import (
    Leaderboard,
    Table,
    cvrr_es_claims,
    cvrr_es_contradictions,
    haven_claims,
    haven_contradictions,
    leaderboard,
    maia_checks,
    maia_claims,
    maverix_claims,
    maverix_contradictions,
    movierecapsqa_claims,
    movierecapsqa_contradictions,
    movierecapsqa_sample,
)
from lmms_eval_tasks.leaderboards.findings import Claim, Contradiction, Finding

END = "<!-- /leaderboard -->"
OURS = "ours"
SIGNED = ("points", "rating_change", "clipscore_change")


def markdown(table: Table) -> str:
    """A table as markdown: a caption line, then one line per row, figures with the paper's digits.

    Our own figures stand in a column after the printed one that they belong to: beside the
    headline always, elsewhere once there is one. Empty cells are figures nobody has computed yet.
    """
    beside = [c.name for c in table.columns if _has_ours(table, c.name)]
    grouped = [table.group_title] if table.group_title else []
    titles = [*grouped, table.name_title, *(name.capitalize() for name in table.attributes)]
    left = len(titles)
    for column in table.columns:
        titles += [column.title, OURS] if column.name in beside else [column.title]
    lines = [f"**{table.heading}.** {table.caption}{_names(table)}."]
    if table.note:
        lines[0] += f" {table.note}"
    lines += ["", _line(titles), _line(["---"] * left + ["---:"] * (len(titles) - left))]
    for row in table.rows:
        cells = [table.groups[row.group]] if grouped else []
        cells += [row.name, *(row.attributes[name] or "" for name in table.attributes)]
        for column in table.columns:
            signed = (row.unit or column.unit) in SIGNED
            cells.append(_figure(row.figures[column.name], signed))
            if column.name in beside:
                ours = row.ours.get(column.name)
                cells.append("" if ours is None else _figure(ours, signed))
        lines.append(_line(cells))
    if reasons := _dashes(table):
        lines += ["", f"Dashes: {reasons}."]
    return "\n".join(lines)


def markdown_models(board: Leaderboard) -> str:
    """The models' identities (full Hugging Face names, say) with the names the tables print.

    Spellings that only the text or a released file has stand in a column of their own.
    """
    printed: dict[str, list[str]] = {}
    for row in (r for table in (*board.tables, *board.beside.values()) for r in table.rows):
        if row.identity and row.name not in printed.setdefault(row.identity, []):
            printed[row.identity].append(row.name)
    others: dict[str, list[str]] = {one: [] for one in printed}
    heads = {column.title for table in board.tables for column in table.columns}
    for spelled, identity in board.models.items():
        if identity and spelled not in (*printed[identity], *heads):
            others[identity].append(spelled)
    titles = [
        board.identity_title,
        "in the tables",
        *(["elsewhere"] if any(others.values()) else []),
    ]
    lines = [_line(titles), _line(["---"] * len(titles))]
    for one, names in printed.items():
        cells = [f"`{one}`", ", ".join(names), ", ".join(others[one])]
        lines.append(_line(cells[: len(titles)]))
    return "\n".join(lines)


def markdown_findings(
    tables: Sequence[Table], found: Sequence[Finding | Contradiction], checked: Sequence[Claim]
) -> str:
    """Contradictions as a list: first in the tables, then between text and tables."""
    groups, titles = tables[0].groups, {c.name: c.title for t in tables for c in t.columns}
    lines = ["Within and between the tables:", ""]
    for each in found:
        if isinstance(each, Finding):
            lines.append(f"- {_where(each, groups, titles)}: {each.text}.")
        else:
            by_row: dict[str, list[str]] = {}
            for one in each.findings:
                by_row.setdefault(_row(one, groups), []).append(one.text)
            listed = "; ".join(f"{row}: {', '.join(texts)}" for row, texts in by_row.items())
            lines.append(f"- {each.where}: {each.says}. {listed}. {each.follow}".rstrip())
    lines += ["", "Between the text and the tables:", ""]
    lines += [
        f"- {_section(claim)}, in our words: {claim.says}. "
        f"{claim.evidence}. {claim.follow}".rstrip()
        for claim in checked
        if not claim.holds
    ]
    kept = sum(claim.holds for claim in checked)
    lines += [
        "",
        f"Of {len(checked)} statements of the text that the tables can decide, {kept} agree with "
        f"them and {len(checked) - kept} do not.",
    ]
    return "\n".join(lines)


def _cvrr_es(board: Leaderboard) -> str:
    found = cvrr_es_contradictions.contradictions(board)
    listed = markdown_findings(board.tables, found, cvrr_es_claims.claims(board))
    return f"{listed}\n\n{_undecided(cvrr_es_claims.UNDECIDED)}"


def _haven(board: Leaderboard) -> str:
    found = haven_contradictions.contradictions(board)
    listed = markdown_findings(board.tables, found, haven_claims.claims(board))
    return f"{listed}\n\n{_undecided(haven_claims.UNDECIDED)}"


def _undecided(statements: Sequence[tuple[str, str, str]]) -> str:
    """Statements that no printed figure decides: (section, in our words, why)."""
    lines = ["Nothing printed decides:", ""]
    return "\n".join(
        lines + [f"- Section {where}: {says} ({why})." for where, says, why in statements]
    )


def _maia(board: Leaderboard) -> str:
    tables = board.tables
    return markdown_findings(tables, maia_checks.findings(tables), maia_claims.claims(tables))


def _maverix(board: Leaderboard) -> str:
    found = maverix_contradictions.contradictions(board)
    return markdown_findings(board.tables, found, maverix_claims.claims(board))


def _movierecapsqa(board: Leaderboard) -> str:
    found = movierecapsqa_contradictions.contradictions(board)
    return markdown_findings(board.tables, found, movierecapsqa_claims.claims(board))


FINDINGS: Mapping[str, Callable[[Leaderboard], str]] = {
    "cvrr_es": _cvrr_es,
    "haven": _haven,
    "maia": _maia,
    "maverix": _maverix,
    "movierecapsqa": _movierecapsqa,
}
SAMPLES: Mapping[str, Callable[[Leaderboard], str]] = {
    "movierecapsqa": movierecapsqa_sample.markdown
}


def blocks(benchmark: str) -> dict[str, str]:
    """All generated blocks of a benchmark's README, by name, without their markers.

    Raises:
        KeyError: no tables of that benchmark are stored.
    """
    board = leaderboard(benchmark)
    made = {f"{benchmark}:table{table.number}": markdown(table) for table in board.tables}
    made |= {f"{benchmark}:{name}": markdown(table) for name, table in board.beside.items()}
    made[f"{benchmark}:models"] = markdown_models(board)
    made[f"{benchmark}:findings"] = FINDINGS[benchmark](board)
    if benchmark in SAMPLES:
        made[f"{benchmark}:sample"] = SAMPLES[benchmark](board)
    return made


def marked(name: str, body: str) -> str:
    """A block with its markers."""
    return f"<!-- leaderboard:{name} -->\n{body}\n{END}"


def update(text: str, made: dict[str, str]) -> str:
    """`text` with the body of every block replaced.

    Raises:
        ValueError: a block is missing, stands there twice or is not closed.
    """
    for name, body in made.items():
        pattern = re.compile(
            rf"<!-- leaderboard:{re.escape(name)} -->\n(?:(?!<!-- leaderboard:).)*?{END}", re.DOTALL
        )
        text, count = pattern.subn(marked(name, body).replace("\\", r"\\"), text)
        if count != 1:
            raise ValueError(f"block leaderboard:{name} found {count} times, expected once")
    return text


def _has_ours(table: Table, column: str) -> bool:
    return column in table.headline or any(column in row.ours for row in table.rows)


def _dashes(table: Table) -> str:
    rows: dict[str, list[str]] = {}
    for row in table.rows:
        if row.dashes is not None:
            rows.setdefault(row.dashes, []).append(row.name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in rows.items())


def _names(table: Table) -> str:
    names = ", ".join(f"`{task}`" for task in dict.fromkeys(table.tasks.values()))
    if table.metric:
        names = f"`{table.metric}` of {names}"
    return f" ({names})" if names else ""


def _figure(figure: Decimal | None, signed: bool) -> str:
    if figure is None:
        return "–"
    return f"{figure:+f}" if signed else f"{figure:f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _section(claim: Claim) -> str:
    numbered = re.fullmatch(r"[A-Z]?\.?\d*(\.\d+)?", claim.section)
    return f"Section {claim.section}" if numbered else claim.section


def _row(finding: Finding, groups: Mapping[str, str]) -> str:
    return f"{finding.model}{', ' if finding.setting else ''}{groups.get(finding.setting, '')}"


def _where(finding: Finding, groups: Mapping[str, str], titles: Mapping[str, str]) -> str:
    numbers = " and ".join(str(number) for number in finding.tables)
    column = " to ".join(titles[name] for name in finding.column.split(".."))
    tables = "Tables" if len(finding.tables) > 1 else "Table"
    return f"{tables} {numbers}, {_row(finding, groups)}, {column}"


if __name__ == "__main__":
    _benchmark, _readme = sys.argv[1:]
    _path = Path(_readme)
    _path.write_text(update(_path.read_text(encoding="utf-8"), blocks(_benchmark)), "utf-8")
