"""From a judge's reply to a verdict: the step that every judge of recorded or live replies shares.

Pure: the same reply gives the same verdict, however it was obtained (endpoint, cache, batch file,
recording). Retries, repairs, budgets and keys are none of its business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.judges import geval, reader
from lmms_eval_tasks.judges.exchange import Reply
from lmms_eval_tasks.judges.verdict import Criterion, Status, Usage, Verdict

if TYPE_CHECKING:
    from pydantic import BaseModel

_MAX_REASON = 300  # characters of what went wrong that a verdict keeps


def judged(criterion: Criterion, fields: Mapping[str, Any], reply: Reply, label: str) -> Verdict:
    """What `reply` says about `fields`.

    Statuses: `truncated` for a reply that was cut off, also where what arrived looks whole;
    `refused` for a content filter, a refusal or no content; `parse_failure` (or `truncated`) for a
    text that is not one verdict (`reader.read`); else `ok`, with the criterion's score. An `ok`
    without a reason has `reason == ""`, so that such verdicts can be counted.

    Args:
        criterion: what was asked.
        fields: what it was asked about; texts of `criterion.untrusted` may be quoted in the reply.
        reply: what came back. Its text is kept in `raw` in every case.
        label: who was asked (`JudgeConfig.label`).
    """

    def failure(status: Status, reason: str) -> Verdict:
        return Verdict(
            None,
            status,
            reason[:_MAX_REASON],
            reply.text or "",
            judge=label,
            model=reply.model,
            usage=usage,
        )

    usage = Usage(1, reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens, reply.batch)
    if reply.finish == "length":
        return failure(Status.TRUNCATED, "the reply hit its token limit")
    if reply.finish == "content_filter":
        return failure(Status.REFUSED, "stopped by a content filter")
    if reply.refusal:
        return failure(Status.REFUSED, reply.refusal)
    if reply.text is None:
        return failure(Status.REFUSED, "a reply without content")
    try:
        value = reader.read(
            reply.text, criterion.schema, quotable(criterion, fields), criterion.bare
        )
    except reader.UnreadableError as problem:
        return failure(problem.status, str(problem))
    rating = _expected(criterion, value, reply)
    return Verdict(
        float(criterion.score(value)),
        Status.OK,
        str(getattr(value, "reason", "")),
        reply.text,
        judge=label,
        model=reply.model,
        usage=usage,
        expected=None if rating is None else rating.value,
        expected_mass=None if rating is None else rating.mass,
    )


def _expected(criterion: Criterion, value: BaseModel, reply: Reply) -> geval.Expected | None:
    """G-Eval's rating, if its token is the one that states what the reader read."""
    if not criterion.top_logprobs or criterion.bare is None:
        return None
    found = geval.expected(reply, criterion.schema, criterion.bare)
    return found if found and found.chosen == getattr(value, criterion.bare) else None


def quotable(criterion: Criterion, fields: Mapping[str, Any]) -> list[str]:
    """The texts of the criterion's untrusted fields; a list's items one by one."""
    texts: list[str] = []
    for name in criterion.untrusted:
        value = fields.get(name, ())
        texts += map(str, value) if isinstance(value, (list, tuple)) else [str(value)]
    return texts
