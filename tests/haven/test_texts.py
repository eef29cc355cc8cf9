"""BERTScore and CLIPScore of many items; models here are tiny and random: rules, not quality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.haven import data, inputs, metrics
from lmms_eval_tasks.haven import judge as texts
from lmms_eval_tasks.utils import provenance
from lmms_eval_tasks.utils.metrics import clipscore, local_models
from lmms_eval_tasks.utils.metrics.bertscore import bert_score
from tests.checks import refused
from tests.haven.docs import doc
from tests.haven.release_files import write
from tests.haven.scored import FAILED, Item, no_models, numbers, video, whole
from tests.utils.metrics import tiny_bert

CANDIDATES = ["Un uomo corre nel parco", "", "Il gatto dorme.", "chitarra", "un gatto"]
REFERENCES = ["Un uomo dipinge la barca", "un gatto", "Il gatto nero dorme.", "", "un gatto"]
JOINT = "SUMMARY:\n1. In short: thing.\nIMPORTANT FRAMES: [Frame 1, Frame {n}]"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert.build(tmp_path_factory.mktemp("models") / "bert", max_length=16))


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No result of another test, and no model of the developer's cache or settings."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv(settings.JUDGE, "none")
    monkeypatch.setattr(provenance, "_notes", {})
    local_models.loaded.cache_clear()
    yield
    local_models.loaded.cache_clear()


def told() -> dict[str, str]:
    found: dict[str, str] = provenance.notes().get(texts.NOTES, {})
    return found


# --- BERTScore ------------------------------------------------------------------------------------


def test_bertscore_per_item(bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a reference there is none."""
    monkeypatch.setenv(settings.BERTSCORE, bert)

    def alone(place: int) -> float | None:
        return bert_score([CANDIDATES[place]], [[REFERENCES[place]]], model=bert).value

    items = [
        {"candidate": one, "summary": [other]}
        for one, other in zip(CANDIDATES, REFERENCES, strict=True)
    ]
    assert texts.bertscore(items) == [alone(0), 0.0, alone(2), None, alone(4)]
    assert alone(0) != alone(2)
    assert "0 texts of 4 different items cut to 16 tokens" in told()["bertscore"]


def test_a_mean_of_nothing_takes_no_notes_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """`_valid` of replies that all failed; BERTScore's numbers of items are in tests/golden."""
    no_models(monkeypatch)
    found = numbers("haven_v2t", [whole("haven_v2t", FAILED)])
    assert (found["bertscore"], found["bertscore_valid"]) == (0.0, None)
    assert told()["bertscore"] == "BERTScore by hand"


# --- CLIPScore ------------------------------------------------------------------------------------


