"""The four released tables: put together, what is to be fetched, and what the judge is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.movierecapsqa import data, tasks
from lmms_eval_tasks.movierecapsqa import release as files
from lmms_eval_tasks.movierecapsqa.settings import MOVIERECAPSQA
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from tests.movierecapsqa.entries import RECAP, render


def table(columns: str, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(columns.split(), row, strict=True)) for row in rows]


TIMES = "movie_start_time movie_end_time recap_start_time recap_end_time"
TABLES = {
    "recaps": table(
        "video_id movie_name subtitle_url",
        ("abC-1", "Talk: I/II", "http://x/1.srt"),
        ("xyz", "Other", "http://x/2.srt"),
    ),
    "segments": table(
        f"video_id segment_id fact_ids {TIMES}",
        ("abC-1", 0, ["1", "2"], 600.0, 660.0, 0.0, 2.0),
        ("abC-1", 1, ["1"], 660.0, 720.0, 2.5, 4.5),
        ("xyz", 0, ["1"], 600.0, 660.0, 0.0, 2.0),
    ),
    "questions": table(
        "video_id segment_id question_id question answer aligned_fact_ids",
        ("abC-1", 0, 0, "Who is 0?", "Number 0.", ["2"]),
        ("abC-1", 0, 1, "Who is 1?", "Number 1.", ["1", "2"]),
        ("abC-1", 1, 0, "Who is 0?", "Number 0.", ["1"]),
        ("xyz", 0, 0, "Who is 0?", "Number 0.", ["1"]),
    ),
    "facts": table(  # an id may come again in another segment
        "video_id segment_id fact_id fact",
        ("abC-1", 0, "1", "Fact 1."),
        ("abC-1", 0, "2", "Fact 2."),
        ("abC-1", 1, "1", "Fact 3."),
        ("xyz", 0, "1", "Fact 4."),
    ),
}
SRT = """00:09:50,000 --> 00:09:54,000
Before.
00:10:10,000 --> 00:10:14,000
In the first.
00:10:57,000 --> 00:11:01,000
Astride.
00:11:20,000 --> 00:11:24,000
Then.
"""


def write(folder: Path, ending: str, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in {**TABLES, **changes}.items():
        file, frame = folder / f"{name}.{ending}", pandas.DataFrame(rows)
        if ending == "csv":
            frame.to_csv(file, index=False)
        elif ending == "parquet":
            frame.to_parquet(file)
        else:
            file.write_text(frame.to_json(orient="records", lines=ending == "jsonl"))
    return folder


def subtitle(folder: Path, name: str) -> None:
    (folder / "subtitles").mkdir(exist_ok=True)
    (folder / "subtitles" / name).write_text(SRT)


def test_four_forms_of_the_tables_are_one_release(tmp_path: Path) -> None:
    digests = set()
    for ending in ("json", "jsonl", "csv", "parquet"):
        folder = tmp_path / ending
        write(folder / "data" if ending == "parquet" else folder, ending)
        if ending == "parquet":  # the hub's own places
            (folder / "data" / "facts").mkdir()
            (folder / "data" / "facts.parquet").rename(folder / "data/facts/train-0-of-1.parquet")
        subtitle(folder, "Talk_abC-1.srt")
        release = files.read_recaps(folder)
        digests.add(release.digest)
    assert len(digests) == 1
    BENCHMARK.prepare(folder, tmp_path / "root", link=True)
    made = (tmp_path / "root" / "movierecapsqa").glob("*.parquet")
    assert {path.stem for path in made} == set(TABLES)
    first, second, third = release.segments
    assert (first.id, first.video, first.movie_id) == ("abC-1.0", "abC-1", "Talk: I_II")
    assert (first.start, first.end, first.movie_start, first.movie_end) == (0, 2, 600, 660)
    assert (first.facts, second.facts) == (("Fact 1.", "Fact 2."), ("Fact 3.",))
    assert [q.aligned for q in first.questions] == [("Fact 2.",), ("Fact 1.", "Fact 2.")]
    assert [q.reference for q in first.questions] == ["Number 0.", "Number 1."]
    # By the movie's times; what is astride goes where most of it is.
    assert (first.dialogue, second.dialogue) == ("In the first.\nAstride.", "Then.")
    assert (third.dialogue, list(release.without_subtitles)) == ("", ["xyz.0"])
    subtitle(folder, "xyz.srt")
    assert files.read_recaps(folder).without_subtitles == {}


def test_tables_that_do_not_fit_stop(tmp_path: Path) -> None:
    rows = TABLES["questions"]
    nowhere = {**rows[0], "segment_id": 9, "aligned_fact_ids": []}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"facts": TABLES["facts"][:2]}, "row 2: no fact 1"),
        ({"recaps": TABLES["recaps"][:1]}, "'xyz' is not in"),
        ({"questions": [nowhere]}, "abC-1.9 is not a segment"),
        ({"questions": [{"question": "Who?"}]}, "row 1: no video_id"),
    ]
    for number, (changes, said) in enumerate(cases):
        with pytest.raises(DataError, match=said):
            files.read_recaps(write(tmp_path / str(number), "json", **changes))
    twice = write(write(tmp_path / "twice", "json"), "csv")
    with pytest.raises(DataError, match="one file of each"):
        files.read_recaps(twice)


def test_what_is_to_be_fetched_and_what_is_left_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "clone" / "data", "json").parent
    subtitle(source, "abC-1.srt")
    (source / "recaps").mkdir()
    render(source / "recaps" / "abC-1.mp4", RECAP)
    BENCHMARK.prepare(source, root, link=False)
    place = root / "movierecapsqa"
    assert {path.name for path in place.rglob("*.*")} == {
        *(f"{name}.json" for name in TABLES),
        *("abC-1.srt", "abC-1.mp4"),
    }
    seen = BENCHMARK.status(root)
    assert "to download: subtitles/xyz.srt, the subtitles of 'Other': http://x/2.srt" in seen.notes
    assert (seen.videos, "xyz" in seen.bad) == (1, True)
    name = "movierecapsqa_segment_dialogue"
    with pytest.raises(
        DataError,
        match="1 of 1 MovieRecapsQA subtitles cannot be used, and with them 1 of 1 segments",
    ) as caught:
        BENCHMARK.load([name])
    assert "http://x/2.srt" in str(caught.value)
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    found = BENCHMARK.load([name])
    assert [doc["id"] for doc in data.make_recap_docs(found, name)] == [
        "abC-1.0/0",
        "abC-1.0/1",
        "abC-1.1/0",
    ]
    assert list(found.left_out(name)) == ["xyz.0"]
    # Neither the model nor the judge needs it.
    monkeypatch.delenv(settings.ALLOW_MISSING)
    monkeypatch.setenv(MOVIERECAPSQA, "dialogue=none")
    BENCHMARK.load(["movierecapsqa_segment_frames"], videos=False)


def test_what_the_judge_is_shown(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "movierecapsqa_segment_dialogue"
    monkeypatch.setenv(MOVIERECAPSQA, "facts=aligned")
    with pytest.raises(DataError, match="have no facts of their own"):
        BENCHMARK.load([name])
    folder = write(tmp_path / "other" / "movierecapsqa", "json")
    for video in ("abC-1", "xyz"):
        subtitle(folder, f"{video}.srt")
    labels = folder / "labels.csv"
    labels.write_text("id,modality,category\nabC-1.0/0,vision,STA\n")
    monkeypatch.setenv(settings.DATA, str(folder.parent))
    for chosen, facts, dialogue in (
        ("", ["Fact 1.", "Fact 2."], "In the first.\nAstride."),
        ("facts=aligned", ["Fact 2."], "In the first.\nAstride."),
        ("facts=aligned,dialogue=none", ["Fact 2."], ""),
    ):
        monkeypatch.setenv(MOVIERECAPSQA, chosen)
        doc = BENCHMARK.tasks[name].log_fields(BENCHMARK.docs(BENCHMARK.load([name]), name)[0])
        assert tasks.judge_context(doc) == ("abC-1.0", facts, dialogue)
        # The model's own dialogue is another matter.
        assert doc["dialogue"] == "In the first.\nAstride."
        assert (doc["modality"], doc["category"]) == ("vision", "sta")
    for text in ("fact=all", "facts=some", "facts=all,facts=all"):
        monkeypatch.setenv(MOVIERECAPSQA, text)
        with pytest.raises(TasksError, match="each name at most once"):
            data.options()
    row = "abC-1.0/0,vision,STA\n"
    labels.write_text(f"id,modality,category\n{row}{row}abC-1.0/0,dialogue,STA\n")
    with pytest.raises(
        DataError, match=r"labels\.csv, row 3: another row labels 'abC-1\.0/0' diff"
    ):
        files.read_recaps(folder)
    labels.write_text("id,modality,category\nabC-1.9/0,vision,STA\n")
    with pytest.raises(DataError, match=r"labels\.csv: no question 'abC-1\.9/0'"):
        files.read_recaps(folder)
