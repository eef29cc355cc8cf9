"""MAVERIX for the shared commands: checks before a run, the user's data, estimates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import estimate, running, settings
from lmms_eval_tasks.errors import DataError, JudgeError, PromptError
from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.maverix import benchmark, data, schema
from lmms_eval_tasks.maverix.labels import MODES
from tests.maverix import runs
from tests.maverix.runs import root, sample, source

__all__ = ["root", "sample", "source"]
pytestmark = pytest.mark.usefixtures("sample")


def task(name: str, judged: bool | None = None) -> dict[str, Any]:
    """What `check` and `workload` read of a task's YAML."""
    open_ended = name.endswith("_oe") if judged is None else judged
    return {
        "task": name,
        "metadata": {"judged": open_ended, "benchmark": "maverix"},
        "generation_kwargs": {"max_new_tokens": 256 if open_ended else 16},
    }


@pytest.mark.parametrize("slug", MODES)
def test_mode_of(slug: str) -> None:
    for name in (f"maverix_{slug}", f"maverix_long_{slug}_oe", f"maverix_{slug}_circular"):
        assert benchmark.mode_of(name) is MODES[slug]


class TestCheck:
    """What stops a run before the model is built."""

    def test_good(self) -> None:
        benchmark.check([task("maverix_av"), task("maverix_s_oe")])

    def test_no_data(self, root: Path) -> None:
        with pytest.raises(DataError, match=r"no MAVERIX data at .*data prepare maverix"):
            benchmark.check([task("maverix_s")])

    def test_no_prompts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.PROMPTS, str(tmp_path / "gone"))
        with pytest.raises(PromptError, match="folder of prompts does not exist"):
            benchmark.check([task("maverix_s")])

    def test_no_judge(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(settings.JUDGE)
        benchmark.check([task("maverix_s")])
        with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
            benchmark.check([task("maverix_s"), task("maverix_s_oe")])

    def test_a_model_that_sound_breaks(self) -> None:
        tasks = [task(f"maverix_{mode}") for mode in MODES]
        with running.model(running.Model("neo_ov", "chat")):
            with pytest.raises(DataError) as caught:
                benchmark.check(tasks)
            benchmark.check([one for one in tasks if one["task"] in ("maverix_s", "maverix_vs")])
        message = str(caught.value)
        assert "\n" not in message
        assert message.startswith("neo_ov (chat) cannot take the sound: ")
        assert message.endswith("Leave out maverix_a, maverix_av")

    def test_only_the_ways_that_break_are_left_out(self) -> None:
        """aero_realtime_vllm cannot take a wav alone; beside a video it ignores it."""
        with running.model(running.Model("aero_realtime_vllm", "chat")):
            with pytest.raises(DataError, match=r"Leave out maverix_a, maverix_long_a_oe$"):
                benchmark.check([task("maverix_a"), task("maverix_av"), task("maverix_long_a_oe")])
            benchmark.check([task("maverix_av")])

    def test_videos_without_sound(
        self, root: Path, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tests.maverix.test_data import without_sound

        video = source / "videos" / "lights-1.mp4"
        without_sound(video, source / "mute.mp4")
        (source / "mute.mp4").rename(video)
        benchmark.prepare(source, root, link=True)
        benchmark.check([task("maverix_s")])
        with pytest.raises(DataError, match=r"5 of 20 .* with sound"):
            benchmark.check([task("maverix_av")])
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        benchmark.check([task("maverix_av")])
        results: dict[str, Any] = {"results": {}, "lmms_eval_tasks": {}}
        benchmark.annotate(results, [task("maverix_av")])
        section = results["lmms_eval_tasks"]["maverix"]
        assert len(section["without_sound"]) == 5
        assert any("5 items without sound" in warning for warning in section["warnings"])


def test_annotate() -> None:
    scored = runs.score("choice", runs.docs("choice", "a"), runs.some_right)
    results: dict[str, Any] = {
        "results": {},
        "lmms_eval_tasks": {},
        "samples": {"maverix_a": scored},
    }
    with running.model(running.Model("someone_elses", "chat")):
        benchmark.annotate(results, [task("maverix_a"), task("maverix_s_oe")])
    section = results["lmms_eval_tasks"]["maverix"]
    assert section["data"]["items"] == 20
    assert section["sound"] == {"maverix_a": "unknown"}
    assert section["details"]["maverix_a"]["items"] == 20
    assert "maverix_s_oe" not in section["details"]
    assert section["judge"]["provider"] == "none"
    assert any("packaged sample" in warning for warning in section["warnings"])
    assert any("someone_elses" in warning for warning in section["warnings"])
    json.dumps(results)


class TestPrepare:
    """A user's release under the data root."""

    @pytest.mark.parametrize("link", [True, False])
    @pytest.mark.parametrize("given", ["folder", "file"])
    def test_the_sample_as_a_release(
        self, link: bool, given: str, root: Path, source: Path
    ) -> None:
        said = benchmark.prepare(source if given == "folder" else source / "data.json", root, link)
        assert said.startswith(f"{'linked' if link else 'copied'} 8 files to {root / 'maverix'}")
        assert "20 items, 0 with problems" in said
        placed = sorted(path for path in (root / "maverix").rglob("*") if path.is_file())
        assert len(placed) == 8
        assert {path.is_symlink() for path in placed} == {link}
        found = benchmark.status(root)
        assert (found.found, found.counts, found.videos) == (True, {"questions": 20}, 4)
        assert not found.missing
        assert not found.unreadable
        assert found.version == data.load().digest
        benchmark.check([task("maverix_av")])
        assert benchmark.prepare(source, root, link) == said  # again: nothing is in the way

    def test_another_name_and_a_column_map(self, root: Path, source: Path) -> None:
        text = (source / "data.json").read_text(encoding="utf-8").replace('"question":', '"asks":')
        (source / "data.json").unlink()
        (source / "release.json").write_text(text, encoding="utf-8")
        (source / "columns.yml").write_text("columns: {question: asks}\n", encoding="utf-8")
        (source / "key.json").unlink()
        assert benchmark.prepare(source, root, link=False).startswith("copied 9 files")
        assert schema.read(root / "maverix").items[0].question
        assert benchmark.status(root).found

    def test_other_data_is_in_the_way(self, root: Path, source: Path) -> None:
        benchmark.prepare(source, root, link=False)
        content = json.loads((source / "data.json").read_text(encoding="utf-8"))
        content["items"].pop()
        (source / "data.json").write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(DataError, match=r"holds data\.json already; remove it first"):
            benchmark.prepare(source, root, link=False)
        assert len(schema.read(root / "maverix").items) == 20

    def test_data_that_is_in_its_place(self, source: Path, root: Path) -> None:
        root.mkdir()
        source.rename(root / "maverix")
        before = {path: path.stat().st_ino for path in (root / "maverix").rglob("*")}
        benchmark.prepare(root / "maverix", root, link=True)
        assert before == {path: path.stat().st_ino for path in (root / "maverix").rglob("*")}

    @pytest.mark.parametrize("name", ["gone", "gone/data.json"])
    def test_no_source(self, name: str, root: Path, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no such file or folder"):
            benchmark.prepare(tmp_path / name, root, link=False)
        assert not root.exists()

    def test_bad_data_is_not_put(self, root: Path, source: Path) -> None:
        (source / "data.json").write_text("{}", encoding="utf-8")
        with pytest.raises(DataError, match="expected"):
            benchmark.prepare(source, root, link=False)
        assert not root.exists()


class TestStatus:
    """A look that never raises."""

    def test_nothing_there(self, root: Path) -> None:
        found = benchmark.status(root)
        assert (found.found, found.problem) == (False, data.HOW_TO_GET)

    def test_unreadable(self, root: Path) -> None:
        (root / "maverix").mkdir(parents=True)
        assert "no data file" in benchmark.status(root).problem
        (root / "maverix" / "data.json").write_text("{", encoding="utf-8")
        assert "not valid JSON" in benchmark.status(root).problem

    def test_videos_and_items(self, root: Path, source: Path) -> None:
        benchmark.prepare(source, root, link=False)
        (root / "maverix" / "videos" / "lights-2.mp4").unlink()
        (root / "maverix" / "videos" / "lights-3.mp4").write_bytes(b"no video")
        file = root / "maverix" / "data.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        content["items"][0]["options"].pop()
        file.write_text(json.dumps(content), encoding="utf-8")
        found = benchmark.status(root)
        assert (found.videos, set(found.missing), set(found.unreadable)) == (
            2,
            {"lights-2"},
            {"lights-3"},
        )
        assert any("lights-1-q01" in note for note in found.notes)


class TestWorkload:
    """What a run would do."""

    @pytest.mark.parametrize(
        ("name", "generations", "verdicts"),
        [
            ("maverix_s", 20, 0),
            ("maverix_long_av", 20, 0),
            ("maverix_vs_oe", 40, 160),
            ("maverix_long_v_oe", 40, 160),
            ("maverix_a_circular", 160, 0),
        ],
    )
    def test_counts(self, name: str, generations: int, verdicts: int) -> None:
        work = benchmark.workload(task(name))
        assert (len(work.prompts), len(work.judged)) == (generations, verdicts)
        assert work.max_reply_tokens == (256 if verdicts else 16)
        assert all(work.prompts)

    def test_a_limit_counts_answers(self) -> None:
        config = resolve("gpt-4o", {"OPENAI_API_KEY": "x"}, default_model="gpt-4o")
        few = estimate.estimate(task("maverix_s_oe"), config, limit=3)
        assert (few.generations, few.verdicts, few.calls) == (3, 12, 12)

    def test_withheld_references_are_not_judged(self, root: Path, source: Path) -> None:
        content = json.loads((source / "data.json").read_text(encoding="utf-8"))
        for entry in content["items"][:5]:
            entry |= {"answer": None, "reference": None}
        (source / "data.json").write_text(json.dumps(content), encoding="utf-8")
        benchmark.prepare(source, root, link=True)
        work = benchmark.workload(task("maverix_s_oe"))
        assert (len(work.prompts), len(work.judged)) == (40, 4 * 2 * 15)
