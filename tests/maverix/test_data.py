"""MAVERIX's rows and docs: which items are asked, their letters, and what each mode is given."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.maverix import data, schema
from lmms_eval_tasks.maverix.labels import LETTERS, MODES, SPLITS
from lmms_eval_tasks.utils import probes
from tests.maverix.entries import entry, write

NAMES = [
    f"{kind}_{length}{mode}"
    for kind in ("choice", "open", "circular")
    for length in ("", "long_")
    for mode in MODES
]


@pytest.fixture
def on_sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")


@pytest.fixture
def user(tmp_path: Path, sample_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of MAVERIX with the video `clip` (30 s) and one without sound, `mute`."""
    root = tmp_path / "root"
    folder = root / "maverix"
    (folder / "videos").mkdir(parents=True)
    (folder / "subtitles").mkdir()
    source = sample_root / "maverix" / "videos" / "lights-1.mp4"
    (folder / "videos" / "clip.mp4").symlink_to(source)
    without_sound(source, folder / "videos" / "mute.mp4")
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(root))
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(tmp_path / "cache"))
    return folder


def without_sound(source: Path, target: Path) -> None:
    import av

    with av.open(str(source)) as file, av.open(str(target), "w") as out:
        picture = out.add_stream_from_template(file.streams.video[0])
        for packet in file.demux(video=0):
            if packet.dts is not None:
                packet.stream = picture
                out.mux(packet)


def sample_rows() -> Any:
    import datasets

    return datasets.load_from_disk(data.DATASET_PATH)["test"]


def dataset(rows: list[dict[str, Any]]) -> Any:
    import datasets

    return datasets.Dataset.from_list(rows)


def items(folder: Path, *entries: dict[str, Any]) -> tuple[schema.Item, ...]:
    return schema.read(write(folder, list(entries))).items


