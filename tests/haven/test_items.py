"""From a video to a task's doc: draws, shuffles, frames shown, K, and what has no say in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.haven import items, schema
from lmms_eval_tasks.haven.labels import TASKS, budget
from lmms_eval_tasks.haven.options import Options
from tests.haven.docs import doc
from tests.haven.release_files import write

NAMES = list(TASKS)
ADDED = {"kind", "text", "with_document", "budget", "n_sentences", "units", "unit_frames"}
ADDED |= {"sentences"}


def row(**given: Any) -> items.Row:
    """A row of one video: a hand-made doc without what a task adds."""
    return {name: value for name, value in doc("haven_v2t", **given).items() if name not in ADDED}


def made(task: str, given: items.Row | None = None, **options: Any) -> items.Row:
    return items.doc(
        row(frames=60, shots=12) if given is None else given, TASKS[task], Options(**options)
    )


def by_hand(numbers: Sequence[int], use: str, seed: int = 0, name: str = "tvsum/video_7") -> Any:
    return sorted(
        numbers, key=lambda n: hashlib.sha256(f"{seed}:{use}:{name}:{n}".encode()).hexdigest()
    )


class TestRow:
    """A record in plain types, all numbers from 1 but picks."""

    def test_of_a_release(self, tmp_path: Path) -> None:
        release = schema.read(write(tmp_path, videos=1), Options())
        (record,) = release.records
        found = items.row(record, "abc")
        assert json.loads(json.dumps(found)) == found
        assert (found["id"], found["source"], found["video"]) == (
            "tvsum/video_1",
            "tvsum",
            "video_1",
        )
        assert found["video_path"].endswith("/videos/tvsum/video_1.mp4")
        assert found["picks"] == [15 * n for n in range(20)]
        assert found["shots"] == [list(range(n, n + 5)) for n in (1, 6, 11, 16)]
        assert found["document_shots"] == [[1, 2], [3, 4]]
        assert found["summary_shots"] == [[1, 2, 3], [4]]
        assert len(found["importance"]) == len(found["shot_texts"]) == 4
        assert len(found["descriptions"]) == 20
        assert found["data"] == "abc"
        # The three frames of most importance are its true ones, as K = floor(0.15 * 20) = 3.
        assert len(found["keyframes"]) == 3

    def test_without_hdf5_and_video(self, tmp_path: Path) -> None:
        (record,) = schema.read(write(tmp_path, videos=1, hdf5=False), Options()).records
        found = items.row(record, "")
        assert found["importance"] == []
        assert items.row(record.__class__(**{**vars(record), "path": None}), "")["video_path"] == ""


@pytest.mark.parametrize(
    ("frames", "k"),
    [
        (1, 1),
        (6, 1),
        (7, 1),
        (13, 1),
        (14, 2),
        (19, 2),
        (20, 3),
        (40, 6),
        (60, 9),
        (165, 24),
        (100, 15),
        (99, 14),
        (101, 15),
        (199, 29),
        (320, 48),
    ],
)
def test_k(frames: int, k: int) -> None:
    """max(1, floor(0.15 F)), whatever the number of true keyframes."""
    assert budget(frames) == k
    for keyframes in ([1], list(range(1, frames + 1))):
        given = row(frames=frames, shots=1, sentences=1, keyframes=keyframes)
        assert made("haven_v2v", given)["budget"] == k


class TestOrders:
    """Shuffles depend on seed and id alone, and with the document they are the same."""

    def test_by_hand(self) -> None:
        assert made("haven_temporal")["units"] == by_hand(range(1, 13), "shuffled shot")
        assert made("haven_temporal_text")["units"] == by_hand(range(1, 13), "shuffled sentence")
        shown = made("haven_grounding", row(shots=4, sentences=4))["sentences"]
        assert shown == by_hand(range(1, 5), "shuffled summary")

    @pytest.mark.parametrize("kind", ["temporal", "saliency"])
    def test_the_document_changes_nothing_else(self, kind: str) -> None:
        with_document = made(f"haven_{kind}_doc", max_shots=5)
        without = made(f"haven_{kind}", max_shots=5)
        assert with_document.pop("with_document") is True
        assert without.pop("with_document") is False
        assert with_document == without

    @pytest.mark.parametrize("task", ["haven_temporal", "haven_temporal_text"])
    def test_seed_and_id_alone(self, task: str) -> None:
        given = row(frames=60, shots=12)
        base = made(task, given)["units"]
        assert sorted(base) == list(range(1, 13)) != base
        other = {
            **given,
            "importance": [1.0] * 12,
            "keyframes": [9],
            "data": "x",
            "video": "y",
            "video_path": "/z",
            "descriptions": ["?"] * 60,
            "picks": list(range(60)),
        }
        assert made(task, other, size=64, frames_per_shot=1)["units"] == base
        assert made(task, {**given, "id": "tvsum/video_8"})["units"] != base
        assert made(task, given, seed=1)["units"] != base

    def test_nothing_follows_the_true_order(self) -> None:
        """Over many videos each shot is first about as often: 600 videos, 4 shots, 150 each."""
        first = [0] * 4
        for n in range(600):
            given = row(shots=4, sentences=4, id=f"tvsum/video_{n}")
            first[made("haven_temporal", given)["units"][0] - 1] += 1
        assert all(abs(count - 150) < 4 * (600 * 0.25 * 0.75) ** 0.5 for count in first), first

    def test_saliency_and_grounding_stay_in_order(self) -> None:
        for task in ("haven_saliency", "haven_saliency_text", "haven_grounding"):
            assert made(task)["units"] == list(range(1, 13))
        for task in ("haven_v2t", "haven_v2v_text", "haven_v2vt"):
            assert made(task)["units"] == []


class TestDraws:
    """Of more than max_shots, so many are drawn by the item's id; grounding shows all."""

    def test_by_hand(self) -> None:
        drawn = by_hand(range(1, 13), "drawn shot")[:5]
        assert made("haven_saliency", max_shots=5)["units"] == sorted(drawn)
        shuffled = by_hand(drawn, "shuffled shot")
        assert made("haven_temporal", max_shots=5)["units"] == shuffled
        sentences = by_hand(range(1, 13), "drawn sentence")[:5]
        found = made("haven_temporal_text", max_shots=5)["units"]
        assert found == by_hand(sentences, "shuffled sentence")

    def test_not_the_first_ones(self) -> None:
        counts = [0] * 12
        for n in range(240):
            given = row(frames=60, shots=12, id=f"ovp/video_{n}")
            for unit in made("haven_saliency", given, max_shots=4)["units"]:
                counts[unit - 1] += 1
        # Each of 12 is drawn in a third of 240: 80, with a standard deviation of 7.3.
        assert all(abs(count - 80) < 4 * 7.4 for count in counts), counts

    @pytest.mark.parametrize("most", [12, 13, 30])
    def test_as_many_as_there_are(self, most: int) -> None:
        assert sorted(made("haven_temporal", max_shots=most)["units"]) == list(range(1, 13))
        assert made("haven_saliency", max_shots=most)["units"] == list(range(1, 13))

    def test_grounding_shows_all(self) -> None:
        found = made("haven_grounding", row(shots=12, sentences=9), max_shots=2)
        assert found["units"] == list(range(1, 13))
        assert sorted(found["sentences"]) == list(range(1, 10))


