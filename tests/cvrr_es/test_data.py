"""CVRR-ES's files as docs of the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, load_from_disk

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import data
from lmms_eval_tasks.cvrr_es.release import Release
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.release_files import predict, row, write
from tests.cvrr_es.scored import PART, TIME


def docs(task: str, release: Release | None = None) -> list[dict[str, Any]]:
    given = Dataset.from_list(data.rows(release or data.load()))
    return list(data.process_docs(task)(given))


class TestRows:
    def test_one_a_question(self, user: Path) -> None:
        rows = data.rows(data.load())
        assert [one["id"] for one in rows] == [
            *(f"{PART}/{n:03d}" for n in (1, 2, 3)),
            *(f"{TIME}/{n:03d}" for n in (1, 2)),
        ]
        assert rows[1] == {
            "id": f"{PART}/002",
            "dimension": PART,
            "video": f"{PART}/2.mp4",
            "video_path": str((user / PART / "2.mp4").resolve()),
            "start": None,
            "end": None,
            "n_frames": 0,
            "question": "What happens?",
            "reference": "A planted cat sleeps.",
            "references": ["A planted cat sleeps."],
            "lure": "Nobody planted is there.",
            "data": data.load().digest,
        }
        assert rows[-1]["lure"] == "A planted dog runs."

    def test_videos_of_two_dimensions_are_two(self, user: Path) -> None:
        """Both have a 1.mp4: intervals are clustered by the dimension's own."""
        names = [one["video"] for one in data.rows(data.load())]
        assert names.count(f"{PART}/1.mp4") == names.count(f"{TIME}/1.mp4") == 1

    def test_frames_by_video(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.FRAMES, "8,2.mp4=4")
        assert [one["n_frames"] for one in data.rows(data.load())] == [8, 4, 4, 8, 8]

    def test_no_data(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.DATA, "/nowhere")
        with pytest.raises(DataError, match="CVRR-Evaluation-Suite"):
            data.load()

    def test_the_hosts_dataset(self, user: Path) -> None:
        path = data.DATASET_PATH
        found = load_from_disk(path)["test"]
        assert list(found) == data.rows(data.load())
        assert path == data.DATASET_PATH
        write(user, TIME, [row("When?", "Now.")])
        assert path != data.DATASET_PATH


class TestDocs:
    def test_a_dimension_has_its_own(self, user: Path) -> None:
        assert [one["id"] for one in docs(f"cvrr_es_{TIME}")] == [f"{TIME}/001", f"{TIME}/002"]
        assert docs(f"cvrr_es_{TIME}") == data.rows(data.load())[3:]

    def test_a_judge_task_has_answers(
        self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = {
            PART: [("What happens?", "A."), ("What happens?", "B."), ("Who is there?", "")],
            TIME: [("When?", "C."), ("Why?", "D.")],
        }
        for name in ("zoe", "ada"):
            for dimension, rows in asked.items():
                predict(tmp_path / name, dimension, rows)
        monkeypatch.setenv(settings.CVRR_CANDIDATES, f"{tmp_path / 'zoe'},{tmp_path / 'ada'}")
        found = docs("cvrr_judge")
        first = [f"{PART}/001/zoe", f"{PART}/001/ada", f"{PART}/002/zoe"]
        assert [one["id"] for one in found[:3]] == first
        assert len(found) == 10
        assert [one["answer"] for one in found[::2]] == ["A.", "B.", "", "C.", "D."]
        assert [one["empty"] for one in found[::2]] == [False, False, True, False, False]
        assert "planted" not in json.dumps(found)

    def test_what_the_check_left_out(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (user / PART / "1.mp4").unlink()
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        release, task = data.load(), f"cvrr_es_{PART}"
        assert [one["id"] for one in docs(task)] == [f"{PART}/002", f"{PART}/003"]
        data.remember(data.look(release, [task]))
        (user / PART / "1.mp4").touch()  # what was found stands for the run
        assert [one["id"] for one in docs(task)] == [f"{PART}/002", f"{PART}/003"]
        assert len(docs(f"cvrr_es_{TIME}")) == 2  # not checked: looked at now
        data.remember_uncut({str((user / PART / "2.mp4").resolve()): "damaged"})
        assert docs(task) == []


def test_names() -> None:
    for name in ("judge", "collective", "mixture", PART):
        assert callable(getattr(data, name))
    assert data.judge is data.process_docs("cvrr_judge")
    with pytest.raises(AttributeError, match="first"):
        data.first  # noqa: B018
