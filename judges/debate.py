"""Several judges on one item: a panel votes by a rule, a debate discusses (vlm_judge, 3.2).

A debate follows the study's code. Two agents rate. If they agree, that is the result. Else the
first answers the second's rating, the second may change its own, and a consensus is written (2 or 5
calls). Every turn is a criterion for an ordinary judge: so it is cached, retried, budgeted and read
like any other verdict. It is the benchmark's criterion (rubric, material, schema, score) with the
debate's text after it.

Members and agents are asked one after another in the calling thread: further threads would exceed
the user's limit. Weighted and latent-class panels are in the study that fits them.
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

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.verdict import (
    Criterion,
    Judge,
    JudgeConfig,
    Status,
    Verdict,
    failure_of,
    total_usage,
)
from lmms_eval_tasks.prompts import Prompt, fill, load_prompt
from lmms_eval_tasks.utils.json_files import JsonObject


def _check_different(config: JudgeConfig, judges: Sequence[Judge]) -> None:
    """Raise JudgeError if a judge occurs twice: it would vote double, or agree with itself."""
    counts = Counter(judge.config for judge in judges)
    if twice := [one.label for one, count in counts.items() if count > 1]:
        kind = config.provider
        raise JudgeError(
            f"the {kind} {config.label} has the judge {twice[0]} twice: name different judges"
        )


# --- a panel --------------------------------------------------------------------------------------


def combine(verdicts: Sequence[Verdict], rule: str = "majority", judge: str = "panel") -> Verdict:
    """Return one verdict from several on the same item; their order only shows in `parts`.

    Only `ok` verdicts vote. If they are no more than half of the panel, there is no score, and the
    status is the most frequent failure (`failure_of`).

    Args:
        verdicts: at least one; all are kept in `parts`.
        rule: majority (the most frequent score), mean, or median. Of equally frequent scores, and
            of a median's two middle ones, the lowest counts: a tie never gains.
        judge: the panel's label.
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
    counts = sorted(Counter(votes).items(), key=lambda pair: (-pair[1], pair[0]))
    median = votes[(len(votes) - 1) // 2]
    score = {"majority": counts[0][0], "mean": fmean(votes), "median": median}[rule]
    told = ", ".join(f"{vote:g} ({count})" for vote, count in counts)
    reason = f"{rule} of {len(votes)} votes: {told}" + (f"; no vote: {failed}" if failed else "")
    return Verdict(score, Status.OK, reason, **whole)


class PanelJudge(Judge):
    """A panel as one judge, without own state.

    Raises:
        JudgeError: a judge is in it twice.
    """

    def __init__(self, config: JudgeConfig, judges: Sequence[Judge]) -> None:
        _check_different(config, judges)
        self.config, self._judges = config, judges

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> list[Verdict]:
        """Return a verdict per sample: the members' first samples make the first, and so on."""
        rows = [judge.verdicts(criterion, fields, samples) for judge in self._judges]
        chosen = self.config.rule, self.config.label
        return [combine(column, *chosen) for column in zip(*rows, strict=True)]


# --- a debate -------------------------------------------------------------------------------------


class _Turn(NamedTuple):
    agent: str
    round: int | None  # from 1; None: the consolidator
    role: str = ""  # part of the prompt after the system text
    part: str = ""  # part of the prompt after the material

    @property
    def field(self) -> str:
        """The name of the field for the turn's reason, and of its block in later requests."""
        return f"{self.agent.lower().replace(' ', '_')}_round_{self.round}"


_TURNS = (
    _Turn("Agent A", 1),
    _Turn("Agent B", 1),
    _Turn("Agent A", 2, "agent", "answer"),
    _Turn("Agent B", 2, "agent", "revision"),
    _Turn("Consolidator", None, "consolidator", "consolidation"),
)
_PARTS: Mapping[str, tuple[str, ...]] = {
    "agent": ("agent",),
    "answer": ("transcript",),
    "revision": ("transcript",),
    "turn": ("agent", "round", "score", "reason"),
    "missing": ("agent", "round"),
    "consolidator": (),
    "consolidation": ("transcript",),
}


def load_prompts(override_dir: Path | None = None) -> Prompt:
    """Return the debate's texts: the user's `judges/debate.yml` if there is one, else ours.

    Raises:
        PromptError: see `load_prompt`.
    """
    return load_prompt("judges", "debate", _PARTS, override_dir)


class DebateJudge(Judge):
    """A debate of two agents and a consolidator, as one judge.

    Raises:
        JudgeError: both agents are the same.
    """

    def __init__(self, config: JudgeConfig, judges: Sequence[Judge]) -> None:
        _check_different(config, judges[:-1])
        self.config, self._judges = config, (*judges[:-1], *judges)
        self._prompts = load_prompts()

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> list[Verdict]:
        """Return the verdict of one debate, `samples` times: a discussion has no further samples.

        The verdict is the last turn's, with every turn in `parts` (`transcript` reads them). Later
        turns name an agent without a usable turn, and it is asked again. If no agent has a usable
        turn in a round, the debate ends with the round's most frequent status.
        """
        verdicts: list[Verdict] = []
        for judge, turn in zip(self._judges, _TURNS, strict=True):
            scores = [verdict.score for verdict in verdicts]
            agreed = len(verdicts) == 2 and scores[0] == scores[1]
            if agreed or (len(verdicts) == 4 and scores[2:] == [None, None]):
                break
            earlier = dict(zip(_TURNS, verdicts, strict=False)) if turn.role else {}
            turn_criterion = self._asked(criterion, turn, earlier)
            verdicts.append(judge.verdict(turn_criterion, {**fields, **_reasons(earlier)}))
        final = verdicts[-1]
        if final.score is None and len(verdicts) < len(_TURNS):
            names = zip(_TURNS, verdicts, strict=False)
            last = "; ".join(f"{turn.agent}: {verdict.status}" for turn, verdict in [*names][-2:])
            reason = f"no agent has a usable turn in round {len(verdicts) // 2}: {last}"
            final = Verdict(None, failure_of(verdicts[-2:]), reason)
        label, usage = self.config.label, total_usage(verdicts)
        return [replace(final, judge=label, usage=usage, parts=tuple(verdicts))] * samples

    def _asked(self, base: Criterion, turn: _Turn, turns: Mapping[_Turn, Verdict]) -> Criterion:
        """Return the base criterion with the turn's texts after its own.

        Each reason of an earlier turn is an untrusted field with its own block: so no reason can
        pass for another agent's turn.
        """
        text = {"": "", **self._prompts.text}
        lines = []
        for other, verdict in turns.items():
            shown = {
                "agent": other.agent,
                "round": str(other.round),
                "score": "" if verdict.score is None else f"{verdict.score:g}",
                "reason": "{" + other.field + "}",
            }
            line = text["missing" if verdict.score is None else "turn"]
            lines.append(fill(line, shown).strip())
        role = fill(text[turn.role], {"agent": turn.agent})
        part = fill(text[turn.part], {"transcript": "\n\n".join(lines)})
        schema = _with_reason(base.schema)
        if base.labels:  # a word has no room for a reason
            keys = ", ".join(schema.model_fields)
            role = f"{role.strip()}\n\nReply with one JSON object with the keys {keys}."
        return replace(
            base,
            name=f"{base.name}_debate",  # another kind of verdict, of which recordings have none
            system=_below(base.system, role),
            template=_below(base.template, part),
            schema=schema,
            labels=(),
            exact_schema=None,
            prompt_hash=f"{base.prompt_hash}+{self._prompts.hash}",
            untrusted=(*base.untrusted, *_reasons(turns)),
            # Log-probabilities cost tokens; only those of the last turn are used.
            top_logprobs=base.top_logprobs if turn.round is None else 0,
        )


def transcript(verdict: Verdict) -> list[JsonObject]:
    """Return a debate's turns in order: round (None: consolidator), agent, judge, score, ..."""
    names = ("judge", "score", "reason", "status")
    return [
        {"round": turn.round, "agent": turn.agent, **{name: getattr(one, name) for name in names}}
        for turn, one in zip(_TURNS, verdict.parts, strict=False)
    ]


def _below(text: str, more: str) -> str:
    """Return a text with more text after it, without gaps where a part is empty."""
    return re.sub(r"\n{3,}", "\n\n", f"{text.rstrip()}\n\n{more.strip()}").rstrip() + "\n"


def _reasons(turns: Mapping[_Turn, Verdict]) -> dict[str, str]:
    """Return the reasons of the usable turns, by field."""
    return {turn.field: one.reason for turn, one in turns.items() if one.score is not None}


@lru_cache(maxsize=32)
def _with_reason(schema: type[BaseModel]) -> type[BaseModel]:
    """Return the schema with a text field `reason`: a debate needs reasons."""
    if "reason" in schema.model_fields:
        return schema
    return create_model(schema.__name__, __base__=schema, reason=(str, ...))
