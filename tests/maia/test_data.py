"""MAIA's files: schema with the place of the first error, ids, letters, docs."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia import data, schema
from lmms_eval_tasks.maia.categories import SLUGS
from tests.checks import refused, table


@pytest.fixture
def released(sample_root: Path) -> list[dict[str, Any]]:
    return json.loads((sample_root / "maia" / "data.json").read_text(encoding="utf-8"))


def write(folder: Path, content: Any, name: str = "data.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return file


def question(content: list[dict[str, Any]]) -> dict[str, Any]:
    return content[1]["question_categories_B"][3]


Break = Callable[[list[dict[str, Any]]], Any]


@table(
    "damage, says",
    [
        (
            lambda c: question(c)["true_statement"].pop(),
            "true_statement: expected at least 8, found 7",
        ),
        (
            lambda c: question(c).pop("answer"),
            "entry 2, .*_B, entry 4, answer: the field is m",
        ),
        (lambda c: question(c)["answer"].__setitem__(4, " "), "_B, entry 4, answer, entry 5: "),
        (lambda c: question(c).update(category="Boh_A"), "Boh_A, field category: expected"),
        (lambda c: question(c).update(category="Sentiment"), "with _A or _B"),
        (
            lambda c: question(c).update(false_statement=question(c)["true_statement"]),
            "field false_statement, entry 1: equals the true statement",
        ),
        (lambda c: c[1].update(video="clip2"), "entry 2, video: .*, found 'clip2'"),
        (lambda c: c[1].update(video=c[0]["video"]), "occurs twice"),
        (
            lambda c: c[1]["question_categories_B"].append(question(c)),
            "field category: occurs twice in this video",
        ),
        (lambda c: c.clear(), "holds no videos"),
    ],
)
def test_the_first_error_is_named_with_its_place(
    damage: Break, says: str, sample_root: Path, tmp_path: Path
) -> None:
    content = json.loads((sample_root / "maia" / "data.json").read_text(encoding="utf-8"))
    damage(content)
    file = write(tmp_path, content)
    refused(DataError, f"{file}: .*{says}", schema.read, file)


def test_the_hash_does_not_depend_on_formatting(
    released: list[dict[str, Any]], tmp_path: Path
) -> None:
    one = schema.read(write(tmp_path / "a", released)).digest
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "data.json").write_text(json.dumps(released, indent=3, sort_keys=True))
    assert schema.read(tmp_path / "b" / "data.json").digest == one
    question(released)["answer"][0] += "!"
    assert schema.read(write(tmp_path / "c", released)).digest != one


class TestLetters:
    """Which statement is A: by the pair's id alone, four of eight, on real and made-up data."""

    def test_exactly_four_of_eight(self, released: list[dict[str, Any]], tmp_path: Path) -> None:
        for own in letters(schema.read(write(tmp_path, released))).values():
            assert Counter(own) == {"A": 4, "B": 4}

    def test_positions_are_spread(self, maia_data: Path) -> None:
        found = letters(schema.read(maia_data / "data.json"))
        first = Counter(own[0] for own in found.values())
        assert 40 < first["A"] < 80  # of 120; a fixed pattern would give 0 or 120

    def test_depends_on_the_identity_only(
        self, released: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        """Other videos, other statements, another order of the file: the same letters."""
        before = letters(schema.read(write(tmp_path / "a", released)))
        changed = copy.deepcopy(released[::-1])
        question(changed)["true_statement"][0] = "Un'altra frase"
        del changed[0]["question_categories_A"][0]
        after = letters(schema.read(write(tmp_path / "b", changed)))
        assert {key: before[key] for key in after} == after

    def test_pinned(self) -> None:
        """A changed rule would silently change every published number: it must show here."""
        asked = schema.Question(
            category="Sentiment_A",
            question="Come si sente la persona?",
            answer=["x"] * 8,
            true_statement=[f"t{i}" for i in range(8)],
            false_statement=[f"f{i}" for i in range(8)],
        )
        assert "".join(data.true_letters("video7", asked)) == "AABAABBB"


def letters(release: schema.Release) -> dict[str, list[str]]:
    return {
        data.question_id(video.video, asked): data.true_letters(video.video, asked)
        for video in release.videos
        for asked in video.questions
    }


def test_docs(on_sample: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the host sees: ids and letters are the same in every setting, videos stand together."""
    found = data.look([])
    pairs = data.pairs(found, "32frames")
    assert len({doc["id"] for doc in pairs}) == len(pairs) == 384
    assert {doc["category"] for doc in pairs} == set(SLUGS)
    for doc in pairs:
        true = doc["options"][0 if doc["answer"] == "A" else 1]
        false = doc["options"][1 if doc["answer"] == "A" else 0]
        assert true != false
        assert doc["id"] == f"{doc['question_id']}/{doc['index']}"
    asked = data.questions(found, "black")
    assert len(asked) == 48
    assert all(doc["question_id"] == doc["id"] for doc in asked)
    assert all(len(doc["references"]) == 8 for doc in asked)
    for docs in (pairs, asked):
        videos = [doc["video"] for doc in docs]
        changes = sum(a != b for a, b in itertools.pairwise(videos))
        assert changes == len(set(videos)) - 1
    for setting in ("1frame", "black", "text"):
        for one, other in zip(pairs, data.pairs(found, setting), strict=True):
            for same in ("id", "answer", "options"):
                assert one[same] == other[same]
    monkeypatch.setenv("LMMS_EVAL_TASKS_FRAMES", "16,video2=8")
    pairs = data.pairs(found, "32frames")
    assert {(d["video"], d["n_frames"]) for d in pairs} == {("video1", 16), ("video2", 8)}
    assert {d["n_frames"] for d in data.pairs(found, "1frame")} == {1}


class TestUserData:
    """`data status`, `data prepare`, and what a task without data says."""

    def test_no_data_says_how_to_get_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(tmp_path))
        with pytest.raises(DataError, match=r"on request .*data prepare maia --from"):
            data.load()
        assert not data.status(tmp_path).found

    def copy_without_a_video(self, sample_root: Path, root: Path) -> None:
        shutil.copytree(sample_root / "maia", root / "maia")
        (root / "maia" / "videos" / "2.mp4").unlink()

    def test_missing_videos_stop_unless_allowed(
        self, sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.copy_without_a_video(sample_root, tmp_path)
        monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(tmp_path))
        monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(tmp_path / "cache"))
        with pytest.raises(DataError, match=r"1 of 2 .*\n  video2: missing: .*2\.mp4\n.*--allow"):
            data.look([])
        monkeypatch.setenv("LMMS_EVAL_TASKS_ALLOW_MISSING_VIDEOS", "1")
        found = data.look([])
        assert [video.video for video in found.videos] == ["video1"]
        assert list(found.problems) == ["video2"]
        assert len(data.rows(found)) == 24

    def test_unreadable_videos_are_told_from_missing_ones(
        self, sample_root: Path, tmp_path: Path
    ) -> None:
        self.copy_without_a_video(sample_root, tmp_path)
        (tmp_path / "maia" / "videos" / "1.mp4").write_bytes(b"not a video")
        found = data.status(tmp_path)
        assert (list(found.missing), list(found.unreadable)) == (["video2"], ["video1"])
        assert found.videos == 0

    @table("link", [False, True])
    def test_prepare(self, link: bool, sample_root: Path, tmp_path: Path) -> None:
        told = data.prepare(sample_root / "maia", tmp_path, link)
        assert "48 of 2,400 questions" in told
        assert (tmp_path / "maia" / "videos" / "1.mp4").is_symlink() is link
        found = data.status(tmp_path)
        assert found.counts == {"questions": 48, "pools": 48, "pairs": 384}
        assert (found.found, found.videos) == (True, 2)
        data.prepare(sample_root / "maia" / "data.json", tmp_path, link)  # again: no harm

    def test_prepare_refuses_bad_data_and_leaves_nothing(
        self, released: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        question(released)["answer"].pop()
        source = write(tmp_path / "source", released)
        with pytest.raises(DataError, match="entry 4, answer"):
            data.prepare(source, tmp_path / "root", link=False)
        assert not (tmp_path / "root").exists()


def test_the_real_release(maia_data: Path) -> None:
    release = schema.read(maia_data)
    assert release.counts == {"videos": 5, "questions": 120, "pairs": 960}
    assert data.video_problems(release) == {}
    assert release.path_of("video5") == maia_data / "videos" / "5.mp4"