@pytest.fixture
def clip(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A CLIP model by hand: sentences times frames; video 9's pictures cannot be opened."""
    asked: list[tuple[Any, ...]] = []

    class Score:
        def __init__(self, value: float) -> None:
            self.value = value

    class Pictures:
        def of(self, name: str, record: str, frames: Sequence[int]) -> list[Any]:
            assert record == doc("haven_v2vt")["record"]
            if name.endswith("_9"):
                raise MediaError(f"{name}: gone")
            return [(name, number) for number in frames]

    def score(sentences: Sequence[str], given: Sequence[Any], model: str) -> Score:
        assert model == "by hand"
        asked.append((list(sentences), list(given)))
        return Score(len(sentences) * len(given) / 4)

    no_models(monkeypatch)
    monkeypatch.setattr(texts, "clip_values", _CLIP_VALUES)
    monkeypatch.setenv(settings.CLIPSCORE, "by hand")
    monkeypatch.setattr(clipscore, "clip_score", score)
    monkeypatch.setattr(clipscore, "describe", lambda model: f"CLIP {model}")
    monkeypatch.setattr(texts, "Pictures", Pictures)
    return asked


_CLIP_VALUES = texts.clip_values


def joint(number: int, reply: str = JOINT, source: str = "tvsum", **more: Any) -> Item:
    return whole("haven_v2vt", reply.replace("{n}", str(number)), **video(number, source), **more)


def test_clipscore_of_items(clip: list[tuple[Any, ...]]) -> None:
    """One sentence and two frames are worth 1/2; without a summary, frames or reply 0."""
    some = [joint(2), joint(3, "[Frame 1]"), joint(4, "SUMMARY:\n1. A cat."), joint(5, FAILED)]
    found = numbers("haven_v2vt", some)
    assert found["clipscore"] == pytest.approx(0.5 / 4)
    assert found["clipscore_valid"] == 0.5
    assert clip[0] == (["In short: thing."], [("tvsum/video_2", 1), ("tvsum/video_2", 2)])
    assert told()["clipscore"] == "CLIP by hand"
    found = numbers("haven_v2vt", [joint(2), joint(1, "", "ovp")])
    assert (found["clipscore_ovp"], found["clipscore_sources"]) == (0.0, 0.25)
    # Failed replies need no picture: 0, and nothing is lost.
    found = numbers("haven_v2vt", [joint(9, ""), joint(3, FAILED)])
    assert (found["clipscore"], found["clipscore_all"]) == (0.0, 0.0)
    assert found["clipscore_valid"] == 0.0  # of the empty reply
    assert "clipscore_lost" not in told()


def test_lost_pictures(clip: list[tuple[Any, ...]]) -> None:
    """One that has no pictures any more, and nothing is computed: a mean of the others with failed
    replies, which count 0 and need no pictures, would be too low. It is told, whatever comes next.
    """
    found = numbers("haven_v2vt", [joint(2), joint(9), joint(1, ""), joint(3, JOINT, "ovp")])
    assert found["clipscore_ovp"] == 0.5
    lost = ("clipscore", "clipscore_valid", "clipscore_tvsum", "clipscore_sources")
    baselines = [f"clipscore_{name}" for name in metrics.CLIP_BASELINES]
    assert {found[name] for name in (*lost, *baselines)} == {None}
    assert told()["clipscore"] == "CLIP by hand"
    assert told()["clipscore_lost"] == (
        "CLIPScore not computed: 1 without pictures of theirs, as: tvsum/video_9: gone"
    )
    assert texts.doubts() == [told()["clipscore_lost"]]


def test_pictures(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own frames, wherever they are now, opened only when they are embedded."""
    opened: list[tuple[str, list[int]]] = []

    def fake(row: dict[str, Any], numbers: list[int]) -> list[Any]:
        opened.append((Path(row["video_path"]).name, numbers))
        return [row["picks"][numbers[0] - 1]]

    with monkeypatch.context() as patched:
        patched.setattr(inputs, "pictures", fake)
        known = {record.id: data.row(record, "")["record"] for record in data.load().records}
        first, second = texts.Pictures().of("tvsum/video_2", known["tvsum/video_2"], [1, 20])
        assert opened == []
        assert (first.open(), second.open()) == (0, 285)
        assert opened == [("video_2.mp4", [1]), ("video_2.mp4", [20])]
        patched.setenv(settings.HAVEN, "size=64")
        (other,) = texts.Pictures().of("tvsum/video_2", known["tvsum/video_2"], [1])
        assert len({first.key, second.key, other.key}) == 3
    (gone,) = texts.Pictures().of("summe/video_1", known["summe/video_1"], [3])
    file = user / "videos" / "summe" / "video_1.mp4"
    file.unlink()
    refused(MediaError, "summe/video_1", gone.open)
    with pytest.raises(DataError, match=r"^summe/video_1: missing: "):
        texts.Pictures().of("summe/video_1", known["summe/video_1"], [3])
    file.write_text("bad")
    with pytest.raises(DataError, match=r"^summe/video_1: unreadable: "):
        texts.Pictures().of("summe/video_1", known["summe/video_1"], [3])
    # Other data: the same numbers would be other frames.
    write(user, "tvsum", 2, frames=40)
    with pytest.raises(DataError, match="its tvsum/video_1 is not the one that the replies"):
        texts.Pictures().of("tvsum/video_1", known["tvsum/video_1"], [1])
