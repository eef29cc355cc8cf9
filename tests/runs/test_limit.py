"""`--limit` and `--offset`: only the videos of the docs that run are looked at before a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import context, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Found
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.runs import before
from tests.checks import table

TASKS = ("maia_vsv", "maverix_long_av", "movierecapsqa_segment", "haven_v2v")
TASKS += ("cvrr_es_partial_actions",)


@pytest.mark.parametrize("task", TASKS)
def test_of_each_benchmark(task: str, sample_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.DATA, str(sample_root))
    monkeypatch.setenv(settings.JUDGE, "none")
    before.check([task])
    whole = before.docs(registry.of(task), task)
    looked: list[Path] = []
    look = video_checks._looked

    def noted(file: Path, *state: Any) -> Any:
        looked.append(file)
        return look(file, *state)

    monkeypatch.setattr(video_checks, "_looked", noted)
    with context.begun(limit=1, offset=1):
        before.check([task])
        found = before.docs(registry.of(task), task)
    assert ([one["id"] for one in found], found[1]) == ([one["id"] for one in whole], whole[1])
    assert [str(path.resolve()) for path in looked] == [whole[1]["video_path"]]


class Noting(Benchmark):
    """Docs with a video each, a letter; a capital cannot be used. Notes what is looked at."""

    name = title = "noting"

    def __init__(self, tasks: Sequence[str], *, leaves_out: bool) -> None:
        self.letters, self.leaves_out = {f"{n}": own for n, own in enumerate(tasks)}, leaves_out
        self.looked: set[str] = set()

    def look(
        self, names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
    ) -> Found:
        given = {letter for own in self.letters.values() for letter in own}
        looked = given if only is None else given & {*only}
        self.looked |= looked
        return Found({one for one in looked if one.isupper() and self.leaves_out}, "")

    def docs(self, found: Found, task: str) -> list[dict[str, Any]]:
        return [{"video_path": one} for one in self.letters[task] if one not in found.release]


@table(
    "tasks, limit, offset, leaves_out, looked",
    [
        (["aaXb"], None, 0, False, "abX"),
        (["aaXb"], 2, 0, False, "a"),
        (["aaXb"], 1, 3, False, "b"),  # X is not asked
        (["XYabc"], 2, 0, False, "XY"),
        (["ab", "cd"], 1, 0, False, "ac"),
        (["XYabc"], 2, 0, True, "XYabc"),  # what is left out makes way: all are looked at
        ([], 8, 0, False, ""),
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
    benchmark = Noting(tasks, leaves_out=leaves_out)
    with context.begun(limit=limit, offset=offset):
        before.checked(benchmark, list(benchmark.letters))
    assert benchmark.looked == {*looked}


def test_a_task_without_items_stops_before_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    noting = Noting(["Xa", "Y"], leaves_out=True)
    monkeypatch.setattr(registry, "chosen", lambda _: [(noting, ["0", "1"])])
    with pytest.raises(DataError, match=r"noting: nothing is left of 1$"):
        before.make_media(["0", "1"])
