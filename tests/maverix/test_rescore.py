"""MAVERIX's saved runs: the same numbers again, and Table 3 over runs made one by one."""

from __future__ import annotations

import pytest

from lmms_eval_tasks.maverix.labels import MODES
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import saved_runs
from tests.maverix import runs
from tests.maverix.runs import memory, sample

__all__ = ["memory", "sample"]
pytestmark = pytest.mark.usefixtures("sample")
RIGHT = {"a": 3, "s": 5, "v": 7, "vs": 9, "av": 11}  # of 20, by mode


def choice(mode: str = "s", model: str | None = "m (x)", count: int = 20) -> saved_runs.Run:
    docs = runs.docs(f"maverix_{mode}")[:count]
    good = {doc["id"] for doc in docs[: RIGHT[mode]]}
    items = runs.score(docs, lambda doc: runs.right(doc) if doc["id"] in good else runs.wrong(doc))
    return runs.run(f"maverix_{mode}", items, model)


def again(*own: saved_runs.Run) -> rescore.Rescored:
    return rescore.rescore_saved(BENCHMARK, own, None)


def test_the_same_numbers() -> None:
    for task in ("maverix_s", "maverix_s_circular", "maverix_s_oe"):
        items = runs.score(runs.docs(task), runs.some_right)
        hidden = runs.score([runs.withheld(doc) for doc in runs.docs(task)], lambda _: "B")
        for own in (items, hidden):
            done = again(runs.run(task, own[::-1]))
            assert done.numbers == {task: runs.numbers(task, own)}
            assert done.sidecar[task]["items"] == len(own)
        if "acc" in runs.numbers(task, items):
            assert 0 < runs.numbers(task, items)["acc"] < 1


def test_table_3() -> None:
    best = {"best_uni": 7 / 20, "best_multi": 11 / 20, "delta_multi": 11 / 20 - 7 / 20}
    done = again(*(choice(mode) for mode in MODES))
    assert (done.numbers["maverix_table3"], done.notes) == (best, [])
    done = again(*(choice(mode) for mode in ("a", "s", "v", "vs")))
    found = done.numbers["maverix_table3"]
    assert (found["best_uni"], found["best_multi"]) == (7 / 20, None)
    assert done.notes == ["maverix_table3: without V+A"]
    (note,) = again(*(choice(m, count=12 if m == "av" else 20) for m in MODES)).notes
    assert "not asked the same items (A 20, S 20, V 20, V+S 20, V+A 12)" in note


def test_what_is_not_joined() -> None:
    """Models are not mixed; whole videos and rotations are no part."""
    done = again(*(choice(mode, model) for model in ("m (x)", "n (y)") for mode in ("a", "s")))
    assert {"maverix_table3 m (x)", "maverix_table3 n (y)"} <= done.numbers.keys()
    assert "maverix_a n (y)" in done.numbers
    others = [
        runs.run(task, runs.score(runs.docs(task)[:8], runs.right))
        for task in ("maverix_long_v", "maverix_v_circular")
    ]
    for own in ([choice("a"), choice("s", "n (y)")], [choice("s"), *others]):
        assert not [name for name in again(*own).numbers if "table3" in name]
