"""Large runs: work that grows with the number of items, and no faster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import scale

from lmms_eval_tasks import benchmarks, settings


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


@pytest.mark.parametrize("benchmark", scale.DATA)
def test_docs_of_twice_the_items_are_twice_the_work(
    benchmark: str, sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no question has a reference, as MovieRecapsQA's may."""
    own, (task, *_) = benchmarks.load(benchmark), scale.DATA[benchmark].tasks
    took = []
    for times in (2, 4, 8):
        root = tmp_path / str(times)
        scale.write_release(benchmark, sample_root, root, times)
        file = root / benchmark / scale.DATA[benchmark].file
        content = json.loads(file.read_text(encoding="utf-8"))
        for segment in content if benchmark == "movierecapsqa" else ():
            for question in segment["questions"]:
                question["datasetAnswer"] = ""
        file.write_text(json.dumps(content), encoding="utf-8")
        monkeypatch.setenv(settings.DATA, str(root))
        found = own.look([task], only=())
        took.append(lines(lambda: own.docs(found, task)))  # noqa: B023
    first, second, third = took
    assert third - second == pytest.approx(2 * (second - first), rel=0.1)


def test_the_job_array_is_a_script_and_the_host_takes_its_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lmms_eval import __main__ as host

    page = Path(__file__).parents[1] / "docs" / "scale.md"
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
