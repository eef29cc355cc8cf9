"""The oracle sees only the rendered request, so a wrong label in the data shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.maia import data, schema, scores, utils
from lmms_eval_tasks.sample import players
from lmms_eval_tasks.utils import media, text_metrics


@pytest.fixture(autouse=True)
def sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")


def pair_accuracy(release: schema.Release, key: players.AnswerKey, language: str) -> float | None:
    from datasets import Dataset

    items = []
    for doc in data.vsv_text(Dataset.from_list(data.rows(release))):
        text = utils.doc_to_text(doc, {"language": language})
        reply = players.oracle(text, key)
        items.append(utils.pair_metrics(scores.VSV, utils.identity(doc), reply)["pair_acc"])
    return scores.VSV["pair_acc"](items)


@pytest.mark.parametrize("language", ["it", "en"])
def test_oracle_gets_everything(language: str, sample_root: Path) -> None:
    key = players.AnswerKey.load(sample_root / "maia" / "key.json")
    assert pair_accuracy(data.load(), key, language) == 1.0


def test_swapped_labels_break_it(
    sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = players.AnswerKey.load(sample_root / "maia" / "key.json")
    content = json.loads((sample_root / "maia" / "data.json").read_text(encoding="utf-8"))
    asked = content[0]["question_categories_A"][5]
    true, false = asked["true_statement"], asked["false_statement"]
    true[2], false[2] = false[2], true[2]
    (tmp_path / "maia").mkdir()
    (tmp_path / "maia" / "data.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "maia" / "videos").symlink_to(sample_root / "maia" / "videos")
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(tmp_path))
    assert pair_accuracy(data.load(), key, "it") == 383 / 384


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("32frames", media.Recipe("uniform", 32)),
        ("black", media.Recipe("black", 32)),
        ("1frame", media.Recipe("first_frame", 1)),
    ],
)
def test_recipes(setting: str, expected: Any) -> None:
    assert utils.recipe(setting, 1 if setting == "1frame" else 32) == expected


def test_prompts_hold_every_protocol_element() -> None:
    """Both statements with their letters, and the question, in both languages."""
    pair = {"options": ["La palla è rossa", "La palla è blu {A}"]}
    for language in ("it", "en"):
        text = utils.doc_to_text(pair, {"language": language})
        assert "A. La palla è rossa\n" in text
        assert "B. La palla è blu {A}\n" in text  # data is never read as a template
        assert "question" not in text
        asked = utils.doc_to_text({"question": "Dov'è?"}, {"language": language})
        assert "Dov'è?" in asked
        wrapped = utils.doc_to_text({"question": "Dov'è?"}, {"pre_prompt": "<", "post_prompt": ">"})
        assert wrapped[0] + wrapped[-1] == "<>"


def test_one_answer_that_cannot_be_scored_does_not_take_the_others_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from datasets import Dataset

    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "offline")
    docs = data.oevqa_32frames(Dataset.from_list(data.rows(data.load()))).select(range(3))
    similar = text_metrics.meteor

    def broken(candidate: str, references: Any) -> float:
        if candidate == "rotta":
            raise ZeroDivisionError
        return similar(candidate, references)

    monkeypatch.setattr(text_metrics, "meteor", broken)
    items: dict[str, list[Any]] = {}
    for doc, reply in zip(docs, ["rotta", docs[1]["references"][0], "zebra"], strict=True):
        for name, item in utils.oevqa_process_results(doc, [reply]).items():
            items.setdefault(name, []).append(item)
    assert "kept as status error" in capsys.readouterr().err
    assert [item["status"] for item in items["judge_acc"]] == ["error", "ok", "ok"]
    assert scores.OEVQA["judge_acc"](items["judge_acc"]) == 1 / 3
    assert scores.OEVQA["judge_acc_failed"](items["judge_acc_failed"]) == 1
    for name in scores.SIMILARITY:
        assert len(items[name]) == 2
        if name != "bertscore":
            assert scores.OEVQA[name](items[name]) > 0
