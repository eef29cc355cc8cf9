"""BERTScore and CLIPScore of many items: what counts 0, what has no value, what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.haven import (
    checked,
    clip_pictures,
    data,
    items,
    options,
    pictures,
    scores,
    text_scores,
    text_values,
    usability,
)
from lmms_eval_tasks.haven.text_values import Asked
from lmms_eval_tasks.utils import keyframes, provenance
from tests.haven.docs import doc
from tests.haven.release_files import write
from tests.haven.scored import FAILED, Made, broken, made, no_encoder, values

JOINT = "SUMMARY:\n1. In short: thing.\nIMPORTANT FRAMES: [Frame 1, Frame {n}]"


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.JUDGE, "none")
    monkeypatch.setattr(provenance, "_notes", {})
    no_encoder(monkeypatch)


def told() -> dict[str, str]:
    found: dict[str, str] = provenance.notes().get(text_values.NOTES, {})
    return found


def video(number: int, source: str = "tvsum") -> dict[str, str]:
    return {"id": f"{source}/video_{number}", "source": source}


class TestBertscore:
    def test_what_counts(self) -> None:
        """A summary whose words the reference all has, one of which it has half, three of none."""
        some = [
            made("haven_v2t", "In short: thing", **video(1)),
            made("haven_v2t", "In bed", **video(2)),
            made("haven_v2t", "", **video(3)),
            made("haven_v2t", FAILED, **video(4)),
            broken("haven_v2t", **video(5)),
        ]
        found = values("haven_v2t", some)
        assert found["bertscore"] == pytest.approx(1.5 / 5)
        assert found["bertscore_valid"] == pytest.approx(1.5 / 3)
        assert told()["bertscore"] == "BERTScore by hand"

    def test_nothing_asked_is_nothing_told(self) -> None:
        """`_valid` of replies that all failed must not take the place of what is known."""
        found = values("haven_v2t", [made("haven_v2t", FAILED)])
        assert (found["bertscore"], found["bertscore_valid"]) == (0.0, None)
        assert told()["bertscore"] == "BERTScore by hand"

    def test_equal_texts_are_asked_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []
        fake = text_scores.bertscore

        def counted(candidates: Sequence[str], references: Sequence[str]) -> Any:
            asked.append(len(candidates))
            return fake(candidates, references)

        monkeypatch.setattr(text_scores, "bertscore", counted)
        items = [made("haven_v2t", "In bed", **video(n))["bertscore"] for n in (1, 2)]
        assert text_values.bertscore(items) == [0.5, 0.5]
        assert asked == [1]


@pytest.fixture
def clip(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A CLIP model by hand: sentences times frames; video 9's pictures cannot be opened."""
    asked: list[tuple[Any, ...]] = []

    def of(name: str, record: str, frames: Sequence[int]) -> list[Any]:
        assert record == doc("haven_v2vt")["record"]
        if name.endswith("_9"):
            raise MediaError(f"{name}: gone")
        return [(name, number) for number in frames]

    def score(sentences: Sequence[str], given: Sequence[Any]) -> float:
        asked.append((list(sentences), list(given)))
        return len(sentences) * len(given) / 4

    monkeypatch.setattr(text_scores, "clip_problem", lambda: None)
    monkeypatch.setattr(text_scores, "clip_note", lambda: "CLIP by hand")
    monkeypatch.setattr(text_scores, "clipscore", score)
    monkeypatch.setattr(clip_pictures, "of", of)
    return asked


def joint(number: int, reply: str = JOINT, source: str = "tvsum") -> Made:
    return made("haven_v2vt", reply.replace("{n}", str(number)), **video(number, source))


