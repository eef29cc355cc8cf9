"""Several judges on one item: a panel votes by a stated rule, a debate discusses (vlm_judge, 3.2).

A debate as the study's code has it: two agents rate; if they agree that is the result, else the
first one answers the second one's rating, the second may change its own, and a consensus is written
(2 or 5 calls). With `rounds` it is ours: any number of agents with personas, who all speak in every
round. Every turn is a criterion of its own, asked through an ordinary judge: so each is cached,
retried, budgeted and read like any other verdict. It is the benchmark's criterion (rubric,
material, schema, score) with the debate's text behind it.

Members and agents are asked one after another in the calling thread: threads of their own would go
past the limit that the user set. Weighted and latent-class panels live with the study that fits
them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import BaseModel, create_model

from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges.verdict import (
    Criterion,
    Judge,
    JudgeConfig,
    Status,
    Verdict,
    failure_of,
    total_usage,
)
from lmms_eval_tasks.utils.prompts import Prompt, fill, load

# --- a panel --------------------------------------------------------------------------------------


def combine(
    verdicts: Sequence[Verdict],
    rule: str = "majority",
    tie: str = "lower",
    judge: str = "panel",
) -> Verdict:
    """One verdict out of several on the same item; apart from `parts` their order has no influence.

    Only `ok` verdicts vote. If they are no more than half of the panel there is no score, and the
    status is the failures' most frequent one (`failure_of`).

    Args:
        verdicts: at least one; they are kept whole in `parts`.
        rule: majority (the most frequent score), mean, or median.
        tie: which score is taken if several are equally frequent, or if the two middle ones of a
            median differ: the lower (default: a tie never pays), the higher, the mean of the tied
            ones (for the median: the usual one), or none, with status `tie`.
    """
    votes = sorted(verdict.score for verdict in verdicts if verdict.score is not None)
    whole: dict[str, Any] = {
        "judge": judge,
        "usage": total_usage(verdicts),
        "parts": tuple(verdicts),
    }
    failures = Counter(verdict.status for verdict in verdicts if verdict.score is None)
    failed = ", ".join(f"{status} ({count})" for status, count in sorted(failures.items()))
    if 2 * len(votes) <= len(verdicts):
        reason = f"{len(votes)} of {len(verdicts)} voted, too few; {failed}"
        return Verdict(None, failure_of(verdicts), reason, **whole)
    score = _decide(votes, rule, tie)
    counts = sorted(Counter(votes).items(), key=lambda pair: (-pair[1], pair[0]))
    told = ", ".join(f"{vote:g} ({count})" for vote, count in counts)
    reason = f"{rule} of {len(votes)} votes: {told}" + (f"; no vote: {failed}" if failed else "")
    return Verdict(score, Status.TIE if score is None else Status.OK, reason, **whole)


def _decide(votes: Sequence[float], rule: str, tie: str) -> float | None:
    """The score of at least one vote, in ascending order; None: a tie that stays one."""
    if rule == "mean":
        return fmean(votes)
    if rule == "median":
        tied = [votes[(len(votes) - 1) // 2], votes[len(votes) // 2]]
    else:
        counts = Counter(votes)
        tied = [score for score, count in counts.items() if count == max(counts.values())]
    if tied[0] == tied[-1]:
        return tied[0]
    return {"lower": tied[0], "higher": tied[-1], "mean": fmean(tied), "none": None}[tie]


class PanelJudge(Judge):
    """A panel as one judge, without a state of its own.

    Raises:
        JudgeError: a judge is in it twice, and would count double.
    """

    def __init__(self, config: JudgeConfig, judges: Sequence[Judge]) -> None:
        counts = Counter(judge.config for judge in judges)
        if twice := [one.label for one, count in counts.items() if count > 1]:
            raise JudgeError(
                f"the panel {config.label} has the judge {twice[0]} twice, whose vote would count "
                "double: name different judges"
            )
        self.config, self._judges = config, judges

    def supports(self, criterion: str) -> bool:
        """Whether every member can decide it."""
        return all(judge.supports(criterion) for judge in self._judges)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        """The members' first samples make the first verdict, their second ones the second, ..."""
        rows = [judge.verdicts(criterion, fields, samples) for judge in self._judges]
        chosen = self.config.rule, self.config.tie, self.config.label
        return [combine(column, *chosen) for column in zip(*rows, strict=True)]


# --- a debate -------------------------------------------------------------------------------------

