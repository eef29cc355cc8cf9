"""A slice of the long form (`make faults`): each fault at one moment, on the sample of MAIA."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import notify
from tests import warm
from tests.faults.__main__ import complaints
from tests.faults.home import Home, Subject, reply
from tests.faults.played import play
from tests.faults.table import FAULTS, SLICE
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
    with LocalEndpoint(reply, model="good") as endpoint:

        def made(name: str) -> Home:
            spec = f"good@{endpoint.url}"
            return Home(tmp_path_factory.mktemp("home") / name, cache, server, spec)

        yield made


@pytest.fixture(scope="module")
def right(make: Make) -> Callable[..., Any]:
    """The numbers of runs that nothing disturbs, by the options that name a model."""

    @functools.cache
    def numbers(*model: str) -> Any:
        home = make("undisturbed")
        (run,) = home.run([*SUBJECT.command, *model])
        assert run.code == 0, run.stderr[-3000:]
        assert model or run.lines == []
        (found,) = home.results()
        return found

    return numbers


@pytest.mark.parametrize("name", SLICE)
def test_nothing_is_lost(name: str, make: Make, right: Callable[..., Any]) -> None:
    fault = KNOWN[name]
    lost = play(fault, fault.moments[0], SUBJECT, make("broken"), right(*fault.model))
    if lost.skipped:
        pytest.skip(lost.skipped)
    assert complaints(fault, lost) == []


def test_a_log_on_a_full_disk_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with suppress(OSError), open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        notify.notify("a line")
        monkeypatch.undo()
        told.append("went on")
    assert told == ["went on"]
