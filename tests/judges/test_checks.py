"""Checks of judges: the answers drawn, the figures of their verdicts, what is said and kept."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.benchmark import KnownAnswer
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.judges import JudgeConfig, checks
from lmms_eval_tasks.judges.checks import VerdictPair
from lmms_eval_tasks.judges.verdict import NONE, OPENAI, REPLAY
from lmms_eval_tasks.runs import known_answers, prepare
from lmms_eval_tasks.utils.conditions import Kind, of_judge
from tests.checks import table
from tests.conftest import SHARED
from tests.known_judge import RULES, playing
from tests.local_endpoint import LocalEndpoint

# --- which answers --------------------------------------------------------------------------------


def answers(*counts: tuple[str, float, int]) -> list[KnownAnswer]:
    """Answers on a video with a known verdict, so many of each."""
    return [
        KnownAnswer("t", {"id": f"{video}/{number}", "video": video}, f"{worth}", {"ask": worth})
        for video, worth, count in counts
        for number in range(count)
    ]


MANY = answers(("a", 1.0, 30), ("b", 1.0, 3), ("c", 1.0, 3), ("a", 0.0, 5), ("b", 0.0, 50))


@table(
    "count,worths,videos",
    [
        (4, {0: 2, 1: 2}, {"a": 2, "b": 2, "c": 0}),  # one of each video before a second one
        (12, {0: 6, 1: 6}, {"a": 5, "b": 5, "c": 2}),
        (40, {0: 20, 1: 20}, {"a": 19, "b": 18, "c": 3}),  # c has no more
        (None, {0: 55, 1: 36}, {"a": 35, "b": 53, "c": 3}),
    ],
)
def test_draw(count: int | None, worths: dict[int, int], videos: dict[str, int]) -> None:
    drawn = known_answers.draw(MANY, count)
    assert Counter(one.right_verdicts["ask"] for one in drawn) == worths
    found = Counter(one.doc["video"] for one in drawn)
    if count == 4:  # of three videos two
        assert max(found.values()) <= 2
    else:
        assert found == videos
    assert known_answers.draw(MANY[::-1], count) == drawn
    assert known_answers.draw([*MANY, *MANY], count) == drawn
    assert (
        known_answers.draw([*MANY, MANY[0]._replace(right_verdicts={}, text="?")], count) == drawn
    )


# --- verdicts beside known ones -------------------------------------------------------------------


def test_compare() -> None:
    """Means are rounded, halves down; no claim is worth 0; what failed has no verdict."""
    scores = (1.0, 0.5, 0.51, None)
    items: list[dict[str, Any]] = [
        {"status": "ok", "verdicts": {"ask": {"score": score}}} for score in scores
    ]
    items += [{"status": "no_claims", "verdicts": {"claims": {"score": 0.0}}}, {"status": "error"}]
    own = answers(("a", 1.0, len(items)))
    judged = [one.judged for one in known_answers.compare(own, items)["ask"]]
    assert judged == [1, 0, 1, None, 0, None]


def known(*rows: tuple[float, int | None, int]) -> list[VerdictPair]:
    """Pairs of a known and a judge's verdict, so many each, in turn on ten videos."""
    pairs = [(worth, judged) for worth, judged, count in rows for _ in range(count)]
    return [VerdictPair(*one, f"video{place % 10}") for place, one in enumerate(pairs)]


RATINGS = (0, 1, 2, 3, 4, 5)


@table("scale,rows,share,kappa,failed,said")
def test_figures_and_line(
    scale: tuple[int, ...],
    rows: list[tuple[float, int | None, int]],
    share: float,
    kappa: float | None,
    failed: int,
    said: str,
) -> None:
    found = checks.figures(known(*rows), scale)
    assert found["agree"]["estimate"] == pytest.approx(share)
    value = (found["kappa"] or {}).get("estimate")
    assert value == (kappa if kappa is None else pytest.approx(kappa, abs=1e-4))
    assert (found["answers"], found["failed"]) == (sum(count for *_, count in rows), failed)
    check = {"verdicts": {"ask": found}, "scale": scale, "title": "X", "date": "today"}
    assert checks.line(check) == f"judge checked: {said}"
    json.dumps(check, allow_nan=False)


