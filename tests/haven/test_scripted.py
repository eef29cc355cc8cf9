"""Scripted replies: of the worth they are said to have, on any doc of any task."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import scripted
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.sample import players
from lmms_eval_tasks.utils import answers
from tests.haven.docs import doc
from tests.haven.sample_values import worth

ALL = pytest.mark.parametrize("task", TASKS)


@ALL
def test_right_reaches_the_best_value(task: str) -> None:
    for frames, shots in ((12, 4), (40, 8), (20, 2)):
        asked = doc(task, frames, shots, sentences=min(shots, 6))
        found = worth(asked, scripted.reply(asked, "right"))
        assert found.values == pytest.approx(found.best)
        assert found.status == "ok"


@ALL
def test_right_keeps_to_the_form(task: str) -> None:
    asked = doc(task, 40, 8, sentences=4)
    assert worth(asked, scripted.reply(asked, "right")).violations == {}


@pytest.mark.parametrize("task", ["haven_v2v", "haven_v2vt", "haven_v2v_text"])
@pytest.mark.parametrize("true", [[2], [1, 5, 9], list(range(1, 31))])
def test_right_with_another_number_of_keyframes_than_asked_for(task: str, true: list[int]) -> None:
    asked = doc(task, 40, 8, keyframes=true)
    found = worth(asked, scripted.reply(asked, "right"))
    assert found.values == pytest.approx(found.best)
    assert not {"too_many", "too_few"} & set(found.violations)


@ALL
def test_wrong_is_worse_and_well_formed(task: str) -> None:
    for frames, shots in ((12, 4), (40, 8), (20, 2)):
        asked = doc(task, frames, shots, sentences=min(shots, 4))
        found = worth(asked, scripted.reply(asked, "wrong"))
        assert found.status == "ok"
        assert all((value or 0) < (found.best[name] or 0) for name, value in found.values.items())
        if asked["kind"] not in ("v2vt", "v2t"):  # there may be too few sentences
            assert found.violations == {}


@ALL
def test_unreadable_is_not_read(task: str) -> None:
    asked = doc(task)
    reply = scripted.reply(asked, "unreadable")
    if asked["kind"] == "v2t":
        assert reply == ""
    else:
        assert worth(asked, reply).status == "unparsed"


def test_unreadable_is_no_choice_either() -> None:
    assert answers.read_choice(players.UNREADABLE, ["a", "b"]).status == "unparsed"


def test_wrong_of_a_sentence_about_all_clips_names_one() -> None:
    asked = doc("haven_grounding", 12, 3, 1, summary_shots=[[1, 2, 3]])
    assert scripted.reply(asked, "wrong") == "Summary 1: Clip 1"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(0, ["a.", "b.", "c."]), (1, ["a. b. c."]), (2, ["a.", "b. c."]), (3, ["a.", "b.", "c."])],
)
def test_fitted(asked: int, expected: list[str]) -> None:
    assert scripted.fitted(["a.", "b.", "c."], asked) == expected
    assert scripted.fitted(["a.", "b.", "c."], 9) == ["a.", "b.", "c."]


def test_players_draw_the_worth_by_video_and_task() -> None:
    names = [f"tvsum/video_{n}" for n in range(1, 301)]
    by_task = {}
    for task in TASKS:
        asked = [doc(task, 12, 4, id=name) for name in names]
        replies = [players.scripted(one) for one in asked]
        assert replies == [players.scripted(one) for one in asked]
        known = {
            scripted.reply(one, worth): worth
            for one in asked[:1]
            for worth in ("right", "wrong", "unreadable")
        }
        by_task[task] = [known[reply] for reply in replies]
    drawn = Counter(worth for worths in by_task.values() for worth in worths)
    total = sum(drawn.values())
    assert abs(drawn["right"] / total - players.RIGHT_SHARE) < 0.03
    assert abs(drawn["unreadable"] / total - players.UNREADABLE_SHARE) < 0.015
    assert len({tuple(worths) for worths in by_task.values()}) == len(TASKS)


def without(made: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in made.items() if name != field}


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ("haven_v2t", "summary"),
        ("haven_v2v", "budget"),
        ("haven_v2vt", "picks"),
        ("haven_temporal", "units"),
        ("haven_saliency", "importance"),
        ("haven_grounding", "summary_shots"),
        ("haven_v2t", "id"),
        ("haven_v2t", "with_document"),
    ],
)
def test_a_doc_that_lacks_a_field(task: str, field: str) -> None:
    made = without(doc(task), field)
    with pytest.raises(TasksError, match="tasks_scripted needs docs of HAVEN") as error:
        (scripted.item(made), scripted.reply(made, "right"))
    assert "\n" not in str(error.value)


def test_a_doc_that_is_none_of_ours() -> None:
    for made in ({**doc("haven_v2t"), "kind": "v3t"}, {**doc("haven_saliency"), "importance": []}):
        with pytest.raises(TasksError, match="tasks_scripted needs docs of HAVEN"):
            scripted.reply(made, "right")
    with pytest.raises(TasksError, match="tasks_scripted"):
        players.scripted({"kind": "v2t"})
