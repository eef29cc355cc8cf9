"""Saved runs: every number again, another judge, the same one for what is missing, commands."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.movierecapsqa import metrics
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from tests.local_endpoint import LocalEndpoint, choice, completion
from tests.movierecapsqa.asking import claimed
from tests.movierecapsqa.saved_runs import (
    EVERYTHING,
    GEVAL,
    HELMET,
    TASK,
    Rater,
    again,
    asked,
    asked_for,
    items_of,
    judged_at,
    judged_run,
    numbers,
    reply,
    saved_run,
    score,
    write,
)

pytestmark = pytest.mark.usefixtures("user")
BOTH = "geval,helmet"


@pytest.fixture
def endpoint() -> Iterator[LocalEndpoint]:
    with LocalEndpoint(Rater()) as made:
        yield made


# --- again --------------------------------------------------------------------------------------


def test_the_same_to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    for which in ("", BOTH):
        run = judged_run(monkeypatch, Rater(fails="coherence"), which)
        expected, kept = numbers(items_of(run)), copy.deepcopy(run.samples)
        done = again(dataclasses.replace(run, samples=run.samples[::-1]))
        assert done.numbers == {TASK: expected}
        assert run.samples == kept
        assert 0 < expected["factuality_valid"] < 5
        assert expected["coherence_failed"] == 3
        for name in ("geval_samples", "helmet_fluency"):
            assert (expected[name] is not None) == bool(which)
        assert (done.sidecar[TASK]["items"], done.notes) == (4, [])
        assert all(pair.before == pair.after for pair in done.verdicts[TASK])
        # Two scales are never one comparison, and the number of claims is no rating.
        compared = {
            name: {pair.id.rpartition("/")[2] for pair in own}
            for name, own in done.verdicts.items()
        }
        scales = {f"{TASK} geval": set(GEVAL), **{f"{TASK} {name}": {name} for name in HELMET}}
        assert compared == {TASK: set(DIMENSIONS), **(scales if which else {})}


def test_items_of_an_error_are_scored_now(
    endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("broken by the test")

    with monkeypatch.context() as patch:
        patch.setattr(metrics, "rouge_l", fail)
        run = judged_run(monkeypatch, baselines="helmet")
    assert {item["status"] for item in items_of(run)} == {"error"}
    assert numbers(items_of(run))["factuality_failed"] == 4
    waiting = again(run).numbers[TASK]
    assert (waiting["factuality_valid"], waiting["helmet_fluency_failed"]) == (None, 4)
    assert waiting["rouge_l"] > 0
    done = again(run, judge=f"one@{endpoint.url}", missing_only=True).numbers[TASK]
    assert asked(endpoint) == {**EVERYTHING, **dict.fromkeys(HELMET, 3)}
    assert done == numbers(items_of(judged_run(monkeypatch, baselines="helmet")))


def test_several_tasks_and_models(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [TASK, "movierecapsqa_segment"]
    made = [judged_run(monkeypatch, task=task) for task in tasks]
    made[1].samples[1:] = []
    other = judged_run(monkeypatch, Rater(1), model="n (y)")
    done = again(*made, other)
    (note,) = done.notes
    assert note.startswith("m (x): aligned recap segment: the conditions were not asked the same")
    assert "(both 1, only dialogue 4)" in note
    assert done.numbers[f"{TASK} n (y)"] != done.numbers[f"{TASK} m (x)"]


def test_one_line_for_what_an_item_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    run = judged_run(monkeypatch)
    last = items_of(run)[-1]
    for name, value in (("facts", "one"), ("dialogue", None), ("judged_baselines", None)):
        sample = {"failed": {**last, "id": "x/1", name: value}}
        with pytest.raises(DataError) as caught:
            again(dataclasses.replace(run, samples=[*run.samples, sample]))
        assert str(caught.value).startswith(f"{run.file}: x/1 has no `{name}`; take its line out")


# --- judges -------------------------------------------------------------------------------------


def test_both_verdicts_are_paired(monkeypatch: pytest.MonkeyPatch) -> None:
    run = judged_run(monkeypatch, baselines="helmet")
    with LocalEndpoint(Rater(plus=1)) as other:
        done = again(run, judge=f"two@{other.url}")
        # The baselines that the run has are judged again too.
        assert asked(other) == {**EVERYTHING, **dict.fromkeys(HELMET, 3)}
    for name, pairs in done.verdicts.items():
        assert len(pairs) == (9 if name == TASK else 3)
        top = 6 if name == TASK else 4 if "correctness" in name else 2
        for pair in pairs:
            assert pair.before is not None
            assert pair.after is not None
            assert (pair.before.judge[:3], pair.after.judge[:3]) == ("one", "two")
            assert pair.after.score == ((pair.before.score or 0) + 1) % top
    with LocalEndpoint(lambda _: claimed([])) as other:
        done = again(judged_run(monkeypatch), judge=f"two@{other.url}")
    assert (done.numbers[TASK]["no_claims"], done.numbers[TASK]["factuality_valid"]) == (3, 0)
    assert {pair.after for pair in done.verdicts[TASK]} == {None}


@pytest.mark.parametrize(
    ("fails", "missing"),
    [
        ("relevance", {"relevance": 3}),
        # What rests on other verdicts stays: the baselines know nothing of claims.
        ("claims", EVERYTHING),
        ("helmet_fluency", {"helmet_fluency": 3}),
        # G-Eval's two have to be of one mode: both are asked, then sampled.
        ("geval_coherence", dict.fromkeys(GEVAL, 3 + 3)),
    ],
)
def test_missing_only(fails: str, missing: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rater = Rater(fails=fails)
    with judged_at(rater, monkeypatch, baselines=BOTH) as endpoint:
        run = saved_run(TASK, score(TASK, reply))
        judge = f"one@{endpoint.url}"
        rater.fails = ""
        before = len(endpoint.chats)
        monkeypatch.setenv(settings.BASELINES, "")
        values = again(run, judge=judge, missing_only=True).numbers[TASK]
        assert asked(endpoint, before) == missing
        assert not [n for n in values if n.endswith("_failed") and values[n]]
        assert values == numbers(items_of(judged_run(monkeypatch, baselines=BOTH)))
        monkeypatch.setenv(settings.BASELINES, BOTH)
        done = saved_run(TASK, score(TASK, reply))
        # With all of it there nobody is asked, ...
        before = len(endpoint.chats)
        assert again(done, judge=judge, missing_only=True).numbers[TASK] == values
        assert asked(endpoint, before) == {}
        # ... but verdicts of another judge, or with other settings, do not stand for its own.
        every = {**EVERYTHING, **dict.fromkeys(HELMET, 3), **dict.fromkeys(GEVAL, 6)}
        again(done, judge=f"two@{endpoint.url}", missing_only=True)
        assert asked(endpoint, before) == every


def test_who_is_asked_of_a_saved_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with judged_at(Rater(), monkeypatch) as endpoint:
        judge = f"one@{endpoint.url}"
        run = saved_run(TASK, score(TASK, reply))
        expected, before = numbers(items_of(run)), len(endpoint.chats)
        # `rescore --judge` is no `judge`: it asks for all of it (the cache makes it free).
        assert again(run, judge=judge).numbers[TASK] == expected
        assert asked(endpoint, before) == EVERYTHING
        # Labels of claims that are asked for again fall.
        items_of(run)[0]["verdicts"]["claims"]["setup"] = "of other prompts"
        before = len(endpoint.chats)
        again(run, judge=judge, missing_only=True)
        assert asked(endpoint, before) == dict.fromkeys(("claims", *DIMENSIONS), 1)
        assert again(run, judge="none").numbers[TASK] == expected
        # A run without a judge is judged later.
        monkeypatch.setenv(settings.JUDGE, "none")
        judge_run.forget()
        waiting = saved_run(TASK, score(TASK, reply))
        assert again(waiting).numbers[TASK]["factuality_valid"] is None
        before = len(endpoint.chats)
        later = again(waiting, judge=judge, missing_only=True)
        assert later.numbers[TASK] == expected
        assert asked(endpoint, before) == EVERYTHING
        # Baselines asked for later: without a judge there is nobody to ask for them.
        monkeypatch.setenv(settings.BASELINES, "helmet")
        assert again(run).numbers[TASK]["helmet_fluency_coverage"] is None
        done = again(run, judge=judge, missing_only=True).numbers[TASK]
        assert done["helmet_fluency_coverage"] == 1


# --- commands -----------------------------------------------------------------------------------


def command(*arguments: object, code: int = 0) -> str:
    judge_run.forget()
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_a_batch_takes_two_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The dimensions need the claims, and half of what is paid for twice is no half price."""
    logs, requests = tmp_path / "logs", tmp_path / "requests.jsonl"
    output = tmp_path / "made.json"
    write(logs, saved_run(TASK, score(TASK, reply)))
    monkeypatch.setenv(settings.JUDGE_CACHE, str(tmp_path / "cache"))
    judge = ("judge", logs, "--judge", "m@http://127.0.0.1:9/v1")
    for number, kinds in enumerate([{"claims": 3}, dict.fromkeys(DIMENSIONS, 3)]):
        command(*judge, "--batch", requests)
        results = tmp_path / f"results{number}.jsonl"
        assert _answered(requests, results) == kinds
        # Until the second round the dimensions have failed: the run says that it is invalid.
        code = 0 if number else 3
        command(*judge, "--batch-results", results, "--output", output, code=code)
        made = json.loads(output.read_text(encoding="utf-8"))["movierecapsqa"]["numbers"][TASK]
        assert made["factuality_failed"] == (0 if number else 3)
    assert made == numbers(items_of(judged_run(monkeypatch)))
    assert "every verdict is there already" in command(*judge, "--batch", requests)


def _answered(requests: Path, results: Path) -> dict[str, int]:
    """Write a batch's results; what was asked for."""
    found: Counter[str] = Counter()
    with results.open("w", encoding="utf-8") as out:
        for line in requests.read_text(encoding="utf-8").splitlines():
            request = json.loads(line)
            found[asked_for(request["body"])] += 1
            text = Rater()(request["body"])
            assert isinstance(text, str)
            body = completion([choice(text)], {"prompt_tokens": 9, "completion_tokens": 9}).body
            response = {"status_code": 200, "body": json.loads(body or b"")}
            out.write(json.dumps({"custom_id": request["custom_id"], "response": response}) + "\n")
    return dict(found)
