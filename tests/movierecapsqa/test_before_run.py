"""The check before a run, and the clips that it makes: only those that the tasks hand over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError, PromptError, TasksError
from lmms_eval_tasks.movierecapsqa import before_run, checked, data, utils
from lmms_eval_tasks.utils import clips
from tests.movierecapsqa.entries import entry, question, write
from tests.movierecapsqa.test_data import PICTURED, TASKS, docs


def tasks(*names: str) -> list[dict[str, Any]]:
    return [{"task": name, "metadata": {"judged": True}} for name in names]


def prepared(names: Sequence[str], limit: float | None = None) -> None:
    before_run.check(tasks(*names))
    before_run.make_media(tasks(*names), limit)


class TestCheck:
    """Before the model is loaded: data, videos of what is shown, prompts, judge."""

    def test_it_is_remembered(self, user: Path) -> None:
        before_run.check(tasks("movierecapsqa_segment", "movierecapsqa_scenes_frames"))
        found = checked.last()
        assert found is not None
        assert found.release == data.load()
        assert list(found.held) == ["segment", "scenes"]
        assert list(found.held["scenes"].windows) == ["talk.1", "talk.2"]

    def test_a_check_that_fails_is_not(self, user: Path) -> None:
        before_run.check(tasks("movierecapsqa_segment"))
        (user / "movies" / "film.mp4").unlink()
        with pytest.raises(DataError, match="none of 2 segments can be shown as the full movie"):
            before_run.check(tasks("movierecapsqa_segment", "movierecapsqa_movie"))
        assert checked.last() is None

    def test_prompts(self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.PROMPTS, str(tmp_path / "none"))
        with pytest.raises(PromptError, match="folder of prompts does not exist"):
            before_run.check(tasks("movierecapsqa_segment_dialogue"))

    def test_the_judge(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(settings.JUDGE)  # the paper's, for which no key is set
        with pytest.raises(TasksError, match="key"):
            before_run.check(tasks("movierecapsqa_segment_dialogue"))
        assert checked.last() is None


class Maker:
    """Stands for clips.make: notes what is made, and fails on some windows."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.bad: set[tuple[Any, ...]] = set()

    def __call__(self, path: str, start: float | None, end: float | None, n_frames: int) -> Any:
        self.made.append((Path(path).stem, start, end, n_frames))
        if self.made[-1][:3] in self.bad:
            raise MediaError(f"{path}: is damaged after {start} s")
        return SimpleNamespace(path=path, frames=None)


ONE, TWO = ("talk", 3.2, 7.4), ("talk", 8.0, 11.0)
ALL = {
    (*ONE, 0),
    (*TWO, 0),
    ("talk", None, None, 0),
    ("film", 10.5, 16.0, 0),
    ("film", 2.0, 4.0, 0),
    ("film", None, None, 0),
}


