"""`lmms-eval-tasks agreement movierecapsqa`: a small release against an endpoint."""

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
from tests.local_endpoint import Fault, LocalEndpoint, choice, completion, drawn, last_user_text
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
from tests.movierecapsqa.small_release import MODELS, PEOPLE, SCORED, release


def agreement(*arguments: str, **env: str | None) -> Result:
    return CliRunner().invoke(app, ["agreement", "movierecapsqa", *arguments], env=env)


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement_command, "RESAMPLES", 20)


def refused(done: Result, error: type[TasksError]) -> str:
    """What the user is told, in place of a traceback."""
    assert isinstance(done.exception, error), done.output
    return str(done.exception)


USAGE = {"prompt_tokens": 100, "completion_tokens": 9}
USAGE_OF_CACHE = {**USAGE, "prompt_tokens_details": {"cached_tokens": 64}}


def plays(request: dict[str, Any]) -> str | Fault:
    """Rates an answer by the digit that it ends with, in factuality; relevance is always 4."""
    about, text = kind(request), last_user_text(request)
    if about == "claims":
        answers = [given[0] for row in [*MODELS.values(), *PEOPLE] for given in row if given[0]]
        (found,) = {answer for answer in answers if block("candidate", answer) in text}
        return completion([choice(claimed([found]))], USAGE)
    (claim,) = claims_of(request)
    score = int(claim[-1] if claim[-1].isdigit() else 0) if about == "factuality" else 4
    label = BEST[about]
    if about == "factuality":
        label = {0: "unsupported", 5: "supported"}.get(score, "partially_supported")
    return completion([choice(labelled([label], score))], USAGE_OF_CACHE)


NO_BASELINES = {settings.BASELINES: "none"}
Play = Callable[[dict[str, Any]], "str | Fault"]


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
        done = agreement(*spec, "--output", str(out), *arguments, **NO_BASELINES | env)
        written = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        return done, endpoint, written

    yield started
    for endpoint in opened:
        endpoint.__exit__()


def test_a_judge_at_an_endpoint(at: Any) -> None:
    done, endpoint, found = at()
    assert done.exit_code == 0, (done.output, done.exception)
    # An answer that looks like a refusal is judged too; the ways share claims and coherence.
    counts = Counter(kind(request.json) for request in endpoint.chats)
    asked = dict.fromkeys(("claims", "coherence"), SCORED + 1)
    assert counts == {**asked, **dict.fromkeys(published.DIMENSIONS, 4 * (SCORED + 1))}
    rows = found["dimensions"]["factuality"]["rows"]
    # Ours 5 4 3 against 5 4 4; 2 0 4 1 against 3 0 4 1; 1 1 2 against 1 2 2.
    assert (rows["GPT-4o"]["n"], rows["GPT-4o"]["absolute"]) == (3, pytest.approx(1 / 3))
    assert rows["Qwen2.5VL"]["absolute"] == 0.25
    assert rows["all models"]["n"] == 10
    assert rows["all models"]["ours"] == pytest.approx(23 / 10)
    assert rows["all models"]["published"] == pytest.approx(26 / 10)
    # People: 5 2, 4, 3, 0 against 5 3, 4, 5, 1.
    assert rows["people"]["n"] == 5
    average, best = (rows[f"people, {kind} of each question"] for kind in ("average", "best"))
    assert (average["n"], average["kappa"]) == (4, None)  # 3.5 is not on the scale
    assert average["ours"] == pytest.approx((3.5 + 4 + 3 + 0) / 4)
    assert best["published"] == pytest.approx((5 + 4 + 5 + 1) / 4)
    assert best["kappa"] is not None

    order = found["dimensions"]["factuality"]["order"]
    # Two questions have scores of all three models: 4.5, 1, 1 by ours and 4.5, 1.5, 1.5.
    assert (order["complete"], order["judged"], order["pairs"]) == (2, 2, 3)
    assert (order["same"], order["tied"], order["tau"]) == (2, 1, pytest.approx(1))
    # Relevance is 4 throughout: no order of ours, and kappa 0 where theirs varies.
    relevance = found["dimensions"]["relevance"]
    assert (relevance["rows"]["all models"]["rho"], relevance["order"]["tau"]) == (None, None)
    assert relevance["rows"]["all models"]["kappa"] == 0
    assert f"{9 * (SCORED + 1) * 64:,} of the prompts' from the endpoint's own cache" in done.output


