"""What a run's results say of data, candidates, judges and prompts; nothing there loses a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.cvrr_es import benchmark, data, judge
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.runs import preflight
from lmms_eval_tasks.utils.aggregate import Carrier
from tests.cvrr_es.release_files import predict
from tests.cvrr_es.scored import PART, TIME, Stated, answered, eight, row, values

ANSWER = f"cvrr_es_{PART}"
TRUTH = (1, 5, 2)
WAITING = "not judged yet: judge the saved samples with `lmms-eval-tasks judge`"
SECTION = {"model", "data", "left_out", "frames", "warnings", "details"}


def task(name: str) -> dict[str, Any]:
    """What the shared commands read of a task's YAML."""
    judged = name.startswith("cvrr_es_")
    return {"task": name, "metadata": {"judged": judged, "benchmark": "cvrr_es"}}


def annotated(*names: str, **more: Any) -> dict[str, Any]:
    """The benchmark's section, as the host writes it into its results file."""
    told: dict[str, Any] = {"results": {}, **more}
    preflight.annotate(told, [task(name) for name in names])
    section: dict[str, Any] = told["lmms_eval_tasks"]["cvrr_es"]
    assert json.loads(json.dumps(section)) == section
    return section


def ran(*names: str) -> dict[str, Any]:
    preflight.check([task(name) for name in names])
    return annotated(*names)


