"""One answer judged without a reference: its claims, then their labels in each dimension (4.2).

The claims are one request about question and answer alone. Then the three dimensions are asked side
by side, each about the same claims; the first request about a segment goes ahead of the others
(first_call.py). All of them share the judge's limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lmms_eval_tasks.judges import Criterion, Judge, Status, Verdict, reader, run
from lmms_eval_tasks.judges.candidate import OF_THE_JUDGE, judge_answer
from lmms_eval_tasks.judges.config import NONE
from lmms_eval_tasks.judges.judging import quotable
from lmms_eval_tasks.judges.ledger import current_task
from lmms_eval_tasks.judges.ledger import task as as_task
from lmms_eval_tasks.movierecapsqa import bounds
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.first_call import gate
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.utils import answers
from lmms_eval_tasks.utils.aggregate import CANDIDATE_FAILURES, NOT_JUDGED

NO_CLAIMS = "no_claims"  # of an item: an answer in which the judge finds nothing claimed
_OK = Status.OK.value


@dataclass(frozen=True)
class Context:
    """What a judge knows of a segment: all its facts and its dialogue, "" where there is none."""

    segment: str
    facts: tuple[str, ...]
    dialogue: str


class Judged(NamedTuple):
    """An answer and what became of it.

    `dimensions` has for each of DIMENSIONS:
    - score: 0 to 5; 0 for the candidate's own failures, None where there is none;
    - status: as the item's, of this dimension alone;
    - labels: of each claim, in the order of `claims`; none without an `ok`;
    - low, high: the scores that the labels allow (bounds.interval), None without labels;
    - consistent: whether the score is one of them, None without labels;
    - verdict: the judge's, as plain types.
    """

    candidate: str  # what was put to the judge: without reasoning; empty if it is no answer
    status: str  # ok; the candidate's failures; unjudged; judge_<status>, the first one's
    claims: list[str]
    claims_verdict: dict[str, Any] | None
    dimensions: dict[str, dict[str, Any]]


def judge_reply(
    judge: Judge,
    context: Context,
    question: str,
    reply: str,
    saved: Mapping[str, Verdict | None] | None = None,
) -> Judged:
    """Judge a model's reply to a question about a segment; trouble becomes a status.

    An empty answer, a refusal, one that was cut off and one without claims are the candidate's
    failures, worth 0. Where the claims are not known (the judge failed, or they stand in a batch
    file) the dimensions are not asked: `judge_skipped`, or `unjudged` for the judge `none`.

    Args:
        judge: who is asked.
        context: the segment; it reaches the judge in the dimensions' requests alone.
        question: as the model got it.
        reply: the model's text, as the host hands it over.
        saved: verdicts that stand in place of asking, under `claims` and the dimensions' names.
            Those of dimensions are about the saved claims: without these they do not count, nor do
            verdicts whose reply no longer reads as claims, or as one label for each of them.

    Raises:
        PromptError: the user's prompts do not fit.
    """
    candidate = answers.strip_reasoning(reply)[0].strip()
    kept = {name: verdict for name, verdict in (saved or {}).items() if verdict is not None}
    known = kept.get("claims")
    if known is None or (known.status == _OK and read_claims(known, candidate) is None):
        known, kept = None, {}
    done = judge_answer(
        judge, judging.claims_criterion(), {"question": question}, reply, verdict=known
    )
    if done.verdict is None:
        return Judged(done.candidate, done.status, [], None, _unasked(done.status))
    verdict, status = done.verdict, done.status
    claims = read_claims(verdict, candidate) if status == "ok" else []
    if claims is None:
        verdict, claims = _unreadable(verdict), []
        status = OF_THE_JUDGE + verdict.status
    if status == NOT_JUDGED or (status == "ok" and not claims):
        status = NOT_JUDGED if status == NOT_JUDGED else NO_CLAIMS
        return Judged(candidate, status, [], verdict.as_dict(), _unasked(status))
    if status == "ok":
        verdicts = _labelled(judge, context, question, claims, kept)
    else:
        verdicts = {name: kept.get(name) or _skipped(judge, verdict) for name in DIMENSIONS}
    dimensions = {name: _rated(name, verdicts[name], claims) for name in DIMENSIONS}
    statuses = [status, *(dimensions[name]["status"] for name in DIMENSIONS)]
    status = next((found for found in statuses if found != "ok"), "ok")
    return Judged(candidate, status, claims, verdict.as_dict(), dimensions)


def asked(context: Context, dimension: str, question: str, claims: Sequence[str]) -> dict[str, Any]:
    """The fields of a dimension's request (judge.dimension_criterion); recordings hold the same."""
    return {
        "dimension": dimension,
        "facts": list(context.facts),
        "dialogue": context.dialogue,
        "question": question,
        "claims": list(claims),
    }


