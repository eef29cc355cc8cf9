"""What a run's results say of data, options, judge and metrics; nothing there loses a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.haven import benchmark, checked, data, results, text_values
from lmms_eval_tasks.haven.judge import criterion
from lmms_eval_tasks.runs import preflight
from lmms_eval_tasks.utils import local_models, provenance
from lmms_eval_tasks.utils.aggregate import Carrier
from tests.haven.release_files import write
from tests.haven.scored import FIRST, broken, made, no_encoder, values

SECTION = {"data", "options", "subsets", "left_out", "prompts", "warnings", "details"}
SUMMARY = SECTION | {"judge", "implementations"}


def task(name: str) -> dict[str, Any]:
    """What the shared commands read of a task's YAML."""
    judged = name in ("haven_v2t", "haven_v2vt")
    return {"task": name, "metadata": {"judged": judged, "benchmark": "haven"}}


def annotated(*names: str, **more: Any) -> dict[str, Any]:
    """The benchmark's section, as the host writes it into its results file."""
    told: dict[str, Any] = {"results": {}, **more}
    preflight.annotate(told, [task(name) for name in names])
    section: dict[str, Any] = told["lmms_eval_tasks"]["haven"]
    assert json.loads(json.dumps(section)) == section
    return section


class TestSection:
    def test_of_keyframes(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.HAVEN, "size=64")
        preflight.check([task("haven_v2v")])
        section = annotated("haven_v2v")
        assert section.keys() == SECTION
        release = data.load()
        assert section["data"]["hash"] == release.digest
        assert section["data"]["folder"] == str(user)
        assert (section["data"]["videos"], section["data"]["tvsum"]) == (3, 2)
        assert (section["data"]["frames"], section["data"]["shots"]) == (60, 12)
        assert section["options"]["size"] == 64
        assert (section["left_out"], section["warnings"]) == ({"haven_v2v": {}}, [])
        assert section["prompts"]["task"]["source"].endswith("task.yml")

    def test_of_summaries(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.JUDGE, "m@http://user:secret@127.0.0.1:9/v1")
        text_values.note("bertscore", "BERTScore by hand")
        section = annotated("haven_v2t", "haven_v2v")
        assert section.keys() == SUMMARY
        assert section["judge"]["model"] == "m"
        assert section["judge"]["prompt"]["hash"] == criterion().prompt_hash
        assert section["judge"]["geval"]["samples_without_logprobs"] == 5
        assert section["implementations"]["bertscore"] == "BERTScore by hand"
        assert "rouge" in section["implementations"]
        (warning,) = section["warnings"]
        assert "cannot be compared with its Table 4" in warning
        assert "secret" not in json.dumps(section)

    def test_waiting_for_its_judge(self, user: Path) -> None:
        (warning,) = annotated("haven_v2t")["warnings"]
        assert warning.startswith("not judged yet")

    def test_the_subsets(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The videos of a large source that were evaluated, by name."""
        write(user, "videoxum", 3)
        monkeypatch.setenv(settings.HAVEN, "subset=2")
        preflight.check([task("haven_v2v_text")])
        section = annotated("haven_v2v_text")
        (videos,) = section["subsets"].values()
        assert list(section["subsets"]) == ["videoxum"]
        assert len(videos) == 2 == section["data"]["videoxum"]
        assert set(videos) < {"video_1", "video_2", "video_3"}

    def test_the_sample(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        preflight.check([task("haven_v2v")])
        monkeypatch.setattr(settings, "is_sample", lambda: True)
        warning = "made with the packaged sample: not a benchmark result"
        assert annotated("haven_v2v")["warnings"] == [warning]


class TestLeftOut:
    def test_named_and_counted_by_task(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        monkeypatch.setenv(settings.HAVEN, "max_images=20")
        write(user, "summe", 1, frames=40)
        (user / "videos" / "tvsum" / "video_1.mp4").unlink()
        names = ["haven_v2v", "haven_v2v_text", "haven_temporal"]
        preflight.check([task(name) for name in names])
        section = annotated(*names)
        assert section["left_out"]["haven_v2v"]["summe/video_1"].startswith("not run: needs 40")
        assert section["left_out"]["haven_v2v_text"] == {}
        assert section["warnings"] == [
            "haven_v2v: 2 videos left out (summe/video_1, tvsum/video_1), such as summe/video_1: "
            "not run: needs 40 images, the model's limit is 20 (max_images)",
            "haven_temporal: 1 videos left out (tvsum/video_1), such as tvsum/video_1: missing: "
            f"{user / 'videos' / 'tvsum' / 'video_1.mp4'}",
        ]

    def test_undecoded(self, user: Path) -> None:
        preflight.check([task("haven_v2v"), task("haven_v2t_text")])
        path = str((user / "videos" / "summe" / "video_1.mp4").resolve())
        checked.remember_undecoded({path: "damaged"})
        section = annotated("haven_v2v", "haven_v2t_text")
        assert section["left_out"]["haven_v2v"] == {"summe/video_1": "damaged"}
        assert section["left_out"]["haven_v2t_text"] == {}

    def test_many_are_not_all_named(self, user: Path) -> None:
        preflight.check([task("haven_v2v")])
        found = checked.last()
        assert found is not None
        lost = {"haven_v2v": {f"a/{n:02}": f"why {n}" for n in range(30)}}
        (line,) = results._left_out(found, lost)
        assert line.startswith("haven_v2v: 30 videos left out (a/00, a/01, ")
        assert line.endswith("a/19), such as a/00: why 0")

    def test_a_task_without_items(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Said with the reason, not as videos left out; a bad record counts with the others."""
        write(user, "summe", 1, change=lambda given, _: given["video_1"].pop("frames"))
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        monkeypatch.setenv(settings.HAVEN, "max_images=19")
        names = ["haven_v2v", "haven_saliency"]
        preflight.check([task(name) for name in names])
        not_run, left_out = annotated(*names)["warnings"]
        assert not_run.startswith(
            "haven_v2v: not run: not one of 3 items can be run, such as summe/video_1: summe_data"
        )
        assert left_out.startswith("haven_saliency: 1 videos left out (summe/video_1), such as ")


class TestSources:
    def test_those_that_are_there(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        preflight.check([task("haven_v2v")])
        assert sorted(annotated("haven_v2v")["options"]["sources"]) == ["summe", "tvsum"]
        monkeypatch.setenv(settings.HAVEN, "sources=tvsum")
        preflight.check([task("haven_v2v")])
        assert annotated("haven_v2v")["options"]["sources"] == ["tvsum"]


class TestDoubts:
    """What makes a number missing or not comparable is a warning, not only a note."""

    def test_marks(self) -> None:
        told = {
            "rouge": "rouge-score 0.1.2",
            "bertscore": f"BERTScore F1, layer 2; {local_models.NOT_COMPARABLE}",
            "clipscore": "CLIPScore not computed: no model",
            "clipscore_lost": "CLIPScore not computed: 2 without pictures of theirs, as: x",
        }
        doubtful = ["bertscore", "clipscore", "clipscore_lost"]
        assert results.doubts(told) == [told[name] for name in doubtful]

    def test_they_are_warnings(self, user: Path) -> None:
        text_values.note("bertscore", f"BERTScore by hand; {local_models.NOT_COMPARABLE}")
        text_values.note("clipscore", "CLIPScore by hand")
        preflight.check([task("haven_v2vt")])
        warnings = annotated("haven_v2vt")["warnings"]
        assert f"BERTScore by hand; {local_models.NOT_COMPARABLE}" in warnings
        assert not any("CLIPScore" in line for line in warnings)


class TestGone:
    """Files that vanish while the model answers are a warning."""

    def test_after_the_check(self, user: Path) -> None:
        preflight.check([task("haven_v2v")])
        before = annotated("haven_v2v")
        shutil.rmtree(user)
        assert annotated("haven_v2v") == before

    def test_without_a_check(self, user: Path) -> None:
        shutil.rmtree(user)
        section = annotated("haven_v2v")
        assert section.keys() == SECTION - {"data", "options", "subsets", "left_out"}
        (warning,) = section["warnings"]
        assert warning.startswith("the data of this run cannot be told any more: no HAVEN data at")
        assert benchmark.tables({"results": {}, "lmms_eval_tasks": {"haven": section}}) == [
            f"Note: {warning}"
        ]

    def test_the_users_prompts(
        self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine = tmp_path / "prompts" / "haven"
        packaged = Path(results.__file__).parent / "prompts"
        shutil.copytree(packaged, mine)
        monkeypatch.setenv(settings.PROMPTS, str(mine.parent))
        preflight.check([task("haven_v2t")])
        assert annotated("haven_v2t")["prompts"]["task"]["source"] == str(mine / "task.yml")
        shutil.rmtree(mine.parent)
        section = annotated("haven_v2t")
        assert section["data"]["videos"] == 3
        assert "judge" not in section
        assert any("the judge of this run cannot be told" in line for line in section["warnings"])


class TestNumbers:
    def test_details_and_placeholders(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Carriers of joins go, the group's numbers stay; a reply that broke loses nothing."""
        monkeypatch.setattr(provenance, "_notes", {})
        no_encoder(monkeypatch)
        text = "SUMMARY:\n1. A cat.\nIMPORTANT FRAMES: [Frame 1]"
        some = [made("haven_v2vt", text), broken("haven_v2vt", id="tvsum/video_2")]
        numbers = values("haven_v2vt", some)
        assert any(isinstance(value, Carrier) for value in numbers.values())
        told: dict[str, Any] = {
            "results": {"haven_v2vt": {f"{name},none": one for name, one in numbers.items()}},
            "groups": {"haven": {"joined_clip_gain,none": 0.25}},
            "samples": {"haven_v2vt": some},
        }
        preflight.annotate(told, [task("haven_v2vt")])
        details = told["lmms_eval_tasks"]["haven"]["details"]["haven_v2vt"]
        assert details["items"] == 2
        assert details["parts"]["summary"] == {"error": 1, "ok": 1}
        assert details["intervals"]["f1"]["estimate"] == numbers["f1"]
        left = told["results"]["haven_v2vt"]
        assert not any("joined" in name for name in left)
        assert left["f1,none"] == numbers["f1"]
        assert told["groups"]["haven"] == {"joined_clip_gain,none": 0.25}
        assert some[0][FIRST]["status"] == "ok"
