"""What a model is given where the media's tests do not look, what a reply is worth, and checks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.benchmark import SavedRun
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError, JudgeError, MediaError, PromptError
from lmms_eval_tasks.host import names
from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.maverix import data, files, tasks
from lmms_eval_tasks.maverix.labels import LETTERS, MODES
from lmms_eval_tasks.maverix.tasks import BENCHMARK, FORMAT
from lmms_eval_tasks.runs import after, before, estimate, scoring
from lmms_eval_tasks.utils import saved_runs, subtitles, transcribers
from lmms_eval_tasks.utils.saved_runs import CARRIER
from lmms_eval_tasks.utils.subtitles import Cue
from tests.maverix import runs
from tests.maverix.entries import CASES
from tests.maverix.runs import (
    REFUSAL,
    edit,
    fail,
    memory,
    root,
    sample,
    source,
    withhold,
    without_sound,
)

__all__ = ["memory", "root", "sample", "source"]

FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"


def annotated(*names: str, items: Mapping[str, Sequence[Any]] | None = None) -> dict[str, Any]:
    """Our section of a run's results."""
    results: dict[str, Any] = {"results": {}}
    for name, own in (items or {}).items():
        results["results"][name] = {"failed,none": scoring.carried(own)}
    yamls = [{"task": name, "metadata": {"benchmark": "maverix"}} for name in names]
    after.annotate(results, yamls)
    section: dict[str, Any] = results["lmms_eval_tasks"]["maverix"]
    json.dumps(section)
    return section