_PARTS: Mapping[str, tuple[str, ...]] = {
    "agent": ("agent", "persona"),
    "persona_1": (),
    "persona_2": (),
    "opening": (),
    "discussion": ("transcript",),
    "answer": ("transcript",),
    "revision": ("transcript",),
    "turn": ("agent", "round", "score", "reason"),
    "missing": ("agent", "round"),
    "consolidator": (),
    "consolidation": ("transcript",),
}
_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CONSOLIDATOR = "Consolidator"
# How a part says whose turn it is: `Agent B, round 2: gpt-4o` or `Consolidator: gpt-4o`.
_SPEAKER = re.compile(
    rf"(?:(?P<agent>Agent [A-Z]), round (?P<round>[0-9]+)|{_CONSOLIDATOR}): (?P<judge>.*)",
    re.DOTALL,
)


class _Turn(NamedTuple):
    round: int  # from 1
    agent: str  # Agent A, Agent B, ...
    verdict: Verdict  # as the agent's judge gave it

    @property
    def field(self) -> str:
        """What holds the turn's reason; it also names the reason's block in the request."""
        return f"{self.agent.lower().replace(' ', '_')}_round_{self.round}"

    @property
    def spoken(self) -> Verdict:
        """Its part of the debate's verdict."""
        speaker = f"{self.agent}, round {self.round}: {self.verdict.judge}"
        return replace(self.verdict, judge=speaker)


def load_prompts(override_dir: Path | None = None) -> Prompt:
    """The debate's texts: the user's `judges/debate.yml` before the packaged one.

    Raises:
        PromptError: a part or a placeholder is missing or unknown.
    """
    # A user may add personas; more than agents would never speak.
    personas = {f"persona_{number}": () for number in range(3, len(_NAMES) + 1)}
    return load("judges", "debate", _PARTS, override_dir, optional=personas)


class DebateJudge(Judge):
    """A debate as one judge, without a state of its own. The same judge may be several agents,
    since name and persona differ.

    Raises:
        JudgeError: too many agents, or not two where `rounds` says nothing.
        PromptError: a prompt file of the user's that does not fit.
    """

    def __init__(self, config: JudgeConfig, agents: Sequence[Judge], consolidator: Judge) -> None:
        if len(agents) > len(_NAMES):
            raise JudgeError(
                f"the debate {config.label} has {len(agents)} agents: at most {len(_NAMES)}"
            )
        if not config.rounds and len(agents) != 2:
            raise JudgeError(
                f"the debate {config.label} has {len(agents)} agents: as published it has two; say "
                "how many rounds (`rounds: 2`) others shall discuss"
            )
        self.config = config
        self._agents = {f"Agent {_NAMES[place]}": agent for place, agent in enumerate(agents)}
        self._consolidator, self._prompts = consolidator, load_prompts()
        texts = self._prompts.text
        personas = [f"persona_{number}" for number in range(1, len(_NAMES) + 1)]
        self._personas = [texts[part].strip() for part in personas if part in texts]

    def supports(self, criterion: str) -> bool:
        """Whether every agent and the consolidator can decide it."""
        judges = (*self._agents.values(), self._consolidator)
        return all(judge.supports(_turn_name(criterion)) for judge in judges)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        """One debate's verdict as often: nobody draws samples of a discussion.

        The verdict is the consolidator's, with every turn in `parts` (`transcript` reads them). An
        agent without a usable turn is named in later transcripts and asked again in the next round.
        If nobody has one in the last round, the verdict has their most frequent status and the
        consolidator is not asked; if the consolidator fails, it has the consolidator's.
        """
        discuss = self._discuss if self.config.rounds else self._exchange
        turns = discuss(criterion, fields)
        last = [turn for turn in turns if turn.round == turns[-1].round]
        parts = tuple(turn.spoken for turn in turns)
        if all(turn.verdict.score is None for turn in last):
            status = failure_of(turn.verdict for turn in last)
            told = "; ".join(f"{turn.agent}: {turn.verdict.status}" for turn in last)
            reason = f"no agent has a usable turn in round {last[0].round}: {told}"
            final = Verdict(None, status, reason)
        elif self.config.rounds or last[0].round > 1:
            role = self._prompts.text["consolidator"]
            asked = self._turn(criterion, role, "consolidation", turns)
            final = self._consolidator.verdict(asked, _with_reasons(fields, turns))
            parts = (*parts, replace(final, judge=f"{_CONSOLIDATOR}: {final.judge}"))
        else:  # both agree at once
            final = turns[-1].verdict
        done = replace(final, judge=self.config.label, usage=total_usage(parts), parts=parts)
        return [done] * samples

    def _discuss(self, criterion: Criterion, fields: Mapping[str, Any]) -> list[_Turn]:
        """All turns in order of round and agent; agents of a round see only earlier rounds."""
        turns: list[_Turn] = []
        for number in range(1, self.config.rounds + 1):
            seen = tuple(turns)
            part = "discussion" if seen else "opening"  # which does not say how many will follow
            for place, name in enumerate(self._agents):
                role = self._role(name, self._personas[place % len(self._personas)])
                asked = self._turn(criterion, role, part, seen)
                turns.append(self._said(number, name, asked, _with_reasons(fields, seen)))
        return turns

    def _exchange(self, criterion: Criterion, fields: Mapping[str, Any]) -> list[_Turn]:
        """Both agents' ratings; unless they agree, the first one's answer and the second one's."""
        first = self._turn(criterion, "", "", ())
        turns = [self._said(1, name, first, fields) for name in self._agents]
        if turns[0].verdict.score == turns[1].verdict.score:  # agreed, or both failed
            return turns
        for part, name in zip(("answer", "revision"), self._agents, strict=True):
            asked = self._turn(criterion, self._role(name, ""), part, turns)
            turns.append(self._said(2, name, asked, _with_reasons(fields, turns)))
        return turns

    def _role(self, name: str, persona: str) -> str:
        return fill(self._prompts.text["agent"], {"agent": name, "persona": persona})

    def _said(self, number: int, name: str, asked: Criterion, fields: Mapping[str, Any]) -> _Turn:
        """An agent's turn, without log-probabilities, which nobody reads in a discussion."""
        verdict = self._agents[name].verdict(replace(asked, top_logprobs=0), fields)
        return _Turn(number, name, verdict)

    def _turn(self, base: Criterion, role: str, part: str, seen: Sequence[_Turn]) -> Criterion:
        """The base criterion with a role behind its system text and a part behind its template;
        both may be "".

        Each reason that was seen is an untrusted field, and so a block of its own: no reason can
        pass for another agent's turn.
        """
        text = self._prompts.text
        lines = []
        for turn in seen:
            score = turn.verdict.score
            shown = {
                "agent": turn.agent,
                "round": str(turn.round),
                "score": "" if score is None else f"{score:g}",
                "reason": "{" + turn.field + "}",
            }
            lines.append(fill(text["missing" if score is None else "turn"], shown).strip())
        ours = text[part] if part else ""
        if "transcript" in _PARTS.get(part, ()):
            ours = fill(ours, {"transcript": "\n\n".join(lines)})
        schema = _with_reason(base.schema)
        if base.labels:  # a word holds no reason
            keys = ", ".join(schema.model_fields)
            role = f"{role.strip()}\n\nReply with one JSON object with the keys {keys}."
        return replace(
            base,
            name=_turn_name(base.name),
            system=_below(base.system, role),
            template=_below(base.template, ours),
            schema=schema,
            labels=(),
            prompt_hash=f"{base.prompt_hash}+{self._prompts.hash}",
            untrusted=(*base.untrusted, *_reasons(seen)),
        )


