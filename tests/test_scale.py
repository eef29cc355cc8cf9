"""Large runs: work that grows with the number of items, and no faster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import scale

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.metrics import stats
from tests.checks import table
from tests.golden.command import tasks_command

NO_DATA = {settings.DATA: "/nowhere", settings.JUDGE: "none"}  # no pictures of clips


def lines(work: Callable[[], object]) -> int:
    """How many lines of Python ran."""
    count = 0

    def trace(_frame: FrameType, event: str, _given: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def without_references(root: Path) -> None:
    """A MovieRecapsQA whose questions have no reference, as is allowed."""
    file = root / "movierecapsqa" / scale.DATA["movierecapsqa"].file
    segments = json.loads(file.read_text(encoding="utf-8"))
    for segment in segments:
        for question in segment["questions"]:
            question["datasetAnswer"] = ""
    file.write_text(json.dumps(segments), encoding="utf-8")


def first_videos(sample_root: Path, folder: Path) -> Path:
    """A root with MAIA's first video alone, of 192 pairs: enough, and half the time."""
    place = f"maia/{scale.DATA['maia'].file}"
    entries = json.loads((sample_root / place).read_text(encoding="utf-8"))
    (folder / "first" / place).parent.mkdir(parents=True)
    (folder / "first" / place).write_text(json.dumps(entries[:1]), encoding="utf-8")
    return folder / "first"


@table(
    "benchmark, change",
    [*((name, None) for name in scale.DATA), ("movierecapsqa", without_references)],
)
def test_twice_the_items_are_twice_the_work(
    benchmark: str,
    change: Callable[[Path], None] | None,
    sample_root: Path,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of Python: what compiled code does in one line counts as one."""
    monkeypatch.setattr(prepare, "load_data", scale.look)
    monkeypatch.setattr(stats, "GROUPS", 2)  # left out in turn: up to 50, as many as videos
    monkeypatch.setenv(settings.JUDGE, "none")
    counts: dict[str, list[int]] = {}
    source = first_videos(sample_root, tmp_path) if benchmark == "maia" else sample_root
    # MAIA's one video has 192 pairs: half the size is enough.
    for place, times in enumerate((1, 1, 2, 4) if benchmark == "maia" else (1, 2, 4, 8)):
        with context.begun():
            root = tmp_path / str(place)
            scale.write_release(benchmark, source, root / "data", times)
            if change:
                change(root / "data")
            monkeypatch.setenv(settings.DATA, str(root / "data"))
            work = scale.Work(benchmark, root / "out")
            report = partial(
                tasks_command, "report", root / "out", "--format", "text", cache=cache, env=NO_DATA
            )
            phases = {
                **{name: partial(steps[-1], work) for name, steps in scale.PHASES.items()},
                "report": report,
            }
            for name, phase in phases.items():
                if place == 0:
                    phase()  # with its imports
                else:
                    counts.setdefault(name, []).append(lines(phase))
    grown = {
        name: (third - second) / (second - first) for name, (first, second, third) in counts.items()
    }
    # Beside other tests of one process up to 2.5 was seen; quadratic work would give 4.
    assert grown == {name: pytest.approx(2, rel=0.3) for name in grown}, counts


def test_the_job_array_is_a_script_and_the_host_takes_its_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lmms_eval import __main__ as host

    page = Path(__file__).parents[1] / "docs" / "several_gpus.md"
    (script,) = re.findall(
        r"^```bash\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    for number in ("0", "7"):
        env = {"PATH": "/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": number}
        shown = script.replace("lmms_eval --", "printf '%s\\n' lmms_eval --")
        done = subprocess.run(
            ["bash"], input=shown, env=env, text=True, check=True, capture_output=True
        )
        monkeypatch.setattr("sys.argv", done.stdout.splitlines())
        _, options = host.parse_eval_args()
        assert (options.offset, options.limit) == (2496 * int(number), 2496)
        assert options.tasks == "maia_vsv"
        assert options.log_samples