def test_the_line_is_of_the_rating_that_agrees_least() -> None:
    good = checks.figures(known((5, 5, 10), (0, 0, 10)), RATINGS)
    poor = checks.figures(known((5, 4, 10), (0, 2, 10)), RATINGS)
    check = {"scale": RATINGS, "title": "X", "date": "today"}
    line = checks.line({**check, "verdicts": {"one": good, "other": poor}})
    assert line == "judge checked: 50 % of 20 within one point, kappa 0.67 (X, other, today)"


# --- kept, and said of a run's judge --------------------------------------------------------------


def told_of(judge: dict[str, Any]) -> list[str]:
    """What the conditions of a run say of a check of its judge."""
    found = of_judge({"provider": OPENAI, **judge})
    return [one.text for one in found if one.kind is Kind.CHECKED]


def test_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded judges and nobody are not checked, the paper's need not be."""
    monkeypatch.setenv(settings.JUDGE_CACHE, str(tmp_path))
    local = JudgeConfig(OPENAI, "m", "http://gpu:1/v1")
    unchecked = {
        "line": "judge not checked; to check it: lmms-eval-tasks agreement maia --judge 'my m.yml'"
    }
    paper = replace(local, comparable=True)
    cases = (JudgeConfig(NONE), JudgeConfig(REPLAY, "f"), paper)
    assert [checks.record("maia", one, "s", "m") for one in cases] == [None] * 3
    assert checks.record("maia", local, "s", "my m.yml") == unchecked
    check = {"line": "judge checked: 100 % of 40"}
    checks.save_check("maia", "s", check)
    assert [checks.record("maia", one, "s", "m") for one in cases] == [None, None, check]
    assert checks.record("maia", local, "s", "m") == check
    assert told_of({"checked": check}) == [check["line"]]
    assert [told_of(one) for one in ({}, {"checked": None})] == [[], []]
    # Of another benchmark or prompt, and of a file that nobody can read, nothing is known.
    assert checks.saved_check("haven", "s") is checks.saved_check("maia", "t") is None
    for text in ("{", "[]", "{}", '{"line": 1}'):
        checks.file_of("maia", "s").write_text(text, encoding="utf-8")
        assert checks.record("maia", local, "s", "my m.yml") == unchecked


# --- the command ----------------------------------------------------------------------------------


def agreement(name: str, url: str, *arguments: str, **env: str) -> Result:
    given = ["agreement", name, "--judge", f"m@{url}", *arguments]
    return CliRunner().invoke(app, given, env={"COLUMNS": "200", **env})


