"""The site of this documentation: `make docs`, into out/docs. Pages and files keep their paths."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def slug(title: str, separator: str = "-") -> str:
    """A heading's anchor, as GitHub makes it: the same links work in both."""
    return re.sub(r"[^\w\- ]", "", title).lower().replace(" ", separator)


def pages() -> list[Path]:
    """The pages of the navigation, in order, relative to the repository."""
    listed = (REPOSITORY / "docs" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    return [Path(found) for found in re.findall(r": (\S+\.md)$", listed, re.MULTILINE)]


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The file, relative to the repository, and the anchor of each link that leads to no site."""
    for target in LINK.findall((REPOSITORY / page).read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            file, _, anchor = target.partition("#")
            there = (REPOSITORY / page.parent / file).resolve() if file else REPOSITORY / page
            yield there.relative_to(REPOSITORY), anchor


def build(folder: Path) -> Path:
    """Build the site in a new folder, beside what it is built of; returns its own.

    Raises:
        subprocess.CalledProcessError: the builder found a fault; it has printed it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    linked = {there for page in pages() for there, _ in links(page)}
    for file in {*pages(), *linked, Path("docs/site.css")}:
        place = folder / "pages" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / file, place)
    for name in ("mkdocs.yml", "build_site.py"):  # the second for its slugs
        shutil.copyfile(REPOSITORY / "docs" / name, folder / name)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "site"


if __name__ == "__main__":
    site = build(REPOSITORY / "out" / "docs")
    print(f"the site: {site / 'index.html'}")
    print(f"with its search, which browsers want served: python -m http.server -d {site}")
