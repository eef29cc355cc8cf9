"""Leaderboards as markdown, and the generated blocks of a benchmark's README.

A block stands between `<!-- leaderboard:<name> -->` and `<!-- /leaderboard -->`. To renew all
blocks of a README: `python -m lmms_eval_tasks.leaderboards.render maia PATH/README.md`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from lmms_eval_tasks.leaderboards import SETTING_TITLES, Row, Table, load
from lmms_eval_tasks.leaderboards.checks import Finding, findings
from lmms_eval_tasks.leaderboards.maia_claims import Claim, claims
from lmms_eval_tasks.maia.categories import CATEGORIES

END = "<!-- /leaderboard -->"
OURS = "ours"
_TITLES = {
    **{category.slug: category.title for category in CATEGORIES},
    "average": "Avg.",
    "rouge_l": "ROUGE",
    "bertscore": "BERTScore",
    "bleu": "BLEU",
    "meteor": "METEOR",
    "cider": "CIDEr",
}


def markdown(table: Table) -> str:
    """A table as markdown: a caption line, then one line per row, figures with two decimals.

    Our own figures stand in a column after the headline they belong to: the average, or each
    metric where the columns are metrics. Empty cells are figures nobody has computed yet.
    """
    headline = ["average"] if table.metric else table.columns
    rest = table.columns if table.metric else []
    titles = ["Setting", "Model"]
    titles += [title for name in headline for title in (_title(name), OURS)]
    titles += [_title(name) for name in rest]
    lines = [f"**Table {table.number}.** {table.caption}{_names(table)}."]
    if table.note:
        lines[0] += f" {table.note}"
    lines += ["", _line(titles), _line(["---", "---", *("---:" for _ in titles[2:])])]
    for row in table.rows:
        cells = [SETTING_TITLES[row.setting], row.model]
        cells += [
            cell for name in headline for cell in (f"{row.value(name):.2f}", _ours(row, name))
        ]
        cells += [f"{row.value(name):.2f}" for name in rest]
        lines.append(_line(cells))
    return "\n".join(lines)


def markdown_models(tables: Sequence[Table]) -> str:
    """The models' full Hugging Face names with the names the tables print for them."""
    printed: dict[str, list[str]] = {}
    for row in (row for table in tables for row in table.rows):
        if row.hub_name and row.model not in printed.setdefault(row.hub_name, []):
            printed[row.hub_name].append(row.model)
    lines = [_line(["Hugging Face", "in the tables"]), _line(["---", "---"])]
    lines += [_line([f"`{hub}`", ", ".join(names)]) for hub, names in printed.items()]
    return "\n".join(lines)


def markdown_findings(found: Sequence[Finding], checked: Sequence[Claim]) -> str:
    """Contradictions as a list: first in the tables, then between text and tables."""
    lines = ["Within and between the tables:", ""]
    lines += [f"- {_where(finding)}: {finding.text}." for finding in found]
    lines += ["", "Between the text and the tables:", ""]
    lines += [
        f"- Section {claim.section}, in our words: {claim.says}. {claim.evidence}."
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


def blocks(benchmark: str) -> dict[str, str]:
    """All generated blocks of a benchmark's README, by name, without their markers.

    Raises:
        KeyError: no tables of that benchmark are stored.
    """
    tables = load(benchmark)
    made = {f"{benchmark}:table{table.number}": markdown(table) for table in tables}
    made[f"{benchmark}:models"] = markdown_models(tables)
    if benchmark == "maia":
        made["maia:findings"] = markdown_findings(findings(tables), claims(tables))
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


def _title(name: str) -> str:
    return _TITLES.get(name, name)


def _names(table: Table) -> str:
    metric = f"`{table.metric}` of " if table.metric else ""
    return f" ({metric}{', '.join(f'`{task}`' for task in dict.fromkeys(table.tasks.values()))})"


def _ours(row: Row, name: str) -> str:
    return f"{row.ours[name]:.2f}" if name in row.ours else ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _where(finding: Finding) -> str:
    numbers = " and ".join(str(number) for number in finding.tables)
    column = " to ".join(_title(name) for name in finding.column.split(".."))
    return (
        f"Table{'s' if len(finding.tables) > 1 else ''} {numbers}, "
        f"{finding.model}, {SETTING_TITLES[finding.setting]}, {column}"
    )


if __name__ == "__main__":
    _benchmark, _readme = sys.argv[1:]
    _path = Path(_readme)
    _path.write_text(update(_path.read_text(encoding="utf-8"), blocks(_benchmark)), "utf-8")
