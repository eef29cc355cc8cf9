"""Means, distributions and failures, by hand."""

from __future__ import annotations

import json

from lmms_eval_tasks.cvrr_es.study import study
from lmms_eval_tasks.cvrr_es.study.study import Cell, Study
from tests.cvrr_es.study.study_rows import PARTIAL, TIME, drawn, of, rows, study


def test_by_hand():
    made = study({"J": {"A": [4, 4, 1, 4.5, None, "absent"]}}, {"A": [1] * 6})
    found = study.summary(of(made), made.items)
    assert found.mean == 13.5 / 4
    assert found.distribution == {1: 1, 2: 0, 3: 0, 4: 2, 5: 0}
    assert (found.rated, found.not_whole, found.failed, found.missing) == (4, 1, 1, 1)
    assert found.failure_share == 1 / 5  # who was never asked did not fail
    assert found.coverage == 4 / 6
    shown = json.loads(json.dumps(found.as_dict()))
    assert shown["distribution"]["4"] == 2
    assert (shown["mean"], shown["rated"], shown["failure_share"]) == (3.375, 4, 0.2)


def test_nothing_rated():
    made = study({"J": {"A": [None, "absent"]}, "K": {"A": [1, 1]}}, {"A": [1, 1]})
    found = study.summary(of(made), made.items)
    assert (found.mean, found.failure_share, found.coverage) == (None, 1, 0)
    nothing = study.summary(of(made), [])
    assert (nothing.failure_share, nothing.coverage) == (None, None)


def test_by_dimension_and_candidate():
    given = [
        *rows([1, 2]),
        *rows([5, 5], candidate="B"),
        *rows([3, None], dimension=TIME, candidate="B"),
    ]
    made = Study.of(given, [])
    found = study.summaries(made, of(made))
    assert found.overall.mean == 16 / 5
    assert {name: one.mean for name, one in found.by_dimension.items()} == {PARTIAL: 3.25, TIME: 3}
    assert {name: one.mean for name, one in found.by_candidate.items()} == {"A": 1.5, "B": 13 / 3}
    assert found.by_dimension[TIME].failure_share == 0.5
    assert {cell: one.mean for cell, one in found.cells.items()} == {
        Cell(PARTIAL, "A"): 1.5,
        Cell(PARTIAL, "B"): 5,
        Cell(TIME, "B"): 3,
    }


def test_the_reference_can_be_described_and_parts_add_up():
    made = drawn(3)
    for ratings in (of(made), made.reference):
        found = study.summaries(made, ratings)
        counts = made.counts(ratings)
        for parts in (found.by_dimension, found.by_candidate, found.cells):
            assert sum(one.rated for one in parts.values()) == found.overall.rated == counts.rated
            assert sum(one.missing for one in parts.values()) == counts.missing
            assert sum(one.failed for one in parts.values()) == counts.failed
            assert sum(one.not_whole for one in parts.values()) == counts.not_whole
