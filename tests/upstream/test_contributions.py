"""Each contribution to the host: its patch applies and its tests pass (alone: alone.py)."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import warm
from tests.upstream import host_copy
from tests.upstream.host_copy import HostCopy

# Of the host's .github/pull_request_template.md: its sections, and how many points one may have.
SECTIONS = (
    *("Summary", "In scope", "Out of scope", "Validation", "Risk / Compatibility"),
    "Type of Change",
)
MOST = {"Summary": 3, "Validation": 3, "Risk / Compatibility": 2}
HAVE_TESTS = [one for one in host_copy.contributions() if any(one.glob("test/**/test_*.py"))]
NAMES = {file.stem for one in HAVE_TESTS for file in one.glob("test/**/test_*.py")}

# Three task managers read all YAMLs of the host: in C in a tenth of 20 s.
FAST = """
import yaml, yaml.loader

class Fast(yaml.CFullLoader):
    def __init__(self, stream):
        super().__init__(stream)
        self.name = getattr(stream, "name", "")

yaml.FullLoader = yaml.loader.FullLoader = Fast
"""


# What a test that does not find its subject raises; the subject's name is in the message.
_ABSENT = re.compile(
    r"^E +((?:ImportError|ModuleNotFoundError|NameError|SyntaxError): .+)", re.MULTILINE
)


def outcomes(host: HostCopy, server: warm.Server) -> Mapping[str, set[str]]:
    """How the tests of each file in a host's folder ended: `passed`, `failed`, or what was absent.

    Skipped tests are left out. A test that raises an ImportError or NameError has that message
    instead of `failed`: it may be red on any host.
    """
    report = host.folder / "report.xml"
    (host.folder / "conftest.py").write_text(FAST, encoding="utf-8")
    options = ("-p", "no:cacheprovider", "--continue-on-collection-errors")
    given = (*options, f"--junitxml={report}", "test")
    done = host.forked(server, "-m", "pytest", "-q", *given)
    assert report.is_file(), done.stdout[-3000:] + done.stderr[-3000:]
    ended: dict[str, set[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.attrib["classname"] or case.attrib["name"]  # a file that can't be imported
        (file,) = re.findall(r"\btest_\w+", name)[:1]
        bad = [one.text or "" for kind in ("failure", "error") for one in case.findall(kind)]
        absent = _ABSENT.findall("\n".join(bad))
        if case.find("skipped") is None:
            ended.setdefault(file, set()).add(
                absent[-1] if absent else "failed" if bad else "passed"
            )
    return ended


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> HostCopy:
    """The host with all contributions, which so do not contradict each other."""
    return host_copy.copy(tmp_path_factory.mktemp("after"), host_copy.contributions())


@pytest.mark.host
def test_tests_pass_after(after: HostCopy, server: warm.Server) -> None:
    """One that fails with its contribution shows a bug."""
    assert NAMES
    ended = outcomes(after, server)
    assert {name: ended.get(name) for name in NAMES} == {name: {"passed"} for name in NAMES}


def test_what_brings_code_brings_tests() -> None:
    """A description alone, of what is not sent, has none."""
    contributions = host_copy.contributions()
    bring = [one for one in contributions if {*host_copy.files_of(one), *one.glob("*.patch")}]
    assert bring == HAVE_TESTS
    assert len(bring) < len(contributions)


@pytest.mark.parametrize("one", host_copy.contributions(), ids=lambda one: one.name)
def test_a_patch_applies_alone(one: Path, tmp_path: Path) -> None:
    """To the installed host as it is: contributions are sent one at a time."""
    if (one / host_copy.CHANGE).is_file():
        spec = Path(__import__("lmms_eval").__path__[0]).parent
        git = ["git", "apply", "--check", "--whitespace=error", str(one / host_copy.CHANGE)]
        listed = re.findall(r"^--- a/(\S+)", (one / host_copy.CHANGE).read_text(), re.MULTILINE)
        for name in listed:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((spec / name).read_bytes())
        done = subprocess.run(git, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("one", host_copy.contributions(), ids=lambda one: one.name)
def test_a_description_has_the_hosts_form(one: Path) -> None:
    """A title, the sections of its template, none empty, with as many points as it allows."""
    text = (one / host_copy.DESCRIPTION).read_text(encoding="utf-8")
    assert re.match(r"# (fix|feat)(\(\w+\))?: .+\n\n## ", text)
    parts = dict(re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    points = {name: re.findall(r"^- .", part, re.MULTILINE) for name, part in parts.items()}
    assert tuple(parts) == SECTIONS
    assert [name for name, found in points.items() if not found] == []
    assert {name for name, most in MOST.items() if len(points[name]) > most} == set()
    assert re.fullmatch(r"(?:- \[x\] \w.+\n)+", parts["Type of Change"])  # the checked boxes alone
