"""A task without one item among others: one doc that asks nothing, and no number of it anywhere.

Without HDF5 the saliency tasks are such tasks; the texts say why, and the run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import (
    before_run,
    benchmark,
    checked,
    data,
    items,
    pictures,
    saved,
    scores,
    scripted,
    usability,
    utils,
)
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.uncertainty import details
from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.runs import estimate, preflight
from lmms_eval_tasks.sample import players
from tests.haven.docs import doc
from tests.haven.release_files import write
from tests.haven.scored import (
    FIRST,
    clip_by_hand,
    made,
    no_encoder,
    no_notes,
    of_doc,
    runs,
    saved_run,
    values,
)

NAMES = list(TASKS)
SALIENCY = [name for name in NAMES if TASKS[name].kind == "saliency"]
WHY = (
    "not one of 3 items can be run, such as summe/video_1: summe.h5: no such file, so no importance"
)


@pytest.fixture
def no_hdf5(user: Path) -> Path:
    for source, videos in (("tvsum", 2), ("summe", 1)):
        write(user, source, videos, hdf5=False)
        (user / source / "h5" / f"{source}.h5").unlink()
    return user


def task(name: str) -> dict[str, Any]:
    return {
        "task": name,
        "metadata": {"judged": name in ("haven_v2t", "haven_v2vt"), "benchmark": "haven"},
        "generation_kwargs": {"max_new_tokens": 9},
    }


def docs(name: str) -> list[dict[str, Any]]:
    rows = datasets.load_from_disk(data.DATASET_PATH)["test"]
    return list(data.process_docs(name)(rows))


class TestDocs:
    def test_after_a_check(self, no_hdf5: Path) -> None:
        before_run.check([task(name) for name in NAMES])
        for name in NAMES:
            made_docs = docs(name)
            why = {one["not_run"] for one in made_docs}
            assert (len(made_docs), why) == ((1, {WHY}) if name in SALIENCY else (3, {""})), name

    @pytest.mark.parametrize("name", SALIENCY)
    def test_without_a_check(self, name: str, no_hdf5: Path) -> None:
        """Of the other tasks of a run nothing is known: that stops a check, not the docs."""
        with pytest.raises(DataError, match=f"{name}: not one of 3 items can be run:"):
            before_run.check([task(name)])
        (one,) = docs(name)
        assert one["not_run"] == WHY

    def test_too_many_pictures(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.HAVEN, "max_images=19")
        before_run.check([task("haven_v2v"), task("haven_saliency")])
        (one,) = docs("haven_v2v")
        assert one["not_run"].startswith(
            "not one of 3 items can be run, such as summe/video_1: not"
        )
        assert len(docs("haven_saliency")) == 3

    def test_no_summaries(self, user: Path) -> None:
        """And no document: every task that needs such a text, the others as ever."""

        def change(given: dict[str, Any], _: object) -> None:
            for entry in given.values():
                entry["aligned_text_summary"] = entry["aligned_full_document"] = None

        write(user, "tvsum", 2, change=change)
        write(user, "summe", 1, change=change)
        before_run.check([task(name) for name in NAMES])
        ran = {name for name in NAMES if not docs(name)[0]["not_run"]}
        assert ran == {
            *("haven_v2v", "haven_temporal", "haven_saliency"),
            *("haven_v2v_text", "haven_saliency_text"),
        }

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize(
        "lacking", [(), ("importance", "summary", "summary_shots", "document")]
    )
    def test_nothing_is_shown(self, name: str, lacking: Sequence[str]) -> None:
        row = {field: doc(name)[field] for field in doc(name)} | {field: [] for field in lacking}
        one = items.not_run(row, TASKS[name], Options(), "why")
        assert (one["units"], one["unit_frames"], one["sentences"]) == ([], [], [])
        assert (one["not_run"], items.n_images(one)) == ("why", 0)
        assert one.keys() == items.doc(row, TASKS[name], Options()).keys()
        assert list(datasets.Dataset.from_list([one])) == [one]


class TestRequests:
    @pytest.mark.parametrize("name", NAMES)
    def test_nothing_is_asked(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def opened(*_: object) -> None:
            raise AssertionError("a picture was opened")

        monkeypatch.setattr(pictures, "pictures", opened)
        one = doc(name, not_run="why")
        kwargs = {"pre_prompt": "A", "post_prompt": "Z", "placeholder": "<image {n}>"}
        for given in (None, kwargs):
            assert utils.doc_to_text(one, given).startswith("Nothing is asked here")
            (message,) = utils.doc_to_messages(one, given)
            text = {"type": "text", "text": utils.NOTHING_ASKED}
            assert message == {"role": "user", "content": [text]}
        assert utils.doc_to_visual(one) == []

    @pytest.mark.parametrize("name", NAMES)
    def test_scripted_replies(self, name: str) -> None:
        for worth in ("right", "wrong", "unreadable"):
            assert scripted.reply(doc(name, not_run="why"), worth) == "skipped"
        assert players.scripted(doc(name, not_run="why")) == "skipped"

    def test_no_frames_are_read(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its doc counts for a share of the first task's: 1 of 1 is one doc of each task."""
        read: list[str] = []
        monkeypatch.setattr(pictures, "make", lambda path, *_: read.append(Path(path).stem))
        monkeypatch.setenv(settings.HAVEN, "max_images=19")
        names = [task("haven_v2v"), task("haven_saliency")]
        before_run.check([names[0], task("haven_v2v_text")])
        before_run.make_media(names[:1])
        assert read == []
        before_run.check(names)
        before_run.make_media(names, 0.5)
        assert len(read) == 1


