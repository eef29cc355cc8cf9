"""What a doc brings along: the prompts of the user, sound as samples, what a mode does not have."""

from __future__ import annotations

import shutil
import wave
from pathlib import Path

import pytest

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.errors import MediaError, PromptError
from lmms_eval_tasks.maverix import inputs, utils
from tests.maverix import runs
from tests.maverix.runs import sample

__all__ = ["sample"]
pytestmark = pytest.mark.usefixtures("sample")


class TestPrompts:
    """Texts of the user in place of ours."""

    @pytest.fixture
    def mine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        file = tmp_path / "maverix" / "task.yml"
        file.parent.mkdir()
        shutil.copy(Path(utils.__file__).parent / "prompts" / "task.yml", file)
        monkeypatch.setenv(settings.PROMPTS, str(tmp_path))
        return file

    @pytest.mark.parametrize(
        ("part", "lost"),
        [
            ("choice", "{options}"),
            ("choice", "{question}"),
            ("choice", "{subtitles}"),
            ("open", "{question}"),
            ("subtitles", "{cues}"),
        ],
    )
    def test_a_missing_placeholder_stops(self, part: str, lost: str, mine: Path) -> None:
        import yaml

        texts = yaml.safe_load(mine.read_text(encoding="utf-8"))
        texts[part] = texts[part].replace(lost, "")
        mine.write_text(yaml.safe_dump(texts), encoding="utf-8")
        with pytest.raises(PromptError, match=f"task.yml.*{part}.*{lost}"):
            inputs.task_prompts()

    def test_the_users_text_is_shown(self, mine: Path) -> None:
        text = mine.read_text(encoding="utf-8").replace("The best answer is:", "Mine:")
        mine.write_text(text, encoding="utf-8")
        doc = runs.docs("choice", "av")[0]
        told = utils.doc_to_text(doc, {"pre_prompt": "<", "post_prompt": ">"})
        assert told.startswith("<No subtitles are given")
        assert told.rstrip().endswith("Mine:>")
        assert f"\nH. {doc['options'][7]}\n" in told
        assert inputs.task_prompts().source == str(mine)

    def test_texts_of_the_data_are_no_templates(self) -> None:
        doc = {**runs.docs("choice")[0], "question": "{options} {cues}?"}
        assert "{options} {cues}?" in utils.doc_to_text(doc)


class TestMedia:
    """What is handed over, where the shared tests of the media do not look."""

    def test_no_sound_is_an_error_that_names_the_video(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(MediaError, match=r"lights.*no audio stream, and av needs sound"):
            inputs.sounding(None, runs.docs("choice", "av")[0])
        assert inputs.sounding("x.wav", {}) == "x.wav"

    def test_subtitles_alone_are_no_visual(self) -> None:
        doc = runs.docs("choice", "s")[0]
        assert utils.doc_to_visual(doc) == []
        (message,) = utils.doc_to_messages(doc)
        assert [part["type"] for part in message["content"]] == ["text"]

    def test_samples_of_a_wav(self, tmp_path: Path) -> None:
        path = tmp_path / "x.wav"
        with wave.open(str(path), "wb") as out:
            out.setparams((1, 2, 16000, 0, "NONE", ""))
            out.writeframes(b"\x00\x00\x00\x40\x00\x80")
        made = inputs.samples(str(path))
        assert made["array"].tolist() == [0, 0.5, -1]
        assert (made["array"].dtype, made["sampling_rate"]) == ("float32", 16000)

    def test_sound_state_of_an_item(self) -> None:
        with running.model(running.Model("qwen2_5_omni", "simple")):
            heard = {mode: utils.identity(runs.docs("choice", mode)[0])["sound"] for mode in "asv"}
            state = running.sound(with_picture=False)
        assert heard == {"a": state, "s": "", "v": ""}
        assert utils.identity(runs.docs("choice", "a")[0])["sound"] == "unknown"
