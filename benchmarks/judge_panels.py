"""The value of panels of judges when the truth is known: made-up judges in made-up worlds.

    python benchmarks/judge_panels.py [--seeds 20] [--world NAME ...] [--weight 0.5]

Each world (simulation.WORLDS) has a table with every judge alone and its kappa in closed form,
every panel, and a final judge alone, in the collective and with mixtures. The figures are mean and
range over the seeds of kappa, and of its differences to the best single judge and to the mean of
the judges. The same seeds give the same table. The program takes 20 s, and needs no GPU, key or
network. Which panel wins depends on the world, so the tables promise nothing. The best single judge
is the best in hindsight, chosen on the same items.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import simulation
from simulation import WORLDS, Drawn, World

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study import selection
from lmms_eval_tasks.cvrr_es.study.panels import PANELS, panel
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey
from lmms_eval_tasks.cvrr_es.study.selection import Selection, judge_kappa
from lmms_eval_tasks.utils.metrics.aggregate import mean as average

SEEDS = 20
WEIGHT = 0.5  # the final judge moves half of the way to the others
KINDS = ("judge", "panel", "final")
# The selections of the mixture that the final judge sees.
MIXTURES = {
    "mixture": Selection(),
    "mixture, same items": Selection(cross_fit=False),
    "mixture, top 1": Selection(top=1),
    "mixture, top 1, same items": Selection(top=1, cross_fit=False),
}


@dataclass(frozen=True)
class Row:
    """Kappas of one judge, panel or final judge over the seeds."""

    kind: str  # a value of KINDS
    name: str
    kappas: tuple[float | None, ...]  # by seed, each the mean over candidates
    over_best: tuple[float | None, ...]  # difference to the best single judge of the same seed
    over_mean: tuple[float | None, ...]  # difference to the panel `mean`
    by_hand: float | None = None  # for judges: mean over seeds of the kappa in closed form
    notes: tuple[str, ...] = ()  # notes of the panels, each once


def study(
    world: World,
    seeds: Sequence[int],
    weight: float = WEIGHT,
    questions: int = simulation.QUESTIONS,
    names: Iterable[str] = tuple(PANELS),
) -> list[Row]:
    """Return the rows of one world: judges, then panels, then the final judge, in a fixed order.

    Args:
        world: a world, such as those in simulation.WORLDS.
        seeds: seeds of the draws.
        weight: weight of others' ratings for the final judge, 0 to 1.
        questions: number of questions for each candidate.
        names: names of panels; `mean` is always among them.

    Raises:
        ValueError: there are no seeds.
    """
    if not seeds:
        raise ValueError("a study needs at least one seed")
    asked = tuple(dict.fromkeys(["mean", *names]))
    draws = [simulation.draw(world, seed, questions) for seed in seeds]
    runs = [_one(world, drawn, weight, asked) for drawn in draws]
    best = [max(_kappas(run, "judge"), default=None) for run in runs]
    mean = [run["panel", "mean"][0] for run in runs]
    rows = []
    for kind, name in runs[0]:
        kappas = tuple(run[kind, name][0] for run in runs)
        hand = [by_hand(world, name, drawn) for drawn in draws] if kind == "judge" else []
        rows.append(
            Row(
                kind,
                name,
                kappas,
                _differences(kappas, best),
                _differences(kappas, mean),
                average(hand),
                tuple(sorted({run[kind, name][1] for run in runs} - {""})),
            )
        )
    return rows


def by_hand(world: World, judge: str, drawn: Drawn) -> float | None:
    """Return the judge's kappa in closed form, the mean over the candidates' references."""
    found = []
    for candidate in sorted({item.candidate for item in drawn.reference}):
        own = [r for item, r in drawn.reference.items() if item.candidate == candidate]
        shares = [own.count(rating) / len(own) for rating in SCALE]
        found.append(simulation.expected_kappa(shares, world.channel(judge)))
    return average(found)


def final_ratings(
    drawn: Drawn, shown: Mapping[AnswerKey, Sequence[str]], weight: float
) -> dict[AnswerKey, int]:
    """Return the final judge's rating of each answer, given the judges that it sees."""
    return {
        item: simulation.swayed(
            own, [drawn.ratings[judge][item] for judge in shown.get(item, ())], weight
        )
        for item, own in drawn.final.items()
    }


