"""Each contribution's tests without it: a test that passes then shows nothing of it.

`make test-upstream` runs these beside `tests/upstream`. They change with a contribution's own tests
and with the installed host and transformers, not with this package, so `make test` leaves them out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import warm
from tests.upstream import host_copy, test_transformers
from tests.upstream.test_contributions import HAVE_TESTS, NAMES, outcomes


def test_the_hosts_tests_fail_before(tmp_path: Path, server: warm.Server) -> None:
    before = host_copy.copy(tmp_path)
    for contribution in HAVE_TESTS:
        for file in contribution.glob("test/**/*"):
            if file.is_file():
                place = before.folder / file.relative_to(contribution)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(file.read_bytes())
    ended = outcomes(before, server)
    assert {name for name in NAMES if "failed" not in ended.get(name, set())} == set()


@pytest.mark.parametrize("one", test_transformers.CONTRIBUTIONS, ids=lambda one: one.name)
def test_those_of_transformers_fail_before(one: Path, tmp_path: Path) -> None:
    test_transformers.copied(one, tmp_path)
    assert test_transformers.failed(one, tmp_path)[0] > 0