@pytest.fixture
def study(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """ada's answers to all of PART; ratings by Zoe, Yan (who is wrong, on a part) and the model."""
    shutil.rmtree(user / TIME)
    asked = ("What happens?", "What happens?", "Who is there?")
    answers = ("A.", "", "C.")
    predict(tmp_path / "said" / "ada", PART, list(zip(asked, answers, strict=True)))
    first = [row(n, r, judge) for judge in ("Zoe", "mine") for n, r in enumerate(TRUTH, 1)]
    first += [row(1, 5, "Yan"), row(2, None, "Yan")]
    reference = [row(n, r, "debate", round="reference") for n, r in enumerate(TRUTH, 1)]
    for variable, rows in ((settings.CVRR_RATINGS, first), (settings.CVRR_REFERENCE, reference)):
        ratings.write(tmp_path / f"{variable}.jsonl", rows)
        monkeypatch.setenv(variable, str(tmp_path / f"{variable}.jsonl"))
    monkeypatch.setenv(settings.CVRR_CANDIDATES, str(tmp_path / "said"))
    monkeypatch.setenv(settings.CVRR_NAME, "Mine!")
    return tmp_path


class TestAnswers:
    def test_section(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.JUDGE, "m@http://user:secret@127.0.0.1:9/v1")
        with running.model(running.Model("c", "chat", {"pretrained": "a/tiny"})):
            section = ran(ANSWER)
        assert section.keys() == SECTION | {"prompts", "judge"}
        assert (section["model"], section["left_out"]) == ("tiny", {})
        (warning,) = section["warnings"]
        assert warning.startswith("judged by m@http://127.0.0.1:9/v1, not by the paper's judge")
        assert section["data"] == {
            "folder": str(user),
            "hash": data.load().digest,
            "videos": 4,
            "questions": 5,
            "dimensions": 2,
            "bad_questions": 0,
        }
        assert section["judge"]["model"] == "m"
        assert section["judge"]["prompt"]["hash"] == judge.criterion().prompt_hash
        assert section["prompts"]["task"]["source"].endswith("task.yml")
        assert "secret" not in json.dumps(section)

    def test_frames(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "the model's own maximum" in ran(ANSWER)["frames"]["rule"]
        monkeypatch.setenv(settings.FRAMES, "8")
        expected = {"rule": "uniform frames in order, as images", "asked": 8}
        assert ran(ANSWER)["frames"] == expected

    def test_left_out(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        (user / PART / "2.mp4").unlink()
        section = ran(ANSWER)
        assert section["left_out"].keys() == {f"{PART}/002", f"{PART}/003"}
        left_out = f"2 questions left out: {PART}/002, {PART}/003"
        assert section["warnings"] == [left_out, WAITING]

    def test_the_sample(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        preflight.check([task(ANSWER)])
        monkeypatch.setattr(settings, "is_sample", lambda: True)
        warning, _ = annotated(ANSWER)["warnings"]
        assert warning == "made with the packaged sample: not a benchmark result"


class TestJudges:
    def test_alone(self, study: Path) -> None:
        section = ran("cvrr_judge")
        assert section.keys() == SECTION | {"candidates", "rating_prompt"}
        assert section["model"] == "Mine!"
        assert section["candidates"]["ada"] == {
            "answers": 3,
            "empty": 1,
            "image_tokens_taken_off": 0,
            "ends_taken_off": 0,
            "joined": {"order": 3},
            "problems": [],
            "notes": [],
        }
        assert section["warnings"] == []

    def test_who_was_shown(self, study: Path) -> None:
        """Judges by name, with what to know of them: one rated only a part."""
        section = ran("cvrr_judge_collective")
        (shown,) = section["first_ratings"].values()
        assert shown["judges"] == {"Yan": 2, "Zoe": 3}
        assert (shown["own_not_shown"], shown["of_other_answers"]) == (3, 0)
        assert shown["notes"] == [
            "Yan (first): rated 1 of 3 answers (1 parse_failure, 1 without a row)"
        ]
        assert "selected" not in section

    def test_who_was_chosen(self, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.CVRR_SELECTION, "theta=0.5,cross_fit=no")
        section = ran("cvrr_judge_mixture", "cvrr_judge_collective")
        assert section["selection"] == "theta=0.5,fallback=all,cross_fit=no"
        assert section["selected"] == {
            "cvrr_judge_mixture": {
                f"all, {PART}": {
                    "judges": ["Zoe"],
                    "fell_back": False,
                    "kappa": {"Yan": 0.0, "Zoe": 1.0},
                }
            }
        }
        assert set(section["first_ratings"]) == {"cvrr_judge_mixture", "cvrr_judge_collective"}

    def test_where_nobody_was_chosen(self, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The paper does not say what happens then: it is named, and not only in a file."""
        monkeypatch.setenv(settings.CVRR_SELECTION, "theta=1,fallback=none,cross_fit=no")
        assert ran("cvrr_judge_mixture")["warnings"] == []
        rows = [row(n, 3, "Zoe") for n in (1, 2, 3)]
        ratings.write(study / f"{settings.CVRR_RATINGS}.jsonl", rows)
        (warning,) = ran("cvrr_judge_mixture")["warnings"]
        assert warning == (
            "cvrr_judge_mixture: no judge passed in 1 of 1 choices (one for each fold and "
            "dimension; theta=1.0,fallback=none,cross_fit=no), and there it was shown nobody: the "
            "final judge rates alone"
        )

    def test_by_folds(self, study: Path) -> None:
        (by_part,) = ran("cvrr_judge_mixture")["selected"].values()
        assert set(by_part) == {f"fold 0, {PART}", f"fold 1, {PART}"}

    def test_no_reference(self, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(settings.CVRR_REFERENCE)
        (warning,) = ran("cvrr_judge")["warnings"]
        assert warning.startswith(
            "no reference ratings were named (LMMS_EVAL_TASKS_CVRR_REFERENCE)"
        )


class TestGone:
    """Files that vanish while the model answers are a warning."""

    def test_after_the_check(self, study: Path, user: Path) -> None:
        preflight.check([task("cvrr_judge_mixture")])
        before = annotated("cvrr_judge_mixture")
        for folder in (user, study / "said"):
            shutil.rmtree(folder)
        assert annotated("cvrr_judge_mixture") == before

    def test_without_a_check(self, user: Path) -> None:
        shutil.rmtree(user)
        data.remember(None)
        section = annotated(ANSWER)
        assert section.keys() == SECTION - {"data", "left_out"} | {"prompts", "judge"}
        warning, waiting = section["warnings"]
        assert waiting == WAITING
        assert warning.startswith("the data of this run cannot be told any more: no CVRR-ES data")
        told = {"results": {}, "lmms_eval_tasks": {"cvrr_es": section}}
        assert benchmark.tables(told) == [f"Note: {warning}", f"Note: {WAITING}"]


def test_details_and_placeholders(user: Path, stated: Stated) -> None:
    some = [answered("right 5", 1), answered("", 2)]
    numbers = values(some)
    assert any(isinstance(value, Carrier) for value in numbers.values())
    told: dict[str, Any] = {
        "results": {ANSWER: {f"{name},none": one for name, one in numbers.items()}},
        "groups": {"cvrr_es": {"mean_acc,none": 0.5}},
        "samples": {ANSWER: some, "cvrr_judge": eight()},
    }
    preflight.annotate(told, [task(ANSWER), task("cvrr_judge")])
    details = told["lmms_eval_tasks"]["cvrr_es"]["details"]
    assert details[ANSWER]["intervals"]["acc"]["estimate"] == 0.5
    assert details["cvrr_judge"]["kappa"]["mean"]["kappa"] == pytest.approx(1 / 6)
    assert not any(name.startswith("mean_") for name in told["results"][ANSWER])
    assert told["results"][ANSWER]["acc,none"] == 0.5
    assert told["groups"]["cvrr_es"] == {"mean_acc,none": 0.5}