def shown_to_final(drawn: Drawn, rule: Selection) -> dict[AnswerKey, tuple[str, ...]]:
    """Return the judges that the mixture selects for each answer."""
    chosen = selection.choices(drawn.ratings, drawn.reference, drawn.strata, rule)
    return {item: choice.judges for item, choice in chosen.items()}


def _one(
    world: World, drawn: Drawn, weight: float, names: Iterable[str]
) -> dict[tuple[str, str], tuple[float | None, str]]:
    """Return kappa and note of every row, for one draw."""

    def kappa(ratings: Mapping[AnswerKey, int]) -> float | None:
        return judge_kappa(ratings, drawn.reference, drawn.reference)  # there is one dimension

    found = {("judge", name): (kappa(own), "") for name, own in sorted(drawn.ratings.items())}
    for name in names:
        made = panel(name, drawn.ratings, drawn.reference, drawn.strata)
        found["panel", name] = (kappa(made.ratings), made.note)
    everybody = dict.fromkeys(drawn.reference, tuple(world.judges))
    finals = {"alone": {}, "collective": everybody} | {
        name: shown_to_final(drawn, rule) for name, rule in MIXTURES.items()
    }
    for name, shown in finals.items():
        found["final", name] = (kappa(final_ratings(drawn, shown, weight)), "")
    return found


def _kappas(run: Mapping[tuple[str, str], tuple[float | None, str]], kind: str) -> list[float]:
    return [
        value for (of_kind, _), (value, _) in run.items() if of_kind == kind and value is not None
    ]


def _differences(
    kappas: Sequence[float | None], others: Sequence[float | None]
) -> tuple[float | None, ...]:
    return tuple(
        None if kappa is None or other is None else kappa - other
        for kappa, other in zip(kappas, others, strict=True)
    )


def table(about: str, rows: Sequence[Row]) -> str:
    """Return the table as text: mean and range over seeds of each kappa and of both differences."""
    width = max(len(row.name) for row in rows)
    columns = [f"{name:24}" for name in ("kappa", "minus best judge", "minus mean panel")]
    lines = [about, " ".join(["", " " * 5, " " * width, *columns]) + "by hand"]
    for row in rows:
        cells = [_cell(row.kappas), _cell(row.over_best), _cell(row.over_mean)]
        hand = "" if row.by_hand is None else f"{round(row.by_hand, 3) + 0:7.3f}"
        cells = [f"{cell:24}" for cell in cells]
        lines.append(" ".join(["", f"{row.kind:5}", f"{row.name:{width}}", *cells]) + hand)
        lines += [f"   {row.name}: {note}" for note in row.notes]
    return "\n".join(line.rstrip() for line in lines)


def _cell(values: Sequence[float | None]) -> str:
    defined = [value for value in values if value is not None]
    if not defined:
        return "undefined"
    # Rounding first and adding 0 avoids -0.000 for -0.0004, here and below.
    mean, low, high = (round(x, 3) + 0 for x in (fmean(defined), min(defined), max(defined)))
    text = f"{mean:6.3f} [{low:6.3f}, {high:6.3f}]"
    missing = len(values) - len(defined)
    return f"{text} ({missing} undefined)" if missing else text


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--world", action="append", choices=list(WORLDS), help="default: all")
    parser.add_argument("--weight", type=float, default=WEIGHT, help="how far others sway, 0 to 1")
    options = parser.parse_args()
    for name in options.world or WORLDS:
        rows = study(WORLDS[name], range(options.seeds), options.weight)
        about = f"{name}: {WORLDS[name].about} ({options.seeds} seeds)"
        print(table(about, rows), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
