"""`--limit` and `--offset`: only the videos of the docs that run are looked at before a run."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import benchmarks, running, settings
from lmms_eval_tasks.benchmark import Benchmark, Found
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.utils import probes

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
def test_a_bad_video_matters_where_a_doc_of_the_run_could_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = {PAIRS: 384, QUESTIONS: 48}  # so that an offset leads to the same docs as in a full run
    for limit, offset, names in INSIDE:
        assert docs(limit, offset, names) == [whole[name] for name in names]
    for limit, offset, names in BEYOND:
        with pytest.raises(DataError, match=r"1 of 2 .*\n  video2: unreadable: "):
            docs(limit, offset, names)
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    for limit, offset, names in BEYOND:
        assert docs(limit, offset, names) == [whole[name] // 2 for name in names]


@pytest.mark.parametrize(
    "task",
    [
        "maia_vsv",
        "maverix_long_av",
        "movierecapsqa_segment",
        "haven_v2v",
        "cvrr_es_partial_actions",
    ],
)
def test_of_each_benchmark(task: str, sample_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.DATA, str(sample_root))
    benchmark = benchmarks.load(task.partition("_")[0] if "cvrr" not in task else "cvrr_es")
    monkeypatch.setenv(settings.JUDGE, "none")
    before.check_benchmark(benchmark, [task])
    whole = before.docs(benchmark, task)
    looked: list[Path] = []
    look = probes.look

    def noted(paths: Iterable[Path]) -> Any:
        looked.extend(paths := list(paths))
        return look(paths)

    monkeypatch.setattr(probes, "look", noted)
    with running.limited(1, 1):
        before.check_benchmark(benchmark, [task])
        assert [one["id"] for one in before.docs(benchmark, task)] == [one["id"] for one in whole]
        assert before.docs(benchmark, task)[1] == whole[1]
    assert [str(path.resolve()) for path in looked] == [whole[1]["video_path"]]


class Noting(Benchmark):
    """Docs with a video each, a letter; a capital cannot be used. Notes what is looked at."""

    name = title = "noting"

    def __init__(self, tasks: Sequence[str], *, leaves_out: bool) -> None:
        self.letters, self.leaves_out = {f"{n}": own for n, own in enumerate(tasks)}, leaves_out
        self.looked: set[str] = set()

    def look(
        self,
        names: Sequence[str],
        *,
        videos: bool = True,
        only: Collection[str] | None = None,
    ) -> Found:
        given = {letter for own in self.letters.values() for letter in own}
        looked = given if only is None else given & {*only}
        self.looked |= looked
        return Found({one for one in looked if one.isupper() and self.leaves_out}, "")

    def docs(self, found: Found, task: str) -> list[dict[str, Any]]:
        return [{"video_path": one} for one in self.letters[task] if one not in found.release]


@pytest.mark.parametrize(
    ("tasks", "limit", "offset", "leaves_out", "looked"),
    [
        (["aaXb"], None, 0, False, "abX"),
        (["aaXb"], 2, 0, False, "a"),
        (["aaXb"], 1, 3, False, "b"),  # X is not asked
        (["XYabc"], 2, 0, False, "XY"),
        # What is left out makes way, and what comes before says where the first doc is.
        (["XYabc"], 2, 0, True, "XYab"),
        (["aXbYcd"], 1, 2, True, "aXbYc"),
        (["XXXY"], 1, 0, True, "XY"),
        (["ab", "cd"], 1, 0, False, "ac"),
        ([], 8, 0, True, ""),
    ],
)
def test_which_videos_are_looked_at(
    tasks: list[str],
    limit: int | None,
    offset: int,
    leaves_out: bool,
    looked: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(settings.ALLOW_MISSING, "1" if leaves_out else "0")
    monkeypatch.setattr(before, "_checked", {})
    benchmark = Noting(tasks, leaves_out=leaves_out)
    with running.limited(limit, offset):
        before.checked(benchmark, list(benchmark.letters))
    assert benchmark.looked == {*looked}
