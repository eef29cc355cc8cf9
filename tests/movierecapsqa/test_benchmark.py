"""MovieRecapsQA for the shared commands: the judge, the size of a run, tables, submissions."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError, JudgeError
from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.judges.prompts import render
from lmms_eval_tasks.movierecapsqa import benchmark, utils
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.runs import estimate
from tests.movierecapsqa.entries import SECRET, entry, question, write
from tests.movierecapsqa.saved_runs import aggregated, score
from tests.movierecapsqa.test_data import TASKS, docs
from tests.movierecapsqa.test_results import BOTH, DIALOGUE, FRAMES, annotated, task

KEY = {"OPENAI_API_KEY": "x"}
REFERENCE = "The captain waits. It snows."


def config(spec: str = "gpt-4.1-mini") -> Any:
    return resolve(spec, KEY, default_model=spec)


def kinds(work: estimate.Workload) -> Counter[str]:
    return Counter(
        str(fields.get("dimension", criterion.name))
        for one in work.judged
        for criterion, fields in one
    )


class TestWorkload:
    """What a run would do: one generation and four verdicts for each question."""

    @pytest.mark.parametrize("name", TASKS)
    def test_counts(self, name: str, user: Path) -> None:
        work = benchmark.workload(task(name))
        assert (len(work.prompts), len(work.judged)) == (4, 4)
        assert work.prompts == [utils.doc_to_text(doc) for doc in docs(name)]
        assert kinds(work) == {"movierecapsqa_claims": 4, **dict.fromkeys(DIMENSIONS, 4)}
        assert work.max_reply_tokens == 256
        found = estimate.estimate(task(name), config())
        assert (found.generations, found.verdicts, found.calls) == (4, 16, 16)
        assert found.cost is not None
        assert 0 < (found.batch_cost or 0) < found.cost

    @pytest.mark.parametrize(
        ("baselines", "more"), [("helmet", 2), ("geval", 2), ("geval,helmet", 4), ("none", 0)]
    )
    def test_baselines_where_asked_for(
        self, baselines: str, more: int, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.BASELINES, baselines)
        found = estimate.estimate(task(DIALOGUE), config())
        assert found.verdicts == 4 * (4 + more)

    def test_only_questions_with_a_reference_have_baselines(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.BASELINES, "helmet")
        write(user, [entry(1, questions=[question(1), question(2, datasetAnswer=...)])])
        work = benchmark.workload(task(DIALOGUE))
        assert [len(one) for one in work.judged] == [6, 4]

    def test_a_limit_counts_questions(self, user: Path) -> None:
        few = estimate.estimate(task(BOTH), config(), limit=3)
        assert (few.generations, few.verdicts, few.calls) == (3, 12, 12)

    def test_what_would_be_asked(self, user: Path) -> None:
        """A claim for each sentence of the dataset's answer; facts and dialogue in each request."""
        asked = [question(1, datasetAnswer=REFERENCE)]
        write(user, [entry(1, questions=asked)])
        ((claims, *dimensions),) = benchmark.workload(task(DIALOGUE)).judged
        assert claims[1]["candidate"] == REFERENCE
        assert [fields["claims"] for _, fields in dimensions] == [
            ["The captain waits", "It snows."]
        ] * 3
        for criterion, fields in dimensions:
            text = json.dumps(render(criterion, fields), ensure_ascii=False)
            assert f"The {SECRET} sleeps." in text
            assert "At the harbour, all night." in text
        assert SECRET not in json.dumps(render(*claims))

    @pytest.mark.parametrize("reference", [..., "", "Yes", "..."])
    def test_odd_references(self, reference: Any, user: Path) -> None:
        write(user, [entry(1, questions=[question(1, datasetAnswer=reference)])])
        found = estimate.estimate(task(DIALOGUE), config())
        assert found.verdicts == 4
        assert found.judge_tokens > 0

    def test_without_a_judge(self, user: Path) -> None:
        found = estimate.estimate(task(DIALOGUE), None)
        assert (found.generations, found.verdicts) == (4, 0)

    def test_no_data(self, root: Path) -> None:
        with pytest.raises(DataError, match=r"no MovieRecapsQA data at .*data prepare"):
            benchmark.workload(task(DIALOGUE))

    def test_a_video_that_is_missing(self, user: Path) -> None:
        (user / "recaps" / "talk.mp4").unlink()
        with pytest.raises(DataError, match="aligned recap segment"):
            benchmark.workload(task(BOTH))
        assert len(benchmark.workload(task(DIALOGUE)).prompts) == 4

    def test_the_real_sample(self, real: Path) -> None:
        found = estimate.estimate(task(DIALOGUE), config())
        assert (found.generations, found.verdicts) == (52, 208)
        # By hand: 208 requests, most with a segment's facts and dialogue, at $0.40 a million.
        assert 0.05 < (found.cost or 0) < 0.5

    def test_the_command(self, user: Path) -> None:
        command = ["estimate", "--tasks", DIALOGUE, "--judge", "gpt-4.1-mini"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        (row,) = [line.split() for line in done.output.splitlines() if DIALOGUE in line]
        assert (row[1], row[3], row[4]) == ("4", "16", "16")


class TestJudge:
    """Who judges, where nothing else is said."""

    def test_the_papers(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(settings.JUDGE)
        found = benchmark.judge_config(env=KEY)
        assert (found.model, found.sampling.temperature) == ("gpt-4.1-mini", 0)
        assert "judge.yml" in benchmark.judge_prompt()
        assert benchmark.judge_config("m@http://127.0.0.1:9/v1", KEY).model == "m"

    def test_several_in_one(self, tmp_path: Path) -> None:
        file = tmp_path / "panel.yml"
        member = "{model: m, base_url: 'http://127.0.0.1:9/v1', api_key_env: null}"
        file.write_text(f"panel: [{member}, {member}]", encoding="utf-8")
        with pytest.raises(JudgeError):
            benchmark.judge_config(str(file), KEY)


class TestTables:
    """The paper's tables for the host's results."""

    def printed(self, results: dict[str, Any]) -> str:
        sink = io.StringIO()
        for table in benchmark.tables(results):
            Console(file=sink, width=150).print(table)
        return sink.getvalue()

    def test_tables_and_warnings(self, user: Path) -> None:
        values = {"factuality_valid": 3.5, "factuality_var": 1.25}
        other = {"factuality_valid": 3.0, "factuality_var": 2.5}
        shown = {
            name: {f"{metric},none": value for metric, value in own.items()}
            for name, own in ((BOTH, values), (FRAMES, other), ("maverix_v", values))
        }
        section = annotated(BOTH, FRAMES)
        told = {"movierecapsqa": section, "invalid": {FRAMES: "too many"}}
        text = self.printed({"results": shown, "lmms_eval_tasks": told})
        assert "3.50±1.25" in text
        assert "this run INVALID" in " ".join(text.split())
        assert "Note: not judged yet" in text
        assert text.count("3.50±1.25") == 1  # MAVERIX's is no row here

    def test_from_a_task_s_own_items(self, user: Path) -> None:
        values = aggregated(score(DIALOGUE, lambda doc: doc["reference"]))
        shown = {DIALOGUE: {f"{metric},none": value for metric, value in values.items()}}
        told = {"movierecapsqa": annotated(DIALOGUE)}
        text = self.printed({"results": shown, "lmms_eval_tasks": told})
        assert "1.00±0.00" in text  # ROUGE-L of the dataset's own answers
        assert "Table 5" not in text  # nobody has judged them


def test_nothing_is_withheld() -> None:
    assert benchmark.submission([]) is None  # type: ignore[func-returns-value]


def test_subtitles_are_in_the_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="part of its data file"):
        benchmark.make_subtitles(tmp_path, object())  # type: ignore[arg-type]


def test_it_has_all_that_the_shared_commands_ask_for() -> None:
    assert benchmarks.load("movierecapsqa") is benchmark
    wanted = {name for name in vars(benchmarks.Benchmark) if not name.startswith("_")}
    assert wanted <= set(benchmark.__all__)
