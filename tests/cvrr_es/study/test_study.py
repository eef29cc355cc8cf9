"""What a study is made of and counts; means and failures by hand; folds by video."""

from __future__ import annotations

import random
from collections import Counter

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow
from lmms_eval_tasks.cvrr_es.study.study import Folds, Rater, Study, folds, summaries, summary
from lmms_eval_tasks.errors import DataError
from tests.checks import refused
from tests.cvrr_es.study.study_rows import PARTIAL, TIME, drawn, of, row, rows, study

SLUGS = list(DIMENSIONS)


def test_items_are_of_judges_and_reference_in_whatever_order_they_come() -> None:
    made = study({"J": {"A": [5, 4]}, "K": {"B": ["absent", 3]}}, {"A": [5, "absent", 2]})
    places = ((0, "A"), (1, "A"), (1, "B"), (2, "A"))
    assert made.items == tuple(Item(f"{PARTIAL}/{n:03d}", name) for n, name in places)
    assert made.referees == {Rater("debate", "reference")}
    ours = [*rows([1, 2, None]), *rows([4], judge="K"), *rows([2, 3], dimension=TIME)]
    ours.append(row(1, 4, round="collective"))
    reference = rows([1, 1, 1], judge="debate", round="reference")
    made = Study.of(ours, reference)
    random.Random(1).shuffle(ours)
    again = Study.of(ours, reference[::-1])
    assert (again, list(again.cells), list(again.raters)) == (
        *(made, list(made.cells), list(made.raters)),
    )


def test_what_is_refused() -> None:
    other = row(1, 3, dimension=TIME, question="partial_actions/001", candidate="B")
    cases: list[tuple[list[RatingRow], list[RatingRow], str]] = [
        ([], [], "there are no ratings"),
        ([row(1, 3)], [row(2, 3)], "no item in common, such as .*/001 by A and .*/002 by A"),
        (
            [row(1, 3), other],
            [],
            "in the dimension partial_actions .* and in time_order",
        ),
        (
            [row(1, 3)],
            [row(1, 3, judge="d", video="other.mp4")],
            "'v0.mp4' in one .* 'other.mp4'",
        ),
    ]
    for ours, reference, message in cases:
        refused(DataError, message, Study.of, ours, reference)
    for one, another in (("", "x.mp4"), ("x.mp4", "")):  # a row learns its video from another
        made = Study.of([row(1, 4, video=one)], [row(1, 4, judge="d", video=another)])
        assert made.questions["partial_actions/001"].video == "x.mp4"


def test_summaries_by_hand() -> None:
    made = study({"J": {"A": [4, 4, 1, 4.5, None, "absent"]}}, {"A": [1] * 6})
    assert summary(of(made), made.items) == {
        "mean": 13.5 / 4,
        "rated": 4,
        "distribution": {"1": 1, "2": 0, "3": 0, "4": 2, "5": 0},
        "not_whole": 1,
        "failed": 1,
        "missing": 1,
        "failure_share": 1 / 5,  # who was never asked did not fail
        "coverage": 4 / 6,
    }
    nothing = summary(of(made), [])
    assert nothing["mean"] is nothing["failure_share"] is nothing["coverage"] is None
    ours = [*rows([1, 2]), *rows([5, 5], candidate="B")]
    made = Study.of([*ours, *rows([3, None], dimension=TIME, candidate="B")], [])
    found = summaries(made, of(made))
    assert found["overall"]["mean"] == 16 / 5
    by = {
        name: {key: own["mean"] for key, own in found[name].items()}
        for name in ("by_dimension", "by_candidate")
    }
    assert by["by_dimension"] == {PARTIAL: 3.25, TIME: 3}
    assert by["by_candidate"] == {"A": 1.5, "B": 13 / 3}
    cells = {key: {c: one["mean"] for c, one in own.items()} for key, own in found["cells"].items()}
    assert cells == {PARTIAL: {"A": 1.5, "B": 5}, TIME: {"B": 3}}


# --- folds ----------------------------------------------------------------------------------------


def by_video(made: Study, seed: int = 0) -> Folds:
    return folds(made.items, made.questions, seed)


def test_a_video_is_in_one_fold_whatever_the_order() -> None:
    made = drawn(1)
    found = by_video(made)
    folds_of: dict[str, set[int]] = {}
    for item in made.items:
        folds_of.setdefault(made.video(item), set()).add(found.of[item.question])
    assert all(len(own) == 1 for own in folds_of.values())
    assert (set(found.of.values()), found.count, found.note) == (set(range(5)), 5, "")
    ours = [row(n, 3, video=f"v{n // 3}") for n in range(60)]
    found = by_video(Study.of(ours, []))
    assert by_video(Study.of(ours[::-1], [])) == found
    assert by_video(Study.of(ours, []), seed=1).of != found.of


def test_where_videos_are_not_known() -> None:
    made = Study.of([*rows([3] * 10, video=""), *rows([3] * 10, video="", candidate="B")], [])
    found = by_video(made)
    assert found.note.startswith("10 of 10 questions have no video")
    assert sorted(Counter(found.of.values()).values()) == [2, 2, 2, 2, 2]
    made = Study.of([row(0, 3, video="a"), row(1, 3, video="a"), row(2, 3, video="")], [])
    found = by_video(made)
    assert found.note == "1 of 3 questions have no video: each is its own unit"
    assert found.of["partial_actions/000"] == found.of["partial_actions/001"]
    assert by_video(Study.of(rows([3, 4], video="a"), [])).count == 1