# --- what replies say ---------------------------------------------------------------------------


def read_claims(verdict: Verdict, candidate: str) -> list[str] | None:
    """The claims in a verdict's reply, None if it does not hold them. Pure."""
    found = _read(verdict, judging.claims_criterion(), {"candidate": candidate})
    return None if found is None else list(found.claims)


def read_labels(verdict: Verdict, dimension: str, claims: Sequence[str]) -> list[str] | None:
    """The labels of `claims`, in their order, in a verdict's reply; None if it has none. Pure."""
    criterion = judging.dimension_criterion(dimension, len(claims))
    found = _read(verdict, criterion, {"claims": claims})
    return None if found is None else [one.label for one in found.labels]


def _read(verdict: Verdict, criterion: Criterion, fields: Mapping[str, Any]) -> Any:
    try:
        return reader.read(verdict.raw, criterion.schema, quotable(criterion, fields))
    except reader.UnreadableError:
        return None


def _unreadable(verdict: Verdict) -> Verdict:
    """A verdict with a score whose reply does not say why: of a judge that is no language model."""
    reason = "a score without claims or labels in the reply"
    return replace(verdict, score=None, status=Status.PARSE_FAILURE.value, reason=reason)


# --- the dimensions -----------------------------------------------------------------------------


def _labelled(
    judge: Judge,
    context: Context,
    question: str,
    claims: Sequence[str],
    kept: Mapping[str, Verdict],
) -> dict[str, Verdict]:
    """Each dimension's verdict: the saved one if it stands, else the judge's."""

    def stands(name: str) -> bool:
        if name not in kept:
            return False
        return kept[name].status != _OK or read_labels(kept[name], name, claims) is not None

    def ask(name: str) -> Verdict:
        criterion = judging.dimension_criterion(name, len(claims))
        fields = asked(context, name, question, claims)
        here = run.current().here
        # The config and the prompt decide on every byte before the segment's own.
        with gate((judge.config, criterion.prompt_hash, context.segment)).turn() as turn:
            before = here.paid
            verdict = judge.verdict(criterion, fields)
            # What our own cache answers does not reach the provider's.
            turn.sent = verdict.score is None or here.paid > before
        return verdict

    found = {name: kept[name] for name in DIMENSIONS if stands(name)}
    return found | _side_by_side(ask, [name for name in DIMENSIONS if name not in found])


def _side_by_side(ask: Callable[[str], Verdict], names: Sequence[str]) -> dict[str, Verdict]:
    """`ask` of every name, each in a thread of its own; how many go out is up to the limits."""
    if len(names) < 2:
        return {name: ask(name) for name in names}
    task = current_task()

    def booked(name: str) -> Verdict:
        with as_task(task):  # a context variable: threads do not inherit it
            return ask(name)

    with ThreadPoolExecutor(max_workers=len(names)) as pool:
        return dict(zip(names, pool.map(booked, names), strict=True))


def _skipped(judge: Judge, claims: Verdict) -> Verdict:
    """A dimension that cannot be asked: booked, since its score is missing as a failed one is."""
    label = judge.config.label
    reason = f"the claims are not known ({claims.status})"
    verdict = Verdict(None, Status.SKIPPED.value, reason, judge=label, setup=claims.setup)
    run.current().ledger.verdict(current_task(), label, verdict)
    return verdict


def _rated(dimension: str, verdict: Verdict, claims: Sequence[str]) -> dict[str, Any]:
    labels = read_labels(verdict, dimension, claims) if verdict.status == _OK else []
    if labels is None:
        verdict, labels = _unreadable(verdict), []
    status = _OK if verdict.status == _OK else OF_THE_JUDGE + verdict.status
    low, high = bounds.interval(dimension, labels) if labels else (None, None)
    score = None if verdict.score is None else int(verdict.score)
    return {
        "score": score,
        "status": NOT_JUDGED if verdict.judge == NONE else status,
        "labels": labels,
        "low": low,
        "high": high,
        "consistent": None if low is None or high is None else low <= (score or 0) <= high,
        "verdict": verdict.as_dict(),
    }


def _unasked(status: str) -> dict[str, dict[str, Any]]:
    """Every dimension of an answer that is not put to the judge, or not yet."""
    empty: dict[str, Any] = {"labels": [], "low": None, "high": None, "consistent": None}
    score = 0 if status in CANDIDATE_FAILURES else None
    return {
        name: {"score": score, "status": status, **empty, "verdict": None} for name in DIMENSIONS
    }
