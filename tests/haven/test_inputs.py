"""What a model is given for each task: parts in their order, counts, formats; the user's texts."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.haven import inputs
from lmms_eval_tasks.haven.options import TASKS, budget
from tests.haven.docs import chat, doc, own_prompts, simple, text

PROXIES = [name for name, task in TASKS.items() if task.text]
DOCUMENT = (
    "In the story, thing ba appears. In the story, thing ca appears. "
    "In the story, thing da appears. In the story, thing ea appears."
)


def _always(names: set[str]) -> set[str]:
    """Placeholders of our own text, of which `n_frames` lacks where it may."""
    return {name.rstrip("|") for name in names if name != "n_frames|"}


# Each part of the prompt file as its own name and values, so that a request shows its structure.
TAGS = {
    part: f"<{part}{''.join(f' {name}={{{name}}}' for name in sorted(_always(names)))}>"
    for part, names in inputs._PLACEHOLDERS.items()
}


@pytest.fixture(autouse=True)
def numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture is the number of its frame."""
    monkeypatch.setattr(inputs, "pictures", lambda given, numbers: list(numbers))


def behind(label: str, *groups: list[int]) -> list[str | int]:
    """Groups of pictures, with a label between one and the next; the first one's is not there."""
    made: list[str | int] = list(groups[0])
    for place, group in enumerate(groups[1:], 2):
        made += [f"\n\n{label} {place}:\n", *group]
    return made


NAMES = "names=Shot 1, Shot 2, ..., Shot 4"
SHUFFLED = behind("Shot", [4, 6], [10, 12], [1, 3], [7, 9])
IN_ORDER = behind("Shot", [1, 3], [4, 6], [7, 9], [10, 12])
FRAMES = behind("Frame", *([n] for n in range(1, 8)))
CLIPS = behind("Clip", [1, 3], [4, 6], [7, 9], [10, 12])
SENTENCES = (
    "Summary 1: In short: thing ca.\nSummary 2: In short: thing ba.\nSummary 3: In short: thing da."
)
FORM = "form=Shot X > Shot Y > Shot Z > ..."
VIEWS = "\n".join(f"Frame {n}: A view of thing {'bcdefgh'[n - 1]}a." for n in range(1, 8))
SHOTS = "\n".join(f"Shot {n}: Somebody handles thing {'bcde'[n - 1]}a." for n in range(1, 5))
ORDERING = f"{FORM} n=4 {NAMES}>"
NUMBERED = "numbered=1. [sentence 1]\n2. [sentence 2]\n...\n4. [sentence 4]"
JOINT = f"k=2 n_sentences=4 names=Frame 1, Frame 2, ..., Frame 7 {NUMBERED}"

