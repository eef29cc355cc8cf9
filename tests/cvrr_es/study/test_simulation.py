"""Made-up judges (benchmarks/): kappas in closed form, draws that repeat, the study's table.

Which panel wins is not tested, save where the world is made so that one must lose.
"""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest
import simulated_study
import simulation as sim
from simulated_study import MIXTURES, Row, by_hand, study
from simulation import WORLDS, World

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study.panels import PANELS, Judges
from lmms_eval_tasks.cvrr_es.study.selection import Selection, judge_kappa
from lmms_eval_tasks.report.paper_tables import fixed
from lmms_eval_tasks.utils.stats import mean

ROOT = Path(__file__).resolve().parents[3]
SCRIPT, PAGE = ROOT / "benchmarks" / "judge_panels.py", ROOT / "docs" / "cvrr_es.md"
SEEDS = range(3)
CERTAIN = {"lenient": sim.LENIENT, "constant": sim.CONSTANT, "adversarial": sim.ADVERSARIAL}
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


@pytest.fixture(scope="module")
def five() -> dict[tuple[str, str], Row]:
    return {(row.kind, row.name): row for row in study(WORLDS["five"], SEEDS)}


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


@pytest.mark.parametrize("seed", range(3))
def test_judges_without_chance_have_exactly_the_kappa_of_the_closed_form(seed: int) -> None:
    world = World("", {name: sim.Judge(channel) for name, channel in CERTAIN.items()})
    drawn = sim.draw(world, seed)
    for name in CERTAIN:
        found = judge_kappa(drawn.ratings[name], drawn.reference, drawn.reference)
        assert found == pytest.approx(by_hand(world, name, drawn), abs=1e-12)


def test_judges_with_chance_have_it_on_average() -> None:
    channels = {"good": sim.GOOD, "worse": sim.noisy(0.6), "random": sim.RANDOM}
    judges = {name: sim.Judge(channel) for name, channel in channels.items()}
    world = World("", judges | {"copy": sim.Judge(sim.noisy(0.3), "o")}, {"o": sim.noisy(0.6)})
    draws = [sim.draw(world, seed) for seed in range(20)]
    for name in world.judges:
        kappas = [judge_kappa(d.ratings[name], d.reference, d.reference) for d in draws]
        expected = [by_hand(world, name, d) for d in draws]
        assert mean(kappas) == pytest.approx(mean(expected), abs=0.015)


def test_a_draw_repeats_and_its_parts_do_not_move_each_other() -> None:
    five = WORLDS["five"]
    once = sim.draw(five, 3)
    assert sim.draw(five, 3) == once
    assert sim.draw(five, 4).reference != once.reference
    fewer = World("", {name: five.judges[name] for name in ("random", "unbiased")})
    other = sim.draw(fewer, 3)
    assert other.reference == once.reference
    assert other.ratings == {name: once.ratings[name] for name in fewer.judges}
    # Seen once: these exact numbers on every machine and version of Python.
    assert list(once.reference.values())[:12] == [5, 1, 4, 1, 3, 3, 1, 1, 1, 2, 1, 1]
    assert list(once.ratings["random"].values())[:12] == [5, 1, 3, 1, 3, 2, 4, 3, 1, 4, 5, 2]
    # 400 answers, folds by video (four questions on each).
    assert Counter(once.fold_of.values()) == dict.fromkeys(range(5), 80)
    of_question = {item.question: fold for item, fold in once.fold_of.items()}
    assert all(of_question[item.question] == fold for item, fold in once.fold_of.items())
    assert [of_question[one] for one in sorted(of_question)][:9] == [0, 0, 0, 0, 1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("own", "shown", "weight", "rating"),
    [
        (1, [], 0.5, 1),
        (1, [5, 5], 0.0, 1),
        (1, [5, 5], 1.0, 5),
        (1, [5, 4], 0.5, 3),  # 1 + 0.5 * 3.5 = 2.75
        (1, [4], 0.5, 2),  # 2.5 goes down
        (5, [1, 2], 0.5, 3),  # 3.25
    ],
)
def test_the_final_judge_moves_towards_what_it_is_shown(
    own: int, shown: list[int], weight: float, rating: int
) -> None:
    assert sim.swayed(own, shown, weight) == rating


