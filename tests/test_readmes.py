"""The pages and the site of them: short, whole, and every link leads somewhere."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import build_site
import pytest
import yaml

from lmms_eval_tasks import __version__
from lmms_eval_tasks.registry import NAMES as BENCHMARKS

ROOT = Path(__file__).resolve().parents[1]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {build_site.slug(title) for title in titles}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_readme_names_every_task(name):
    folder = ROOT / "lmms_eval_tasks" / name
    text = (folder / "README.md").read_text(encoding="utf-8")
    yamls = [file.read_text(encoding="utf-8") for file in folder.glob("*.yaml")]
    tasks = {found for one in yamls for found in re.findall(r"^(?:task|group): (\w+)$", one, re.M)}
    assert len(tasks) == len(yamls)
    assert sorted(task for task in tasks if f"`{task}`" not in text) == []


def test_every_page_is_in_the_navigation():
    places = ("", "docs/", "leaderboards/", "leaderboards/*/", "lmms_eval_tasks/*/", "upstream/")
    found = {file.relative_to(ROOT) for one in places for file in ROOT.glob(f"{one}*.md")}
    listed = build_site.pages()
    assert len(listed) == len({*listed})
    part = Path("lmms_eval_tasks/models/recipes.md")  # of docs/models.md
    assert found - {part} <= {*listed}


@pytest.mark.parametrize("page", build_site.pages(), ids=str)
def test_links_lead_somewhere(page):
    for there, anchor in build_site.links(page):
        assert (ROOT / there).is_file(), there
        assert not anchor or anchor in anchors(ROOT / there), f"{there}#{anchor}"


def cited(file: Path) -> Iterator[tuple[str, str]]:
    """The pages that a file names, each with the section in quotation marks behind it, or "".

    A whole text in quotation marks is no citation but the name of a file that code opens.
    """
    text = re.sub(r"\n[ #]*", " ", file.read_text(encoding="utf-8"))
    for found in re.finditer(r'(?<![\w/.<>{}*"-])([\w./-]*\w\.md\b)(?:, "([^"]+)")?', text):
        yield found[1], found[2] or ""


def test_every_page_that_is_cited_exists():
    """In code, task files, prompts and pages: by its path in the repository, or from the file's."""
    kinds = ("*.py", "*.yaml", "*.yml", "*_yaml", "*.toml", "*.md", "*.html", "*.js", "*.txt")
    rooms = ("lmms_eval_tasks", "utils", "judges", "leaderboards", "benchmarks", "docs")
    files = {file for room in rooms for kind in kinds for file in (ROOT / room).rglob(kind)}
    files |= {ROOT / name for name in ("README.md", "Makefile", "pyproject.toml")}
    files |= {*(ROOT / "tests").rglob("*.py"), *(ROOT / "tests" / "cases").rglob("*.json")}
    files -= {ROOT / "CHANGELOG.md"}  # it names pages of the past
    files -= {*(ROOT / "tests" / "upstream").rglob("*")}  # pages of lmms-eval
    missing, found = [], 0
    for file in files:
        for name, section in cited(file):
            if name.startswith("//"):  # of an address
                continue
            places = [ROOT / name, file.parent / name]
            if name.startswith("../"):  # a template of a page
                places.append(ROOT / "docs" / name)
            there = [place for place in places if place.is_file()]
            found += 1
            if not there or (section and build_site.slug(section) not in anchors(there[0])):
                missing.append(f"{file.relative_to(ROOT)}: {name} {section}")
    assert found > 100
    assert missing == []


def test_the_page_of_citations_says_what_the_file_says():
    """Of this package, of the host, and of each benchmark's papers."""
    text = (ROOT / "docs" / "citation.md").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),\n(.*?)^\}$", text, re.M | re.S)
    found = {key: dict(re.findall(r"^ +(\w+) += \{(.*?)\},?$", one, re.M)) for key, one in entries}
    assert set(re.findall(r"\| `(\w+)` \|$", text, re.M)) == set(found)
    own = found.pop("lmms_eval_tasks")
    file = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (own["title"], own["version"], own["license"]) == (file["title"], __version__, "MIT")
    assert file["version"] == __version__
    listed = []
    for one in file["references"]:
        names = [f"{author['given-names']} {author['family-names']}" for author in one["authors"]]
        (arxiv,) = (identifier["value"] for identifier in one["identifiers"])
        told = {"author": " and ".join(names), "title": f"{{{one['title']}}}"}
        told |= {"year": str(one["year"]), "eprint": arxiv.removeprefix("arXiv:")}
        listed.append(told | {"archivePrefix": "arXiv"})
    assert [*found.values()] == listed
    assert len(listed) == len(BENCHMARKS) + 2  # the judge study, and the host


class Html(HTMLParser):
    """The anchors of a page of the site, and what it links or loads."""

    def __init__(self, file: Path):
        super().__init__()
        self.anchors, self.links = set(), set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given.get("id"), given.get("name")}
        own = {given[one] for one in ("href", "src") if given.get(one)}
        self.links |= own
        if tag != "a":  # only what a reader clicks leads out
            assert not any(urlsplit(one).netloc for one in own), own


def test_the_site_leads_somewhere(tmp_path):
    pytest.importorskip("zensical", reason="the site's builder is not installed")
    site = build_site.build(tmp_path / "built")
    apart = {site / "404.html", site / "docs" / "haven_record.html"}  # no page of ours made them
    found = {file: Html(file) for file in {*site.rglob("*.html")} - apart}
    assert len(found) == len(build_site.pages())
    for file, page in found.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            there = there / "index.html" if there.is_dir() else there
            assert there.is_file(), f"{file.relative_to(site)}: {link}"
            if parts.fragment and there in found:
                assert unquote(parts.fragment) in found[there].anchors, f"{file}: {link}"
