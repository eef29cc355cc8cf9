"""What a run's results say of its data, subtitles and frames; nothing there loses a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.maverix import benchmark, checked, data
from lmms_eval_tasks.runs import preflight
from lmms_eval_tasks.utils import transcription
from lmms_eval_tasks.utils.subtitles import Cue
from tests.maverix.runs import root, source
from tests.maverix.test_benchmark import task

__all__ = ["root", "source"]


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(settings.JUDGE, "none")
    yield
    checked.remember(None)


@pytest.fixture
def placed(root: Path, source: Path) -> Path:
    benchmark.prepare(source, root, link=False)
    return root / "maverix"


def annotated(*names: str) -> dict[str, Any]:
    results: dict[str, Any] = {"results": {}}
    preflight.annotate(results, [task(name) for name in names])
    section: dict[str, Any] = results["lmms_eval_tasks"]["maverix"]
    json.dumps(results)
    return section


class TestAFileThatGoesDuringTheRun:
    """The answers are paid for: what the check found is what the results tell."""

    def test_a_video(self, placed: Path) -> None:
        preflight.check([task("maverix_av")])
        (placed / "videos" / "lights-2.mp4").unlink()
        (placed / "videos" / "lights-3.mp4").write_bytes(b"broken")
        section = annotated("maverix_av")
        assert (section["data"]["items"], section["left_out"]) == (20, {})
        (told,) = [line for line in section["warnings"] if "during the run" in line]
        assert told == "2 videos went missing or broke during the run: lights-2, lights-3"

    @pytest.mark.parametrize("content", [None, "{", '{"items": []}'])
    def test_the_data_file(self, content: str | None, placed: Path) -> None:
        digest = data.load().digest
        preflight.check([task("maverix_s")])
        (placed / "data.json").unlink()
        if content is not None:
            (placed / "data.json").write_text(content, encoding="utf-8")
        section = annotated("maverix_s")
        assert (section["data"]["hash"], section["data"]["items"]) == (digest, 20)

    def test_subtitles(self, placed: Path) -> None:
        preflight.check([task("maverix_s")])
        before = annotated("maverix_s")["subtitles"]
        for file in (placed / "subtitles").iterdir():
            file.write_text("gone", encoding="utf-8")
        assert annotated("maverix_s")["subtitles"] == before

    def test_without_a_check(self, placed: Path) -> None:
        """Nothing is known and the data are gone: still no exception, and it is said."""
        (placed / "data.json").unlink()
        section = annotated("maverix_s")
        assert "data" not in section
        assert any("what the data were is not known" in line for line in section["warnings"])
        assert benchmark.tables({"results": {}, "lmms_eval_tasks": {"maverix": section}})


class TestData:
    """What the file holds beside its items."""

    def test_withheld_and_ignored(self, placed: Path) -> None:
        content = json.loads((placed / "data.json").read_text(encoding="utf-8"))
        content["items"][0] |= {"answer": None, "agentc": "social"}
        (placed / "data.json").write_text(json.dumps(content), encoding="utf-8")
        section = annotated("maverix_s")
        assert section["data"]["withheld"] == {"answers": 1, "references": 0}
        assert section["data"]["ignored"] == ["agentc"]
        assert "fields of the data that are not read: agentc" in section["warnings"]


class TestSubtitles:
    """Where the subtitles came from, in modes that show some."""

    def told(self, name: str = "maverix_vs") -> Mapping[str, Any]:
        found: Mapping[str, Any] = annotated(name)["subtitles"]
        return found

    def test_kinds(self, placed: Path) -> None:
        found = self.told()
        assert found["videos"] == {"json": 1, "none": 1, "srt": 1, "vtt": 1}
        assert found["made_by"] == []
        assert "subtitles" not in annotated("maverix_av", "maverix_long_a_oe")

    def test_items_that_have_none(self, placed: Path) -> None:
        """lights-3 has no file; an S without cues must not pass for what subtitles are worth."""
        items = json.loads((placed / "data.json").read_text(encoding="utf-8"))["items"]
        silent = sum(item["video"].startswith("lights-3") for item in items)
        assert silent > 0
        section = annotated("maverix_s", "maverix_long_vs")
        assert section["subtitles"]["items"] == len(items)
        assert section["subtitles"]["without"] == {"localized": silent, "long": silent}
        told = [line for line in section["warnings"] if "no subtitles to show" in line]
        assert [line.split(" have ")[0] for line in told] == [
            f"{silent} of 20 items ({length})" for length in ("localized", "long")
        ]
        assert "1 of 4 videos have no file" in told[0]

    def test_a_segment_between_two_cues(self, placed: Path) -> None:
        content = json.loads((placed / "data.json").read_text(encoding="utf-8"))
        item = next(item for item in content["items"] if item["video"].startswith("lights-1"))
        before = self.told("maverix_s")["without"]["localized"]
        item["start"], item["end"] = 3.92, 4.08  # words are shown from 0.1 to 0.9 of a second
        (placed / "data.json").write_text(json.dumps(content), encoding="utf-8")
        assert self.told("maverix_s")["without"] == {"localized": before + 1}

    def test_who_made_them(self, placed: Path) -> None:
        made_by = {"name": "stub", "version": "1", "model": "tiny", "language": None}

        class Stub:
            identity = made_by

            def transcribe(self, sound: Path) -> list[Cue]:
                return [Cue(0.5, 1.5, sound.stem)]

        before = self.told()["hash"]
        videos = {"lights-3": placed / "videos" / "lights-3.mp4"}
        transcription.make(videos, placed / "subtitles", Stub(), sound_of=lambda path: path)
        found = self.told()
        assert found["videos"] == {"json": 2, "srt": 1, "vtt": 1}
        assert found["made_by"] == [{**made_by, "videos": 1}]
        assert found["hash"] != before

    def test_the_hash_is_that_of_what_is_said_and_when(self, placed: Path) -> None:
        before = self.told()["hash"]
        srt = next((placed / "subtitles").glob("*.srt"))
        text = srt.read_text(encoding="utf-8")
        srt.write_text(f"\n\n{text}\n\n", encoding="utf-8")
        assert self.told()["hash"] == before
        srt.write_text(text.replace("Word", "Wort", 1), encoding="utf-8")
        words = self.told()["hash"]
        srt.write_text(text.replace(",100", ",200", 1), encoding="utf-8")
        assert len({before, words, self.told()["hash"]}) == 3

    def test_videos_that_no_item_asks_about_do_not_count(self, placed: Path) -> None:
        content = json.loads((placed / "data.json").read_text(encoding="utf-8"))
        content["items"] = [item for item in content["items"] if item["video"] == "lights-1"]
        (placed / "data.json").write_text(json.dumps(content), encoding="utf-8")
        assert sum(self.told()["videos"].values()) == 1


def test_frames(placed: Path) -> None:
    """The issue: the model's own maximum applies and is written into the results."""
    model = running.Model("tasks_scripted", "chat", {"max_num_frames": 8, "pretrained": "x"})
    with running.model(model):
        frames = annotated("maverix_v")["frames"]
    assert "the model's own maximum of frames applies" in frames["rule"]
    assert frames["given"] == {"max_num_frames": 8}
    assert "defaults" in frames
