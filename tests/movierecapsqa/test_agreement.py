"""`lmms-eval-tasks agreement` on all answers of a small release, against a judge that plays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from lmms_eval_tasks.judges.engine import block
from lmms_eval_tasks.movierecapsqa import published
from lmms_eval_tasks.movierecapsqa.settings import BASELINES
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
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
from tests.movierecapsqa.entries import entry, question, write
from tests.movierecapsqa.small_release import TEXTS, release

Play = Callable[[dict[str, Any]], "str | Fault"]


def agreement(*arguments: str, **env: str | None) -> Result:
    wide = {"COLUMNS": "200", **env}
    return CliRunner().invoke(app, ["agreement", "movierecapsqa", *arguments], env=wide)


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
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command on the small release, against an endpoint that plays a judge."""
    release(tmp_path / "data")
    out = tmp_path / "out.json"

    def start(*arguments: str, play: Play = plays, **env: str) -> Any:
        with LocalEndpoint(play) as endpoint:
            spec = ("--judge", f"m@{endpoint.url}", "--from", str(tmp_path / "data"))
            spec += ("--items", "all")
            done = agreement(*spec, "--output", str(out), *arguments, **env)
            return done, endpoint.chats, json.loads(out.read_text(encoding="utf-8"))

    return start


def test_a_judge_at_an_endpoint(started: Any) -> None:
    done, chats, found = started()
    assert done.exit_code == 0, (done.output, done.exception)
    # An answer that looks like a refusal is judged too, an empty one is not.
    counts = Counter(kind(request.json) for request in chats)
    assert counts == dict.fromkeys(("claims", "coherence", *published.DIMENSIONS), len(TEXTS))
    rows = found["dimensions"]["factuality"]["rows"]
    # Ours 5 4 3 against 5 4 4; 2 0 4 1 against 3 0 4 1; 1 1 2 against 1 2 2.
    assert (rows["GPT-4o"]["n"], rows["GPT-4o"]["absolute"]) == (3, pytest.approx(1 / 3))
    assert rows["all models"]["n"] == 10
    assert rows["all models"]["ours"] == pytest.approx(23 / 10)
    assert rows["all models"]["published"] == pytest.approx(26 / 10)
    # People: 5 4 3 0 against 5 4 5 1.
    assert (rows["people"]["n"], rows["people"]["ours"]) == (4, 3)
    # Relevance is 4 throughout: no order of ours, and kappa 0 where theirs varies.
    relevance = found["dimensions"]["relevance"]
    assert relevance["rows"]["all models"]["rho"] is None
    assert relevance["rows"]["all models"]["kappa"] == 0
    # Tables 4 and 5 of each, and what is compared.
    for shown in ("Table 4", "Table 5", "4.00±0.67  4.33±0.22", "GPT-4o: 3 of 4"):
        assert shown in done.output, shown


def test_text_baselines_are_judged_only_when_asked(started: Any) -> None:
    """They are half of the calls; test_a_judge_at_an_endpoint has none."""
    done, chats, _ = started(**{BASELINES: "helmet"})
    assert done.exit_code == 0, (done.output, done.exception)
    counts = Counter(asked_for(request.json) for request in chats)
    assert {name: counts[name] for name in HELMET} == dict.fromkeys(HELMET, len(TEXTS))
    assert not counts.keys() & set(GEVAL)


def test_answers_that_the_judge_fails_on_leave_the_agreement(started: Any) -> None:
    """Two of GPT-4o's: no claims are read from one, no labels in one dimension of the other."""

    def fails(request: dict[str, Any]) -> str | Fault:
        about, text = kind(request), last_user_text(request)
        if about == "claims" and block("candidate", "Alpha 5") in text:
            return "there are some claims"
        if about == "relevance" and "Alpha 4" in text:
            return labelled(["relevant", "relevant"], 5)
        return plays(request)

    done, _, found = started(play=fails, **{settings.MAX_FAILED: "0.09"})
    assert done.exit_code == 0, (done.output, done.exception)
    first, second = (found["dimensions"][name]["rows"] for name in published.DIMENSIONS)
    assert [first["GPT-4o"][key] for key in ("n", "missing", "ours")] == [2, 1, 3.5]
    assert [second["GPT-4o"][key] for key in ("n", "missing", "ours")] == [1, 2, 4]
    assert found["statuses"] == {"ok": 13, "empty": 1, "judge_parse_failure": 2}
    # One for the claims, 3 that could not be asked, one with a label too many, of 15 times 4.
    done, _, found = started(play=fails, **{settings.MAX_FAILED: "0.08"})
    assert done.exit_code == 3
    assert "5 of 60 verdicts failed" in found["invalid"]["movierecapsqa_agreement"]
    assert found["dimensions"] != {}  # what there is is written all the same


def test_what_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    file = str(release(tmp_path / "data"))
    for options, error, said in (
        (("--from", file, "--judge", "none"), JudgeError, "gives no verdicts: name a judge"),
        (("--from", file, "--output", "x", "--dry-run"), TasksError, "--dry-run"),
        (("--from", str(tmp_path / "no")), DataError, "no such file"),
    ):
        done = agreement(*options)
        assert isinstance(done.exception, error)
        assert said in str(done.exception)
    good = {"factuality": 4, "relevance": 5}
    answers = [{"model": name, "answer": "a", "scores": good} for name in ("mine", "mine.response")]
    twice = write(tmp_path, [entry(questions=[question(7, modelAnswers=answers)])])
    with pytest.raises(DataError, match=r"talk\.1/7 has two answers of mine"):
        BENCHMARK.known_answers(twice)


def test_without_published_scores_the_datasets_answers_are_known(tmp_path: Path) -> None:
    """Each is right for its own question, and wrong for one about another segment."""
    entries = [
        entry(
            n,
            questions=[
                question(n, question=f"Who {n}?", datasetAnswer=f"Nobody {n}.", humanAnswer=...)
            ],
        )
        for n in (1, 2)
    ]
    known = BENCHMARK.known_answers(write(tmp_path, entries))
    assert known.tables is None
    assert [
        (one.doc["question"], one.text, set(one.right_verdicts.values())) for one in known.answers
    ] == [
        ("Who 1?", "Nobody 1.", {5.0}),
        ("Who 1?", "Nobody 2.", {0.0}),
        ("Who 2?", "Nobody 2.", {5.0}),
        ("Who 2?", "Nobody 1.", {0.0}),
    ]
