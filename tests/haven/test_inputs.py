"""What a model is given for each task: parts in their order, counts, formats; the user's texts."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.haven import inputs, pictures, wording
from lmms_eval_tasks.haven.options import TASKS, budget
from tests.haven.docs import doc, own_prompts

PICTURED = [name for name, task in TASKS.items() if not task.text]
PROXIES = [name for name, task in TASKS.items() if task.text]
DOCUMENT = (
    "In the story, thing ba appears. In the story, thing ca appears. "
    "In the story, thing da appears. In the story, thing ea appears."
)
# Each part of the prompt file as its own name and values, so that a request shows its structure.
TAGS = {
    part: f"<{part}{''.join(f' {name}={{{name}}}' for name in sorted(names))}>"
    for part, names in inputs._PLACEHOLDERS.items()
}


@pytest.fixture
def tagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_prompts(tmp_path, monkeypatch, **TAGS)


def frames_of(asked: list[str | int]) -> list[int]:
    return [part for part in asked if isinstance(part, int)]


def behind(label: str, *groups: list[int]) -> list[str | int]:
    """Groups of pictures, with a label between one and the next; the first one's is not there."""
    made: list[str | int] = list(groups[0])
    for place, group in enumerate(groups[1:], 2):
        made += [f"\n\n{label} {place}:\n", *group]
    return made


NAMES = "names=Shot 1, Shot 2, ..., Shot 4"
SHUFFLED = behind("Shot", [4, 5], [10, 11], [1, 2], [7, 8])
IN_ORDER = behind("Shot", [1, 2], [4, 5], [7, 8], [10, 11])
FRAMES = behind("Frame", *([n] for n in range(1, 8)))
CLIPS = behind("Clip", [1, 2], [4, 5], [7, 8], [10, 11])
SENTENCES = (
    "Summary 1: In short: thing ca.\nSummary 2: In short: thing ba.\nSummary 3: In short: thing da."
)
FORM = "form=Shot X > Shot Y > Shot Z > ..."
VIEWS = "\n".join(f"Frame {n}: A view of thing {'bcdefgh'[n - 1]}a." for n in range(1, 8))
SHOTS = "\n".join(f"Shot {n}: Somebody handles thing {'bcde'[n - 1]}a." for n in range(1, 5))
ORDERING = f"{FORM} n=4 {NAMES}>"
NUMBERED = "numbered=1. [sentence 1]\n2. [sentence 2]\n...\n4. [sentence 4]"
JOINT = f"k=1 n_sentences=4 names=Frame 1, Frame 2, ..., Frame 7 {NUMBERED}"

