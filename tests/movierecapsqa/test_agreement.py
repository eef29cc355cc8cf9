"""`lmms-eval-tasks agreement` on a small release, against a judge that plays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands import agreement_command
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from lmms_eval_tasks.judges.engine import block
from lmms_eval_tasks.movierecapsqa import published
from tests.local_endpoint import Fault, LocalEndpoint, drawn, last_user_text
from tests.movierecapsqa.asking import (
    BEST,
    GEVAL,
    HELMET,
    asked_for,
    claimed,
    claims_of,
    graded,
    kind,
    labelled,
)
from tests.movierecapsqa.entries import SPOKEN, entry, question, write
from tests.movierecapsqa.small_release import TEXTS, release

Play = Callable[[dict[str, Any]], "str | Fault"]


def agreement(*arguments: str, **env: str | None) -> Result:
    return CliRunner().invoke(app, ["agreement", "movierecapsqa", *arguments], env=env)


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement_command, "RESAMPLES", 20)


def refused(done: Result, error: type[TasksError]) -> str:
    """What the user is told, in place of a traceback."""
    assert isinstance(done.exception, error), done.output
    return str(done.exception)


def plays(request: dict[str, Any]) -> str | Fault:
    """Rates an answer by the digit that it ends with, in factuality; relevance is always 4."""
    about, text = asked_for(request), last_user_text(request)
    if about in HELMET:
        return graded(1)
    if about in GEVAL:
        return drawn(request, [3])
    if about == "claims":
        (found,) = {answer for answer in TEXTS if block("candidate", answer) in text}
        return claimed([found])
    (claim,) = claims_of(request)
    score = int(claim[-1] if claim[-1].isdigit() else 0) if about == "factuality" else 4
    return labelled([BEST[about]], score)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Callable[..., tuple[Result, LocalEndpoint, dict[str, Any]]]]:
    """Runs the command on the small release, against an endpoint that plays a judge."""
    release(tmp_path / "data")
    opened: list[LocalEndpoint] = []

    def started(*arguments: str, play: Play = plays, **env: str) -> Any:
        endpoint = LocalEndpoint(play)
        endpoint.__enter__()
        opened.append(endpoint)
        out = tmp_path / "out.json"
        out.unlink(missing_ok=True)
        spec = ("--judge", f"m@{endpoint.url}", "--from", str(tmp_path / "data"))
        given = {settings.BASELINES: "none"} | env
        done = agreement(*spec, "--output", str(out), *arguments, **given)
        written = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        return done, endpoint, written

    yield started
    for endpoint in opened:
        endpoint.__exit__()


def test_a_judge_at_an_endpoint(at: Any) -> None:
    done, endpoint, found = at()
    assert done.exit_code == 0, (done.output, done.exception)
    # An answer that looks like a refusal is judged too, an empty one is not.
    counts = Counter(kind(request.json) for request in endpoint.chats)
    assert counts == dict.fromkeys(("claims", "coherence", *published.DIMENSIONS), len(TEXTS))
    rows = found["dimensions"]["factuality"]["rows"]
    # Ours 5 4 3 against 5 4 4; 2 0 4 1 against 3 0 4 1; 1 1 2 against 1 2 2.
    assert (rows["GPT-4o"]["n"], rows["GPT-4o"]["absolute"]) == (3, pytest.approx(1 / 3))
    assert rows["Qwen2.5VL"]["absolute"] == 0.25
    assert rows["all models"]["n"] == 10
    assert rows["all models"]["ours"] == pytest.approx(23 / 10)
    assert rows["all models"]["published"] == pytest.approx(26 / 10)
    # People: 5 4 3 0 against 5 4 5 1.
    assert (rows["people"]["n"], rows["people"]["ours"]) == (4, 3)
    # Means: ours 4, 7/4, 4/3; published 13/3, 2, 5/3.
    assert found["dimensions"]["factuality"]["tau"] == pytest.approx(1)
    # Relevance is 4 throughout: no order of ours, and kappa 0 where theirs varies.
    relevance = found["dimensions"]["relevance"]
    assert (relevance["rows"]["all models"]["rho"], relevance["tau"]) == (None, None)
    assert relevance["rows"]["all models"]["kappa"] == 0
    # Tables 4 and 5 of each, and what is compared.
    assert found["numbers"]["GPT-4o"]["factuality_valid"] == 4
    for shown in ("Table 4", "Table 5", "tau-b 1.00", "4.00±0.67  4.33±0.22"):
        assert shown in done.output, shown
    assert "GPT-4o: 3 of 4" in done.output


def test_baselines_are_asked_for_and_the_judge_is_shown_what_the_user_says(at: Any) -> None:
    def blind(request: dict[str, Any]) -> str | Fault:
        assert SPOKEN not in last_user_text(request)
        return plays(request)

    env = {settings.BASELINES: "", settings.MOVIERECAPSQA: "facts=aligned,dialogue=none"}
    done, endpoint, found = at("--models", "GPT-4o,people", play=blind, **env)
    assert done.exit_code == 0, (done.output, done.exception)
    asked = Counter(asked_for(request.json) for request in endpoint.chats)
    assert asked == {
        **dict.fromkeys(("claims", "coherence", *published.DIMENSIONS, *HELMET), 3 + 4),
        **dict.fromkeys(GEVAL, 2 * (3 + 4)),  # no log-probabilities, then samples in one request
    }
    assert list(found["numbers"]) == ["GPT-4o", "people"]
    assert found["numbers"]["people"]["geval_samples"] == 0.5
    assert found["numbers"]["people"]["helmet_fluency"] == 1


def test_answers_that_the_judge_fails_on_leave_the_agreement(at: Any) -> None:
    """Two of GPT-4o's: no claims are read from one, no labels in one dimension of the other."""

    def fails(request: dict[str, Any]) -> str | Fault:
        about, text = kind(request), last_user_text(request)
        if about == "claims" and block("candidate", "Alpha 5") in text:
            return "there are some claims"
        if about == "relevance" and "Alpha 4" in text:
            return labelled(["relevant", "relevant"], 5)
        return plays(request)

    done, _, found = at(play=fails, **{settings.MAX_FAILED: "0.09"})
    assert done.exit_code == 0, (done.output, done.exception)
    first, second = (found["dimensions"][name]["rows"] for name in published.DIMENSIONS)
    assert [first["GPT-4o"][key] for key in ("n", "missing", "ours")] == [2, 1, 3.5]
    assert [second["GPT-4o"][key] for key in ("n", "missing", "ours")] == [1, 2, 4]
    assert found["statuses"] == {"ok": 13, "empty": 1, "judge_parse_failure": 2}
    # One for the claims, 3 that could not be asked, one with a label too many, of 15 times 4.
    done, _, found = at(play=fails, **{settings.MAX_FAILED: "0.08"})
    assert done.exit_code == 3
    assert "5 of 60 verdicts failed" in found["invalid"]["movierecapsqa_agreement"]
    assert found["dimensions"] != {}  # what there is is written all the same
    # A judge that finds no claims has failed.
    done, _, found = at(play=lambda _: '{"claims": []}')
    assert (done.exit_code, found["numbers"]["GPT-4o"]["factuality_valid"]) == (3, None)
    assert found["dimensions"]["factuality"]["rows"]["all models"]["n"] == 0


