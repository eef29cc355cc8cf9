"""What a user could name when interface.json was recorded still works, or the changelog says."""

from __future__ import annotations

import json

import pytest

from tests.golden import interface

RECORDED = json.loads(interface.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", RECORDED)
def test_nothing_is_gone_without_a_word(part: str) -> None:
    gone = set(RECORDED[part]) - set(interface.now()[part]) - interface.removed()
    assert not gone, f"neither there nor under Removed in docs/changelog.md: {sorted(gone)}"


def test_what_the_changelog_calls_removed_is_gone() -> None:
    there = {name for names in interface.now().values() for name in names}
    assert not interface.removed() & there
