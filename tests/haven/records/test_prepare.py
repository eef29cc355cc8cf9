"""`data prepare`: the files of a release in their places, checked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.tasks import BENCHMARK
from tests.checks import refused
from tests.haven.release_files import content, write
from tests.utils.media.media_files import write_video


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """align_vsum/ with data of two sources, one video of theirs and a stranger."""
    folder = tmp_path / "align_vsum" / "data"
    write(write(folder, "tvsum", frames=12), "ovp", frames=12)
    place = folder / "videos" / "tvsum"
    place.mkdir(parents=True)
    write_video(place / "stranger.mp4", 180, codec="mpeg4")
    shutil.copyfile(place / "stranger.mp4", place / "video_1.mkv")
    return folder.parent


def tree(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


OVP = {"processed/ovp_data.json", "ovp/h5/ovp.h5"}
ALL = {*OVP, "processed/tvsum_data.json", "tvsum/h5/tvsum.h5", "videos/tvsum/video_1.mkv"}


def test_a_release(release: Path, root: Path) -> None:
    for given, link in ((".", True), ("data", False)):
        place = root / given
        told = BENCHMARK.prepare(release / given, place, link).splitlines()
        assert tree(place / "haven") == ALL
        done = "linked" if link else "copied"
        assert told[0] == (
            f"{done} 5 files to {place / 'haven'}: 4 videos of tvsum, ovp; 0 videos with problems"
        )
        assert tuple(told[1:]) == data.status(place).notes
        assert (place / "haven" / "tvsum" / "h5" / "tvsum.h5").is_symlink() is link
        assert BENCHMARK.prepare(release / given, place, link).splitlines()[0] == told[0]


def test_single_files_one_after_the_other(release: Path, root: Path) -> None:
    """The project's page links two folders."""
    BENCHMARK.prepare(release / "data" / "processed" / "ovp_data.json", root / "one", False)
    assert tree(root / "one" / "haven") == OVP  # a JSON file takes its own along
    for name in ("tvsum", "ovp"):
        shutil.move(release / "data" / name / "h5" / f"{name}.h5", release / f"{name}.h5")
    alone = release / "ovp.h5"
    told = f"^{alone}: is of no use without ovp_data.json; give both$"
    refused(DataError, told, BENCHMARK.prepare, alone, root, False)
    for given, without in ((release / "data" / "processed", 4), (alone, 2), (release, 0)):
        if without == 0:
            (release / "data").rename(release / "other")
        BENCHMARK.prepare(given, root, False)
        counts = released.read(root / "haven", Options()).counts
        assert counts["videos_without_hdf5"] == without


def test_other_data_is_in_the_way(release: Path, root: Path) -> None:
    BENCHMARK.prepare(release, root, False)
    given = write(release / "other", "ovp", videos=3) / "processed" / "ovp_data.json"
    place = root / "haven" / "processed" / "ovp_data.json"
    before = place.read_bytes()
    told = f"^{place}: is another file than {given}; remove it first$"
    refused(DataError, told, BENCHMARK.prepare, release / "other", root, False)
    assert place.read_bytes() == before


def test_a_hub_clone(root: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / "HAVEN" / "tvsum").mkdir(parents=True)
    lines = [json.dumps({"video": name, **entry}) for name, entry in content()[0].items()]
    (clone / "HAVEN" / "tvsum" / "all.jsonl").write_text("\n".join(lines), encoding="utf-8")
    BENCHMARK.prepare(clone, root, True)
    assert tree(root / "haven") == {"tvsum/all.jsonl"}
    assert data.status(root).counts["tvsum"] == 2
    write(root / "haven", videos=3)  # JSON is read in its stead
    told = f"^{root / 'haven'}: is read as other data than {clone}; remove it first$"
    refused(DataError, told, BENCHMARK.prepare, clone, root, True)


def test_what_is_none(root: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "tvsum.json").touch()
    for name, told in (
        ("gone", "no such file or folder$"),
        (
            "empty",
            r"no file of HAVEN \(expected processed/SOURCE_data.json and SOURCE/h5/SOURCE.h5",
        ),
        ("tvsum.json", "expected SOURCE_data.json or SOURCE.h5, SOURCE one of summe, tvsum, ovp, "),
    ):
        place = tmp_path / name
        refused(DataError, f"^{place}: {told}", BENCHMARK.prepare, place, root, False)
    assert not root.exists()
