"""A desk of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local_endpoint import LocalEndpoint
from tests.movierecapsqa.facts.desk import Desk, FactWriter


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with LocalEndpoint(writer := FactWriter()) as endpoint:
        yield Desk(tmp_path, endpoint, writer)
