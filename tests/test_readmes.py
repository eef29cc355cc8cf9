"""A benchmark's README is short, names every task of its folder, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import BENCHMARKS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / "lmms_eval_tasks" / name / "README.md" for name in BENCHMARKS),
    *(ROOT / "leaderboards" / f"{name}.md" for name in BENCHMARKS),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "README.md",
]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_readme_is_short_and_names_every_task(name):
    folder = ROOT / "lmms_eval_tasks" / name
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 8192
    yamls = [file.read_text(encoding="utf-8") for file in folder.glob("*.yaml")]
    tasks = {found for one in yamls for found in re.findall(r"^(?:task|group): (\w+)$", one, re.M)}
    assert len(tasks) == len(yamls)
    assert sorted(task for task in tasks if f"`{task}`" not in text) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            file, _, anchor = target.partition("#")
            there = (page.parent / file).resolve() if file else page
            assert there.is_file(), target
            assert not anchor or anchor in anchors(there), target
