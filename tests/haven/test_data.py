"""Which items can be asked, the docs made of them, the frames read before a run, and what is told.

`user` is a root of three videos that are taken for good ones (conftest.py).
"""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError, PromptError, TasksError
from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.options import TASKS, HavenOptions
from lmms_eval_tasks.haven.settings import CLIPSCORE, HAVEN
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.media import indexed_frames
from lmms_eval_tasks.runs import prepare
from tests.checks import annotated, limits_of, refused
from tests.haven.docs import doc
from tests.haven.release_files import write

NAMES = list(TASKS)
PICTURED = [name for name in NAMES if not TASKS[name].text]
PROXIES = [name for name in NAMES if TASKS[name].text]
SALIENCY = [name for name in NAMES if TASKS[name].kind == "saliency"]
ALL = ["summe/video_1", "tvsum/video_1", "tvsum/video_2"]


def stopped(*tasks: str) -> str:
    with pytest.raises(TasksError) as error:
        prepare.check_tasks(tasks)
    return str(error.value)


def asked(task: str) -> list[str]:
    return [one["id"] for one in prepare.usable_docs(BENCHMARK, task)]


# --- which items can be asked ---------------------------------------------------------------------


def test_videos_that_are_bad_or_not_there(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Needed by tasks that show pictures; a bad record stops text proxies too."""
    lost = user / "videos" / "summe" / "video_1.mp4"
    lost.unlink()
    prepare.check_tasks(PROXIES)
    (user / "videos" / "tvsum" / "video_1.mp4").write_text("bad")
    write(user, "tvsum", 3, change=lambda given, _: given["video_3"].pop("frames"))
    unusable = "1 of 4 HAVEN videos cannot be used:\n  tvsum/video_3: tvsum_data.json"
    assert unusable in stopped("haven_v2v_text")
    for task in PICTURED:
        said = stopped(task, *PROXIES)
        needed = f"(required by {task}, not by tasks that end in _text):"
        assert unusable in said
        assert f"2 of 3 HAVEN videos cannot be used {needed}" in said
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    found = BENCHMARK.load(NAMES)
    for name in NAMES:
        without = {"tvsum/video_3", *([] if TASKS[name].text else ALL[:2])}
        assert found.left_out(name).keys() == without
    prepare.check_tasks(["haven_v2t", "haven_v2t_text"])
    lost.touch()  # what is there while the docs are made plays no part: the check decides
    assert (asked("haven_v2t"), asked("haven_v2t_text")) == (ALL[2:], ALL)
    assert asked("haven_v2v") == [ALL[0], ALL[2]]  # was not checked, so is looked at now


def test_a_models_limit_of_pictures(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left out and named, never cut. TVSum's videos have 20 frames, SumMe's 40, all four shots."""
    write(user, "summe", 1, frames=40)
    monkeypatch.setenv(HAVEN, "frames_per_shot=3,max_images=20")
    found = BENCHMARK.load(NAMES)
    for name in NAMES:
        lost = TASKS[name].kind in ("v2t", "v2v", "v2vt") and not TASKS[name].text
        assert list(found.left_out(name)) == (["summe/video_1"] if lost else []), name
    why = "not run: requires 40 images, the model's limit is 20 (max_images)"
    prepare.check_tasks(["haven_v2v"])
    assert limits_of(annotated("haven", "haven_v2v")) == [
        f"1 videos skipped (summe/video_1), such as summe/video_1: {why}",
        "made with --haven frames_per_shot=3,max_images=20: not the default",
    ]
    monkeypatch.setenv(HAVEN, "max_images=11,frames_per_shot=3")
    said = stopped("haven_v2t", "haven_temporal", "haven_v2t_text")
    assert said.count("none of 3 HAVEN videos") == 2
    assert "  tvsum/video_2: not run: requires 12 images, the model's limit is 11" in said
    assert said.endswith("Tasks that can be run: --tasks haven_v2t_text")


def test_a_task_without_items(user: Path) -> None:
    """It stops the run, which names the others."""
    for file in user.glob("*/h5/*.h5"):
        file.unlink()
    said = stopped(*SALIENCY, "haven_v2t", "haven_v2v")
    assert said.count("videos can be run:\n  summe/video_1: summe.h5: no such file") == 3
    assert said.endswith("Tasks that can be run: --tasks haven_v2t,haven_v2v")
    assert not stopped(*SALIENCY).endswith("--tasks ")


def test_what_stops_before_a_model_is_loaded(
    root: Path, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts, judge and CLIP model of the tasks that need them; options; data."""
    monkeypatch.setenv(CLIPSCORE, str(tmp_path / "none"))
    prepare.check_tasks(["haven_v2v"])
    assert "models are not downloaded: name the folder" in stopped("haven_v2v", "haven_v2vt")
    monkeypatch.delenv(CLIPSCORE)
    monkeypatch.delenv(settings.JUDGE)  # gpt-4.1-mini, for which no key is set
    for name in NAMES:
        if TASKS[name].kind in ("v2t", "v2vt"):
            assert "key" in stopped(name)
        else:
            prepare.check_tasks([name])
    monkeypatch.setenv(settings.PROMPTS, str(tmp_path / "none"))
    refused(PromptError, "no such folder of prompts", prepare.check_tasks, ["haven_v2v"])
    for options, told in (
        ("sources=ovp", "no file of ovp (expected processed/ovp_data.json"),
        ("shots=2", "shots: no such field"),
    ):
        monkeypatch.setenv(HAVEN, options)
        assert told in stopped("haven_temporal")
    monkeypatch.delenv(HAVEN)
    shutil.rmtree(root)
    for told in ("align_vsum", "ROOT/haven", "data prepare"):
        assert told in stopped("haven_v2t")


# --- docs -----------------------------------------------------------------------------------------


def row(**given: Any) -> data.Row:
    """A row of one video: a hand-made doc, of which what a task adds is made anew."""
    return doc("haven_v2t", **given)


def made(task: str, given: data.Row | None = None, **options: Any) -> data.Row:
    given = row(frames=60, shots=12) if given is None else given
    return data.make_doc(given, TASKS[task], HavenOptions(**options))


# Of tvsum/video_7: temporal, saliency, grounding.
PINNED = [[9, 6, 12, 5, 7], [1, 2, 3, 4, 6, 8, 11, 12], [8, 6, 1]]


def test_a_record_is_told_from_others_by_what_it_says(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by where its files lie, nor by the rest of the release."""

    def prints() -> dict[str, str]:
        return {record.id: data.row(record, "")["record"] for record in data.load_haven().records}

    first, digest = prints(), data.load_haven().digest
    assert len(set(first.values())) == 3
    changes: list[Any] = [
        lambda given, _: given["frames"][3].update(description="Another."),
        lambda given, _: given["aligned_text_summary"]["alignments"][0].update(shot_ids=[3]),
        lambda _, arrays: arrays["gtscore"].__setitem__(0, 0.875),
    ]
    for change in changes:
        write(user, "tvsum", 2, change=lambda g, a, c=change: c(g["video_1"], a["video_1"]))  # type: ignore[misc]
        assert [name for name, own in prints().items() if own != first[name]] == ["tvsum/video_1"]
        assert data.load_haven().digest != digest
    write(user, "tvsum", 2)
    user.parent.rename(tmp_path / "other")
    monkeypatch.setenv(settings.DATA, str(tmp_path / "other"))
    monkeypatch.setenv(HAVEN, "sources=tvsum")
    assert prints() == {name: one for name, one in first.items() if name[:5] == "tvsum"}


def test_k_sentences_and_references() -> None:
    """15 % of F, rounded up, whatever the number of true keyframes."""
    for frames, k in ((1, 1), (6, 1), (7, 2), (13, 2), (14, 3), (20, 3), (21, 4), (165, 25)):
        for keyframes in ([1], list(range(1, frames + 1))):
            given = row(frames=frames, shots=1, sentences=1, keyframes=keyframes)
            assert made("haven_v2v", given)["budget"] == k
    for task, variant in TASKS.items():
        given = {**row(), "tagged": "In short [1]: thing ba."}
        tagged = made(task, given, reference="tagged")
        shown = "In short [1]: thing ba." if variant.text or variant.kind == "v2vt" else ""
        assert (tagged["tagged"], made(task, given)["tagged"]) == (shown, "")
        assert tagged["n_sentences"] == (3 if variant.kind in ("v2t", "v2vt") else 0)
    gap = made("haven_v2vt", {**row(), "shots": [[1, 2], [4, 5]]})
    assert [made("haven_v2vt")["layout"], gap["layout"]] == ["v2vt", "v2vt_frames"]


def test_the_draws_of_the_authors_code() -> None:
    """By their rules written out again; the numbers are pinned, as every Python draws them."""

    def by_rule(first: int, most: int, of: int, shuffled: bool) -> list[int]:
        draw = random.Random(first)
        found = sorted(draw.sample(range(of), most))
        order = list(range(most))
        if shuffled:
            draw.shuffle(order)
        return [1 + found[place] for place in order]

    given = row(frames=60, shots=12, sentences=9)  # tvsum/video_7
    first = 42 + int(hashlib.md5(b"video_7").hexdigest()[:8], 16)
    whole = int(hashlib.md5(b"42:tvsum:video_7").hexdigest(), 16) % 2**32
    # What is true of a video has no say in its draw, nor what else is chosen.
    truth = {"importance": [1.0] * 12, "keyframes": [9], "data": "x", "picks": list(range(60))}
    for end in ("", "_doc", "_text"):
        for kind, rule in (
            ("temporal", by_rule(first, 5, 12, True)),
            ("saliency", by_rule(whole, 8, 12, False)),
        ):
            assert made(f"haven_{kind}{end}", given)["units"] == rule
            other = made(f"haven_{kind}{end}", {**given, **truth}, size=64, frames_per_shot=1)
            assert other["units"] == rule
            assert made(f"haven_{kind}{end}", given, seed=1)["units"] != rule
    assert made("haven_grounding", given)["sentences"] == by_rule(whole, 3, 9, True)
    pinned = [made(f"haven_{kind}", given)["units"] for kind in ("temporal", "saliency")]
    assert [*pinned, made("haven_grounding", given)["sentences"]] == PINNED
    # Sources share the order's draw, and no other.
    other = {**given, "source": "summe", "id": "summe/video_7"}
    assert made("haven_temporal", other)["units"] == pinned[0]
    assert made("haven_saliency", other)["units"] != pinned[1]
    assert made("haven_temporal", {**given, "video": "video_8"})["units"] != pinned[0]
    # What is drawn of: all clips are shown, and sentences without a shot may be asked about.
    some = {**given, "summary_shots": [[]] * 9, "document": ["One."] * 4}
    found = made("haven_grounding", some)
    assert (found["units"], len(found["sentences"])) == (list(range(1, 13)), 3)
    told = made("haven_temporal_text", some, temporal_text="sentences")
    assert (sorted(told["units"]), told["n_images"]) == (list(range(1, 5)), 0)
    few = row(shots=3, sentences=2)
    assert sorted(made("haven_temporal", few)["units"]) == [1, 2, 3]
    assert sorted(made("haven_grounding", few)["sentences"]) == [1, 2]


def test_frames_of_a_shot() -> None:
    """Uniform over its sampled frames, the ends among them; of a clip the first 0.3 n, 4 to 8."""
    for frames, limit, shown in (
        ([3, 4, 5], 0, [3, 4, 5]),
        ([3, 4, 5], 1, [3]),
        ([3, 4, 5], 2, [3, 5]),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 4, [1, 4, 7, 10]),
        ([2, 9], 4, [2, 9]),
        ([3, 4, 5], "authors", [3, 4, 5]),
    ):
        assert data.shown_frames(frames, limit) == shown
    for n, first in ((1, 1), (3, 3), (4, 4), (15, 4), (16, 5), (25, 8), (26, 8), (90, 8)):
        assert data.shown_frames(range(1, n + 1), "authors", "grounding") == list(
            range(1, first + 1)
        )
    given = row(frames=24, shots=3)  # eight frames each
    found = made("haven_temporal", given, frames_per_shot=2)
    ends = {1: [1, 8], 2: [9, 16], 3: [17, 24]}
    assert found["unit_frames"] == [ends[unit] for unit in found["units"]]
    for task, n in (("haven_saliency", 8), ("haven_temporal_doc", 8), ("haven_grounding", 4)):
        assert [len(one) for one in made(task, given)["unit_frames"]] == [n, n, n]


# --- before the model is loaded, and in the results -----------------------------------------------


def test_frames_are_read_once_for_all_tasks(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, int, int]] = []

    def frames(path: str, picks: Sequence[int], size: int) -> None:
        name = f"{Path(path).parent.name}/{Path(path).stem}"
        read.append((name, len(picks), size))
        if Path(path).read_text() == "cut":
            raise MediaError(f"{name}: damaged")

    def prepared(*tasks: str, limit: float | None = None) -> None:
        read.clear()
        prepare.check_tasks(tasks)
        prepare.make_media(tasks, limit)

    monkeypatch.setattr(indexed_frames, "load_frames", frames)
    prepared(*PROXIES)
    assert read == []
    prepared(*NAMES)
    assert sorted(read) == [(name, 20, 512) for name in ALL]
    prepared("haven_temporal", "haven_temporal_text", limit=2)
    assert sorted(name for name, *_ in read) == ALL[:2]
    with monkeypatch.context() as patched:
        patched.setenv(HAVEN, "size=64,sources=summe")
        prepared("haven_grounding")
        assert read == [("summe/video_1", 20, 64)]
    (user / "videos" / "summe" / "video_1.mp4").write_text("cut")
    with pytest.raises(DataError, match="HAVEN: 1 of 3 items cannot be run:\n  s"):
        prepared("haven_v2t", "haven_temporal_text")
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    prepared("haven_v2t", "haven_temporal_text")
    assert (asked("haven_v2t"), asked("haven_temporal_text")) == (ALL[1:], ALL)
    lost = {"summe/video_1": "summe/video_1: damaged"}
    section = annotated("haven", "haven_v2t", "haven_temporal_text")
    assert section["left_out"] == {"haven_v2t": lost}
