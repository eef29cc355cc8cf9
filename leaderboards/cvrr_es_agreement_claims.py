"""What the judge study says of single judges' agreement with the debate (5.2, 6, 7)."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from lmms_eval_tasks.leaderboards.checking import listed, mean
from lmms_eval_tasks.leaderboards.cvrr_es_paper import (
    GPT4O,
    LLAMA_VID,
    VIDEO_LLAVA,
    Paper,
    Statement,
    descending,
    printed,
    ranked,
    span,
)
from lmms_eval_tasks.leaderboards.cvrr_es_release_checks import accuracies

BANDS = ("slight", "fair", "moderate", "substantial", "almost perfect")
SEVERAL = 3  # dimensions: our "several"
HUNDREDTH = Decimal("0.01")


def band(paper: Paper, kappa: Decimal) -> str:
    """5.2's word for a kappa times 100, at most 100.

    What is between 0.20 and 0.21, say, belongs to the upper band, as in the report (kappa_values).
    """
    if kappa <= 0:
        return "none"
    return next(n for n in BANDS if kappa <= 100 * _end(paper, n))


def _end(paper: Paper, name: str) -> Decimal:
    """Where a band ends."""
    return paper.stated(f"{name.replace(' ', '_')}_to")


def _range(p: Paper, judge: str, key: str) -> tuple[bool, str]:
    low, high = span(p.averages(judge).values())
    holds = (low, high) == (p.stated(f"{key}_low"), p.stated(f"{key}_high"))
    own, most = span(f for row in p.rows(judge) for f in printed(row).values())
    below = [p.title(name) for name, figure in p.followed(judge).items() if figure < 0]
    return holds, (
        f"Table 5: averages {low} to {high}, single figures {own} to {most}; the means of the rows "
        f"are below 0 in {', '.join(below) or 'none'}"
    )


def _higher(p: Paper) -> tuple[bool, str]:
    high, low = p.names("substantial_judges"), p.names("generous_judges")
    followed = {judge: p.followed(judge) for judge in (*high, *low)}
    lost = [
        f"{p.title(name)} {one} {followed[one][name]:.2f} and {other} {followed[other][name]:.2f}"
        for name in p.dimensions
        for one in high
        for other in low
        if followed[one][name] <= followed[other][name]
    ]
    overall = {judge: p.overall(judge) for judge in (*high, *low)}
    return not lost, (
        f"Table 5, means of the rows: not in {'; '.join(lost) or 'none'}. Over dimensions: "
        f"{ranked(overall)}"
    )


def _substantial(p: Paper) -> tuple[bool, str]:
    shown, holds = [], True
    for judge in p.names("substantial_judges"):
        figures = p.followed(judge)
        best = max(figures, key=lambda name: figures[name])
        overall = p.overall(judge)
        holds = holds and band(p, overall) in ("substantial", "almost perfect")
        shown.append(
            f"{judge} {overall:.2f} ({band(p, overall)}), at most {figures[best]:.2f} in "
            f"{p.title(best)} ({band(p, figures[best])})"
        )
    return holds, f"Table 5, means of the rows over dimensions: {'; '.join(shown)}"


def _fifty(p: Paper) -> tuple[bool, str]:
    limit, figures = p.stated("gpt4o_exceeds"), p.averages(GPT4O)
    above = [(p.title(name), figure) for name, figure in figures.items() if figure > limit]
    holds = len(above) >= SEVERAL
    for key, title in (("gpt4o_social", "Social Context"), ("gpt4o_visual", "Visual Context")):
        holds = holds and (title, p.stated(key)) in above
    return holds, f"Table 5: {listed(above) or 'none'}"


def _only(p: Paper) -> tuple[bool, str]:
    best = {judge: max(p.followed(judge).values()) for judge in p.judges()}
    reached = [judge for judge in best if best[judge] > 100 * _end(p, "fair")]
    return reached == [GPT4O], f"Table 5, the highest mean of the rows: {ranked(best)}"


def _bands(p: Paper) -> tuple[bool, str]:
    fits = _end(p, BANDS[-1]) == 1 and all(
        p.stated(f"{later.replace(' ', '_')}_from") == _end(p, earlier) + HUNDREDTH
        for earlier, later in pairwise(BANDS)
    )
    count = {
        name: sum(band(p, f) == name for f in p.averages(GPT4O).values())
        for name in ("none", *BANDS)
    }
    shown = ", ".join(f"{name} {number}" for name, number in count.items() if number)
    return fits, f"GPT-4o's averages in Table 5: {shown}"


def _trend(p: Paper) -> tuple[bool, str]:
    known = accuracies(p)
    judges = [judge for judge in p.judges() if p.model(judge) in known]
    exact = {judge: known[str(p.model(judge))] for judge in judges}
    accuracy = {judge: mean(exact[judge].values()) for judge in judges}
    kappa = {judge: p.overall(judge) for judge in judges}
    followed = {judge: p.followed(judge) for judge in judges}
    same = sum(
        descending({judge: exact[judge][name] for judge in judges})
        == descending({judge: followed[judge][name] for judge in judges})
        for name in p.dimensions
    )
    return descending(accuracy) == descending(kappa), (
        f"The release and Table 5, {len(judges)} judges, over dimensions: accuracy "
        f"{ranked(accuracy)}; kappa {ranked(kappa)}; the same order in {same} of "
        f"{len(p.dimensions)} dimensions"
    )


def _of_weak(p: Paper) -> tuple[str, dict[str, dict[str, Decimal]]]:
    """The weak judge of section 6, and its agreement by candidate."""
    (spelled,) = p.names("weak_judge")
    judge = str(p.model(spelled))
    return judge, {row.name: printed(row) for row in p.rows(judge)}


def _unreliable(p: Paper) -> tuple[bool, str]:
    judge, rows = _of_weak(p)
    (strong,) = p.names("strong_candidate")
    low, high = span(rows[strong].values())
    return high <= 100 * _end(p, "slight"), (
        f"Table 5, {judge} about {strong}: {low} ({band(p, low)}) to {high} ({band(p, high)})"
    )


def _weak_to_strong(p: Paper) -> tuple[bool, str]:
    judge, rows = _of_weak(p)
    (strong,) = p.names("strong_candidate")
    means = {name: mean(row.values()) for name, row in rows.items()}
    holds = all(means[strong] < figure for name, figure in means.items() if name != strong)
    return holds, f"Table 5, {judge}'s means over dimensions: {ranked(means)}"


STATEMENTS = (
    Statement(
        "bands",
        "5.2",
        "the bands of kappa follow on each other (read as: to two decimals) up to 1",
        _bands,
    ),
    Statement(
        "video_llava_range",
        "5.2",
        "Video-LLaVA's agreement is -1.83 to 2.81 (read as: the averages)",
        lambda p: _range(p, VIDEO_LLAVA, "video_llava"),
    ),
    Statement(
        "llama_vid_range",
        "5.2",
        "LLaMA-VID's agreement is -4.15 to 3.70 (read as: the averages)",
        lambda p: _range(p, LLAMA_VID, "llama_vid"),
    ),
    Statement(
        "higher",
        "5.2",
        "InternVL2, GPT-4o mini and GPT-4o agree more than Video-LLaVA and LLaMA-VID (read as: in "
        "every dimension)",
        _higher,
        "We follow the rows of Table 5: GPT-4o and InternVL2 do, GPT-4o mini does not in "
        "every dimension.",
    ),
    Statement(
        "substantial",
        "5.2",
        "these three agree substantially (read as: by 5.2's own bands, over dimensions)",
        _substantial,
        "We follow the bands, and print the band beside every kappa.",
    ),
    Statement(
        "fifty",
        "5.2",
        "GPT-4o's averages are above 50 in several dimensions (read as: three), 60.38 and 55.18 in "
        "the social and the visual context",
        _fifty,
    ),
    Statement(
        "only",
        "6",
        "GPT-4o alone agrees significantly (read as: moderately in some dimension)",
        _only,
    ),
    Statement(
        "trend",
        "6",
        "judges that are better at the benchmark agree more (read as: of those in the release, in "
        "the order of means over dimensions)",
        _trend,
    ),
    Statement(
        "unreliable",
        "6",
        "a weak judge, Video-LLaVA, is unreliable about a stronger model, GPT-4o mini (read as: no "
        "more than slight agreement in every dimension)",
        _unreliable,
    ),
    Statement(
        "weak_to_strong",
        "6",
        "it is so because the model is stronger (read as: the judge agrees less about it than "
        "about every other candidate)",
        _weak_to_strong,
        "We follow Table 5: it agrees most about the strongest. Our report gives kappa by "
        "candidate.",
    ),
)
