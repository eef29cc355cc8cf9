"""Every command on every page is one that its program takes (page_commands.py)."""

from pathlib import Path

import pytest

from tests import page_commands


@pytest.mark.parametrize("page", page_commands.PAGES, ids=str)
def test_commands_are_taken(page: Path) -> None:
    for language, text in page_commands.blocks(page):
        page_commands.check_block(language, text)
    for command in page_commands.of(page):
        try:
            page_commands.check(command)
        except (Exception, SystemExit) as error:
            raise AssertionError(f"{command.text}: {error!r}") from error
