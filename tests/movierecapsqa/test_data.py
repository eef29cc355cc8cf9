"""MovieRecapsQA's rows and docs: which questions are asked, and what each task shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import datasets
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import checked, data, usability
from lmms_eval_tasks.movierecapsqa.checked import Checked
from lmms_eval_tasks.movierecapsqa.labels import CONDITIONS, SOURCES, condition_of, source_of
from tests.movierecapsqa.entries import SECRET, SPOKEN, entry, question, write

FOLDER = Path(data.__file__).parent
TASKS = [
    "_".join(filter(None, ("movierecapsqa", source, condition)))
    for source in SOURCES
    for condition in CONDITIONS
]
PICTURED = [task for task in TASKS if condition_of(task).picture]


def docs(task: str) -> list[dict[str, Any]]:
    """The docs of a task, made of the stored rows by the function that its YAML names."""
    rows = datasets.load_from_disk(data.DATASET_PATH)["test"]
    return list(getattr(data, task.removeprefix("movierecapsqa_"))(rows))


class TestTasks:
    """The names of the YAMLs and the functions that they name."""

    def test_twelve_tasks_with_their_own_docs(self) -> None:
        texts = {file.stem: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.yaml")}
        tasks = {name: text for name, text in texts.items() if text.startswith("include: ")}
        assert sorted(tasks) == sorted(TASKS)
        for name, text in tasks.items():
            assert f"\ntask: {name}\n" in text
            assert f"movierecapsqa.data.{name.removeprefix('movierecapsqa_')}\n" in text
            made = getattr(data, name.removeprefix("movierecapsqa_"))
            assert made is data.process_docs(source_of(name), condition_of(name).slug)

    @pytest.mark.parametrize(
        ("group", "tasks"),
        [
            ("movierecapsqa", TASKS[:3]),
            ("movierecapsqa_lengths", TASKS[::3]),
            ("movierecapsqa_all", TASKS),
        ],
    )
    def test_groups(self, group: str, tasks: list[str]) -> None:
        text = (FOLDER / f"{group}.yaml").read_text(encoding="utf-8")
        assert text.startswith(f"group: {group}\n")
        assert re.findall(r"^  - (\S+)$", text, re.M) == tasks

    @pytest.mark.parametrize("name", ["segments", "segment_", "segment_both", "frames", "x"])
    def test_no_other_functions(self, name: str) -> None:
        assert not hasattr(data, name)


class TestRows:
    """One row per question, without a look at any video."""

    def test_all_fields(self, user: Path) -> None:
        first = data.rows(data.load())[0]
        assert first == {
            "id": "talk.1/10",
            "segment": "talk.1",
            "video": "talk",
            "movie": "Talk (1999)",
            "question": "Who waits at the harbour 10?",
            "reference": f"The {SECRET} captain 10 waits.",
            "references": [f"The {SECRET} captain 10 waits."],
            "lure": f"The {SECRET} captain 20 waits.",
            "facts": [f"The {SECRET} sleeps.", f"It snows on the {SECRET}."],
            "dialogue": SPOKEN,
            "modality": "unlabelled",
            "category": "unlabelled",
            "data": data.load().digest,
        }

    def test_labels_and_what_is_not_given(self, user: Path) -> None:
        asked = [
            question(1, modality="Vision-centric", category="TH", datasetAnswer=...),
            question(2, modality="scene", category="Temporal Reasoning"),
        ]
        write(user, [entry(1, questions=asked, srt=...)])
        first, second = data.rows(data.load())
        assert (first["modality"], first["category"]) == ("vision", "th")
        assert (second["modality"], second["category"]) == ("vision", "temp")
        assert (first["reference"], first["references"], first["dialogue"]) == ("", [], "")

    def test_a_lure_is_another_segments_answer(self, user: Path) -> None:
        empty = entry(2, questions=[question(1, datasetAnswer="")])
        third = entry(3, questions=[question(2, datasetAnswer="Snow.")])
        write(user, [entry(1), empty, third])
        rows = data.rows(data.load())
        assert [row["lure"] for row in rows] == [
            "Snow.",
            "Snow.",
            "Snow.",
            f"The {SECRET} captain 10 waits.",
        ]
        write(user, [entry(1)])
        assert [row["lure"] for row in data.rows(data.load())] == ["", ""]

    def test_no_video_is_needed(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def looked(*_: Any) -> Any:
            raise AssertionError("a video was looked at")

        monkeypatch.setattr(usability.video_checks, "look", looked)
        assert len(data.rows(data.load())) == 4

    def test_stored_rows_follow_the_data(self, user: Path) -> None:
        first = data.DATASET_PATH
        assert first == data.DATASET_PATH
        write(user, [entry(1)])
        assert first != data.DATASET_PATH
        assert len(docs("movierecapsqa_segment_dialogue")) == 2

    def test_bad_segments(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(user, [entry(1), entry(2, endTime=1)])
        with pytest.raises(DataError, match=r"1 of 2 .*\n  talk.2: .*\n.*--allow-bad-items"):
            data.rows(data.load())
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert [row["segment"] for row in data.rows(data.load())] == ["talk.1"] * 2

    def test_no_questions_at_all(self, user: Path) -> None:
        write(user, [entry(1, questions=[])])
        with pytest.raises(DataError, match=r"segments.json: its segments have no questions$"):
            data.rows(data.load())

    def test_no_data(self, root: Path) -> None:
        with pytest.raises(DataError, match=r"no MovieRecapsQA data at .*data prepare movierecaps"):
            data.load()


class TestDocs:
    """What each of the twelve tasks shows."""

    @pytest.mark.parametrize("task", TASKS)
    def test_every_task(self, task: str, user: Path) -> None:
        found = docs(task)
        assert [doc["id"] for doc in found] == [
            "talk.1/10",
            "talk.1/11",
            "talk.2/20",
            "talk.2/21",
        ]
        assert {doc["source"] for doc in found} == {source_of(task)}
        assert {doc["condition"] for doc in found} == {condition_of(task).slug}
        assert {doc["n_frames"] for doc in found} == {0}
        windows = {
            "segment": ("recaps/talk.mp4", [3.2, 8], [7.4, 11]),
            "recap": ("recaps/talk.mp4", [None] * 2, [None] * 2),
            "scenes": ("movies/film.mp4", [10.5, 2], [16, 4]),
            "movie": ("movies/film.mp4", [None] * 2, [None] * 2),
        }
        place, starts, ends = windows[source_of(task)]
        path = str((user / place).resolve())
        if not condition_of(task).picture:
            path, starts, ends = "", [None] * 2, [None] * 2
        assert {doc["video_path"] for doc in found} == {path}
        assert [doc["start"] for doc in found[::2]] == starts
        assert [doc["end"] for doc in found[::2]] == ends
        # The dialogue is the segment's own and whole, whatever is shown beside it.
        assert [doc["dialogue"] for doc in found[::2]] == [SPOKEN, ""]
        for doc, row in zip(found, data.rows(data.load()), strict=True):
            assert row.items() <= doc.items()

    def test_dialogue_alone_is_the_same_in_every_source(self, user: Path) -> None:
        alone = [docs(task) for task in TASKS if not condition_of(task).picture]
        assert len(alone) == 4
        for found in alone:
            assert [{**doc, "source": ""} for doc in found] == [
                {**doc, "source": ""} for doc in alone[0]
            ]

    @pytest.mark.parametrize(
        ("given", "frames"), [("8", 8), ("8,talk=3", 3), ("talk=3", 3), ("other=3", 0)]
    )
    def test_frames_that_the_user_asks_for(
        self, given: str, frames: int, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.FRAMES, given)
        assert {doc["n_frames"] for doc in docs("movierecapsqa_scenes_frames")} == {frames}
        assert {doc["n_frames"] for doc in docs("movierecapsqa_scenes_dialogue")} == {0}

    def test_windows_that_cannot_be_cut_are_left_out(self, user: Path) -> None:
        release = data.load()
        held = data.usable(release, PICTURED)
        window = held["segment"].windows["talk.1"]
        checked.remember(Checked(release, held, {window: "damaged"}))
        assert {doc["segment"] for doc in docs("movierecapsqa_segment_frames")} == {"talk.2"}
        for task in ("recap", "scenes", "segment_dialogue"):
            assert len(docs(f"movierecapsqa_{task}")) == 4


class TestRealData:
    """The part of the project's sample that is at hand: one of its eight recap videos."""

    def test_rows(self, real: Path) -> None:
        rows = data.rows(data.load())
        assert len(rows) == len({row["id"] for row in rows}) == 52
        released = json.loads((real / "movierecapsqa" / "segments.json").read_text("utf-8"))
        facts = {segment["id"]: segment["facts"] for segment in released}
        for row in rows:
            assert len(row["facts"]) == len(facts[row["segment"]])
            assert not any(re.match(r"\d+[.)]", fact) for fact in row["facts"])
            assert row["dialogue"]
            assert not re.search(r"-->|</?[ib]>|^\d+$", row["dialogue"], re.M)
            assert row["lure"] not in (row["reference"], "")

    def test_docs(self, real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert len(docs("movierecapsqa_movie_dialogue")) == 52
        with pytest.raises(DataError, match="7 of 8 segments cannot be shown"):
            docs("movierecapsqa_segment")
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        found = docs("movierecapsqa_segment")
        assert len(found) == 10
        assert {(doc["start"], doc["end"]) for doc in found} == {(3.47, 116.416)}
        with pytest.raises(DataError, match="none of 8 segments can be shown as the full movie"):
            docs("movierecapsqa_movie")
