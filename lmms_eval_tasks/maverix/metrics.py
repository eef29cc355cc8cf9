"""MAVERIX's numbers, computed from items.

There are three lists of metrics. CHOICE is for Tables 3 to 5 and 10. CIRCULAR is ours: all eight
rotations of a question, and the letters that the model prefers. OPEN has four rated dimensions, and
compares a question with its paraphrase. The best modes of Table 3 join several tasks.

A metric whose name ends in `_authors` is the number of the authors' code for the same replies and
verdicts. In some data, an open question has another question's words (`borrowed`). Our metrics
leave these answers out.
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

SOUND = ("delivered", "unknown", "raises", "not delivered")  # states of an item's sound, best first
WITHOUT = frozenset({"raises", "not delivered"})  # no sound arrived
WITH_SOUND = tuple(slug for slug, mode in MODES.items() if mode.sound)
NO_REPLY = frozenset({"model_error", "error"})  # statuses without a reply of the model


def _words(items: Sequence[AnyItem]) -> float | None:
    """Return the mean length of replies in words.

    An empty reply has 0 words; failed requests do not count.
    """
    return aggregate.mean(item["words"] for item in items if item["status"] not in NO_REPLY)


def _count(name: str, takes: Callable[[T], bool], where: Callable[[T], bool]) -> Metric[T]:
    return Metric(
        name, lambda items: sum(takes(item) for item in items), where, higher_is_better=None
    )


def _with_sound(item: AnyItem) -> bool:
    return bool(item["sound"])


def _silent_elsewhere(mode: str) -> Metric[AnyItem]:
    """Return a count of items of other modes whose model gets no sound in `mode`, run or not.

    In such a mode, S stands in for A.
    """
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
    Metric(  # share of right letters by the authors' rule; an empty reply is wrong
        "acc_authors",
        lambda items: aggregate.mean(float(i["letter_authors"] == i["answer"]) for i in items),
    ),
    *(metric for name, slugs in SPLITS.items() for metric in split(_ACC, name, slugs, f"{name}_")),
]


# --- eight rotations of each question -----------------------------------------------------------


def position_bias(items: Sequence[ChoiceItem]) -> float | None:
    """Return the total variation distance between the chosen letters and the right letters.

    Over readable answers, this is half the sum over A-H of |share chosen - share right|. 0 means a
    model that is always right; uniform guesses have about 0. A model that always gives the same
    letter has 7/8, if each letter is right equally often; with `--limit` the value may reach 1.
    None without a readable answer.
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

GOOD = 4  # lowest correctness of an answer that counts as right in `robust_both`
VERSIONS = ("original", "paraphrase")


def _is_first(item: OpenItem) -> bool:
    return item["version"] == VERSIONS[0]


def pairs(items: Sequence[OpenItem]) -> list[tuple[OpenItem, OpenItem]]:
    """Return the items of both wordings of each question, sorted by question."""
    second = {item["question_id"]: item for item in items if not _is_first(item)}
    firsts = {item["question_id"]: item for item in items if _is_first(item)}
    return [(firsts[name], second[name]) for name in sorted(firsts.keys() & second.keys())]


def _robust(items: Sequence[OpenItem]) -> dict[str, tuple[str, float]]:
    """Return the video, and 1 if correctness is GOOD in both wordings, else 0, by question id.

    Only questions with two rated answers count. A run without judgements has none. The paper
    mentions robustness without a definition.
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
    """Return True if an answer's wording is its own question's, not another question's."""
    return _unborrowed(item) or not _is_first(item)


def _is_asked(item: OpenItem) -> bool:
    """Return True for the first wording, whose ratings Tables 6, 8 and 9 average (852 answers)."""
    return _is_first(item) and _is_own(item)


def _kept_for_both(item: OpenItem) -> bool:
    """Return True if the item holds the rating of both answers to its question.

    That is the item of the first wording.
    """
    return CONSISTENCY in (item.get("dimensions") or {})


