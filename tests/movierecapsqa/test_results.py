"""What a run's results say of its data, frames, judge and metrics; nothing there loses a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.movierecapsqa import benchmark, checked, data, scores, text_scores
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.runs import preflight
from lmms_eval_tasks.utils import provenance
from tests.movierecapsqa.entries import entry, question, write
from tests.movierecapsqa.saved_runs import aggregated, score

WAITING = "not judged yet: judge the saved samples with `lmms-eval-tasks judge`"
BOTH = "movierecapsqa_segment"
FRAMES, DIALOGUE, MOVIE = f"{BOTH}_frames", f"{BOTH}_dialogue", "movierecapsqa_movie"


def task(name: str) -> dict[str, Any]:
    """What the shared commands read of a task's YAML."""
    return {
        "task": name,
        "metadata": {"judged": True, "benchmark": "movierecapsqa"},
        "generation_kwargs": {"max_new_tokens": 256},
    }


def annotated(*names: str, **results: Any) -> dict[str, Any]:
    """The benchmark's section, as the host writes it into its results file."""
    made: dict[str, Any] = {"results": {}, **results}
    preflight.annotate(made, [task(name) for name in names])
    section: dict[str, Any] = made["lmms_eval_tasks"]["movierecapsqa"]
    assert json.loads(json.dumps(section)) == section
    return section


@pytest.fixture(autouse=True)
def no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_notes", {})