def test_worlds_are_what_they_say() -> None:
    for world in WORLDS.values():
        for judge in world.judges:
            assert all(sum(row) == pytest.approx(1) for row in world.channel(judge))
    good = [
        sum(sim.expected_kappa(sim.WEAK, world.channel(judge)) > 0.5 for judge in world.judges)
        for world in WORLDS.values()
    ]
    assert dict(zip(WORLDS, good, strict=True)) == {
        "five": 2,
        "minority": 3,
        "majority": 2,
        "correlated": 3,
        "captured": 2,
        "lenient": 5,
        "chance": 0,
    }
    means = [sum(r * s for r, s in zip(SCALE, one, strict=True)) for one in (sim.WEAK, sim.STRONG)]
    assert means == pytest.approx([1.79, 2.80])
    captured = sim.draw(WORLDS["captured"], 0)
    first, second, *_ = (own for name, own in captured.ratings.items() if name[:4] == "copy")
    assert judge_kappa(first, second, captured.reference) > 0.9
    assert abs(judge_kappa(first, captured.reference, captured.reference)) < 0.15


def test_rows_are_the_kappas_of_their_seeds(five: dict[tuple[str, str], Row]) -> None:
    for place, seed in enumerate(SEEDS):
        drawn = sim.draw(WORLDS["five"], seed)
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


def test_final_ratings_come_of_the_judges_that_are_shown() -> None:
    drawn = sim.draw(WORLDS["majority"], 0)
    everybody = dict.fromkeys(drawn.reference, tuple(drawn.ratings))
    mean = Judges(drawn.ratings, {}, drawn.dimension_of, None).panel("mean").ratings
    assert simulated_study.final_ratings(drawn, everybody, 1.0) == mean
    assert simulated_study.final_ratings(drawn, everybody, 0.0) == drawn.final
    assert simulated_study.final_ratings(drawn, {}, 1.0) == drawn.final
    for cross_fit in (True, False):
        shown = simulated_study.shown_to_final(drawn, Selection(theta=0.5, cross_fit=cross_fit))
        assert set(shown) == set(drawn.reference)
        assert set(shown.values()) == {("unbiased 1", "unbiased 2")}


def test_cross_fitting_takes_away_what_choosing_on_the_same_items_flatters() -> None:
    """Judges at random: on the same items the chosen one is the best by chance, else it is not."""
    drawn = [sim.draw(WORLDS["chance"], seed) for seed in range(20)]
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


def test_tables_show_means_ranges_and_what_is_undefined() -> None:
    rows = [
        Row("judge", "a", (0.5, 0.25), (0.0, -0.25), (-0.0001, 0.1), 0.4, ("odd",)),
        Row("judge", "b", (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), -1e-17),
        Row("panel", "mean", (None, 1.0), (None, 0.5), (None, None)),
    ]
    lines = simulated_study.table("a world", rows).splitlines()
    assert lines[0] == "a world"
    assert "0.375 [ 0.250,  0.500]" in lines[2]
    assert "-0.125 [-0.250,  0.000]" in lines[2]
    assert lines[3] == "   a: odd"
    assert lines[4].endswith("  0.000")
    assert "1.000 [ 1.000,  1.000] (1 undefined)" in lines[5]
    assert lines[5].endswith("undefined")
    with pytest.raises(ValueError, match="at least one seed"):
        study(WORLDS["five"], [])


def test_the_script(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*options: str) -> None:
        monkeypatch.setattr(sys, "argv", ["judge_panels.py", *options])
        runpy.run_path(str(SCRIPT), run_name="__main__")

    printed = []
    for _ in range(2):
        run("--seeds", "1", "--world", "minority")
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[0].startswith("minority: three unbiased judges, two bad ones (1 seeds)")
    for name in [*WORLDS["minority"].judges, *PANELS, *MIXTURES]:
        assert f" {name} " in printed[0]
    for option in (["--seeds", "0"], ["--weight", "2"], ["--world", "none"]):
        with pytest.raises(SystemExit):
            run(*option)
        assert option[0] in capsys.readouterr().err


@pytest.mark.parametrize("world", ["captured", "lenient"])
def test_the_page_has_the_figures_of_the_study(world: str) -> None:
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
