"""`data status` and `data prepare`, of every benchmark: a release to where it is read, as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

from lmms_eval_tasks import registry
from lmms_eval_tasks.errors import DataError
from tests.checks import refused, table


@table("name", registry.NAMES)
def test_a_release_in_its_place(name: str, sample_root: Path, tmp_path: Path) -> None:
    """Copied or linked, also twice; another file in a place stays, and nothing is put then."""
    benchmark, source = registry.load(name), sample_root / name
    whole = benchmark.status(sample_root)
    for link in (True, False):
        place = tmp_path / str(link) / name
        for _ in range(2):
            told = benchmark.prepare(source, place.parent, link).splitlines()
        there = {path for path in place.rglob("*") if path.is_file()}
        assert told[0] == f"{'linked' if link else 'copied'} {len(there)} files to {place}"
        assert set(benchmark.files(place).values()) == there
        assert {path.is_symlink() for path in there} == {link}
        found = benchmark.status(place.parent)
        assert (found.version, found.counts, found.problem) == (whole.version, whole.counts, "")
        # HAVEN's videos are no part of its release.
        assert found.videos == (0 if name == "haven" else whole.videos)
        assert tuple(told[1 : 1 + len(found.notes)]) == tuple(found.notes)
    taken = min(there)
    taken.write_text("[]", encoding="utf-8")
    says = f"{taken}: is another file than {source}.*remove it first"
    refused(DataError, says, benchmark.prepare, source, place.parent, link=True)
    assert taken.read_text(encoding="utf-8") == "[]"


@table("name", [name for name in registry.NAMES if name not in ("haven", "maia")])
def test_a_video_that_hides_another(name: str, sample_root: Path, tmp_path: Path) -> None:
    """Of another container: the one that was there would be taken for it."""
    source = shutil.copytree(sample_root / name, tmp_path / "download")
    video = min(source.rglob("*.mp4"))
    (tmp_path / name / video.parent.relative_to(source)).mkdir(parents=True)
    shutil.copy(video, tmp_path / name / video.relative_to(source))
    video.rename(video.with_suffix(".mkv"))
    says = f"{tmp_path / name}: another file there hides .*{video.stem}.mkv; remove it first"
    refused(DataError, says, registry.load(name).prepare, source, tmp_path, link=False)


def test_no_data(tmp_path: Path) -> None:
    for name in registry.NAMES:
        benchmark = registry.load(name)
        assert benchmark.status(tmp_path).problem == benchmark.how_to_get
