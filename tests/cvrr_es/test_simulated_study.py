"""The study of the made-up worlds on a few seeds: what it reports, and what holds by construction.

Which panel wins is not tested, save where the world is made so that one must lose.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from benchmarks import simulated_study, simulation
from benchmarks.simulated_study import MIXTURES, Row, study
from benchmarks.simulation import WORLDS
from lmms_eval_tasks.cvrr_es.study import selection
from lmms_eval_tasks.cvrr_es.study.panels import PANELS, Judges
from lmms_eval_tasks.cvrr_es.study.selection import Selection, judge_kappa
from lmms_eval_tasks.report.paper_tables import fixed

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "judge_panels.py"
SEEDS = range(3)


@pytest.fixture(scope="module")
def five() -> dict[tuple[str, str], Row]:
    return {(row.kind, row.name): row for row in study(WORLDS["five"], SEEDS)}


def test_every_judge_panel_and_final_judge_has_a_row(five: dict[tuple[str, str], Row]) -> None:
    assert [name for kind, name in five if kind == "judge"] == sorted(WORLDS["five"].judges)
    assert {name for kind, name in five if kind == "panel"} == set(PANELS)
    finals = [name for kind, name in five if kind == "final"]
    assert finals == ["alone", "collective", *MIXTURES]


def test_rows_are_the_kappas_of_their_seeds(five: dict[tuple[str, str], Row]) -> None:
    for place, seed in enumerate(SEEDS):
        drawn = simulation.draw(WORLDS["five"], seed)
        judges = Judges(drawn.ratings, drawn.reference, drawn.dimension_of, drawn.fold_of)
        rated = {("judge", name): own for name, own in drawn.ratings.items()}
        rated |= {("panel", name): judges.panel(name).ratings for name in PANELS}
        rated["final", "alone"] = drawn.final
        shown = {"collective": dict.fromkeys(drawn.reference, tuple(drawn.ratings))}
        shown |= {name: simulated_study.shown_to_final(drawn, MIXTURES[name]) for name in MIXTURES}
        for name, names in shown.items():
            said = simulated_study.final_ratings(drawn, names, simulated_study.WEIGHT)
            rated["final", name] = said
        kappas = {
            key: judge_kappa(own, drawn.reference, drawn.reference) for key, own in rated.items()
        }
        best = max(kappa for (kind, _), kappa in kappas.items() if kind == "judge")
        assert set(kappas) == set(five)
        for key, kappa in kappas.items():
            assert five[key].kappas[place] == kappa
            assert five[key].over_best[place] == kappa - best
            assert five[key].over_mean[place] == kappa - kappas["panel", "mean"]


def test_judges_have_their_kappa_by_hand_beside_them(five: dict[tuple[str, str], Row]) -> None:
    for (kind, name), row in five.items():
        assert (row.by_hand is not None) == (kind == "judge")
        if name in ("lenient", "constant", "adversarial"):
            assert sum(row.kappas) / len(row.kappas) == pytest.approx(row.by_hand, abs=1e-12)


def test_final_ratings_come_of_the_judges_that_are_shown() -> None:
    drawn = simulation.draw(WORLDS["majority"], 0)
    everybody = dict.fromkeys(drawn.reference, tuple(drawn.ratings))
    said = simulated_study.final_ratings(drawn, everybody, 1.0)
    mean = Judges(drawn.ratings, {}, drawn.dimension_of, None).panel("mean").ratings
    assert said == mean
    assert simulated_study.final_ratings(drawn, everybody, 0.0) == drawn.final
    assert simulated_study.final_ratings(drawn, {}, 1.0) == drawn.final


@pytest.mark.parametrize("rule", [Selection(theta=0.5), Selection(theta=0.5, cross_fit=False)])
def test_the_mixture_shows_the_chosen_judges(rule: Selection) -> None:
    drawn = simulation.draw(WORLDS["majority"], 0)
    shown = simulated_study.shown_to_final(drawn, rule)
    assert set(shown) == set(drawn.reference)
    assert set(shown.values()) == {("unbiased 1", "unbiased 2")}


def test_cross_fitting_takes_away_what_choosing_on_the_same_items_flatters() -> None:
    """Judges at random: on the same items the chosen one is the best by chance, else it is not."""
    drawn = [simulation.draw(WORLDS["chance"], seed) for seed in range(20)]
    found = {}
    for cross_fit in (True, False):
        rule = Selection("top", k=1, cross_fit=cross_fit)
        kappas = []
        for one in drawn:
            shown = simulated_study.shown_to_final(one, rule)
            rated = {item: one.ratings[judges[0]][item] for item, judges in shown.items()}
            kappas.append(judge_kappa(rated, one.reference, one.reference))
        found[cross_fit] = sum(kappas) / len(kappas)
    assert abs(found[True]) < 0.02
    assert found[False] > 0.03


def test_latent_classes_lose_where_most_judges_repeat_one_opinion() -> None:
    rows = study(WORLDS["captured"], range(4), names=["dawid_skene", "best_judge"])
    captured = {row.name: row for row in rows if row.kind == "panel"}
    assert max(captured["dawid_skene"].over_best) < -0.5
    assert max(captured["dawid_skene"].over_mean) < 0
    assert min(captured["best_judge"].kappas) > 0.85


def test_without_the_reference_a_bias_that_all_share_stays() -> None:
    rows = study(WORLDS["lenient"], range(2), names=["majority", "median", "naive_bayes"])
    for row in rows:
        if row.kind == "panel" and row.name == "naive_bayes":
            assert min(row.kappas) > 0.9
        elif row.kind in ("judge", "panel"):
            assert max(row.kappas) < 0.8


def test_worlds_have_their_bad_judges_where_they_say() -> None:
    good = {
        name: sum(
            simulation.expected_kappa(simulation.WEAK, world.channel(judge)) > 0.5
            for judge in world.judges
        )
        for name, world in WORLDS.items()
    }
    assert {name: len(world.judges) for name, world in WORLDS.items()} == dict.fromkeys(WORLDS, 5)
    assert good == {
        "five": 2,
        "minority": 3,
        "majority": 2,
        "correlated": 3,
        "captured": 2,
        "lenient": 5,
        "chance": 0,
    }


def test_tables_show_means_ranges_and_what_is_undefined() -> None:
    rows = [
        Row("judge", "a", (0.5, 0.25), (0.0, -0.25), (-0.0001, 0.1), 0.4, ("odd",)),
        Row("judge", "b", (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), -1e-17),
        Row("panel", "mean", (None, 1.0), (None, 0.5), (None, None)),
    ]
    lines = simulated_study.table("a world", rows).splitlines()
    assert lines[0] == "a world"
    assert " ".join(lines[1].split()) == "kappa minus best judge minus mean panel by hand"
    assert "0.375 [ 0.250,  0.500]" in lines[2]
    assert "-0.125 [-0.250,  0.000]" in lines[2]
    assert "0.050 [ 0.000,  0.100]" in lines[2]
    assert lines[2].endswith("0.400")
    assert lines[3] == "   a: odd"
    assert lines[4].endswith("  0.000")
    assert "1.000 [ 1.000,  1.000] (1 undefined)" in lines[5]
    assert lines[5].endswith("undefined")
    with pytest.raises(ValueError, match="at least one seed"):
        study(WORLDS["five"], [])


def test_the_script_prints_the_same_table_twice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["judge_panels.py", "--seeds", "1", "--world", "minority"])
    printed = []
    for _ in range(2):
        runpy.run_path(str(SCRIPT), run_name="__main__")
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[0].startswith("minority: three unbiased judges, two bad ones (1 seeds)")
    for name in [*WORLDS["minority"].judges, *PANELS, *MIXTURES]:
        assert f" {name} " in printed[0]


PAGE = Path(__file__).resolve().parents[2] / "docs" / "cvrr_es.md"
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


def of_page() -> list[dict[str, str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    start = next(place for place, line in enumerate(lines) if line.startswith("| world |"))
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[start:]]
    end = len(WORLDS) + 2  # the heading and the rule below it
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:end]]


def test_the_page_says_what_its_table_shows() -> None:
    rows = of_page()
    above = [row for row in rows if float(row["Dawid-Skene"]) > float(row["best single judge"])]
    number = ("no", "one", "two", "three", "four", "five", "six", "all")[len(above)]
    assert f"Dawid-Skene is above it in {number} worlds," in PAGE.read_text(encoding="utf-8")
    for row in rows:
        assert float(row["naive Bayes"]) > float(row["best single judge"]) - 0.05


@pytest.mark.parametrize("world", WORLDS)
def test_the_page_has_the_figures_of_the_study(world: str) -> None:
    found = {row["world"].split("`")[1]: row for row in of_page()}
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


@pytest.mark.parametrize("option", [["--seeds", "0"], ["--weight", "2"], ["--world", "none"]])
def test_the_script_refuses_other_options(
    option: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["judge_panels.py", *option])
    with pytest.raises(SystemExit):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert option[0] in capsys.readouterr().err


def test_the_mixtures_are_by_the_rules_that_they_name() -> None:
    assert {name: str(rule) for name, rule in MIXTURES.items()} == {
        "mixture": str(selection.parse("")),
        "mixture, same items": "theta=0.08,fallback=all,cross_fit=no",
        "mixture, top 1": "top=1,fallback=all,cross_fit=yes",
        "mixture, top 1, same items": "top=1,fallback=all,cross_fit=no",
    }
