"""The check before a run, and the frames that it reads: only those that the tasks hand over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError, PromptError, TasksError
from lmms_eval_tasks.haven import before_run, checked, pictures
from lmms_eval_tasks.haven.labels import TASKS

NAMES = list(TASKS)
PROXIES = [name for name in NAMES if TASKS[name].text]
ALL = ["summe/video_1", "tvsum/video_1", "tvsum/video_2"]


def tasks(*names: str) -> list[dict[str, Any]]:
    return [{"task": name} for name in names]


class Reader:
    """Stands for pictures.make: notes what is read, and fails on some videos."""

    def __init__(self) -> None:
        self.read: list[tuple[str, int, int]] = []
        self.bad: set[str] = set()

    def __call__(self, path: str, picks: Sequence[int], size: int) -> None:
        name = f"{Path(path).parent.name}/{Path(path).stem}"
        self.read.append((name, len(picks), size))
        if name in self.bad:
            raise MediaError(f"{name}: damaged")

    @property
    def names(self) -> list[str]:
        return sorted(name for name, _, _ in self.read)


@pytest.fixture
def reader(user: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()
    monkeypatch.setattr(pictures, "make", made)
    return made


def prepared(*names: str, limit: float | None = None) -> None:
    before_run.check(tasks(*names))
    before_run.make_media(tasks(*names), limit)


class TestCheck:
    def test_it_is_remembered(self, user: Path) -> None:
        before_run.check(tasks("haven_v2v", "haven_saliency_text"))
        found = checked.last()
        assert found is not None
        assert list(found.reasons) == ["haven_v2v", "haven_saliency_text"]

    def test_one_that_fails_is_not(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        before_run.check(tasks("haven_v2v"))
        (user / "videos" / "tvsum" / "video_1.mp4").unlink()
        with pytest.raises(DataError, match="1 of 3 HAVEN videos are not there"):
            before_run.check(tasks("haven_v2v"))
        assert checked.last() is None

    def test_prompts(self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.PROMPTS, str(tmp_path / "none"))
        with pytest.raises(PromptError, match="folder of prompts does not exist"):
            before_run.check(tasks("haven_v2v"))
        assert checked.last() is None

    def test_the_judge_of_summaries_alone(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(settings.JUDGE)  # gpt-4.1-mini, for which no key is set
        for name in NAMES:
            if TASKS[name].kind in ("v2t", "v2vt"):
                with pytest.raises(TasksError, match="key"):
                    before_run.check(tasks(name))
            else:
                before_run.check(tasks(name))

    def test_the_clip_model_of_summaries_alone(
        self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.CLIPSCORE, str(tmp_path / "none"))
        before_run.check(tasks("haven_v2v"))
        with pytest.raises(TasksError, match="nothing is downloaded: name the folder of a model"):
            before_run.check(tasks("haven_v2v", "haven_v2vt"))

    def test_no_data(self, root: Path) -> None:
        with pytest.raises(DataError, match=r"no HAVEN data at .*align_vsum"):
            before_run.check(tasks("haven_v2v"))


class TestMedia:
    """Once for all tasks, all sampled frames of a video, none for text proxies."""

    def test_once_for_all_tasks(self, reader: Reader) -> None:
        prepared(*NAMES)
        assert sorted(reader.read) == [(name, 20, 512) for name in ALL]

    def test_none_for_text_proxies(self, reader: Reader) -> None:
        prepared(*PROXIES)
        assert reader.read == []

    def test_the_check_alone_reads_nothing(self, reader: Reader) -> None:
        before_run.check(tasks(*NAMES))
        assert reader.read == []

    def test_size(self, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.HAVEN, "size=64,sources=summe")
        prepared("haven_grounding")
        assert reader.read == [("summe/video_1", 20, 64)]

    @pytest.mark.parametrize(
        ("limit", "n"), [(1, 1), (2, 2), (0.5, 2), (0.3, 1), (0, 3), (-1, 3), (None, 3), (9, 3)]
    )
    def test_a_limit(self, limit: float | None, n: int, reader: Reader) -> None:
        prepared("haven_temporal", "haven_temporal_text", limit=limit)
        assert reader.names == ALL[:n]

    def test_a_share_is_of_the_first_task(self, reader: Reader) -> None:
        """As the host has it, of a text proxy too."""
        prepared("haven_v2t_text", "haven_v2t", limit=0.5)
        assert reader.names == ALL[:2]

    def test_what_is_left_out_is_not_read(
        self, reader: Reader, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (user / "videos" / "summe" / "video_1.mp4").unlink()
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        prepared("haven_v2t", limit=1)
        assert reader.names == ["tvsum/video_1"]

    def test_damaged_in_the_middle(self, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
        reader.bad = {"tvsum/video_1"}
        with pytest.raises(DataError) as error:
            prepared("haven_v2t", "haven_temporal_text")
        said = str(error.value)
        assert said.startswith("the frames of 1 of 3 HAVEN videos cannot be read:\n  tvsum/video_1")
        assert "--allow-bad-items" in said
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        prepared("haven_v2t", "haven_temporal_text")
        found = checked.last()
        assert found is not None
        assert found.left_out("haven_v2t") == {"tvsum/video_1": "tvsum/video_1: damaged"}
        assert found.left_out("haven_temporal_text") == {}

    def test_another_takes_its_place(self, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
        reader.bad = {"summe/video_1"}
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        prepared("haven_v2t", limit=1)
        assert reader.names == ALL[:2]

    def test_all_damaged(self, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
        reader.bad = set(ALL)
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        with pytest.raises(DataError, match="none of the videos of haven_v2t can be read"):
            prepared("haven_v2t")
