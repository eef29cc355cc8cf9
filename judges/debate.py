"""Agents discuss one item, then one of them or another consolidates a rating (vlm_judge, 3.2).

As the study's code has it: two agents rate; if they agree that is the result, else the first one
answers the second one's rating, the second may change its own, and a consensus is written (2 or 5
calls). With `rounds` it is ours: any number of agents with personas, who all speak in every round.

Every turn is a criterion of its own, asked through an ordinary judge: so each is cached, retried,
budgeted and read like any other verdict. A turn's criterion is the benchmark's (rubric, material,
schema, score) with the debate's text behind it. Of ours round 1 does not say how many rounds will
follow, so debates of any length share it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges.verdict import (
    Criterion,
    Judge,
    JudgeConfig,
    Verdict,
    failure_of,
    total_usage,
)
from lmms_eval_tasks.utils.prompts import Prompt, fill, load

if TYPE_CHECKING:
    from pydantic import BaseModel

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


def load_prompts(override_dir: Path | None = None) -> Prompt:
    """The debate's texts: the user's `judges/debate.yml` before the packaged one.

    Raises:
        PromptError: a part or a placeholder is missing or unknown.
    """
    # A user may add personas; more than agents would never speak.
    personas = {f"persona_{number}": () for number in range(3, len(_NAMES) + 1)}
    return load("judges", "debate", _PARTS, override_dir, optional=personas)


class DebateJudge(Judge):
    """A debate as one judge; it has no state, so it is as thread-safe as its agents.

    The turns are asked one after another in the calling thread: a run has many threads already.
    """

    def __init__(
        self,
        config: JudgeConfig,
        agents: Sequence[Judge],
        consolidator: Judge,
    ) -> None:
        """Set up a debate.

        Args:
            config: its label is the debate's name, and it says how many rounds there are.
            agents: the same judge may appear several times, since name and persona differ.

        Raises:
            JudgeError: too many agents, or not two where `rounds` says nothing.
            PromptError: a prompt file of the user's that does not fit.
        """
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
        personas = [part for part in self._prompts.text if part.startswith("persona_")]
        personas.sort(key=lambda part: int(part.rpartition("_")[2]))
        self._personas = [self._prompts.text[part].strip() for part in personas]

    def supports(self, criterion: str) -> bool:
        """Whether every agent and the consolidator can decide it."""
        judges = (*self._agents.values(), self._consolidator)
        return all(judge.supports(_turn_name(criterion)) for judge in judges)

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        """Debate one item: agents x rounds calls and a last one; as published 2 calls, or 5.

        The verdict is the consolidator's, with every turn in `parts` (`transcript` reads them). An
        agent without a usable turn is named in later transcripts and asked again in the next round.
        If nobody has one in the last round, the verdict has their most frequent status and the
        consolidator is not asked; if the consolidator fails, it has the consolidator's.
        """
        discuss = self._discuss if self.config.rounds else self._exchange
        turns = discuss(criterion, fields)
        if failure := self._failure(turns):
            return failure
        parts = tuple(map(_spoken, turns))
        final = turns[-1].verdict  # where both agree at once
        if self.config.rounds or turns[-1].round > 1:
            role = self._prompts.text["consolidator"]
            asked = self._turn(criterion, role, "consolidation", turns)
            final = self._consolidator.verdict(asked, _with_reasons(fields, turns))
            parts = (*parts, replace(final, judge=f"{_CONSOLIDATOR}: {final.judge}"))
        return replace(final, judge=self.config.label, usage=total_usage(parts), parts=parts)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        """One debate's verdict as often: nobody draws samples of a discussion."""
        return [self.verdict(criterion, fields)] * samples

    def _discuss(self, criterion: Criterion, fields: Mapping[str, Any]) -> list[_Turn]:
        """All turns in order of round and agent; agents of a round see only earlier rounds."""
        turns: list[_Turn] = []
        for number in range(1, self.config.rounds + 1):
            seen = tuple(turns)
            for place, (name, judge) in enumerate(self._agents.items()):
                persona = self._personas[place % len(self._personas)]
                role = fill(self._prompts.text["agent"], {"agent": name, "persona": persona})
                turn = self._turn(criterion, role, "discussion" if seen else "opening", seen)
                verdict = judge.verdict(self._plain(turn), _with_reasons(fields, seen))
                turns.append(_Turn(number, name, verdict))
        return turns

    def _exchange(self, criterion: Criterion, fields: Mapping[str, Any]) -> list[_Turn]:
        """Both agents' ratings; unless they agree, the first one's answer and the second one's."""
        turns: list[_Turn] = []
        for name, judge in self._agents.items():
            verdict = judge.verdict(self._plain(self._turn(criterion, "", "", ())), fields)
            turns.append(_Turn(1, name, verdict))
        scores = {turn.verdict.score for turn in turns}
        if len(scores) == 1:  # agreed, or both failed
            return turns
        for part, (name, judge) in zip(("answer", "revision"), self._agents.items(), strict=True):
            role = fill(self._prompts.text["agent"], {"agent": name, "persona": ""})
            turn = self._plain(self._turn(criterion, role, part, turns))
            turns.append(_Turn(2, name, judge.verdict(turn, _with_reasons(fields, turns))))
        return turns

    @staticmethod
    def _plain(turn: Criterion) -> Criterion:
        """Without log-probabilities, which nobody reads in a discussion."""
        return replace(turn, top_logprobs=0)

    def _turn(self, base: Criterion, role: str, part: str, seen: Sequence[_Turn]) -> Criterion:
        """The base criterion with a role behind its system text and a part behind its template.

        Both may be "".

        Each reason that was seen is an untrusted field, and so a block of its own: no reason can
        pass for another agent's turn.
        """
        text = self._prompts.text
        lines = [
            fill(
                text["turn" if turn.verdict.score is not None else "missing"],
                {
                    "agent": turn.agent,
                    "round": str(turn.round),
                    "score": "" if turn.verdict.score is None else f"{turn.verdict.score:g}",
                    "reason": "{" + _field(turn) + "}",
                },
            ).strip()
            for turn in seen
        ]
        ours = text[part] if part else ""
        if part and "transcript" in _PARTS[part]:
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

    def _failure(self, turns: Sequence[_Turn]) -> Verdict | None:
        """The debate's verdict if nobody has a usable turn in the last round."""
        final = [turn.verdict for turn in turns if turn.round == turns[-1].round]
        if any(verdict.score is not None for verdict in final):
            return None
        reason = f"no agent has a usable turn in round {turns[-1].round}: " + "; ".join(
            f"{turn.agent}: {turn.verdict.status}" for turn in turns[-len(final) :]
        )
        parts = tuple(_spoken(turn) for turn in turns)
        return Verdict(
            None,
            failure_of(final),
            reason,
            judge=self.config.label,
            usage=total_usage(parts),
            parts=parts,
        )


