"""The sample's players: the oracle reaches the best value of every item, the coin gets chance.

Scripted replies of known worth too, which are made from a doc.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image

from lmms_eval_tasks import settings
from lmms_eval_tasks.haven import sample_players as players
from lmms_eval_tasks.haven import tasks
from lmms_eval_tasks.haven.options import TASKS, parse
from lmms_eval_tasks.sample import players as all_players
from lmms_eval_tasks.utils import answers
from tests.haven.docs import chat, doc, simple
from tests.haven.sample_requests import build, docs


class Worth(NamedTuple):
    """Metric -> value and the best value; ROUGE's best is 1."""

    values: dict[str, float]
    best: dict[str, float]
    status: str
    violations: dict[str, int]


def worth(given: dict[str, Any], reply: str) -> Worth:
    found = tasks.score(tasks.keep(given), reply)
    values = {name: value or 0.0 for name, value in found["scores"].items()}
    best = {name: found["baselines"].get(f"{name}_best", 1.0) or 0.0 for name in values}
    return Worth(values, best, found["status"], found["violations"])


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


def answer(parts: list[Any]) -> str:
    reply = players.oracle(parts)
    assert reply is not None
    return reply


def turned(parts: list[Any]) -> list[Any]:
    """With its pictures in the opposite order."""
    pictures = iter([part for part in parts if not isinstance(part, str)][::-1])
    return [part if isinstance(part, str) else next(pictures) for part in parts]


# --- the oracle -----------------------------------------------------------------------------------