class TestClipscore:
    def test_what_counts(self, clip: list[tuple[Any, ...]]) -> None:
        """One sentence and two frames are worth 1/2; without a summary, frames or reply 0."""
        some = [joint(2), joint(3, "[Frame 1]"), joint(4, "SUMMARY:\n1. A cat."), joint(5, FAILED)]
        found = values("haven_v2vt", some)
        assert found["clipscore"] == pytest.approx(0.5 / 4)
        assert found["clipscore_valid"] == 0.5
        assert clip[0] == (["In short: thing."], [("tvsum/video_2", 1), ("tvsum/video_2", 2)])
        assert told()["clipscore"] == "CLIP by hand"

    def test_a_source_of_failures_is_worth_0(self, clip: list[tuple[Any, ...]]) -> None:
        found = values("haven_v2vt", [joint(2), joint(1, "", "ovp")])
        assert (found["clipscore_ovp"], found["clipscore_sources"]) == (0.0, 0.25)

    def test_lost_pictures(self, clip: list[tuple[Any, ...]]) -> None:
        """One that has no pictures any more, and nothing is computed: a mean of the others with
        failed replies, which count 0 and need no pictures, would be too low. It is told, whatever
        is asked next."""
        found = values("haven_v2vt", [joint(2), joint(9), joint(1, ""), joint(3, JOINT, "ovp")])
        assert found["clipscore_ovp"] == 0.5
        lost = ("clipscore", "clipscore_valid", "clipscore_tvsum", "clipscore_sources")
        baselines = [f"clipscore_{name}" for name in scores.CLIP_BASELINES]
        assert {found[name] for name in (*lost, *baselines)} == {None}
        assert told()["clipscore"] == "CLIP by hand"
        assert told()["clipscore_lost"] == (
            "CLIPScore not computed: 1 without pictures of theirs, as: tvsum/video_9: gone"
        )

    def test_only_failed_replies(self, clip: list[tuple[Any, ...]]) -> None:
        """They need no picture: 0, and nothing is lost."""
        found = values("haven_v2vt", [joint(9, ""), joint(3, FAILED)])
        assert (found["clipscore"], found["clipscore_random"]) == (0.0, 0.0)
        assert found["clipscore_valid"] == 0.0  # of the empty reply
        assert "clipscore_lost" not in told()

    def test_baselines(self, clip: list[tuple[Any, ...]]) -> None:
        """In place of the two frames selected of twenty: all of them, and K = 3 others."""
        reply = JOINT.replace("{n}", "5")
        items = [made("haven_v2vt", r, frames=20, **video(n)) for n, r in ((2, reply), (3, ""))]
        found = values("haven_v2vt", items)
        assert found["clipscore_random"] == pytest.approx(20 / 4 / 2)
        assert found["clipscore_uniform"] == found["clipscore_first"] == pytest.approx(3 / 4 / 2)
        chosen = {tuple(number for _, number in frames) for _, frames in clip}
        assert chosen == {
            (1, 5),
            (1, 2, 3),
            tuple(keyframes.uniform(20, 3)),
            tuple(range(1, 21)),
        }
        assert found["clipscore"] == pytest.approx(2 / 4 / 2)
        assert {"clipscore_random_valid", "clipscore_first_tvsum"}.isdisjoint(found)

    def test_baselines_of_a_single_frame(self) -> None:
        for frames in scores.CLIP_BASELINES.values():
            assert list(frames(1, 1)) == [1]

    def test_without_a_model(self) -> None:
        found = values("haven_v2vt", [joint(2), joint(3, "")])
        assert found["clipscore"] is found["clipscore_sources"] is None
        assert told()["clipscore"].startswith("CLIPScore not computed: no model was named with")


def fingerprints() -> dict[str, str]:
    """Of the data at hand, by video."""
    return {record.id: items.row(record, "")["record"] for record in data.load().records}


class TestPictures:
    """The user's own frames, wherever they are now, opened only when they are embedded."""

    def test_of_a_run(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        opened: list[tuple[str, list[int]]] = []

        def fake(doc: dict[str, Any], numbers: list[int]) -> list[Any]:
            opened.append((Path(doc["video_path"]).name, numbers))
            return [doc["picks"][numbers[0] - 1]]

        monkeypatch.setattr(pictures, "pictures", fake)
        known = fingerprints()
        checked.remember(usability.look(data.load(), options.current(), ["haven_v2vt"]))
        first, second = clip_pictures.of("tvsum/video_2", known["tvsum/video_2"], [1, 20])
        assert opened == []
        assert (first.open(), second.open()) == (0, 285)
        assert opened == [("video_2.mp4", [1]), ("video_2.mp4", [20])]
        assert first.key != second.key
        assert first.key != clip_pictures.of("tvsum/video_1", known["tvsum/video_1"], [1])[0].key
        monkeypatch.setenv(settings.HAVEN, "size=64")
        assert first.key != clip_pictures.of("tvsum/video_2", known["tvsum/video_2"], [1])[0].key

    def test_without_a_run(self, user: Path) -> None:
        (one,) = clip_pictures.of("summe/video_1", fingerprints()["summe/video_1"], [3])
        assert " summe/video_1 frame 3 512 px" in one.key
        (user / "videos" / "summe" / "video_1.mp4").unlink()
        with pytest.raises(MediaError, match="summe/video_1"):
            one.open()

    def test_what_is_none_of_the_data(self, user: Path) -> None:
        with pytest.raises(DataError, match="has no video ovp/video_1"):
            clip_pictures.of("ovp/video_1", "", [1])

    def test_another_record_of_that_id(self, user: Path) -> None:
        """Of other data: the same numbers would be other frames."""
        before = fingerprints()["tvsum/video_1"]
        write(user, "tvsum", 2, frames=40)
        assert fingerprints()["tvsum/video_1"] != before
        with pytest.raises(DataError, match="its tvsum/video_1 is not the one that the replies"):
            clip_pictures.of("tvsum/video_1", before, [1])

    @pytest.mark.parametrize(("content", "why"), [("bad", "unreadable"), (None, "missing")])
    def test_a_file_that_does_not_fit(self, user: Path, content: str | None, why: str) -> None:
        file = user / "videos" / "tvsum" / "video_1.mp4"
        file.unlink()
        if content is not None:
            file.write_text(content)
        with pytest.raises(DataError, match=f"^tvsum/video_1: {why}: "):
            clip_pictures.of("tvsum/video_1", fingerprints()["tvsum/video_1"], [1])

    def test_no_data_any_more(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rescoring elsewhere: no number, one line that says why."""
        monkeypatch.setattr(text_scores, "clip_problem", lambda: None)
        monkeypatch.setattr(text_scores, "clip_note", lambda: "CLIP by hand")
        assert text_values.clip_values([Asked("tvsum/video_1", "x", ["A cat."], [1])]) == [None]
        assert "1 without pictures of theirs, as: no HAVEN data at" in told()["clipscore_lost"]
