"""HAVEN's rows and docs as the host loads them: what each task asks, and what is left out of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import datasets
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.haven import checked, data, items, options, usability
from lmms_eval_tasks.haven.labels import TASKS
from tests.haven.release_files import write

FOLDER = Path(data.__file__).parent
NAMES = list(TASKS)
ALL = ["summe/video_1", "tvsum/video_1", "tvsum/video_2"]


def docs(task: str) -> list[dict[str, Any]]:
    """The docs of a task, made of the stored rows by the function that its YAML names."""
    rows = datasets.load_from_disk(data.DATASET_PATH)["test"]
    return list(getattr(data, task.removeprefix("haven_"))(rows))


def ids(task: str) -> list[str]:
    return [doc["id"] for doc in docs(task)]


class TestTasks:
    def test_the_groups(self) -> None:
        """The eight with pictures, and the six text proxies; no other YAML."""
        found = {}
        for group in ("haven", "haven_text"):
            text = (FOLDER / f"{group}.yaml").read_text(encoding="utf-8")
            assert text.startswith(f"group: {group}\n")
            assert "metric: joined\n" in text
            found[group] = re.findall(r"^  - (haven\S+)$", text, re.MULTILINE)
        assert found["haven"] == [name for name in NAMES if not TASKS[name].text]
        assert found["haven_text"] == [name for name in NAMES if TASKS[name].text]
        assert (len(found["haven"]), len(found["haven_text"])) == (8, 6)
        files = {file.stem for file in FOLDER.glob("*.yaml")}
        assert files == {*NAMES, "haven", "haven_text"}

    @pytest.mark.parametrize("name", ["haven_v2t", "v2t_doc", "temporal_doc_text", "docs"])
    def test_no_other_functions(self, name: str) -> None:
        assert not hasattr(data, name)


@pytest.mark.usefixtures("user")
class TestDocs:
    @pytest.mark.parametrize("task", NAMES)
    def test_as_items_make_them(self, task: str) -> None:
        """Through the host's files nothing changes, and videos need not be looked at twice."""
        given = [items.doc(row, TASKS[task], options.current()) for row in data.rows(data.load())]
        assert docs(task) == given
        assert [doc["id"] for doc in given] == ALL
        assert json.loads(json.dumps(given)) == given

    def test_options(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.HAVEN, "sources=tvsum,max_shots=2,frames_per_shot=1")
        for doc in docs("haven_temporal"):
            assert doc["source"] == "tvsum"
            assert (len(doc["units"]), [len(one) for one in doc["unit_frames"]]) == (2, [1, 1])
        monkeypatch.setenv(settings.HAVEN, "sources=ovp")
        with pytest.raises(DataError, match=r"no file of ovp \(expected processed/ovp_data.json"):
            docs("haven_temporal")
        monkeypatch.setenv(settings.HAVEN, "shots=2")
        with pytest.raises(TasksError, match="'shots' is none of"):
            docs("haven_temporal")

    def test_what_the_check_left_out(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is there while the docs are made plays no part: the check decides."""
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        lost = user / "videos" / "tvsum" / "video_2.mp4"
        lost.unlink()
        names = ["haven_v2v", "haven_v2v_text"]
        checked.remember(usability.look(data.load(), options.current(), names))
        lost.touch()
        assert ids("haven_v2v") == ALL[:2]
        assert ids("haven_v2v_text") == ALL
        assert ids("haven_v2t") == ALL  # was not checked, so is looked at now
        checked.remember_undecoded({str((user / "videos/summe/video_1.mp4").resolve()): "damaged"})
        assert ids("haven_v2v") == ["tvsum/video_1"]
        assert ids("haven_v2v_text") == ALL

    def test_without_a_check(self, user: Path) -> None:
        (user / "videos" / "tvsum" / "video_2.mp4").unlink()
        with pytest.raises(DataError, match="1 of 3 HAVEN videos are not there"):
            docs("haven_v2v")
        assert ids("haven_v2v_text") == ALL

    def test_gaps_are_of_one_task(self, user: Path) -> None:
        """Without HDF5 SumMe has no saliency item, and all others."""
        write(user, "summe", 1, hdf5=False)
        (user / "summe" / "h5" / "summe.h5").unlink()
        for task in NAMES:
            saliency = TASKS[task].kind == "saliency"
            assert ids(task) == (ALL[1:] if saliency else ALL), task


def test_no_data(root: Path) -> None:
    with pytest.raises(DataError) as error:
        docs("haven_v2t")
    for told in ("align_vsum", "ROOT/haven/processed/SOURCE_data.json", "data prepare"):
        assert told in str(error.value)
