"""Folds: whole videos, balanced within dimensions, the same every time."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.study import study
from lmms_eval_tasks.cvrr_es.study.study import Study
from tests.cvrr_es.study.study_rows import drawn, row, rows

SLUGS = list(DIMENSIONS)


def of_videos(sizes: dict[str, dict[str, int]]) -> Study:
    """Dimension -> video -> number of questions."""
    made = []
    for dimension, videos in sizes.items():
        number = 0
        for video, size in videos.items():
            for _ in range(size):
                number += 1
                made.append(row(number, 3, dimension=dimension, video=video))
    return Study.of(made, [])


@pytest.mark.parametrize("seed", range(5))
def test_a_video_is_in_one_fold_with_all_candidates(seed):
    made = drawn(seed)
    found = study.by_video(made)
    by_video: dict[str, set[int]] = {}
    for item in made.items:
        by_video.setdefault(made.video(item), set()).add(found.fold(item))
    assert all(len(own) == 1 for own in by_video.values())
    assert set(found.of) == set(made.questions)
    assert set(found.of.values()) == set(range(5))
    assert (found.count, found.note) == (5, "")
    assert found.fold_of(made.items) == {item: found.of[item.question] for item in made.items}


SIZES = st.dictionaries(
    st.sampled_from(SLUGS),
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    min_size=1,
    max_size=3,
)


@given(SIZES, st.integers(2, 6), st.integers(0, 3))
def test_every_dimension_is_balanced(sizes, count, seed):
    """No fold has more than another by more than the dimension's largest video."""
    made = of_videos(
        {
            dimension: {f"{dimension}{i}": size for i, size in enumerate(own)}
            for dimension, own in sizes.items()
        }
    )
    found = study.by_video(made, count, seed)
    assert found.count == min(count, sum(map(len, sizes.values())))
    for dimension, own in sizes.items():
        loads = Counter(dict.fromkeys(range(found.count), 0))
        loads.update(found.fold(item) for item in made.items if made.dimension(item) == dimension)
        assert max(loads.values()) - min(loads.values()) <= max(own)


def test_the_total_is_balanced_too():
    """Eleven dimensions of one video each: without a look at the total all go into fold 0."""
    made = of_videos({dimension: {dimension: 2} for dimension in SLUGS})
    loads = Counter(study.by_video(made).of.values())
    assert sorted(loads.values()) == [4, 4, 4, 4, 6]


def test_a_video_in_two_dimensions_stays_whole():
    made = of_videos({SLUGS[0]: {"x": 3, "a": 2, "b": 2}, SLUGS[1]: {"x": 1, "c": 2}})
    found = study.by_video(made, 2)
    own = {found.fold(item) for item in made.items if made.video(item) == "x"}
    assert len(own) == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_video_in_two_dimensions_is_placed_by_its_main_one(seed):
    """Whatever comes first, x and y are apart: they are nearly all of the first dimension."""
    made = of_videos({SLUGS[0]: {"x": 6, "y": 6}, SLUGS[1]: {"x": 1, "z": 1}})
    found = study.by_video(made, 2, seed)
    by_video = {made.video(item): found.fold(item) for item in made.items}
    assert by_video["x"] != by_video["y"]


def test_order_does_not_matter_and_seeds_do():
    given_rows = [row(n, 3, video=f"v{n // 3}") for n in range(60)]
    found = study.by_video(Study.of(given_rows, []))
    random.Random(1).shuffle(given_rows)
    assert study.by_video(Study.of(given_rows, [])) == found
    assert study.by_video(Study.of(given_rows, []), seed=1).of != found.of


def test_another_process_makes_the_same_folds():
    """Hashes of Python's own would differ from run to run."""
    code = (
        "from lmms_eval_tasks.cvrr_es.reliability import folds\n"
        "from tests.cvrr_es.study.study_rows import drawn\n"
        "print(sorted(study.by_video(drawn(1)).of.items()))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{sorted(study.by_video(drawn(1)).of.items())}\n"}


def test_by_question_where_no_video_is_known():
    made = Study.of([*rows([3] * 10, video=""), *rows([3] * 10, video="", candidate="B")], [])
    found = study.by_video(made)
    assert "no video is known: folds are by question" in found.note
    assert sorted(Counter(found.of.values()).values()) == [2, 2, 2, 2, 2]


def test_some_unknown_videos():
    made = Study.of([row(0, 3, video="a"), row(1, 3, video="a"), row(2, 3, video="")], [])
    found = study.by_video(made)
    assert found.note == "1 of 3 questions have no video: each is its own unit"
    assert found.count == 2
    assert found.of["partial_actions/000"] == found.of["partial_actions/001"]


def test_a_video_called_like_a_question_is_not_that_question():
    named = "partial_actions/002"
    made = Study.of([row(0, 3, video=named), row(1, 3, video=named), row(2, 3, video="")], [])
    assert study.by_video(made).count == 2


def test_one_video_cannot_be_split():
    made = Study.of(rows([3, 4], video="a"), [])
    assert study.by_video(made).count == 1


def test_one_fold_is_refused():
    with pytest.raises(ValueError, match="at least 2 folds"):
        study.by_video(drawn(1), count=1)