class TestItems:
    @pytest.fixture(autouse=True)
    def no_models(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.JUDGE, "none")
        no_encoder(monkeypatch)
        clip_by_hand(monkeypatch)
        no_notes(monkeypatch)

    @pytest.mark.parametrize("name", NAMES)
    def test_in_no_number(self, name: str) -> None:
        one = made(name, "skipped", not_run="why")
        assert one.keys() == {FIRST}
        assert (one[FIRST]["status"], one[FIRST]["not_run"]) == ("not_run", "why")
        assert values(name, [one]) == {"failed": 0}
        assert details(name, [one[FIRST]]) == {"items": 0, "not_run": "why"}

    def test_it_is_no_failure(self) -> None:
        statuses = [{"status": status} for status in ("ok", "not_run", "empty", "error")]
        assert scores.count_failed(statuses) == 2

    @pytest.mark.parametrize("name", NAMES)
    def test_rescored(self, name: str) -> None:
        other = "haven_v2v" if name != "haven_v2v" else "haven_saliency"
        none = saved_run(name, [made(name, "skipped", not_run="why not")])
        again = saved.rescore_saved([none, *runs(other)], None)
        assert again.numbers.keys() == {name, other}
        assert again.numbers[name] == {"failed": 0}
        assert again.numbers[other]["videos"] == 3
        assert again.sidecar[name] == {"items": 0, "not_run": "why not"}
        assert again.notes == [f"{name}: not run: why not"]
        assert name not in again.verdicts

    def test_one_without_its_reason(self) -> None:
        run = saved_run("haven_v2t", [made("haven_v2t", "skipped", not_run="why")])
        del run.samples[0][FIRST]["not_run"]
        with pytest.raises(DataError, match=r"line 1, tvsum/video_7 has no text `not_run`; take"):
            saved.rescore_saved([run], None)


def annotated(told: dict[str, Any], *names: str) -> dict[str, Any]:
    preflight.annotate(told, [task(name) for name in names])
    section: dict[str, Any] = told["lmms_eval_tasks"]["haven"]
    assert json.loads(json.dumps(section)) == section
    return section


def test_results(no_hdf5: Path) -> None:
    names = ["haven_v2v", "haven_saliency"]
    before_run.check([task(name) for name in names])
    given = {name: [of_doc(one, "[1]") for one in docs(name)] for name in names}
    numbers = {
        name: {f"{metric},none": value for metric, value in values(name, some).items()}
        for name, some in given.items()
    }
    told: dict[str, Any] = {"results": numbers, "samples": given}
    section = annotated(told, *names)
    assert section["warnings"] == [f"haven_saliency: not run: {WHY}"]
    assert section["details"]["haven_saliency"] == {"items": 0, "not_run": WHY}
    assert section["details"]["haven_v2v"]["items"] == 3
    assert told["results"]["haven_saliency"] == {"failed,none": 0}
    assert told["lmms_eval_tasks"]["invalid"] == {}
    printed = benchmark.tables(told)
    assert printed[-1] == f"Note: haven_saliency: not run: {WHY}"


def test_the_estimate_leaves_it_out(no_hdf5: Path) -> None:
    config = resolve("gpt-4.1-mini", {"OPENAI_API_KEY": "x"}, default_model="gpt-4.1-mini")
    found = [estimate.estimate(task(name), config) for name in ("haven_v2t", "haven_saliency")]
    assert [(one.generations, one.verdicts) for one in found] == [(3, 3), (0, 0)]
    assert found[1].prompt_tokens == 0
    assert estimate.table(found, 1.0).row_count == 3


def test_not_one_task_has_an_item(no_hdf5: Path) -> None:
    """That stops before the model is built; nothing is remembered."""
    with pytest.raises(DataError) as error:
        before_run.check([task(name) for name in SALIENCY])
    said = str(error.value)
    assert said.startswith(f"{no_hdf5}: haven_saliency: not one of 3 items can be run:\n  summe/")
    assert said.count("not one of 3 items can be run:") == 3
    assert checked.last() is None
    assert usability.not_run({"b/2": "two", "a/1": "one"}).endswith("such as a/1: one")
