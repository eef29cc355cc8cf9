"""What the judge study says of ratings (5.1, 6), against Table 4 and Figure 6."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import mean
from lmms_eval_tasks.leaderboards.cvrr_es_example_checks import example_debate
from lmms_eval_tasks.leaderboards.cvrr_es_paper import (
    DEBATE,
    GPT4O,
    LLAMA_VID,
    MINI,
    TEXT_JUDGE,
    VIDEO_LLAVA,
    Cell,
    Paper,
    Statement,
    ranked,
    span,
)

CLOSE = Decimal("0.1")  # ratings: our "close to"
NEARLY = Decimal("0.9")  # of them: our "nearly all" and "typically"


def _shown(p: Paper, cells: list[Cell], judges: bool = False) -> str:
    """Cells by candidate: `candidate (dimension figure, ...)`."""
    by: dict[str, list[str]] = {}
    for cell in cells:
        who = f"{cell.judge} " if judges else ""
        by.setdefault(cell.candidate, []).append(f"{p.title(cell.dimension)} {who}{cell.figure}")
    return "; ".join(f"{name} ({', '.join(texts)})" for name, texts in by.items()) or "none"


def _close(p: Paper) -> tuple[bool, str]:
    target, cells = p.stated("close_to"), p.cells([p.names("generous_judges")[0]])
    off = [cell for cell in cells if abs(cell.figure - target) > CLOSE]
    allowed = (1 - NEARLY) * len(p.dimensions)
    holds = all(sum(c.candidate == name for c in off) <= allowed for name in p.candidates)
    return holds, f"Table 4: {len(cells) - len(off)} of {len(cells)} are; not {_shown(p, off)}"


def _typically(p: Paper) -> tuple[bool, str]:
    limit, cells = p.stated("typically_above"), p.cells([p.names("generous_judges")[1]])
    low = [cell for cell in cells if cell.figure <= limit]
    return len(cells) - len(low) >= NEARLY * len(cells), (
        f"Table 4: {len(cells) - len(low)} of {len(cells)} are; not {_shown(p, low)}"
    )


def _means(p: Paper, judge: str) -> dict[str, Decimal]:
    """A judge's mean ratings over dimensions, by candidate."""
    return {name: mean(p.ratings(name, judge).values()) for name in p.candidates}


def _lower(p: Paper) -> tuple[bool, str]:
    text = {judge: _means(p, judge) for judge in (TEXT_JUDGE, DEBATE)}
    generous = {judge: _means(p, judge) for judge in p.names("generous_judges")}
    gaps = {
        (one, other, name): generous[other][name] - text[one][name]
        for one in text
        for other in generous
        for name in p.candidates
    }
    one, other, name = least = min(gaps, key=lambda key: gaps[key])
    return gaps[least] > 0, (
        f"Table 4: least for {name}, {one} {text[one][name]:.2f} and {other} "
        f"{generous[other][name]:.2f}"
    )


def _over_debate(p: Paper, cell: Cell) -> Decimal:
    """A judge's mean less the debate's of the same candidate and dimension."""
    return cell.figure - p.ratings(cell.candidate, DEBATE)[cell.dimension]


def _lowest(p: Paper) -> tuple[bool, str]:
    cells = p.cells([judge for judge in p.raters() if judge != DEBATE])
    low = [cell for cell in cells if _over_debate(p, cell) < 0]
    even = [cell for cell in cells if _over_debate(p, cell) == 0]
    beaten, equalled = (
        len({(cell.candidate, cell.dimension) for cell in some}) for some in (low, even)
    )
    return not low and not even, (
        f"Table 4: of the debate's {len(p.candidates) * len(p.dimensions)} means {beaten} are "
        f"above another judge's, {_shown(p, low, judges=True)}, and {equalled} equal one, "
        f"{_shown(p, even, judges=True)}"
    )


def _range(p: Paper, judge: str, key: str) -> tuple[bool, str]:
    figures = p.ratings(LLAMA_VID, judge)
    low, high = span(figures.values())
    least, most = (next(n for n, v in figures.items() if v == end) for end in (low, high))
    holds = (low, high) == (p.stated(f"{key}_low"), p.stated(f"{key}_high"))
    return holds, f"Table 4: {low} ({p.title(least)}) to {high} ({p.title(most)})"


def _harder(p: Paper) -> tuple[bool, str]:
    names = [p.dimension(title) for title in p.names("harder_dimensions")]
    rows = [p.ratings(candidate, judge) for candidate in p.candidates for judge in p.raters()]
    below = [row for row in rows if all(row[name] < mean(row.values()) for name in names)]
    return 2 * len(below) > len(rows), f"Table 4: {len(below)} of {len(rows)} rows"


def _every_judge(p: Paper) -> tuple[bool, str]:
    above = []
    for judge in p.raters():
        rows = [p.ratings(candidate, judge) for candidate in p.candidates]
        whole = mean(figure for row in rows for figure in row.values())
        for title in p.names("harder_dimensions"):
            figure = mean(row[p.dimension(title)] for row in rows)
            if figure >= whole:
                above.append(f"{judge} {title} {figure:.3f}, all {whole:.3f}")
    return not above, f"Table 4, means over candidates: not below are {'; '.join(above) or 'none'}"


