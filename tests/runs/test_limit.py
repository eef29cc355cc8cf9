"""`--limit` and `--offset`: only the videos of the docs that run are looked at before a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import context, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, LoadedData
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.released_files import Release
from tests.checks import table


class Letters(Release):
    """Every letter is a record."""

    n_records = 0


class Noting(Benchmark):
    """Docs with a video each, a letter; a capital cannot be used. Notes what is looked at."""

    name = title = "noting"
    records = "letters"

    def __init__(self, tasks: Sequence[str], *, leaves_out: bool) -> None:
        self.letters, self.leaves_out = {f"{n}": own for n, own in enumerate(tasks)}, leaves_out
        self.looked: set[str] = set()

    def load(
        self, names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
    ) -> LoadedData:
        given = {letter for own in self.letters.values() for letter in own}
        looked = given if only is None else given & {*only}
        self.looked |= looked
        bad = {one: "bad" for one in sorted(looked) if one.isupper() and self.leaves_out}
        return LoadedData(Letters(place=Path("here"), data_files={}, digest="", problems=bad))

    def docs(self, loaded: LoadedData, task: str) -> list[dict[str, Any]]:
        return [
            {"video_path": one} for one in self.letters[task] if one not in loaded.release.problems
        ]


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
        prepare.checked(benchmark, list(benchmark.letters))
    assert benchmark.looked == {*looked}


def test_a_task_without_items_stops_before_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    noting = Noting(["Xa", "Y"], leaves_out=True)
    monkeypatch.setattr(registry, "benchmarks_of", lambda _: [(noting, ["0", "1"])])
    told = (
        r"1: none of 2 noting letters can be run:\n  X: bad\n  Y: bad\nTasks that "
        r"can be run: --tasks 0$"
    )
    with pytest.raises(DataError, match=told):
        prepare.make_media(["0", "1"])


def test_a_part_after_the_last_doc_stops_before_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    noting = Noting(["abc", "ab"], leaves_out=False)
    monkeypatch.setattr(registry, "benchmarks_of", lambda _: [(noting, ["0", "1"])])
    with (
        context.begun(limit=2, offset=2),
        pytest.raises(DataError, match=r"^--offset 2: 1 has only 2 docs$"),
    ):
        prepare.make_media(["0", "1"])
