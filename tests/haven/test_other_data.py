"""Replies about one release, and other data at hand: told apart by the record, not by the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import data, items, joined, saved, scores, text_scores, utils
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.judges import run as judge_run
from tests.haven.docs import doc
from tests.haven.release_files import write
from tests.haven.scored import FIRST, Made, clip_by_hand, made, no_encoder, no_notes, runs

CLIP = ("joined_clip_joint", "joined_clip_separate", "joined_clip_gain", "joined_clip_videos")


def prints() -> dict[str, str]:
    """Fingerprints of the data at hand, by video."""
    return {row["id"]: row["record"] for row in data.rows(data.load())}


class TestFingerprint:
    """Of what a record says: not of where its files lie, nor of the rest of the release."""

    def test_of_the_content_alone(
        self, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = prints()
        assert len(set(before.values())) == 3
        other = tmp_path / "other"
        user.parent.rename(other)
        monkeypatch.setenv(settings.DATA, str(other))
        assert prints() == before
        monkeypatch.setenv(settings.HAVEN, "sources=tvsum")
        assert prints() == {name: one for name, one in before.items() if name[:5] == "tvsum"}

    def test_another_video_of_the_release(self, user: Path) -> None:
        """A change there changes the release's digest, and no fingerprint but its own."""
        before, digest = prints(), data.load().digest
        write(user, "tvsum", 2, change=lambda g, _: g["video_2"]["clips"][0].update(summary="A."))
        after = prints()
        assert data.load().digest != digest
        assert [name for name in before if after[name] != before[name]] == ["tvsum/video_2"]

    @pytest.mark.parametrize(
        "change",
        [
            lambda given, _: given["frames"][3].update(description="Another."),
            lambda given, _: given["aligned_text_summary"]["sentences"].__setitem__(0, "No."),
            lambda given, _: given["aligned_full_document"]["sentences"].__setitem__(0, "No."),
            lambda given, _: given["aligned_text_summary"]["alignments"][0].update(shot_ids=[3]),
            lambda _, arrays: arrays["gtscore"].__setitem__(0, 0.875),
        ],
    )
    def test_what_a_record_says_counts(self, change: Any, user: Path) -> None:
        before = prints()
        write(user, "tvsum", 2, change=lambda g, a: change(g["video_1"], a["video_1"]))
        after = prints()
        assert [name for name in before if after[name] != before[name]] == ["tvsum/video_1"]

    @pytest.mark.parametrize("name", list(TASKS))
    def test_docs_and_items_have_it(self, name: str) -> None:
        given = doc(name, record="abc")
        assert items.doc(given, TASKS[name], Options())["record"] == "abc"
        assert utils.identity(given)["record"] == "abc"


