"""The released answers with their published scores, and the same answers before our judge.

`lmms-eval-tasks agreement` compares them (runs/agreement). The release has the answers of seven
models and of people, with factuality and relevance 0 to 5; an answer without scores (all empty
ones, and a few more) is counted and not judged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import Criterion, Judge
from lmms_eval_tasks.judges.asking import Asker, settle
from lmms_eval_tasks.movierecapsqa import judge, schema
from lmms_eval_tasks.movierecapsqa.data import ALIGNED
from lmms_eval_tasks.movierecapsqa.data import options as data_options
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS as JUDGED_DIMENSIONS
from lmms_eval_tasks.movierecapsqa.judge import Context
from lmms_eval_tasks.movierecapsqa.schema import Answer, Question, Segment
from lmms_eval_tasks.utils import aggregate, answers, rating_means
from lmms_eval_tasks.utils.video_checks import bad_items, stop

Item = Mapping[str, Any]

DIMENSIONS = ("factuality", "relevance")  # with published scores
SCALE = range(judge.LOWEST, judge.HIGHEST + 1)
PEOPLE = "people"  # in place of a model's name
VERDICTS = 1 + len(JUDGED_DIMENSIONS)  # of an answer: its claims, then each dimension

_SUFFIX = ".response"  # of models' names in the release
WORDS_PER_CLAIM = 10  # assumed by estimates; nobody has measured it
FULL_SET = 7 * schema.PAPER_COUNTS["questions"]  # answers of seven models (paper, Table 4)
FULL_SET_IS = f"the paper's {schema.PAPER_COUNTS['questions']:,} questions x 7 models"
ASSUMED = f"a claim for every {WORDS_PER_CLAIM} words of an answer"


@dataclass(frozen=True)
class Released:
    """One answer of a release."""

    question_id: str  # SEGMENT/QID
    by: str  # a model as Table 4 names it, or PEOPLE
    number: int  # of several answers of people to one question, from 0
    video: str
    context: Context
    question: str
    text: str
    scores: Mapping[str, int | None]  # published, by DIMENSIONS

    @property
    def is_scored(self) -> bool:
        """Whether it has a published score in any dimension."""
        return any(score is not None for score in self.scores.values())


@dataclass(frozen=True)
class Data:
    """A release's answers, in its order, and where they are from."""

    file: Path
    digest: str
    answers: tuple[Released, ...]
    left_out: Mapping[str, str]  # segments that do not fit the schema, and why

    @property
    def models(self) -> list[str]:
        """The models in the release's order."""
        return [name for name in dict.fromkeys(one.by for one in self.answers) if name != PEOPLE]


def read(source: Path) -> Data:
    """The released answers of a data file, or of the one in a folder.

    Raises:
        DataError: the data cannot be read; segments are bad and `--allow-bad-items` was not given;
            a model has two answers to a question; no answer has a score.
    """
    release = schema.read(source)
    stop(release.file, bad_items(release.problems, "segments cannot be used"))
    names = leaderboards.leaderboard("movierecapsqa").models
    found = tuple(
        one
        for segment, question in release.questions()
        for one in _released(segment, question, names)
    )
    repeated = Counter((one.question_id, one.by, one.number) for one in found)
    if twice := [place for place, often in repeated.items() if often > 1]:
        raise DataError(f"{release.file}: {twice[0][0]} has two answers of {twice[0][1]}")
    if not any(one.is_scored for one in found):
        raise DataError(
            f"{release.file}: no answer has published scores to agree with (modelAnswers and "
            "humanAnswer with scores, as on the project's site)"
        )
    return Data(release.file, release.digest, found, release.problems)


def _released(
    segment: Segment, question: Question, names: Mapping[str, str | None]
) -> Iterator[Released]:
    chosen = data_options()
    if chosen.facts == ALIGNED and question.aligned is None:
        raise DataError(f"{segment.question_id(question)} has no facts of its own (alignedFacts)")
    shown = chosen.shown(segment.facts, question.aligned or (), segment.dialogue)
    given: list[tuple[str, int, Answer]] = [
        (names.get(answer.model) or answer.model.removesuffix(_SUFFIX), 0, answer)
        for answer in question.model_answers
    ]
    given += [(PEOPLE, number, answer) for number, answer in enumerate(question.human_answers)]
    for by, number, answer in given:
        yield Released(
            question_id=segment.question_id(question),
            by=by,
            number=number,
            video=segment.video,
            context=Context(segment.id, *shown),
            question=question.question,
            text=answer.answer,
            scores={dimension: getattr(answer.scores, dimension) for dimension in DIMENSIONS},
        )


