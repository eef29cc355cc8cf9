"""Whether HAVEN's keyframe scores (Tables 3 and 4) fit each other and the protocol's budget.

Pure functions; each result is data. Rounding is allowed for. The arithmetic is haven_chance.py's.
"""

from __future__ import annotations

from lmms_eval_tasks.leaderboards.checking import half
from lmms_eval_tasks.leaderboards.findings import Finding
from lmms_eval_tasks.leaderboards.haven_chance import by_chance, given, highest_f1
from lmms_eval_tasks.leaderboards.haven_checks import finding
from lmms_eval_tasks.leaderboards.haven_paper import SELECTIONS, Paper


def budgets(paper: Paper) -> list[Finding]:
    """Table 4: P and R that cannot come from as many frames as there are true ones."""
    found, alone = [], SELECTIONS[0][1:]
    for _, precision, recall in SELECTIONS:
        for model in paper.with_proxy(precision):
            frames = given(paper, model, precision, recall)
            if not frames.off_budget:
                continue
            p, r = paper(model, precision), paper(model, recall)
            text = f"P {p} and R {r}, {frames.quotient:.2f} frames given for each true one"
            if precision != alone[0]:
                text += f" ({given(paper, model, *alone).quotient:.2f} in V2V)"
            values = {"p": p, "r": r, "quotient": round(frames.quotient, 3)}
            place = (_group(paper, model), model, f"{precision}..{recall}")
            found.append(finding("budget", (4,), place, values, text))
    return found


def leads(paper: Paper) -> list[Finding]:
    """Joint F1 of rows that are off the budget, less what as many random frames get.

    Found is a row whose lead over chance is not above that of its separate selection, rounding of
    the two F1 allowed for.
    """
    (separate, *alone), (joint, *together) = SELECTIONS
    found = []
    for model in paper.with_proxy(joint):
        if not given(paper, model, together[0], together[1]).off_budget:
            continue
        first, second = paper(model, separate), paper(model, joint)
        random = [by_chance(paper, model, p, r) for p, r in (alone, together)]
        if second - random[1] > first - random[0] + half(first) + half(second):
            continue
        text = (
            f"{first} alone and {second} joint, random frames as many as P and R suggest about "
            f"{random[0]:.3f} and {random[1]:.3f}: {first - random[0]:+.3f} and "
            f"{second - random[1]:+.3f}"
        )
        values = {
            "separate": first,
            "joint": second,
            "separate_chance": round(random[0], 4),
            "joint_chance": round(random[1], 4),
        }
        place = (_group(paper, model), model, joint)
        found.append(finding("lead", (3, 4), place, values, text))
    return found


def above_harmonic(paper: Paper) -> list[tuple[str, str]]:
    """(model, F1's column) where Table 3's F1 is more than Table 4's P and R allow."""
    return [
        (model, f1)
        for f1, precision, recall in SELECTIONS
        for model, figure in paper.with_proxy(f1).items()
        if figure - half(figure) > highest_f1(paper(model, precision), paper(model, recall))
    ]


def below_both(paper: Paper) -> list[Finding]:
    """F1 that is below P and R.

    A video's F1 lies between its P and R. Where all videos have as many frames given as are true,
    or more, R is nowhere below P, and the mean F1 not below the mean P; as many or fewer likewise.
    """
    found = []
    for f1, precision, recall in SELECTIONS:
        for model, figure in paper.with_proxy(f1).items():
            p, r = paper(model, precision), paper(model, recall)
            if figure + half(figure) >= min(p - half(p), r - half(r)):
                continue
            text = f"{paper.title(f1)} {figure}, P {p} and R {r}"
            values = {"f1": figure, "p": p, "r": r}
            found.append(
                finding("below_both", (3, 4), (_group(paper, model), model, f1), values, text)
            )
    return found


def _group(paper: Paper, model: str) -> str:
    return next(row.group for row in paper.table(3).rows if row.name == model)
