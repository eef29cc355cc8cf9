"""A slice of the long form (`make faults`): each fault at one moment, on the sample of MAIA."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import console
from tests import warm
from tests.faults.__main__ import complaints
from tests.faults.home import Home, Subject
from tests.faults.played import play
from tests.faults.table import FAULTS, SLICE
from tests.golden import judge
from tests.local_endpoint import LocalEndpoint

pytestmark = pytest.mark.host

SUBJECT = Subject("maia_oevqa_1frame")
KNOWN = {fault.name: fault for fault in FAULTS}
Make = Callable[[str], Home]


@pytest.fixture(scope="module")
def make(
    server: warm.Server, cache: Path, sample_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Make]:
    """Folders of users whose judge never fails."""
    with LocalEndpoint(judge.reply, model="good") as endpoint:

        def made(name: str) -> Home:
            spec = f"good@{endpoint.url}"
            return Home(tmp_path_factory.mktemp("home") / name, cache, server, spec)

        yield made


@pytest.fixture(scope="module")
def right(make: Make) -> Any:
    """The numbers of a run that nothing disturbs."""
    home = make("undisturbed")
    (run,) = home.run(SUBJECT.command)
    assert run.code == 0, run.stderr[-3000:]
    assert run.lines == []
    (numbers,) = home.results()
    return numbers


@pytest.mark.parametrize("name", SLICE)
def test_nothing_is_lost(name: str, make: Make, right: Any) -> None:
    fault = KNOWN[name]
    lost = play(fault, fault.moments[0], SUBJECT, make("broken"), right)
    if lost.skipped:
        pytest.skip(lost.skipped)
    assert complaints(fault, lost) == []


def test_a_log_on_a_full_disk_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with suppress(OSError), open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        console.say("a line")
        monkeypatch.undo()
        told.append("went on")
    assert told == ["went on"]