STRUCTURES: dict[str, list[str | int]] = {
    "haven_v2t": ["<v2t_open>\n\n", *range(1, 8), "\n\n<v2t_ask>"],
    "haven_v2v": [
        "<v2v_open n_frames=7>\n\nFrame 1:\n",
        *FRAMES,
        "\n\n<v2v_ask example=[1] k=1 n_example=1>",
    ],
    "haven_v2vt": ["Frame 1:\n", *FRAMES, f"\n\n<v2vt_ask {JOINT} picked=Frame X>"],
    "haven_temporal": [
        "<temporal_open n=4>\n\nShot 1:\n",
        *SHUFFLED,
        f"\n\n<temporal_ask {ORDERING}",
    ],
    "haven_temporal_doc": [
        f"<temporal_open n=4>\n\n<temporal_document document={DOCUMENT}>\n\nShot 1:\n",
        *SHUFFLED,
        f"\n\n<temporal_ask {ORDERING}",
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
    "haven_v2v_text": [f"<v2v_text_open>\n\n{VIEWS}\n\n<v2v_text_ask example=[1] k=1 n_example=1>"],
    "haven_v2vt_text": [
        f"<v2vt_text_open n_frames=7>\n\n{VIEWS}\n\n<v2vt_text_ask {JOINT} picked=X>"
    ],
    "haven_temporal_text": [
        "<temporal_text_open n=4>\n\n"
        "Sentence 1: In the story, thing ca appears.\nSentence 2: In the story, thing ea appears.\n"
        "Sentence 3: In the story, thing ba appears.\nSentence 4: In the story, thing da appears."
        f"\n\n<temporal_text_ask {ORDERING.replace('Shot', 'Sentence')}"
    ],
    "haven_grounding_text": [
        f"<grounding_text_open n=4>\n\n{SHOTS.replace('Shot', 'Clip')}\n\n"
        f"<grounding_sentences lines={SENTENCES} n_sentences=3>\n\n<grounding_ask>"
    ],
    "haven_saliency_text": [
        f"<saliency_text_open n=4>\n\n{SHOTS}\n\n<saliency_text_ask {ORDERING}"
    ],
}


class TestStructure:
    """Appendix C: inputs and their order."""

    @pytest.mark.parametrize("task", TASKS)
    def test_every_task(self, task: str, tagged: None) -> None:
        n_frames = 7 if "v2" in task else 12
        assert inputs.parts(doc(task, frames=n_frames)) == STRUCTURES[task]

    @pytest.mark.parametrize("task", TASKS)
    def test_no_two_texts_follow_each_other_and_none_is_empty(self, task: str) -> None:
        asked = inputs.parts(doc(task))
        assert all(not (isinstance(a, str) and isinstance(b, str)) for a, b in pairwise(asked))
        assert "" not in asked

    @pytest.mark.parametrize("task", TASKS)
    def test_every_picture_is_counted(self, task: str) -> None:
        expected = 0 if task in PROXIES else 12 if "v2" in task else 8
        assert (
            inputs.images_needed(doc(task)) == expected == len(frames_of(inputs.parts(doc(task))))
        )

    def test_the_document_is_only_where_the_task_gives_it(self) -> None:
        for task in TASKS:
            assert (DOCUMENT in inputs.text(doc(task))) == task.endswith("_doc")

    def test_a_description_is_one_line(self) -> None:
        broken = doc("haven_v2v_text", descriptions=["One\n\nFrame 2: two", *["x"] * 11])
        assert "\nFrame 1: One Frame 2: two\nFrame 2: x\n" in inputs.text(broken)

    def test_braces_in_the_data_are_no_placeholders(self) -> None:
        text = inputs.text(doc("haven_saliency_doc", document=["A sign says {n} and {nobody}."]))
        assert "A sign says {n} and {nobody}." in text


class TestWhatIsAsked:
    """Numbers and output formats of the appendix, in our own prompts."""

    @pytest.mark.parametrize("n_frames", [3, 7, 14, 20, 41, 165])
    @pytest.mark.parametrize("task", ["haven_v2v", "haven_v2v_text"])
    def test_a_json_array_of_exactly_k(self, task: str, n_frames: int) -> None:
        text = inputs.text(doc(task, frames=n_frames, shots=3))
        k = max(1, int(0.15 * n_frames + 1e-9))
        assert k == budget(n_frames)
        assert re.findall(r"exactly (\d+) element", text) == [str(k)]
        assert "ONLY a JSON array" in text
        assert "1-indexed" in text
        assert "no explanation" in text
        (shown,) = re.findall(r"Example[^\n]*for (\d+) frame.s.: (\[.*\])", text)
        example = json.loads(shown[1])
        assert len(example) == int(shown[0]) == min(k, 3)
        assert example == [1, 5, 12][: len(example)]
        assert all(1 <= number <= n_frames for number in example)

    @pytest.mark.parametrize(("k", "n_frames"), [(1, 1), (1, 3), (2, 4), (3, 11), (5, 12), (3, 5)])
    def test_the_example_is_of_frames_that_there_are(self, k: int, n_frames: int) -> None:
        example = wording.example(k, n_frames)
        assert 1 <= len(example) <= min(k, 3)
        assert all(1 <= number <= n_frames for number in example)

    @pytest.mark.parametrize("task", ["haven_v2vt", "haven_v2vt_text"])
    @pytest.mark.parametrize(
        ("n_frames", "k", "form"), [(3, 1, "X"), (15, 2, "X, Y"), (40, 6, "X, Y, ...")]
    )
    def test_both_tasks_at_once(self, task: str, n_frames: int, k: int, form: str) -> None:
        text = inputs.text(doc(task, frames=n_frames, shots=3, n_sentences=5))
        label = "" if task in PROXIES else "Frame "
        form = form.replace("X", f"{label}X").replace("Y", f"{label}Y")
        last = "Frame 3" if n_frames == 3 else f"..., Frame {n_frames}"
        assert f"out of: Frame 1, Frame 2, {last}." in text
        assert re.search(rf"TASK 1:.*EXACTLY 5 sentence.*\nTASK 2:.*EXACTLY {k} most", text)
        assert text.endswith(
            "\nSUMMARY:\n1. [sentence 1]\n2. [sentence 2]\n...\n5. [sentence 5]\n"
            f"IMPORTANT FRAMES: [{form}]"
        )

    def test_a_summary_of_few_sentences(self) -> None:
        assert "3-5 sentences" in inputs.text(doc("haven_v2t"))
        text = inputs.text(doc("haven_v2t_text", n_sentences=1))
        assert "EXACTLY 1 sentence" in text
        assert text.endswith("SUMMARY:\n1. [sentence 1]")
        three = inputs.text(doc("haven_v2t_text", n_sentences=3))
        assert three.endswith("1. [sentence 1]\n2. [sentence 2]\n3. [sentence 3]")
        assert "IMPORTANT FRAMES" not in three

    @pytest.mark.parametrize("task", [name for name in TASKS if "temporal" in name])
    def test_an_order_of_two_and_of_many(self, task: str) -> None:
        unit = "Sentence" if task in PROXIES else "Shot"
        few, many = (inputs.text(doc(task, frames=24, shots=n)) for n in (2, 20))
        assert f"\n{unit} X > {unit} Y\n" in few
        assert f"({unit} 1, {unit} 2)" in few
        assert f"\n{unit} X > {unit} Y > {unit} Z > ...\n" in many
        assert f"20 {unit.lower()}s ({unit} 1, {unit} 2, ..., {unit} 20)" in many
        for text in (few, many):
            assert re.search(r"ALL of them .* from the first to the last", text)
            assert text.endswith("exactly once.")
            assert "shuffled" in text

    @pytest.mark.parametrize("task", [name for name in TASKS if "saliency" in name])
    def test_a_ranking(self, task: str) -> None:
        text = inputs.text(doc(task))
        assert re.search(r"Rank ALL .* from the most important to the least important", text)
        assert "\nShot X > Shot Y > Shot Z > ...\n" in text
        assert "shuffled" not in text

    @pytest.mark.parametrize("task", ["haven_grounding", "haven_grounding_text"])
    def test_grounding(self, task: str) -> None:
        text = inputs.text(doc(task))
        assert text.endswith("\nSummary 1: Clip X, Clip Y")
        assert f"\n{SENTENCES}\n" in text
        assert "shuffled order" in text


class TestSimple:
    """One text with placeholders; every picture is found without them too."""

    @pytest.mark.parametrize("task", PICTURED)
    def test_the_same_text_with_placeholders(self, task: str) -> None:
        """Without what is there for simple models alone, it is the chat model's text."""
        chat = "".join(
            part if isinstance(part, str) else "<image>" for part in inputs.parts(doc(task))
        )
        simple = inputs.text(doc(task))
        bare = re.sub(r" \(images? \d+( to \d+)?\)(?=:\n)", "", simple)
        bare = bare.replace("Image i of this request is Frame i, for i from 1 to 12.\n\n", "")
        assert bare == chat
        assert simple.count("<image>") == inputs.images_needed(doc(task))
        assert (simple == chat) == (task == "haven_v2t")

    @pytest.mark.parametrize("task", PROXIES)
    def test_a_proxy_has_one_text_for_all(self, task: str) -> None:
        assert inputs.parts(doc(task)) == [inputs.text(doc(task))]
        assert "image" not in inputs.text(doc(task)).lower()

    def test_numbered_placeholders(self) -> None:
        text = inputs.text(doc("haven_temporal"), placeholder="<image {n}>")
        assert re.findall(r"<image (\d+)>", text) == [str(n) for n in range(1, 9)]
        assert "Shot 3 (images 5 to 6):\n<image 5><image 6>\n" in text

    def test_where_a_shot_is(self) -> None:
        odd = doc("haven_saliency", units=[1, 2, 4], unit_frames=[[2], [4, 5, 6], [9, 10]])
        text = inputs.text(odd, placeholder="")
        assert re.findall(r"Shot \d \(.*:", text) == [
            "Shot 1 (image 1):",
            "Shot 2 (images 2 to 4):",
            "Shot 3 (images 5 to 6):",
        ]
        assert "Clip 2 (images 3 to 4):" in inputs.text(doc("haven_grounding"))

    @pytest.mark.parametrize("task", ["haven_v2v", "haven_v2vt"])
    def test_which_frame_an_image_is(self, task: str) -> None:
        text = inputs.text(doc(task, frames=9))
        assert text.count("Image i of this request is Frame i, for i from 1 to 9.") == 1
        assert "(image" not in text

    def test_frames_of_a_summary_need_no_number(self) -> None:
        assert "mage " not in inputs.text(doc("haven_v2t"), placeholder="")


class TestPictures:
    """Numbers become pictures, in the same order for chat and simple models."""

    @pytest.fixture
    def taken(self, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
        asked: list[list[int]] = []

        def fake(given: Any, numbers: list[int]) -> list[str]:
            asked.append(list(numbers))
            return [f"picture {number} of {given['id']}" for number in numbers]

        monkeypatch.setattr(pictures, "pictures", fake)
        return asked

    @pytest.mark.parametrize("task", TASKS)
    def test_chat_and_simple(self, task: str, taken: list[list[int]]) -> None:
        (message,) = inputs.messages(doc(task))
        assert message["role"] == "user"
        assert message["content"] == inputs.content(doc(task))
        shown = [
            item["text"] if item["type"] == "text" else int(item["url"].split()[1])
            for item in message["content"]
        ]
        assert shown == inputs.parts(doc(task))
        assert inputs.visuals(doc(task)) == [
            item["url"] for item in message["content"] if item["type"] == "image"
        ]
        assert taken == [frames_of(shown)] * 3


class TestPrompts:
    """Texts of the user in place of ours."""

    @pytest.mark.parametrize(
        ("part", "lost"),
        [(part, name) for part, names in inputs._PLACEHOLDERS.items() for name in sorted(names)],
    )
    def test_a_missing_placeholder_stops(
        self, part: str, lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts = {part: TAGS[part].replace(f"{{{lost}}}", "")}
        file = own_prompts(tmp_path, monkeypatch, **texts)
        with pytest.raises(PromptError, match=rf"{part}.*\{{{lost}\}}.* missing") as error:
            inputs.parts(doc("haven_v2t"))
        assert str(file) in str(error.value)

    def test_an_unknown_placeholder_stops(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own_prompts(tmp_path, monkeypatch, temporal_open="{n} shots of {id}:")
        with pytest.raises(PromptError, match=r"temporal_open.*unknown placeholder \{id\}"):
            inputs.task_prompts()

    def test_a_missing_part_stops(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        own_prompts(tmp_path, monkeypatch, grounding_ask=None)
        with pytest.raises(PromptError, match="'grounding_ask' is missing"):
            inputs.text(doc("haven_v2t"))

    def test_the_users_text_is_shown(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = own_prompts(
            tmp_path, monkeypatch, v2t_ask="Mine.", more_images="({first} bis {last})"
        )
        assert inputs.parts(doc("haven_v2t"))[-1] == "\n\nMine."
        assert "\nShot 2 (3 bis 4):\n" in inputs.text(doc("haven_temporal"))
        assert inputs.task_prompts().source == str(file)

    def test_every_part_of_our_file_is_used(self) -> None:
        file = Path(inputs.__file__).parent / "prompts" / "task.yml"
        assert set(yaml.safe_load(file.read_text(encoding="utf-8"))) == set(inputs._PLACEHOLDERS)
        used = {part for layout in inputs._LAYOUTS.values() for part in layout if part}
        for_simple = {"frame_images", "one_image", "more_images"}
        assert used | for_simple == set(inputs._PLACEHOLDERS)
        kinds = {task.kind + ("_text" if task.text else "") for task in TASKS.values()}
        assert kinds == set(inputs._LAYOUTS)
