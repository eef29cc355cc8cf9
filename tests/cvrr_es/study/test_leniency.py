"""Leniency with its interval, and judges that judge themselves."""

from __future__ import annotations

import json

import pytest

from lmms_eval_tasks.cvrr_es.study import leniency
from lmms_eval_tasks.cvrr_es.study.study import Study
from lmms_eval_tasks.utils import stats
from tests.cvrr_es.study.study_rows import PARTIAL, drawn, of, row, rows, study


def test_by_hand():
    """Differences 2, 0 on one video and 2 on another: se^2 = 2 * (4/9 + 4/9) / 9, t(1) = 12.706."""
    made = study({"J": {"A": [4, 5, 3, None, 2]}}, {"A": [2, 5, 1, 1, None]})
    found = leniency.leniency(made, of(made), made.items)
    assert (found.value, found.n, found.reason, found.no_interval) == (4 / 3, 3, "", "")
    assert found.interval.se == pytest.approx(4 / 9)
    assert found.interval.high - found.value == pytest.approx(12.706 * 4 / 9, abs=1e-3)
    assert found.interval.clusters == 2
    assert json.loads(json.dumps(found.as_dict()))["interval"]["n"] == 3


def test_ratings_that_are_not_whole_count():
    made = study({"J": {"A": [4.5, 1]}}, {"A": [4, 1]})
    assert leniency.leniency(made, of(made), made.items).value == 0.25


def test_a_severe_judge_is_below_zero():
    made = study({"J": {"A": [1, 2]}}, {"A": [3, 3]})
    assert leniency.leniency(made, of(made), made.items).value == -1.5


def test_only_what_both_rated_counts():
    """Means over different items would say +1 here."""
    made = study({"J": {"A": [3, 3, 5, 5]}}, {"A": [3, 3, None, None]})
    assert leniency.leniency(made, of(made), made.items).value == 0


def test_split():
    made = study({"J": {"A": [4, 4], "B": [1, 2]}}, {"A": [3, 3], "B": [3, 3]})
    found = leniency.leniencies(made, of(made))
    assert found.overall.value == -0.25
    assert found.by_dimension[PARTIAL].value == -0.25
    assert [one.value for one in found.by_candidate.values()] == [1, -1.5]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"video": ""}, "the video of 2 of 2 items is not known"),
        ({"video": "a"}, "all items are on one video"),
    ],
)
def test_no_interval(changes, reason):
    made = study({"J": {"A": [4, 5]}}, {"A": [3, 3]}, **changes)
    found = leniency.leniency(made, of(made), made.items)
    assert (found.value, found.interval, found.no_interval) == (1.5, None, reason)


def test_undefined():
    made = study({"J": {"A": [4, None]}}, {"A": [None, 3]})
    found = leniency.leniency(made, of(made), made.items)
    assert (found.value, found.n) == (None, 0)
    assert found.reason == "no item was rated by the judge and the reference"
    bare = Study.of(rows([4]), [])
    assert leniency.leniency(bare, of(bare), bare.items).reason == "there is no reference yet"


@pytest.mark.parametrize(
    ("judge", "candidate", "same"),
    [
        ("GPT-4o mini", "gpt4o_Mini", True),
        ("Video-LLaVA", "videollava", True),
        ("LLaMA-VID", "LLaMA-VID", True),
        ("GPT-4o", "GPT-4o mini", False),
        ("GPT-4o", "GPT-4", False),
        ("Ｑwen2", "qwen2", True),
        ("???", "!!", False),
        ("通义", "通义", True),
    ],
)
def test_the_judge_among_the_candidates(judge, candidate, same):
    assert leniency.own_candidates(judge, ["other", candidate]) == ((candidate,) if same else ())


def test_self_preference_by_hand():
    """Toward itself +1 and +2, toward the others 0 and -1: 1.5 - -0.5."""
    made = study(
        {"GPT-4o": {"gpt4o": [4, 5], "B": [3, "absent"], "C": ["absent", 2]}},
        {"gpt4o": [3, 3], "B": [3, 3], "C": [3, 3]},
    )
    found = leniency.self_preference(made, "GPT-4o", of(made, "GPT-4o"), resamples=0)
    assert found.own == ("gpt4o",)
    assert (found.toward_itself.value, found.toward_others.value) == (1.5, -0.5)
    assert (found.difference.value, found.difference.n) == (2, 4)
    assert found.difference.no_interval == "no interval was asked for"


def test_who_is_no_candidate_has_no_self_preference():
    made = study({"J": {"A": [4, 5]}}, {"A": [3, 3]})
    assert leniency.self_preference(made, "J", of(made)) is None


def test_a_judge_that_rated_only_itself():
    made = study({"A": {"A": [4, 5]}, "J": {"B": [1, 1]}}, {"A": [3, 3], "B": [1, 1]})
    found = leniency.self_preference(made, "A", of(made, "A"))
    assert found.toward_itself.value == 1.5
    assert found.difference.value is None
    assert found.difference.reason == (
        "other candidates' answers: no item was rated by the judge and the reference"
    )
    other = leniency.self_preference(made, "B", of(made, "A"))
    assert other.difference.reason.startswith("its own answers: ")


@pytest.mark.parametrize("seed", range(4))
def test_the_interval_of_self_preference_is_a_cluster_bootstrap(seed):
    made = drawn(seed)
    ratings = of(made)
    found = leniency.self_preference(made, "C0", ratings, seed=seed).difference
    both = [item for item in made.items if ratings.get(item) is not None]

    def statistic(items):
        sides = [
            [ratings[i] - made.reference[i] for i in items if (i.candidate == "c0") == own]
            for own in (True, False)
        ]
        if not all(sides):
            return None
        return sum(sides[0]) / len(sides[0]) - sum(sides[1]) / len(sides[1])

    theirs = stats.cluster_bootstrap(
        statistic, both, [made.video(item) for item in both], seed=seed
    )
    assert found.interval.n == theirs.n == len(both)
    for name in ("estimate", "low", "high", "se", "undefined"):
        assert getattr(found.interval, name) == pytest.approx(getattr(theirs, name), abs=1e-12)


def test_resamples_without_its_own_answers_are_undefined():
    """Its own answers are on one video of three: 8 of 27 resamples lack it."""
    given = [row(n, 4, candidate=name) for n in range(6) for name in "AB" if n < 2 or name == "B"]
    made = Study.of(given, [row(n, 3 - n % 2, candidate=name) for n in range(6) for name in "AB"])
    interval = leniency.self_preference(made, "A", of(made)).difference.interval
    assert 250 < interval.undefined < 350
    assert (interval.low, interval.high) == (0, 0)


def test_self_preference_without_videos():
    given = [row(n, 4, judge="A", candidate=name, video="") for n in range(2) for name in "AB"]
    made = Study.of(given, [row(n, 3, candidate=name, video="") for n in range(2) for name in "AB"])
    found = leniency.self_preference(made, "A", of(made, "A"))
    assert found.difference.value == 0
    assert found.difference.no_interval == "the video of 4 of 4 items is not known"
