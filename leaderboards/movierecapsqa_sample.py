"""The published scores in MovieRecapsQA's released sample, summed up, and beside Table 4.

The sample has an answer of each of the seven models, and of a person, for every question, but not
every answer has scores: the models are comparable on the questions that all seven have scores for.

`describe(schema.read(FILE), board.models)` makes the entry `sample` of movierecapsqa.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import combinations

from lmms_eval_tasks.leaderboards import Leaderboard
from lmms_eval_tasks.leaderboards.sample import Moments, Sample, SampleRow
from lmms_eval_tasks.movierecapsqa.entry import Answer
from lmms_eval_tasks.movierecapsqa.schema import Release

DIMENSIONS = ("factuality", "relevance")  # the published ones
PEOPLE = "people"
SOURCE = "part of the sample on the project's site"


def describe(release: Release, identities: Mapping[str, str | None]) -> Sample:
    """Means and population variances of a release's published scores, models in its order.

    Args:
        release: the sample; `models` of its answers are spelled as in `identities`.
        identities: spelling -> one name per model (Leaderboard.models).

    Raises:
        KeyError: a model that `identities` does not have.
        ValueError: a model without one answer per question, or one without any score.
    """
    questions = [question for _, question in release.questions()]
    spelled = list(dict.fromkeys(a.model for q in questions for a in q.model_answers))
    answers: dict[str, list[Answer]] = {}
    for name in spelled:
        answers[name] = [a for q in questions for a in q.model_answers if a.model == name]
        if len(answers[name]) != len(questions):
            raise ValueError(f"{name}: {len(answers[name])} answers to {len(questions)} questions")
    complete = [
        index
        for index in range(len(questions))
        if all(_scored(answers[name][index]) for name in spelled)
    ]
    answers[PEOPLE] = [q.human_answers[0] if q.human_answers else Answer() for q in questions]
    rows = [
        SampleRow(
            name=name,
            identity=identities[name] if name != PEOPLE else None,
            answers=len(given),
            empty=sum(not answer.answer.strip() for answer in given),
            scored=_moments(given),
            complete=_moments([given[index] for index in complete]),
        )
        for name, given in answers.items()
    ]
    return Sample(
        source=SOURCE,
        digest=release.digest,
        questions=len(questions),
        complete=len(complete),
        rows=rows,
    )


def inversions(board: Leaderboard, dimension: str) -> list[tuple[str, str]]:
    """Pairs of models whose order on the complete questions is not Table 4's.

    The first of a pair is the better one in Table 4; a tie in the sample is not the other order.
    """
    sample, four = _sample(board), next(t for t in board.tables if t.number == 4)
    printed = {row.identity: row.printed(dimension) for row in four.rows if row.identity}
    here = {row.identity: row.complete[dimension].mean for row in sample.models()}
    best_first = sorted(printed, key=lambda model: -printed[model])
    return [(a, b) for a, b in combinations(best_first, 2) if here[a] < here[b]]


def markdown(board: Leaderboard) -> str:
    """The sample's figures as markdown: a caption, a table, and its order beside Table 4's."""
    sample = _sample(board)
    titles = ["Model", "scored"]
    for over in ("all scored", f"on the {sample.complete}"):
        for dimension in DIMENSIONS:
            titles += [f"{dimension.capitalize()}, {over}", "±"]
    lines = [
        f"**Published scores of the sample.** {sample.source.capitalize()} (data {sample.digest}): "
        f"means ± variances over all answers that have scores, and over the {sample.complete} of "
        f"{sample.questions} questions that all seven models have scores for.",
        "",
        _line(titles),
        _line(["---"] + ["---:"] * (len(titles) - 1)),
    ]
    for row in sample.rows:
        cells = [row.identity or row.name, f"{row.scored[DIMENSIONS[0]].n} of {row.answers}"]
        for moments in (row.scored, row.complete):
            for dimension in DIMENSIONS:
                cells += [f"{moments[dimension].mean:.2f}", f"{moments[dimension].variance:.2f}"]
        lines.append(_line(cells))
    empty = sum(row.empty for row in sample.rows)
    without = sum(row.answers - row.scored[DIMENSIONS[0]].n for row in sample.rows)
    lines += ["", f"{empty} answers are empty, {without} have no scores.", ""]
    lines += [f"- {_order(board, dimension)}" for dimension in DIMENSIONS]
    return "\n".join(lines)


def _order(board: Leaderboard, dimension: str) -> str:
    ordered = sorted(_sample(board).models(), key=lambda row: -row.complete[dimension].mean)
    named = ", ".join(f"{row.identity} {row.complete[dimension].mean:.2f}" for row in ordered)
    pairs = len(list(combinations(ordered, 2)))
    turned = inversions(board, dimension)
    listed = "; ".join(f"{one} is above {other} there" for one, other in turned)
    return (
        f"{dimension.capitalize()} on the {_sample(board).complete}: {named}. "
        f"{len(turned)} of {pairs} pairs are the other way round than in Table 4"
        f"{f': {listed}' if turned else ''}."
    )


def _sample(board: Leaderboard) -> Sample:
    if board.sample is None:
        raise ValueError(f"{board.benchmark} has no sample")
    return board.sample


def _scored(answer: Answer) -> bool:
    return all(getattr(answer.scores, dimension) is not None for dimension in DIMENSIONS)


def _moments(answers: Sequence[Answer]) -> dict[str, Moments]:
    scored = [answer.scores for answer in answers if _scored(answer)]
    return {name: _of(getattr(scores, name) for scores in scored) for name in DIMENSIONS}


def _of(scores: Iterable[int]) -> Moments:
    given = list(scores)
    if not given:
        raise ValueError("no scores to sum up")
    total, squares = sum(given), sum(score * score for score in given)
    mean = Decimal(total) / len(given)
    variance = Decimal(len(given) * squares - total * total) / (len(given) ** 2)
    places = Decimal("0.0001")
    return Moments(n=len(given), mean=mean.quantize(places), variance=variance.quantize(places))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
