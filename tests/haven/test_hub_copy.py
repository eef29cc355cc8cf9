"""The copy on the hub: JSON Lines, whose fields are not known; what fits the schema is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import schema
from lmms_eval_tasks.haven.options import Options
from tests.haven.release_files import content, write, write_hdf5


class TestHubCopy:
    """JSON Lines, one file per task, where there is no JSON file."""

    @pytest.fixture
    def hub(self, tmp_path: Path) -> Path:
        folder = tmp_path / "tvsum"
        folder.mkdir()
        data = content("tvsum", 2)[0]
        with (folder / "v2t.jsonl").open("w", encoding="utf-8") as one:
            for video, entry in data.items():
                first = {name: entry[name] for name in ("frames", "aligned_text_summary")}
                one.write(json.dumps({"video_id": video, "task": "v2t", **first}) + "\n")
        with (folder / "temporal.jsonl").open("w", encoding="utf-8") as two:
            for video, entry in data.items():
                rest = {name: entry[name] for name in ("clips", "aligned_full_document", "frames")}
                two.write(json.dumps({"id": video, "task": "temporal", **rest}) + "\n")
        return tmp_path

    def test_the_same_records(self, hub: Path) -> None:
        release = schema.read(hub, Options())
        other = schema.read(write(hub / "other", hdf5=False), Options())
        for ours, theirs in zip(release.records, other.records, strict=True):
            assert (ours.id, ours.frames, ours.shots) == (theirs.id, theirs.frames, theirs.shots)
            assert (ours.document, ours.summary) == (theirs.document, theirs.summary)

    def test_hdf5_beside_it(self, hub: Path) -> None:
        write_hdf5(hub / "tvsum" / "h5" / "tvsum.h5", content("tvsum", 2)[1])
        assert schema.read(hub, Options()).counts["videos_without_hdf5"] == 0

    def test_one_file_for_a_source(self, tmp_path: Path) -> None:
        lines = [json.dumps({"video": v, **e}) for v, e in content("ovp", 2)[0].items()]
        (tmp_path / "ovp.jsonl").write_text("\n".join(lines), encoding="utf-8")
        assert schema.read(tmp_path, Options()).counts["ovp"] == 2

    def test_other_fields_are_a_clear_problem(self, hub: Path) -> None:
        (hub / "tvsum" / "temporal.jsonl").unlink()
        with pytest.raises(DataError) as error:
            schema.read(hub, Options())
        assert str(error.value) == (
            f"{hub}: not one of 2 videos fits the schema; tvsum/video_1: v2t.jsonl, clips: the "
            "field is missing"
        )

    def test_contradictions_are_a_problem(self, hub: Path) -> None:
        with (hub / "tvsum" / "v2t.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"id": "video_2", "clips": []}))
        assert schema.read(hub, Options()).problems == {
            "tvsum/video_2": "v2t.jsonl, line 3: another clips than a line before"
        }

    def test_the_json_file_comes_first(self, hub: Path) -> None:
        write(hub, videos=3)
        assert schema.read(hub, Options()).counts["tvsum"] == 3