@pytest.mark.usefixtures("sample")
class TestPrompts:
    """Texts of the user in place of ours."""

    def test_what_does_not_fit_stops(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ours = yaml.safe_load(
            (Path(tasks.__file__).parent / "prompts" / "task.yml").read_text(encoding="utf-8")
        )
        for number, (part, lost) in enumerate(
            (
                ("choice", "{options}"),
                ("choice", "{question}"),
                ("choice", "{subtitles}"),
                ("open", "{question}"),
                ("subtitles", "{cues}"),
            )
        ):
            file = tmp_path / str(number) / "maverix" / "task.yml"
            file.parent.mkdir(parents=True)
            file.write_text(yaml.safe_dump({**ours, part: ours[part].replace(lost, "")}))
            monkeypatch.setenv(settings.PROMPTS, str(tmp_path / str(number)))
            with pytest.raises(PromptError, match=f"task.yml.*{part}.*{lost}"):
                before.check_benchmark(BENCHMARK, ["maverix_s"])

    def test_the_users_text_is_shown(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "maverix" / "task.yml"
        file.parent.mkdir()
        shutil.copy(Path(tasks.__file__).parent / "prompts" / "task.yml", file)
        file.write_text(file.read_text("utf-8").replace("The best answer is:", "Mine:"))
        monkeypatch.setenv(settings.PROMPTS, str(tmp_path))
        doc = runs.docs("maverix_s")[0] | {"question": "{options} {cues}?"}  # no template
        told = names.doc_to_text(doc, {"pre_prompt": "<", "post_prompt": ">"})
        assert told.startswith("<Subtitles of the video")
        assert told.rstrip().endswith("Mine:>")
        assert f"{{options}} {{cues}}?\nA. {doc['options'][0]}\n" in told
        assert names.doc_to_visual(doc) == []
        assert tasks.task_prompts().source == str(file)

    def test_no_sound_is_an_error_that_names_the_video(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        silent = SimpleNamespace(video="x.mp4", video_with_sound=None, sound=None)
        monkeypatch.setattr(tasks, "cut", lambda *_: silent)
        for mode, given in (("a", names.doc_to_visual), ("av", names.doc_to_messages)):
            with pytest.raises(MediaError, match=rf"lights.*no audio stream, and {mode} needs"):
                given(runs.docs(f"maverix_{mode}")[0])


def plain(value: Any) -> None:
    """Only what JSON has, by exact type: np.float64 is a float and would pass isinstance."""
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        for inner in value.values():
            plain(inner)
    elif isinstance(value, list):
        for inner in value:
            plain(inner)
    else:
        assert type(value) in (str, int, float, bool, type(None)), type(value)


@pytest.mark.usefixtures("sample")
class TestReplies:
    """What a reply is worth where no judge is asked; the judge's part is in test_judge.py."""

    def test_every_status(self) -> None:
        doc = runs.docs()[0]
        for reply, status, words in CASES["replies"]:
            text = reply.format(right=doc["answer"], wrong=runs.wrong(doc))
            made = names.process_results(doc, [text])
            item = made[CARRIER]
            assert (item["status"], item["words"], item["reply"]) == (status, words, text)
            assert item["right"] == made["acc"]["score"] == int("{right}" in reply)
            assert (item["letter"] is None) is (item["file_letter"] is None) is (status != "ok")
            (hidden,) = runs.score([runs.withheld(doc)], lambda _, text=text: text)
            assert (hidden["right"], hidden["status"]) == (None, status)
        for results in ([], [None], [["A"]]):
            item = names.process_results(doc, results)[CARRIER]  # type: ignore[arg-type]
            assert (item["status"], item["right"]) == ("empty", 0)

    def test_every_letter_goes_back_to_the_file(self) -> None:
        released = {entry.id: entry for entry in data.load().items}
        moved = 0
        for letter in LETTERS:
            docs = runs.docs()
            items = runs.score(docs, lambda _, letter=letter: letter)
            for doc, item in zip(docs, items, strict=True):
                entry, in_file = released[doc["id"]], LETTERS.index(item["file_letter"])
                assert entry.options[in_file] == doc["options"][LETTERS.index(letter)]
                assert item["right"] == int(in_file == entry.answer)
                moved += item["file_letter"] != letter
        assert moved > 100

    def test_rotations(self) -> None:
        turns = runs.docs("maverix_s_circular")
        for text in turns[0]["options"]:  # one text of eight turns is one letter of the file
            items = runs.score(turns[:8], lambda d, t=text: LETTERS[d["options"].index(t)])
            assert {item["letter"] for item in items} == set(LETTERS)
            assert len({item["file_letter"] for item in items}) == 1
            assert len({item["right"] for item in items}) == 1
        good = runs.numbers("maverix_s_circular", runs.score(turns, runs.right))
        assert (good["circ_acc"], good["position_bias"]) == (1, 0)
        always = runs.numbers("maverix_s_circular", runs.score(turns, lambda _: "A"))
        assert (always["circ_acc"], always["position_bias"], always["acc"]) == (0, 7 / 8, 1 / 8)

    def test_open_answers_without_a_judge(self) -> None:
        doc = runs.docs("maverix_s_oe")[0]
        (item,) = runs.score([runs.withheld(doc)], lambda _: "<think>x</think> It is red.")
        assert (item["candidate"], item["status"], item["words"]) == ("It is red.", "ok", 3)
        assert (item["dimensions"], item["withheld"], item["verdicts"]) == ({}, True, {})
        (item,) = runs.score([doc], lambda _: "It is red.")
        assert item["status"] == "unjudged"
        assert runs.numbers("maverix_s_oe", [item])["correctness_valid"] is None
        for reply, status in (
            ("", "empty"),
            (REFUSAL, "refused"),
            ("<think>x", "truncated"),
            (FAILED, "model_error"),
        ):
            for one in (doc, runs.withheld(doc)):
                # A submission must not hold a host's error.
                (item,) = runs.score([one], lambda _, reply=reply: reply)
                assert (item["candidate"], item["status"]) == ("", status)

    def test_what_the_log_keeps_is_plain(self) -> None:
        for task in ("maverix_s", "maverix_s_circular", "maverix_s_oe"):
            for doc in runs.docs(task)[:2]:
                for one in (doc, runs.withheld(doc)):
                    for reply in ("A", "", "\x00\ud83d", "C" * 20000, FAILED):
                        for item in names.process_results(one, [reply]).values():
                            plain(item)
                            json.dumps(item)

    def test_what_the_model_hears_is_told_in_every_mode(self) -> None:
        """Of modes without sound too: S stands for A in Table 3 if the model has none."""
        with running.model(running.Model("openai", "simple")):
            items = {m: runs.score(runs.docs(f"maverix_{m}")[:1], runs.right)[0] for m in MODES}
        hears = {"a": "delivered", "av": "not delivered"}
        assert [item["hears"] for item in items.values()] == [hears] * 5
        assert {m: item["sound"] for m, item in items.items()} == {
            **dict.fromkeys(MODES, ""),
            **hears,
        }

    def test_an_answer_outlives_its_files_and_errors_of_ours(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It was paid for: it counts although the subtitle file is gone by now."""
        doc = {**runs.docs()[0], "subtitle_path": "/gone/x.srt"}
        item = names.process_results(doc, [doc["answer"]])[CARRIER]
        assert (item["right"], item["media"]) == (1, None)
        assert "Traceback" not in capsys.readouterr().err
        monkeypatch.setattr(running, "hears", fail)
        for mode, state in (("a", "unknown"), ("vs", "")):
            doc = runs.docs(f"maverix_{mode}")[0]
            item = names.process_results(doc, [doc["answer"]])[CARRIER]
            assert (item["right"], item["sound"], item["hears"]["av"]) == (1, state, "unknown")

    def test_an_error_while_scoring_keeps_the_item(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for task, broken in (
            ("maverix_s", "read_choice"),
            ("maverix_s_circular", "read_choice"),
            ("maverix_s_oe", "reply_status"),
        ):
            docs = runs.docs(task)[:8]
            good = runs.numbers(task, runs.score(docs, runs.right))
            with monkeypatch.context() as patch:
                patch.setattr(tasks.answers, broken, fail)
                items = runs.score(docs, runs.right)
                hidden = runs.score([runs.withheld(doc) for doc in docs], runs.right)
            assert {(item["status"], bool(item["reply"])) for item in items} == {("error", True)}
            found = runs.numbers(task, items)
            assert found.keys() == good.keys()  # it counts in the same metrics
            assert (found["failed"], found["words_mean"]) == (8, None)
            if "acc" in found:
                assert (found["acc"], found["acc_valid"], found["acc_failed"]) == (0, None, 8)
            else:
                assert (found["detail_valid"], found["detail_failed"]) == (None, 8)
                assert (found["robust_n"], found["robust_failed"]) == (0, 4)
            found = runs.numbers(task, hidden)
            assert {found.get("acc"), found.get("detail_valid"), found.get("robust_n")} == {None}
            assert found["n_withheld"] == 8
            shown = [scoring.spread(BENCHMARK.tasks[task], (), item) for item in items]
            for row in scoring.metric_list(BENCHMARK.tasks[task], ()):
                value = row["aggregation"]([one[row["metric"]] for one in shown])
                assert value == runs.numbers(task, items)[row["metric"]]


@pytest.mark.usefixtures("sample")
class TestCheck:
    """What stops a run before the model is built, and what its results tell."""

    def check(self, *own: str) -> None:
        before.check_benchmark(BENCHMARK, own)

    def test_data_prompts_and_judge(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.check("maverix_av", "maverix_s_oe")
        with monkeypatch.context() as patch:
            patch.setenv(settings.PROMPTS, str(tmp_path / "gone"))
            with pytest.raises(PromptError, match="folder of prompts does not exist"):
                self.check("maverix_s")
        with monkeypatch.context() as patch:
            patch.setenv(settings.DATA, str(tmp_path))
            with pytest.raises(DataError, match=r"no MAVERIX data at .*data prepare maverix"):
                self.check("maverix_s")
        monkeypatch.delenv(settings.JUDGE)
        self.check("maverix_s")
        with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
            self.check("maverix_s", "maverix_s_oe")

    def test_a_model_that_sound_breaks(self) -> None:
        with running.model(running.Model("neo_ov", "chat")):
            with pytest.raises(DataError) as caught:
                self.check(*(f"maverix_{mode}" for mode in MODES))
            self.check("maverix_s", "maverix_vs")
        message = str(caught.value)
        assert "\n" not in message
        assert message.startswith("neo_ov (chat) cannot take the sound: ")
        assert message.endswith("Leave out maverix_a, maverix_av")
        # It cannot take a wav alone; beside a video it ignores it.
        with running.model(running.Model("aero_realtime_vllm", "chat")):
            with pytest.raises(DataError, match=r"Leave out maverix_a, maverix_long_a_oe$"):
                self.check("maverix_a", "maverix_av", "maverix_long_a_oe")
            self.check("maverix_av")

    def test_models_without_sound_are_told_where_a_was_not_run(self) -> None:
        """Table 3 of S, V and V+S alone, for a class that cannot take sound and one that drops it.

        The state is that of the run, whatever its items say.
        """
        right = {"maverix_s": 5, "maverix_v": 10, "maverix_vs": 15}
        items = {}
        for name, many in right.items():
            docs = runs.docs(name)
            good = {doc["id"] for doc in docs[:many]}
            items[name] = runs.score(
                docs, lambda d, g=good: runs.right(d) if d["id"] in g else runs.wrong(d)
            )
        for name, interface, state in (
            ("internvl2", "simple", "raises"),
            ("tasks_scripted", "chat", "not delivered"),
        ):
            with running.model(running.Model(name, interface)):  # type: ignore[arg-type]
                self.check(*right)
                section = annotated(*right, items=items)
            assert section["sound"] == {}
            assert section["hears"] == {"a": state, "av": state}
            table = BENCHMARK.tables([("", section["numbers"])], section)[0]
            cells = [column._cells[0] for column in table.columns[2:]]
            assert cells == ["25.0*", "25.0", "50.0", "50.0", "75.0", "75.0*", "75.0", "+25.0"]

    def test_what_the_results_tell(self) -> None:
        model = running.Model("someone_elses", "chat", {"max_num_frames": 8, "pretrained": "x"})
        with running.model(model):
            self.check("maverix_a", "maverix_s_oe")
            items = runs.score(runs.docs("maverix_a"), runs.some_right)
            section = annotated("maverix_a", "maverix_s_oe", items={"maverix_a": items})
        assert section["data"]["items"] == 20
        assert section["sound"] == {"maverix_a": "unknown"}
        assert section["hears"] == {"a": "unknown", "av": "unknown"}
        assert section["details"]["maverix_a"]["items"] == 20
        assert "maverix_s_oe" not in section["details"]
        assert section["judge"]["provider"] == "none"
        assert section["prompts"]["task"]["hash"] == tasks.task_prompts().hash
        assert any("packaged sample" in warning for warning in section["warnings"])
        assert any("someone_elses" in warning for warning in section["warnings"])
        assert "the model's own maximum of frames applies" in section["frames"]["rule"]
        assert section["frames"]["given"] == {"max_num_frames": 8}


class TestUsersData:
    """Videos without sound, withheld references, files that go: as the results tell them."""

    @pytest.fixture
    def placed(self, root: Path, source: Path) -> Path:
        without_sound(source / "videos" / "lights-1.mp4", source / "mute.mp4")
        (source / "mute.mp4").rename(source / "videos" / "lights-1.mp4")
        files.prepare(source, root, link=False)
        return root / "maverix"

    def test_videos_without_sound(self, placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        before.check_benchmark(BENCHMARK, ["maverix_s"])
        with pytest.raises(DataError, match=r"5 of 20 .* with sound"):
            before.check_benchmark(BENCHMARK, ["maverix_av"])
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        own = ("maverix_s", "maverix_av", "maverix_long_a", "maverix_long_v")
        items = {name: [{"id": doc["id"]} for doc in runs.docs(name)] for name in own}
        unlike = "the modes were not asked the same items"
        for some, told in (
            (own, [f"table3: {unlike} (S 20, V+A 15)", f"long: {unlike} (A 15, V 20)"]),
            (own[:1], []),
            (own[1:3], []),
        ):
            before.check_benchmark(BENCHMARK, some)
            known = before.checked(BENCHMARK, some)
            left_out = {name: before.left_out(BENCHMARK, known, name) for name in some}
            asked = {name: items[name] for name in some}
            section, warnings = BENCHMARK.describe(known.found, some, left_out, asked)
            assert len(section["without_sound"]) == (5 if len(some) > 1 else 0)
            assert any("5 items without sound" in line for line in warnings) is (len(some) > 1)
            found = [line.removeprefix("maverix_") for line in warnings if unlike in line]
            assert found == told

    def test_withheld_references(self, placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nobody is asked about them, so no judge is needed, named or waited for."""
        edit(placed / "data.json", withhold)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        for spec in (None, "none", "gpt-4o"):
            monkeypatch.delenv(settings.JUDGE, raising=False)
            if spec is not None:
                monkeypatch.setenv(settings.JUDGE, spec)
            before.check_benchmark(BENCHMARK, ["maverix_s_oe"])
            assert before.run_judge(BENCHMARK).provider == "none"
            section = annotated("maverix_s_oe")
            assert "judge" not in section
            assert not [line for line in section["warnings"] if "judge" in line]
            with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
                before.judge_config(BENCHMARK, "gpt-4o")  # who names one gets it
        doc = runs.docs("maverix_s_oe")[0]
        assert names.process_results(doc, ["red"])[CARRIER]["status"] == "ok"
        edit(placed / "data.json", lambda items: items[7].update(reference="red"))
        with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
            before.check_benchmark(BENCHMARK, ["maverix_s_oe"])
        monkeypatch.setenv(settings.JUDGE, "none")
        before.check_benchmark(BENCHMARK, ["maverix_s_oe"])
        assert annotated("maverix_s_oe")["judge"]["provider"] == "none"

    def test_files_that_go_during_the_run(self, placed: Path) -> None:
        """The answers are paid for: what the check found is what the results tell."""
        edit(placed / "data.json", lambda items: items[0].update(answer=None, agentc="social"))
        before.check_benchmark(BENCHMARK, ["maverix_vs"])
        first = annotated("maverix_vs")
        assert first["data"]["withheld"] == {"answers": 1, "references": 0}
        assert first["data"]["ignored"] == ["agentc"]
        assert "fields of the data that are not read: agentc" in first["warnings"]
        (placed / "videos" / "lights-2.mp4").unlink()
        (placed / "videos" / "lights-3.mp4").write_bytes(b"broken")
        for file in (placed / "subtitles").iterdir():
            file.write_text("gone", encoding="utf-8")
        (placed / "data.json").unlink()
        section = annotated("maverix_vs")
        assert section["data"] == first["data"]
        assert section["subtitles"] == first["subtitles"]
        told = "2 videos went missing or broke during the run: lights-2, lights-3"
        assert told in section["warnings"]
        before._checked.clear()
        section = annotated("maverix_vs")
        assert "data" not in section
        assert any("cannot be told any more" in line for line in section["warnings"])
        BENCHMARK.tables([("", section["numbers"])], section)

    def test_estimates(self, placed: Path) -> None:
        for name, generations, verdicts in (
            ("maverix_s", 20, 0),
            ("maverix_vs_oe", 40, 160),
            ("maverix_long_v_oe", 40, 160),
            ("maverix_v_circular", 160, 0),
        ):
            work = self.workload(name)
            assert (len(work.prompts), sum(map(len, work.judged))) == (generations, verdicts)
            assert all(work.prompts)
        edit(placed / "data.json", lambda items: withhold(items[:5]))
        assert [len(each) for each in self.workload("maverix_s_oe").judged] == [0] * 10 + [4] * 30
        # Of the first 13 generations three are judged.
        config = resolve("gpt-4o", {"OPENAI_API_KEY": "x"}, default_model="gpt-4o")
        yaml_of = {"task": "maverix_s_oe", "metadata": {"benchmark": "maverix", "judged": True}}
        task = {**yaml_of, "generation_kwargs": {"max_new_tokens": 256}}
        few = estimate.estimate(task, config, limit=13)
        assert (few.generations, few.verdicts) == (13, 12)

    def workload(self, name: str) -> estimate.Workload:
        task = {"task": name, "generation_kwargs": {"max_new_tokens": 16}}
        return estimate.workload(BENCHMARK, task)


class Stub:
    """A transcriber that hears one word in every file."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.identity = {"name": "stub", "version": "1", "model": "none", "language": None}

    def transcribe(self, sound: Path) -> list[Cue]:
        assert sound.suffix == ".wav"
        return [Cue(0.5, 1.5, "hello")]


class TestMakeSubtitles:
    """`lmms-eval-tasks data subtitles`."""

    def test_only_what_is_missing(
        self, root: Path, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        files.prepare(source, root, link=True)
        for made in (1, 0):
            assert data.make_subtitles(root, Stub()) == 0
            told = f"{made} made, 0 without sound, {4 - made} there before, 0 failed"
            assert told in capsys.readouterr().err
        found = data.load().subtitles_of("lights-3")
        assert found == root / "maverix" / "subtitles" / "lights-3.json"
        assert [cue.text for cue in subtitles.read(found)] == ["hello"]
        assert not (source / "subtitles" / "lights-3.json").exists()
        # A name with its ending has the subtitles of its stem: they are not set aside.
        found.unlink()
        edit(
            root / "maverix" / "data.json",
            lambda items: [i.update(video=i["video"] + ".mp4") for i in items],
        )
        released = data.load().subtitles_of("lights-1.mp4")
        assert data.make_subtitles(root, Stub()) == 0
        assert "1 made, 0 without sound, 3 there before" in capsys.readouterr().err
        assert data.load().subtitles_of("lights-1.mp4") == released

    def test_the_command(self, root: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        files.prepare(source, root, link=True)
        monkeypatch.setattr(transcribers, "FasterWhisper", Stub)
        with monkeypatch.context() as patch:
            patch.setattr(Stub, "transcribe", fail)
            done = CliRunner().invoke(app, ["data", "subtitles", "maverix"])
            assert done.exit_code == 1
        done = CliRunner().invoke(app, ["data", "subtitles", "maverix", "--model", "tiny"])
        assert done.exit_code == 0, done.output
        assert "1 made" in done.output


# --- the cuts -----------------------------------------------------------------------------------

Window = tuple[str, float | None, float | None]


class Cutter:
    """Stands for segments.segment: notes what is cut, and fails on some windows."""

    def __init__(self) -> None:
        self.cuts: list[Window] = []
        self.bad: set[Window] = set()

    def __call__(self, *window: Any) -> Any:
        self.cuts.append(window)
        if window in self.bad:
            raise MediaError(f"{window[0]}: is damaged after {window[1]} s")
        return SimpleNamespace(video="x.mp4", sound="x.wav", video_with_sound="y.mp4")


class TestCuts:
    """Once for all modes of an item, only what a mode needs, only what the limit leaves."""

    @pytest.fixture
    def cutter(self, root: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> Cutter:
        files.prepare(source, root, link=True)
        made = Cutter()
        monkeypatch.setattr(tasks.segments, "segment", made)
        return made

    def windows(self, count: int | None = None) -> list[Window]:
        rows = data.look(["maverix_s"]).rows[:count]
        return [(row["video_path"], row["start"], row["end"]) for row in rows]

    def check(self, *own: str, limit: float | None = None) -> None:
        tasks.cut.cache_clear()
        before.check_benchmark(BENCHMARK, own)
        before.make_media_of(BENCHMARK, own, limit)

    def test_what_is_cut(self, cutter: Cutter) -> None:
        self.check("maverix_s", "maverix_long_s_oe", "maverix_s_circular")
        before.check_benchmark(BENCHMARK, ["maverix_av"])  # without knowing the limit
        assert cutter.cuts == []
        own = ("maverix_a", "maverix_v", "maverix_av", "maverix_vs_oe", "maverix_v_circular")
        self.check(*own)
        assert sorted(map(str, cutter.cuts)) == sorted(map(str, set(self.windows())))
        for doc in runs.docs("maverix_av"):
            names.doc_to_messages(doc)  # a run finds them
        assert len(cutter.cuts) == len(set(self.windows()))
        cutter.cuts.clear()
        self.check("maverix_long_a")
        assert sorted(cutter.cuts) == sorted({(path, None, None) for path, *_ in self.windows()})

    def test_a_limit(self, cutter: Cutter) -> None:
        # A share is that of the first task, as the host has it.
        for own, limit, items in CASES["limits"]:
            cutter.cuts.clear()
            self.check(*own, limit=limit)
            assert set(cutter.cuts) == set(self.windows(items)), (own, limit)

    def test_what_cannot_be_cut(self, cutter: Cutter, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run that would break stops before its model is loaded, or goes on without the item."""
        first, *others = self.windows()
        assert first not in others
        cutter.bad.add(first)
        bad = "lights-1-q01"
        with pytest.raises(
            DataError,
            match=rf"1 of 20 .* cut:\n  {bad}: .*is damaged after .*\n.*--allow-bad-items",
        ):
            self.check("maverix_s", "maverix_v")
        self.check("maverix_s")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        counts = {
            "maverix_s": 20,
            "maverix_v": 19,
            "maverix_a_oe": 38,
            "maverix_av_circular": 152,
            "maverix_long_v": 20,
        }
        self.check(*counts)
        asked = {name: before.docs(BENCHMARK, name) for name in counts}
        assert {name: len(docs) for name, docs in asked.items()} == counts
        assert bad not in {doc["question_id"] for doc in asked["maverix_a_oe"]}
        known = before.checked(BENCHMARK, list(counts))
        left_out = {name: before.left_out(BENCHMARK, known, name) for name in counts}
        section, warnings = BENCHMARK.describe(known.found, list(counts), left_out, asked)
        assert list(section["not_cut"]) == [bad]
        assert "is damaged" in section["not_cut"][bad]
        assert f"1 items that cannot be cut left out of all modes but S: {bad}" in warnings
        assert any("(S 20, V 19)" in line for line in warnings)
        # The next item comes inside the limit.
        cutter.bad.add(others[2])
        cutter.cuts.clear()
        self.check("maverix_v", limit=3)
        assert set(cutter.cuts) == set(self.windows(5))
        with pytest.raises(MediaError, match=rf"^{bad}: its segment cannot be cut any more.*\("):
            names.doc_to_messages(runs.docs("maverix_v")[0])
        cutter.bad.clear()  # a mended file is asked again
        self.check("maverix_v")
        assert len(before.docs(BENCHMARK, "maverix_v")) == 20
        cutter.bad |= set(self.windows())
        for task in ("maverix_v", "maverix_v_oe"):
            with pytest.raises(DataError, match=f"none of the segments of {task} can be cut:\n"):
                self.check("maverix_s", task)

    def test_a_file_that_is_damaged_in_the_middle(
        self, root: Path, source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its packets can be listed and its first frame decodes: only the cut shows it."""
        monkeypatch.setenv(settings.CACHE, str(cache))
        video = source / "videos" / "lights-1.mp4"
        content = bytearray(video.read_bytes())
        first, last = len(content) * 45 // 100, len(content) * 55 // 100
        content[first:last] = bytes((7 * n) % 251 for n in range(last - first))
        video.write_bytes(content)

        def parts(items: list[dict[str, Any]]) -> None:
            items[:] = [
                {**items[0], "id": name, "start": start, "end": start + 2}
                for name, start in (("early", 1), ("middle", 14), ("late", 27))
            ]

        edit(source / "data.json", parts)
        files.prepare(source, root, link=True)
        with pytest.raises(DataError, match=r"1 of 3 .*\n  middle: .*lights-1.mp4: "):
            self.check("maverix_av")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        self.check("maverix_av")
        assert [doc["id"] for doc in before.docs(BENCHMARK, "maverix_av")] == ["early", "late"]


# --- submissions --------------------------------------------------------------------------------


@pytest.mark.usefixtures("sample")
class TestSubmission:
    """A model's answers in the letters of the user's own file."""

    def choices(self, task: str = "maverix_s", count: int = 5, **more: Any) -> Any:
        docs = [runs.withheld(doc) for doc in runs.docs(task)[:count]]
        return runs.run(task, runs.score(docs, lambda _: "C"), **more)

    def answers(self, reply: str = "It is red.") -> Any:
        docs = [runs.withheld(doc) for doc in runs.docs("maverix_s_oe")[:4]]
        return runs.run("maverix_s_oe", runs.score(docs, lambda _: reply))

    def made(self, *own: Any) -> Any:
        items = saved_runs.saved_items
        return BENCHMARK.submission([SavedRun(run.task, run.model, items(run)) for run in own])

    def test_the_form(self) -> None:
        turns = runs.run(
            "maverix_s_circular", runs.score(runs.docs("maverix_s_circular"), runs.right)
        )
        made = self.made(self.answers(), turns, self.choices())
        docs = runs.docs()[:5]
        assert (made["format"], made["model"], made["data"]) == (FORMAT, "m (x)", docs[0]["data"])
        letters = [(doc["id"], doc["file_letters"][2]) for doc in docs]
        assert made["answers"] == [
            *(
                {"task": "maverix_s", "id": name, "letter": letter, "status": "ok"}
                for name, letter in letters
            ),
            *(
                {"task": "maverix_s_oe", "id": name, "version": version}
                | {"answer": "It is red.", "status": "ok"}
                for name, _ in letters[:2]
                for version in ("original", "paraphrase")
            ),
        ]
        assert json.loads(json.dumps(made)) == made
        assert "right" not in json.dumps(made)
        with pytest.raises(DataError, match="no answers of maverix tasks"):
            self.made(turns)

    def test_letters_and_missing_answers(self) -> None:
        released = {entry.id: entry for entry in data.load().items}
        run = runs.run("maverix_s", runs.score(runs.docs(), runs.right))
        for answer in self.made(run)["answers"]:
            assert LETTERS.index(answer["letter"]) == released[answer["id"]].answer
        for reply, status in (("", "empty"), (REFUSAL, "refused"), (FAILED, "model_error")):
            made = self.made(self.answers(reply))["answers"]
            assert {(a["answer"], a["status"]) for a in made} == {("", status)}

    def test_what_does_not_go_together(self) -> None:
        other = self.choices("maverix_long_s")
        for sample_line in other.samples:
            sample_line[CARRIER]["data"] = "0" * 12
        broken = self.choices()
        broken.samples.append({"doc_id": 9, "acc": 1.0})
        for own, said in (
            ([self.choices("maverix_long_s", model="other")], r"one model .* m \(x\) on .*, other"),
            ([other], "000000000000"),
            ([self.choices(count=1)], r"maverix_s lights-1-q\d+ is answered twice"),
            ([broken], "line 6: no `failed` item of this suite"),
        ):
            with pytest.raises(DataError, match=said):
                self.made(self.choices(), *own)
