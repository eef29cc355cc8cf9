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
from tests.haven.release_files import write
from tests.utils.media_files import write_video


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """180 frames: what `write(frames=12)` is of."""
    return write_video(tmp_path_factory.mktemp("haven") / "v.mp4", 180, codec="mpeg4")


def put(video: Path, folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(video, folder / name)


@pytest.fixture
def release(tmp_path: Path, video: Path) -> Path:
    """align_vsum/ with data of two sources, and one video."""
    folder = tmp_path / "align_vsum" / "data"
    write(write(folder, "tvsum", frames=12), "ovp", frames=12)
    put(video, folder / "videos" / "tvsum", "video_1.mkv", "stranger.mp4")
    return folder.parent


def tree(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


ALL = {
    "processed/tvsum_data.json",
    "processed/ovp_data.json",
    "tvsum/h5/tvsum.h5",
    "ovp/h5/ovp.h5",
    "videos/tvsum/video_1.mkv",
}


class TestPrepare:
    @pytest.mark.parametrize("given", [".", "data"])
    @pytest.mark.parametrize("link", [True, False])
    def test_a_release(self, release: Path, root: Path, given: str, link: bool) -> None:
        told = BENCHMARK.prepare(release / given, root, link).splitlines()
        assert tree(root / "haven") == ALL
        done = "linked" if link else "copied"
        assert told[0] == (
            f"{done} 5 files to {root / 'haven'}: 4 videos of tvsum, ovp; 0 videos with problems"
        )
        assert tuple(told[1:]) == data.status(root).notes
        assert (root / "haven" / "tvsum" / "h5" / "tvsum.h5").is_symlink() is link
        assert BENCHMARK.prepare(release / given, root, link).splitlines()[0] == told[0]

    def test_one_json_takes_its_own_along(self, release: Path, root: Path) -> None:
        BENCHMARK.prepare(release / "data" / "processed" / "ovp_data.json", root, False)
        assert tree(root / "haven") == {name for name in ALL if "ovp" in name}

    def test_json_and_hdf5_one_after_the_other(self, release: Path, root: Path) -> None:
        """The project's page links two folders."""
        for name in ("tvsum", "ovp"):
            shutil.move(release / "data" / name / "h5" / f"{name}.h5", release / f"{name}.h5")
        with pytest.raises(DataError) as error:
            BENCHMARK.prepare(release / "ovp.h5", root, False)
        assert str(error.value) == (
            f"{release / 'ovp.h5'}: is of no use without ovp_data.json; give both"
        )
        BENCHMARK.prepare(release / "data" / "processed", root, False)
        assert released.read(root / "haven", Options()).counts["videos_without_hdf5"] == 4
        BENCHMARK.prepare(release / "ovp.h5", root, False)
        assert released.read(root / "haven", Options()).counts["videos_without_hdf5"] == 2
        (release / "data").rename(release / "other")
        BENCHMARK.prepare(release, root, False)
        assert released.read(root / "haven", Options()).counts["videos_without_hdf5"] == 0

    def test_other_data_is_in_the_way(self, release: Path, root: Path) -> None:
        BENCHMARK.prepare(release, root, False)
        other = write(release / "other", "ovp", videos=3)
        place = root / "haven" / "processed" / "ovp_data.json"
        with pytest.raises(DataError) as error:
            BENCHMARK.prepare(other, root, False)
        given = other / "processed" / "ovp_data.json"
        assert str(error.value) == f"{place}: is another file than {given}; remove it first"
        assert place.read_bytes() == (release / "data" / "processed" / "ovp_data.json").read_bytes()

    def test_a_hub_clone(self, root: Path, tmp_path: Path) -> None:
        folder = tmp_path / "clone" / "HAVEN" / "tvsum"
        folder.mkdir(parents=True)
        whole = json.loads(
            (write(tmp_path / "w") / "processed" / "tvsum_data.json").read_text(encoding="utf-8")
        )
        lines = [json.dumps({"video": name, **entry}) for name, entry in whole.items()]
        (folder / "all.jsonl").write_text("\n".join(lines), encoding="utf-8")
        BENCHMARK.prepare(tmp_path / "clone", root, True)
        assert tree(root / "haven") == {"tvsum/all.jsonl"}
        assert data.status(root).counts["tvsum"] == 2
        write(root / "haven", videos=3)
        with pytest.raises(DataError) as error:  # JSON is read in its stead
            BENCHMARK.prepare(tmp_path / "clone", root, True)
        assert str(error.value) == (
            f"{root / 'haven'}: is read as other data than {tmp_path / 'clone'}; remove it first"
        )

    def test_what_is_none(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "tvsum.json").touch()
        for name, told in (
            ("gone", "no such file or folder"),
            (
                "empty",
                "no file of HAVEN (expected processed/SOURCE_data.json and SOURCE/h5/SOURCE.h5 in "
                "it, or in its folder `data`)",
            ),
            (
                "tvsum.json",
                "expected SOURCE_data.json or SOURCE.h5, SOURCE one of summe, tvsum, ovp, "
                "youtube, videoxum, mrhisum, own",
            ),
        ):
            with pytest.raises(DataError) as error:
                BENCHMARK.prepare(tmp_path / name, root, False)
            assert str(error.value) == f"{tmp_path / name}: {told}"
        assert not root.exists()
