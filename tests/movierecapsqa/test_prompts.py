"""The user's prompts in place of ours: used and named, or refused before a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.judges.verdict import NONE, JudgeConfig
from lmms_eval_tasks.movierecapsqa import baselines, judge, tasks
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import before
from tests.movierecapsqa.asking import use_prompts

PACKAGED = Path(tasks.__file__).parent / "prompts"
READ = {"task": tasks.task_prompts, "judge": judge.prompt, "baselines": baselines.prompt}


def mine(folder: Path, name: str, changes: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of prompts with one of ours, changed; in use."""
    ours = yaml.safe_load((PACKAGED / f"{name}.yml").read_text(encoding="utf-8"))
    file = folder / "movierecapsqa" / f"{name}.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump({**ours, **changes}), encoding="utf-8")
    use_prompts(folder, monkeypatch)
    return file


def test_what_does_not_fit_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, changes, said in (
        ("task", {"both": "Mine. {question}"}, "{dialogue}"),
        ("task", {"only_frames": "Mine."}, "{question}"),
        ("task", {"only_dialogue": "Mine. {question}"}, "{dialogue}"),
        ("task", {"dialogue": "Mine"}, "{lines}"),
        ("task", {"only_frames": "{question} {dialogue}"}, "unknown placeholder {dialogue}"),
        ("judge", {"context": "{facts}"}, "{dialogue}"),
        ("judge", {"context": "{question} {facts} {dialogue}"}, "{question}"),
        ("judge", {"claims": "{question} {candidate} {facts}"}, "{facts}"),
        ("judge", {"factuality": "Rate {claims}"}, "{claims}"),
        ("baselines", {"compare": "{question} {candidate}"}, "{reference}"),
        ("baselines", {"read": "{question} {candidate} {reference}"}, "{reference}"),
    ):
        mine(tmp_path, name, changes, monkeypatch)
        with pytest.raises(PromptError, match=rf"{name}\.yml.*{re.escape(said)}"):
            READ[name]()


def test_what_fits_is_used_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"relevance": "Rate the relevance.", "claims_system": "List it."}
    file = mine(tmp_path, "judge", texts, monkeypatch)
    assert "Rate the relevance." in judge.dimension_criterion("relevance", 2).template
    assert judge.claims_criterion().system == "List it."
    monkeypatch.setenv(settings.JUDGE, "none")
    described = before.describe_judge(BENCHMARK)["prompt"]
    assert described == {"hash": judge.claims_criterion().prompt_hash, "source": str(file)}
    file = mine(tmp_path, "baselines", {"helmet_correctness": "Grade it."}, monkeypatch)
    assert baselines.criteria()["helmet_correctness"].system == "Grade it."
    told: dict[str, Any] = baselines.describe(["geval"], JudgeConfig(NONE))
    assert told["prompt"]["source"] == str(file)
    file = mine(tmp_path, "task", {"only_frames": "Mine. {question}"}, monkeypatch)
    doc = {"condition": "frames", "question": "Who?", "n_frames": 0}
    assert tasks.prompt(doc)[-1].given == "Mine. Who?"
