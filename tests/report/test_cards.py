"""A card of a page's first screen: which number stands on it, and where its marks lie."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pytest

from lmms_eval_tasks import registry
from lmms_eval_tasks.report import cards, charts, compare
from lmms_eval_tasks.report.aggregation import of_joint, of_task
from lmms_eval_tasks.report.compare import Comparison
from lmms_eval_tasks.utils.metrics.stats import Interval

MAIA, MAVERIX = (registry.load_benchmark(name) for name in ("maia", "maverix"))
(AGGREGATE,) = (join for join in MAIA.joint_metrics if join.group == "maia")


def interval(estimate: float, low: float = math.nan, high: float = math.nan) -> Interval:
    return Interval(estimate, low, high, None, "", 8, 2)


def line(benchmark: str, task: str, numbers: Mapping[str, Interval], place: int = 0) -> Comparison:
    own = registry.load_benchmark(benchmark).tasks[task]
    return Comparison(of_task(own, compare.headline_metrics(own)[place]), numbers)


def test_the_groups_number_comes_first_then_the_most_important_task() -> None:
    numbers = {"m": interval(0.5)}
    vsv, oevqa = (line("maia", name, numbers) for name in ("maia_vsv", "maia_oevqa"))
    joint = Comparison(of_joint(AGGREGATE, "agg_acc"), numbers)
    for lines, name in (
        ([vsv, oevqa, joint], "maia agg_acc"),
        ([oevqa, vsv], "maia_vsv pair_acc"),
        ([line("maia", "maia_vsv", numbers, 1), oevqa], "maia_oevqa judge_acc"),
    ):
        card = cards.make_card(MAIA, lines, (), (), ())
        assert card is not None
        assert card.name == name
    modes = [line("maverix", f"maverix_{mode}", numbers) for mode in ("a", "s", "v", "vs", "av")]
    assert (card := cards.make_card(MAVERIX, modes, (), (), ())) is not None
    assert card.name == "maverix_av acc"
    assert cards.make_card(MAIA, [], (), (), ()) is None


def test_where_the_marks_lie() -> None:
    numbers = {"m": interval(0.5, 0.4, 0.625), "none": interval(math.nan), "n": interval(0.25)}
    vsv = line("maia", "maia_vsv", numbers)
    card = cards.make_card(MAIA, [vsv], {("n", "maia_vsv")}, {"none"}, ["a limit"])
    assert card is not None
    first, none, second = card.rows
    assert (first.label, first.value, first.ends) == ("m", "0.500", "0.400 to 0.625")
    assert (first.place, first.interval, first.state) == (50, (40, 62.5), "VALID")
    assert (none.place, none.interval, none.nearest, none.state) == (None, None, None, "UNKNOWN")
    assert (second.place, second.ends, second.state) == (25, "", "INVALID")
    assert card.scale == ("0", "1")
    assert card.chance == cards.Mark("chance", 0.5, 50)
    published = vsv.quantity.published
    assert published is not None
    assert sorted(published.papers.values()) == [paper.figure for paper in card.papers]
    assert all(paper.place == pytest.approx(100 * paper.figure) for paper in card.papers)
    distance = min(abs(figure - 0.25) for figure in published.papers.values())
    assert second.nearest is not None
    assert abs(second.nearest.figure - 0.25) == distance


def test_the_mark_of_a_chart_is_behind_the_plot() -> None:
    """A number near 0 is beside the names, and an interval would go through the word."""
    own = line("maia", "maia_vsv", {"m": interval(0.5), "n": interval(0.01, 0.0, 0.7)})
    invalid = {("n", "maia_vsv")}
    card = cards.make_card(MAIA, [own], invalid, (), ())
    assert card is not None
    drawn = charts.overview([card], charts.Runs(["m", "n"], invalid), "numbers")
    marks = re.findall(r'translate\(([\d.]+),[\d.]+\)"[^>]*>INVALID<', drawn)
    assert [float(place) for place in marks] == [
        700 + 9,
        190 + 9,
    ]  # of the wide and the narrow chart


def test_scales_of_other_numbers() -> None:
    for value, scale in ((3.2, ("0", "5")), (-0.25, ("-0.25", "1")), (250.0, ("0", "250"))):
        own = line("maia", "maia_vsv", {"m": interval(value)}, 1)
        assert (card := cards.make_card(MAIA, [own], (), (), ())) is not None
        assert card.scale == scale
        assert 0 <= (card.rows[0].place or 0) <= 100