def test_it_reaches_the_best_value_of_every_item(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("frames_per_shot=1", "frames_per_shot=0,size=96", "max_shots=3,seed=5")
    for given in ("", *options, "sentences=reference"):
        monkeypatch.setenv(settings.HAVEN, given)
        for task, variant in TASKS.items():
            asked = docs(folder, task)
            assert len(asked) == 8
            for one in asked[3:5] if given else asked:
                for parts in (chat(one), simple(one)):
                    found = worth(one, answer(parts))
                    assert found.values == pytest.approx(found.best), (task, one["id"])
                    assert (found.status, found.violations) == ("ok", {}), (task, one["id"])
                if variant.kind == "saliency" and not given:  # shots tie
                    assert all(0.8 < value < 0.9999 for value in found.best.values())
    monkeypatch.delenv(settings.HAVEN)
    for task in ("haven_v2vt", "haven_v2t_text", "haven_v2vt_text"):
        for n in (1, 2, 6):
            one = docs(folder, task, parse(f"sentences={n}"))[0]
            found = worth(one, answer(chat(one)))
            assert found.values["rouge"] == 1
            name = "too_few_sentences" if task == "haven_v2t_text" else "summary_too_few_sentences"
            assert found.violations == ({} if n <= 4 else {name: n - 4})


def test_wrong_labels_and_pictures_in_another_order_show(folder: Path) -> None:
    for task in TASKS:
        for one in docs(folder, task)[:2]:
            reply = answer(chat(one))
            units = one["units"] if task != "haven_temporal" else one["units"][::-1]
            if one["kind"] == "temporal":
                units = [len(one["shots"]) - unit for unit in one["units"]]
            wrong = {
                **one,
                "importance": [-value for value in one["importance"]],
                "keyframes": sorted({*range(1, len(one["picks"]) + 1)} - {*one["keyframes"]}),
                "summary": ["Nothing of the kind."],
                "summary_shots": [[1] for _ in one["summary_shots"]],
                "units": units,
            }
            assert all(value < 0.7 for value in worth(wrong, reply).values.values()), task
    for task in ("haven_temporal", "haven_saliency", "haven_v2v", "haven_v2t"):
        one = docs(folder, task)[0]
        for parts in (chat(one), simple(one)):
            assert answer(turned(parts)) != answer(parts)


def test_a_request_that_lost_something_is_not_answered(folder: Path) -> None:
    for task in TASKS:
        one = docs(folder, task)[0]
        for parts in (chat(one), simple(one)):
            texts = [part for part in parts if isinstance(part, str)]
            if len(texts) < len(parts):
                black = [p if isinstance(p, str) else Image.new("RGB", p.size) for p in parts]
                first = next(n for n, part in enumerate(parts) if not isinstance(part, str))
                single = [*parts[:first], black[first], *parts[first + 1 :]]
                for lost in (black, texts, single):
                    assert players.oracle(lost) is None
            last = next(n for n in reversed(range(len(parts))) if isinstance(parts[n], str))
            assert players.oracle([*parts[:last], *parts[last + 1 :]]) is None
        if one["kind"] in ("v2v", "v2vt"):
            k = one["budget"]
            unasked = [
                part.replace(f"xactly {k} ", "a few ").replace(f"EXACTLY {k} ", "a few ")
                if isinstance(part, str)
                else part
                for part in chat(one)
            ]
            assert players.oracle(unasked) is None


def test_other_requests_are_left_to_others() -> None:
    grey = Image.new("RGB", (160, 128), (90, 90, 90))
    for text in (
        "",
        "Which statement is true?\nA. The box is red.\nB. The box is blue.",
        "Write a summary in 3-5 sentences.",
        "1. a red circle on a white ground\nWrite a summary.",
        "Shot 1: a red circle on a white ground.\nShot X > Shot Y",
        "Clip 1: a red circle on a white ground.\nSummary 1: Clip X, Clip Y",
    ):
        for parts in ([text], [grey, text], [text, grey, grey]):
            assert players.oracle(parts) is players.coin(parts) is None


# --- the coin -------------------------------------------------------------------------------------


def test_the_coin_keeps_the_form_and_is_fixed_by_seed(folder: Path) -> None:
    for task in TASKS:
        replies = set()
        for one in docs(folder, task):
            for parts in (chat(one), simple(one)):
                reply = players.coin(parts)
                assert reply is not None
                assert reply == players.coin(parts)
                found = worth(one, reply)
                assert (found.status, found.violations) == ("ok", {})
            replies |= {reply, players.coin(parts, seed=1)}
        assert len(replies) > 12  # of 16, by video and seed; short orders may be drawn twice
    # Two videos with the same number of frames have the same text: it sees the pictures.
    parts = chat(docs(folder, "haven_v2v")[0])
    other = turned(parts)
    assert [players.coin(parts, n) for n in range(5)] != [players.coin(other, n) for n in range(5)]


# --- scripted replies -----------------------------------------------------------------------------


def test_scripted_replies() -> None:
    """Right reaches the best value, wrong is worse and well formed, unreadable is not read."""
    for task, variant in TASKS.items():
        for frames, shots in ((12, 4), (40, 8), (20, 2)):
            asked = doc(task, frames, shots, sentences=min(shots, 4))
            right = worth(asked, players.reply(asked, "right"))
            assert right.values == pytest.approx(right.best), (task, frames)
            few = {"too_few_sentences", "summary_too_few_sentences"}  # there may be too few
            assert (right.status, set(right.violations) - few) == ("ok", set())
            wrong = worth(asked, players.reply(asked, "wrong"))
            assert wrong.status == "ok"
            assert all(value < wrong.best[name] for name, value in wrong.values.items())
            assert set(wrong.violations) <= few
        for true in ([3], list(range(1, 30))):  # fewer and more than are asked for
            asked = doc(task, 40, 8, keyframes=true)
            right = worth(asked, players.reply(asked, "right"))
            assert right.values == pytest.approx(right.best)
        reply = players.reply(doc(task), "unreadable")
        status = worth(doc(task), reply).status
        assert (reply == "", status) == (
            (True, "empty") if variant.kind == "v2t" else (False, "unparsed")
        )
        for kind in ("right", "wrong", "unreadable"):
            assert players.reply(doc(task, not_run="why"), kind) == "skipped"
    assert answers.read_choice(all_players.UNREADABLE, ["a", "b"]).status == "unparsed"
    asked = doc("haven_grounding", 12, 3, 1, summary_shots=[[1, 2, 3]])
    assert players.reply(asked, "wrong") == "Summary 1: Clip 1"
    for n, expected in ((0, 3), (1, 1), (2, 2), (3, 3), (9, 3)):
        fitted = players.fitted(["a.", "b.", "c."], n)
        assert (len(fitted), " ".join(fitted)) == (expected, "a. b. c.")
