"""Who is asked what in a debate, what each turn sees, and what a failed turn does."""

import json
import re
from dataclasses import dataclass, field
from typing import Annotated

from injections import INJECTIONS
from pydantic import BaseModel, Field

from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges import Criterion, JudgeConfig, Verdict
from lmms_eval_tasks.judges.debate import DebateJudge, load_prompts, transcript
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.verdict import Usage
from tests.checks import refused, table

BLOCK = re.compile(r"<([a-z0-9_]+)-([0-9a-f]{16})>\n(.*?)\n</\1-\2>", re.DOTALL)


class Reply(BaseModel):
    reason: str
    rating: Annotated[int, Field(ge=1, le=5)]


CRITERION = Criterion(
    name="rating",
    system="Rate from 1 to 5: {rubric}.",
    template="Question: {question}\nAnswer:\n{candidate}\nRate it.",
    schema=Reply,
    score=lambda reply: float(reply.rating),
    prompt_hash="base",
    bare="rating",
    top_logprobs=5,
)
FIELDS = {
    "rubric": "planted rubric",
    "question": "planted question",
    "candidate": "planted candidate",
}


@dataclass
class Scripted:
    """A judge that records what it is asked and answers by a script, one entry a call."""

    name: str
    script: list
    asked: list = field(default_factory=list)

    @property
    def config(self):
        return JudgeConfig("openai", model=self.name)

    def verdict(self, criterion, fields):
        self.asked.append((criterion, dict(fields)))
        entry = self.script[len(self.asked) - 1]
        if isinstance(entry, str):
            return Verdict(None, entry, "broken", "raw broken", self.name, usage=Usage(1, 7, None))
        score, reason = entry
        raw = json.dumps({"reason": reason, "rating": score})
        usage = Usage(1, 10, 2)
        return Verdict(float(score), "ok", reason, raw, self.name, "model-x", usage=usage)

    def request(self, call):
        """System and user text of one call."""
        system, user = render(*self.asked[call])
        return system["content"], user["content"]


def debate(first, second, last=(3, "final")):
    """The debate, and its two agents and its consolidator by what they say."""
    judges = Scripted("secret-a", first), Scripted("secret-b", second), Scripted("secret-c", [last])
    return DebateJudge(JudgeConfig("debate", name="the debate"), judges), *judges


FIRST, SECOND = [(4, "A1"), (3, "A2")], [(1, "B1"), (2, "B2")]


# First and later turns of A and B, calls of A, B and the last one, score, status.
@table("first, second, calls, score, status")
def test_who_is_asked_how_often(first, second, calls, score, status):
    """Both rate, the first answers, the second may change, the last one decides."""
    judge, *judges = debate(first, second)
    verdict = judge.verdict(CRITERION, FIELDS)
    assert [len(one.asked) for one in judges] == calls
    assert (verdict.score, verdict.status, verdict.judge) == (score, status, "the debate")
    assert len(transcript(verdict)) == verdict.usage.replies == sum(calls)
    assert verdict.reason == "B1" or calls != [1, 1, 0] or score is None  # the second one's words


def test_the_verdict_and_its_turns():
    judge, *_ = debate(FIRST, SECOND)
    verdict = judge.verdict(CRITERION, FIELDS)
    assert (verdict.model, verdict.reason) == ("model-x", "final")
    assert verdict.raw == '{"reason": "final", "rating": 3}'
    assert verdict.usage == Usage(5, 50, 10)
    rows = transcript(verdict)
    assert rows == transcript(Verdict.from_dict(json.loads(json.dumps(verdict.as_dict()))))
    assert [tuple(row.values()) for row in rows] == [
        (1, "Agent A", "secret-a", 4, "A1", "ok"),
        (1, "Agent B", "secret-b", 1, "B1", "ok"),
        (2, "Agent A", "secret-a", 3, "A2", "ok"),
        (2, "Agent B", "secret-b", 2, "B2", "ok"),
        (None, "Consolidator", "secret-c", 3, "final", "ok"),
    ]


