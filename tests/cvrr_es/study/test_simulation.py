"""Made-up judges (benchmarks/): kappas in closed form, and the study's table in the docs."""

from __future__ import annotations

from pathlib import Path

import pytest
import simulated_study
import simulation as sim
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
    "best judge elsewhere": ("panel", "best_judge"),
    "naive Bayes": ("panel", "naive_bayes"),
    "final judge alone": ("final", "alone"),
    "collective": ("final", "collective"),
    "mixture": ("final", "mixture"),
}


def test_kappa_in_closed_form_by_hand() -> None:
    # Reference 1 or 5, half each. Adversarial: D = 16, E = 8. Lenient: 2 and 5, D = 1/2,
    # E = (1 + 16 + 9 + 0) / 4. One step of noise in half: 1, 1, 1, 2 and 5, 5, 5, 4.
    shares = (0.5, 0, 0, 0, 0.5)
    assert sim.expected_kappa(shares, sim.ADVERSARIAL) == -1
    assert sim.expected_kappa(shares, sim.LENIENT) == pytest.approx(1 - 0.5 / 6.5)
    assert sim.expected_kappa(shares, sim.shifted(0)) == 1
    assert sim.expected_kappa(shares, sim.CONSTANT) == 0
    assert sim.expected_kappa(shares, sim.RANDOM) == 0
    chance = (0.375 * 0 + 0.125 * 1 + 0.125 * 9 + 0.375 * 16) / 2 * 2
    assert sim.expected_kappa(shares, sim.noisy(0.5)) == pytest.approx(1 - 0.25 / chance)
    assert sim.expected_kappa((0, 0, 0, 1, 0), sim.CONSTANT) is None


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
