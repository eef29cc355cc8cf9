"""The packaged clips: what the references say is to be seen, in decoded frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.cvrr_es.sample import CLIPS, FPS, HEIGHT, SECONDS, WIDTH
from lmms_eval_tasks.sample.second_code import PALETTE


class Film:
    """A decoded clip: where a colour is, and how often."""

    def __init__(self, path: Path) -> None:
        with av.open(str(path)) as container:
            self.kinds = [stream.type for stream in container.streams]
            self.frames = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]

    def mask(self, colour: str, second: float) -> Any:
        frame = self.frames[min(int(second * FPS), len(self.frames) - 1)].astype(float)
        return np.linalg.norm(frame - np.array(PALETTE[colour]), axis=-1) < 60

    def box(self, colour: str, second: float) -> tuple[int, int, int, int] | None:
        """Left, top, right, bottom of a colour; None if it is not there."""
        rows, columns = np.nonzero(self.mask(colour, second))
        if len(rows) < 20:
            return None
        return columns.min(), rows.min(), columns.max(), rows.max()

    def parts(self, colour: str, second: float) -> int:
        """How many separate shapes of a colour there are."""
        left = {(int(y), int(x)) for y, x in np.argwhere(self.mask(colour, second))}
        count = 0
        while left:
            waiting, size = [left.pop()], 0
            while waiting:
                y, x = waiting.pop()
                size += 1
                near = {(y + i, x + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
                left -= near
                waiting += near
            count += size >= 8
        return count


@pytest.fixture(scope="module")
def films(sample_folder: Path) -> dict[str, Film]:
    release = release.read(sample_folder)
    return {one.video: Film(release.video_path(one)) for one in release.questions}


class TestClips:
    """What the references say is to be seen; what the lures say is not."""

    def test_form(self, films: dict[str, Film]) -> None:
        assert set(films) == set(CLIPS)
        for film in films.values():
            assert film.kinds == ["video"]
            assert len(film.frames) == FPS * SECONDS
            assert film.frames[0].shape == (HEIGHT, WIDTH, 3)

    def test_box(self, films: dict[str, Film]) -> None:
        film = films["box.mp4"]
        (start, *_), (end, *_) = film.box("red", 0), film.box("red", 3.9)
        assert start < end  # from left to right
        for second in np.arange(0, 4, 0.1):
            assert film.box("red", second)[2] + 10 < film.box("white", second)[0]
        assert film.box("white", 0)[0] > WIDTH / 2
        assert film.box("red", 2.6) == film.box("red", 3.9)  # pushed back by nothing

    def test_swap(self, films: dict[str, Film]) -> None:
        film = films["swap.mp4"]
        blue, yellow = ([film.box(c, s) for s in (0, 1.9, 3.9)] for c in ("blue", "yellow"))
        assert blue[0][0] + 50 < blue[1][0] == blue[2][0]
        assert yellow[0][1] == yellow[1][1] < yellow[2][1] - 50
        assert abs(yellow[0][0] - yellow[2][0]) < 3

    def test_float(self, films: dict[str, Film]) -> None:
        film = films["float.mp4"]
        heights = [film.box("orange", second)[1] for second in np.arange(0, 4, 0.1)]
        assert heights == sorted(heights, reverse=True)
        assert heights[0] - heights[-1] > 50
        assert heights[-1] > 10

    def test_pair(self, films: dict[str, Film]) -> None:
        film = films["pair.mp4"]
        assert {film.parts(c, s) for c in ("pink", "purple") for s in (0, 2, 3.9)} == {1}
        assert film.box("purple", 0) == film.box("purple", 1.9)
        assert film.box("purple", 0)[0] - film.box("pink", 0)[2] > 30
        for second in (2.0, 2.8, 3.8):
            assert 0 < film.box("purple", second)[0] - film.box("pink", second)[2] < 12
        assert film.box("pink", 3.8)[0] - film.box("pink", 2)[0] > 50

    def test_face(self, films: dict[str, Film]) -> None:
        film = films["face.mp4"]

        def corners_above_middle(second: float) -> bool:
            mouth = film.mask("black", second)[76:96, 40:80]
            rows = [np.nonzero(mouth[:, x])[0].mean() for x in (4, 20, 36)]
            return bool(rows[0] < rows[1] and rows[2] < rows[1])

        for tick in range(FPS * SECONDS):
            there = film.box("green", tick / FPS) is not None
            assert corners_above_middle(tick / FPS) is there or tick == 23  # half a pixel of it
        assert corners_above_middle(0)
        assert not corners_above_middle(3.9)

    def test_night(self, films: dict[str, Film]) -> None:
        film = films["night.mp4"]
        for second in (0, 1, 2, 3, 3.9):
            assert film.parts("white", second) == 5  # a moon and four stars
        assert [film.box("yellow", second) is None for second in (0, 1.9, 2.1, 3.9)] == [
            True,
            True,
            False,
            False,
        ]
        assert film.frames[0].mean() < 60
