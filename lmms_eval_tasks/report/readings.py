"""Lines on how a task's replies were read and judged: for runs, saved runs and reports.

The next model's habit is to be seen, not scored (docs/metrics.md, "What a reply says"). A line
appears only if it matters, and shows a reply of each kind that it counts.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import Item, Items, Metric, Task
from lmms_eval_tasks.judges import checks
from lmms_eval_tasks.judges.verdict import REPLAY
from lmms_eval_tasks.notify import visible
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.replies import reasoning, refusals

MANY_UNREAD = 0.05  # share of unread replies above which there is a line
# Two points: difference between our number and the authors' above which there is a line.
APART = 0.02
# Statuses without a readable answer.
UNREAD = frozenset({"unparsed", "empty", "truncated", refusals.LOST, "error"})
EXAMPLE = 48  # characters of a reply in a line


class Note(NamedTuple):
    """One line on a task's replies, without the task's name."""

    weight: float  # sort key of lines: the share of replies, or the difference of two numbers
    text: str  # safe to print: on one line, without control characters


def reply_notes(task: Task, items: Items) -> list[Note]:
    """Return the lines on a task's replies, the heaviest first; [] if nothing is unusual."""
    ordered = sorted(items, key=lambda item: str(item["id"]))
    judged = judged_alike(task, ordered)
    found = (_unread(ordered), _marked(ordered), judged, *_apart(task, ordered)[:1])
    return sorted(filter(None, found), reverse=True)


def is_thin(statuses: dict[str, int]) -> bool:
    """Return True if under half of a task's replies were read, by the counts of their statuses."""
    return 2 * count_read(statuses) < sum(statuses.values())


def count_read(statuses: dict[str, int]) -> int:
    """Return the number of replies that were read, by the counts of a task's statuses."""
    return sum(count for status, count in statuses.items() if status not in UNREAD)


# --- replies that were not read -------------------------------------------------------------------


def _unread(items: Items) -> Note | None:
    """Return the line on replies that were not read: their share and their commonest forms."""
    unread = [item for item in items if item["status"] == "unparsed"]
    if len(unread) <= MANY_UNREAD * len(items):
        return None
    share, statuses = len(unread) / len(items), Counter(item["status"] for item in items)
    rests = ""
    if is_thin(statuses):
        read = count_read(statuses)
        rests = f", so the numbers rest on {read or 'none'} of {len(items)}"
    forms = ", ".join(f"{count} like {example}" for count, example in commonest(unread))
    told = f"{len(unread)} of {len(items)} replies were not read ({100 * share:.3g} %){rests}"
    return Note(share, f"{told}; most common forms: {forms}")


FORMS = 3  # most forms in a line
# Replies whose shapes begin alike have one form, because a model's habit shows at the beginning of
# its replies. "Alike" means equal over the first of these lengths, in characters, at which half of
# the replies are equal; else over FEWEST characters, for as many replies as are equal.
LENGTHS = (32, 24, 16, 12, 8, 6, 4, 2)
FEWEST = 4
_GENERAL = (
    (re.compile(r"""["“”„«「『][^"“”»」』]*["”»」』](?!\s*:)"""), "…"),  # but no key of JSON
    (re.compile(r"\d+(?:[\s,.:;>/-]*\d+)*"), "0"),
    (re.compile(r"(?<!\w)[a-z](?!\w)"), "x"),  # a letter, or an article
)
_SHAPED = 500  # characters of a reply that form its shape


def commonest(items: Items) -> list[tuple[int, str]]:
    """Return the commonest forms of replies, at most FORMS, each with its count and an example."""
    rest = [(_shape(item), item) for item in items]
    forms: list[tuple[int, str]] = []
    while rest and len(forms) < FORMS:
        for length in (*LENGTHS, FEWEST):
            ((start, count),) = Counter(shape[:length] for shape, _ in rest).most_common(1)
            if 2 * count >= len(rest):
                break
        first = next(item for shape, item in rest if shape[:length] == start)
        forms.append((count, example(first)))
        rest = [(shape, item) for shape, item in rest if shape[:length] != start]
    return sorted(forms, key=lambda form: -form[0])


def _shape(item: Item) -> str:
    """Return the beginning of a reply without the parts that differ between items.

    Numbers, single letters, quotations and the texts of the item's options become one sign each.
    """
    text = _plain(_seen(item)[:_SHAPED])
    options = [own for one in item.get("options") or () if len(own := _plain(str(one))) > 1]
    if options:
        longest_first = "|".join(map(re.escape, sorted(options, key=len, reverse=True)))
        text = re.sub(rf"(?<!\w)(?:{longest_first})(?!\w)", "…", text)
    for pattern, instead in _GENERAL:
        text = pattern.sub(instead, text)
    return text


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _seen(item: Item) -> str:
    """Return a reply without its reasoning; the complete reply if nothing is left."""
    return reasoning.strip_reasoning(item["reply"])[0] or str(item["reply"])


def example(item: Item) -> str:
    """Return the beginning of a reply in quotation marks, on one line, safe for a terminal."""
    return _quoted(_seen(item))


def _quoted(text: str) -> str:
    line = visible(" ".join(text[:_SHAPED].split()))
    return f'"{line[:EXAMPLE]}…"' if len(line) > EXAMPLE else f'"{line}"'


# --- unknown special tokens -----------------------------------------------------------------------