# The share of agreement, kappa, and the end of the line.
EXPECTED: dict[str, tuple[float, float | None, str]] = {
    "right": (1.0, 1.0, ")"),
    "always the highest": (0.5, 0.0, ": no better than chance: do not use its numbers"),
    "always the other": (0.0, -1.0, ": worse than chance: do not use its numbers"),
    "fails": (0.0, None, ": it gave no verdict: do not use its numbers"),
    "unreadable": (0.0, None, ": it gave no verdict: do not use its numbers"),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", registry.NAMES)
def test_judges_on_the_sample(
    name: str, rule: str, sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a judge is worth is said, kept, and found by a run with the same judge."""
    benchmark, out = registry.load_benchmark(name), tmp_path / "out.json"
    monkeypatch.setenv(settings.JUDGE_CACHE, str(tmp_path / "replies"))
    source = benchmark.known_answers(sample_root / name)
    assert source is not None
    share, kappa, end = EXPECTED[rule]
    with LocalEndpoint(playing(source, RULES[rule])) as endpoint:
        place = ("--from", str(sample_root / name), "--output", str(out), "--items", "12")
        done = agreement(name, endpoint.url, *place)
        failed = rule in ("fails", "unreadable")
        assert done.exit_code == (3 if failed else 0), (done.output, done.exception)
        found = json.loads(out.read_text(encoding="utf-8"))
        for one in found["check"]["verdicts"].values():
            if "0" in one["counts"] or "1" in one["counts"]:  # of right answers alone else
                assert one["agree"]["estimate"] == share
                assert (one["kappa"] or {}).get("estimate") == kappa
                assert one["failed"] == failed * one["answers"]
            else:
                assert one["kappa"] is None
        assert found["check"]["verdicts"] != {}
        line = next(iter(reversed(done.stdout.strip().splitlines())))
        assert line == found["check"]["line"]
        assert line.startswith(f"judge checked: {100 * share:.0f} % of 12")
        assert line.endswith(end)
        # An endpoint that did not reply says nothing of the judge.
        monkeypatch.setenv(settings.JUDGE, f"m@{endpoint.url}")
        (told,) = told_of(prepare.describe_judge(benchmark))
        asks = (
            f"judge not checked; to check it: lmms-eval-tasks agreement {name} "
            f"--judge m@{endpoint.url}"
        )
        assert told == (asks if rule == "fails" else line)


REAL = {
    "maia": "true and false statements",
    "cvrr_es": "11,999 published judgements on 5 models",
    "movierecapsqa": "52 questions on 8 videos",
}


@pytest.mark.parametrize("name", REAL)
def test_a_judge_on_real_data(name: str) -> None:
    """40 answers, as many of each known verdict, from all videos."""
    folder = SHARED / "data"
    if not (folder / name).is_dir():
        pytest.skip(f"no real data at {folder / name}")
    source = registry.load_benchmark(name).known_answers(folder / name)
    assert source is not None
    with LocalEndpoint(playing(source, RULES["right"])) as endpoint:
        done = agreement(name, endpoint.url, **{settings.DATA: str(folder)})
    assert done.exit_code == 0, (done.output, done.exception)
    assert REAL[name] in done.stdout
    assert "judge checked: 100 % of 40" in done.stdout
    drawn = known_answers.draw(source.answers, 40)
    worths = Counter(next(iter(one.right_verdicts.values())) for one in drawn)
    assert max(worths.values()) - min(worths.values()) <= 1
    videos = Counter(one.doc["video"] for one in drawn)
    assert len(videos) == min(
        40, len({one.doc["video"] for one in source.answers if one.right_verdicts})
    )


def test_without_data_the_packaged_sample_is_used(sample_root: Path, tmp_path: Path) -> None:
    env = {settings.DATA: str(tmp_path), settings.CACHE: str(sample_root.parent)}
    source = registry.load_benchmark("cvrr_es").known_answers(sample_root / "cvrr_es")
    assert source is not None
    # Annotations alone hold no verdicts.
    (tmp_path / "cvrr_es" / "partial_actions").mkdir(parents=True)
    with LocalEndpoint(playing(source, RULES["right"])) as endpoint:
        done = agreement("cvrr_es", endpoint.url, "--items", "4", **env)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"no answers with known verdicts at {tmp_path / 'cvrr_es'}" in done.stderr
    assert "of 4, kappa 1.00 (CVRR-ES, packaged sample, 2" in done.stdout


def test_what_it_costs(sample_root: Path) -> None:
    """Nobody is asked, and no key is needed; all answers of the sample's two videos are 768."""
    place = ("--from", str(sample_root / "maia"), "--dry-run", "--judge", "gpt-4o")
    for more, count in ((("--items", "all"), 768), (("--items", "0"), 768), ((), 40)):
        done = CliRunner().invoke(app, ["agreement", "maia", *place, *more])
        assert done.exit_code == 0, (done.output, done.exception)
        assert f"\n{count} answers to judge: {count} verdicts, {count} calls, " in done.stdout


def test_what_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    for name, options, error, said in (
        ("maja", (), DataError, "no benchmark 'maja'; did you mean maia?"),
        ("maia", ("--items", "some"), TasksError, "--items some: expected a number such as 40"),
        ("maia", ("--from", str(tmp_path)), DataError, "no data file"),
        ("cvrr_es", ("--from", str(tmp_path)), DataError, "no answers with known verdicts"),
    ):
        done = agreement(name, "http://127.0.0.1:9/v1", *options)
        assert isinstance(done.exception, error)
        assert said in str(done.exception)
