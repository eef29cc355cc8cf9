"""Candidates: predictions as released, saved samples, and the five published models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.cvrr_es.candidates import Aligned, align, fitting, read
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.release import Release
from lmms_eval_tasks.errors import DataError
from tests.checks import refused
from tests.cvrr_es.release_files import (
    MODELS,
    asked,
    predict,
    real_data,
    release_from_judgements,
    row,
    write,
)
from tests.cvrr_es.scored import PART, REFUSED, TIME

CONTINUITY = "continuity_and_object_instance_count"
ALLOW = "LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS"


@pytest.fixture
def asks(tmp_path: Path) -> Release:
    """Three questions and one that repeats."""
    rows = [row("A?", "a"), row("X?", "x1"), row("B?", "b"), row("X?", "x2")]
    write(tmp_path / "release", PART, rows)
    return release.read(tmp_path / "release")


def aligned(folder: Path, asks: Release, rows: Any) -> Aligned:
    """The alignment of one candidate's answers in PART."""
    model = folder / "predictions" / "model"
    predict(model, PART, rows)
    return alone([model], asks)


def alone(paths: list[Path], asks: Release) -> Aligned:
    """The one candidate of these files."""
    ((name, own),) = read(paths).items()
    return align(name, own, asks)


class TestPredictions:
    """Released files: what is cleaned, what is counted."""

    def test_tokens_and_ends(self, tmp_path: Path, asks: Release) -> None:
        rows = [
            ("<image> <image>\nA?", "Yes.</s>"),
            ("<|image|><video>\n X?", " No </s> \n"),
            ("<ImageHere> B?", "One.\n\nTwo </s>!"),
            ("\tX?", "</s>"),
        ]
        found = aligned(tmp_path, asks, rows)
        assert list(found.answers.values()) == ["Yes.", "No", "One.\n\nTwo </s>!", ""]
        assert (found.empty, found.problems) == ((f"{PART}/004",), ())
        for question in ("A <image> here?", "<b> in bold?", "< image >?"):  # is no image token
            write(tmp_path / "release", PART, [row(question)])
            found = aligned(tmp_path, release.read(tmp_path / "release"), [(question, "Yes.")])
            assert len(found.answers) == 1

    def test_empty_answers_are_kept(self, tmp_path: Path, asks: Release) -> None:
        rows = [("A?", ""), ("X?", " "), ("B?", "..."), ("X?", REFUSED)]  # the last is none
        found = aligned(tmp_path, asks, rows)
        assert found.answers[f"{PART}/004"] == REFUSED
        assert found.empty == (f"{PART}/001", f"{PART}/002", f"{PART}/003")
        assert fitting([tmp_path / "predictions"], asks) == [found]

    def test_what_does_not_fit(
        self, tmp_path: Path, asks: Release, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One line each, with file and first place; left out only where the user says so."""
        fits = "answers that fit no question of the release, or several"
        texts: list[tuple[Any, list[str], int]] = [
            (
                [("A?", "1"), ("X?", "2"), ("Z?", "3"), ("X?", "4")],
                [
                    f"{fits}: 3, first 'X?'",
                    f"questions without an answer: 3, first {PART}/002 (X?)",
                ],
                1,
            ),
            (
                [("A?", "1"), ("A?", "1"), ("X?", None), ("B?", None), (3, "4")],
                [
                    f"{fits}: 4, first 'A?'",
                    "answers whose `A` is no text: 1, first 'B?'",
                    f"questions without an answer: 3, first {PART}/001 (A?)",
                ],
                0,
            ),
        ]
        file = tmp_path / "predictions" / "model" / f"{PART}.json"
        for rows, told, left in texts:
            found = aligned(tmp_path, asks, rows)
            assert list(found.problems) == [f"{file}: {line}" for line in told]
            assert len(found.answers) == left
            with pytest.raises(DataError, match=r"not one answer|answers do not fit the release"):
                fitting([tmp_path / "predictions"], asks)
        found = aligned(tmp_path, asks, texts[0][0])
        monkeypatch.setenv(ALLOW, "1")
        assert fitting([tmp_path / "predictions"], asks) == [found]

    def test_bad_rows_and_other_dimensions(self, tmp_path: Path, asks: Release) -> None:
        predict(tmp_path / "model", TIME, [("When?", "Now.")])
        found = alone([tmp_path / "model"], asks)
        assert found.problems == (f"model: no answers in {PART} (4 questions)",)
        with pytest.raises(DataError, match="model: not one answer fits the release: model: no an"):
            fitting([tmp_path / "model"], asks)
        # A bad row of the release is no problem of the answers.
        write(tmp_path / "release", PART, [row("A?"), row("X?", ""), row("X?", "x2")])
        again = release.read(tmp_path / "release")
        found = aligned(tmp_path, again, [("A?", "1"), ("X?", "2"), ("X?", "3")])
        assert found.answers == {f"{PART}/001": "1", f"{PART}/003": "3"}
        assert found.problems == ()


class TestRead:
    """Where candidates are found, and what is no candidate."""

    def test_folders(self, tmp_path: Path) -> None:
        for model in ("two", "one"):
            predict(tmp_path / "all" / model, PART, [("A?", model)])
        (tmp_path / "all" / "notes").mkdir()
        predict(tmp_path / "alone", TIME, [("A?", "x")])
        found = read([tmp_path / "alone", tmp_path / "all", tmp_path / "all"])
        names = [(name, list(own)) for name, own in found.items()]
        assert names == [("alone", [TIME]), ("one", [PART]), ("two", [PART])]

    def test_what_is_no_candidate(self, tmp_path: Path) -> None:
        refused(DataError, "nowhere: no such file or folder", read, [tmp_path / "nowhere"])
        refused(DataError, "no answers of a candidate", read, [tmp_path])
        for folder in ("a", "b"):
            file = predict(tmp_path / folder / "model", PART, [("A?", "x")])
        with pytest.raises(DataError, match=rf"two files with answers in {PART} by model:"):
            read([tmp_path / "a", tmp_path / "b"])
        refused(DataError, r"json: name its folder, whose name is the candidate", read, [file])
        for content, told in (('{"a": 1}', "expected a list"), ("[]", "holds no answers")):
            file.write_text(content)
            refused(DataError, f"^{file}: {told}", read, [file.parent])


class TestSavedSamples:
    """Runs of `cvrr_es_DIMENSION`: joined by ids, named by the run's model."""

    def save(
        self, folder: Path, items: list[dict[str, Any]], task: str = f"cvrr_es_{PART}"
    ) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"20250101_samples_{task}.jsonl"
        short = {"status": "ok", "right": 1}
        lines = [{"doc_id": n, "acc": short, "failed": item} for n, item in enumerate(items)]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file

    def item(self, place: int, reply: str, **more: Any) -> dict[str, Any]:
        kept = {"id": f"{PART}/{place:03d}", "dimension": PART, "reply": reply, "status": "ok"}
        return {**kept, **more}

    def test_joined_by_id(self, tmp_path: Path, asks: Release) -> None:
        folder = tmp_path / "org__model"
        self.save(
            folder,
            [
                self.item(4, "four", question="X?"),
                self.item(1, "<think>So ...</think> One.", answer="not looked at"),
                self.item(2, "[LMMS_EVAL_REQUEST_FAILED after 5 retries] no route"),
                self.item(3, "<think>and then"),
            ],
        )
        self.save(folder, [self.item(1, "rated")], task="cvrr_judge")
        self.save(folder, [self.item(1, "other")], task=f"cvrr_{PART}")
        found = alone([folder], asks)
        assert found.candidate == "org__model"
        assert list(found.answers.values()) == ["One.", "", "", "four"]
        assert len(found.empty) == 2
        assert found.problems == ()

    def test_names(self, tmp_path: Path) -> None:
        """Of the run's results, or of its items; with the hint or without."""
        tasks = (f"cvrr_es_{PART}", f"cvrr_es_hint_{TIME}")
        parts = [self.save(tmp_path, [self.item(1, "x")], task) for task in tasks]
        config = {"config": {"model": "tiny", "model_args": "a=1"}}
        (tmp_path / "20250101_results.json").write_text(json.dumps(config))
        for paths in ([tmp_path], parts):
            ((name, own),) = read(paths).items()
            assert (name, {*own}) == ("tiny (a=1)", {PART, TIME})
        items = [self.item(1, "x", candidate="tiny"), self.item(2, "y", candidate="tiny")]
        file = self.save(tmp_path / "named", items)
        assert list(read([file])) == ["tiny"]
        items[1]["candidate"] = "huge"
        self.save(tmp_path / "named", items)
        refused(DataError, "answers of tiny and of huge; one file, one model", read, [file])

    def test_problems(self, tmp_path: Path, asks: Release) -> None:
        items = [self.item(n, text) for n, text in ((1, "a"), (2, "b"), (9, "d"))]
        file = self.save(tmp_path, [*items, self.item(3, "e", question="Another?")])
        found = alone([file], asks)
        assert found.answers == {f"{PART}/001": "a", f"{PART}/002": "b"}
        assert list(found.problems) == [
            f"{file}: answers that fit no question of the release, or several: 2, first {PART}/003",
            f"{file}: questions without an answer: 2, first {PART}/003 (B?)",
        ]

    def test_bad_files(self, tmp_path: Path) -> None:
        for items, task, told in (
            ([{"id": "x"}], f"cvrr_es_{PART}", "line 1: no `failed` item of this suite"),
            ([self.item(1, "x")], "cvrr_judge", "cvrr_judge is no task with answers of CVRR-ES"),
        ):
            refused(DataError, told, read, [self.save(tmp_path, items, task)])
        self.save(tmp_path / "model", [self.item(1, "x")])
        shutil.copytree(tmp_path / "model", tmp_path / "again" / "model")
        with pytest.raises(DataError, match=f"two files with answers in {PART} by model"):
            read([tmp_path / "model", tmp_path / "again" / "model"])


# --- the five published models' answers, and annotations made of the published judgements ---------


def references(model: str, dimension: str) -> dict[tuple[str, str], set[str]]:
    """Published (question, answer) -> references, read without the code under test."""
    file = real_data() / "judge_results" / model / f"{dimension}.json"
    found: dict[tuple[str, str], set[str]] = {}
    for one in map(asked, json.loads(file.read_text(encoding="utf-8"))):
        answer = one["pred"].removesuffix("</s>").strip()
        found.setdefault((one["q"].split("\n")[-1].strip(), answer), set()).add(one["a"].strip())
    return found


def assert_placed(found: Aligned, asks: Release, model: str, *, but: str = "") -> None:
    """Every answer stands at the reference that it was judged against."""
    judged = {dimension: references(model, dimension) for dimension in DIMENSIONS}
    for one in asks.questions:
        if one.id in found.answers and one.id != but:
            key = (one.question, found.answers[one.id])
            assert one.reference in judged[one.dimension][key], one.id


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Annotations of GPT4o's judgements, in their order."""
    folder = tmp_path_factory.mktemp("gpt4o")
    return release.read(release_from_judgements(real_data() / "judge_results", folder))


class TestPublished:
    """All five models' 2,400 answers, against annotations in GPT4o's order.

    Four models were asked an older version: place 174 of one dimension had another question, and
    place 175 another reference.
    """

    @pytest.mark.parametrize("model", MODELS)
    def test_every_answer(self, model: str, published: Release) -> None:
        source = real_data() / "predictions" / model
        found = alone([source], published)
        assert (found.candidate, found.empty) == (model, ())
        if model == "Video-LLaVA":  # written with image tokens and ends
            assert not any("</s>" in answer for answer in found.answers.values())
        assert_placed(found, published, model, but=f"{CONTINUITY}/175")
        if model == "GPT4o":
            assert (len(found.answers), found.problems) == (2400, ())
            return
        file = source.resolve() / f"{CONTINUITY}.json"
        assert list(found.problems) == [
            f"{file}: answers that fit no question of the release, or several: 1, first 'What "
            "common clothing item is worn by both men who appear in the scene?'",
            f"{file}: questions without an answer: 1, first {CONTINUITY}/174 "
            "(How many persons are featured in the video?)",
        ]
        assert len(found.answers) == 2399

    def test_annotations_in_another_order(self, tmp_path: Path) -> None:
        """Those of the other four models' judgements: two blocks of one dimension moved."""
        results = real_data() / "judge_results"
        asks = release.read(release_from_judgements(results, tmp_path, model="TimeChat"))
        for model in ("TimeChat", "Video-LLaVA"):
            found = alone([real_data() / "predictions" / model], asks)
            assert (len(found.answers), found.problems) == (2400, ())
            assert_placed(found, asks, model)
