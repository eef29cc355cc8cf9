"""Before a model is built: what is looked at for which task, and which videos are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import before_run, data
from lmms_eval_tasks.errors import DataError, JudgeError, MediaError, PromptError
from lmms_eval_tasks.utils import clips
from tests.cvrr_es.release_files import predict
from tests.cvrr_es.scored import PART, TIME

ANSWER, OTHER = f"cvrr_es_{PART}", f"cvrr_es_{TIME}"


def tasks(*names: str) -> list[dict[str, Any]]:
    return [{"task": name} for name in names]


@pytest.fixture
def candidates(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ada answers everything, bob the first question of PART alone."""
    predict(tmp_path / "ada", PART, [("What happens?", "a")] * 2 + [("Who is there?", "b")])
    predict(tmp_path / "ada", TIME, [("When?", "c"), ("Why?", "d")])
    predict(tmp_path / "bob", PART, [("Who is there?", "e")])
    monkeypatch.setenv(settings.CVRR_CANDIDATES, f"{tmp_path / 'ada'},{tmp_path / 'bob'}")
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")


@pytest.fixture
def made(user: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Videos that are made, as (dimension/name, frames); one with "cut" in it cannot be."""
    found: list[tuple[str, int]] = []

    def make(path: str, start: float | None, end: float | None, n_frames: int) -> None:
        assert (start, end) == (None, None)
        found.append((str(Path(path).relative_to(user.resolve())), n_frames))
        if Path(path).read_text() == "cut":
            raise MediaError(f"{path}: damaged in the middle")

    monkeypatch.setattr(clips, "make", make)
    return found


class TestCheck:
    def test_remembers_what_it_found(self, user: Path) -> None:
        before_run.check(tasks(ANSWER))
        found = data.last()
        assert found is not None
        assert found.tasks == [ANSWER]
        (user / PART / "1.mp4").unlink()
        with pytest.raises(DataError):
            before_run.check(tasks(ANSWER))
        assert data.last() is None

    def test_the_judge_is_for_answers(
        self, candidates: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.JUDGE, "offline")  # knows another criterion
        with pytest.raises(JudgeError):
            before_run.check(tasks(ANSWER))
        before_run.check(tasks("cvrr_judge"))
        with pytest.raises(JudgeError):
            before_run.check(tasks("cvrr_judge", ANSWER))

    @pytest.mark.parametrize(("file", "bad"), [("task", ANSWER), ("rating", "cvrr_judge")])
    def test_prompts(
        self,
        file: str,
        bad: str,
        candidates: None,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Each kind of task needs its own alone."""
        mine = tmp_path / "prompts" / "cvrr_es" / f"{file}.yml"
        mine.parent.mkdir(parents=True)
        mine.write_text("nothing: here\n", encoding="utf-8")
        monkeypatch.setenv(settings.PROMPTS, str(tmp_path / "prompts"))
        (good,) = {ANSWER, "cvrr_judge"} - {bad}
        before_run.check(tasks(good))
        with pytest.raises(PromptError):
            before_run.check(tasks(good, bad))


class TestMedia:
    def test_each_video_once(self, made: list[Any]) -> None:
        before_run.check(tasks(ANSWER, OTHER))
        before_run.make_media(tasks(ANSWER, OTHER))
        wanted = [f"{PART}/1.mp4", f"{PART}/2.mp4", f"{TIME}/1.mp4", f"{TIME}/3.mp4"]
        assert sorted(made) == [(name, 0) for name in wanted]

    def test_of_a_task_alone(self, made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.FRAMES, "8,3.mp4=4")
        before_run.make_media(tasks(OTHER))
        assert sorted(made) == [(f"{TIME}/1.mp4", 8), (f"{TIME}/3.mp4", 4)]

    @pytest.mark.parametrize(
        ("limit", "videos"),
        [(1, ["1"]), (2, ["1", "2"]), (0.5, ["1", "2"]), (None, ["1", "2"]), (-1, ["1", "2"])],
    )
    def test_of_the_limit(self, limit: float | None, videos: list[str], made: list[Any]) -> None:
        before_run.make_media(tasks(ANSWER), limit)
        assert sorted(made) == [(f"{PART}/{name}.mp4", 0) for name in videos]

    @pytest.mark.parametrize(("limit", "videos"), [(1, 1), (2, 2), (4, 2), (5, 3), (6, 4)])
    def test_a_judges_limit_is_of_answers(
        self, limit: int, videos: int, candidates: None, made: list[Any]
    ) -> None:
        """Questions have 1, 1, 2, 1, 1 answers, on videos 1, 2, 2 and two others."""
        before_run.check(tasks("cvrr_judge"))
        before_run.make_media(tasks("cvrr_judge"), limit)
        assert len(made) == videos

    def test_a_video_that_cannot_be_made(
        self, user: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (user / PART / "2.mp4").write_text("cut")
        before_run.check(tasks(ANSWER, OTHER))
        before_run.make_media(tasks(ANSWER, OTHER), 1)  # it is not needed
        with pytest.raises(DataError, match="2 of 5 CVRR-ES questions cannot be shown") as error:
            before_run.make_media(tasks(ANSWER, OTHER))
        assert f"{PART}/002: " in str(error.value)
        assert "damaged in the middle" in str(error.value)
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        before_run.check(tasks(ANSWER, OTHER))
        before_run.make_media(tasks(ANSWER, OTHER))
        found = data.last()
        assert found is not None
        assert found.left_out().keys() == {f"{PART}/002", f"{PART}/003"}

    def test_none_of_a_tasks_videos(
        self, user: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        for name in ("1", "2"):
            (user / PART / f"{name}.mp4").write_text("cut")
        with pytest.raises(DataError, match=f"none of the videos of {ANSWER} can be shown"):
            before_run.make_media(tasks(OTHER, ANSWER))

    def test_what_is_left_out_is_not_made(
        self, user: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        (user / PART / "1.mp4").unlink()
        before_run.make_media(tasks(ANSWER), 1)
        assert made == [(f"{PART}/2.mp4", 0)]
