"""MAVERIX for the shared commands: checks before a run, the user's data, estimates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.errors import DataError, JudgeError, PromptError
from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.maverix import benchmark, data, schema
from lmms_eval_tasks.maverix.labels import MODES
from lmms_eval_tasks.runs import estimate
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
        # The best of the modes would compare 15 items with 20: said as `rescore` says it.
        names = ("maverix_s", "maverix_av", "maverix_long_a", "maverix_long_v", "maverix_vs_oe")
        benchmark.annotate(results, [task(name) for name in names])
        unlike = "the modes were not asked the same items"
        told = [w for w in results["lmms_eval_tasks"]["maverix"]["warnings"] if unlike in w]
        assert told == [
            f"maverix_table3: {unlike} (S 20, V+A 15)",
            f"maverix_long: {unlike} (A 15, V 20)",
        ]
        # Under --limit each task has the first of its own items; lights-1 has the first five.
        results["n-samples"] = {name: {"original": 20, "effective": 4} for name in names}
        benchmark.annotate(results, [task(name) for name in names[:2]])
        section = results["lmms_eval_tasks"]["maverix"]
        assert f"maverix_table3: {unlike} (S 4, V+A 4)" in section["warnings"]
        del results["n-samples"]
        for same in (("maverix_s", "maverix_v"), ("maverix_a", "maverix_av"), ("maverix_av",)):
            benchmark.annotate(results, [task(name) for name in same])
            assert unlike not in str(results["lmms_eval_tasks"]["maverix"]["warnings"])


class TestWithheldReferences:
    """Nobody is asked about them, so no judge is needed, named or waited for."""

    @pytest.fixture
    def release(self, root: Path, source: Path) -> Path:
        content = json.loads((source / "data.json").read_text(encoding="utf-8"))
        for entry in content["items"]:
            entry |= {"answer": None, "reference": None}
        (source / "data.json").write_text(json.dumps(content), encoding="utf-8")
        benchmark.prepare(source, root, link=True)
        return root / "maverix" / "data.json"

    def annotated(self) -> dict[str, Any]:
        benchmark.check([task("maverix_s_oe")])
        results: dict[str, Any] = {"results": {}, "lmms_eval_tasks": {}}
        benchmark.annotate(results, [task("maverix_s_oe")])
        section: dict[str, Any] = results["lmms_eval_tasks"]["maverix"]
        return section

    @pytest.mark.parametrize("spec", [None, "none", "gpt-4o"])
    def test_no_judge(
        self, spec: str | None, release: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert release.is_file()
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.delenv(settings.JUDGE)
        if spec is not None:
            monkeypatch.setenv(settings.JUDGE, spec)
        assert benchmark.judge_config().provider == "none"
        section = self.annotated()
        assert "judge" not in section
        assert not [warning for warning in section["warnings"] if "judge" in warning]
        with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
            benchmark.judge_config("gpt-4o")  # who names one gets it

    def test_one_reference_is_enough(self, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        content = json.loads(release.read_text(encoding="utf-8"))
        content["items"][7]["reference"] = "red"
        release.unlink()
        release.write_text(json.dumps(content), encoding="utf-8")
        section = self.annotated()
        assert section["judge"]["provider"] == "none"
        assert any("judge the saved samples" in warning for warning in section["warnings"])
        monkeypatch.delenv(settings.JUDGE)
        with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
            benchmark.check([task("maverix_s_oe")])
        with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
            benchmark.judge_config()


def test_models_without_sound_are_told_where_a_was_not_run() -> None:
    """Table 3 of S, V and V+S alone, for a class that cannot take sound and one that drops it."""
    names = ("maverix_s", "maverix_v", "maverix_vs")
    for name, interface, state in (
        ("internvl2", "simple", "raises"),
        ("tasks_scripted", "chat", "not delivered"),
    ):
        results: dict[str, Any] = {
            "results": {task: {"acc,none": n / 4} for n, task in enumerate(names, 1)},
            "lmms_eval_tasks": {},
        }
        with running.model(running.Model(name, interface)):  # type: ignore[arg-type]
            benchmark.check([task(one) for one in names])
            benchmark.annotate(results, [task(one) for one in names])
        section = results["lmms_eval_tasks"]["maverix"]
        assert section["sound"] == {}
        assert section["hears"] == {"a": state, "av": state}
        table = benchmark.tables(results)[0]
        cells = [column._cells[0] for column in table.columns[2:]]  # type: ignore[union-attr]
        assert cells == ["25.0*", "25.0", "50.0", "50.0", "75.0", "75.0*", "75.0", "+25.0"]


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
    assert section["hears"] == {"a": "unknown", "av": "unknown"}
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
        counts = {"videos": 4, "questions": 20, "asked": 60, "bad_items": 0}
        assert (found.found, found.counts, found.videos) == (True, counts, 4)
        assert not found.missing
        assert not found.unreadable
        assert found.version == data.load().digest
        benchmark.check([task("maverix_av")])
        assert benchmark.prepare(source, root, link) == said  # again: nothing is in the way

    @pytest.mark.parametrize("given", ["", "data", "data/MAVERIX_v1.0.json"])
    def test_the_layout_that_the_paper_announces(
        self, given: str, root: Path, source: Path, tmp_path: Path
    ) -> None:
        """data/ beside vid/ and subtitles/ (A)."""
        release = tmp_path / "release"
        (release / "data").mkdir(parents=True)
        (source / "data.json").rename(release / "data" / "MAVERIX_v1.0.json")
        (source / "videos").rename(release / "vid")
        (source / "subtitles").rename(release / "subtitles")
        said = benchmark.prepare(release / given, root, link=True)
        assert said.startswith(f"linked 8 files to {root / 'maverix'}: 20 items, 0 with problems")
        assert "1 of 4 videos have no subtitles" in said
        assert benchmark.status(root).videos == 4

    def test_what_is_absent_is_told(self, root: Path, source: Path) -> None:
        (source / "videos" / "lights-2.mp4").unlink()
        said = benchmark.prepare(source, root, link=True)
        assert f"1 of 4 videos are not there: lights-2; put them into {root}" in said

    def test_another_name_and_a_column_map(self, root: Path, source: Path) -> None:
        text = (source / "data.json").read_text(encoding="utf-8").replace('"question":', '"asks":')
        (source / "data.json").unlink()
        (source / "release.json").write_text(text, encoding="utf-8")
        (source / "columns.yml").write_text("columns: {question: asks}\n", encoding="utf-8")
        (source / "key.json").unlink()
        assert benchmark.prepare(source, root, link=False).startswith("copied 9 files")
        assert schema.read(root / "maverix").items[0].question
        assert benchmark.status(root).found

    def test_a_map_that_the_source_does_not_have(self, root: Path, source: Path) -> None:
        """Another release's map, or an older one of this release, would change what is read."""
        (source / "columns.yml").write_text("values: {answer: {C: D}}\n", encoding="utf-8")
        benchmark.prepare(source, root, link=False)
        mapped = schema.read(root / "maverix").digest
        (source / "columns.yml").unlink()
        benchmark.prepare(source, root, link=False)
        assert not (root / "maverix" / "columns.yml").exists()
        placed = schema.read(root / "maverix")
        assert placed.digest == schema.read(source / "data.json").digest != mapped

    def test_a_map_in_its_place_stays(self, source: Path, root: Path) -> None:
        (source / "columns.yml").write_text("values: {answer: {C: D}}\n", encoding="utf-8")
        root.mkdir()
        source.rename(root / "maverix")
        benchmark.prepare(root / "maverix", root, link=False)
        assert (root / "maverix" / "columns.yml").is_file()

    @pytest.mark.parametrize(
        ("name", "other"),
        [("subtitles/lights-2.vtt", "subtitles/lights-2.srt"), ("videos/lights-1.mp4", "x")],
    )
    def test_files_of_another_release_are_in_the_way(
        self, name: str, other: str, root: Path, source: Path
    ) -> None:
        """lights-2 has WebVTT here; an srt of the same name would go before it."""
        there = root / "maverix" / (other if other != "x" else "videos/lights-1")
        there.parent.mkdir(parents=True)
        there.write_text("1\n00:00:01,000 --> 00:00:02,000\nno\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"is in the way of .*; remove it first"):
            benchmark.prepare(source, root, link=False)
        there.unlink()
        assert (source / name).is_file()
        benchmark.prepare(source, root, link=False)

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

    def test_what_the_data_lack(self, root: Path, source: Path) -> None:
        from tests.maverix.test_data import without_sound

        video = source / "videos" / "lights-2.mp4"
        without_sound(video, source / "mute.mp4")
        (source / "mute.mp4").rename(video)
        content = json.loads((source / "data.json").read_text(encoding="utf-8"))
        first, second, third, *_ = content["items"]
        first["agentc"] = "social"
        second["end"] = 2000
        third |= {"answer": None}
        (source / "data.json").write_text(json.dumps(content), encoding="utf-8")
        benchmark.prepare(source, root, link=False)
        notes = benchmark.status(root).notes
        for told in (
            "4 of 700 videos, 20 of 852 questions, 60 of 2,556 asked of the paper's full set",
            "withheld, so without a score: 1 answers, 0 references",
            "fields that are not read: agentc (columns.yml gives them our names)",
            "videos without sound, which A and V+A need: lights-2",
        ):
            assert told in notes
        (late,) = [note for note in notes if note.startswith(second["id"])]
        assert "ends at 2000 s; its video ends at" in late
        assert not [note for note in notes if note.startswith(first["id"])]


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
        asked = sum(len(each) for each in work.judged)
        assert (len(work.prompts), asked) == (generations, verdicts)
        assert len(work.judged) in (0, generations)
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
        assert [len(each) for each in work.judged] == [0] * 10 + [4] * 30
        assert len(work.prompts) == 40
        # The first five items are withheld: of the 13 generations three are judged.
        config = resolve("gpt-4o", {"OPENAI_API_KEY": "x"}, default_model="gpt-4o")
        few = estimate.estimate(task("maverix_s_oe"), config, limit=13)
        assert (few.generations, few.verdicts) == (13, 12)