class TestFrames:
    """Pictures of a shot: uniform over its sampled frames."""

    @pytest.mark.parametrize(
        ("frames", "limit", "shown"),
        [
            ([3, 4, 5], 0, [3, 4, 5]),
            ([3, 4, 5], 1, [3]),
            ([3, 4, 5], 2, [3, 5]),
            ([3, 4, 5], 4, [3, 4, 5]),
            ([10, 11, 12, 13, 14], 3, [10, 12, 14]),
            ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 4, [1, 4, 7, 10]),
            ([7], 4, [7]),
            ([2, 9], 4, [2, 9]),
        ],
    )
    def test_uniform(self, frames: list[int], limit: int, shown: list[int]) -> None:
        assert items.shown(frames, limit) == shown

    def test_of_each_unit_in_the_order_shown(self) -> None:
        given = row(frames=24, shots=3)  # eight frames each
        found = made("haven_temporal", given, frames_per_shot=2)
        ends = {1: [1, 8], 2: [9, 16], 3: [17, 24]}
        assert found["unit_frames"] == [ends[unit] for unit in found["units"]]
        whole = made("haven_saliency", given, frames_per_shot=0)["unit_frames"]
        assert [len(one) for one in whole] == [8, 8, 8]

    @pytest.mark.parametrize("task", NAMES)
    def test_how_many_pictures(self, task: str) -> None:
        given = row(frames=24, shots=3)
        n_images = items.n_images(made(task, given, frames_per_shot=5))
        of_task = TASKS[task]
        if of_task.text:
            assert n_images == 0
        elif of_task.kind in ("v2t", "v2v", "v2vt"):
            assert n_images == 24
        else:
            assert n_images == 15


class TestSentences:
    """What is asked for, and which sentences are asked about."""

    @pytest.mark.parametrize("task", NAMES)
    def test_asked_for(self, task: str) -> None:
        given = row(shots=4, sentences=2)
        summary = TASKS[task].kind in ("v2t", "v2vt")
        assert made(task, given)["n_sentences"] == (4 if summary else 0)
        assert made(task, given, sentences=7)["n_sentences"] == (7 if summary else 0)
        assert made(task, given, sentences="reference")["n_sentences"] == (2 if summary else 0)

    @pytest.mark.parametrize("task", ["haven_grounding", "haven_grounding_text"])
    def test_those_without_shots_are_not_asked_about(self, task: str) -> None:
        given = row(shots=4, sentences=4, summary_shots=[[1, 2], [], [4], []])
        assert sorted(made(task, given)["sentences"]) == [1, 3]
        assert made("haven_saliency", given)["sentences"] == []


@pytest.mark.parametrize("task", NAMES)
def test_a_doc_is_the_row_and_what_the_task_adds(task: str) -> None:
    given = row()
    found = made(task, given)
    assert {name: found[name] for name in given} == given
    assert found.keys() - given.keys() == ADDED
    assert json.loads(json.dumps(found)) == found
    assert (found["kind"], found["text"]) == (TASKS[task].kind, task.endswith("_text"))
    assert found["with_document"] is task.endswith("_doc")


def test_orders_differ_between_videos() -> None:
    """No two neighbours of twenty videos are shown alike."""
    orders = [
        made("haven_temporal", row(frames=60, shots=12, id=f"a/{n}"))["units"] for n in range(20)
    ]
    assert all(one != other for one, other in pairwise(orders))
