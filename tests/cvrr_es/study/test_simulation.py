"""Made-up judges (benchmarks/): kappas in closed form, and the study's table in the docs."""

from __future__ import annotations

from pathlib import Path

import simulated_study
from simulated_study import study
from simulation import WORLDS

from lmms_eval_tasks.report.paper_tables import fixed

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cvrr_es.md"
# The page's columns.
COLUMNS = {
    "mean": ("panel", "mean"),
    "majority": ("panel", "majority"),
    "Dawid-Skene": ("panel", "dawid_skene"),
    "kappa-weighted mean": ("panel", "kappa_weighted"),
    "final judge alone": ("final", "alone"),
    "collective": ("final", "collective"),
    "mixture": ("final", "mixture"),
}


def test_the_page_has_the_figures_of_the_study() -> None:
    world = "captured"
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    start = next(place for place, line in enumerate(lines) if line.startswith("| world |"))
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[start:]]
    table = [dict(zip(cells[0], row, strict=True)) for row in cells[2 : len(WORLDS) + 2]]
    found = {row["world"].split("`")[1]: row for row in table}
    assert list(found) == list(WORLDS)
    names = [name for kind, name in COLUMNS.values() if kind == "panel"]
    seeds = range(simulated_study.SEEDS)
    rows = {(row.kind, row.name): row for row in study(WORLDS[world], seeds, names=names)}
    mean = rows["panel", "mean"]
    best = [kappa - over for kappa, over in zip(mean.kappas, mean.over_best, strict=True)]
    expected = {"best single judge": best} | {
        column: rows[key].kappas for column, key in COLUMNS.items()
    }
    assert {column: found[world][column] for column in expected} == {
        column: fixed(sum(kappas) / len(kappas)) for column, kappas in expected.items()
    }
