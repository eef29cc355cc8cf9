"""Where the judge study's formula, prompts and example (3.2, Figures 6 to 13) do not fit."""

from __future__ import annotations

from collections import Counter

from lmms_eval_tasks.leaderboards.cvrr_es_kappa import by_formula, perfect, reversed_scale
from lmms_eval_tasks.leaderboards.cvrr_es_paper import REPLIES, Paper, printed
from lmms_eval_tasks.leaderboards.findings import Finding

FIRST_FIGURE = 7  # of those that show a prompt
# A panel's figure, and the single judge's whose replies it repeats.
REPEATED = (
    ("figure_7", "figure_10", "same_replies_7_10"),
    ("figure_8", "figure_9", "same_replies_8_9"),
)


def formula(paper: Paper) -> list[Finding]:
    """3.2: what its formula gives for two judges who always agree, if that is not 1."""
    ratings = int(paper.stated("ratings"))
    weights = (paper.stated("weight_of_equal"), paper.stated("weight_of_farthest"))
    same, turned = (
        float(by_formula(pairs, ratings, *weights))
        for pairs in (perfect(ratings), reversed_scale(ratings))
    )
    if same == 1:
        return []
    text = (
        f"two judges who give each rating once, and always the same, get {same:.2f}, and with the "
        f"scale turned round {turned:+.2f}, where kappa is 1 and -1"
    )
    values: dict[str, float] = {"same": round(same, 4), "turned": round(turned, 4)}
    return [Finding("formula", (), "", "weights", "", values, text)]


def keys(paper: Paper) -> list[Finding]:
    """Figures 7 to 13: prompts that ask for the rating under one key, and a reply with another."""
    pairs = list(zip(paper.names("asked_keys"), paper.names("reply_keys"), strict=True))
    found = []
    for (asked, replied), count in Counter(p for p in pairs if p[0] != p[1]).items():
        which = _figures([i for i, pair in enumerate(pairs) if pair == (asked, replied)])
        text = f"asked for as {asked!r}, and as {replied!r} in the form of the reply"
        found.append(Finding("keys", (), "", which, "", {"figures": count}, text))
    return found


def notations(paper: Paper) -> list[Finding]:
    """Figures 7 to 13: prompts that differ in how a rating is to be written."""
    forms = paper.names("notations")
    if len(set(forms)) == 1:
        return []
    return [
        Finding("notations", (), "", which, "", {"figures": count}, form)
        for form, count in Counter(forms).items()
        for which in [_figures([i for i, each in enumerate(forms) if each == form])]
    ]


def example_ratings(paper: Paper) -> list[Finding]:
    """Figure 6: ratings that are not those of the judge's own replies (Figures 9 to 13)."""
    six, replies = paper.beside("figure6"), paper.beside("figure7")
    titles = {column.name: column.title for column in (*six.columns, *replies.columns)}
    found = []
    for row, other in zip(six.rows, replies.rows, strict=True):
        for judge, figure in REPLIES.items():
            here, there = row.printed(judge), other.printed(figure)
            if here == there:
                continue
            number = titles[figure].split(":")[0]
            text = f"{titles[judge]} {here}, and {there} in its reply (Figure {number})"
            values = {"figure_6": float(here), "reply": float(there)}
            found.append(Finding("example_ratings", (), "", row.name, "", values, text))
    return found


def repeated_replies(paper: Paper) -> list[Finding]:
    """Figures 7 and 8: panels that give a single judge's ratings, in the same words."""
    replies = paper.beside("figure7")
    titles = {column.name: column.title for column in replies.columns}
    found = []
    for panel, single, key in REPEATED:
        same = sum(row.printed(panel) == row.printed(single) for row in replies.rows)
        words = int(paper.stated(key))
        if same < len(replies.rows) or not words:
            continue
        number, name = titles[single].split(": ")
        text = (
            f"all {same} ratings, and {words} of {len(replies.rows)} reasons word for word, are "
            f"{name}'s in Figure {number}"
        )
        values: dict[str, float] = {"ratings": same, "reasons": words}
        place = f"Figure {panel.split('_')[1]} ({titles[panel].split(': ')[1]})"
        found.append(Finding("repeated_replies", (), "", place, "", values, text))
    return found


def shown_judges(paper: Paper) -> list[Finding]:
    """Figure 7: another number of judges in the collective's prompt than 5.3 lists."""
    shown, listed = int(paper.stated("judges_shown_7")), paper.names("initial_judges")
    if shown == len(listed):
        return []
    mixture = int(paper.stated("judges_shown_8"))
    text = f"{shown} are shown, 5.3 lists {len(listed)}; the mixture's (Figure 8) shows {mixture}"
    values: dict[str, float] = {"shown": shown, "listed": len(listed), "mixture": mixture}
    return [Finding("shown_judges", (), "", "Figure 7", "", values, text)]


def example_debate(paper: Paper) -> tuple[int, int]:
    """Figure 6: (cells above the debate's, cells below it), of all other judges."""
    above = below = 0
    for row in paper.beside("figure6").rows:
        figures = printed(row)
        debate = figures.pop("by_llm_agent_debate")
        above += sum(figure > debate for figure in figures.values())
        below += sum(figure < debate for figure in figures.values())
    return above, below


def _figures(places: list[int]) -> str:
    numbers = [str(FIRST_FIGURE + place) for place in places]
    return f"Figure {numbers[0]}" if len(numbers) == 1 else f"Figures {', '.join(numbers)}"