def score_of_authors(raw: str) -> float:
    """Return the score that the authors' code reads from a judge's reply.

    That is the whole part of `score` if the reply is a Python dict, else 0.
    """
    with warnings.catch_warnings():
        # Prose may warn when Python parses it; in 3.10 and 3.11 as deprecated.
        for kind in (SyntaxWarning, DeprecationWarning):
            warnings.simplefilter("ignore", kind)
        try:
            return float(int(ast.literal_eval(raw).get("score", 0)))
        except Exception:  # a judge's reply may be any text
            return 0.0


def _mean_authors(dimension: str, items: Sequence[OpenItem]) -> float | None:
    """Return the mean rating, with the authors' reading of replies that have no rating here.

    The mean is None if the run is not judged yet.
    """

    def score(item: OpenItem) -> float:
        value = rating_means.value(rating_means.rating(dimension, item))
        raw = item.get("verdicts", {}).get(dimension, {}).get("raw", "")
        return score_of_authors(raw) if value is None else value

    waiting = aggregate.is_unjudged(rating_means.ratings(dimension, items))
    return None if waiting else aggregate.mean(map(score, items))


def _rated(
    name: str, where: Takes, theirs: Takes, host_fields: tuple[str, ...] | None
) -> list[Metric[OpenItem]]:
    """Return the forms of a rating's mean.

    The authors' mean is over the items for which `theirs` is True, including borrowed wordings.
    """
    forms: list[Metric[OpenItem]] = rating_metrics(name, partial(rating_means.ratings, name))
    mean, *others = (replace(form, include=where) for form in forms)
    return [
        replace(mean, host_fields=host_fields, per_unit=partial(rating_means.units, name)),
        *others,
        Metric(f"{name}_authors", partial(_mean_authors, name), theirs),
    ]


def _of_dimension(name: str) -> list[Metric[OpenItem]]:
    """Return a dimension's metrics of all first wordings, by category, and of both wordings."""
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
JOINT_FIELDS = ("status", "right", "hears")


def table3(sides: Mapping[str, Sequence[ChoiceItem]]) -> dict[str, float | None]:
    """Return the numbers of JOINED from the modes' choice items by task; {} for a single mode."""
    if len(sides) < 2:
        return {}
    modes = {TASKS[task].mode.slug: items for task, items in sides.items()}
    accuracies = {mode: aggregate.accuracy(items) for mode, items in modes.items()}
    sound = {}
    for mode in WITH_SOUND:
        # A mode's own items know its sound best; without any, the items of other modes decide.
        told = [modes[mode]] if mode in modes else list(modes.values())
        sound[mode] = _worst([item["hears"][mode] for items in told for item in items])
    return best_of_modes(accuracies, sound)


def best_of_modes(
    accuracies: Mapping[str, float | None], sound: Mapping[str, str]
) -> dict[str, float | None]:
    """Return Best-Uni = max(A, S, V), Best-Multi = max(V+S, V+A), and their difference (Table 3).

    A mode whose sound does not reach the model is left out, because it measures the input of
    another mode. Best-Uni is then the better of S and V, and Best-Multi is V+S, as in the paper's
    rows of models without sound, whether A and V+A were run or not. If any other mode has no
    number, there is none: the best of fewer modes would be a different number with the same name.

    Args:
        accuracies: by mode, 0..1.
        sound: by mode, a state of SOUND.
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
    """Return the worst of some states of sound; "" if there is none."""
    return max(filter(None, states), key=SOUND.index, default="")


def left_out(sound: Mapping[str, str]) -> set[str]:
    """Return the modes whose sound did not arrive.

    A and V+A have separate states, because one model class of lmms-eval sends a wav and drops an
    mp4's sound, and another does the opposite. If one of the two has no state, the other's state
    counts.
    """
    fallback = _worst([sound.get(mode, "") for mode in WITH_SOUND])
    return {mode for mode in WITH_SOUND if (sound.get(mode) or fallback) in WITHOUT}


def table3_notes(sides: Mapping[str, Items]) -> list[str]:
    """Return a line if the modes of saved runs did not ask the same items."""
    asked = {TASKS[task].mode.slug: own for task, own in sides.items()}
    counts = aggregate.unlike({m.title: asked[slug] for slug, m in MODES.items() if slug in asked})
    return [f"the modes have different items ({counts})"] if counts else []
