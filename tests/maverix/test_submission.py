"""The submission file: a model's answers in the letters of the user's own file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.maverix import scores, utils
from lmms_eval_tasks.maverix.labels import LETTERS
from lmms_eval_tasks.maverix.submission import FORMAT, submission
from lmms_eval_tasks.runs.rescore import Run
from tests.maverix import runs
from tests.maverix.runs import sample
from tests.maverix.test_utils import REFUSAL, fail

__all__ = ["sample"]
pytestmark = pytest.mark.usefixtures("sample")


def choice(task: str = "maverix_s", model: str = "m (x)", count: int = 5) -> Run:
    docs = [runs.withheld(doc) for doc in runs.docs("choice")[:count]]
    return runs.run(task, runs.score("choice", docs, lambda _: "C"), model)


def open_run(reply: str = "It is red.") -> Run:
    docs = [runs.withheld(doc) for doc in runs.docs("open")[:4]]
    return runs.run("maverix_s_oe", runs.score("open", docs, lambda _: reply))


def test_the_form() -> None:
    made = submission([open_run(), choice()])
    docs = runs.docs("choice")[:5]
    assert made["format"] == FORMAT
    assert (made["model"], made["data"]) == ("m (x)", docs[0]["data"])
    assert made["answers"][:5] == [
        {"task": "maverix_s", "id": doc["id"], "letter": doc["file_letters"][2], "status": "ok"}
        for doc in sorted(docs, key=lambda doc: doc["id"])
    ]
    assert made["answers"][5:] == [
        {
            "task": "maverix_s_oe",
            "id": doc["id"],
            "version": version,
            "answer": "It is red.",
            "status": "ok",
        }
        for doc in docs[:2]
        for version in ("original", "paraphrase")
    ]
    assert json.loads(json.dumps(made)) == made
    assert "right" not in json.dumps(made)


def test_letters_are_of_the_file() -> None:
    released = {entry.id: entry for entry in runs.data.load().items}
    docs = runs.docs("choice")
    run = runs.run("maverix_s", runs.score("choice", docs, runs.right))
    for answer in submission([run])["answers"]:
        assert LETTERS.index(answer["letter"]) == released[answer["id"]].answer


@pytest.mark.parametrize(
    ("reply", "status"),
    [("", "empty"), (REFUSAL, "refused"), ("[LMMS_EVAL_REQUEST_FAILED after 3 retries]", None)],
)
def test_why_there_is_no_answer(reply: str, status: str | None) -> None:
    answers = submission([open_run(reply)])["answers"]
    assert {(a["answer"], a["status"]) for a in answers} == {("", status or "model_error")}


def test_errors_of_ours_are_submitted_as_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "choice_metrics", fail)
    monkeypatch.setattr(utils, "open_metrics", fail)
    answers = submission([choice(), open_run()])["answers"]
    assert {a["status"] for a in answers} == {"error"}
    assert {a.get("letter", a.get("answer")) for a in answers} == {None, ""}


def test_circular_tasks_are_no_part() -> None:
    turns = runs.run(
        "maverix_s_circular", runs.score("circular", runs.docs("circular"), runs.right)
    )
    with pytest.raises(DataError, match="no answers of maverix tasks"):
        submission([turns])
    assert submission([turns, choice()]) == submission([choice()])


def test_two_models() -> None:
    with pytest.raises(DataError, match=r"one model and one data file .* m \(x\) on .*, other on"):
        submission([choice(), choice("maverix_long_s", "other")])


def test_two_data_files() -> None:
    other = choice("maverix_long_s")
    for one in other.samples:
        one["acc"]["data"] = "0" * 12
    with pytest.raises(DataError, match="000000000000"):
        submission([choice(), other])


def test_a_question_answered_twice() -> None:
    again = dataclasses.replace(choice(count=1), file=Path("later_samples_maverix_s.jsonl"))
    with pytest.raises(DataError, match=r"maverix_s lights-1-q\d+ is answered twice"):
        submission([choice(), again])


@pytest.mark.parametrize("broken", [{}, {"acc": 1.0}, {"acc": {"id": "x"}}])
def test_samples_of_someone_else(broken: dict[str, object]) -> None:
    run = choice()
    run.samples.append({"doc_id": 9, **broken})
    with pytest.raises(DataError, match="line 6: no item of this suite"):
        submission([run])


class TestCommand:
    """`lmms-eval-tasks submit`."""

    def test_writes_the_file(self, tmp_path: Path) -> None:
        runs.write(tmp_path / "logs", choice())
        runs.write(tmp_path / "logs", open_run())
        out = tmp_path / "mine.json"
        done = CliRunner().invoke(app, ["submit", str(tmp_path / "logs"), "--output", str(out)])
        assert done.exit_code == 0, done.output
        assert done.output.strip() == f"{out}: 9 answers of m (x) to maverix"
        assert json.loads(out.read_text(encoding="utf-8")) == submission([choice(), open_run()])

    def test_runs_of_a_benchmark_without_withheld_answers_are_passed_over(
        self, tmp_path: Path
    ) -> None:
        runs.write(tmp_path, choice())
        runs.write(tmp_path, dataclasses.replace(choice(), task="maia_vsv"))
        out = tmp_path / "mine.json"
        done = CliRunner().invoke(app, ["submit", str(tmp_path), "--output", str(out)])
        assert done.exit_code == 0, done.output
        assert json.loads(out.read_text(encoding="utf-8")) == submission([choice()])
        assert not list(tmp_path.glob("*.part"))

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["gone"], "no such file or folder"),
            (["logs", "--output", "gone/x.json"], "a folder that is there"),
            (["logs", "--output", "logs"], "not a file"),
            (["maia"], "the answers of maia are public"),
        ],
    )
    def test_one_line_for_what_is_wrong(
        self,
        arguments: list[str],
        said: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        runs.write(tmp_path / "logs", choice())
        runs.write(tmp_path / "maia", dataclasses.replace(choice(), task="maia_vsv"))
        done = CliRunner().invoke(app, ["submit", *arguments])
        assert isinstance(done.exception, TasksError)
        assert said in str(done.exception)
        assert not (tmp_path / "submission.json").exists()


def test_a_run_with_all_answers_withheld_has_no_score() -> None:
    for run, kind in ((choice(), "choice"), (open_run(), "open")):
        found = runs.aggregated(kind, run.samples)
        assert found["n_withheld"] == len(run.samples)
        means = [n for n in found if n.startswith(("acc", "correctness_valid", "robust_both"))]
        assert means
        assert {found[name] for name in means} == {None}
        assert scores.details(kind, [s[scores.FIRST[kind]] for s in run.samples])["withheld"]