class TestLetters:
    """Where the right option is shown: by the item's id alone, and back to the file's letters."""

    def test_over_many_ids_every_letter_is_as_frequent(self, tmp_path: Path) -> None:
        for answer in ("A", "H"):
            entries = [entry(n, answer=answer, id=f"Q{n:04}") for n in range(4000)]
            found = Counter(
                data.shown_order(item).index(item.answer or 0)
                for item in items(tmp_path / answer, *entries)
            )
            # 500 each on average, with a standard deviation of 21.
            assert sorted(found) == list(range(8))
            assert all(400 < count < 600 for count in found.values()), found

    def test_every_option_is_spread_and_not_only_turned(self, tmp_path: Path) -> None:
        entries = [entry(n, id=f"Q{n:04}") for n in range(300)]
        orders = {tuple(data.shown_order(item)) for item in items(tmp_path, *entries)}
        assert len(orders) > 290  # of 40,320; only eight would be rotations
        assert all(sorted(order) == list(range(8)) for order in orders)

    def test_depends_on_the_id_only(self, tmp_path: Path) -> None:
        one = items(tmp_path / "1", entry(1), entry(2))
        other = items(
            tmp_path / "2",
            entry(3),
            entry(2, question="Why?", options=list("abcdefgh"), answer=0, video="x", start=0.5),
        )
        assert data.shown_order(one[1]) == data.shown_order(other[1])
        assert data.shown_order(one[0]) != data.shown_order(one[1])

    def test_pinned(self, tmp_path: Path) -> None:
        """A changed rule would silently change every published number: it must show here."""
        (item,) = items(tmp_path, entry(7))
        assert "".join(LETTERS[place] for place in data.shown_order(item)) == "GHCEAFBD"

    def test_the_same_in_another_process(self, tmp_path: Path) -> None:
        (item,) = items(tmp_path, entry(7))
        code = (
            "import sys; from pathlib import Path; "
            "from lmms_eval_tasks.maverix import data, schema; "
            "print(data.shown_order(schema.read(Path(sys.argv[1])).items[0]))"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "data.json")]
        for seed in ("0", "1"):
            done = subprocess.run(
                command,
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stdout.strip() == str(data.shown_order(item))

    def test_a_file_that_is_shuffled_keeps_its_order(self, tmp_path: Path) -> None:
        (item,) = items(tmp_path, entry(shuffled=True))
        assert data.shown_order(item) == list(range(8))


class TestRows:
    """One row per item, with everything that a task needs and nothing read twice."""

    def test_options_answers_and_the_files_letters(self, user: Path) -> None:
        write(user, [entry(n, answer=LETTERS[n]) for n in range(8)])
        for number, row in enumerate(data.rows(data.load())):
            options = entry(number)["options"]
            for option, letter in zip(row["options"], row["file_letters"], strict=True):
                assert option == options[LETTERS.index(letter)]
            shown = row["options"][LETTERS.index(row["answer"])]
            assert shown == options[number]
            assert row["file_letters"][LETTERS.index(row["answer"])] == LETTERS[number]

    def test_all_fields(self, user: Path) -> None:
        (user / "subtitles" / "clip.vtt").write_text("WEBVTT\n")
        write(user, [entry(1, shuffled=True)])
        (row,) = data.rows(data.load())
        assert row == {
            **{name: entry(1)[name] for name in ("id", "video", "question", "paraphrase")},
            **{name: entry(1)[name] for name in ("start", "end", "options", "answer", "reference")},
            **{split: entry(1)[split] for split in SPLITS},
            "video_path": str((user / "videos" / "clip.mp4").resolve()),
            "video_seconds": pytest.approx(30, abs=1e-3),
            "has_audio": True,
            "subtitle_path": str(user / "subtitles" / "clip.vtt"),
            "file_letters": "ABCDEFGH",
            "data": data.load().digest,
        }

    def test_what_is_withheld_or_absent_is_empty(self, user: Path) -> None:
        nothing = dict.fromkeys((*SPLITS, "answer", "reference", "start", "end"))
        write(user, [entry(1, **nothing)])
        (row,) = data.rows(data.load())
        assert row["answer"] == row["reference"] == row["subtitle_path"] == row["topic"] == ""
        assert row["start"] is row["end"] is None
        assert sorted(row["file_letters"]) == list(LETTERS)

    def test_the_reference_is_never_the_right_option(self, user: Path) -> None:
        write(user, [entry(1, reference=None)])
        (row,) = data.rows(data.load())
        assert row["answer"]
        assert row["reference"] == ""

    def test_duration_follows_from_the_video_where_the_file_is_silent(self, user: Path) -> None:
        write(user, [entry(1, duration=None), entry(2, duration="long")])
        assert [row["duration"] for row in data.rows(data.load())] == ["short", "long"]

    @pytest.mark.parametrize(
        ("seconds", "name"),
        [(5.57, "short"), (59.99, "short"), (60, "middle"), (599.9, "middle"), (600, "long")],
    )
    def test_the_papers_classes(self, seconds: float, name: str) -> None:
        assert data.duration_class(seconds) == name

    def test_a_rounded_end_is_the_videos(self, user: Path) -> None:
        write(user, [entry(1, start=20, end=30.9), entry(2, start=20, end=30)])
        ends = [row["end"] for row in data.rows(data.load())]
        assert ends == [pytest.approx(30, abs=1e-3), 30.0]

    def test_stored_rows_follow_the_data(self, user: Path) -> None:
        write(user, [entry(1)])
        first = data.DATASET_PATH
        assert first == data.DATASET_PATH
        write(user, [entry(1), entry(2)])
        assert first != data.DATASET_PATH
        assert len(sample_rows()) == 2

    def test_in_the_files_order(self, on_sample: None) -> None:
        rows = sample_rows()
        assert rows["id"] == [item.id for item in data.load().items]


class TestUsable:
    """Bad items and videos stop a run with all of them listed, unless the user leaves them out."""

    def stopped(self) -> str:
        with pytest.raises(DataError) as error:
            data.usable(data.load())
        return str(error.value)

    def left_out(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> tuple[list[str], Any]:
        for name in names:
            monkeypatch.setenv(name, "1")
        kept, left_out = data.usable(data.load())
        assert [row["id"] for row in data.rows(data.load())] == [item.id for item in kept]
        return [item.id for item in kept], left_out

    def test_bad_items(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(user, [entry(1), entry(2, paraphrase=None), entry(3, options=list("abcdefg"))])
        said = self.stopped()
        assert "data.json: 2 of 3 MAVERIX items cannot be used:\n  item-2: paraphrase:" in said
        assert "\n  item-3: options: expected 8 texts, found 7\n" in said
        assert "--allow-bad-items or LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS=1" in said
        assert "--allow-missing-videos" not in said
        kept, left_out = self.left_out(monkeypatch, settings.ALLOW_BAD_ITEMS)
        assert kept == ["item-1"]
        assert set(left_out) == {"item-2", "item-3"}
        assert left_out["item-3"] == "options: expected 8 texts, found 7"

    def test_at_most_twenty_are_listed(self, user: Path) -> None:
        write(user, [entry(0), *(entry(n, question="") for n in range(1, 31))])
        said = self.stopped()
        assert said.count("question: is empty") == 20
        assert "\n  and 10 more\n" in said

    @pytest.mark.parametrize(
        ("start", "end", "says"),
        [
            (30, 31, "item-2: starts at 30 s; its video ends at 30.000 s"),
            (29, 31.5, "item-2: ends at 31.5 s; its video ends at 30.000 s"),
            ("01:00:00", "01:00:10", "item-2: starts at 3600 s"),
        ],
    )
    def test_segments_outside_their_video(
        self, start: Any, end: Any, says: str, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(user, [entry(1), entry(2, start=start, end=end)])
        assert says in self.stopped()
        assert self.left_out(monkeypatch, settings.ALLOW_BAD_ITEMS)[0] == ["item-1"]

    def test_subtitles_that_cannot_be_read(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (user / "subtitles" / "clip.srt").write_text("1\n00:00:05,000 --> 00:00:02\nreversed\n")
        write(user, [entry(1), entry(2, video="mute")])
        assert "item-1: subtitles: " in self.stopped()
        assert self.left_out(monkeypatch, settings.ALLOW_BAD_ITEMS)[0] == ["item-2"]

    def test_a_video_ends_with_its_sound(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        info = probes.VideoInfo(200, 64, 48, duration=8, end=12, fps=25, has_audio=True)
        monkeypatch.setattr(probes, "_read", lambda *_: (info, False))
        (user / "videos" / "long.mp4").write_bytes(b"8 s of picture and 12 s of sound")
        good = [entry(n, video="long", start=s, end=e) for n, s, e in ((1, 4, 10), (2, 9, 12.4))]
        write(user, [*good, entry(3, video="long", start=4, end=13.5)])
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        kept, left_out = data.usable(data.load())
        assert [item.id for item in kept] == ["item-1", "item-2"]
        assert left_out == {"item-3": "ends at 13.5 s; its video ends at 12.000 s"}
        assert [row["end"] for row in data.rows(data.load())] == [10, 12]

    def test_missing_and_unreadable_videos(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (user / "videos" / "broken.mp4").write_bytes(b"no video")
        write(user, [entry(1), entry(2, video="gone"), entry(3, video="broken")])
        problems = data.video_problems(data.load())
        assert problems["gone"].startswith("missing: ")
        assert problems["broken"].startswith("unreadable: ")
        said = self.stopped()
        assert "2 of 3 MAVERIX videos cannot be used:\n  gone: missing: " in said
        assert f"--allow-missing-videos or {settings.ALLOW_MISSING}=1" in said
        assert "--allow-bad-items" not in said
        kept, left_out = self.left_out(monkeypatch, settings.ALLOW_MISSING)
        assert kept == ["item-1"]
        assert left_out["item-2"].startswith("its video is missing: ")
        assert set(left_out) == {"item-2", "item-3"}

    def test_one_permission_is_not_the_other(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(user, [entry(1), entry(2, video="gone"), entry(3, question="")])
        assert "items cannot be used" in self.stopped()
        assert "videos cannot be used" in self.stopped()
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert "items cannot be used" not in self.stopped()
        assert self.left_out(monkeypatch, settings.ALLOW_MISSING)[0] == ["item-1"]

    def test_nothing_left(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(user, [entry(1, video="gone"), entry(2, question="")])
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        assert "none of 2 MAVERIX items can be used" in self.stopped()

    def test_a_permission_that_is_misspelt(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not settings.allow_bad_items()
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "yes")
        assert settings.allow_bad_items()
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "perhaps")
        with pytest.raises(TasksError, match="ALLOW_BAD_ITEMS='perhaps': expected 1 or 0"):
            settings.check()

    def test_no_data_says_what_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(tmp_path))
        with pytest.raises(DataError, match=r"published no data .*data prepare maverix --from"):
            data.load()

    def test_videos_without_sound(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are asked without sound; A and V+A leave them out where the user allows it."""
        write(user, [entry(1), entry(2, video="mute")])
        kept, _ = data.usable(data.load())
        rows = dataset(data.rows(data.load()))
        assert rows["has_audio"] == [True, False]
        for mode in ("s", "v", "vs"):
            assert len(getattr(data, f"choice_{mode}")(rows)) == 2
        for check in (
            lambda: data.check_sound(kept),
            lambda: data.choice_a(rows),
            lambda: data.open_long_av(rows),
        ):
            with pytest.raises(
                DataError, match=r"1 of 2 .*\n  item-2: .*no audio stream\n.*--allow"
            ):
                check()
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert data.check_sound(kept) == {"item-2": "its video has no audio stream"}
        assert data.choice_a(rows)["id"] == ["item-1"]
        assert len(data.circular_av(rows)) == 8
        with pytest.raises(DataError, match="none of 1 MAVERIX items has a video with sound"):
            data.choice_a(rows.select([1]))

    def test_all_videos_with_sound(self, on_sample: None) -> None:
        assert data.check_sound(data.usable(data.load())[0]) == {}


class TestDocs:
    """What the host sees of each task."""

    @pytest.mark.parametrize("name", NAMES)
    def test_every_task(self, name: str, on_sample: None) -> None:
        rows = sample_rows()
        docs = getattr(data, name)(rows)
        kind, *_, mode = name.split("_")
        long = "_long_" in name
        assert len(docs) == len(rows) * {"choice": 1, "open": 2, "circular": 8}[kind]
        assert len(set(docs["id"])) == len(docs)
        by_id = {row["id"]: row for row in rows}
        for doc in docs:
            row = by_id[doc["question_id"]]
            assert doc["mode"] == mode
            assert doc["length"] == ("long" if long else "localized")
            for side in ("start", "end"):
                assert doc[side] == (None if long else row[side])
            for same in ("video", "video_path", "subtitle_path", "data", *SPLITS):
                assert doc[same] == row[same]

    def test_choice(self, on_sample: None) -> None:
        rows = sample_rows()
        for doc, row in zip(data.choice_v(rows), rows, strict=True):
            assert doc["id"] == doc["question_id"] == row["id"]
            for name in ("question", "options", "answer", "file_letters"):
                assert doc[name] == row[name]
            assert "rotation" not in doc
            assert not {"reference", "paraphrase"} & set(doc)  # no task may show them by accident

    def test_open(self, on_sample: None) -> None:
        rows = sample_rows()
        docs = list(data.open_av(rows))
        for row, first, second in zip(rows, docs[::2], docs[1::2], strict=True):
            assert first["id"] == f"{row['id']}/original"
            assert second["id"] == f"{row['id']}/paraphrase"
            assert (first["version"], second["version"]) == ("original", "paraphrase")
            assert first["question"] == row["question"]
            assert second["question"] == row["paraphrase"]
            for doc in (first, second):
                assert doc["reference"] == row["reference"]
                assert doc["references"] == [row["reference"]]
                assert doc["lure"] in row["options"]
                assert doc["lure"] != row["options"][LETTERS.index(row["answer"])]
                assert not {"options", "answer", "file_letters"} & set(doc)

    def test_circular(self, on_sample: None) -> None:
        rows = sample_rows()
        docs = list(data.circular_s(rows))
        for number, row in enumerate(rows):
            turned = docs[8 * number : 8 * number + 8]
            right = row["options"][LETTERS.index(row["answer"])]
            assert [doc["id"] for doc in turned] == [f"{row['id']}/r{n}" for n in range(8)]
            assert [doc["rotation"] for doc in turned] == list(range(8))
            assert {doc["question_id"] for doc in turned} == {row["id"]}
            assert sorted(doc["answer"] for doc in turned) == list(LETTERS)
            for doc in turned:
                assert doc["options"][LETTERS.index(doc["answer"])] == right
                letters = dict(zip(doc["options"], doc["file_letters"], strict=True))
                assert letters == dict(zip(row["options"], row["file_letters"], strict=True))
            for place in range(8):  # each option stands once at each letter
                assert len({doc["options"][place] for doc in turned}) == 8
            assert turned[0]["options"] == row["options"]
            assert turned[1]["options"] == [*row["options"][1:], row["options"][0]]

    def test_withheld(self, user: Path) -> None:
        write(user, [entry(1, answer=None, reference=None), entry(2)])
        rows = dataset(data.rows(data.load()))
        assert [bool(doc["answer"]) for doc in data.choice_a(rows)] == [False, True]
        docs = list(data.open_a(rows))
        assert [doc["reference"] for doc in docs[:2]] == ["", ""]
        assert [doc["references"] for doc in docs[:2]] == [[], []]
        assert [doc["lure"] for doc in docs[:2]] == ["", ""]
        turned = list(data.circular_a(rows))
        assert {doc["answer"] for doc in turned[:8]} == {""}
        assert len({doc["file_letters"] for doc in turned[:8]}) == 8

    def test_all_withheld(self, user: Path) -> None:
        """A file without one answer, reference or label still makes docs of one form."""
        nothing = dict.fromkeys((*SPLITS, "answer", "reference", "start", "end"))
        write(user, [entry(n, **nothing) for n in range(3)])
        rows = sample_rows()
        for name in NAMES:
            docs = getattr(data, name)(rows)
            assert len(docs) in (3, 6, 24)
            assert all(doc["start"] is None for doc in docs)

    def test_letters_are_the_same_in_every_mode_and_length(self, on_sample: None) -> None:
        rows = sample_rows()
        shown = {
            json.dumps([(doc["id"], doc["options"], doc["answer"]) for doc in made(rows)])
            for made in (getattr(data, name) for name in NAMES if name.startswith("choice"))
        }
        assert len(shown) == 1

    def test_functions_are_found_as_the_host_finds_them(self) -> None:
        for name in NAMES:
            made = getattr(data, name)
            assert made is getattr(data, name)
            assert "Dataset" in inspect.getsource(made)  # what the host writes into its results
        for name in ("choice_x", "choice_a_long", "open_long_", "closed_a", "DATASET"):
            with pytest.raises(AttributeError, match=name):
                getattr(data, name)


def test_importing_is_light() -> None:
    code = (
        "import sys, lmms_eval_tasks.maverix.data, lmms_eval_tasks.maverix.sample; "
        "heavy = {'av', 'numpy', 'PIL', 'torch', 'decord', 'openai', 'yaml', 'datasets'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