def transcript(verdict: Verdict) -> list[dict[str, Any]]:
    """A debate's turns in order: round (None: consolidator), agent, judge, score, reason, status.

    Raises:
        ValueError: the verdict is not a debate's.
    """
    turns = []
    for part in verdict.parts:
        if (speaker := _SPEAKER.fullmatch(part.judge)) is None:
            break
        turns.append(
            {
                "round": int(speaker["round"]) if speaker["round"] else None,
                "agent": speaker["agent"] or _CONSOLIDATOR,
                "judge": speaker["judge"],
                "score": part.score,
                "reason": part.reason,
                "status": part.status,
            }
        )
    if not turns or len(turns) < len(verdict.parts):
        raise ValueError(f"the verdict of {verdict.judge} is not a debate's")
    return turns


def _below(text: str, more: str) -> str:
    """A text, and what is put behind it, without gaps where parts are empty."""
    return re.sub(r"\n{3,}", "\n\n", f"{text.rstrip()}\n\n{more.strip()}").rstrip() + "\n"


def _reasons(seen: Sequence[_Turn]) -> dict[str, str]:
    """The reasons of the usable turns, by field."""
    return {turn.field: turn.verdict.reason for turn in seen if turn.verdict.score is not None}


def _with_reasons(fields: Mapping[str, Any], seen: Sequence[_Turn]) -> dict[str, Any]:
    reasons = _reasons(seen)
    if taken := reasons.keys() & fields.keys():
        raise PromptError(f"the field {min(taken)} is the debate's own: rename the benchmark's")
    return {**fields, **reasons}


def _turn_name(criterion: str) -> str:
    """A turn is another kind of verdict: recordings of the criterion itself hold none of it."""
    return f"{criterion}_debate"


@lru_cache(maxsize=32)
def _with_reason(schema: type[BaseModel]) -> type[BaseModel]:
    """The schema, with a text field `reason` if it has none: without reasons nothing is debated."""
    if "reason" in schema.model_fields:
        return schema
    return create_model(schema.__name__, __base__=schema, reason=(str, ...))