def test_what_a_turn_sees():
    judge, a, b, last = debate(FIRST, SECOND)
    judge.verdict(CRITERION, FIELDS)
    # First the benchmark's own prompt alone, and no word of a debate.
    for agent in (a, b):
        system, user = agent.request(0)
        assert system == "Rate from 1 to 5: planted rubric.\n"
        assert user.startswith("Question: planted question\nAnswer:\n")
        assert user.endswith("Rate it.\n")
    said = {"A1", "B1", "A2", "B2"}
    for one, call, seen in ((a, 1, {"A1", "B1"}), (b, 1, {"A1", "B1", "A2"}), (last, 0, said)):
        system, user = one.request(call)
        assert {reason for reason in said if reason in user} == seen
        assert not any(text in system + user for text in ("{", "\n\n\n", "secret"))
        assert BLOCK.search(user)[3] == "planted candidate"
    assert "You are Agent A" in a.request(1)[0]
    assert "Answer that rating" in a.request(1)[1]
    assert "change your rating?" in b.request(1)[1]
    whole = last.request(0)[1]
    places = [whole.index(turn) for turn in ("A1", "B1", "A2", "B2")]
    assert places == sorted(places)
    assert "Agent B in round 2 rated the item 2, with this reason:" in whole
    for one in (a, b, last):
        for criterion, _ in one.asked:
            assert (criterion.name, criterion.schema) == ("rating_debate", Reply)
            assert criterion.prompt_hash == f"base+{load_prompts().hash}"
            # Log-probabilities cost; only the final rating's are of use.
            assert criterion.top_logprobs == (5 if one is last else 0)


def structure(text):
    """The request with every block's tag and content taken out."""
    return BLOCK.sub(lambda match: f"<{match[1]}>", text)


@table("family, text", INJECTIONS)
def test_injections_stay_in_their_blocks(family, text):
    """In the candidate's text, and in a reason of an agent that was taken in by it or quotes it."""
    judge, *judges = debate([(4, text), (3, "fine")], [(1, "calm"), (2, text)])
    judge.verdict(CRITERION, FIELDS | {"candidate": text})
    clean, *clean_judges = debate([(4, "q"), (3, "q")], [(1, "q"), (2, "q")])
    clean.verdict(CRITERION, FIELDS)
    for attacked, expected in zip(judges, clean_judges, strict=True):
        for call in range(len(attacked.asked)):
            found, wanted = attacked.request(call), expected.request(call)
            assert [structure(one) for one in found] == [structure(one) for one in wanted]
    turns = ("agent_a_round_1", "agent_b_round_1", "agent_a_round_2", "agent_b_round_2")
    assert judges[2].asked[0][0].untrusted == ("candidate", *turns)


def test_a_failed_turn_is_named_and_asked_again():
    judge, a, _, last = debate([(4, "A1"), "refused"], ["parse_failure", (2, "B2")])
    verdict = judge.verdict(CRITERION, FIELDS)
    second, whole = a.request(1)[1], last.request(0)[1]
    assert "Agent B gave no usable rating in round 1." in second
    assert "agent_b_round_1" not in a.asked[1][0].untrusted
    assert "Agent A gave no usable rating in round 2." in whole
    assert "broken" not in second + whole
    assert verdict.score == 3
    statuses = [row["status"] for row in transcript(verdict)]
    assert statuses == ["ok", "parse_failure", "refused", "ok", "ok"]
    assert verdict.usage == Usage(5, 44, None)
    # Nobody in the last round: its status, not that of all turns; and one who cannot decide.
    judge, *_ = debate([(4, "A1"), "refused"], ["api_error", "refused"])
    verdict = judge.verdict(CRITERION, FIELDS)
    assert (verdict.status, verdict.score) == ("refused", None)
    told = "no agent has a usable turn in round 2: Agent A: refused; Agent B: refused"
    assert verdict.reason == told
    judge, *_ = debate(FIRST, SECOND, last="truncated")
    verdict = judge.verdict(CRITERION, FIELDS)
    assert (verdict.status, verdict.score, verdict.raw) == ("truncated", None, "raw broken")


def test_who_cannot_debate():
    same, config = [Scripted("a", [])] * 3, JudgeConfig("debate", name="two")
    refused(JudgeError, "the debate two has the judge a twice", DebateJudge, config, same)


@table("parts, named")
def test_the_users_own_prompts(tmp_path, monkeypatch, parts, named):
    import yaml

    ours = load_prompts()
    monkeypatch.setenv("LMMS_EVAL_TASKS_PROMPTS", str(tmp_path))
    file = tmp_path / "judges" / "debate.yml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(ours.text | parts), encoding="utf-8")
    refused(PromptError, named, load_prompts)
    file.write_text(yaml.safe_dump(ours.text | {"answer": "{transcript} Mine."}), encoding="utf-8")
    judge, a, *_ = debate(FIRST, SECOND)
    judge.verdict(CRITERION, FIELDS)
    assert a.request(1)[1].endswith(" Mine.\n")
    assert a.asked[0][0].prompt_hash != f"base+{ours.hash}"
