"""Which items of a run can be asked: files, gaps, the model's limit; what stops with one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import data, options, usability
from lmms_eval_tasks.haven.checked import Checked
from lmms_eval_tasks.haven.labels import TASKS
from tests.haven.release_files import write

NAMES = list(TASKS)
PICTURED = [name for name in NAMES if not TASKS[name].text]
ALL = ["summe/video_1", "tvsum/video_1", "tvsum/video_2"]
PROXIES = [name for name in NAMES if TASKS[name].text]


def look(*tasks: str) -> Checked:
    return usability.look(data.load(), options.current(), tasks)


def stopped(*tasks: str) -> str:
    with pytest.raises(DataError) as error:
        look(*tasks)
    return str(error.value)


def test_nothing_is_wrong(user: Path) -> None:
    found = look(*NAMES)
    assert found.reasons == {name: {} for name in NAMES}
    assert found.options == options.Options()
    assert found.release == data.load()


class TestVideos:
    """Only tasks that show pictures need them."""

    def test_none_at_all(self, user: Path) -> None:
        for file in user.glob("videos/*/*.mp4"):
            file.unlink()
        assert look(*PROXIES).reasons == {name: {} for name in PROXIES}
        for task in PICTURED:
            said = stopped(task, *PROXIES)
            assert (
                f"{user}: 3 of 3 HAVEN videos are not there (tasks that end in _text need" in said
            )
            assert f"need none; {task} do)" in said
            assert "\n  summe/video_1: missing: " in said
            assert f"--allow-missing-videos or {settings.ALLOW_MISSING}=1" in said

    def test_some(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (user / "videos" / "tvsum" / "video_2.mp4").unlink()
        assert "1 of 3 HAVEN videos are not there" in stopped("haven_v2t")
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        found = look("haven_v2t", "haven_v2t_text")
        assert list(found.left_out("haven_v2t")) == ["tvsum/video_2"]
        assert found.left_out("haven_v2t_text") == {}

    def test_allowed_but_nothing_is_left(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        for file in user.glob("videos/*/*.mp4"):
            file.unlink()
        said = stopped("haven_grounding", "haven_temporal")
        assert "haven_grounding: not one of 3 items can be run:\n  summe/video_1: missing" in said
        assert "haven_temporal: not one of 3 items can be run:" in said
        found = look("haven_grounding", "haven_grounding_text")
        assert sorted(found.left_out("haven_grounding")) == ALL
        assert found.left_out("haven_grounding_text") == {}

    def test_bad_ones(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (user / "videos" / "tvsum" / "video_1.mp4").write_text("bad")
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        said = stopped("haven_temporal")
        assert "1 of 3 HAVEN videos do not fit their record" in said
        assert "\n  tvsum/video_1: unreadable: " in said
        assert "--allow-bad-items" in said
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert list(look("haven_temporal").left_out("haven_temporal")) == ["tvsum/video_1"]

    def test_all_troubles_in_one_message(self, user: Path) -> None:
        (user / "videos" / "tvsum" / "video_1.mp4").write_text("bad")
        (user / "videos" / "summe" / "video_1.mp4").unlink()
        write(user, "tvsum", 3, change=lambda given, _: given["video_3"].pop("frames"))
        said = stopped("haven_v2v")
        assert "1 of 4 HAVEN videos cannot be used:\n  tvsum/video_3: tvsum_data.json" in said
        assert "1 of 3 HAVEN videos are not there" in said
        assert "1 of 3 HAVEN videos do not fit their record" in said


class TestRecords:
    def test_bad_records(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """They stop a text proxy too; allowed, they are counted in every task."""
        write(user, "tvsum", 2, change=lambda given, _: given["video_2"].pop("frames"))
        assert "1 of 3 HAVEN videos cannot be used" in stopped("haven_v2v_text")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        found = look(*NAMES)
        assert all(list(found.left_out(name)) == ["tvsum/video_2"] for name in NAMES)

    def test_gaps_need_no_leave(self, user: Path) -> None:
        """NaN in gtscore, and a frame without a description: those tasks alone."""

        def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
            arrays["video_1"]["gtscore"][3] = float("nan")
            given["video_2"]["frames"][4]["description"] = ""

        write(user, "tvsum", 2, change=change)
        reasons = look(*NAMES).reasons
        for name in NAMES:
            lost = {}
            if TASKS[name].kind == "saliency":
                lost = {"tvsum/video_1": "gtscore"}
            elif name in ("haven_v2t_text", "haven_v2v_text", "haven_v2vt_text"):
                lost = {"tvsum/video_2": "frames, entry 5, description"}
            assert reasons[name].keys() == lost.keys(), name
            assert all(why in reasons[name][video] for video, why in lost.items())

    def test_a_task_of_which_nothing_is_left(self, user: Path) -> None:
        for source, videos in (("tvsum", 2), ("summe", 1)):
            write(user, source, videos, hdf5=False)
            (user / source / "h5" / f"{source}.h5").unlink()
        said = stopped("haven_saliency", "haven_saliency_text")
        assert said.startswith(f"{user}: haven_saliency: not one of 3 items can be run:\n")
        assert "haven_saliency_text: not one of 3 items can be run:\n" in said
        assert "  summe/video_1: summe.h5: no such file, so no importance" in said
        found = look("haven_saliency", "haven_v2t")
        assert (sorted(found.left_out("haven_saliency")), found.left_out("haven_v2t")) == (ALL, {})
        assert usability.not_run(found.left_out("haven_saliency")) == (
            "not one of 3 items can be run, such as summe/video_1: summe.h5: no such file, so no "
            "importance"
        )

    def test_others_may_have_items(self, user: Path) -> None:
        """One task of several may be empty; what is bad is said all the same."""
        for source, videos in (("tvsum", 2), ("summe", 1)):
            write(user, source, videos, hdf5=False)
            (user / source / "h5" / f"{source}.h5").unlink()
        names, release = ["haven_saliency"], data.load()
        found = usability.look(release, options.current(), names, may_be_empty=True)
        assert sorted(found.left_out("haven_saliency")) == ALL
        (user / "videos" / "tvsum" / "video_1.mp4").unlink()
        with pytest.raises(DataError, match="1 of 3 HAVEN videos are not there"):
            usability.look(release, options.current(), names, may_be_empty=True)


class TestLimit:
    """A model's limit of pictures: left out and named, never cut."""

    @pytest.fixture
    def long(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """TVSum's two videos have 20 frames, SumMe's 40, all four shots; 3 pictures of a shot."""
        write(user, "summe", 1, frames=40)
        monkeypatch.setenv(settings.HAVEN, "frames_per_shot=3,max_images=20")
        return user

    def test_left_out(self, long: Path) -> None:
        found = look(*NAMES)
        for name in NAMES:
            lost = TASKS[name].kind in ("v2t", "v2v", "v2vt") and not TASKS[name].text
            assert list(found.left_out(name)) == (["summe/video_1"] if lost else []), name
        assert found.left_out("haven_v2v")["summe/video_1"] == (
            "not run: needs 40 images, the model's limit is 20 (max_images)"
        )

    def test_of_shots(self, long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.HAVEN, "max_images=11,frames_per_shot=3")
        said = stopped("haven_temporal")
        assert "haven_temporal: not one of 3 items can be run:" in said
        assert sorted(look("haven_temporal", "haven_v2v_text").left_out("haven_temporal")) == ALL
        assert "  tvsum/video_2: not run: needs 12 images, the model's limit is 11" in said
        monkeypatch.setenv(settings.HAVEN, "max_images=11,frames_per_shot=3,max_shots=3")
        assert look("haven_temporal").left_out("haven_temporal") == {}
        assert "haven_grounding: not one of 3" in stopped("haven_grounding")  # shows all

    def test_nothing_left(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.HAVEN, "max_images=15")
        said = stopped("haven_v2t", "haven_saliency")
        assert said.count("not one of 3 items") == 2
        assert said.count("not run: needs 20 images") == 3
        assert said.count("not run: needs 16 images") == 3
        monkeypatch.setenv(settings.HAVEN, "max_images=19")
        found = look("haven_v2t", "haven_saliency")
        assert sorted(found.left_out("haven_v2t")) == ALL
        assert found.left_out("haven_saliency") == {}

    def test_no_limit(self, long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.HAVEN, "max_images=0")
        assert look("haven_v2v").reasons == {"haven_v2v": {}}
