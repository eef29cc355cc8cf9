"""MAVERIX's numbers, from items.

Three kinds of task, each with its metrics:
- choice: `acc` in three forms (Table 3), by label (`acc_<split>_<slug>`, Tables 4, 5, 10), and the
  joined `best_uni`, `best_multi`, `delta_multi`;
- circular: all eight rotations of a question, and where the model likes to answer (ours);
- open: four rated dimensions, and a question beside its paraphrase: their consistency, rated in
  one request (the authors' code), and robustness (ours).
All have the length of replies in words (Table 6 counts tokens and names no tokenizer), the number
of withheld items, and how many items' sound did not arrive or may not have.

Items whose answer is withheld are not scored: the others alone count, and where all are withheld
there is no number. Names that end in `_authors` are what their code makes of the same replies and
verdicts.

Where the data ask a question openly in another one's words (`borrowed`), numbers are without those
answers; each stands once more as `<name>_with_borrowed`.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmark import Item, Items, Metric, refusals, value_is
from lmms_eval_tasks.maverix.labels import (
    CONSISTENCY,
    DIMENSIONS,
    LETTERS,
    MODES,
    MULTIMODAL,
    N_OPTIONS,
    SPLITS,
    UNIMODAL,
    mode_of,
)
from lmms_eval_tasks.utils.metrics import aggregate, rating_means, stats

Statistic = Callable[[Items], Any]


def _known(items: Items) -> Items:
    """The items whose answer is in the data."""
    return [item for item in items if not item["withheld"]]


def _of_known(statistic: Statistic) -> Statistic:
    """`statistic` of the known items; None where every item is withheld."""

    def scored(items: Items) -> Any:
        some = _known(items)
        return None if items and not some else statistic(some)

    return scored


def _bootstrap(
    groups: Sequence[Any], value: Callable[[Any], float] = lambda group: float(group.right)
) -> stats.Interval | None:
    """Interval of the mean of `value` over pools or pairs, each a whole (stats.py)."""
    if not groups:
        return None
    return stats.cluster_bootstrap(
        lambda some: aggregate.mean(value(group) for group in some),
        groups,
        [group.video for group in groups],
    )


# --- numbers of every kind ----------------------------------------------------------------------

SOUND = ("delivered", "unknown", "raises", "not delivered")  # states of an item, best first
WITHOUT = frozenset({"raises", "not delivered"})  # no sound arrived
WITH_SOUND = tuple(slug for slug, mode in MODES.items() if mode.sound)
NO_REPLY = frozenset({"model_error", "error"})  # nothing that the model wrote


def _words(name: str, statistic: Callable[[list[int]], Any]) -> Metric:
    """A statistic of the replies' lengths in words; an empty one has 0, a failed request none."""

    def of(items: Items) -> Any:
        return statistic([item["words"] for item in items if item["status"] not in NO_REPLY])

    return Metric(name, of, better=None)


def _count(
    name: str, takes: Callable[[Item], bool], where: Callable[[Item], bool] | None = None
) -> Metric:
    return Metric(name, lambda items: sum(takes(item) for item in items), where, better=None)


def _has_sound(item: Item) -> bool:
    return bool(item["sound"])


def _silent_elsewhere(mode: str) -> Metric:
    """Number of items of other modes whose model gets no sound in `mode`: S stands in for A.

    Whether that was run or not.
    """
    return _count(
        f"n_sound_missing_{mode}",
        lambda item: item["hears"][mode] in WITHOUT,
        lambda item: item["mode"] != mode,
    )


_LENGTHS = [
    _words("words_mean", aggregate.mean),
    _words("words_max", lambda lengths: max(lengths, default=None)),
    _words("words_sd", lambda lengths: statistics.stdev(lengths) if len(lengths) > 1 else None),
]
_COUNTS = [
    _count("n_withheld", lambda item: bool(item["withheld"])),
    _count("n_sound_missing", lambda item: item["sound"] in WITHOUT, _has_sound),
    _count("n_sound_unknown", lambda item: item["sound"] == "unknown", _has_sound),
    *map(_silent_elsewhere, WITH_SOUND),
]


