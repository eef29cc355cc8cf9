"""What `lmms-eval-tasks facts` says in the end: what was made, what to look at, what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import kept_replies
from lmms_eval_tasks.movierecapsqa.facts import checks, steps
from lmms_eval_tasks.movierecapsqa.facts.build import Plan, Result
from lmms_eval_tasks.movierecapsqa.schema import UNLABELLED

_REVIEW = {
    "answer": "hold their answer",
    "name": "still have what looks like a name of the facts",
    "repeated": "are asked more than once in their segment",
}


def lines(planned: Plan, result: Result, *, cached: bool) -> Iterator[str]:
    """The lines, in order.

    Args:
        planned: what was to be done.
        result: what became of it.
        cached: whether replies were kept, so that a second run reads them again.
    """
    entries = result.entries
    questions = [question for entry in entries for question in entry["questions"]]
    kept = len(entries) - result.made
    yield (
        f"{planned.file}: {len(entries)} of the recap's {len(planned.segments)} segments "
        f"({result.made} made now, {kept} kept), {sum(len(e['facts']) for e in entries)} facts, "
        f"{len(questions)} questions"
    )
    for name in ("modality", "category"):
        counts = Counter(question.get(name) or UNLABELLED for question in questions)
        if counts:
            yield f"{name}: {', '.join(f'{label} {n}' for label, n in counts.most_common())}"
    unjudged = [
        entry["id"] for entry in entries if not any(q.get("modality") for q in entry["questions"])
    ]
    if unjudged:
        yield f"no modality without dialogue: {', '.join(unjudged)}"
    if result.repeated_facts or result.repeated_pairs:
        yield (
            f"left out because they repeat others: {result.repeated_facts} facts, "
            f"{result.repeated_pairs} pairs"
        )
    reviews = [checks.review(entry) for entry in entries]
    for kind, what in _REVIEW.items():
        lines = [line for review in reviews for line in review[kind]]
        yield f"to look at: {len(lines)} questions {what}"
        yield from (f"  {line}" for line in lines)
    for name, failure in result.failures.items():
        yield f"failed: {name} at {failure}"
    if result.failures:
        yield _advice(planned, result, cached=cached)


def _advice(planned: Plan, result: Result, *, cached: bool) -> str:
    """What to do about the segments that failed; each failure begins with its step."""
    stay = [name for name, why in result.failures.items() if _stays(why)]
    if not cached or not stay:
        return "run the same command again to go on: what the file has is not asked for again"
    return (
        f"replies are kept, so the same command would fail the same way at {', '.join(stay)}: "
        f"switch the cache off for one run ({settings.JUDGE_CACHE}=off), which asks about what "
        f"{planned.file} lacks, or name another --model with another --out"
    )


def _stays(failure: str) -> bool:
    _, _, why = failure.partition(": ")  # the step
    return kept_replies.stay(why) or why.startswith(steps.NOT_RELEASED)
