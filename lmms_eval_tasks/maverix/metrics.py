"""MAVERIX's numbers, from items.

Three lists of metrics: CHOICE (Tables 3 to 5 and 10), CIRCULAR (all eight rotations of a question,
and where the model likes to answer: ours), and OPEN (four rated dimensions; a question beside its
paraphrase). Table 3's best modes are joined of several tasks.

Names that end in `_authors` are what their code makes of the same replies and verdicts. Where the
data ask a question openly in another one's words (`borrowed`), our numbers are without those
answers.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lmms_eval_tasks.benchmark import (
    Items,
    Metric,
    accuracies,
    pool_accuracies,
    rating_metrics,
    refusals,
    split,
)
from lmms_eval_tasks.maverix.items import AnyItem, ChoiceItem, OpenItem
from lmms_eval_tasks.maverix.labels import (
    CONSISTENCY,
    DIMENSIONS,
    LETTERS,
    MODES,
    MULTIMODAL,
    N_OPTIONS,
    SPLITS,
    TASKS,
    UNIMODAL,
)
from lmms_eval_tasks.utils.metrics import aggregate, rating_means

T = TypeVar("T", bound=Mapping[str, object])
Takes = Callable[[OpenItem], bool]

# --- numbers of every kind ----------------------------------------------------------------------

SOUND = ("delivered", "unknown", "raises", "not delivered")  # states of an item, best first
WITHOUT = frozenset({"raises", "not delivered"})  # no sound arrived
WITH_SOUND = tuple(slug for slug, mode in MODES.items() if mode.sound)
NO_REPLY = frozenset({"model_error", "error"})  # nothing that the model wrote


def _words(items: Sequence[AnyItem]) -> float | None:
    """Mean length of the replies in words; an empty one has 0, a failed request is no reply."""
    return aggregate.mean(item["words"] for item in items if item["status"] not in NO_REPLY)


def _count(name: str, takes: Callable[[T], bool], where: Callable[[T], bool]) -> Metric[T]:
    return Metric(
        name, lambda items: sum(takes(item) for item in items), where, higher_is_better=None
    )


def _with_sound(item: AnyItem) -> bool:
    return bool(item["sound"])


def _silent_elsewhere(mode: str) -> Metric[AnyItem]:
    """Items of other modes whose model gets no sound in `mode`, run or not: S stands in for A."""
    return _count(
        f"n_sound_missing_{mode}",
        lambda item: item["hears"][mode] in WITHOUT,
        lambda item: item.get("mode") != mode,
    )


_COUNTS: list[Metric[AnyItem]] = [
    _count("n_sound_missing", lambda item: item["sound"] in WITHOUT, _with_sound),
    _count("n_sound_unknown", lambda item: item["sound"] == "unknown", _with_sound),
    *map(_silent_elsewhere, WITH_SOUND),
]


# --- choices ------------------------------------------------------------------------------------


_ACC, *_OTHER_FORMS = accuracies("acc")
_ACCURACIES: list[Metric[ChoiceItem]] = [
    *(_ACC, *_OTHER_FORMS),
    Metric("words_mean", _words, higher_is_better=None),
    *_COUNTS,
]
CHOICE: list[Metric[ChoiceItem]] = [
    *_ACCURACIES,
    Metric(  # right letters by the authors' rule, of all items; an empty reply is wrong
        "acc_authors",
        lambda items: aggregate.mean(float(i["letter_authors"] == i["answer"]) for i in items),
    ),
    *(metric for name, slugs in SPLITS.items() for metric in split(_ACC, name, slugs, f"{name}_")),
]


# --- eight rotations of each question -----------------------------------------------------------


def position_bias(items: Sequence[ChoiceItem]) -> float | None:
    """Total variation distance between the letters chosen and the letters of the truth.

    Over readable answers: half the sum over A-H of |share chosen - share true|. 0 for a model
    that is always right, about 0 for one that guesses uniformly, 7/8 for one that always gives the
    same letter while the truth visits all eight alike (with `--limit` it may reach 1).
    """
    read = [item for item in items if item["status"] == "ok" and item["letter"] is not None]
    if not read:
        return None
    chosen = Counter(item["letter"] for item in read)
    true = Counter(item["answer"] for item in read)
    return sum(abs(chosen[letter] - true[letter]) for letter in LETTERS) / (2 * len(read))


CIRCULAR: list[Metric[ChoiceItem]] = [
    *_ACCURACIES,
    *pool_accuracies("circ_acc", N_OPTIONS),
    Metric(
        "position_bias",
        position_bias,
        higher_is_better=False,
        host_fields=("status", "letter", "answer"),
    ),
]


# --- open answers -------------------------------------------------------------------------------

GOOD = 4  # correctness from which an answer counts as right in `robust_both`
VERSIONS = ("original", "paraphrase")


def _is_first(item: OpenItem) -> bool:
    return item["version"] == VERSIONS[0]


def pairs(items: Sequence[OpenItem]) -> list[tuple[OpenItem, OpenItem]]:
    """The items of both wordings of a question, sorted by question."""
    second = {item["question_id"]: item for item in items if not _is_first(item)}
    firsts = {item["question_id"]: item for item in items if _is_first(item)}
    return [(firsts[name], second[name]) for name in sorted(firsts.keys() & second.keys())]


def _robust(items: Sequence[OpenItem]) -> dict[str, tuple[str, float]]:
    """By question with both answers rated: the video, and 1 if correctness is GOOD in both.

    None in a run not judged. The paper names robustness without defining it.
    """
    if aggregate.is_unjudged(rating_means.ratings("correctness", items)):
        return {}
    rated = {}
    for pair in pairs(items):
        values = map(rating_means.value, rating_means.ratings("correctness", pair))
        known = [value for value in values if value is not None]
        if len(known) == 2:
            rated[pair[0]["question_id"]] = (pair[0]["video"], float(min(known) >= GOOD))
    return rated


def _unborrowed(item: OpenItem) -> bool:
    return not item.get("borrowed")


def _is_own(item: OpenItem) -> bool:
    """Return whether it answers its own question: a borrowed first wording is another one's."""
    return _unborrowed(item) or not _is_first(item)


