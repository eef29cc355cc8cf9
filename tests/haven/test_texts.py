"""BERTScore and CLIPScore of many items; models here are tiny and random: rules, not quality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.haven import data, inputs
from lmms_eval_tasks.haven import judge as texts
from lmms_eval_tasks.haven.settings import CLIPSCORE, HAVEN
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.metrics import clipscore, local_models
from tests.checks import refused
from tests.haven.docs import doc
from tests.haven.release_files import write
from tests.haven.scored import FAILED, Item, no_bert, numbers, video, whole

JOINT = "SUMMARY:\n1. In short: thing.\nIMPORTANT FRAMES: [Frame 1, Frame {n}]"


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No result of another test, and no model of the developer's cache or settings."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv(settings.JUDGE, "none")
    local_models.loaded.cache_clear()
    yield
    local_models.loaded.cache_clear()


# --- CLIPScore ------------------------------------------------------------------------------------


@pytest.fixture
def clip(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A CLIP model by hand: sentences times frames; video 9's pictures cannot be opened."""
    asked: list[tuple[Any, ...]] = []

    def pictures(one: texts.SummaryFrames, _: object) -> list[Any]:
        assert one.record == doc("haven_v2vt")["record"]
        if one.video.endswith("_9"):
            raise MediaError(f"{one.video}: gone")
        return [(one.video, number) for number in one.frames]

    def score(sentences: Sequence[str], given: Sequence[Any], model: str) -> tuple[float, str]:
        assert model == "by hand"
        asked.append((list(sentences), list(given)))
        return len(sentences) * len(given) / 4, ""

    no_bert(monkeypatch)
    monkeypatch.setenv(CLIPSCORE, "by hand")
    monkeypatch.setattr(local_models, "problem", lambda kind, model: None)
    monkeypatch.setattr(clipscore, "clip_score", score)
    monkeypatch.setattr(clipscore, "describe_encoder", lambda model: f"CLIP {model}")
    monkeypatch.setattr(texts, "pictures", pictures)
    monkeypatch.setattr(texts, "data", SimpleNamespace(load_haven=lambda: None))
    return asked


def joint(number: int, reply: str = JOINT, source: str = "tvsum", **more: Any) -> Item:
    return whole("haven_v2vt", reply.replace("{n}", str(number)), **video(number, source), **more)


def test_clipscore_of_items(clip: list[tuple[Any, ...]]) -> None:
    """One sentence and two frames are worth 1/2; without a summary, frames or reply 0."""
    some = [joint(2), joint(3, "[Frame 1]"), joint(4, "SUMMARY:\n1. A cat."), joint(5, FAILED)]
    found = numbers("haven_v2vt", some)
    assert found["clipscore"] == pytest.approx(0.5 / 4)
    assert found["clipscore_valid"] == 0.5
    assert clip[0] == (["In short: thing."], [("tvsum/video_2", 1), ("tvsum/video_2", 2)])
    assert provenance.implementation_notes("haven")["clipscore"] == "CLIP by hand"
    # Failed replies need no picture: 0, and nothing is lost.
    found = numbers("haven_v2vt", [joint(9, ""), joint(3, FAILED)])
    assert found["clipscore"] == 0.0
    assert found["clipscore_valid"] == 0.0  # of the empty reply
    assert "clipscore_lost" not in provenance.implementation_notes("haven")


def test_lost_pictures(clip: list[tuple[Any, ...]]) -> None:
    """One that has no pictures any more, and nothing is computed: a mean of the others with failed
    replies, which count 0 and need no pictures, would be too low. It is told, whatever comes next.
    """
    found = numbers("haven_v2vt", [joint(2), joint(9), joint(1, ""), joint(3, JOINT, "ovp")])
    assert found["clipscore_ovp"] == 0.5
    lost = ("clipscore", "clipscore_valid", "clipscore_tvsum", "clipscore_sources")
    assert {found[name] for name in lost} == {None}
    assert provenance.implementation_notes("haven")["clipscore"] == "CLIP by hand"
    assert provenance.implementation_notes("haven")["clipscore_lost"] == (
        "CLIPScore not computed: 1 without pictures, such as tvsum/video_9: gone"
    )
    assert provenance.implementation_notes("haven")["clipscore_lost"] in texts.doubts()


def test_pictures(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own frames, wherever they are now, opened only when they are embedded."""
    opened: list[tuple[str, list[int]]] = []

    def fake(path: str, picks: list[int], numbers: list[int]) -> list[Any]:
        opened.append((Path(path).name, numbers))
        return [picks[numbers[0] - 1]]

    known = {record.id: data.row(record, "")["record"] for record in data.load_haven().records}

    def pictures(name: str, *frames: int) -> list[Any]:
        return texts.pictures(texts.SummaryFrames(name, known[name], [], frames), data.load_haven())

    with monkeypatch.context() as patched:
        patched.setattr(inputs, "pictures", fake)
        first, second = pictures("tvsum/video_2", 1, 20)
        assert opened == []
        assert (first.open(), second.open()) == (0, 285)
        assert opened == [("video_2.mp4", [1]), ("video_2.mp4", [20])]
        patched.setenv(HAVEN, "size=64")
        (other,) = pictures("tvsum/video_2", 1)
        assert len({first.key, second.key, other.key}) == 3
    (user / "videos" / "summe" / "video_1.mp4").unlink()
    refused(DataError, r"^summe/video_1: missing: ", pictures, "summe/video_1", 3)
    # Other data: the same numbers would be other frames.
    write(user, "tvsum", 2, frames=40)
    told = "has no tvsum/video_1 like the one that the replies"
    refused(DataError, told, pictures, "tvsum/video_1", 1)
