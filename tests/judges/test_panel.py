"""A panel's decision follows its stated rules and does not depend on who is asked first."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from lmms_eval_tasks import registry
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Verdict
from lmms_eval_tasks.judges.asking import run_scoring
from lmms_eval_tasks.judges.debate import PanelJudge, combine
from lmms_eval_tasks.judges.verdict import Usage
from tests.checks import refused, table

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


@table("outcomes, rules, score")
def test_rules(outcomes, rules, score):
    verdict = panel(*outcomes, **rules)
    assert (verdict.status, verdict.score) == ("ok", pytest.approx(score, abs=1e-15))
    assert len(verdict.parts) == len(outcomes)
    assert Verdict.from_dict(verdict.as_dict()) == verdict


@table("outcomes, status")
def test_quorum(outcomes, status):
    verdict = panel(*outcomes)
    assert (verdict.status, type(verdict.status)) == (status, str)
    assert (verdict.score is None) == (status != "ok")


def test_the_mean_of_votes_is_an_items_score():
    """A task that took whole numbers only would count 2 of 3 as none."""
    doc = {"question": "Q?", "references": ["R"], "reference": "R"}
    for task, field, votes, score in (
        ("maia_oevqa", lambda item: item["right"], (1, 1, 0), 2 / 3),
        ("maia_oevqa", lambda item: item["right"], (1, 1, 1), 1),
        ("maverix_a_oe", lambda item: item["dimensions"]["detail"]["score"], (3, 4, 4), 11 / 3),
    ):
        scoring = registry.of(task).tasks[task].score(doc, "An answer.")
        made = run_scoring(
            scoring, lambda asks, votes=votes: [panel(*votes, rule="mean")] * len(asks)
        )
        assert field(made) == pytest.approx(score)


def test_votes_are_kept_whole_and_named():
    votes = [vote(1, "a"), vote("refused", "b"), vote(1, "c"), vote(0, "d")]
    verdict = combine(votes, judge="three friends")
    assert (verdict.judge, verdict.parts) == ("three friends", tuple(votes))
    assert verdict.reason == "majority of 3 votes: 1 (2), 0 (1); no vote: refused (1)"
    assert combine(votes[:2]).reason == "1 of 2 voted, too few; refused (1)"


@given(
    st.lists(OUTCOME, min_size=1, max_size=7),
    st.sampled_from(["majority", "mean", "median"]),
    st.randoms(),
)
def test_order_of_judges_does_not_matter(outcomes, rule, rng):
    votes = [vote(o, f"j{i}", usage=Usage(1, i, None)) for i, o in enumerate(outcomes)]
    verdict = combine(votes, rule)
    shuffled = rng.sample(votes, len(votes))
    assert replace(combine(shuffled, rule), parts=()) == replace(verdict, parts=())
    scores = [o for o in outcomes if not isinstance(o, str)]
    if verdict.score is not None:
        assert min(scores) <= verdict.score <= max(scores)
        assert len(scores) / len(outcomes) > 0.5


class Member(Judge):
    """A judge with fixed outcomes, one per sample."""

    def __init__(self, name, *outcomes):
        self.config = JudgeConfig("openai", model=name)
        self.outcomes, self.asked = outcomes, []

    def verdicts(self, criterion, fields, samples):
        self.asked.append((criterion, fields))
        return [vote(outcome, self.config.label) for outcome in self.outcomes[:samples]]


def test_a_panel_asks_everyone_the_same():
    members = [Member("a", 1, 5), Member("b", "refused", 4), Member("c", 1, 5)]
    judge = PanelJudge(JudgeConfig("panel", name="friends"), members)
    fields = {"candidate": "text"}
    verdict = judge.verdict(CRITERION, fields)
    assert (verdict.score, verdict.judge) == (1, "friends")
    assert [part.judge for part in verdict.parts] == ["a", "b", "c"]
    assert [member.asked for member in members] == [[(CRITERION, fields)]] * 3
    assert [v.score for v in judge.verdicts(CRITERION, fields, 2)] == [1, 5]
    refused(JudgeError, "judge a twice", PanelJudge, judge.config, [*members, Member("a")])


def test_saved_verdicts_of_a_panel_are_found_again():
    """Its fingerprint is that of earlier versions."""
    members = tuple(JudgeConfig("openai", model=name) for name in "abc")
    panel = JudgeConfig("panel", members=members, rule="median")
    assert panel.fingerprint == "ca5c09577486"
    assert replace(panel, rule="mean").fingerprint != panel.fingerprint
