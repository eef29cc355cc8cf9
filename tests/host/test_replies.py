"""A model that fails or is stopped: what is kept, what is asked again, what its numbers say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.host import plugin
from lmms_eval_tasks.host.requests import delivery, request_runner
from lmms_eval_tasks.host.requests.kept_replies import KeptReplies, Unsaved
from lmms_eval_tasks.runs import finish
from lmms_eval_tasks.utils import saved_runs
from tests.checks import limits_of, table

TASK, DOCS = "maia_unimodal", 200
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 401 - wrong key"

Answer = Callable[[int], str]  # of the number of a request, from 0, in all runs of a test


@pytest.fixture
def play(
    sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Answer], dict[str, Any]]:
    """Runs a model that gives a reply to each number; `play.asked` counts requests."""
    monkeypatch.setenv(settings.DATA, str(sample_root))
    monkeypatch.setenv(settings.CACHE, str(tmp_path))
    context.outside().put(Unsaved, None)  # of the command of another test in this process
    plugin.install()
    from lmms_eval import evaluator
    from lmms_eval.api.model import lmms

    class Model(lmms):
        asked = 0
        reply: Answer
        loglikelihood = generate_until_multi_round = None

        def generate_until(self, requests: list[Any]) -> list[str]:
            Model.asked += len(requests)
            first = Model.asked - len(requests)
            return [self.reply(first + number) for number in range(len(requests))]

    lm = Model()  # replies are kept for the same object only: of another one nothing is known

    def run(
        reply: Answer,
        lm: Model = lm,
        tasks: Sequence[str] = (TASK,),
        limit: int = DOCS,
        **more: Any,
    ) -> dict[str, Any]:
        lm.reply = reply
        given = {"tasks": [*tasks], "limit": limit, "verbosity": "ERROR", **more}
        made = evaluator.simple_evaluate(model=lm, **given)
        assert made is not None
        return dict(made)

    run.model = Model  # type: ignore[attr-defined]
    return run


def letters(number: int) -> str:
    return "AB"[number % 2]


def stopped(number: int) -> str:
    if number == 100:
        raise KeyboardInterrupt
    return letters(number)


def statuses(results: dict[str, Any]) -> dict[str, int]:
    section = results["lmms_eval_tasks"]["maia"]["details"][TASK]
    return dict(section["status"])


def test_the_repeats_of_a_request_are_kept_each_by_itself(play: Any) -> None:
    def stopped_late(number: int) -> str:
        if number == 7:
            raise KeyboardInterrupt
        return letters(number)

    with pytest.raises(KeyboardInterrupt):
        play(stopped_late, limit=4, repeats=2)
    play.model.asked = 7
    results = play(letters, limit=4, repeats=2)
    assert play.model.asked == 8
    assert [one["resps"] for one in results["samples"][TASK]] == [[["A", "B"]]] * 4


def test_runs_side_by_side_in_threads_do_not_mix(play: Any) -> None:
    """Of ours one waits for the other; lmms-eval, and the model, are as before at the end."""
    from lmms_eval import evaluator

    before, models = evaluator.evaluate, [play.model(), play.model()]
    for lm in models:
        lm.generate_until = lm.generate_until  # an attribute of the object's own
    own = [vars(lm)["generate_until"] for lm in models]
    with ThreadPoolExecutor(2) as pool:
        answers: Sequence[Answer] = [lambda number: "A", lambda number: "B"]
        for results in pool.map(lambda reply, lm: play(reply, lm, limit=8), answers, models):
            assert len({one["resps"][0][0] for one in results["samples"][TASK]}) == 1
    assert evaluator.evaluate is before
    assert [vars(lm)["generate_until"] for lm in models] == own


def test_a_run_that_was_stopped_goes_on(
    play: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        play(stopped)
    # Each as soon as the class has answered it.
    assert "100 replies are saved in" in capsys.readouterr().err
    play.model.asked = 100
    results = play(letters)
    assert play.model.asked == DOCS
    said = results["lmms_eval_tasks"]["answered"]
    assert said["replies"] == DOCS - 100  # those of this run
    assert said["seconds"] > 0
    whole = play(letters)
    assert play.model.asked == 2 * DOCS  # a run that got its results is asked anew
    replied = [s["failed"]["reply"] for s in results["samples"][TASK]]
    assert replied == [s["failed"]["reply"] for s in whole["samples"][TASK]]

    hashes = {one["doc_hash"] for one in whole["samples"][TASK]}
    assert len(hashes) == DOCS
    assert hashes == {one["doc_hash"] for one in results["samples"][TASK]}

    # Until they are saved they are not lost.
    unsaved = context.outside().instance_of(Unsaved)
    for asked in (DOCS, 0):
        play.model.asked = 0
        play(letters)
        assert play.model.asked == asked
    # Of another model nothing is known, and a user may ask anew.
    play.model.asked = 0
    play(letters, play.model())
    assert play.model.asked == DOCS
    with monkeypatch.context() as patch:
        patch.setenv(settings.FRESH, "1")
        play.model.asked = 0
        play(letters)
        assert play.model.asked == DOCS
    unsaved.put_away()
    context.outside().put(Unsaved, None)
    play.model.asked = 0
    play(letters)
    assert play.model.asked == DOCS


def test_each_process_keeps_its_own_and_a_stop_while_scoring_tells_of_all(
    play: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")  # the host tells a model its rank later
    with pytest.raises(KeyboardInterrupt):
        play(stopped)
    (file,) = settings.cache_dir().glob("replies/*/*.jsonl")
    assert file.name.startswith(f"{TASK}.1.")
    monkeypatch.delenv("RANK")
    monkeypatch.setattr(finish, "score_together", lambda *_: stopped(100))
    with pytest.raises(KeyboardInterrupt):
        play(letters)
    assert f"{DOCS} replies are saved" in capsys.readouterr().err


def test_nothing_works(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        request_runner.RequestsFailedError, match=r"20 requests in a row failed, 180 .*401"
    ):
        play(lambda _: FAILED)
    assert play.model.asked == 20
    monkeypatch.setenv(settings.MODEL_STOP_AFTER, "0")
    results = play(lambda _: FAILED)
    assert statuses(results) == {"model_error": DOCS}
    assert "wrong key" in results["lmms_eval_tasks"]["invalid"][TASK]
    assert results["lmms_eval_tasks"]["maia"]["numbers"][TASK]["pair_acc_valid"] is None


@pytest.mark.parametrize("lost", [5, 40])
def test_failures_that_a_class_hides(play: Any, lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
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
    (line,) = [w for w in limits_of(section["maia"]) if "requests to the model" in w]
    assert f"{lost} of {DOCS}" in line
    assert "CUDA out of memory" in line
    assert (TASK in section["invalid"]) == (lost == 40)


def test_failures_are_no_replies_that_were_answered(play: Any) -> None:
    found = play(lambda number: "[LMMS_EVAL_REQUEST_FAILED] why" if number % 2 else "A", limit=8)
    assert found["lmms_eval_tasks"]["answered"]["replies"] == 4


def test_empty_answers_are_answers_unless_all_are(play: Any) -> None:
    some = play(lambda number: "" if number < 100 else "A")
    assert statuses(some) == {"empty": 100, "ok": 100}
    assert not some["lmms_eval_tasks"]["invalid"]
    assert "all 200 replies are empty" in play(lambda _: "")["lmms_eval_tasks"]["invalid"][TASK]


def test_a_reply_too_few(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = play.model.generate_until
    monkeypatch.setattr(play.model, "generate_until", lambda self, asked: whole(self, asked)[1:])
    with pytest.raises(request_runner.RequestsFailedError, match="gave 0 replies to one request"):
        play(letters)


@table("extra", [True, False])
def test_a_class_that_mixes_replies_up(
    extra: bool, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure one adds a reply too many, another ends the run: no answer goes astray."""
    bad = {3, 77}

    def generate_until(self: Any, asked: list[Any]) -> list[str]:
        found = []
        for one in asked:
            number = one.args[3]
            if number in bad and extra:
                found.append("")
            elif number in bad:
                raise ValueError("out of memory")
            found.append(f"A {number}")
        return found

    monkeypatch.setattr(play.model, "generate_until", generate_until)
    plan = context.ClassPlan("simple", one_by_one=not extra)
    monkeypatch.setattr(context.Context, "plan", plan)
    made = play(letters)
    items = {one["doc_id"]: one[saved_runs.CARRIER] for one in made["samples"][TASK]}
    told = {number: (item["status"], item["reply"]) for number, item in items.items()}
    why = "gave 2 replies to one request" if extra else "ValueError: out of memory"
    assert all(why in told[number][1] for number in bad)
    assert {told.pop(number)[0] for number in bad} == {"model_error"}
    assert all(reply == f"A {number}" for number, (_, reply) in told.items())
    assert "2 of 200 requests to the model failed" in "".join(
        limits_of(made["lmms_eval_tasks"]["maia"])
    )


