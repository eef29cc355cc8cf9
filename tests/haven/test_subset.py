"""The subsets of the two large sources: the same for everyone."""

from __future__ import annotations

import hashlib
import random

import pytest

from lmms_eval_tasks.haven import subset
from lmms_eval_tasks.haven.options import Options

FIRST = {
    "mrhisum": ["video_63", "video_66", "video_246", "video_292", "video_449"],
    "videoxum": ["video_158", "video_203", "video_275", "video_288", "video_499"],
}
VIDEOS = [f"video_{number}" for number in range(1, 501)]


def test_the_smallest_hashes_of_the_documented_text() -> None:
    digests = {v: hashlib.sha256(f"0:mrhisum/{v}".encode()).hexdigest() for v in VIDEOS}
    expected = set(sorted(VIDEOS, key=digests.__getitem__)[:100])
    assert set(subset.chosen("mrhisum", VIDEOS, Options())) == expected


def test_fixed_for_ever() -> None:
    """Numbers of other people's runs hang on these; they may not change."""
    assert subset.chosen("mrhisum", VIDEOS, Options(subset=5)) == FIRST["mrhisum"]
    assert subset.chosen("videoxum", VIDEOS, Options(subset=5)) == FIRST["videoxum"]


def test_independent_of_the_order_in_the_file() -> None:
    shuffled = random.Random(1).sample(VIDEOS, len(VIDEOS))
    assert subset.chosen("videoxum", shuffled, Options()) == subset.chosen(
        "videoxum", VIDEOS, Options()
    )


def test_seed_source_and_size_matter() -> None:
    found = [
        tuple(subset.chosen("mrhisum", VIDEOS, Options())),
        tuple(subset.chosen("mrhisum", VIDEOS, Options(seed=1))),
        tuple(subset.chosen("videoxum", VIDEOS, Options())),
    ]
    assert len(set(found)) == 3
    assert {len(one) for one in found} == {100}
    smaller = subset.chosen("mrhisum", VIDEOS, Options(subset=7))
    assert len(smaller) == 7
    assert set(smaller) < set(found[0])


@pytest.mark.parametrize(
    ("source", "size"), [("tvsum", 100), ("youtube", 3), ("mrhisum", 0), ("videoxum", 500)]
)
def test_all_videos(source: str, size: int) -> None:
    assert subset.chosen(source, reversed(VIDEOS), Options(subset=size)) == VIDEOS


def test_natural_order() -> None:
    names = ["video_10", "video_2", "b", "video_2_1", "a3", "video_02", "10", "9"]
    assert sorted(names, key=subset.natural) == [
        "9", "10", "a3", "b", "video_02", "video_2", "video_2_1", "video_10",
    ]  # fmt: skip
