"""Candidates from saved samples of `cvrr_es_DIMENSION` runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.cvrr_es.candidates import align, read
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.release_files import row, write

PART, TIME = "partial_actions", "time_order_understanding"


@pytest.fixture
def release(tmp_path: Path) -> release.Release:
    """Two questions and one that repeats."""
    rows = [row("A?", "a"), row("X?", "x1"), row("B?", "b"), row("X?", "x2")]
    write(tmp_path / "release", PART, rows)
    return release.read(tmp_path / "release")


class TestSavedSamples:
    """Runs of `cvrr_es_DIMENSION`: joined by ids, named by the run's model."""

    def save(
        self, folder: Path, items: list[dict[str, Any]], task: str = f"cvrr_es_{PART}"
    ) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"20250101_samples_{task}.jsonl"
        lines = [json.dumps({"doc_id": n, "accuracy": item}) for n, item in enumerate(items)]
        file.write_text("\n".join(lines) + "\n")
        return file

    def item(self, place: int, reply: str, **more: Any) -> dict[str, Any]:
        return {"id": f"{PART}/{place:03d}", "dimension": PART, "reply": reply, **more}

    def test_joined_by_id(self, tmp_path: Path, release: release.Release) -> None:
        folder = tmp_path / "org__model"
        self.save(
            folder,
            [
                self.item(4, "four", question="X?"),
                self.item(1, "<think>So ...</think> One.", answer="not looked at"),
                self.item(2, "[LMMS_EVAL_REQUEST_FAILED after 5 retries] no route"),
                self.item(3, "<think>and then"),
            ],
        )
        self.save(folder, [self.item(1, "rated")], task="cvrr_judge")
        self.save(folder, [self.item(1, "other")], task=f"cvrr_{PART}")
        (candidate,) = read([folder])
        found = align(candidate, release)
        assert found.candidate == "org__model"
        assert list(found.answers.values()) == ["One.", "", "", "four"]
        assert len(found.empty) == 2
        assert (found.ways, found.problems) == ({"id": 4}, ())

    def test_a_run_is_named_by_its_results(self, tmp_path: Path) -> None:
        parts = [self.save(tmp_path, [self.item(1, "x")], f"cvrr_es_{d}") for d in (PART, TIME)]
        config = {"config": {"model": "tiny", "model_args": "a=1"}}
        (tmp_path / "20250101_results.json").write_text(json.dumps(config))
        for paths in ([tmp_path], parts):
            (candidate,) = read(paths)
            assert candidate.name == "tiny (a=1)"
            assert list(candidate.answers) == [PART, TIME]

    def test_or_by_its_items(self, tmp_path: Path) -> None:
        named = [self.item(1, "x", candidate="tiny"), self.item(2, "y", candidate="tiny")]
        file = self.save(tmp_path, named)
        assert [one.name for one in read([file])] == ["tiny"]
        named[1]["candidate"] = "huge"
        self.save(tmp_path, named)
        with pytest.raises(DataError, match="answers of tiny and of huge; one file, one model"):
            read([file])

    def test_problems(self, tmp_path: Path, release: release.Release) -> None:
        items = [
            self.item(1, "a"),
            self.item(2, "b"),
            self.item(2, "c"),
            self.item(9, "d"),
            self.item(3, "e", question="Another?"),
        ]
        file = self.save(tmp_path, items)
        (candidate,) = read([file])
        found = align(candidate, release)
        assert found.answers == {f"{PART}/001": "a"}
        assert list(found.problems) == [
            f"{file}: 1 answer to an id that is not in the release, first line 4 ({PART}/009)",
            f"{file}: 1 answer to another question than the release has under its id: another "
            f"version?, first line 5 ({PART}/003)",
            f"{file}: 2 answers to a question that is answered more than once, first line 2 "
            f"({PART}/002)",
            f"{file}: questions without an answer: 1, first {PART}/004",
        ]

    def test_bad_files(self, tmp_path: Path) -> None:
        file = self.save(tmp_path, [{"id": "x"}])
        with pytest.raises(DataError, match="line 1: no item with `id`, `dimension` and `reply`"):
            read([file])
        other = self.save(tmp_path, [self.item(1, "x")], task="cvrr_judge")
        with pytest.raises(DataError, match="cvrr_judge is no task with answers of CVRR-ES"):
            read([other])
        self.save(tmp_path / "model", [self.item(1, "x")])
        shutil.copytree(tmp_path / "model", tmp_path / "again" / "model")
        with pytest.raises(DataError, match=f"a second run of cvrr_es_{PART} by model, beside"):
            read([tmp_path / "model", tmp_path / "again" / "model"])