def _marked(items: Items) -> Note | None:
    """Return the line on replies with an unknown special token first, which may hide the answer."""
    answered = [item for item in items if item["status"] != refusals.LOST]
    found = [(mark, item) for item in answered if (mark := reasoning.unknown_mark(item["reply"]))]
    if not found:
        return None
    (mark, _), *_ = Counter(mark for mark, _ in found).most_common(1)
    item = next(item for own, item in found if own == mark)
    told = f"{len(found)} of {len(items)} replies begin with an unknown special token"
    shown = f"{_quoted(mark)}, as in {visible(str(item['id']))}: {_quoted(item['reply'])}"
    return Note(len(found) / len(items), f"{told}: {shown}")


# --- a judge that always says the same ------------------------------------------------------------

JUDGED = 20  # fewest verdicts for a line on equal ones
NEARLY_ALL = 0.95  # share of equal verdicts from which there is a line
# Equal verdicts in a row, in the order of ids, from which there is a line if they are no chance.
IN_A_ROW = 20
CHANCE = 0.01  # most such rows that the task's other verdicts may let expect
# Parts of the names of requests about an answer's form, which is good in nearly all answers.
_OF_FORM = ("coherence", "fluency")


def judged_alike(task: Task, items: Items) -> Note | None:
    """Return the line on a judge that gave one verdict to nearly all answers, or to many in a row.

    A model may be that good or that bad, so nothing is invalid, but the user should look at the
    judge.
    """
    parts: list[tuple[float, str]] = []
    judge: Mapping[str, Json] = {}
    for judgement in (one for one in task.judgements if not any(form in one for form in _OF_FORM)):
        given = [(item.get("verdicts") or {}).get(judgement) for item in items]
        scored = [one for one in given if one and one.get("score") is not None]
        if len(scored) < JUDGED or any(map(_is_recorded, scored)):
            continue
        if same := _sameness([one["score"] for one in scored]):
            judge, total = scored[0], len(scored)
            word = _verdict(judgement, same.score, is_label="right" in items[0])
            of = f"answers in a row, of {total}" if same.is_row else f"of {total} answers"
            parts.append((same.number / total, f"({word}) to {same.number} {of}"))
    if not parts:
        return None
    command = checks.command(str(registry.of_task_name(task.name)), _spec(judge))
    told = f"the judge gave the same verdict {', '.join(part for _, part in parts)}"
    return Note(
        max(share for share, _ in parts),
        f"{told}: check the judge before you use the number ({command})",
    )


class _EqualVerdicts(NamedTuple):
    """Equal verdicts: of nearly all answers, or in a row."""

    score: float
    number: int
    is_row: bool


def _sameness(scores: Sequence[float]) -> _EqualVerdicts | None:
    """Return the equal verdicts that need a line; None if there are none.

    In a long run of a good model, rows of equal verdicts are chance: among 2,400 answers of which
    three in four are right, there are two rows of 20 right ones. So a row counts only if at most
    CHANCE such rows are expected, by the frequency of its verdict among the others.
    """
    total = len(scores)
    (score, count), *_ = Counter(scores).most_common(1)
    if count >= NEARLY_ALL * total:
        return _EqualVerdicts(score, count, is_row=False)
    length, score = max((sum(1 for _ in row), score) for score, row in groupby(scores))
    others = total - length
    share = (scores.count(score) - length + 1) / (others + 2)  # never 0 or 1
    expected = ((1 - share) * others + 1) * share**length
    is_news = length >= IN_A_ROW and expected <= CHANCE
    return _EqualVerdicts(score, length, is_row=True) if is_news else None


def _verdict(judgement: str, score: float, *, is_label: bool) -> str:
    """Return a verdict in words: "correct", or "factuality 5"."""
    if is_label:
        return "correct" if score else "incorrect"
    return f"{judgement} {score:g}"


def _spec(verdict: Mapping[str, Json]) -> str:
    """Return the judge of a verdict in the user's form.

    For several judges this is SPEC, since they are named by a file.
    """
    label = str(verdict.get("judge"))
    is_one = all(part.get("judge") == label for part in verdict.get("parts", ()))
    return visible(label) if is_one else "SPEC"


def _is_recorded(verdict: Mapping[str, Json]) -> bool:
    """Return True if no language model gave the verdict."""
    return str(verdict.get("judge")).startswith(f"{REPLAY}:")


# --- ours and the authors' rule -------------------------------------------------------------------


def _apart(task: Task, items: Items) -> list[Note]:
    """Return lines on numbers that differ by the authors' reading, the widest difference first."""
    return sorted(_differences(task, items), reverse=True)


def _differences(task: Task, items: Items) -> Iterator[Note]:
    metrics = {metric.name: metric for metric in task.metrics}
    for name, ours in metrics.items():
        if (theirs := metrics.get(f"{name}_authors")) is None:
            continue
        a, b = _value(ours, items), _value(theirs, items)
        if a is None or b is None or round(abs(a - b), 9) <= APART:  # 0.52 - 0.5 is above 0.02
            continue
        # A number that single items do not have, such as a kappa, differs by formula, not by
        # reading.
        items_apart = [item for item in items if _value(ours, [item]) != _value(theirs, [item])]
        if items_apart:
            first = items_apart[0]
            told = f"{name} is {a:.3f}, but {b:.3f} when the authors' rule reads the same replies"
            shown = f"{visible(str(first['id']))}: {example(first)}"
            text = f"{told}: {len(items_apart)} of {len(items)} items differ, such as {shown}"
            yield Note(abs(a - b), text)


def _value(metric: Metric, items: Sequence[Item]) -> float | None:
    own = metric.counted_items(items)
    try:
        value: Any = metric.compute(own) if own else None
    except (KeyError, TypeError):  # items of earlier versions lack the authors' reading
        return None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