def test_what_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    file = str(release(tmp_path / "data"))
    done = CliRunner().invoke(app, ["agreement", "maia"])
    assert "published scores" in refused(done, TasksError)
    out = str(tmp_path / "no" / "out.json")
    for options, error, said in (
        (("--from", file, "--judge", "none"), JudgeError, "none is no judge"),
        (("--from", file, "--models", "GPT-4o,GPT-5"), TasksError, "no answers of 'gpt-5'"),
        (("--from", file, "--output", out), TasksError, "not a file in a folder"),
        (("--from", file, "--output", "x", "--dry-run"), TasksError, "--dry-run"),
        (("--from", str(tmp_path / "no")), DataError, "no such file"),
    ):
        assert said in refused(agreement(*options), error)
    good = {"factuality": 4, "relevance": 5}
    for answers, changes, said in (
        ((("mine", good), ("mine.response", good)), {}, r"talk\.1/7 has two answers of mine"),
        ((("mine", None),), {"humanAnswer": ...}, "no answer has published scores"),
    ):
        given = [{"model": name, "answer": "a", "scores": scores} for name, scores in answers]
        asked = [question(7, modelAnswers=given, **changes)]
        with pytest.raises(DataError, match=said):
            published.read(write(tmp_path, [entry(questions=asked)]))
    with pytest.raises(DataError, match=r"1 segments cannot be used:\n  talk.2"):
        published.read(write(tmp_path, [entry(1), entry(2, startTime=9, endTime=8)]))