def details(items: Items) -> dict[str, Any]:
    """Items that are not scored, and what became of sound."""
    return {
        "withheld": len(items) - len(_known(items)),
        "sound": dict(sorted(Counter(item["sound"] for item in items if item["sound"]).items())),
    }


# --- choices ------------------------------------------------------------------------------------


_ACCURACY = _of_known(aggregate.accuracy)
_ACCURACIES = [
    Metric(
        "acc",
        _ACCURACY,
        shown=("status", "right", "withheld"),
        mean="right",
        interval=_of_known(aggregate.accuracy_interval),
    ),
    Metric("acc_valid", _of_known(aggregate.accuracy_valid)),
    Metric("acc_failed", _of_known(aggregate.count_failed), better=False),
]


def _of_label(split: str, slug: str) -> Callable[[Item], bool]:
    """An item may have several agentic categories, and counts in each."""
    if split != "agentic":
        return value_is(split, slug)
    return lambda item: slug in (item["agentic"], *item.get("more_agentic", ()))


def _accuracy_authors(items: Items) -> float | None:
    """Share of right letters by the authors' rule, of all items; an empty reply is wrong."""
    return aggregate.mean(float(item["letter_authors"] == item["answer"]) for item in items)


CHOICE = [
    *_ACCURACIES,
    Metric("acc_authors", _of_known(_accuracy_authors)),
    *(
        Metric(f"acc_{split}_{slug}", _ACCURACY, _of_label(split, slug))
        for split, slugs in SPLITS.items()
        for slug in slugs
    ),
    *_LENGTHS,
    *_COUNTS,
]


def first_domains(items: Items) -> list[Metric]:
    """Accuracy by agentic category as the authors' code has it: of several the first one counts."""
    if not any(item.get("more_agentic") for item in items):
        return []
    return [
        Metric(f"acc_agentic_{s}_authors", _of_known(_accuracy_authors), value_is("agentic", s))
        for s in SPLITS["agentic"]
    ]


# --- eight rotations of each question -----------------------------------------------------------


def _rotations(items: Items) -> Items:
    """Rotations for pools: one category for all, since circular accuracy is not split."""
    return [{**item, "category": ""} for item in items]


def _pools(items: Items) -> list[aggregate.Pool]:
    """Rotations by question; a pool is right with eight of eight, and incomplete with fewer."""
    return list(aggregate.pools(_rotations(items), N_OPTIONS).values())


def _of_pools(statistic: Callable[[Items, int], Any]) -> Statistic:
    return _of_known(lambda items: statistic(_rotations(items), N_OPTIONS))


def _readable(items: Items) -> Items:
    return [item for item in items if item["status"] == "ok" and item["letter"] is not None]


def chose(letter: str, items: Items) -> float | None:
    """Share of the readable answers that chose `letter`; 1/8 without a preference."""
    return aggregate.mean(float(item["letter"] == letter) for item in _readable(items))


def position_bias(items: Items) -> float | None:
    """Total variation distance between the letters chosen and the letters of the truth.

    Over readable answers: half the sum over A-H of |share chosen - share true|. 0 for a model
    that is always right, and about 0 for one that guesses uniformly; 7/8 for one that always gives
    the same letter while the truth visits all eight alike (the most that complete pools allow; with
    `--limit` it may reach 1).
    """
    read = _readable(items)
    if not read:
        return None
    chosen = Counter(item["letter"] for item in read)
    true = Counter(item["answer"] for item in read)
    return sum(abs(chosen[letter] - true[letter]) for letter in LETTERS) / (2 * len(read))


