"""Which segments can be asked about: only what a task shows has to be there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import data
from lmms_eval_tasks.movierecapsqa.checked import Checked
from lmms_eval_tasks.movierecapsqa.labels import SOURCES, condition_of, source_of
from tests.movierecapsqa.entries import entry, write
from tests.movierecapsqa.test_data import PICTURED, TASKS, docs


def stopped(*tasks: str) -> str:
    with pytest.raises(DataError) as error:
        data.usable(data.load(), tasks)
    return str(error.value)


class TestUsable:
    """Only what a task shows has to be there."""

    def test_no_video_at_all(self, user: Path) -> None:
        for file in user.glob("*/*.mp4"):
            file.unlink()
        for task in TASKS:
            if not condition_of(task).picture:
                assert data.usable(data.load(), [task]) == {}
                assert len(docs(task)) == 4
        for task in PICTURED:
            said = stopped(task)
            assert f"none of 2 segments can be shown as the {SOURCES[source_of(task)]}" in said
            assert f"({task}):\n  talk.1: missing: {user}" in said
            assert "Tasks that end in _dialogue need no video" in said

    def test_not_allowed_either_where_nothing_is_left(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        (user / "movies" / "film.mp4").unlink()
        assert stopped("movierecapsqa_segment", "movierecapsqa_movie").count("none of 2") == 1
        with pytest.raises(DataError, match="none of 2 segments can be shown as the full movie"):
            docs("movierecapsqa_movie_frames")

    @pytest.mark.parametrize(
        ("changes", "sources", "says"),
        [
            ({"videoId": "gone"}, ("segment", "recap"), "missing: .*recaps/gone.mp4"),
            ({"movieId": "gone"}, ("scenes", "movie"), "missing: .*movies/gone.mp4"),
            (
                {"movieId": ..., "movieStartTime": ..., "movieEndTime": ...},
                ("scenes", "movie"),
                r"names no movie \(movieId\)",
            ),
            (
                {"movieStartTime": ..., "movieEndTime": ...},
                ("scenes",),
                r"has no window in the movie \(movieStartTime, movieEndTime\)",
            ),
        ],
    )
    def test_what_one_segment_lacks(
        self,
        changes: dict[str, Any],
        sources: tuple[str, ...],
        says: str,
        user: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        write(user, [entry(1, **changes), entry(2)])
        fine = [task for task in PICTURED if source_of(task) not in sources]
        data.usable(data.load(), fine)
        for source in sources:
            task = f"movierecapsqa_{source}"
            said = stopped(*fine, task, f"{task}_frames")
            assert f"1 of 2 segments cannot be shown as the {SOURCES[source]}" in said
            assert f"({task}, {task}_frames):\n" in said
            assert re.search(rf"\n  talk\.1: {says}\n", said), said
            assert f"--allow-missing-videos or {settings.ALLOW_MISSING}=1" in said
            assert "--allow-bad-items" not in said
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        held = data.usable(data.load(), PICTURED)
        for source, found in held.items():
            assert list(found.absent) == (["talk.1"] if source in sources else [])
            left = ["talk.2"] if source in sources else ["talk.1", "talk.2"]
            assert list(found.windows) == left
            assert (
                list(dict.fromkeys(d["segment"] for d in docs(f"movierecapsqa_{source}"))) == left
            )
        kept = Checked(data.load(), held)
        assert set(kept.left_out(f"movierecapsqa_{sources[0]}")) == {"talk.1"}
        assert kept.left_out(f"movierecapsqa_{sources[0]}_dialogue") == {}

    def test_all_troubles_in_one_message(self, user: Path) -> None:
        (user / "recaps" / "broken.mp4").write_bytes(b"no video")
        bad = entry(3, facts=[])
        write(user, [entry(1, videoId="broken"), entry(2, movieId="gone"), bad])
        said = stopped("movierecapsqa_recap", "movierecapsqa_movie")
        assert "1 of 3 MovieRecapsQA segments cannot be used:\n  talk.3: " in said
        assert "\n  talk.1: unreadable: " in said
        assert "\n  talk.2: missing: " in said

    @pytest.mark.parametrize(
        ("source", "changes", "says"),
        [
            (
                "segment",
                {"startTime": 12.5, "endTime": 13},
                "starts at 12.5 s; its video ends",
            ),
            ("segment", {"endTime": 13.5}, "ends at 13.5 s; its video ends at 12."),
            ("scenes", {"movieStartTime": 50, "movieEndTime": 60}, "starts at 50 s; its video"),
        ],
    )
    def test_windows_outside_their_video(
        self,
        source: str,
        changes: dict[str, Any],
        says: str,
        user: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        write(user, [entry(1, **changes), entry(2)])
        said = stopped(f"movierecapsqa_{source}")
        assert f"talk.1: {says}" in said
        assert "--allow-bad-items" in said
        data.usable(data.load(), ["movierecapsqa_recap", "movierecapsqa_movie"])
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert {d["segment"] for d in docs(f"movierecapsqa_{source}")} == {"talk.2"}

    def test_a_rounded_end_is_the_videos(self, user: Path) -> None:
        write(user, [entry(1, startTime=9, endTime=12.9)])
        held = data.usable(data.load(), ["movierecapsqa_segment"])["segment"]
        assert held.windows["talk.1"][2] == pytest.approx(12, abs=0.1)

    def test_segments_without_questions_need_no_video(self, user: Path) -> None:
        write(user, [entry(1), entry(2, questions=[], videoId="gone")])
        held = data.usable(data.load(), ["movierecapsqa_segment"])["segment"]
        assert (list(held.windows), held.absent, held.bad) == (["talk.1"], {}, {})
