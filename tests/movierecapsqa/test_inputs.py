"""What a doc brings along: its muted clip or its frames, of the right seconds, and the prompts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import av
import datasets
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError, PromptError
from lmms_eval_tasks.movierecapsqa import data, inputs, utils
from lmms_eval_tasks.movierecapsqa.labels import SOURCES
from lmms_eval_tasks.utils import clips
from tests.movierecapsqa.entries import MOVIE, RATE, RECAP, second_of, seconds_of


def doc(source: str, segment: str = "talk.1", condition: str = "") -> dict[str, Any]:
    """The first doc of a segment, from the data that is set."""
    rows = datasets.Dataset.from_list(data.rows(data.load()))
    found = data.process_docs(source, condition)(rows)
    return next(dict(one) for one in found if one["segment"] == segment)


def expected(start: float, end: float) -> list[int]:
    """The second of every frame in [start, end)."""
    return [n // RATE for n in range(round(start * RATE), round(end * RATE))]


WINDOWS = {"segment": (3.2, 7.4), "recap": (0, RECAP), "scenes": (10.5, 16), "movie": (0, MOVIE)}


class TestClips:
    """The clip as a file: the window and nothing else, and no sound, which tells the answers."""

    @pytest.mark.parametrize("source", SOURCES)
    def test_every_source(self, source: str, user: Path) -> None:
        (path,) = clips.visuals(doc(source))
        with av.open(str(path)) as clip:
            assert [stream.type for stream in clip.streams] == ["video"]
        assert seconds_of(str(path)) == expected(*WINDOWS[source])
        shown = clips.shown_of(doc(source, condition="frames"))
        assert (shown.path, shown.frames) == (path, None)
        start, end = WINDOWS[source]
        assert (shown.start, shown.end) == (start, pytest.approx(end, abs=0.1))
        assert shown.duration == pytest.approx(end - start, abs=0.1)
        assert shown.n_frames == len(expected(start, end))
        assert (shown.width, shown.height) == (64, 48)

    def test_what_breaks_during_the_run_is_one_line(self, user: Path) -> None:
        broken = doc("segment")
        (user / "recaps" / "talk.mp4").unlink()
        gone = {**broken, "video_path": str(user / "recaps" / "talk.mp4")}
        with pytest.raises(MediaError, match=r"^talk.1/10: its clip cannot be made any more") as e:
            clips.visuals(gone)
        assert "\n" not in str(e.value)
        assert "--allow-bad-items" in str(e.value)


class TestFrames:
    """`--frames N`: uniform frames in order, as images."""

    @pytest.mark.parametrize("source", SOURCES)
    @pytest.mark.parametrize("number", [1, 5])
    def test_every_source(
        self, source: str, number: int, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.FRAMES, str(number))
        asked = doc(source)
        all_of_it = expected(*WINDOWS[source])
        # As numpy.linspace has them, rounded down: the first and the last one are among them.
        places = [n * (len(all_of_it) - 1) // max(number - 1, 1) for n in range(number)]
        images = clips.visuals(asked)
        assert [second_of(image) for image in images] == [all_of_it[place] for place in places]
        assert {(image.mode, image.size) for image in images} == {("RGB", (64, 48))}
        shown = clips.shown_of(asked)
        assert (shown.path, shown.n_frames, shown.width, shown.height) == ("", number, 64, 48)
        assert shown.duration == pytest.approx(len(all_of_it) / RATE, abs=0.1)

    def test_a_short_clip_gives_all_it_has(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.FRAMES, "100")
        asked = doc("segment", "talk.2")
        assert [second_of(image) for image in clips.visuals(asked)] == expected(8, 11)
        assert clips.shown_of(asked).n_frames == 30

    def test_no_copy_of_a_whole_movie(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def copied(*_: Any) -> Any:
            raise AssertionError("the movie was copied")

        monkeypatch.setattr(clips.segments, "segment", copied)
        monkeypatch.setenv(settings.FRAMES, "4")
        assert len(clips.visuals(doc("movie"))) == 4

    def test_clip_and_frames_are_not_mixed_up(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        as_file = doc("segment")
        monkeypatch.setenv(settings.FRAMES, "2")
        as_frames = doc("segment")
        for _ in range(2):
            assert isinstance(clips.visuals(as_file)[0], str)
            assert len(clips.visuals(as_frames)) == 2


class TestPrompts:
    """Texts of the user in place of ours."""

    @pytest.fixture
    def mine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        file = tmp_path / "movierecapsqa" / "task.yml"
        file.parent.mkdir()
        shutil.copy(Path(inputs.__file__).parent / "prompts" / "task.yml", file)
        monkeypatch.setenv(settings.PROMPTS, str(tmp_path))
        return file

    @pytest.mark.parametrize(
        ("part", "lost"),
        [
            ("both", "{dialogue}"),
            ("both", "{question}"),
            ("only_frames", "{question}"),
            ("only_dialogue", "{dialogue}"),
            ("only_dialogue", "{question}"),
            ("dialogue", "{lines}"),
        ],
    )
    def test_a_missing_placeholder_stops(self, part: str, lost: str, mine: Path) -> None:
        import yaml

        texts = yaml.safe_load(mine.read_text(encoding="utf-8"))
        texts[part] = texts[part].replace(lost, "")
        mine.write_text(yaml.safe_dump(texts), encoding="utf-8")
        with pytest.raises(PromptError, match=f"task.yml.*{part}.*{lost}"):
            inputs.task_prompts()

    def test_frames_alone_have_no_place_for_dialogue(self, mine: Path) -> None:
        import yaml

        texts = yaml.safe_load(mine.read_text(encoding="utf-8"))
        texts["only_frames"] += "\n{dialogue}"
        mine.write_text(yaml.safe_dump(texts), encoding="utf-8")
        with pytest.raises(PromptError, match=r"only_frames.*unknown placeholder \{dialogue\}"):
            inputs.task_prompts()

    def test_the_users_text_is_shown(self, mine: Path, user: Path) -> None:
        text = mine.read_text(encoding="utf-8").replace("No picture of the movie is given", "Mine")
        mine.write_text(text, encoding="utf-8")
        assert utils.doc_to_text(doc("movie", condition="dialogue")).startswith("Mine.")
        assert inputs.task_prompts().source == str(mine)
