"""HAVEN for the shared commands: the size of a run, the judge, submissions, subtitles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.errors import DataError, JudgeError
from lmms_eval_tasks.haven import benchmark, data, judge, utils
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.judges.prompts import render
from lmms_eval_tasks.runs import estimate

NAMES = list(TASKS)
KEY = {"OPENAI_API_KEY": "x"}


def task(name: str, reply: int = 1024) -> dict[str, Any]:
    return {
        "task": name,
        "metadata": {"benchmark": "haven"},
        "generation_kwargs": {"max_new_tokens": reply},
    }


def test_it_is_one_of_ours() -> None:
    assert "haven" in benchmarks.NAMES
    assert benchmarks.load("haven") is benchmark
    assert all(hasattr(benchmark, name) for name in benchmark.__all__)
    for name in (*NAMES, "haven", "haven_text"):
        assert benchmarks.of_task_name(name) == "haven"


@pytest.mark.usefixtures("user")
class TestWorkload:
    """One generation a video; one rating of each summary."""

    @pytest.mark.parametrize("name", NAMES)
    def test_counts(self, name: str) -> None:
        work = benchmark.workload(task(name, 99))
        judged = TASKS[name].kind in ("v2t", "v2vt")
        assert (len(work.prompts), len(work.judged)) == (3, 3 if judged else 0)
        assert work.max_reply_tokens == 99
        config = resolve("gpt-4.1-mini", KEY, default_model="gpt-4.1-mini")
        found = estimate.estimate(task(name), config)
        assert (found.generations, found.verdicts) == (3, 3 if judged else 0)
        assert found.prompt_tokens > 0
        assert (found.cost or 0) > 0 if judged else found.cost == 0
        few = estimate.estimate(task(name), config, limit=2)
        assert (few.generations, few.verdicts) == (2, 2 if judged else 0)
        assert estimate.estimate(task(name), None).verdicts == 0

    def test_what_would_be_asked(self) -> None:
        """The reference in place of a reply, with the document: what a run's judge would read."""
        work = benchmark.workload(task("haven_v2t"))
        for row, ((criterion, fields),) in zip(data.rows(data.load()), work.judged, strict=True):
            assert criterion == judge.criterion()
            assert fields["candidate"] == fields["reference"] == " ".join(row["summary"])
            text = json.dumps(render(criterion, fields), ensure_ascii=False)
            assert all(sentence in text for sentence in row["document"])

    def test_what_is_left_out(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (user / "videos" / "tvsum" / "video_1.mp4").unlink()
        with pytest.raises(DataError, match="1 of 3 HAVEN videos are not there"):
            benchmark.workload(task("haven_v2v"))
        assert len(benchmark.workload(task("haven_v2v_text")).prompts) == 3
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        assert len(benchmark.workload(task("haven_v2v")).prompts) == 2

    def test_options(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert all("Shot 4: " in p for p in benchmark.workload(task("haven_saliency_text")).prompts)
        monkeypatch.setenv(settings.HAVEN, "sources=tvsum,max_shots=2")
        prompts = benchmark.workload(task("haven_saliency_text")).prompts
        assert len(prompts) == 2
        assert [p.count("Shot 2: ") for p in prompts] == [1, 1]
        assert not any("Shot 3: " in p for p in prompts)


def test_no_data(root: Path) -> None:
    with pytest.raises(DataError, match=r"no HAVEN data at .*data prepare"):
        benchmark.workload(task("haven_v2t"))


def test_the_judge(tmp_path: Path) -> None:
    assert benchmark.judge_config("gpt-4.1-mini", KEY).label == "gpt-4.1-mini"
    assert not benchmark.judge_config("gpt-4.1-mini", KEY).comparable
    assert judge.criterion().prompt_hash in benchmark.judge_prompt()
    file = tmp_path / "judge.yml"
    file.write_text("panel: [a@http://localhost:1/v1, b@http://localhost:1/v1]\n")
    with pytest.raises(JudgeError, match="G-Eval's rating is one model's"):
        benchmark.judge_config(str(file))


def test_tables_with_their_warnings() -> None:
    results = {
        "results": {"haven_v2v": {"f1,none": 0.5}, "maia_vsv": {"f1,none": 0.9}},
        "lmms_eval_tasks": {"haven": {"warnings": ["w"]}, "invalid": {"haven_v2v": "x"}},
    }
    made = benchmark.tables(results)
    assert made[-1] == "Note: w"
    assert len(made) == 3
    rows = made[0].columns[0]._cells  # type: ignore[union-attr]
    assert rows == ["this run INVALID"]


def test_nothing_to_submit() -> None:
    benchmark.submission([])  # the annotations are public


def test_no_subtitles(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="HAVEN's tasks use no sound"):
        benchmark.make_subtitles(tmp_path, None)  # type: ignore[arg-type]


def test_the_host_is_given_what_is_estimated(user: Path) -> None:
    for name in NAMES:
        docs = data.process_docs(name)
        from datasets import Dataset

        made = list(docs(Dataset.from_list(data.rows(data.load()))))
        assert benchmark.workload(task(name)).prompts == [utils.doc_to_text(doc) for doc in made]