def test_every_metric_in_every_way(at: Any, tmp_path: Path) -> None:
    """Without the dialogue nothing is supported; labels are of the user's own file."""

    def play(request: dict[str, Any]) -> str | Fault:
        about = asked_for(request)
        if about in HELMET:
            return graded(1)
        if about in GEVAL:
            return drawn(request, [3])
        if about == "factuality" and SPOKEN not in last_user_text(request):
            return labelled(["unsupported"], 0)
        return plays(request)

    labels = tmp_path / "data" / "labels.csv"
    lines = ["id,modality,category", *(f"talk.{n}/0,vision,STA" for n in (1, 2))]
    labels.write_text("\n".join(lines), encoding="utf-8")
    done, endpoint, found = at("--models", "GPT-4o,people", play=play, **{settings.BASELINES: ""})
    assert done.exit_code == 0, (done.output, done.exception)
    asked = Counter(asked_for(request.json) for request in endpoint.chats)
    assert asked == {
        **dict.fromkeys(("claims", "coherence", *HELMET), 3 + 5),
        **dict.fromkeys(published.DIMENSIONS, 4 * (3 + 5)),
        **dict.fromkeys(GEVAL, 2 * (3 + 5)),  # no log-probabilities, then samples in one request
    }
    ways = {title: row["ours"] for title, row in found["dimensions"]["factuality"]["ways"].items()}
    assert list(ways) == list(published.WAYS)
    assert [*ways.values()] == [4, 0, 4, 0]
    numbers = found["numbers"]
    best, average = (numbers[f"people, {name} of each question"] for name in ("best", "average"))
    assert (best["factuality_valid"], best["factuality_var"]) == (3, (25 + 16 + 9) / 4 - 9)
    assert average["factuality_valid"] == (3.5 + 4 + 3 + 0) / 4
    assert average["helmet_fluency"] == numbers["people"]["helmet_fluency"] == 1
    assert average["geval_samples"] == 0.5
    assert numbers["GPT-4o"]["factuality_valid_modality_vision"] == (5 + 3) / 2
    assert numbers["GPT-4o"]["factuality_valid_category_sta"] == (5 + 3) / 2
    for shown in ("Table 4", "Table 5", "Vision", "STA", "by what the judge is shown"):
        assert shown in done.output
    # A judge that finds no claims has failed.
    done, _, found = at(play=lambda _: '{"claims": []}')
    assert (done.exit_code, found["numbers"]["GPT-4o"]["factuality_valid"]) == (3, None)
    assert found["dimensions"]["factuality"]["rows"]["all models"]["n"] == 0
    assert "found no claim in any of 17 answers" in found["invalid"]["movierecapsqa_agreement"]
    # One way alone, if the user says which; and a label of no question.
    env = {settings.MOVIERECAPSQA: "facts=aligned"}
    _, endpoint, found = at("--models", "GPT-4o", **env)
    assert list(found["dimensions"]["factuality"]["ways"]) == ["own facts + dialogue"]
    assert len(endpoint.chats) == 4 * 3
    labels.write_text("\n".join([*lines, "talk.9/0,vision,STA"]), encoding="utf-8")
    done, _, _ = at()
    assert "labels.csv: there is no question 'talk.9/0'" in refused(done, DataError)