def test_each_task_is_asked_for_itself(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch never holds two tasks, and a class is told what each one's requests hold."""
    batches = []

    def generate_until(self: Any, asked: list[Any]) -> list[str]:
        batches.append(({one.task_name for one in asked}, getattr(self, "modality", None)))
        return ["A"] * len(asked)

    monkeypatch.setattr(play.model, "generate_until", generate_until)
    plan = context.ClassPlan("simple", modality={TASK: "image", "maia_vsv_black": "video"})
    monkeypatch.setattr(context.Context, "plan", plan)
    play(letters, tasks=[TASK, "maia_vsv_black"], limit=8)
    assert len(batches) > 1
    assert {(*names, modality) for names, modality in batches} == {
        (TASK, "image"),
        ("maia_vsv_black", "video"),
    }


# --- what the command line makes of it ------------------------------------------------------------


def test_where_nothing_can_be_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known before the model is loaded; and what the host lost only in its log is a failed run."""
    from loguru import logger

    from lmms_eval_tasks.errors import TasksError
    from lmms_eval_tasks.host import script
    from lmms_eval_tasks.utils.json_files import check_folder

    (tmp_path / "file").write_text("")
    with pytest.raises(TasksError, match=r"--output_path .*file: cannot be written"):
        check_folder(tmp_path / "file", "--output_path")
    check_folder(tmp_path / "new" / "folder", "--output_path")

    outcome = SimpleNamespace(failed=False)
    module = ModuleType("host")

    def evaluate(_: Any) -> None:
        known = logger.patch(lambda one: one.update(name="lmms_eval.loggers.evaluation_tracker"))
        known.warning("Could not save results aggregated")
        known.info("OSError(28, 'No space left on device')")

    module.cli_evaluate_single = evaluate  # type: ignore[attr-defined]
    script.watch(outcome, module)
    tasks = ",".join(["maia_vsv"] * 99)  # longer than a name of a file can be
    given = SimpleNamespace(tasks=tasks, output_path=str(tmp_path))
    assert module.cli_evaluate_single(given) == (None, None)
    assert outcome.failed
    said = capsys.readouterr().err.splitlines()  # the host's own log is there too
    (line,) = (one for one in said if one.startswith("lmms-eval-tasks: "))
    assert "results aggregated: OSError(28, 'No space left on device')); replies" in line
    context.outside().put(Unsaved, None)


class Holder:
    """A tokenizer with a chat template, as a model class holds one."""

    def __init__(self, ending: str) -> None:
        self.apply_chat_template = lambda messages, **_: f"x<|assistant|>{ending}"

    def encode(self, text: str, **_: Any) -> list[str]:
        return text.split()


def test_a_trace_whose_opening_tag_stood_in_the_prompt_is_no_answer(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def most_close(number: int) -> str:
        return "Both. The answer is A" if number % 4 == 0 else "Hm.</think>B"

    assert statuses(play(most_close)) == {"ok": 150, "truncated": 50}
    warned = limits_of(play(most_close)["lmms_eval_tasks"]["maia"])
    assert any("50 of 200 replies end inside their reasoning" in line for line in warned)
    # A few stray tags say nothing of the prompt.
    assert statuses(play(lambda n: "x</think>B" if n < 80 else "A")) == {"ok": 200}
    # The template knows better, either way.
    monkeypatch.setattr(play.model, "processor", Holder("<think>\n"), raising=False)
    assert statuses(play(lambda n: "x</think>B" if n % 2 else "The answer is A")) == {
        "ok": 100,
        "truncated": 100,
    }
    monkeypatch.setattr(play.model, "processor", Holder("<think>\n\n</think>\n\n"))
    assert statuses(play(most_close)) == {"ok": 200}


def test_a_prompt_that_its_class_counted(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something was counted here; a length that was counted here stands."""
    from lmms_eval.api.instance import GenerationResult, TokenCounts

    def reply(number: int) -> Any:
        return GenerationResult("A", TokenCounts(input_tokens=100 * number, output_tokens=1))

    def counted(known: dict[str, Any]) -> list[Any]:
        given = lambda seen: {"at": seen.at, **known}  # noqa: E731
        monkeypatch.setattr(delivery.DeliveredMedia, "as_dict", given)
        watch = delivery.Watch([], reads=True)
        watch.delivered = {f"{TASK}/{n}": delivery.DeliveredMedia("sent") for n in ids}
        watching = contextlib.nullcontext(watch)
        monkeypatch.setattr(delivery, "watching", lambda *_: watching)
        play.model.asked = 0
        samples = play(reply, limit=2)["samples"][TASK]
        return [one[saved_runs.CARRIER]["arrived"].get("prompt_tokens") for one in samples]

    first = play(reply, limit=2)
    assert first["lmms_eval_tasks"]["answered"]["tokens"] == 2
    ids = [one[saved_runs.CARRIER]["id"] for one in first["samples"][TASK]]
    assert counted({}) == [None, 100]  # 0 is what classes say that do not know
    assert counted({"prompt_tokens": 7}) == [7, 7]


def test_replies_at_the_token_limit_are_counted(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.api.instance import GenerationResult, TokenCounts

    def told(results: dict[str, Any]) -> tuple[Any, list[str]]:
        section = results["lmms_eval_tasks"]["maia"]
        return section["details"][TASK].get("token_limit"), [
            line for line in limits_of(section) if "max_new_tokens" in line
        ]

    def reported(share: int) -> Callable[[int], Any]:
        def reply(number: int) -> Any:
            return GenerationResult("A", TokenCounts(output_tokens=10**6 * (number % 100 < share)))

        return reply

    def at_limit(results: dict[str, Any]) -> list[Any]:
        return [one[saved_runs.CARRIER].get("at_limit") for one in results["samples"][TASK]]

    made = play(reported(6))
    assert at_limit(made).count(True) == 12
    assert at_limit(made).count(False) == DOCS - 12
    counted, warned = told(made)
    assert (counted["known"], counted["at_limit"]) == (200, 12)
    assert f"12 of 200 replies reach the limit of {counted['limit']} tokens" in warned[0]
    assert told(play(reported(5)))[1] == []
    made = play(letters)
    assert told(made) == (None, [])  # nobody counts
    assert set(at_limit(made)) == {None}
    # A run that was stopped goes on with what its class had counted.
    play.model.asked = 0
    with pytest.raises(KeyboardInterrupt):
        play(lambda n: stopped(n) and reported(6)(n))
    play.model.asked = 100
    assert at_limit(play(reported(6))).count(True) == 12
    monkeypatch.setattr(play.model, "tokenizer", Holder(""), raising=False)
    counted, warned = told(play(lambda n: "A: " + "w " * counted["limit"]))
    assert counted["at_limit"] == 200
    assert warned


# --- several processes, and what is kept of them --------------------------------------------------


@table(
    "mine, others, expected",
    [
        # The host asks the last request of all again, so that all have equally many; by task not.
        ({"a": [0, 1], "b": [2]}, [{"a": 1, "b": 2}], {"a": [0, 1], "b": [2, 2]}),
        ({"a": [0, 1]}, [{"a": 1, "b": 2}], {"a": [0, 1], "b": [1, 1]}),
        ({}, [{"a": 2}, {"a": 1}], {"a": [1, 1]}),  # all of its own were kept
    ],
)
def test_each_process_asks_as_many_of_each_task(
    mine: dict[str, list[int]],
    others: list[dict[str, int]],
    expected: dict[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert request_runner._even(mine, [0, 1]) == mine
    monkeypatch.setattr(context, "gathered", lambda own: [own, *others])
    assert request_runner._even(mine, [0, 1]) == expected
    assert request_runner._even(mine, []) == mine


def test_a_reply_is_kept_with_what_had_reached_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.CACHE, str(tmp_path))
    for key, seen in (("x", {"frames": 10, "of": 32}), ("y", None)):
        kept = KeptReplies("m", [TASK], 0)
        kept.add(TASK, key, "A", seen)
        assert key not in KeptReplies("m", [TASK], 0).replies  # of a run that is under way
        kept.close()
    (damaged, _) = kept.folder.iterdir()
    wrong = b'3\n{"key": 1}\n{"key": "z", "reply": "A\xff", "arrived": null}\n' + b"[" * 100_000
    damaged.write_bytes(damaged.read_bytes() + wrong + b'\n\xff\x00{"key": "z", "rep')
    found = KeptReplies("m", [TASK], 1).replies
    assert {key: row["arrived"] for key, row in found.items()} == {
        "x": {"frames": 10, "of": 32},
        "y": None,
    }