def _distances(p: Paper) -> dict[str, Decimal]:
    """Every VLM judge's mean distance from the debate, over candidates and dimensions."""
    return {
        judge: mean(abs(_over_debate(p, cell)) for cell in p.cells([judge])) for judge in p.judges()
    }


def _similar(p: Paper) -> tuple[bool, str]:
    nearest, reference = p.names("similar_judges")
    distances = _distances(p)
    holds = reference == DEBATE and min(distances, key=lambda name: distances[name]) == nearest
    return holds, f"Table 4: {ranked(distances)}"


def _strict(p: Paper) -> tuple[bool, str]:
    own = p.cells([GPT4O])
    lowest = [
        cell
        for cell in own
        if all(
            cell.figure < p.ratings(cell.candidate, judge)[cell.dimension]
            for judge in p.judges()
            if judge != GPT4O
        )
    ]
    mini = sum(cell.candidate == MINI for cell in lowest)
    return 2 * len(lowest) > len(own), (
        f"Table 4: {len(lowest)} of {len(own)} are the lowest, {mini} of {len(p.dimensions)} for "
        f"{MINI}"
    )


def _always(p: Paper) -> tuple[bool, str]:
    other = [cell for cell in p.cells(p.judges()) if _over_debate(p, cell) <= 0]
    every = len(p.cells(p.judges()))
    above = set(p.names("overestimating_judges")) <= set(p.judges())
    return above and not other, (
        f"Table 4: {every - len(other)} of {every} are; not {_shown(p, other, judges=True)}"
    )


def _example(p: Paper) -> tuple[bool, str]:
    above, below = example_debate(p)
    return not below, f"Figure 6: {above} ratings are above, {below} below it"


def _stronger(p: Paper) -> tuple[bool, str]:
    (strong,) = p.names("strong_candidate")
    means = _means(p, DEBATE)
    lost = [
        p.title(name)
        for name in p.dimensions
        if any(
            p.ratings(other, DEBATE)[name] >= p.ratings(strong, DEBATE)[name]
            for other in p.candidates
            if other != strong
        )
    ]
    return not lost, f"Table 4, means of the debate's ratings: {ranked(means)}"


STATEMENTS = (
    Statement(
        "close",
        "5.1",
        f"{VIDEO_LLAVA}'s ratings are near 4.00 in nearly all dimensions (read as: within 0.1 in "
        "nine of ten, for every candidate)",
        _close,
        "We follow Table 4: it is so for all candidates but GPT-4o mini.",
    ),
    Statement(
        "typically",
        "5.1",
        f"{LLAMA_VID}'s ratings are mostly above 3.70 (read as: nine of ten of the means)",
        _typically,
    ),
    Statement(
        "lower",
        "5.1",
        "GPT-3.5 and the debate rate lower than these two (read as: each candidate, over "
        "dimensions)",
        _lower,
    ),
    Statement(
        "lowest",
        "5.1",
        "the debate's ratings are the lowest throughout (read as: in every dimension, for every "
        "candidate)",
        _lowest,
        "We follow Table 4: it is so on average. Our report gives the mean rating less the "
        "reference's by judge, candidate and dimension.",
    ),
    Statement(
        "debate_range",
        "5.1",
        "the debate's ratings of LLaMA-VID are 1.46 to 1.94",
        lambda p: _range(p, DEBATE, "debate"),
        "We follow Table 4, and 5.1 itself, which gives the range rightly further down.",
    ),
    Statement(
        "debate_range_again",
        "5.1",
        "the debate's ratings of LLaMA-VID are 1.11 to 1.94",
        lambda p: _range(p, DEBATE, "debate_again"),
    ),
    Statement(
        "gpt4o_range",
        "5.1",
        "GPT-4o's ratings of LLaMA-VID are 1.77 to 2.48",
        lambda p: _range(p, GPT4O, "gpt4o"),
        "We follow Table 4.",
    ),
    Statement(
        "harder",
        "5.1",
        "the two dimensions of non-existent actions are often rated lower (read as: both below the "
        "row's mean in more than half of the rows)",
        _harder,
    ),
    Statement(
        "every_judge",
        "5.1",
        "some dimensions, these two, are rated lower by every judge (read as: below its mean)",
        _every_judge,
        "We follow Table 4.",
    ),
    Statement(
        "similar",
        "5.1",
        "of the VLM judges GPT-4o rates most like the debate (read as: the smallest mean distance)",
        _similar,
    ),
    Statement(
        "strict",
        "5.1",
        "GPT-4o rates lower in most dimensions (read as: lowest of the VLM judges in more than "
        "half of the means)",
        _strict,
    ),
    Statement(
        "always",
        "6",
        "VLM judges always overestimate (read as: every mean is above the debate's)",
        _always,
        "We follow Table 4: nearly always. Ours is called leniency, and is reported with its sign.",
    ),
    Statement(
        "example",
        "5.1",
        "the samples of Appendix A show overestimation (read as: in Figure 6 no judge rates below "
        "the debate)",
        _example,
    ),
    Statement(
        "stronger",
        "6",
        "GPT-4o mini is a stronger model than the weak judges (read as: the debate rates it "
        "highest of all candidates in every dimension)",
        _stronger,
    ),
)