def test_answers_that_the_judge_fails_on_leave_the_agreement(at: Any) -> None:
    """Two of GPT-4o's: no claims are read from one, no labels in one dimension of the other."""

    def fails(request: dict[str, Any]) -> str | Fault:
        about, text = kind(request), last_user_text(request)
        if about == "claims" and block("candidate", "Alpha 5") in text:
            return "there are some claims"
        if about == "relevance" and "Alpha 4" in text:
            return labelled(["relevant", "relevant"], 5)
        return plays(request)

    env = {settings.MAX_FAILED: "0.09"}
    done, _, found = at(play=fails, **env)
    assert done.exit_code == 0, (done.output, done.exception)
    first, second = (found["dimensions"][name] for name in ("factuality", "relevance"))
    assert [first["rows"]["GPT-4o"][key] for key in ("n", "missing", "ours")] == [2, 1, 3.5]
    assert [second["rows"]["GPT-4o"][key] for key in ("n", "missing", "ours")] == [1, 2, 4]
    assert (first["order"]["complete"], first["order"]["judged"]) == (2, 1)
    assert (second["order"]["judged"], second["order"]["tau"]) == (0, None)
    assert found["statuses"] == {"ok": 14, "empty": 1, "judge_parse_failure": 2}
    assert "2 judge_parse_failure" in done.output
    # One for the claims, 3 + 3 x 2 that could not be asked, four times a label too many.
    done, _, found = at(play=fails, **{settings.MAX_FAILED: "0.08"})
    assert done.exit_code == 3
    assert (
        f"14 of {10 * (SCORED + 1)} verdicts failed" in found["invalid"]["movierecapsqa_agreement"]
    )
    assert found["dimensions"] != {}  # what there is is written all the same


def test_what_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    file = str(release(tmp_path / "data"))
    for name in ("maia", "../maia"):
        done = CliRunner().invoke(app, ["agreement", name])
        assert "published scores" in refused(done, TasksError)
    out = str(tmp_path / "no" / "out.json")
    for options, error, said in (
        (("--from", file, "--judge", "none"), JudgeError, "none is no judge"),
        (("--from", file, "--models", "GPT-4o,GPT-5"), TasksError, "no answers of 'GPT-5'"),
        (("--from", file, "--data", "x"), TasksError, "not both"),
        (("--from", file, "--output", out), TasksError, "not a file in a folder"),
        (("--from", file, "--output", "x", "--dry-run"), TasksError, "--dry-run"),
        (("--data", str(tmp_path / "no")), DataError, "no such file"),
    ):
        assert said in refused(agreement(*options), error)


GOOD = {"factuality": 4, "relevance": 5}


def data(folder: Path, *models: tuple[str, str, Any], **changes: Any) -> published.Data:
    given = [dict(zip(("model", "answer", "scores"), one, strict=True)) for one in models]
    return published.read(
        write(folder, [entry(questions=[question(7, modelAnswers=given, **changes)])])
    )


def test_names_are_those_of_table_4_and_people_are_one_row(tmp_path: Path) -> None:
    found = data(
        tmp_path,
        *((name, "a", GOOD) for name in ("LLaVa-NeXT.response", "amazon_nova.response", "mine")),
        humanAnswer={"answer": "first", "scores": GOOD},
        humanAnswers=[{"answer": "second", "scores": None}],
    )
    assert found.models == ["LLaVA-NeXT-Video", "Amazon Nova Lite", "mine"]
    first, *_, one, two = found.answers
    assert (first.doc["id"], first.text, first.scores) == ("talk.1/7", "a", GOOD)
    assert (one.by, one.number, one.is_scored) == (published.PEOPLE, 0, True)
    assert (two.by, two.number, two.is_scored) == (published.PEOPLE, 1, False)


def test_what_cannot_be_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"talk\.1/7 has two answers of mine"):
        data(tmp_path, ("mine", "a", GOOD), ("mine.response", "b", GOOD))
    with pytest.raises(DataError, match="no answer has published scores"):
        data(tmp_path, ("mine", "a", None), humanAnswer=...)
    two = [entry(1), entry(2, startTime=9, endTime=8)]
    with pytest.raises(DataError, match=r"1 segments cannot be used:\n  talk.2"):
        published.read(write(tmp_path, two))
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    assert list(published.read(write(tmp_path, two)).left_out) == ["talk.2"]
