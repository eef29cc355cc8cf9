"""Saved runs and judges: another one, the same one for what is missing, commands, batches."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError, JudgeError
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.movierecapsqa import saved
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from tests.local_endpoint import LocalEndpoint, choice, completion
from tests.movierecapsqa.asking import claimed
from tests.movierecapsqa.saved_runs import (
    EVERYTHING,
    FIRST,
    GEVAL,
    HELMET,
    TASK,
    Rater,
    aggregated,
    as_saved,
    asked,
    asked_for,
    judged_at,
    judged_run,
    reply,
    saved_run,
    score,
    write,
)

pytestmark = pytest.mark.usefixtures("user")


@pytest.fixture
def endpoint() -> Iterator[LocalEndpoint]:
    with LocalEndpoint(Rater()) as made:
        yield made


class TestJudges:
    """Saved answers, another judge."""

    def test_both_verdicts_are_paired(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = judged_run(monkeypatch, baselines="helmet")
        kept = copy.deepcopy(run.samples)
        with LocalEndpoint(Rater(plus=1)) as other:
            again = saved.rescore_saved([run], f"two@{other.url}")
            # The baselines that the run has are judged again too.
            assert asked(other) == {**EVERYTHING, **dict.fromkeys(HELMET, 3)}
        assert run.samples == kept
        for name, pairs in again.verdicts.items():
            assert len(pairs) == (9 if name == TASK else 3)
            for pair in pairs:
                assert pair.before is not None
                assert pair.after is not None
                assert (pair.before.judge[:3], pair.after.judge[:3]) == ("one", "two")
                top = 6 if name == TASK else 4 if "correctness" in name else 2
                assert pair.after.score == ((pair.before.score or 0) + 1) % top
        assert again.numbers[TASK] != aggregated(run.samples)

    def test_two_scales_are_never_one_comparison(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = judged_run(monkeypatch, baselines="geval,helmet")
        found = saved.rescore_saved([run], None).verdicts
        names = {
            name: {pair.id.rpartition("/")[2] for pair in pairs} for name, pairs in found.items()
        }
        assert names == {
            TASK: set(DIMENSIONS),
            f"{TASK} geval": set(GEVAL),
            f"{TASK} helmet_fluency": {"helmet_fluency"},
            f"{TASK} helmet_correctness": {"helmet_correctness"},
        }

    def test_a_judge_that_finds_no_claims(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = judged_run(monkeypatch)
        with LocalEndpoint(lambda _: claimed([])) as other:
            again = saved.rescore_saved([run], f"two@{other.url}")
        assert again.numbers[TASK]["no_claims"] == 3
        assert again.numbers[TASK]["factuality_valid"] == 0
        assert {pair.after for pair in again.verdicts[TASK]} == {None}

    @pytest.mark.parametrize(
        ("fails", "missing"),
        [
            ("relevance", {"relevance": 3}),
            ("claims", EVERYTHING),
            ("helmet_fluency", {"helmet_fluency": 3}),
            # G-Eval's two have to be of one mode: both are asked, then sampled.
            ("geval_coherence", dict.fromkeys(GEVAL, 3 + 3)),
        ],
    )
    def test_missing_only(
        self, fails: str, missing: dict[str, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rater = Rater(fails=fails)
        with judged_at(rater, monkeypatch, baselines="geval,helmet") as endpoint:
            run = saved_run(TASK, score(TASK, reply))
            judge = f"one@{endpoint.url}"
            rater.fails = ""
            before = len(endpoint.chats)
            monkeypatch.setenv(settings.BASELINES, "")
            again = saved.rescore_saved([run], judge, missing_only=True)
            assert asked(endpoint, before) == missing
            values = again.numbers[TASK]
            assert {n for n in values if n.endswith("_failed") and values[n]} == set()
            assert values == aggregated(judged_run(monkeypatch, baselines="geval,helmet").samples)
            done = saved_run(TASK, as_saved(run, judge))
            # With all of it there nobody is asked, ...
            before = len(endpoint.chats)
            assert saved.rescore_saved([done], judge, missing_only=True).numbers[TASK] == values
            assert asked(endpoint, before) == {}
            # ... but verdicts of another judge, or with other settings, do not stand for its own.
            every = {**EVERYTHING, **dict.fromkeys(HELMET, 3), **dict.fromkeys(GEVAL, 6)}
            saved.rescore_saved([done], f"two@{endpoint.url}", missing_only=True)
            assert asked(endpoint, before) == every

    def test_the_same_judge_is_asked_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`rescore --judge` is no `judge`: it asks for all of it (the cache makes it free)."""
        with judged_at(Rater(), monkeypatch) as endpoint:
            run = saved_run(TASK, score(TASK, reply))
            before = len(endpoint.chats)
            again = saved.rescore_saved([run], f"one@{endpoint.url}")
            assert asked(endpoint, before) == EVERYTHING
        assert again.numbers[TASK] == aggregated(run.samples)

    def test_labels_of_claims_that_are_asked_for_again_fall(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = judged_run(monkeypatch)
        with LocalEndpoint(Rater()) as endpoint:
            judge = f"one@{endpoint.url}"
            done = saved_run(TASK, as_saved(run, judge))
            done.samples[0][FIRST]["claims_verdict"]["setup"] = "of other prompts"
            before = len(endpoint.chats)
            saved.rescore_saved([done], judge, missing_only=True)
            assert asked(endpoint, before) == dict.fromkeys(("claims", *DIMENSIONS), 1)

    def test_a_run_without_a_judge_is_judged_later(
        self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = saved_run(TASK, score(TASK, reply))
        waiting = saved.rescore_saved([run], None).numbers[TASK]
        assert waiting == aggregated(run.samples)
        assert waiting["factuality_valid"] is None
        later = saved.rescore_saved([run], f"one@{endpoint.url}", missing_only=True)
        assert later.numbers[TASK] == aggregated(judged_run(monkeypatch).samples)
        assert asked(endpoint) == EVERYTHING

    def test_baselines_asked_for_later(
        self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = judged_run(monkeypatch)
        monkeypatch.setenv(settings.BASELINES, "helmet")
        # Without a judge there is nobody to ask for them.
        assert saved.rescore_saved([run], None).numbers[TASK]["helmet_fluency_coverage"] is None
        again = saved.rescore_saved([run], f"one@{endpoint.url}", missing_only=True)
        assert asked(endpoint)["helmet_fluency"] == 3
        assert again.numbers[TASK]["helmet_fluency_coverage"] == 1

    @pytest.mark.parametrize(
        ("spec", "said"),
        [("offline", "cannot decide"), ("gpt-4o", "OPENAI_API_KEY"), ("gone.yml", "gone.yml")],
    )
    def test_a_judge_that_cannot_stops(
        self,
        spec: str,
        said: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        run = judged_run(monkeypatch)
        with pytest.raises(JudgeError, match=said):
            saved.rescore_saved([run], spec)
        assert "not judged now" not in capsys.readouterr().err

    def test_nobody_as_the_judge_keeps_what_there_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = judged_run(monkeypatch)
        assert saved.rescore_saved([run], "none").numbers[TASK] == aggregated(run.samples)


class TestCommands:
    """`rescore` and `judge` of the command line."""

    def test_numbers_judges_and_what_is_missing(
        self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv(settings.JUDGE, f"one@{endpoint.url}")
        run = saved_run(TASK, score(TASK, reply))
        expected = aggregated(run.samples)
        logs = tmp_path / "logs"
        write(logs, dataclasses.replace(run, saved=expected))
        output = tmp_path / "made.json"
        command = ["rescore", str(logs), "--output", str(output)]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert f"{len(expected)} of {len(expected)} numbers equal the saved ones" in done.output
        assert "Table 5" in done.output
        made = json.loads(output.read_text(encoding="utf-8"))["movierecapsqa"]
        assert made["numbers"][TASK] == expected
        assert len(made["verdicts"][TASK]) == 9
        with LocalEndpoint(Rater(plus=1)) as other:
            done = CliRunner().invoke(app, [*command, "--judge", f"two@{other.url}"])
        assert done.exit_code == 0, done.output
        made = json.loads(output.read_text(encoding="utf-8"))["movierecapsqa"]
        assert made["judge"]["model"] == "two"
        assert made["judges_compared"][TASK]["n"] == 9
        before = len(endpoint.chats)
        done = CliRunner().invoke(app, ["judge", str(logs), "--judge", f"one@{endpoint.url}"])
        assert done.exit_code == 0, done.output
        assert len(endpoint.chats) == before  # nothing was missing

    def test_a_broken_sample_is_one_line(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        run = judged_run(monkeypatch)
        del run.samples[0][FIRST]["facts"]
        write(tmp_path, run)
        done = CliRunner().invoke(app, ["rescore", str(tmp_path)])
        assert isinstance(done.exception, DataError)
        assert "talk.1/10 has no list of `facts`" in str(done.exception)

    def test_a_batch_takes_two_rounds(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """The dimensions need the claims, and half of what is paid for twice is no half price."""
        logs, requests = tmp_path / "logs", tmp_path / "requests.jsonl"
        write(logs, saved_run(TASK, score(TASK, reply)))
        monkeypatch.setenv(settings.JUDGE_CACHE, str(tmp_path / "cache"))
        command = ["judge", str(logs), "--judge", "m@http://127.0.0.1:9/v1"]
        expected = [{"claims": 3}, dict.fromkeys(DIMENSIONS, 3)]
        for number, kinds in enumerate(expected):
            judge_run.forget()
            done = CliRunner().invoke(app, [*command, "--batch", str(requests)])
            assert done.exit_code == 0, done.output
            results = tmp_path / f"results{number}.jsonl"
            assert _answered(requests, results) == kinds
            output = tmp_path / "made.json"
            judge_run.forget()
            done = CliRunner().invoke(
                app, [*command, "--batch-results", str(results), "--output", str(output)]
            )
            made = json.loads(output.read_text(encoding="utf-8"))["movierecapsqa"]["numbers"][TASK]
            # Until the second round the dimensions have failed: the run says that it is invalid.
            assert made["factuality_failed"] == (0 if number else 3)
            assert done.exit_code == (0 if number else 3), done.output
        assert made == aggregated(judged_run(monkeypatch).samples)
        judge_run.forget()
        done = CliRunner().invoke(app, [*command, "--batch", str(requests)])
        assert "every verdict is there already" in done.output


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