@pytest.fixture(autouse=True)
def no_models(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(settings.JUDGE, "none")
    no_encoder(monkeypatch)
    clip_by_hand(monkeypatch)
    no_notes(monkeypatch)
    judge_run.forget()
    yield
    judge_run.forget()


def of_group(tasks: dict[str, list[Made]], name: str) -> Any:
    """A joined number as the host asks for it."""
    carriers = [
        scores.SCORES[task][name]([one[name] for one in some])
        for task, some in tasks.items()
        if name in scores.SCORES[task]
    ]
    return joined.join(carriers, [1] * len(carriers), False)


class TestJoined:
    """A video of which two tasks have different records is in no joined number."""

    @pytest.mark.parametrize("other", ["haven_v2t", "haven_v2v", "haven_v2vt"])
    def test_clipscore(self, other: str) -> None:
        replies = {
            "haven_v2t": "A cat runs.",
            "haven_v2v": "[1]",
            "haven_v2vt": "SUMMARY:\n1. A cat.\n2. A dog.\nIMPORTANT FRAMES: [Frame 7]",
        }
        some = {
            task: [made(task, reply, id=f"tvsum/video_{n}") for n in (1, 2)]
            for task, reply in replies.items()
        }
        expected = [2 / 4 + 0.07, 1 / 4 + 0.01, 0.31, 2]
        assert [of_group(some, name) for name in CLIP] == pytest.approx(expected)
        some[other][1] = made(other, replies[other], id="tvsum/video_2", record="another")
        expected[-1] = 1
        assert [of_group(some, name) for name in CLIP] == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("other", "reply"),
        [
            ("saliency", "Shot 4 > Shot 1 > Shot 3 > Shot 2"),
            ("grounding", "Summary 1: Clip 1\nSummary 2: Clip 2\nSummary 3: Clip 1"),
        ],
    )
    def test_consistency(self, other: str, reply: str) -> None:
        """Frames 1 and 12 lie in shots 1 and 4, frame 7 in shot 3."""
        v2v = [made("haven_v2v", r, id=f"a/{n}") for n, r in ((1, "[1]"), (2, "[7]"))]
        task = f"haven_{other}"
        same = [made(task, reply, id=f"a/{n}") for n in (1, 2)]
        found = {"haven_v2v": v2v, task: same}
        assert of_group(found, f"joined_{other}") == 0.5
        assert of_group(found, f"joined_{other}_videos") == 2
        found[task] = [same[0], made(task, reply, id="a/2", record="another")]
        assert of_group(found, f"joined_{other}") == 1
        assert of_group(found, f"joined_{other}_videos") == 1


class TestRescored:
    def test_different_data(self) -> None:
        """No number of other records; text proxies of theirs are joined among themselves."""
        given = runs("haven_v2v", record="a") + runs("haven_saliency", record="b")
        given += runs("haven_v2v_text", "haven_saliency_text", record="b")
        again = saved.rescore_saved(given, None)
        assert again.numbers["haven"] == {"joined_saliency_videos": 0}
        assert again.numbers["haven_text"]["joined_saliency"] == 1
        assert again.notes == [
            "m (x): its runs of haven are of different data in 3 videos, such as ovp/video_2: "
            "these are not joined"
        ]

    def test_one_video_is_of_different_data(self) -> None:
        """Only it is left out: what is left is the other video's value."""
        given = {run.task: run for run in runs("haven_v2t", "haven_v2v", "haven_v2vt")}
        given["haven_v2t"].samples[0][FIRST]["record"] = "other"
        again = saved.rescore_saved(list(given.values()), None)
        found = again.numbers["haven"]
        assert found["joined_clip_videos"] == 1
        assert found["joined_clip_joint"] == pytest.approx(0.25 + 0.12)
        assert again.notes == [
            "m (x): its runs of haven are of different data in 1 videos, such as tvsum/video_0: "
            "these are not joined"
        ]

    def test_the_same_records_of_another_release(self) -> None:
        """Runs with other `sources` differ in the release's digest, not in a record."""
        given = runs("haven_v2v", data="a") + runs("haven_saliency", data="b")
        again = saved.rescore_saved(given, None)
        assert again.numbers["haven"]["joined_saliency_videos"] == 1
        assert again.notes == []

    def test_what_was_not_computed_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        monkeypatch.setenv(settings.JUDGE, "none")
        no_encoder(monkeypatch)
        no_notes(monkeypatch)
        again = saved.rescore_saved(runs("haven_v2vt"), None)
        assert again.numbers["haven_v2vt"]["clipscore"] is None
        (note,) = again.notes
        assert note.startswith("CLIPScore not computed: no model was named with --clipscore")

    def test_a_clip_model_that_cannot_be_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As before a run: where summaries are scored."""
        monkeypatch.setenv(settings.CLIPSCORE, str(tmp_path / "none"))
        monkeypatch.setattr(text_scores, "clip_problem", lambda: "there is none")
        assert saved.rescore_saved(runs("haven_v2v"), None).numbers
        with pytest.raises(TasksError, match="there is none; nothing is downloaded"):
            saved.rescore_saved(runs("haven_v2v", "haven_v2t"), None)
