"""What the judge study says of data and judges (3.1, 4, 5.2, 5.3, Table 1), compared."""

from __future__ import annotations

from collections.abc import Iterable

from lmms_eval_tasks.leaderboards.cvrr_es_checks import impossible
from lmms_eval_tasks.leaderboards.cvrr_es_paper import (
    GPT4O,
    Paper,
    Statement,
    descending,
    ranked,
    span,
)
from lmms_eval_tasks.leaderboards.cvrr_es_release_checks import questions

FINE_ACTION = "Fine Action"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _dimensions(p: Paper) -> tuple[bool, str]:
    given = len(p.dimensions)
    return given == p.stated("dimensions"), f"Table 4 has {given}"


def _questions(p: Paper) -> tuple[bool, str]:
    counts = questions(p)
    total = sum(counts.values())
    low, high = span(counts.values())
    return total == p.stated("questions"), (
        f"The release has {total}, {low} to {high} in a dimension"
    )


def _candidates(p: Paper) -> tuple[bool, str]:
    four = list(dict.fromkeys(row.group for row in p.table(4).rows))
    return sorted(four) == sorted(p.candidates), f"Table 4: {_listed(four)}"


def _raters(p: Paper) -> tuple[bool, str]:
    listed = [*p.role("Judges (VLM)"), *p.role("Judges (LLM)")]
    four = p.raters()
    whole = all(
        [row.name for row in p.table(4).rows if row.group == candidate] == four
        for candidate in p.candidates
    )
    holds = whole and [p.model(name) for name in four] == [p.model(name) for name in listed]
    return holds, f"Table 4, for every candidate: {_listed(four)}"


def _judges(p: Paper) -> tuple[bool, str]:
    five = p.judges()
    return five == p.role("Judges (VLM)"), f"Table 5: {_listed(five)}"


def _final(p: Paper) -> tuple[bool, str]:
    (final,) = p.role("Final Judge")
    overall = {judge: p.overall(judge) for judge in p.judges()}
    lost = [
        p.title(name)
        for name in p.dimensions
        if any(p.averages(j)[name] >= p.averages(final)[name] for j in p.judges() if j != final)
    ]
    return not lost and final == GPT4O, (
        f"Table 5, means over dimensions (of the rows): {ranked(overall)}; highest average in "
        f"{len(p.dimensions) - len(lost)} of {len(p.dimensions)} dimensions"
    )


def _scale(p: Paper) -> tuple[bool, str]:
    low, high = span(cell.figure for cell in p.cells(p.raters()))
    return not impossible(p), f"Table 4: {low} to {high}"


def _named(p: Paper) -> tuple[bool, str]:
    wrong = [name for name in p.names("disagreeing_judges") if name not in p.judges()]
    return not wrong, f"Table 5 has {_listed(p.judges())}"


def _members(p: Paper) -> tuple[bool, str]:
    said, listed = p.names("initial_judges"), p.role("Judges (VLM)")
    final = p.role("Final Judge")
    more = [name for name in said if name not in listed]
    fewer = [name for name in listed if name not in said and name not in final]
    too = "; it is so in Table 5 too" if p.judges() == listed else ""
    told = f"Table 1 has no judge {_listed(more)}, and {_listed(fewer)} besides{too}"
    return not more and not fewer, told


def _selected_among(p: Paper) -> tuple[bool, str]:
    said, initial = p.names("selected_for_fine_action"), p.names("initial_judges")
    outside = [name for name in said if name not in initial]
    return not outside, f"{_listed(outside)} is not among {_listed(initial)}"


def _selected_best(p: Paper) -> tuple[bool, str]:
    name, said = p.dimension(FINE_ACTION), p.names("selected_for_fine_action")
    final = p.role("Final Judge")
    figures = {judge: p.averages(judge)[name] for judge in p.judges() if judge not in final}
    best = descending(figures)[: len(said)]
    return sorted(best) == sorted(said), f"Table 5, without the final judge: {ranked(figures)}"


STATEMENTS = (
    Statement("dimensions", "3.1", "there are eleven dimensions", _dimensions),
    Statement("questions", "4.2", "there are 2,400 questions", _questions),
    Statement("candidates", "4.1", "Table 1's candidates are those that are rated", _candidates),
    Statement("raters", "4.1", "Table 1's judges are those that rate", _raters),
    Statement("judges", "4.1", "all of Table 1's VLM judges are compared with the debate", _judges),
    Statement(
        "final_judge",
        "3.3",
        "the final judge is GPT-4o, which agrees most with the debate (read as: in every "
        "dimension)",
        _final,
    ),
    Statement("scale", "4.3", "ratings are 1 to 5 (read as: so are their means)", _scale),
    Statement(
        "named_judge",
        "5.2",
        "Video-LLaMA is a judge that disagrees with the debate",
        _named,
        "We read Video-LLaVA.",
    ),
    Statement(
        "members",
        "5.3",
        "the collective's first judges are LLaMA-VID, Video-ChatGPT, Video-LLaVA and GPT-4o mini "
        "(read as: Table 1's VLM judges without the final one)",
        _members,
        "Who the first judges are is named by the user here, in the file of ratings, and said in "
        "the results. We take Table 1's for the paper's: Video-ChatGPT is only a candidate "
        "elsewhere, and InternVL2 has first ratings in Table 4.",
    ),
    Statement(
        "selected_among",
        "5.3",
        "for fine actions InternVL2 and GPT-4o mini are selected (read as: of 5.3's first judges)",
        _selected_among,
        "We take InternVL2 to be one of the first judges, as in Table 1.",
    ),
    Statement(
        "selected_best",
        "5.3",
        "for fine actions InternVL2 and GPT-4o mini are selected as the most reliable (read as: "
        "the two highest of Table 5 after the final judge)",
        _selected_best,
    ),
)
