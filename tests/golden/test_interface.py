"""Every command, option, variable, task and model that a user can name: still there, or removed.

What could be named when interface.json was recorded still works, or the changelog says otherwise.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import models
from tests.conftest import REPOSITORY

FILE = Path(__file__).with_name("interface.json")
PARTS = ("lmms-eval-tasks", "lmms_eval", "variables", "tasks", "models")


def now() -> dict[str, list[str]]:
    """What there is today, sorted."""
    options = [one.option for one in settings.TABLE.values() if one.is_option]
    made = [one["model_id"] for one in models.MANIFESTS]
    found = (_commands(), options, settings.TABLE, _tasks(), made)
    return {part: sorted(names) for part, names in zip(PARTS, found, strict=True)}


def removed() -> set[str]:
    """First column of the changelog's tables of what was removed."""
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([^`]+)` \| \S", changelog, re.MULTILINE))


def save() -> None:
    """Write interface.json."""
    parts = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in now().items()]
    FILE.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def _commands() -> Iterator[str]:
    """`command`, and `command --option`."""
    (script, *_) = entry_points(group="console_scripts", name="lmms-eval-tasks")
    app = sys.modules[script.load().__module__].app

    def walk(command: Any, name: str) -> Iterator[str]:
        yield name
        options = [one for p in command.params for one in (*p.opts, *p.secondary_opts)]
        yield from (f"{name} {one}" for one in options if one.startswith("-"))
        for part, own in getattr(command, "commands", {}).items():
            yield from walk(own, f"{name} {part}")

    yield from walk(typer.main.get_command(app), "lmms-eval-tasks")


def _tasks() -> Iterator[str]:
    for file in (REPOSITORY / "lmms_eval_tasks").rglob("*.yaml"):
        # Tags such as !function are the host's.
        lines = file.read_text(encoding="utf-8").splitlines()
        found = [line for line in lines if re.match(r"(task|group): *\w", line)]
        yield from (str(value) for line in found for value in yaml.safe_load(line).values())


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_gone_without_a_word(part: str) -> None:
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    gone = set(recorded[part]) - set(now()[part]) - removed()
    assert not gone, f"neither there nor under Removed in CHANGELOG.md: {sorted(gone)}"


def test_what_the_changelog_calls_removed_is_gone() -> None:
    assert not removed() & {name for names in now().values() for name in names}