CIRCULAR = [
    *_ACCURACIES,
    Metric(
        "circ_acc",
        _of_pools(aggregate.pool_accuracy),
        shown=("id", "status", "right", "withheld"),
        interval=_of_known(lambda items: _bootstrap(_pools(items))),
    ),
    Metric("circ_acc_valid", _of_pools(aggregate.pool_accuracy_valid)),
    Metric("circ_acc_failed", _of_pools(aggregate.count_failed_pools), better=False),
    Metric(
        "position_bias",
        _of_known(position_bias),
        better=False,
        shown=("status", "letter", "answer", "withheld"),
    ),
    *(
        Metric(f"acc_at_{letter.lower()}", _ACCURACY, value_is("answer", letter))
        for letter in LETTERS
    ),
    *(
        Metric(f"chose_{letter.lower()}", _of_known(functools.partial(chose, letter)), better=None)
        for letter in LETTERS
    ),
    *_LENGTHS,
    *_COUNTS,
]


def circular_details(items: Items) -> dict[str, Any]:
    """How many questions the rotations are of, too."""
    return {**details(items), "pools": len(_pools(_known(items)))}


# --- open answers -------------------------------------------------------------------------------

GOOD = 4  # correctness from which an answer counts as right in `robust_both`
VERSIONS = ("original", "paraphrase")


class Pair(NamedTuple):
    """A question's two answers: their correctness, () unless both have one that counts."""

    video: str
    both: tuple[float, ...]


def pairs(items: Items) -> list[Pair]:
    """Questions with their two answers, sorted by question; none counts in a run not judged.

    The paper names robustness without defining it.
    """
    waiting = rating_means.is_unjudged("correctness", items)
    return [_pair(own, waiting) for own in questions(items)]


def _pair(own: Items, waiting: bool) -> Pair:
    values = [None if waiting else rating_means.value("correctness", item) for item in both(own)]
    rated = tuple(value for value in values if value is not None)
    return Pair(min(item["video"] for item in own), rated if len(rated) == len(VERSIONS) else ())


def questions(items: Items) -> list[Items]:
    """The items of each question, sorted by question."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item["question_id"], []).append(item)
    return [own for _, own in sorted(groups.items())]


def both(own: Items) -> Items:
    """A question's items in the order of VERSIONS; () unless it has one of each.

    Two items of one version are not a pair, and which of them came first must not matter.
    """
    found = sorted(own, key=lambda item: VERSIONS.index(item["version"]))
    return found if tuple(item["version"] for item in found) == VERSIONS else ()


def _judged(items: Items) -> list[Pair]:
    """The pairs that count: both answers are there and judged."""
    return [pair for pair in pairs(items) if pair.both]


def _robust(name: str, value: Callable[[Pair], float], better: bool) -> Metric:
    """Mean of a value over the pairs that count."""
    return Metric(
        name,
        _of_known(lambda items: aggregate.mean(map(value, _judged(items)))),
        better=better,
        interval=_of_known(lambda items: _bootstrap(_judged(items), value)),
    )


def _mean(dimension: str) -> Statistic:
    return _of_known(functools.partial(rating_means.mean_valid, dimension))


def _rated(dimension: str, where: Callable[[Item], bool], *, shown: bool) -> Iterator[Metric]:
    def of(statistic: Callable[[str, Items], Any]) -> Statistic:
        return _of_known(functools.partial(statistic, dimension))

    yield Metric(
        f"{dimension}_valid",
        _mean(dimension),
        where,
        shown=(f"dimensions.{dimension}", "withheld") if shown else None,
        interval=of(rating_means.interval),
    )
    yield Metric(f"{dimension}_failed", of(rating_means.count_failed), where, better=False)
    yield Metric(f"{dimension}_coverage", of(rating_means.coverage), where)


_is_first = value_is("version", VERSIONS[0])


def _kept_for_both(item: Item) -> bool:
    """Whether it has the rating of both answers to its question: the first wording's item."""
    return CONSISTENCY in (item.get("dimensions") or {})


