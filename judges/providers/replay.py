"""`replay`: recorded replies from a file, for tests and for checks of published judgements.

One JSON object a line:

    {"criterion": "maia_oe", "fields": {"question": "...", "candidate": "..."}, "reply": "{...}"}

`reply` is the text as a model would send it (null: no content); a line may also have `model`,
`finish`, `refusal` (exchange.JudgeReply) and `sample` (0 for the first). `fields` must equal the
fields that the benchmark passes to its judge, without images. Further facts that distinguish two
judgements, such as the judged model, are fields too: templates ignore fields that they do not name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Status, Verdict
from lmms_eval_tasks.judges.providers.exchange import JudgeReply
from lmms_eval_tasks.judges.reader import read_verdict
from lmms_eval_tasks.judges.verdict import NONE
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.released_files import read_lines
from lmms_eval_tasks.utils.validation import validation_problems


class _Recording(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    criterion: str
    shown_fields: JsonObject = Field(alias="fields")
    reply: str | None
    model: str = ""
    finish: str = "stop"
    refusal: str = ""
    sample: int = 0


class ReplayJudge(Judge):
    """A judge whose verdicts come from a file's recorded replies, read like a model's.

    Blank lines are skipped, equal lines count once.

    Raises:
        TasksError: the file cannot be read, a line is no recording, or two lines give different
            replies to the same request; names the file and the line.
    """

    def __init__(self, config: JudgeConfig) -> None:
        self.config, path = config, Path(config.model)
        self._replies: dict[bytes, JudgeReply] = {}
        for number, line in read_lines(path):
            try:
                one = _Recording.model_validate(line)
            except ValidationError as error:
                raise JudgeError(f"{path}, line {number}: {validation_problems(error)}") from None
            reply = JudgeReply(one.reply, finish=one.finish, model=one.model, refusal=one.refusal)
            key = _key(one.criterion, one.shown_fields, one.sample)
            if self._replies.setdefault(key, reply) != reply:
                raise JudgeError(
                    f"{path}, line {number}: a second reply to a question of "
                    f"{one.criterion}; keep one, or number them with `sample`"
                )
        if not self._replies:
            raise JudgeError(f"{path}: no recordings; expected one JSON object a line")

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> Sequence[Verdict]:
        """Return a verdict for each sample, from its own recording; `skipped` if there is none."""
        label = self.config.label
        nothing = Verdict(None, Status.SKIPPED, "no recorded reply", judge=label)
        texts = {name: value for name, value in fields.items() if name not in criterion.images}
        keys = (_key(criterion.name, texts, sample) for sample in range(samples))
        found = (self._replies.get(key) for key in keys)
        return [read_verdict(criterion, fields, one, label) if one else nothing for one in found]


def _key(criterion: str, fields: Mapping[str, object], sample: int) -> bytes:
    """Return a digest of a request; values count as the texts that fill a template."""
    texts = {
        name: [str(item) for item in value] if isinstance(value, (list, tuple)) else str(value)
        for name, value in fields.items()
    }
    content = json.dumps([criterion, texts, sample], sort_keys=True)
    return blake2b(content.encode(), digest_size=16).digest()


class NoJudge(Judge):
    """`none`: generate now, judge later; every verdict is `skipped`."""

    config = JudgeConfig(NONE)

    def verdicts(
        self,
        criterion: Criterion,  # noqa: ARG002 - no request is sent
        fields: Mapping[str, object],  # noqa: ARG002
        samples: int,
    ) -> list[Verdict]:
        """Return `samples` skipped verdicts."""
        return [Verdict(None, Status.SKIPPED, "not judged yet", judge=NONE)] * samples