STRUCTURES: dict[str, list[str | int]] = {
    "haven_v2t": [*range(1, 8), "<v2t_open>\n\n<v2t_ask>"],
    "haven_v2v": [
        "<v2v_open n_frames=7>\n\nFrame 1:\n",
        *FRAMES,
        "\n\n<v2v_ask example=[1, 5] k=2 n_example=2>",
    ],
    "haven_v2vt": [
        "<v2vt_open n_frames=7>\n\nShot 1 (Frame 1):\n",
        1,
        "\n\nShot 2 (Frames 2-3):\n",
        *(2, 3),
        "\n\nShot 3 (Frames 4-5):\n",
        *(4, 5),
        "\n\nShot 4 (Frames 6-7):\n",
        *(6, 7),
        f"\n\n<v2vt_ask {JOINT} picked=Frame X, Frame Y>",
    ],
    "haven_temporal": [
        "<temporal_open n=4>\n\nShot 1:\n",
        *SHUFFLED,
        f"\n\n<temporal_ask {ORDERING}",
    ],
    "haven_temporal_doc": [
        "<temporal_open n=4>\n\nShot 1:\n",
        *SHUFFLED,
        f"\n\n<temporal_document document={DOCUMENT}>\n\n<temporal_ask {ORDERING}",
    ],
    "haven_grounding": [
        "<grounding_open n=4>\n\nClip 1:\n",
        *CLIPS,
        f"\n\n<grounding_sentences lines={SENTENCES} n_sentences=3>\n\n<grounding_ask>",
    ],
    "haven_saliency": [
        "<saliency_open n=4>\n\nShot 1:\n",
        *IN_ORDER,
        f"\n\n<saliency_ask {ORDERING}",
    ],
    "haven_saliency_doc": [
        f"<saliency_document document={DOCUMENT}>\n\n<saliency_open n=4>\n\nShot 1:\n",
        *IN_ORDER,
        f"\n\n<saliency_ask {ORDERING}",
    ],
    "haven_v2t_text": [f"<v2t_text_open>\n\n{VIEWS}\n\n<v2t_text_ask n_sentences=4 {NUMBERED}>"],
    "haven_v2v_text": [
        f"<v2v_text_open>\n\n{VIEWS}\n\n<v2v_text_ask example=[1, 5] k=2 n_example=2>"
    ],
    "haven_v2vt_text": [
        f"<v2vt_text_open n_frames=7>\n\n{VIEWS}\n\n<v2vt_text_ask {JOINT} picked=X, Y>"
    ],
    "haven_temporal_text": [
        "<temporal_open n=4>\n\n"
        "Shot 1: Somebody handles thing ca.\nShot 2: Somebody handles thing ea.\n"
        "Shot 3: Somebody handles thing ba.\nShot 4: Somebody handles thing da."
        f"\n\n<temporal_ask {ORDERING}"
    ],
    "haven_grounding_text": [
        f"<grounding_text_open n=4>\n\n{SHOTS.replace('Shot', 'Clip')}\n\n"
        f"<grounding_sentences lines={SENTENCES} n_sentences=3>\n\n<grounding_ask>"
    ],
    "haven_saliency_text": [
        f"<saliency_text_open n=4>\n\n{SHOTS}\n\n<saliency_text_ask {ORDERING}"
    ],
}


# --- structure ------------------------------------------------------------------------------------


def test_every_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appendix C: inputs and their order."""
    with monkeypatch.context() as patched:
        own_prompts(tmp_path, patched, **TAGS)
        for task in TASKS:
            assert chat(doc(task, frames=7 if "v2" in task else 12)) == STRUCTURES[task], task
        by_frame = ["Frame 1:\n", *FRAMES, STRUCTURES["haven_v2vt"][-1]]
        assert chat(doc("haven_v2vt", frames=7, layout="v2vt_frames")) == by_frame
        assert chat(doc("haven_temporal_text", layout="temporal_sentences")) == [
            "<temporal_text_open n=4>\n\n"
            "Sentence 1: In the story, thing ca appears.\n"
            "Sentence 2: In the story, thing ea appears.\n"
            "Sentence 3: In the story, thing ba appears.\n"
            "Sentence 4: In the story, thing da appears."
            f"\n\n<temporal_text_ask {ORDERING.replace('Shot', 'Sentence')}"
        ]
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


def test_where_pictures_are() -> None:
    told = text(doc("haven_temporal"), placeholder="<image {n}>")
    assert "Shot 3 (images 5 to 6):\n<image 5><image 6>\n" in told
    told = text(doc("haven_saliency", units=[1, 2], unit_frames=[[2], [4, 5, 6]]), placeholder="")
    assert "Shot 1 (image 1):" in told
    assert "Shot 2 (images 2 to 4):" in told


# --- texts of the user in place of ours -----------------------------------------------------------


def test_the_users_text_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = own_prompts(tmp_path, monkeypatch, v2t_ask="Mine.", more_images="({first} bis {last})")
    assert chat(doc("haven_v2t"))[-1].endswith("\n\nMine.")
    assert "\nShot 2 (3 bis 4):\n" in text(doc("haven_temporal"))
    assert inputs.task_prompts().source == str(file)
    file = own_prompts(tmp_path / "other", monkeypatch, temporal_open="{n} of {id}:")
    with pytest.raises(PromptError, match=r"temporal_open.*unknown placeholder \{id\}") as error:
        chat(doc("haven_v2t"))
    assert str(file) in str(error.value)
