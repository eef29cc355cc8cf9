"""Where HAVEN's printed tables contradict themselves, each other, or the protocol.

Pure functions; each result is data. Rounding is allowed for as in checking.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import half, mean
from lmms_eval_tasks.leaderboards.findings import Finding
from lmms_eval_tasks.leaderboards.haven_paper import WHOLE, Paper

VARIANTS = ("Flash", "Mini", "Nano", "Pro")  # other weights under a name of their own


def over_videos(paper: Paper, column: str, sample: bool = False) -> Decimal:
    """The mean of Table 1's rows over their videos.

    Args:
        paper: HAVEN's figures.
        column: `frames` or `shots`.
        sample: over the evaluated videos, of which the large sources have a subset (4.1).
    """
    weights = {name: row.printed("videos") for name, row in paper.sources().items()}
    if sample:
        weights |= dict.fromkeys(paper.names("large_sources"), paper.stated("subset"))
    rows = paper.sources()
    total = sum((rows[name].printed(column) * n for name, n in weights.items()), Decimal(0))
    return total / sum(weights.values())


def averages(paper: Paper) -> list[Finding]:
    """Table 1: averages of the whole that are not those of its sources over their videos."""
    whole, found = paper.table(1).row("", WHOLE), []
    for column in ("frames", "shots"):
        printed, follows = whole.printed(column), over_videos(paper, column)
        # A mean of figures is off by no more than the coarsest of them.
        slack = max(half(row.printed(column)) for row in paper.sources().values())
        if abs(printed - follows) <= half(printed) + slack:
            continue
        sources = mean(row.printed(column) for row in paper.sources().values())
        sample = over_videos(paper, column, sample=True)
        text = (
            f"{printed} {column} are printed, the sources give {follows:.1f} over videos, "
            f"{sources:.1f} over sources and {sample:.1f} over the evaluated videos"
        )
        values = {"printed": printed, "follows": round(follows, 2)}
        found.append(finding("averages", (1,), ("", WHOLE, column), values, text))
    return found


def tenths(paper: Paper) -> list[Finding]:
    """Table 1: sources whose shots are not a tenth of their frames rounded to the nearest.

    Rounding to the nearest leaves the mean over many videos where it is; rounding down takes 0.45
    off it if all last digits are equally frequent. Found is what is nearer to that, or one above.
    """
    found = []
    for name, row in paper.sources().items():
        frames, shots = row.printed("frames"), row.printed("shots")
        off = shots - frames / 10
        if abs(off) - half(shots) - half(frames) / 10 <= Decimal("0.25"):
            continue
        values = {"shots": shots, "tenth": frames / 10}
        text = f"{shots} shots, {frames / 10} are a tenth of the frames ({off:+.2f})"
        found.append(finding("tenths", (1,), ("", name, "shots"), values, text))
    return found


def modalities(paper: Paper) -> list[Finding]:
    """Table 1: VideoXum without text, though its title (in the references) has two modalities."""
    row = paper.sources()["VideoXum"]
    printed = row.attributes["modalities"] or ""
    title = paper.names("videoxum_title")
    if "T" in printed or len(title) < 2:
        return []
    text = f"{printed} (video alone), and {' and '.join(title).lower()} summaries in its title"
    return [Finding("modalities", (1,), "", row.name, "", {"titled": len(title)}, text)]


def constants(paper: Paper) -> list[Finding]:
    """Table 2: rows whose kappa and correlation are both exactly zero.

    A rater who gives the same mark throughout gives kappa 0, and no correlation at all.
    """
    return [
        finding(
            "constants",
            (2,),
            (row.group, row.name, "kappa..rho"),
            {"kappa": row.printed("kappa"), "rho": row.printed("rho")},
            f"κ {row.printed('kappa')}, ρ {row.printed('rho')}, {row.printed('exact')} % exact",
        )
        for row in paper.table(2).rows
        if row.printed("kappa") == row.printed("rho") == 0
    ]


def spellings(paper: Paper) -> list[Finding]:
    """Models that Table 3 names without the variant in 4.1's name; sizes and training may lack."""
    found = []
    for row in paper.table(3).rows:
        full = row.identity or ""
        rest = full.removeprefix(row.name)
        if any(part in VARIANTS for part in rest.split("-")):
            found.append(Finding("spelling", (3,), row.group, row.name, "", {}, f"{full} in 4.1"))
    return found


def benchmark_names(paper: Paper) -> list[Finding]:
    """The names that the paper gives its benchmark; empty if there is one."""
    names = paper.names("benchmark_names")
    if len(set(names)) == 1:
        return []
    return [Finding("name", (), "", "text", "", {"names": len(names)}, ", ".join(names))]


def unprinted(paper: Paper) -> list[Finding]:
    """Metrics that 4.1 announces and no table has a column of."""
    titles = " ".join(column.title for n in (3, 4) for column in paper.table(n).columns)
    titles = titles.replace("BS", "BERTScore")
    names = [name for name in paper.names("announced_metrics") if name not in titles]
    if not names:
        return []
    text = f"no column of {', '.join(names)}"
    return [Finding("unprinted", (3, 4), "", "tables", "", {"metrics": len(names)}, text)]


def finding(
    kind: str,
    tables: tuple[int, ...],
    place: tuple[str, str, str],
    values: Mapping[str, Decimal],
    text: str,
) -> Finding:
    """A finding at (group, row, column), its figures as plain numbers."""
    group, model, column = place
    plain = {name: float(value) for name, value in values.items()}
    return Finding(kind, tables, group, model, column, plain, text)
