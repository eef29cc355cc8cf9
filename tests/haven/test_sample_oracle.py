"""The oracle reaches the best value of every item from the request alone; the coin gets chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval_tasks import settings
from lmms_eval_tasks.haven import sample_coin, sample_oracle, sample_request
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.haven.options import parse
from lmms_eval_tasks.utils import keyframes, rankings
from tests.haven.sample_requests import Parts, both, build, chat, docs, simple
from tests.haven.sample_values import worth

ALL = pytest.mark.parametrize("task", TASKS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Decoded frames, for all tests of this file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(frames: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CACHE, str(frames))


def answer(parts: Parts) -> str:
    reply = sample_oracle.reply(parts)
    assert reply is not None
    return reply


def assert_best(doc: dict[str, Any], reply: str) -> None:
    found = worth(doc, reply)
    assert found.values == pytest.approx(found.best), doc["id"]
    assert (found.status, found.violations) == ("ok", {}), doc["id"]


# --- the oracle -------------------------------------------------------------------------------


@ALL
def test_it_reaches_the_best_value_of_every_item(task: str, folder: Path) -> None:
    asked = docs(folder, task)
    assert len(asked) == 8
    for doc in asked:
        for parts in both(doc):
            assert_best(doc, answer(parts))


@pytest.mark.parametrize(
    "given",
    ["frames_per_shot=1", "frames_per_shot=0,size=96", "max_shots=3,seed=5", "sentences=reference"],
)
@ALL
def test_it_does_so_with_other_options(
    task: str, given: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.HAVEN, given)
    for doc in docs(folder, task)[3:5]:
        for parts in both(doc):
            assert_best(doc, answer(parts))


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("task", ["haven_v2vt", "haven_v2t_text", "haven_v2vt_text"])
def test_it_keeps_to_the_number_of_sentences(task: str, n: int, folder: Path) -> None:
    doc = docs(folder, task, parse(f"sentences={n}"))[0]
    found = worth(doc, answer(chat(doc)))
    assert found.values["same"] == 1
    assert found.violations == ({} if n <= 4 else {"too_few_sentences": n - 4})


@pytest.mark.parametrize("task", ["haven_saliency", "haven_saliency_doc", "haven_saliency_text"])
def test_ties_keep_the_best_ranking_below_one(task: str, folder: Path) -> None:
    for doc in docs(folder, task):
        found = worth(doc, answer(chat(doc)))
        for name in ("spearman", "kendall"):
            assert 0.8 < (found.best[name] or 0) < 0.9999
            assert found.values[name] == pytest.approx(found.best[name])


@ALL
def test_wrong_labels_in_the_data_show(task: str, folder: Path) -> None:
    """The key of the doc is turned round; the request is not."""
    for doc in docs(folder, task)[:2]:
        reply = answer(chat(doc))
        wrong = {
            **doc,
            "importance": [-value for value in doc["importance"]],
            "keyframes": [n for n in range(1, len(doc["picks"]) + 1) if n not in doc["keyframes"]],
            "summary": doc["summary"][::-1],
            "summary_shots": [[1] for _ in doc["summary_shots"]],
            "units": doc["units"] if task != "haven_temporal" else doc["units"][::-1],
        }
        if doc["kind"] == "temporal":
            wrong["units"] = [len(doc["shots"]) - unit for unit in doc["units"]]
        found = worth(wrong, reply)
        assert all((value or 0) < 0.7 for value in found.values.values())


@pytest.mark.parametrize("form", [chat, simple])
@pytest.mark.parametrize("task", ["haven_temporal", "haven_saliency", "haven_v2v", "haven_v2t"])
def test_pictures_in_another_order_show(
    task: str, form: Callable[[dict[str, Any]], Parts], folder: Path
) -> None:
    doc = docs(folder, task)[0]
    parts = form(doc)
    pictures = [part for part in parts if not isinstance(part, str)]
    turned = iter(pictures[::-1])
    other = [part if isinstance(part, str) else next(turned) for part in parts]
    reply = answer(other)
    assert reply != answer(parts)
    if task == "haven_temporal":
        assert worth(doc, reply).values["spearman"] != 1


@ALL
def test_a_request_that_lost_something_is_not_answered(task: str, folder: Path) -> None:
    doc = docs(folder, task)[0]
    for parts in both(doc):
        texts = [part for part in parts if isinstance(part, str)]
        if len(texts) < len(parts):
            black = [p if isinstance(p, str) else Image.new("RGB", p.size) for p in parts]
            assert sample_oracle.reply(black) is None
            assert sample_oracle.reply(texts) is None
            one = next(n for n, part in enumerate(parts) if not isinstance(part, str))
            assert sample_oracle.reply([*parts[:one], black[one], *parts[one + 1 :]]) is None
        last = next(n for n in reversed(range(len(parts))) if isinstance(parts[n], str))
        assert sample_oracle.reply([*parts[:last], *parts[last + 1 :]]) is None
    if doc["kind"] in ("v2v", "v2vt"):
        unasked = [
            part.replace(f"xactly {doc['budget']} ", "a few ").replace(
                f"EXACTLY {doc['budget']} ", "a few "
            )
            if isinstance(part, str)
            else part
            for part in chat(doc)
        ]
        assert sample_oracle.reply(unasked) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Which statement is true?\nA. The box is red.\nB. The box is blue.",
        "Write a summary in 3-5 sentences.",
        "1. a red circle on a white ground\nWrite a summary.",
        "Shot 1: a red circle on a white ground.\nShot X > Shot Y",
        "Clip 1: a red circle on a white ground.\nSummary 1: Clip X, Clip Y",
    ],
)
def test_other_requests_are_left_to_others(text: str) -> None:
    grey = Image.new("RGB", (160, 128), (90, 90, 90))
    for parts in ([text], [grey, text], [text, grey, grey]):
        assert sample_oracle.reply(parts) is None
        assert sample_coin.reply(parts) is None


# --- the coin ---------------------------------------------------------------------------------


@ALL
def test_the_coin_keeps_the_form_and_is_fixed_by_seed(task: str, folder: Path) -> None:
    replies = set()
    for doc in docs(folder, task):
        for form in (chat, simple):
            reply = sample_coin.reply(form(doc))
            assert reply is not None
            assert reply == sample_coin.reply(form(doc))
            found = worth(doc, reply)
            assert (found.status, found.violations) == ("ok", {})
        replies |= {reply, str(sample_coin.reply(form(doc), seed=1))}
    assert len(replies) > 12  # of 16, by video and seed; short orders may be drawn twice


def test_the_coin_sees_the_pictures(folder: Path) -> None:
    """Two videos with the same number of frames have the same text."""
    parts = chat(docs(folder, "haven_v2v")[0])
    pictures = [part for part in parts if not isinstance(part, str)]
    turned = iter(pictures[::-1])
    other = [part if isinstance(part, str) else next(turned) for part in parts]
    assert [sample_coin.reply(parts, n) for n in range(5)] != [
        sample_coin.reply(other, n) for n in range(5)
    ]


def assert_chance(values: Iterable[float], mean: float, deviation: float) -> None:
    """Within four standard errors of what is expected, and spread about as it should be."""
    found = list(values)
    got = math.fsum(found) / len(found)
    assert abs(got - mean) < 4 * deviation / math.sqrt(len(found))
    spread = math.sqrt(math.fsum((value - got) ** 2 for value in found) / len(found))
    assert 0.85 < spread / deviation < 1.15


def test_the_coin_gets_chance(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = 800
    read = sample_request.read
    for task, metric in (
        ("v2v_text", "f1"),
        ("saliency_text", "spearman"),
        ("temporal_text", "kendall"),
    ):
        doc = docs(folder, f"haven_{task}")[0]
        parts = chat(doc)
        request = read(parts)
        monkeypatch.setattr(sample_request, "read", lambda _, request=request: request)  # once
        replies = [str(sample_coin.reply(parts, seed)) for seed in range(drawn)]
        values = [worth(doc, reply).values[metric] or 0.0 for reply in replies]
        if metric == "f1":
            n, k = len(doc["picks"]), doc["budget"]
            mean = keyframes.chance(n, k, k).f1
            deviation = math.sqrt(mean * (1 - mean) * (n - k) / (n - 1) / k)
        else:
            truth = (
                [float(unit) for unit in doc["units"]]
                if doc["kind"] == "temporal"
                else rankings.importance_ranks(doc["importance"])
            )
            mean = 0.0
            deviation = math.sqrt(getattr(rankings.chance_variance(truth), metric))
        assert_chance(values, mean, deviation)