def score_of_authors(raw: str) -> float:
    """What the authors' code makes of a judge's reply: the whole part of a dict's `score`, or 0."""
    try:
        return float(int(ast.literal_eval(raw).get("score", 0)))
    except Exception:  # whatever a judge may write
        return 0.0


def _only(metric: Metric, takes: Callable[[Item], bool]) -> Metric:
    """The same number, of those of its items that `takes` says."""
    where = metric.where
    both_take = takes if where is None else lambda item: takes(item) and where(item)
    return dataclasses.replace(metric, where=both_take)


def _authors(dimension: str) -> Metric:
    """Mean over the first wordings, with ratings that we do not have as their code has them.

    Borrowed ones are among them. None in a run that waits for its judge. Their code has a rubric
    for time that no metric of it uses, and Table 8 has its means, over 852 answers as the others.
    """

    def score(item: Item) -> float:
        value = rating_means.value(dimension, item)
        if value is not None:
            return value
        return score_of_authors(item.get("verdicts", {}).get(dimension, {}).get("raw", ""))

    def of(items: Items) -> float | None:
        if rating_means.is_unjudged(dimension, items):
            return None
        return aggregate.mean(map(score, items))

    first = _kept_for_both if dimension == CONSISTENCY else _is_first
    return Metric(f"{dimension}_authors", _of_known(of), first)


# Ratings are those of the first wording, as in Tables 6, 8 and 9: means over 852 answers.
_OPEN = [
    *(metric for name in DIMENSIONS for metric in _rated(name, _is_first, shown=True)),
    *_rated(CONSISTENCY, _kept_for_both, shown=False),
    *(
        _only(Metric(f"{name}_valid_{slug}", _mean(name), _of_label("agentic", slug)), _is_first)
        for name in DIMENSIONS
        for slug in SPLITS["agentic"]
    ),
    *(Metric(f"{name}_both_wordings", _mean(name)) for name in DIMENSIONS),
    _robust("robust_both", lambda pair: float(min(pair.both) >= GOOD), better=True),
    _robust("robust_diff", lambda pair: max(pair.both) - min(pair.both), better=False),
    Metric("robust_n", _of_known(lambda items: len(_judged(items))), better=None),
    Metric(
        "robust_failed",
        _of_known(lambda items: len(pairs(items)) - len(_judged(items))),
        better=False,
    ),
    *(
        _only(metric, _is_first)
        for metric in refusals("refusals", {f"{name}_valid": _mean(name) for name in DIMENSIONS})
    ),
    *_LENGTHS,
]


def _own_words(metric: Metric) -> Metric:
    """The same number without answers to another question; of pairs without those of such ones."""
    pair = metric.name.startswith("robust_")
    return _only(metric, lambda item: not (item.get("borrowed") and (pair or _is_first(item))))


OPEN = [*map(_own_words, _OPEN), *map(_authors, (*DIMENSIONS, CONSISTENCY)), *_COUNTS]


def with_borrowed(items: Items) -> list[Metric]:
    """Every number with the answers to another question's words, where there are any."""
    if not any(item.get("borrowed") for item in items):
        return []
    return [
        *(dataclasses.replace(one, name=f"{one.name}_with_borrowed") for one in _OPEN),
        _count("n_borrowed", lambda item: bool(item.get("borrowed")) and _is_first(item)),
    ]


def open_details(items: Items) -> dict[str, Any]:
    """Counts by status of every rating, too."""
    some = _known(items)
    rated = {**dict.fromkeys(DIMENSIONS, some), CONSISTENCY: [*filter(_kept_for_both, some)]}
    ratings = {
        name: aggregate.by_status([rating_means.rating(name, item) for item in own])
        for name, own in rated.items()
    }
    return {**details(items), "ratings": ratings}


def open_notes(items: Items) -> list[str]:
    """Why there is no consistency."""
    if any(map(both, questions(items))) or not _known(items):
        return []
    return [f"no {CONSISTENCY}: no question was asked in both wordings"]


# --- Table 3: best unimodal, best multimodal and their difference, over the five modes -----------

