"""What `lmms-eval-tasks agreement` compares: a release's answers, their published scores, a judge.

MovieRecapsQA's release is the one that has such scores. Each answer is scored as in a run, in every
way of showing the judge what is known; they have claims, coherence and baselines in common.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmark import Item, Items
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import Criterion, Judge
from lmms_eval_tasks.judges.asking import Asker
from lmms_eval_tasks.movierecapsqa import published
from lmms_eval_tasks.movierecapsqa.data import BOTH_READINGS
from lmms_eval_tasks.movierecapsqa.published import PEOPLE, Data, Released
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import scoring
from lmms_eval_tasks.runs.estimate import asks
from lmms_eval_tasks.runs.rescore import verdicts
from lmms_eval_tasks.utils.metrics import aggregate, rating_means
from lmms_eval_tasks.utils.metrics.agreement import Pair
from lmms_eval_tasks.utils.replies.answers import to_judge

ASSUMED = "a claim for each sentence, 20 words for each reason"
_REASON = '{"reason": "%s", "score": 1}' % ("word " * 20)
_TASK = BENCHMARK.tasks[published.TASK]


class Task(NamedTuple):
    """What is compared."""

    data: Data
    models: list[str]  # whose answers are judged, people not among them
    asked: list[Released]  # all of their answers, and of people if they are wanted

    @property
    def texts(self) -> int:
        """How many of the answers there is anything in to judge."""
        return sum(to_judge(one.text)[0] == "ok" for one in self.asked)

    def pairs(self, items: Items, dimension: str) -> list[Pair]:
        """Of all answers of the release; those of others than `asked` have no score of ours.

        Args:
            items: of `asked`, in one way.
            dimension: one of published.DIMENSIONS.
        """
        counted = zip(self.asked, aggregate.as_counted(items), strict=True)
        ours = {id(one): rating_means.value(dimension, item) for one, item in counted}
        return [
            Pair(one.by, *_place(one), ours.get(id(one)), one.scores[dimension])
            for one in self.data.answers
        ]

    def numbers(self, items: Items) -> dict[str, dict[str, Any]]:
        """Every metric of a run, by whose answers they are.

        Where people gave several answers to a question there are the average and the best of each
        as well (paper, 5.3), each metric by itself; those of texts need the texts.
        """
        own: dict[str, list[Any]] = {}
        for one, item in zip(self.asked, items, strict=True):
            own.setdefault(one.by, []).append(item)
        theirs: dict[str, list[Item]] = {}
        answered = [one for one in own.get(PEOPLE, []) if one["dimensions"] and one["candidate"]]
        for item in answered:
            theirs.setdefault(item["id"], []).append(item)
        if len(theirs) < len(answered):
            for title, pick in (("average", statistics.fmean), ("best", max)):
                merged = [_merged(given, pick) for given in theirs.values()]
                own[f"{PEOPLE}, {title} of each question"] = merged
        return {by: scoring.numbers(_TASK, given) for by, given in own.items()}


def _place(answer: Released) -> tuple[str, str]:
    return answer.doc["id"], answer.doc["video"]


def _merged(given: Items, pick: Callable[[Sequence[float]], float]) -> dict[str, Any]:
    """One item of several people's answers to a question."""

    def picked(ratings: Items, name: str) -> float | None:
        known = [one[name] for one in ratings if one.get(name) is not None]
        return pick(known) if known else None

    def rated(ratings: Items) -> dict[str, Any]:
        made = {name: picked(ratings, name) for name in ("score", "low", "high")}
        status = ratings[0]["status"] if made["score"] is None else "ok"
        return {"mode": ratings[0].get("mode"), "status": status, **made}

    parts = {
        part: {name: rated([one[part][name] for one in given]) for name in given[0][part]}
        for part in ("dimensions", "baselines")
    }
    alone = {"status": "ok", "reference": "", "n_claims": 0, "rouge_l": picked(given, "rouge_l")}
    return {**given[0], **alone, **parts}


