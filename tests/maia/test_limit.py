"""`--limit` and `--offset`: only the videos of the docs that run are looked at before a run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.runs import before

PAIRS, QUESTIONS = "maia_vsv", "maia_oevqa"
# The sample has two videos of 24 questions, so of 192 pairs.
INSIDE = [
    (8, 0, (PAIRS, QUESTIONS)),
    (24, 0, (PAIRS, QUESTIONS)),
    (192, 0, (PAIRS,)),
    (8, 184, (PAIRS,)),
    (8, 16, (QUESTIONS,)),
]
BEYOND = [
    (None, 0, (PAIRS,)),
    (-1, 0, (PAIRS,)),
    (0.01, 0, (PAIRS,)),  # a share: the host alone knows of how many docs
    (25, 0, (PAIRS, QUESTIONS)),
    (193, 0, (PAIRS,)),
    (1, 192, (PAIRS,)),
    (1, 24, (QUESTIONS,)),
]


@pytest.fixture
def no_second_video(sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(sample_root / "maia", tmp_path / "maia")
    (tmp_path / "maia" / "videos" / "2.mp4").write_bytes(b"no video")
    monkeypatch.setenv(settings.DATA, str(tmp_path))
    monkeypatch.setenv(settings.JUDGE, "none")


def docs(limit: float | None, offset: int, names: tuple[str, ...]) -> list[int]:
    """How many docs each task has for the host, after the check of a run."""
    with running.limited(limit, offset):
        before.check_benchmark(BENCHMARK, names)
        return [len(before.docs(BENCHMARK, name)) for name in names]


@pytest.mark.usefixtures("no_second_video")
def test_a_bad_video_that_no_doc_of_the_run_shows_does_not_stop_it() -> None:
    whole = {PAIRS: 384, QUESTIONS: 48}  # so that an offset leads to the same docs as in a full run
    for limit, offset, names in INSIDE:
        assert docs(limit, offset, names) == [whole[name] for name in names]
    for limit, offset, names in BEYOND:
        with pytest.raises(DataError, match=r"1 of 2 .*\n  video2: unreadable: "):
            docs(limit, offset, names)


@pytest.mark.usefixtures("no_second_video")
def test_a_bad_video_is_left_out_where_it_could_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    without = {PAIRS: 192, QUESTIONS: 24}
    for limit, offset, names in BEYOND:
        assert docs(limit, offset, names) == [without[name] for name in names]