class TestClips:
    """Once for all conditions, only what a source needs, only what the limit leaves."""

    @pytest.fixture
    def maker(self, user: Path, videos: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
        made = Maker()
        monkeypatch.setattr(clips, "make", made)
        return made

    def test_nothing_for_dialogue_alone(self, maker: Maker) -> None:
        prepared([name for name in TASKS if name not in PICTURED])
        assert maker.made == []

    def test_the_check_alone_makes_nothing(self, maker: Maker) -> None:
        before_run.check(tasks(*TASKS))
        assert maker.made == []

    def test_once_for_all_conditions(self, maker: Maker) -> None:
        prepared(TASKS)
        assert len(maker.made) == len(ALL)
        assert set(maker.made) == ALL

    def test_frames(self, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.FRAMES, "9,talk=4")
        prepared(TASKS)
        assert set(maker.made) == {(*window[:3], 4) for window in ALL}

    def test_one_movie_with_two_numbers_of_frames(
        self, maker: Maker, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (user / "recaps" / "other.mp4").symlink_to((user / "recaps" / "talk.mp4").resolve())
        write(user, [entry(1), entry(2, videoId="other")])
        monkeypatch.setenv(settings.FRAMES, "9,talk=4")
        prepared(["movierecapsqa_movie"])
        assert set(maker.made) == {("film", None, None, 4), ("film", None, None, 9)}
        assert [one["n_frames"] for one in docs("movierecapsqa_movie")] == [4, 4, 9, 9]

    @pytest.mark.parametrize(
        ("names", "limit", "made"),
        [
            (["segment"], 1, {ONE}),
            (["segment"], 2, {ONE}),
            (["segment"], 3, {ONE, TWO}),
            (["segment"], 0.5, {ONE}),
            (["segment"], 0.51, {ONE, TWO}),
            (["segment"], 0, {ONE, TWO}),
            (["segment"], -1, {ONE, TWO}),
            (["segment"], 99, {ONE, TWO}),
            # As the host has it: a share of the first task's docs is the number for all.
            (["segment_dialogue", "segment"], 0.5, {ONE}),
        ],
    )
    def test_a_limit(self, names: list[str], limit: float, made: set[Any], maker: Maker) -> None:
        prepared([f"movierecapsqa_{name}" for name in names], limit)
        assert {window[:3] for window in maker.made} == made

    def test_what_cannot_be_made_stops_the_run(self, maker: Maker) -> None:
        maker.bad.add(ONE)
        with pytest.raises(
            DataError,
            match=r"^1 of 2 MovieRecapsQA segments cannot be cut:\n  talk.1: .* is damaged after "
            r"3.2 s\n.*--allow-bad-items",
        ):
            prepared(["movierecapsqa_segment", "movierecapsqa_recap"])
        prepared(["movierecapsqa_recap", "movierecapsqa_segment_dialogue"])

    def test_or_is_left_out_where_it_is_shown(
        self, maker: Maker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        maker.bad.add(ONE)
        prepared(TASKS, 2)
        # The next segment comes inside the limit.
        assert (*TWO, 0) in maker.made
        counts = {name: len(docs(name)) for name in TASKS}
        assert {name for name, count in counts.items() if count != 4} == {
            "movierecapsqa_segment",
            "movierecapsqa_segment_frames",
        }
        found = checked.last()
        assert found is not None
        assert list(found.left_out("movierecapsqa_segment_frames")) == ["talk.1"]
        assert found.left_out("movierecapsqa_segment_dialogue") == {}
        assert found.left_out("movierecapsqa_recap") == {}

    def test_nothing_left(self, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        maker.bad |= {ONE, TWO}
        with pytest.raises(DataError, match="none of the segments of movierecapsqa_segment can be"):
            prepared(["movierecapsqa_segment"])


def test_a_run_finds_what_was_made(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(PICTURED)

    def cut(*_: Any) -> Any:
        raise AssertionError("cut again")

    monkeypatch.setattr(clips.segments, "segment", cut)
    for name in PICTURED:
        for one in docs(name):
            assert Path(utils.doc_to_visual(one)[0]).is_file()


def test_a_file_that_is_damaged_in_the_middle(
    user: Path, videos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its packets can be listed and its first frame decodes: only the cut shows it."""
    content = bytearray((videos / "talk.mp4").read_bytes())
    import av

    with av.open(str(videos / "talk.mp4")) as file:
        packets = [packet for packet in file.demux(video=0) if packet.size]
    for packet in packets:
        if 3 <= packet.pts * packet.time_base < 7:
            place = packet.pos + 6
            content[place : place + packet.size - 6] = b"\xa5" * (packet.size - 6)
    (user / "recaps" / "talk.mp4").unlink()
    (user / "recaps" / "talk.mp4").write_bytes(content)
    third = entry(3, startTime=0, endTime=2, questions=[question(1)])
    write(user, [entry(1), third])
    with pytest.raises(DataError, match=r"1 of 2 .*\n  talk.1: .*talk.mp4: "):
        prepared(["movierecapsqa_segment"])
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    prepared(["movierecapsqa_segment"])
    assert [one["id"] for one in docs("movierecapsqa_segment")] == ["talk.3/1"]