def _is_asked(item: OpenItem) -> bool:
    """Ratings are those of the first wording, as in Tables 6, 8 and 9: means over 852 answers."""
    return _is_first(item) and _is_own(item)


def _kept_for_both(item: OpenItem) -> bool:
    """Return whether it has the rating of both answers to its question (the first wording)."""
    return CONSISTENCY in (item.get("dimensions") or {})


def score_of_authors(raw: str) -> float:
    """The score that the authors' code reads: the whole part of a dict's `score`, or 0."""
    with warnings.catch_warnings():
        # Of prose that Python's parser sees; 3.10 and 3.11 call it deprecated.
        for kind in (SyntaxWarning, DeprecationWarning):
            warnings.simplefilter("ignore", kind)
        try:
            return float(int(ast.literal_eval(raw).get("score", 0)))
        except Exception:  # whatever a judge may write
            return 0.0


def _mean_authors(dimension: str, items: Sequence[OpenItem]) -> float | None:
    """Mean with ratings that we lack as their code has them; None in a run not judged yet."""

    def score(item: OpenItem) -> float:
        value = rating_means.value(rating_means.rating(dimension, item))
        raw = item.get("verdicts", {}).get(dimension, {}).get("raw", "")
        return score_of_authors(raw) if value is None else value

    waiting = aggregate.is_unjudged(rating_means.ratings(dimension, items))
    return None if waiting else aggregate.mean(map(score, items))


def _rated(
    name: str, where: Takes, theirs: Takes, shown: tuple[str, ...] | None
) -> list[Metric[OpenItem]]:
    """A rating's mean in its forms; the authors' is over `theirs`, borrowed wordings among them."""
    made: list[Metric[OpenItem]] = rating_metrics(name, partial(rating_means.ratings, name))
    mean, *others = (replace(one, include=where) for one in made)
    return [
        replace(mean, host_fields=shown, per_unit=partial(rating_means.units, name)),
        *others,
        Metric(f"{name}_authors", partial(_mean_authors, name), theirs),
    ]


