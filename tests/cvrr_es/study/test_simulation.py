"""Made-up judges (benchmarks/): the study's table in the docs is what it gives."""

from __future__ import annotations

from pathlib import Path

import judge_panels
from judge_panels import study
from simulation import WORLDS

from lmms_eval_tasks.tables.paper_tables import fixed

PAGE = Path(__file__).resolve().parents[3] / "lmms_eval_tasks" / "cvrr_es" / "README.md"
PANELS = ("mean", "majority", "dawid_skene", "kappa_weighted")  # in the page's order
FINALS = ("alone", "collective", "mixture")


def test_the_page_has_the_figures_of_the_study() -> None:
    world = "captured"
    rows = {
        (row.kind, row.name): row.kappas
        for row in study(WORLDS[world], range(judge_panels.SEEDS), names=PANELS)
    }
    best = [
        max(every) for every in zip(*(rows[key] for key in rows if key[0] == "judge"), strict=True)
    ]
    own = [best, *(rows["panel", one] for one in PANELS), *(rows["final", one] for one in FINALS)]
    cells = " | ".join(fixed(sum(kappas) / len(kappas)) for kappas in own)
    (line,) = [one for one in PAGE.read_text("utf-8").splitlines() if f"| `{world}`" in one]
    assert line.endswith(f" | {cells} |")
