"""A panel's decision follows its stated rules and does not depend on who is asked first."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, JudgeConfig, Status, Verdict
from lmms_eval_tasks.judges.panel import (
    RULES,
    TIES,
    PanelJudge,
    agreement_of,
    combine,
    failure_of,
)
from lmms_eval_tasks.judges.verdict import Usage, add_status, total_usage

SCALE = [1, 2, 3, 4, 5]
OUTCOME = st.sampled_from([1.0, 2.0, 3.0, 5.0, "api_error", "parse_failure", "skipped"])


class Reply(BaseModel):
    reason: str
    score: int


CRITERION = Criterion("rating", "Rate.", "{candidate}", Reply, lambda r: float(r.score), "0")


def vote(outcome, judge="j", **more):
    """A verdict with that score, or a failure with that status."""
    if isinstance(outcome, str):
        return Verdict(None, outcome, "broken", "raw text", judge, **more)
    return Verdict(float(outcome), "ok", "because", "raw text", judge, **more)


def panel(*outcomes, **rules):
    return combine([vote(outcome, f"j{i}") for i, outcome in enumerate(outcomes)], **rules)


@pytest.mark.parametrize(
    ("outcomes", "rules", "score"),
    [
        ([1, 1, 0], {}, 1),
        ([5, 5, 1, 2], {}, 5),
        ([1, 0], {}, 0),
        ([1, 0], {"tie": "higher"}, 1),
        ([1, 0], {"tie": "mean"}, 0.5),
        ([5, 5, 1, 1, 3], {"tie": "lower"}, 1),
        ([5, 5, 1, 1, 3], {"tie": "higher"}, 5),
        ([5, 5, 1, 1, 3], {"tie": "mean"}, 3),
        ([2, 3, 5], {"tie": "lower"}, 2),
        ([2, 3, 5], {"tie": "mean"}, 10 / 3),
        ([1, 2, 5], {"rule": "median"}, 2),
        ([1, 2, 4, 5], {"rule": "median"}, 2),
        ([1, 2, 4, 5], {"rule": "median", "tie": "higher"}, 4),
        ([1, 2, 4, 5], {"rule": "median", "tie": "mean"}, 3),
        ([1, 3, 3, 5], {"rule": "median", "tie": "none"}, 3),
        ([1, 2, 5], {"rule": "mean"}, 8 / 3),
        ([0.1] * 10, {"rule": "mean", "tie": "none"}, 0.1),
        ([4], {}, 4),
        ([4, 4, "api_error"], {}, 4),
    ],
)
def test_rules(outcomes, rules, score):
    verdict = panel(*outcomes, **rules)
    assert (verdict.status, verdict.score) == ("ok", pytest.approx(score, abs=1e-15))


@pytest.mark.parametrize(
    ("outcomes", "rule"),
    [([1, 0], "majority"), ([1, 2, 3], "majority"), ([1, 2, 4, 5], "median")],
)
def test_a_tie_without_a_score_has_its_own_status(outcomes, rule):
    verdict = panel(*outcomes, rule=rule, tie="none")
    assert (verdict.status, verdict.score) == ("tie", None)
    assert len(verdict.parts) == len(outcomes)
    assert Verdict.from_dict(verdict.as_dict()) == verdict


@pytest.mark.parametrize(
    ("outcomes", "quorum", "status"),
    [
        (["api_error", 1], 0.5, "api_error"),
        (["api_error", 1, 1], 0.5, "ok"),
        (["api_error", "refused", 1, 1], 0.5, "api_error"),
        (["refused", "parse_failure", "refused", 1], 0.5, "refused"),
        (["skipped", "truncated", "refused", "api_error", "parse_failure"], 0.5, "parse_failure"),
        (["skipped", "truncated"], 0.5, "truncated"),
        (["api_error", 1], 0, "ok"),
        (["api_error", "api_error"], 0, "api_error"),
        ([1, 1, 1, 1, 1, 1, 1] + ["api_error"] * 3, 0.7, "api_error"),
        ([1] * 29 + ["api_error"] * 71, 0.29, "api_error"),
        ([1] * 30 + ["api_error"] * 70, 0.29, "ok"),
    ],
)
def test_quorum(outcomes, quorum, status):
    verdict = panel(*outcomes, quorum=quorum)
    assert verdict.status == status
    assert (verdict.score is None) == (status != "ok")


def test_a_benchmarks_own_status_comes_after_ours():
    own = add_status("panel_test_status", "only for this test")
    assert failure_of([vote(own), vote("skipped")]) == "skipped"
    assert failure_of([vote(own), vote(own), vote("skipped")]) == own


def test_votes_are_kept_whole_and_named():
    votes = [vote(1, "a"), vote("refused", "b"), vote(1, "c"), vote(0, "d")]
    verdict = combine(votes, judge="three friends")
    assert verdict.judge == "three friends"
    assert verdict.parts == tuple(votes)
    assert verdict.reason == "majority of 3 votes: 1 (2), 0 (1); no vote: refused (1)"
    failed = combine(votes, quorum=0.75)
    assert failed.reason == "3 of 4 voted, too few; refused (1)"
    assert failed.parts == tuple(votes)
    assert Verdict.from_dict(failed.as_dict()) == failed


def test_usage_is_the_sum_and_never_a_partial_one():
    asked = [vote(1, usage=Usage(1, 10, 2)), vote(1, usage=Usage(2, 30, 4)), vote(1)]
    assert total_usage(asked) == Usage(3, 40, 6)
    assert combine(asked).usage == Usage(3, 40, 6)
    assert total_usage([*asked, vote(0, usage=Usage(1, 5, None))]) == Usage(4, 45, None)
    assert total_usage([*asked, vote("skipped", usage=Usage())]) == Usage(3, 40, 6)
    assert total_usage([vote(1)]) is None
    assert total_usage([vote("skipped", usage=Usage())]) == Usage(0, None, None)


@given(
    st.lists(OUTCOME, min_size=1, max_size=7),
    st.sampled_from(RULES),
    st.sampled_from(TIES),
    st.sampled_from([0, 0.3, 0.5, 0.9]),
    st.randoms(),
)
def test_order_of_judges_does_not_matter(outcomes, rule, tie, quorum, rng):
    votes = [vote(o, f"j{i}", usage=Usage(1, i, None)) for i, o in enumerate(outcomes)]
    verdict = combine(votes, rule, tie, quorum)
    shuffled = rng.sample(votes, len(votes))
    assert replace(combine(shuffled, rule, tie, quorum), parts=()) == replace(verdict, parts=())
    scores = [o for o in outcomes if not isinstance(o, str)]
    if verdict.score is not None:
        assert min(scores) <= verdict.score <= max(scores)
        assert len(scores) / len(outcomes) > quorum


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ({"rule": "vote"}, "'vote'.*majority, mean, median"),
        ({"tie": "coin"}, "'coin'.*lower, higher, mean, none"),
        ({"quorum": 1}, "quorum"),
        ({"quorum": -0.1}, "quorum"),
    ],
)
def test_unknown_rules(rules, named):
    with pytest.raises(JudgeError, match=named):
        panel(1, **rules)
    with pytest.raises(JudgeError, match=named):
        PanelJudge(JudgeConfig("panel"), [Member("a")], **rules)


def test_no_verdicts():
    with pytest.raises(ValueError, match="without verdicts"):
        combine([])


class Member:
    """A judge with fixed outcomes, one per sample."""

    def __init__(self, name, *outcomes, knows=("rating",)):
        self.config = JudgeConfig("openai", model=name)
        self.outcomes, self.knows, self.asked = outcomes, knows, []

    def supports(self, criterion):
        return criterion in self.knows

    def verdict(self, criterion, fields):
        self.asked.append((criterion, fields))
        return vote(self.outcomes[0], self.config.label)

    def verdicts(self, criterion, fields, samples):
        return [vote(outcome, self.config.label) for outcome in self.outcomes[:samples]]


def test_panel_judge_asks_everyone_the_same():
    members = [Member("a", 1, 5), Member("b", "refused", 4), Member("c", 1, 5)]
    judge = PanelJudge(JudgeConfig("panel", name="friends"), members)
    fields = {"candidate": "text"}
    verdict = judge.verdict(CRITERION, fields)
    assert (verdict.score, verdict.judge) == (1, "friends")
    assert [part.judge for part in verdict.parts] == ["a", "b", "c"]
    assert [member.asked for member in members] == [[(CRITERION, fields)]] * 3
    assert [v.score for v in judge.verdicts(CRITERION, fields, 2)] == [1, 5]
    assert len(judge.verdicts(CRITERION, fields, 1)) == 1


def test_panel_judge_supports_what_all_members_support():
    knowing, other = Member("a"), Member("b", knows=())
    assert PanelJudge(JudgeConfig("panel"), [knowing]).supports("rating")
    assert not PanelJudge(JudgeConfig("panel"), [knowing, other]).supports("rating")


def test_panel_judge_refuses_a_vote_that_counts_double():
    with pytest.raises(JudgeError, match="judge a twice"):
        PanelJudge(JudgeConfig("panel"), [Member("a"), Member("b"), Member("a")])
    with pytest.raises(JudgeError, match="no judges"):
        PanelJudge(JudgeConfig("panel"), [])


def table(*rows, names="abc"):
    return [[vote(o, name) for o, name in zip(row, names, strict=True)] for row in rows]


def test_agreement_of_by_hand():
    items = table(
        (1, 1, 5),  # panel 1
        (2, 2, 5),  # panel 2
        (3, 4, 4),  # panel 4
        (2, "refused", 3),  # panel 2 (a tie, the lower one)
        ("refused", "api_error", 5),  # no panel
    )
    result = agreement_of(items, SCALE)
    a, b, c = result.judges
    assert (a.judge, a.rated, a.mean) == ("a", 4, 2.0)
    assert (b.rated, b.mean) == (3, pytest.approx(7 / 3))
    assert (c.rated, c.mean) == (5, pytest.approx(22 / 5))
    assert (a.with_panel, a.compared_panel) == (0.75, 4)
    assert (b.with_panel, b.compared_panel) == (1.0, 3)
    assert (c.with_panel, c.compared_panel) == (0.25, 4)
    # The others of a: 1, 2 and 4; in the last two items one vote of two is no quorum.
    assert (a.with_others, a.compared_others) == (pytest.approx(2 / 3), 3)
    # The others of b: 1 (of 1, 5), 2 (of 2, 5), 3 (of 3, 4).
    assert (b.with_others, b.compared_others) == (pytest.approx(2 / 3), 3)
    # The others of c: 1, 2, 3; it is never with them, though once with its own panel.
    assert (c.with_others, c.compared_others) == (0.0, 3)
    assert [(p.first, p.second, p.both, p.same) for p in result.pairs] == [
        ("a", "b", 3, pytest.approx(2 / 3)),
        ("a", "c", 4, 0.0),
        ("b", "c", 3, pytest.approx(1 / 3)),
    ]
    assert result.pairs[0].kappa.missing == 2
    # 1 - n * 1 / sum of (i-j)^2: 3 / (0+1+9 + 1+0+4 + 4+1+1).
    assert result.pairs[0].kappa.value == pytest.approx(1 - 3 / 21)
    assert (result.fleiss.n, result.fleiss.missing) == (3, 2)
    assert (result.alpha.n, result.alpha.missing) == (4, 1)


def test_agreement_of_uses_the_whole_scale():
    items = table(*zip([1, 4, 5, 4, 5, 4, 1], [1, 1, 5, 5, 5, 4, 1], strict=True), names="ab")
    assert round(agreement_of(items, SCALE).pairs[0].kappa.value, 3) == 0.768
    assert round(agreement_of(items, [1, 4, 5]).pairs[0].kappa.value, 3) == 0.8


def test_agreement_of_with_the_panels_own_rules():
    items = table((1, 5), (5, 1), names="ab")
    assert agreement_of(items, SCALE).judges[0].with_panel == 0.5
    assert agreement_of(items, SCALE, tie="none").judges[0].with_panel is None
    assert agreement_of(items, SCALE, rule="mean").judges[0].with_panel == 0.0


def test_agreement_of_judges_that_never_answer():
    result = agreement_of(table((1, "skipped"), (2, "skipped"), names="ab"), SCALE)
    silent = result.judges[1]
    assert (silent.rated, silent.mean, silent.with_panel, silent.with_others) == (
        0,
        None,
        None,
        None,
    )
    assert result.pairs[0].same is None
    assert result.pairs[0].kappa.value is None
    assert result.fleiss.value is None
    assert result.alpha.value is None


@pytest.mark.parametrize(
    ("items", "named"),
    [
        ([], "two or more judges"),
        (table((1,), names="a"), "two or more judges"),
        ([*table((1, 1), names="ab"), *table((1, 1), names="ba")], "item 1 .* a, b"),
        ([*table((1, 1), names="ab"), *table((1,), names="a")], "item 1"),
    ],
)
def test_agreement_of_items_that_do_not_line_up(items, named):
    with pytest.raises(ValueError, match=named):
        agreement_of(items, SCALE)


def test_statuses_are_plain():
    assert type(panel(1, 1).status) is str
    assert type(panel(1, "refused").status) is str
    assert panel(1, "refused").status == Status.REFUSED