class TestSection:
    """All of it, where nothing went wrong."""

    def test_data(self, user: Path) -> None:
        preflight.check([task(BOTH)])
        section = annotated(BOTH)
        release = data.load()
        assert section["data"] == {
            "file": str(user / "segments.json"),
            "hash": release.digest,
            **release.counts,
        }
        assert (section["data"]["segments"], section["data"]["questions"]) == (2, 4)
        assert section["left_out"] == {BOTH: {}}
        assert section["warnings"] == [WAITING]

    def test_prompts_and_judge(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.JUDGE, "m@http://user:secret@127.0.0.1:9/v1")
        section = annotated(DIALOGUE)
        assert section["judge"]["model"] == "m"
        assert section["judge"]["prompt"]["hash"] == judging.claims_criterion().prompt_hash
        assert section["prompts"]["task"]["source"].endswith("task.yml")
        assert "secret" not in json.dumps(section)
        (warning,) = section["warnings"]
        assert "not by the paper's judge" in warning

    def test_baselines(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        section = annotated(DIALOGUE)
        assert section["baselines"]["which"] == []
        assert section["baselines"]["rouge_l"] == text_scores.ROUGE_L
        assert "geval" not in section["baselines"]
        monkeypatch.setenv(settings.BASELINES, "helmet,geval")
        section = annotated(DIALOGUE)
        assert section["baselines"]["which"] == ["geval", "helmet"]
        assert section["baselines"]["geval"]["samples_without_logprobs"] == 5

    def test_models_of_text_metrics_by_task(self, user: Path) -> None:
        """As the host does it: aggregated first, then told."""
        scored = score(DIALOGUE, lambda doc: "A man.")
        aggregated(scored)
        section = annotated(DIALOGUE, BOTH)
        for name in ("bertscore", "bartscore"):
            assert list(section["baselines"][name]) == [DIALOGUE]
            assert "not computed" in section["baselines"][name][DIALOGUE]
        assert "bertscore" not in annotated(BOTH)["baselines"]

    def test_details_of_the_samples(self, user: Path) -> None:
        scored = score(DIALOGUE, lambda doc: "" if doc["id"] == "talk.1/10" else "A man.")
        section = annotated(DIALOGUE, samples={DIALOGUE: scored})
        found = section["details"][DIALOGUE]
        assert found["items"] == 4
        assert found["status"] == {"empty": 1, "unjudged": 3}
        assert annotated(DIALOGUE)["details"] == {}
        assert scores.FIRST in scored[0]

    def test_the_packaged_sample_says_so(
        self, sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.CACHE, str(cache))
        monkeypatch.setenv(settings.DATA, "sample")
        monkeypatch.setenv(settings.JUDGE, "none")
        checked.remember(None)
        section = annotated(DIALOGUE)
        assert section["warnings"][0] == "made with the packaged sample: not a benchmark result"
        tables = benchmark.tables({"results": {}, "lmms_eval_tasks": {"movierecapsqa": section}})
        assert tables == [f"Note: {warning}" for warning in section["warnings"]]


class TestLeftOut:
    """Segments that the user allowed to leave out."""

    @pytest.fixture
    def incomplete(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A third segment whose recap is missing, and a bad fourth one."""
        third = entry(3, videoId="gone", movieId=..., movieStartTime=..., movieEndTime=...)
        write(user, [entry(1), entry(2), third, entry(4, startTime=9, endTime=2)])
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        return user

    def test_by_task(self, incomplete: Path) -> None:
        section = annotated(BOTH, DIALOGUE)
        assert set(section["left_out"][BOTH]) == {"talk.3", "talk.4"}
        assert set(section["left_out"][DIALOGUE]) == {"talk.4"}
        assert section["data"]["bad_segments"] == 1
        told = [line for line in section["warnings"] if "left out" in line]
        assert told == [
            f"{BOTH}: 2 segments left out: talk.3, talk.4",
            f"{DIALOGUE}: 1 segments left out: talk.4",
        ]

    def test_conditions_that_ask_other_questions(self, incomplete: Path) -> None:
        """Table 5's differences would be between four questions and six."""
        (told,) = [line for line in annotated(BOTH, FRAMES, DIALOGUE)["warnings"] if "same" in line]
        assert told.startswith("aligned recap segment: ")
        assert "(both 4, only frames 4, only dialogue 6)" in told
        # Under --limit each task has the first of its own.
        counts = {name: {"original": 4, "effective": 3} for name in (BOTH, DIALOGUE)}
        section = annotated(BOTH, DIALOGUE, **{"n-samples": counts})
        assert not [line for line in section["warnings"] if "same" in line]
        assert not [line for line in annotated(BOTH, FRAMES)["warnings"] if "same" in line]

    def test_many_are_not_all_named(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        more = [entry(n, videoId="gone", questions=[question(n)]) for n in range(2, 40)]
        write(user, [entry(1), *more])
        section = annotated(BOTH)
        assert len(section["left_out"][BOTH]) == 38
        told, waiting = section["warnings"]
        assert waiting == WAITING
        assert told.startswith(f"{BOTH}: 38 segments left out: ")
        assert told.count("talk.") == 20


class TestFrames:
    """The rule, and what the user asked for."""

    def test_the_clip_as_a_file(self, user: Path) -> None:
        model = running.Model("tasks_scripted", "chat", {"max_num_frames": 8, "pretrained": "x"})
        with running.model(model):
            frames = annotated(BOTH, DIALOGUE)["frames"]
        assert "the model's own maximum of frames applies" in frames["rule"]
        assert frames["given"] == {"max_num_frames": 8}
        assert "defaults" in frames
        assert "asked" not in frames

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ("16", {"asked": 16}),
            ("16,talk=4", {"asked": 16, "asked_of_videos": {"talk": 4}}),
            ("16,other=4", {"asked": 16}),
        ],
    )
    def test_frames_as_images(
        self, asked: str, expected: Mapping[str, Any], user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.FRAMES, asked)
        rule = "uniform frames in order, as images"
        assert annotated(BOTH)["frames"] == {"rule": rule, **expected}

    def test_frames_of_one_video_alone(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.FRAMES, "talk=4")
        frames = annotated(BOTH)["frames"]
        assert "as a file" in frames["rule"]
        assert frames["asked_of_videos"] == {"talk": 4}

    def test_dialogue_alone_shows_nothing(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.FRAMES, "16")
        assert annotated(DIALOGUE)["frames"] == {"rule": "no picture is handed over"}


class TestWhatGoesDuringTheRun:
    """The answers are paid for: what the check found is what the results tell."""

    @pytest.mark.parametrize("content", [None, "{", "[]"])
    def test_the_data_file(self, content: str | None, user: Path) -> None:
        preflight.check([task(BOTH)])
        before = annotated(BOTH)
        (user / "segments.json").unlink()
        if content is not None:
            (user / "segments.json").write_text(content, encoding="utf-8")
        assert annotated(BOTH) == before
        shutil.rmtree(user)
        assert annotated(BOTH) == before

    def test_without_a_check(self, user: Path) -> None:
        """Nothing is known and the data are gone: still no exception, and it is said."""
        shutil.rmtree(user)
        section = annotated(BOTH)
        assert "data" not in section
        assert "left_out" not in section
        told, waiting = section["warnings"]
        assert waiting == WAITING
        assert told.startswith(
            "the data of this run cannot be told any more: no MovieRecapsQA data at"
        )
        assert {"prompts", "frames", "judge", "baselines", "details"} <= section.keys()
        assert benchmark.tables({"results": {}, "lmms_eval_tasks": {"movierecapsqa": section}})

    def test_the_users_prompts(
        self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine = tmp_path / "prompts" / "movierecapsqa"
        mine.mkdir(parents=True)
        packaged = Path(judging.__file__).parent / "prompts"
        for name in ("task.yml", "judge.yml", "baselines.yml"):
            shutil.copy(packaged / name, mine / name)
        monkeypatch.setenv(settings.PROMPTS, str(mine.parent))
        preflight.check([task(BOTH)])
        assert annotated(BOTH)["judge"]["prompt"]["source"] == str(mine / "judge.yml")
        shutil.rmtree(mine.parent)
        section = annotated(BOTH)
        assert section["data"]["segments"] == 2
        assert "judge" not in section
        assert any("the judge of this run cannot be told" in line for line in section["warnings"])


def test_uncut_clips_are_left_out(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preflight.check([task(BOTH)])
    (window, *_) = data.usable(data.load(), [BOTH])["segment"].windows.values()
    checked.remember_uncut({window: "damaged"})
    section = annotated(BOTH, DIALOGUE)
    assert section["left_out"] == {BOTH: {"talk.1": "damaged"}, DIALOGUE: {}}
    assert any("both 2, only dialogue 4" in line for line in section["warnings"])
