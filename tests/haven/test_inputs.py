"""What a model is given for each task: parts in their order, counts, formats; the user's texts."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.haven import inputs
from lmms_eval_tasks.haven.options import KINDS, TASKS, budget
from lmms_eval_tasks.haven.settings import HAVEN
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.host import task_functions
from tests.checks import own_prompts
from tests.haven.docs import chat, doc, simple, text

PROXIES = [name for name, task in TASKS.items() if task.text]
DOCUMENT = (
    "In the story, thing ba appears. In the story, thing ca appears. "
    "In the story, thing da appears. In the story, thing ea appears."
)


@pytest.fixture(autouse=True)
def numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture is the number of its frame."""
    monkeypatch.setattr(inputs, "pictures", lambda path, picks, numbers: list(numbers))


def test_what_is_true_of_every_request() -> None:
    for task in TASKS:
        given = doc(task)
        asked = chat(given)
        assert all(not (isinstance(a, str) and isinstance(b, str)) for a, b in pairwise(asked))
        assert "" not in asked
        pictures = [part for part in asked if isinstance(part, int)]
        assert len(pictures) == given["n_images"]
        assert simple(given)[:-1] == pictures
        assert (DOCUMENT in text(given)) == task.endswith("_doc")
    broken = doc("haven_v2v_text", descriptions=["One\n\nFrame 2: two", "", *["x"] * 10])
    assert "\nFrame 1: One Frame 2: two\nFrame 2: (not described)\nFrame 3: x" in text(broken)
    told = text(doc("haven_saliency_doc", document=["A sign says {n} and {nobody}."]))
    assert "A sign says {n} and {nobody}." in told


# --- numbers and output formats of the appendix, in our own prompts -------------------------------


def test_what_exactly_is_asked_for() -> None:
    for task in ("haven_v2v", "haven_v2v_text"):
        for n_frames in (3, 20, 165):
            told = text(doc(task, frames=n_frames, shots=3))
            k = budget(n_frames)
            assert re.findall(r"exactly (\d+) element", told) == [str(k)]
            for words in ("ONLY a JSON array", "1-indexed", "no explanation"):
                assert words in told
            (shown,) = re.findall(r"Example[^\n]*for (\d+) frame.s.: (\[.*\])", told)
            assert json.loads(shown[1]) == [1, 5, 12][: int(shown[0])]
            assert int(shown[0]) == min(k, 3)
    for task in ("haven_v2vt", "haven_v2vt_text"):
        for n_frames, k, form in ((3, 1, "X"), (13, 2, "X, Y"), (40, 6, "X, Y, ...")):
            told = text(doc(task, frames=n_frames, shots=3, n_sentences=5))
            label = "" if task in PROXIES else "Frame "
            shown = form.replace("X", f"{label}X").replace("Y", f"{label}Y")
            assert re.search(rf"TASK 1:.*EXACTLY 5 sentence.*\nTASK 2:.*EXACTLY {k} most", told)
            assert told.endswith(
                "\nSUMMARY:\n1. [sentence 1]\n2. [sentence 2]\n...\n5. [sentence 5]\n"
                f"IMPORTANT FRAMES: [{shown}]"
            )
    assert "3-5 sentences" in text(doc("haven_v2t"))
    told = text(doc("haven_v2t_text", n_sentences=1))
    assert "EXACTLY 1 sentence" in told
    assert told.endswith("SUMMARY:\n1. [sentence 1]")


# --- simple models: one text, in which every picture is found without placeholders too -----------


def test_the_same_text_with_placeholders() -> None:
    """Without what is there for simple models alone, it is the chat model's text."""
    for task in TASKS:
        given = doc(task)
        asked = "".join(part if isinstance(part, str) else "<image>" for part in chat(given))
        told = text(given)
        bare = re.sub(r" \(images? \d+( to \d+)?\)(?=:\n)", "", told)
        placed = task != "haven_v2t"  # one text behind all pictures needs no placeholders
        asked = asked if placed else asked.replace("<image>", "")
        bare = bare.replace("Image i of this request is Frame i, for i from 1 to 12.\n\n", "")
        assert bare == asked
        assert told.count("<image>") == given["n_images"] * placed
        assert (told == asked) == (task == "haven_v2t" or task in PROXIES)
        assert ("image" in told.lower()) == (placed and task not in PROXIES)


# --- texts of the user in place of ours -----------------------------------------------------------


def test_the_users_text_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = own_prompts(
        tmp_path, monkeypatch, "haven", "task", v2t_ask="Mine.", more_images="({first} bis {last})"
    )
    assert chat(doc("haven_v2t"))[-1].endswith("\n\nMine.")
    assert "\nShot 2 (3 bis 4):\n" in text(doc("haven_temporal"))
    assert inputs.task_prompts().source == str(file)
    file = own_prompts(
        tmp_path / "other", monkeypatch, "haven", "task", temporal_open="{n} of {id}:"
    )
    with pytest.raises(PromptError, match=r"temporal_open.*unknown placeholder \{id\}") as error:
        chat(doc("haven_v2t"))
    assert str(file) in str(error.value)


# --- system texts -------------------------------------------------------------------------------


def test_a_system_text_for_each_task_only_if_the_user_chose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turns(task: str) -> list[str]:
        return [one["role"] for one in task_functions.doc_to_messages(doc(task))]

    assert {tuple(turns(task)) for task in TASKS} == {("user",)}
    monkeypatch.setenv(HAVEN, "system=task")
    for task, variant in TASKS.items():
        # A text proxy has no system text, in the authors' code either.
        assert turns(task) == (["user"] if variant.text else ["system", "user"]), task
    said = {task: inputs.system_text(doc(task)) for task in TASKS if task not in PROXIES}
    assert said["haven_temporal"] == said["haven_temporal_doc"]
    assert len(set(said.values())) == len(KINDS)
    assert BENCHMARK.prompts([])["system"].source.endswith("haven/prompts/system.yml")
    file = own_prompts(tmp_path, monkeypatch, "haven", "system", v2t="Theirs.")
    first, _ = task_functions.doc_to_messages(doc("haven_v2t"))
    assert first["content"] == [{"type": "text", "text": "Theirs."}]
    assert inputs.system_prompts().source == str(file)
    # A simple model's text has no place for it.
    assert "Theirs." not in text(doc("haven_v2t"))
