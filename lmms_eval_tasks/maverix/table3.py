"""Best unimodal, best multimodal and their difference, joined over the five modes (Table 3).

A mode whose sound does not reach the model is left out: what it measures is another mode's input.
Where both are, Best-Uni is the better of S and V, and Best-Multi is V+S, as in the paper's rows of
models without sound, whether A and V+A were run or not. Each of the two has a state of its own: one
class of the host sends a wav and drops an mp4's track, another does the opposite.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.maverix.labels import MODES, MULTIMODAL, UNIMODAL
from lmms_eval_tasks.utils import aggregate
from lmms_eval_tasks.utils.aggregate import Carrier, Item, never_raises

JOINED = ("best_uni", "best_multi", "delta_multi")

SOUND = ("delivered", "unknown", "raises", "not delivered")  # states of an item, best first
WITHOUT = frozenset({"raises", "not delivered"})  # no sound arrived
WITH_SOUND = tuple(slug for slug, mode in MODES.items() if mode.sound)


def worst_sound(states: Sequence[str]) -> str:
    """The worst of several states; "" of none.

    Raises:
        ValueError: a state that SOUND does not name.
    """
    known = [state for state in states if state]
    return max(known, key=SOUND.index) if known else ""


def left_out(sound: Mapping[str, str]) -> set[str]:
    """Modes whose sound did not arrive.

    Args:
        sound: mode -> state. Where one of the two modes with sound has none (samples saved before
            each item had both), the other's holds.
    """
    known = {mode: sound[mode] for mode in WITH_SOUND if sound.get(mode)}
    fallback = worst_sound(list(known.values()))
    return {mode for mode in WITH_SOUND if known.get(mode, fallback) in WITHOUT}


def carrier(reduce: str, items: Sequence[Item]) -> Carrier:
    """What one mode's task hands to the group: its accuracy and what becomes of sound.

    Args:
        reduce: a member of JOINED.
        items: one mode's choice items; withheld ones do not count.

    Raises:
        ValueError: items of several modes.
    """
    modes = {item["mode"] for item in items}
    if len(modes) > 1:
        raise ValueError(f"{reduce}: items of several modes ({', '.join(sorted(modes))})")
    accuracy = aggregate.accuracy([item for item in items if not item["withheld"]])
    part = {"acc": accuracy, **{f"sound_{mode}": heard(items, mode) for mode in WITH_SOUND}}
    return Carrier("".join(modes), {"mode": part}, reduce)


def heard(items: Sequence[Item], mode: str) -> str:
    """The worst state of a mode's sound that items tell of; "" if they do not.

    Args:
        items: of one mode, this one or another; without `hears` they tell of their own alone.
        mode: a member of WITH_SOUND.
    """
    own = [item["sound"] for item in items if item["mode"] == mode]
    told = [item["hears"][mode] for item in items if item.get("hears")]
    return worst_sound(own or told)


@never_raises
def join(carriers: Sequence[Any], _sizes: Any = None, _weight_by_size: Any = None) -> float | None:
    """One of JOINED for the host's group.

    Args:
        carriers: the modes' values under one metric name, in any order.

    Returns:
        A share or a difference of shares; None where a mode is missing, or is there twice.
    """
    sides = [c for c in carriers if isinstance(c, Carrier)]
    parts = {c.side: c.scores["mode"] for c in sides}
    if not sides or len(parts) < len(sides):
        return None
    sound = {}
    for mode in WITH_SOUND:
        # What a mode's own items say of its sound goes before what the others' do.
        told = [parts[mode]] if mode in parts else list(parts.values())
        sound[mode] = worst_sound([part[f"sound_{mode}"] for part in told])
    accuracies = {mode: part["acc"] for mode, part in parts.items()}
    return joined(accuracies, sound, sides[0].reduce)


def joined(
    accuracies: Mapping[str, float | None], sound: Mapping[str, str], reduce: str
) -> float | None:
    """Best-Uni = max(A, S, V), Best-Multi = max(V+S, V+A), or multi less uni (Table 3's caption).

    Args:
        accuracies: mode -> accuracy in 0..1.
        sound: mode -> state, as in `left_out`; modes left out are not asked for.
        reduce: a member of JOINED.

    Returns:
        None unless every mode that is asked for has an accuracy: the best of fewer modes would be
        another number under the same name.
    """
    silent = left_out(sound)

    def best(modes: Sequence[str]) -> float | None:
        found = [accuracies.get(mode) for mode in modes if mode not in silent]
        numbers = [value for value in found if value is not None]
        return max(numbers) if len(numbers) == len(found) else None

    uni, multi = best(UNIMODAL), best(MULTIMODAL)
    delta = None if uni is None or multi is None else multi - uni
    return {"best_uni": uni, "best_multi": multi, "delta_multi": delta}[reduce]


def unlike(asked: Mapping[str, Collection[str]]) -> str:
    """What to say if modes were not asked the same items: the best of them compares unlike ones.

    Args:
        asked: mode -> ids of its items.

    Returns:
        "" if they were, or there is one mode alone.
    """
    if len({frozenset(ids) for ids in asked.values()}) < 2:
        return ""
    counts = ", ".join(
        f"{m.title} {len(asked[slug])}" for slug, m in MODES.items() if slug in asked
    )
    return f"the modes were not asked the same items ({counts})"
