"""What of a release is read: the subsets, what the digest covers, and when it is read again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.haven import hdf5_file, json_file, schema, subset
from lmms_eval_tasks.haven.options import Options
from tests.haven.release_files import content, write, write_hdf5


def listed(call: Callable[[Any], Any], calls: list[Any]) -> Callable[[Any], Any]:
    """`call`, with its arguments kept."""

    def kept(argument: Any) -> Any:
        calls.append(getattr(argument, "name", argument))  # a group is closed with its file
        return call(argument)

    return kept


Change = Callable[[dict[str, Any], dict[str, Any]], object]


def in_json(field: str, value: Any) -> Change:
    return lambda data, arrays: data["video_2"].update({field: value})


def in_hdf5(name: str, place: Any, value: Any) -> Change:
    return lambda data, arrays: arrays["video_2"][name].__setitem__(place, value)


def frame(place: int, **fields: Any) -> Change:
    return lambda data, arrays: data["video_2"]["frames"][place].update(fields)


class TestSubset:
    """Of a large source only the chosen videos are validated and read."""

    def test_only_the_chosen_ones(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        validated: list[Any] = []
        opened: list[Any] = []
        read_json, read_hdf5 = json_file.read, hdf5_file._video
        monkeypatch.setattr(json_file, "read", listed(read_json, validated))
        monkeypatch.setattr(hdf5_file, "_video", listed(read_hdf5, opened))
        write(tmp_path, "mrhisum", 30, 6, 2)
        release = schema.read(tmp_path, Options(subset=4))
        chosen = subset.chosen("mrhisum", [f"video_{n}" for n in range(1, 31)], Options(subset=4))
        assert [record.video for record in release.records] == chosen
        assert len(validated) == 4
        assert opened == [f"/{video}" for video in chosen]

    def test_a_bad_one_is_not_replaced(self, tmp_path: Path) -> None:
        chosen = subset.chosen("videoxum", [f"video_{n}" for n in range(1, 11)], Options(subset=3))
        write(tmp_path, "videoxum", 10, change=lambda data, _: data[chosen[1]].update(frames=[]))
        release = schema.read(tmp_path, Options(subset=3))
        assert [record.video for record in release.records] == [chosen[0], chosen[2]]
        assert list(release.problems) == [f"videoxum/{chosen[1]}"]

    def test_a_bad_one_outside_of_it_does_not_matter(self, tmp_path: Path) -> None:
        chosen = subset.chosen("videoxum", [f"video_{n}" for n in range(1, 11)], Options(subset=3))

        def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
            for video in data.keys() - set(chosen):
                data[video] = arrays[video] = {}

        whole = schema.read(write(tmp_path / "a", "videoxum", 10), Options(subset=3))
        release = schema.read(
            write(tmp_path / "b", "videoxum", 10, change=change), Options(subset=3)
        )
        assert (release.problems, release.digest) == ({}, whole.digest)


class TestDigest:
    def digest(self, folder: Path, change: Change | None = None, **given: Any) -> str:
        return schema.read(write(folder, change=change, **given), Options()).digest

    def test_independent_of_formatting(self, tmp_path: Path) -> None:
        one = self.digest(tmp_path)
        assert len(one) == 12
        file = tmp_path / "processed" / "tvsum_data.json"
        data = json.loads(file.read_text(encoding="utf-8"))
        turned = {video: dict(reversed(data[video].items())) for video in reversed(data)}
        file.write_text(json.dumps(turned, indent=3), encoding="utf-8")
        arrays = content("tvsum", 2)[1]
        for own in arrays.values():
            own["features"] = np.ones((20, 8))  # never read
            own["picks"] = own["picks"].astype(np.float64)
        write_hdf5(tmp_path / "tvsum" / "h5" / "tvsum.h5", arrays)
        assert schema.read(tmp_path, Options()).digest == one

    @pytest.mark.parametrize(
        "change",
        [
            frame(3, description="Another."),
            in_hdf5("gtscore", 3, 0.123),
            in_json("frames", "broken"),
            in_hdf5("n_frame_per_seg", 0, -1),
        ],
    )
    def test_content_matters_of_bad_videos_too(self, tmp_path: Path, change: Change) -> None:
        assert self.digest(tmp_path / "a") != self.digest(tmp_path / "b", change)

    def test_hdf5_matters(self, tmp_path: Path) -> None:
        assert self.digest(tmp_path / "a") != self.digest(tmp_path / "b", hdf5=False)


class TestKept:
    """Files are read once, and again when they change."""

    def test_until_a_file_changes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        reads: list[Any] = []
        read = json_file.read
        monkeypatch.setattr(json_file, "read", listed(read, reads))
        write(tmp_path)
        first = schema.read(tmp_path, Options())
        assert schema.read(tmp_path, Options(size=64, max_shots=5)) == first
        assert len(reads) == 2
        later = write(tmp_path, change=in_hdf5("gtscore", 0, 0.3))
        os.utime(later / "tvsum" / "h5" / "tvsum.h5", ns=(1, 1))
        assert schema.read(tmp_path, Options()).digest != first.digest
        assert len(reads) == 4

    def test_videos_are_looked_for_every_time(self, tmp_path: Path) -> None:
        write(tmp_path)
        schema.read(tmp_path, Options())
        place = tmp_path / "videos" / "tvsum" / "video_1.webm"
        place.parent.mkdir(parents=True)
        place.touch()
        assert schema.read(tmp_path, Options()).records[0].path == place


def test_own_videos_are_not_mixed_into_the_benchmark(tmp_path: Path) -> None:
    write(tmp_path, "own", videos=2)
    assert {record.source for record in schema.read(tmp_path, Options()).records} == {"own"}
    write(tmp_path, "tvsum", videos=1)
    assert {record.source for record in schema.read(tmp_path, Options()).records} == {"tvsum"}
    chosen = schema.read(tmp_path, Options(sources=("tvsum", "own")))
    assert {record.source for record in chosen.records} == {"tvsum", "own"}
