"""Made-up judges: their kappas in closed form, draws that repeat, and the final judge's rule."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.simulated_study import by_hand
from benchmarks.simulation import WORLDS, World
from lmms_eval_tasks.cvrr_es.study.selection import SCALE, judge_kappa
from lmms_eval_tasks.utils.stats import mean

CERTAIN = {"lenient": sim.LENIENT, "constant": sim.CONSTANT, "adversarial": sim.ADVERSARIAL}


def test_channels() -> None:
    assert sim.LENIENT[0] == (0, 1, 0, 0, 0)
    assert sim.LENIENT[4] == (0, 0, 0, 0, 1)
    assert sim.ADVERSARIAL[1] == (0, 0, 0, 1, 0)
    assert {row.index(1) for row in sim.CONSTANT} == {3}
    assert sim.noisy(0.2)[0] == pytest.approx((0.9, 0.1, 0, 0, 0))
    assert sim.noisy(0.2)[2] == pytest.approx((0, 0.1, 0.8, 0.1, 0))
    assert sim.after(sim.ADVERSARIAL, sim.ADVERSARIAL) == sim.shifted(0)
    assert sim.after(sim.LENIENT, sim.ADVERSARIAL)[0] == (0, 0, 0, 1, 0)  # 1, then 2, then 4
    for world in WORLDS.values():
        for judge in world.judges:
            for row in world.channel(judge):
                assert sum(row) == pytest.approx(1)


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


@pytest.mark.parametrize("seed", range(5))
def test_judges_without_chance_have_exactly_the_kappa_of_the_closed_form(seed: int) -> None:
    world = World("", {name: sim.Judge(channel) for name, channel in CERTAIN.items()})
    drawn = sim.draw(world, seed)
    for name in CERTAIN:
        found = judge_kappa(drawn.ratings[name], drawn.reference, drawn.reference)
        assert found == pytest.approx(by_hand(world, name, drawn), abs=1e-12)
    assert judge_kappa(drawn.ratings["constant"], drawn.reference, drawn.reference) == 0


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


def test_a_draw_has_400_answers_in_folds_by_video_with_skewed_references() -> None:
    drawn = sim.draw(WORLDS["five"], 0)
    assert len(drawn.reference) == 400
    assert Counter(drawn.fold_of.values()) == dict.fromkeys(range(5), 80)
    of_question: dict[str, set[int]] = {}
    for item, fold in drawn.fold_of.items():
        of_question.setdefault(item.question, set()).add(fold)
    assert all(len(folds) == 1 for folds in of_question.values())
    fold_of = [min(of_question[question]) for question in sorted(of_question)]
    assert fold_of[:9] == [0, 0, 0, 0, 1, 1, 1, 1, 2]  # four questions on each video
    counts = Counter(drawn.reference.values())
    assert counts[1] > counts[2] > counts[3] > 0


def test_copies_share_an_opinion() -> None:
    drawn = sim.draw(WORLDS["captured"], 0)
    names = [name for name in drawn.ratings if name.startswith("copy")]
    assert len(names) == 3
    first, second = drawn.ratings[names[0]], drawn.ratings[names[1]]
    assert judge_kappa(first, second, drawn.reference) > 0.9
    assert abs(judge_kappa(first, drawn.reference, drawn.reference)) < 0.15


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


def test_scale() -> None:
    assert SCALE == (1, 2, 3, 4, 5)
    for shares in (sim.WEAK, sim.STRONG):
        assert sum(shares) == pytest.approx(1)
    means = [
        sum(r * s for r, s in zip(SCALE, shares, strict=True)) for shares in (sim.WEAK, sim.STRONG)
    ]
    assert means == pytest.approx([1.79, 2.80])  # as simulation.py says