def load(source: Path, models: str | None) -> Task:
    """Read a release, and find the answers to judge.

    Args:
        source: the data file or its folder.
        models: names, separated by commas; people may be one. None: all.

    Raises:
        TasksError: the data cannot be used, or `models` names one that is not in them.
    """
    data = published.read(source)
    there = [*data.models, PEOPLE]
    forms = {name.lower(): name for name in there}
    named = there if models is None else [name.strip() for name in models.split(",")]
    if unknown := [name for name in named if name.lower() not in forms]:
        raise TasksError(
            f"--models: {data.file} has no answers of {', '.join(map(repr, unknown))}; it has "
            f"some of: {', '.join(there)}"
        )
    wanted = {forms[name.lower()] for name in named}
    asked = [answer for answer in data.answers if answer.by in wanted]
    if not any(answer.is_scored for answer in asked):
        raise TasksError(f"{data.file}: no answer of {', '.join(sorted(wanted))} has a score")
    return Task(data, [m for m in data.models if m in wanted], asked)


def coverage(task: Task) -> list[str]:
    """Which answers there are, and which have no published scores, and why."""
    whole = task.data.answers
    questions, videos = (set(found) for found in zip(*map(_place, whole), strict=True))
    lines = [
        f"{task.data.file} (data {task.data.digest}): {len(questions)} questions on {len(videos)} "
        f"videos, answers of {len(task.data.models)} models"
    ]
    if task.data.left_out:
        lines.append(f"left out: {len(task.data.left_out)} segments that do not fit the schema")
    for name in [*task.data.models, PEOPLE]:
        own = [one for one in whole if one.by == name]
        without = Counter(to_judge(one.text)[0] for one in own if not one.is_scored)
        why = [
            f"{n} {'with a text' if status == 'ok' else status}" for status, n in without.items()
        ]
        line = f"{name}: {sum(one.is_scored for one in own)} of {len(own)} answers have scores"
        lines.append(line + (f"; without: {', '.join(why)}" if why else ""))
    shown = ", ".join(task.data.ways)
    if task.data.unsure and any("own" in title for title in task.data.ways):
        shown += f"; own facts of {task.data.unsure} questions: of {BOTH_READINGS}"
    return [*lines, f"the judge is shown: {shown}"]


# --- the judge ----------------------------------------------------------------------------------


def _kept(answer: Released, data: Data) -> Iterator[tuple[dict[str, Any], bool]]:
    """What is kept of an answer's question in each way, and whether it is the first one."""
    for number, shown in enumerate(data.ways.values()):
        kept = _TASK.keep({**answer.doc, "shown": shown._asdict()})
        yield (kept if not number else {**kept, "judged_baselines": []}), not number


_SHARED = ("claims", "coherence")


def judged(who: Judge, answer: Released, data: Data) -> Sequence[Item]:
    """An answer's item in each way; the first one has everything."""
    made: list[dict[str, Any]] = []
    for kept, _ in _kept(answer, data):
        known = verdicts(made[0]) if made else {}
        saved = {name: one for name, one in known.items() if name in _SHARED}
        made.append(scoring.scored(_TASK, kept, answer.text, Asker(who, saved)))
    return made


def planned(answer: Released, data: Data) -> list[tuple[Criterion, Mapping[str, Any], str]]:
    """What the judge is asked about an answer, and replies of the likely length."""
    return [
        (ask.criterion, ask.fields, ask.stand_in or _REASON)
        for kept, first in _kept(answer, data)
        for ask in asks(_TASK, kept, answer.text)
        if first or ask.name not in _SHARED
    ]


def as_dict(answer: Released, items: Sequence[Item], ways: Sequence[str]) -> dict[str, Any]:
    """An answer and what our judge said, for JSON; the answer's own text stays in the release."""
    first = items[0]
    found = verdicts(first)
    return {
        "id": answer.doc["id"],
        "by": answer.by,
        "number": answer.number,
        "published": dict(answer.scores),
        **{name: first[name] for name in ("status", "claims", "rouge_l", "baselines")},
        "dimensions": first["dimensions"],
        "verdicts": {name: one.as_dict() for name, one in found.items()},
        "ways": {
            title: {name: rating_means.value(name, item) for name in published.DIMENSIONS}
            for title, item in zip(ways, items, strict=True)
        },
    }


def outside(asked: Sequence[Released], items: Items) -> str:
    """How many published scores break the bounds of our judge's labels (judge.bounds)."""
    told = []
    for name in published.DIMENSIONS:
        known = [
            rated["low"] <= score <= rated["high"]
            for one, item in zip(asked, items, strict=True)
            if (score := one.scores[name]) is not None
            and (rated := rating_means.rating(name, item)).get("consistent") is not None
        ]
        told.append(f"{name} {known.count(False)} of {len(known)}")
    return f"published scores outside the bounds of our judge's labels: {', '.join(told)}"
