"""Docs of the packaged sample, answered and scored as the host does it, and saved runs of them."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.maverix import data, scores, utils
from lmms_eval_tasks.maverix.labels import DIMENSIONS, LETTERS
from lmms_eval_tasks.runs import rescore

PROCESS = {
    "choice": utils.choice_process_results,
    "circular": utils.circular_process_results,
    "open": utils.open_process_results,
}
Doc = dict[str, Any]
Scored = dict[str, dict[str, Any]]  # what process_results gives: metric -> item


@pytest.fixture
def sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packaged sample is the data, nobody judges, and no video is cut."""

    def gone(doc: Mapping[str, Any]) -> Any:
        raise MediaError(f"{doc['video_path']}: no cut in this test")

    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")
    monkeypatch.setattr(utils, "media_of", gone)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root of the user's."""
    monkeypatch.setenv(settings.DATA, str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def source(sample_root: Path, tmp_path: Path) -> Path:
    """The sample as a release of the user's."""
    folder = tmp_path / "release"
    shutil.copytree(sample_root / "maverix", folder)
    (folder / "VERSION").unlink()
    return folder


def docs(kind: str, mode: str = "s", length: str = "localized") -> list[Doc]:
    """A task's docs, from the data that is set."""
    import datasets

    rows = datasets.Dataset.from_list(data.rows(data.load()))
    return [dict(doc) for doc in data.process_docs(kind, mode, length)(rows)]


def withheld(doc: Doc) -> Doc:
    """A doc whose truth is not in the data."""
    return {**doc, **{name: "" for name in ("answer", "reference") if name in doc}}


def right(doc: Doc) -> str:
    """The right letter, or a reference; anything where it is withheld."""
    return doc.get("answer") or doc.get("reference") or "A"


def wrong(doc: Doc) -> str:
    return LETTERS[(LETTERS.index(doc["answer"]) + 1) % 8]


def some_right(doc: Doc) -> str:
    """Right on two of three items, unreadable on every seventh: the same in each mode."""
    number = int(doc["question_id"].rpartition("q")[2])
    if number % 7 == 0:
        return "I would rather look at the clouds."
    return wrong(doc) if number % 3 == 0 else right(doc)


def score(kind: str, docs: Sequence[Doc], reply: Callable[[Doc], str]) -> list[Scored]:
    """What the host keeps of the docs' replies, through JSON as in its log."""
    made = [PROCESS[kind](doc, [reply(doc)]) for doc in docs]
    return [json.loads(json.dumps(one)) for one in made]


def aggregated(kind: str, scored: Sequence[Scored]) -> dict[str, Any]:
    """Every metric that has items, as the host computes it."""
    found: dict[str, Any] = {}
    for name, function in scores.METRICS[kind].items():
        own = [one[name] for one in scored if name in one]
        if own and name not in scores.JOINED:
            found[name] = function(own)
    return found


def run(
    task: str,
    scored: Sequence[Scored],
    model: str | None = "m (x)",
    saved: Mapping[str, Any] | None = None,
) -> rescore.Run:
    """A saved run of one task."""
    file = Path(f"out/20260101_samples_{task}.jsonl")
    samples = [{"doc_id": number, **one} for number, one in enumerate(scored)]
    return rescore.Run(task, file, samples, model, dict(saved or {}))


def write(folder: Path, run: rescore.Run) -> Path:
    """A run as the host's files: samples and results."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"20260101_samples_{run.task}.jsonl"
    lines = [json.dumps(sample, ensure_ascii=False) for sample in run.samples]
    file.write_text("\n".join(lines), encoding="utf-8")
    name, _, arguments = str(run.model).partition(" ")
    results = {
        "config": {"model": name, "model_args": arguments.strip("()")},
        "results": {run.task: {f"{key},none": value for key, value in run.saved.items()}},
    }
    path = folder / "20260101_results.json"
    if path.is_file():
        results["results"] |= json.loads(path.read_text(encoding="utf-8"))["results"]
    path.write_text(json.dumps(results), encoding="utf-8")
    return file


@functools.cache
def systems() -> dict[str, str]:
    """The judge's system prompt of each dimension -> the dimension."""
    from lmms_eval_tasks.maverix import judge

    return {judge.criteria()[name].system: name for name in DIMENSIONS}


def dimension_of(request: Mapping[str, Any]) -> str:
    """Which dimension a recorded request asks for."""
    system = request["messages"][0]["content"]
    (found,) = [name for text, name in systems().items() if text.strip() in system]
    return found
