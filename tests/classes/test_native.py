"""How many frames of our tasks the host's model classes give to a checkpoint of their family.

At default arguments, counted in what the vision tower gets, whose pixels say which frames they are.
Expectations stand in tests/cases/frames_of_classes.json. Four telling classes in CI; all of them:

    MODEL_CLASSES=all python -m pytest -s tests/classes
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lmms_eval_tasks.running import class_table
from tests.classes import coded, runs
from tests.conftest import OFFLINE

TABLE = json.loads(
    (Path(__file__).parents[1] / "cases" / "frames_of_classes.json").read_text(encoding="utf-8")
)
ROWS = [runs.Row(**row) for row in TABLE["rows"]]
ALL = os.environ.get("MODEL_CLASSES") == "all"
SLICE = [row for row in ROWS if ALL or row.name in TABLE["slice"]]
CODED = tuple(TABLE["tasks"])
REAL = "real"  # maia_vsv with a video of the release


@pytest.fixture(scope="module")
def checkpoints(shared: Path) -> Path:
    return shared / "tiny-families"


@pytest.fixture(scope="module")
def coded_root(sample_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return coded.root(sample_root, tmp_path_factory.mktemp("coded"))


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    for name, value in {**OFFLINE, "LMMS_EVAL_TASKS_CACHE": str(cache)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")


@pytest.mark.parametrize("row", SLICE, ids=[row.name for row in SLICE])
def test_frames(
    row: runs.Row, coded_root: Path, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(row, [task for task in CODED if task in row.tasks], coded_root, checkpoints, monkeypatch)


REAL_ROWS = [
    row._replace(tasks={"maia_vsv": row.tasks[REAL]}) for row in SLICE if REAL in row.tasks
][slice(None) if ALL else slice(-1, None)]


@pytest.mark.parametrize("row", REAL_ROWS, ids=[row.name for row in REAL_ROWS])
def test_frames_of_a_released_video(
    row: runs.Row,
    maia_data: Path,
    checkpoints: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "maia").symlink_to(maia_data)
    check(row, ["maia_vsv"], tmp_path, checkpoints, monkeypatch)


def check(
    row: runs.Row, tasks: list[str], root: Path, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if row.missing:
        pytest.skip(f"{', '.join(row.missing)} not as this needs it")
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(root))
    found = runs.measured(row, checkpoints, tasks)
    assert found == runs.expected(row, found)


def test_the_table_of_classes_tells_what_was_run() -> None:
    for name, kind in {(row.model, row.interface) for row in ROWS}:
        own = [row for row in ROWS if (row.model, row.interface) == (name, kind)]
        found = class_table.class_of(name, kind)  # type: ignore[arg-type]
        assert found is not None
        media, outcomes = found.media, [one for row in own for one in row.tasks.values()]
        if any(isinstance(one, list) and len(one) >= 3 for one in outcomes):
            assert media.how == "run", name
        if media.video and media.takes(32) and not media.rate and not media.broken:
            assert [32, 32, 32] in [row.tasks["maia_vsv"] for row in own], name
