"""The files around the code say what the code does: workflows, templates, versions, the lock."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_workflows_run_what_a_person_runs() -> None:
    """CI is `.ci/run`, which is the README's command; every target of make is there."""
    assert WORKFLOWS
    commands = [step["run"] for workflow in WORKFLOWS for step in steps(workflow) if "run" in step]
    assert commands.count(".ci/run") == len(WORKFLOWS)
    assert text(".ci/run").rstrip().endswith("exec make test")
    named = {word for one in commands for word in re.findall(r"\bmake ([a-z-]+)", one)}
    named |= set(re.findall(r"`make ([a-z-]+)[ `]", text("CONTRIBUTING.md")))
    assert named <= TARGETS
    (hook,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    assert hook["entry"].split()[-1] in TARGETS


def test_templates_are_forms() -> None:
    """Each field has an id of its own and a label; the config is no form."""
    for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        if file.stem == "config":
            continue
        assert {"name", "description", "body"} <= content.keys(), file
        ids = [field["id"] for field in content["body"]]
        assert len(ids) == len(set(ids)) > 0
        assert all(field["attributes"]["label"] for field in content["body"])


def test_python_versions_are_one_list() -> None:
    says = {f"Programming Language :: Python :: {one}" for one in PYTHONS}
    assert says == {c for c in PROJECT["classifiers"] if ":: Python ::" in c}
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    ci = yaml.safe_load(text(".github/workflows/ci.yml"))
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS
    assert f"{PYTHONS[0]} to {PYTHONS[-1]}" in text("README.md")


def test_one_version() -> None:
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in text("CITATION.cff")
    first = re.search(r"^## \[?([\d.]+)", text("CHANGELOG.md"), re.M)
    assert first is not None
    assert version.startswith(first[1])


def test_one_placeholder_for_the_repository() -> None:
    """Whoever publishes it replaces OWNER, here and nowhere else; no other address is invented."""
    address = "https://github.com/OWNER/lmms-eval-tasks"
    assert PROJECT["urls"]["Repository"] == address
    files = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.*"), ROOT / "pyproject.toml"]
    for file in files:
        found = re.findall(
            r"https://github\.com/[\w.-]+/lmms-eval-tasks\b", file.read_text("utf-8")
        )
        assert set(found) <= {address}, file


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_holds_what_is_required(python: str) -> None:
    """Each requirement that counts on Linux has one locked version, and it fits."""
    environment = {
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "platform_system": "Linux",
    }
    environment |= {"python_version": python, "python_full_version": f"{python}.9", "extra": ""}

    def counts(one: Requirement) -> bool:
        return one.marker is None or one.marker.evaluate(environment)

    lines = [line for line in text(".ci/requirements.lock").splitlines() if line[:1].isalnum()]
    locked = {one.name.lower(): one for one in map(Requirement, lines) if counts(one)}
    groups = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(line for own in groups.values() for line in own)]
    for line in wanted:
        one = Requirement(line)
        if one.name != PROJECT["name"] and counts(one):
            (pinned,) = locked[one.name.lower()].specifier
            assert one.specifier.contains(Version(pinned.version)), line
