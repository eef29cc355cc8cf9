"""`replay`: recorded replies from a file, for tests and for checking published judgements.

One JSON object a line:

    {"criterion": "maia_oe", "fields": {"question": "...", "candidate": "..."}, "reply": "{...}"}

`reply` is the text as a model would send it (null: no content); a line may also have `model`,
`finish`, `refusal` (exchange.Reply) and `sample` (0 for the first). `fields` must be what the
benchmark hands to its judge, without images. What else tells two judgements apart, such as the
model that was judged, is a field as well: templates ignore fields that they do not name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.reader import judged
from lmms_eval_tasks.judges.verdict import (
    NONE,
    Criterion,
    Judge,
    JudgeConfig,
    Reply,
    Status,
    Verdict,
)

_KINDS: dict[str, tuple[type, ...]] = {
    "criterion": (str,),
    "fields": (dict,),
    "reply": (str, type(None)),
    "model": (str,),
    "finish": (str,),
    "refusal": (str,),
    "sample": (int,),
}
_REQUIRED = ("criterion", "fields", "reply")


@dataclass(frozen=True)
class Recordings:
    """Recorded replies; read only, so that threads and forks can share them."""

    criteria: frozenset[str]
    replies: Mapping[bytes, Reply]  # by `_key`

    @classmethod
    def load(cls, path: str | Path) -> Recordings:
        """Read a file; blank lines are skipped, equal lines count once.

        Raises:
            JudgeError: the file cannot be read, a line is no recording, or two lines give different
                replies to the same question; naming the file and the lines.
        """
        path = Path(path)
        lines: dict[bytes, int] = {}
        replies: dict[bytes, Reply] = {}
        criteria: set[str] = set()
        try:
            with path.open(encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    if not line.strip():
                        continue
                    criterion, key, reply = _recording(line, f"{path}, line {number}")
                    if replies.setdefault(key, reply) != reply:
                        raise JudgeError(
                            f"{path}, lines {lines[key]} and {number}: different replies to the "
                            f"same question of {criterion}; keep one, or number them by `sample`"
                        )
                    lines.setdefault(key, number)
                    criteria.add(criterion)
        except (OSError, UnicodeDecodeError) as error:
            raise JudgeError(f"{path}: no readable file of recordings ({error})") from error
        if not replies:
            raise JudgeError(f"{path}: no recordings; expected one JSON object a line")
        return cls(frozenset(criteria), replies)

    def find(
        self, criterion: Criterion, fields: Mapping[str, Any], sample: int = 0
    ) -> Reply | None:
        """The recorded reply to `criterion` about `fields`, images left out, or None."""
        texts = {name: value for name, value in fields.items() if name not in criterion.images}
        return self.replies.get(_key(criterion.name, texts, sample))


@dataclass(frozen=True)
class ReplayJudge(Judge):
    """Gives the verdicts that recorded replies hold, read as if a model had just sent them."""

    config: JudgeConfig
    recordings: Recordings

    def supports(self, criterion: str) -> bool:
        """Whether anything is recorded for the criterion."""
        return criterion in self.recordings.criteria

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> Sequence[Verdict]:
        """Each of the samples has a recording of its own; `skipped` where there is none."""
        return [self._verdict(criterion, fields, sample) for sample in range(samples)]

    def _verdict(self, criterion: Criterion, fields: Mapping[str, Any], sample: int) -> Verdict:
        reply = self.recordings.find(criterion, fields, sample)
        if reply is None:
            return Verdict(None, Status.SKIPPED, "no recorded reply", judge=self.config.label)
        return judged(criterion, fields, reply, self.config.label)


def _recording(line: str, place: str) -> tuple[str, bytes, Reply]:
    """Criterion, key and reply of one line; `place` names it in errors."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise JudgeError(f"{place}: no JSON ({error})") from error
    if not isinstance(record, dict):
        raise JudgeError(f"{place}: expected a JSON object")
    for name, kind in _KINDS.items():
        if name not in record and name in _REQUIRED:
            raise JudgeError(f"{place}: `{name}` is missing")
        if name in record and type(record[name]) not in kind:
            raise JudgeError(f"{place}: `{name}` has the wrong type")
    if unknown := sorted(record.keys() - _KINDS.keys()):
        raise JudgeError(f"{place}: unknown key `{unknown[0]}`; known: {', '.join(_KINDS)}")
    reply = Reply(
        record["reply"],
        finish=record.get("finish", "stop"),
        model=record.get("model", ""),
        refusal=record.get("refusal", ""),
    )
    name = record["criterion"]
    return name, _key(name, record["fields"], record.get("sample", 0)), reply


def _key(criterion: str, fields: Mapping[str, Any], sample: int) -> bytes:
    """A digest; values are compared as the texts that a template is filled with."""
    texts = {
        name: [str(item) for item in value] if isinstance(value, (list, tuple)) else str(value)
        for name, value in fields.items()
    }
    content = json.dumps([criterion, texts, sample], sort_keys=True)
    return blake2b(content.encode(), digest_size=16).digest()


def judge(config: JudgeConfig) -> Judge:
    """The judge that recordings make, or nobody.

    Raises:
        JudgeError: the recordings cannot be read.
    """
    if config.provider == NONE:
        return NoJudge(config)
    return ReplayJudge(config, Recordings.load(config.model))


@dataclass(frozen=True)
class NoJudge(Judge):
    """`none`: generate now, judge later; every verdict is `skipped`."""

    config: JudgeConfig

    def verdicts(
        self,
        criterion: Criterion,  # noqa: ARG002 - nobody is asked
        fields: Mapping[str, Any],  # noqa: ARG002
        samples: int,
    ) -> list[Verdict]:
        """As many skipped verdicts."""
        return [Verdict(None, Status.SKIPPED, "not judged yet", judge=NONE)] * samples
