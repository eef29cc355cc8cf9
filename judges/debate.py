"""Several judges on one item: a panel votes by a stated rule, a debate discusses (vlm_judge, 3.2).

A debate is as the study's code has it: two agents rate; if they agree that is the result, else the
first one answers the second one's rating, the second may change its own, and a consensus is written
(2 or 5 calls). Every turn is a criterion of its own, asked through an ordinary judge: so each is
cached, retried, budgeted and read like any other verdict. It is the benchmark's criterion (rubric,
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
from lmms_eval_tasks.prompts import Prompt, fill, load
from lmms_eval_tasks.utils.json_files import JsonObject


def _check_different(config: JudgeConfig, judges: Sequence[Judge]) -> None:
    """Raises JudgeError: one judge twice would vote double, or agree with itself."""
    counts = Counter(judge.config for judge in judges)
    if twice := [one.label for one, count in counts.items() if count > 1]:
        kind = config.provider
        raise JudgeError(
            f"the {kind} {config.label} has the judge {twice[0]} twice: name different judges"
        )


# --- a panel --------------------------------------------------------------------------------------


def combine(verdicts: Sequence[Verdict], rule: str = "majority", judge: str = "panel") -> Verdict:
    """One verdict out of several on the same item; apart from `parts` their order has no influence.

    Only `ok` verdicts vote. If they are no more than half of the panel there is no score, and the
    status is the failures' most frequent one (`failure_of`).

    Args:
        verdicts: at least one; they are kept whole in `parts`.
        rule: majority (the most frequent score), mean, or median. Of several that are equally
            frequent, and of a median's two middle ones, the lowest: a tie never pays.
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
    """A panel as one judge, without a state of its own. JudgeError: a judge is in it twice."""

    def __init__(self, config: JudgeConfig, judges: Sequence[Judge]) -> None:
        _check_different(config, judges)
        self.config, self._judges = config, judges

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> list[Verdict]:
        """The members' first samples make the first verdict, their second ones the second, ..."""
        rows = [judge.verdicts(criterion, fields, samples) for judge in self._judges]
        chosen = self.config.rule, self.config.label
        return [combine(column, *chosen) for column in zip(*rows, strict=True)]


# --- a debate -------------------------------------------------------------------------------------


class _Turn(NamedTuple):
    agent: str
    round: int | None  # from 1; None for the consolidator
    role: str = ""  # the part of the prompt behind the system text
    part: str = ""  # and the one behind the material

    @property
    def field(self) -> str:
        """The name of the turn's reason as a field, and of its block in later requests."""
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
    """The debate's texts: the user's `judges/debate.yml` before ours. PromptError: as `load`'s."""
    return load("judges", "debate", _PARTS, override_dir)


class DebateJudge(Judge):
    """Two agents and who consolidates, as one judge. JudgeError: both agents are the same."""

    def __init__(self, config: JudgeConfig, judges: Sequence[Judge]) -> None:
        _check_different(config, judges[:-1])
        self.config, self._judges = config, (*judges[:-1], *judges)
        self._prompts = load_prompts()

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> list[Verdict]:
        """One debate's verdict as often: nobody draws samples of a discussion.

        The verdict is the last turn's, with every turn in `parts` (`transcript` reads them). An
        agent without a usable turn is named in later ones and asked again. If nobody has a usable
        turn in a round, the debate ends with its most frequent status.
        """
        said: list[Verdict] = []
        for judge, turn in zip(self._judges, _TURNS, strict=True):
            scores = [one.score for one in said]
            agreed = len(said) == 2 and scores[0] == scores[1]
            if agreed or (len(said) == 4 and scores[2:] == [None, None]):
                break
            seen = dict(zip(_TURNS, said, strict=False)) if turn.role else {}
            asked = self._asked(criterion, turn, seen)
            said.append(judge.verdict(asked, {**fields, **_reasons(seen)}))
        final = said[-1]
        if final.score is None and len(said) < len(_TURNS):
            names = zip(_TURNS, said, strict=False)
            told = "; ".join(f"{turn.agent}: {one.status}" for turn, one in [*names][-2:])
            reason = f"no agent has a usable turn in round {len(said) // 2}: {told}"
            final = Verdict(None, failure_of(said[-2:]), reason)
        label, usage = self.config.label, total_usage(said)
        return [replace(final, judge=label, usage=usage, parts=tuple(said))] * samples

    def _asked(self, base: Criterion, turn: _Turn, seen: Mapping[_Turn, Verdict]) -> Criterion:
        """The base criterion with the turn's texts behind its own.

        Each reason that was seen is an untrusted field, and so a block of its own: no reason can
        pass for another agent's turn.
        """
        text = {"": "", **self._prompts.text}
        lines = []
        for other, verdict in seen.items():
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
        if base.labels:  # a word holds no reason
            keys = ", ".join(schema.model_fields)
            role = f"{role.strip()}\n\nReply with one JSON object with the keys {keys}."
        return replace(
            base,
            name=f"{base.name}_debate",  # another kind of verdict: recordings hold none of it
            system=_below(base.system, role),
            template=_below(base.template, part),
            schema=schema,
            labels=(),
            exact_schema=None,
            prompt_hash=f"{base.prompt_hash}+{self._prompts.hash}",
            untrusted=(*base.untrusted, *_reasons(seen)),
            # Log-probabilities cost; only the last word's are of use.
            top_logprobs=base.top_logprobs if turn.round is None else 0,
        )


def transcript(verdict: Verdict) -> list[JsonObject]:
    """A debate's turns in order: round (None: consolidator), agent, judge, score, reason, ..."""
    names = ("judge", "score", "reason", "status")
    return [
        {"round": turn.round, "agent": turn.agent, **{name: getattr(one, name) for name in names}}
        for turn, one in zip(_TURNS, verdict.parts, strict=False)
    ]


def _below(text: str, more: str) -> str:
    """A text, and what is put behind it, without gaps where parts are empty."""
    return re.sub(r"\n{3,}", "\n\n", f"{text.rstrip()}\n\n{more.strip()}").rstrip() + "\n"


def _reasons(seen: Mapping[_Turn, Verdict]) -> dict[str, str]:
    """The reasons of the usable turns, by field."""
    return {turn.field: one.reason for turn, one in seen.items() if one.score is not None}


@lru_cache(maxsize=32)
def _with_reason(schema: type[BaseModel]) -> type[BaseModel]:
    """The schema, with a text field `reason` if it has none: without reasons nothing is debated."""
    if "reason" in schema.model_fields:
        return schema
    return create_model(schema.__name__, __base__=schema, reason=(str, ...))