def groups() -> dict[str, tuple[str, ...]]:
    """The paper's groups of models (5.1) with the names that their models have here."""
    table = leaderboards.leaderboard("movierecapsqa").tables[4]
    found: dict[str, tuple[str, ...]] = {}
    for row in table.rows:
        if row.identity:
            title = table.groups[row.group]
            found[title] = (*found.get(title, ()), row.identity)
    return found


# --- our judge ----------------------------------------------------------------------------------


def judged(who: Judge, answer: Released) -> dict[str, Any]:
    """What our judge says of an answer (judge.judged), with its verdicts; trouble is a status."""
    return settle(judge.judged(answer.context, answer.question, answer.text), Asker(who))


def ours(done: Item, dimension: str) -> float | None:
    """Our score, as `_valid` counts: 0 where the answer claims nothing.

    None where the judge failed.
    """
    return rating_means.value(dimension, done)


def as_dict(answer: Released, done: Item) -> dict[str, Any]:
    """An answer and what our judge said, for JSON; the answer's own text stays in the release."""
    verdicts = done.get("verdicts", {})
    return {
        "id": answer.question_id,
        "by": answer.by,
        "number": answer.number,
        "status": done["status"],
        "published": dict(answer.scores),
        "claims": done["claims"],
        "claims_verdict": verdicts.get("claims"),
        "dimensions": {
            name: {**rated, "verdict": verdicts.get(name)}
            for name, rated in done["dimensions"].items()
        },
    }


def checks(judged_answers: Sequence[tuple[Released, Item]]) -> list[str]:
    """What to know beside the coefficients: a line each.

    Claims; and how scores, ours and the published ones, keep to the bounds that our judge's labels
    set (judge.bounds).
    """
    claims = [done["n_claims"] for _, done in judged_answers if done["n_claims"]]
    without = sum(done["status"] == aggregate.NO_CLAIMS for _, done in judged_answers)
    lines = [
        f"claims: {sum(claims) / len(claims):.1f} in each of {len(claims)} answers"
        if claims
        else "claims: none were found",
        f"answers without a claim: {without} (0 in each dimension)",
    ]
    for dimension in JUDGED_DIMENSIONS:
        rated = [
            (one, found)
            for one, done in judged_answers
            if (found := done["dimensions"][dimension])["consistent"] is not None
        ]
        outside = sum(found["consistent"] is False for _, found in rated)
        line = f"{dimension}: {outside} of {len(rated)} scores outside the bounds of their labels"
        published = [
            found["low"] <= score <= found["high"]
            for one, found in rated
            if (score := one.scores.get(dimension)) is not None
        ]
        if published:
            line += f"; {published.count(False)} of {len(published)} published scores too"
        lines.append(line)
    return lines


def requests(answer: Released) -> list[tuple[Criterion, Mapping[str, Any], str]]:
    """What our judge would be asked about an answer, and a reply of the likely length.

    The claims are not known before: every WORDS_PER_CLAIM words of the answer stand in for one.
    """
    text = answers.strip_reasoning(answer.text)[0].strip()
    if answers.reply_status(answer.text) != "ok":
        return []
    words = text.split()
    claims = [
        " ".join(words[start : start + WORDS_PER_CLAIM])
        for start in range(0, len(words), WORDS_PER_CLAIM)
    ]
    said: Mapping[str, Any] = {"question": answer.question, "candidate": text}
    found = [(judge.claims_criterion(), said, json.dumps({"claims": claims}))]
    for dimension in JUDGED_DIMENSIONS:
        label = max(judge.WORDS[dimension], key=len)
        given = [{"id": number, "label": label} for number, _ in enumerate(claims, 1)]
        reply = {"labels": given, "reason": "word " * 20, "score": judge.HIGHEST}
        fields = judge.asked(answer.context, dimension, answer.question, claims)
        criterion = judge.dimension_criterion(dimension, len(claims))
        found.append((criterion, fields, json.dumps(reply)))
    return found
