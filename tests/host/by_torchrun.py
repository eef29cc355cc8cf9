"""Two processes that torchrun starts: `make test-host` runs this beside the tests of this folder.

`make test` forks its processes and gives them what torchrun would tell them (tests/conftest.py):
two fresh ones import for half a minute, and differ from those in nothing of ours.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Launch, launch_all

TASK = "maia_vsv"


@pytest.mark.host
def test_torchrun_gives_the_numbers_of_one_process(launch: Launch, tmp_path: Path) -> None:
    model = {"model": "tasks_scripted", "tasks": TASK, "limit": 7}
    found = {}
    for name, processes in (("two", 2), ("one", 1)):
        (tmp_path / name).mkdir()
        told = {"processes": processes, "by_torchrun": processes > 1}
        found |= launch_all(launch, tmp_path / name, {name: model}, **told)
    order = [sample["doc_id"] for sample in found["two"].samples(TASK)]
    assert sorted(order) == list(range(7)) != order
    assert found["two"].numbers == found["one"].numbers