JOINED = ("best_uni", "best_multi", "delta_multi")
JOIN_NEEDS = ("status", "right", "withheld", "hears")


def table3(sides: Mapping[str, Items]) -> dict[str, float | None]:
    """JOINED of the modes' choice items by task; {} of a single mode."""
    if len(sides) < 2:
        return {}
    modes = {mode_of(task).slug: items for task, items in sides.items()}
    accuracies = {mode: aggregate.accuracy(_known(items)) for mode, items in modes.items()}
    sound = {}
    for mode in WITH_SOUND:
        # What a mode's own items say of its sound goes before what the others' do.
        told = [modes[mode]] if mode in modes else list(modes.values())
        sound[mode] = worst_sound([item["hears"][mode] for items in told for item in items])
    return joined(accuracies, sound)


def joined(
    accuracies: Mapping[str, float | None], sound: Mapping[str, str]
) -> dict[str, float | None]:
    """Best-Uni = max(A, S, V), Best-Multi = max(V+S, V+A), and multi less uni (Table 3's caption).

    A mode whose sound does not reach the model is left out: what it measures is another mode's
    input. Where both are, Best-Uni is the better of S and V, and Best-Multi is V+S, as in the
    paper's rows of models without sound, whether A and V+A were run or not. Each of the two has a
    state of its own: one class of the host sends a wav and drops an mp4's track, another does the
    opposite.

    Args:
        accuracies: mode -> accuracy in 0..1.
        sound: mode -> state, as in `left_out`; modes left out are not asked for.

    Returns:
        By name; None unless every mode that is asked for has an accuracy: the best of fewer modes
        would be another number under the same name.
    """
    silent = left_out(sound)

    def best(modes: Sequence[str]) -> float | None:
        found = [accuracies.get(mode) for mode in modes if mode not in silent]
        numbers = [value for value in found if value is not None]
        return max(numbers) if len(numbers) == len(found) else None

    uni, multi = best(UNIMODAL), best(MULTIMODAL)
    delta = None if uni is None or multi is None else multi - uni
    return {"best_uni": uni, "best_multi": multi, "delta_multi": delta}


def worst_sound(states: Sequence[str]) -> str:
    """The worst of several states; "" of none.

    Raises:
        ValueError: a state that SOUND does not name.
    """
    return max(filter(None, states), key=SOUND.index, default="")


def left_out(sound: Mapping[str, str]) -> set[str]:
    """Modes whose sound did not arrive.

    Args:
        sound: mode -> state. Where one of the two modes with sound has none, the other's holds.
    """
    known = {mode: sound[mode] for mode in WITH_SOUND if sound.get(mode)}
    fallback = worst_sound(list(known.values()))
    return {mode for mode in WITH_SOUND if known.get(mode, fallback) in WITHOUT}


def table3_notes(sides: Mapping[str, Items]) -> list[str]:
    """Modes that are missing in saved runs, and whether the others were asked the same items."""
    asked = {mode_of(task).slug: own for task, own in sides.items()}
    missing = [mode.title for slug, mode in MODES.items() if slug not in asked]
    notes = [f"without {', '.join(missing)}" if missing else "", _unlike(asked)]
    return [note for note in notes if note]


def unlike_notes(asked: Mapping[str, Items]) -> list[str]:
    """What to say if a run's modes, localized or long, were not asked the same items.

    The best of them would compare unlike ones.
    """
    notes = []
    for prefix, name in (("maverix_", "maverix_table3"), ("maverix_long_", "maverix_long")):
        own = {mode: asked[prefix + mode] for mode in MODES if prefix + mode in asked}
        if note := _unlike(own):
            notes.append(f"{name}: {note}")
    return notes


def _unlike(asked: Mapping[str, Items]) -> str:
    counts = aggregate.unlike({m.title: asked[slug] for slug, m in MODES.items() if slug in asked})
    return f"the modes were not asked the same items ({counts})" if counts else ""