def transcript(verdict: Verdict) -> list[dict[str, Any]]:
    """A debate's turns in order: round (None: consolidator), agent, judge, score, reason, status.

    Raises:
        ValueError: the verdict is not a debate's.
    """
    speakers = [_SPEAKER.fullmatch(part.judge) for part in verdict.parts]
    if not speakers or None in speakers:
        raise ValueError(f"the verdict of {verdict.judge} is not a debate's")
    return [
        {
            "round": int(speaker["round"]) if speaker["round"] else None,
            "agent": speaker["agent"] or _CONSOLIDATOR,
            "judge": speaker["judge"],
            "score": part.score,
            "reason": part.reason,
            "status": part.status,
        }
        for speaker, part in zip(speakers, verdict.parts, strict=True)
        if speaker
    ]


def _below(text: str, more: str) -> str:
    """A text, and what is put behind it, without gaps where parts are empty."""
    return re.sub(r"\n{3,}", "\n\n", f"{text.rstrip()}\n\n{more.strip()}").rstrip() + "\n"


def _spoken(turn: _Turn) -> Verdict:
    speaker = f"{turn.agent}, round {turn.round}: {turn.verdict.judge}"
    return replace(turn.verdict, judge=speaker)


def _field(turn: _Turn) -> str:
    """The field that holds a turn's reason; it also names the reason's block in the request."""
    return f"{turn.agent.lower().replace(' ', '_')}_round_{turn.round}"


def _reasons(seen: Sequence[_Turn]) -> dict[str, str]:
    """The reasons of the usable turns, by field."""
    return {_field(turn): turn.verdict.reason for turn in seen if turn.verdict.score is not None}


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
    from pydantic import create_model

    return create_model(schema.__name__, __base__=schema, reason=(str, ...))
