"""A model that fails or is stopped: what is kept, what is asked again, what its numbers say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import plugin, replies
from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import saved_runs

TASK, DOCS = "maia_unimodal", 200
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 401 - wrong key"

Reply = Callable[[int], str]  # of the number of a request, from 0, in all runs of a test


@pytest.fixture
def play(
    sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Reply], dict[str, Any]]:
    """Runs a model that gives a reply to each number; `play.model.asked` counts requests."""
    monkeypatch.setenv(settings.DATA, str(sample_root))
    monkeypatch.setenv(settings.CACHE, str(tmp_path))
    plugin.install()
    from lmms_eval import evaluator
    from lmms_eval.api.model import lmms

    class Model(lmms):
        asked = 0

        def __init__(self, reply: Reply) -> None:
            super().__init__()
            self.reply = reply

        def generate_until(self, requests: list[Any]) -> list[str]:
            Model.asked += len(requests)
            first = Model.asked - len(requests)
            return [self.reply(first + number) for number in range(len(requests))]

        loglikelihood = generate_until_multi_round = None

    def run(reply: Reply) -> dict[str, Any]:
        made = evaluator.simple_evaluate(
            model=Model(reply), tasks=[TASK], limit=DOCS, verbosity="ERROR"
        )
        assert made is not None
        return dict(made)

    run.model = Model  # type: ignore[attr-defined]
    return run


def letters(number: int) -> str:
    return "AB"[number % 2]


def statuses(results: dict[str, Any]) -> dict[str, int]:
    return dict(results["lmms_eval_tasks"]["maia"]["details"][TASK]["status"])


def test_a_run_that_was_stopped_goes_on(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(number: int) -> str:
        if number == 100:
            raise KeyboardInterrupt
        return letters(number)

    with pytest.raises(KeyboardInterrupt):
        play(stopped)
    kept = 20 + replies.PORTION  # the first portion is as long as it takes to see that all fails
    play.model.asked = kept
    results = play(letters)
    assert play.model.asked == DOCS
    whole = play(letters)
    assert play.model.asked == 2 * DOCS  # a run that got its results is asked anew
    replied = [s["failed"]["reply"] for s in results["samples"][TASK]]
    assert replied == [s["failed"]["reply"] for s in whole["samples"][TASK]]

    play.model.asked = 0
    with pytest.raises(KeyboardInterrupt):
        play(stopped)
    monkeypatch.setenv(settings.FRESH, "1")
    play.model.asked = 0
    play(letters)
    assert play.model.asked == DOCS


def test_results_that_were_not_saved_are_not_lost(play: Any) -> None:
    play(letters)
    replies.Kept.reopen()
    play(letters)
    assert play.model.asked == DOCS


def test_nothing_works(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        replies.RequestsFailedError, match=r"20 requests in a row failed, 180 .*401"
    ):
        play(lambda _: FAILED)
    assert play.model.asked == 20
    monkeypatch.setenv(settings.MODEL_STOP_AFTER, "0")
    results = play(lambda _: FAILED)
    assert statuses(results) == {"model_error": DOCS}
    assert "wrong key" in results["lmms_eval_tasks"]["invalid"][TASK]
    assert results["lmms_eval_tasks"]["maia"]["numbers"][TASK]["pair_acc_valid"] is None


@pytest.mark.parametrize("lost", [5, 40])
def test_failures_that_a_class_hides(
    play: Any, lost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in its log and an empty text; above 5 % of them the numbers are invalid."""
    from loguru import logger

    def empty(number: int) -> str:
        if number % 5 == 0 and number < 5 * lost:
            logger.patch(lambda record: record.update(name="lmms_eval.models.simple.any")).error(
                "CUDA out of memory"
            )
            return ""
        return letters(number)

    monkeypatch.setenv(settings.MODEL_STOP_AFTER, "0")
    results = play(empty)
    assert statuses(results) == {"model_error": lost, "ok": DOCS - lost}
    section = results["lmms_eval_tasks"]
    (line,) = [w for w in section["maia"]["warnings"] if "requests to the model" in w]
    assert f"{lost} of {DOCS}" in line
    assert "CUDA out of memory" in line
    assert (TASK in section["invalid"]) == (lost == 40)
    # Computed again, it is as invalid as it was.
    saved = saved_runs.Run(TASK, tmp_path, results["samples"][TASK], model=None, saved={})
    again = rescore.rescore_saved(BENCHMARK, [saved], None)
    assert (TASK in again.problems) == (lost == 40)
    assert any(f"{lost} of {DOCS} requests" in note for note in again.notes)


def test_empty_answers_are_answers_unless_all_are(play: Any) -> None:
    some = play(lambda number: "" if number < 100 else "A")
    assert statuses(some) == {"empty": 100, "ok": 100}
    assert not some["lmms_eval_tasks"]["invalid"]
    assert "all 200 replies are empty" in play(lambda _: "")["lmms_eval_tasks"]["invalid"][TASK]


def test_a_reply_too_few(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = play.model.generate_until
    monkeypatch.setattr(play.model, "generate_until", lambda self, asked: whole(self, asked)[1:])
    with pytest.raises(replies.RequestsFailedError, match="19 replies to 20 requests"):
        play(letters)


def test_where_nothing_can_be_saved(tmp_path: Path) -> None:
    """Known before the model is loaded; and what the host lost only in its log is a failed run."""
    from loguru import logger

    from lmms_eval_tasks.errors import TasksError
    from lmms_eval_tasks.host import script

    (tmp_path / "file").write_text("")
    with pytest.raises(TasksError, match=r"--output_path .*file: cannot be written"):
        script._check_folder(str(tmp_path / "file"))
    script._check_folder(str(tmp_path / "new" / "folder"))

    outcome = SimpleNamespace(failed=False)
    module = ModuleType("host")
    module.cli_evaluate_single = lambda _: logger.warning("Could not save results aggregated")  # type: ignore[attr-defined]
    script._watch(outcome, module)
    given = SimpleNamespace(tasks="a,b", output_path=str(tmp_path))
    with pytest.raises(OSError, match="Could not save results"):
        module.cli_evaluate_single(given)
    assert outcome.failed