def _of_dimension(name: str) -> list[Metric[OpenItem]]:
    """A dimension's numbers of all first wordings, by category, and of both wordings."""
    mean, *others = _rated(name, _is_asked, _is_first, (f"dimensions.{name}",))
    both = replace(mean, name=f"{name}_both_wordings", include=_is_own, host_fields=None)
    return [mean, *others, *split(mean, "agentic", SPLITS["agentic"]), both]


_RATED = {name: _of_dimension(name) for name in DIMENSIONS}
OPEN: list[Metric[OpenItem]] = [
    *(metric for metrics in _RATED.values() for metric in metrics),
    *_rated(CONSISTENCY, lambda i: _kept_for_both(i) and _is_own(i), _kept_for_both, None),
    Metric(
        "robust_both",
        lambda items: aggregate.mean(value for _, value in _robust(items).values()),
        _unborrowed,
        per_unit=_robust,
        is_share=True,
    ),
    Metric("robust_n", lambda items: len(_robust(items)), _unborrowed, higher_is_better=None),
    *(
        replace(one, include=_is_asked)
        for one in refusals("refusals", {mean.name: mean.compute for mean, *_ in _RATED.values()})
    ),
    Metric("words_mean", _words, _is_own, higher_is_better=None),
    *_COUNTS,
    _count("n_borrowed", _is_first, lambda item: item.get("borrowed", False)),
]


# --- Table 3: best unimodal, best multimodal and their difference, over the five modes -----------

JOINED = ("best_uni", "best_multi", "delta_multi")
JOIN_NEEDS = ("status", "right", "hears")


def table3(sides: Mapping[str, Sequence[ChoiceItem]]) -> dict[str, float | None]:
    """JOINED of the modes' choice items by task; {} of a single mode."""
    if len(sides) < 2:
        return {}
    modes = {TASKS[task].mode.slug: items for task, items in sides.items()}
    accuracies = {mode: aggregate.accuracy(items) for mode, items in modes.items()}
    sound = {}
    for mode in WITH_SOUND:
        # What a mode's own items say of its sound goes before what the others' do.
        told = [modes[mode]] if mode in modes else list(modes.values())
        sound[mode] = _worst([item["hears"][mode] for items in told for item in items])
    return joined(accuracies, sound)


def joined(
    accuracies: Mapping[str, float | None], sound: Mapping[str, str]
) -> dict[str, float | None]:
    """Best-Uni = max(A, S, V), Best-Multi = max(V+S, V+A), and multi less uni (Table 3's caption).

    A mode whose sound does not reach the model is left out: what it measures is another mode's
    input. Best-Uni is then the better of S and V, Best-Multi V+S, as in the paper's rows of models
    without sound, whether A and V+A were run or not. No number unless every other mode has one: the
    best of fewer would be another number under the same name. By mode: 0 to 1, and states.
    """
    silent = left_out(sound)

    def best(modes: Sequence[str]) -> float | None:
        found = [accuracies.get(mode) for mode in modes if mode not in silent]
        numbers = [value for value in found if value is not None]
        return max(numbers) if len(numbers) == len(found) else None

    uni, multi = best(UNIMODAL), best(MULTIMODAL)
    delta = None if uni is None or multi is None else multi - uni
    return {"best_uni": uni, "best_multi": multi, "delta_multi": delta}


def _worst(states: Sequence[str]) -> str:
    """The worst state of sound; "" of none."""
    return max(filter(None, states), key=SOUND.index, default="")


def left_out(sound: Mapping[str, str]) -> set[str]:
    """Modes whose sound did not arrive, by their states.

    A and V+A have a state each: one class of the host sends a wav and drops an mp4's track, another
    does the opposite. Where one has none, the other's holds.
    """
    fallback = _worst([sound.get(mode, "") for mode in WITH_SOUND])
    return {mode for mode in WITH_SOUND if (sound.get(mode) or fallback) in WITHOUT}


def table3_notes(sides: Mapping[str, Items]) -> list[str]:
    """A line if the modes of saved runs were not asked the same items."""
    asked = {TASKS[task].mode.slug: own for task, own in sides.items()}
    counts = aggregate.unlike({m.title: asked[slug] for slug, m in MODES.items() if slug in asked})
    return [f"the modes have different items ({counts})"] if counts else []
