"""Candidates: predictions as released, saved samples, and the five published models."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.cvrr_es.candidates import Aligned, align, fitting, join, read_candidates
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
FITS = "answers that fit no question of the release, or several questions"
LACKS = "questions without an answer"


@pytest.fixture
def asks(tmp_path: Path) -> Release:
    """Three questions and one that repeats."""
    rows = [row("A?", "a"), row("X?", "x1"), row("B?", "b"), row("X?", "x2")]
    write(tmp_path / "release", PART, rows)
    return release.read_cvrr(tmp_path / "release")


def alone(path: Path, asks: Release) -> Aligned:
    """The one candidate that is there."""
    ((name, own),) = read_candidates([path]).items()
    return align(name, own, asks)


def aligned(folder: Path, asks: Release, rows: Any) -> Aligned:
    """One candidate's answers in PART."""
    predict(folder / "predictions" / "model", PART, rows)
    return alone(folder / "predictions" / "model", asks)


# --- predictions as released ----------------------------------------------------------------------


def test_tokens_ends_and_empty_answers(tmp_path: Path, asks: Release) -> None:
    for questions, said, answers, empty in (
        (
            ("<image> <image>\nA?", "<|image|><video>\n X?", "<ImageHere> B?", "\tX?"),
            ("Yes.</s>", " No </s> \n", "One.\n\nTwo </s>!", "</s>"),
            ["Yes.", "No", "One.\n\nTwo </s>!", ""],
            (4,),
        ),
        (("A?", "X?", "B?", "X?"), ("", " ", "...", REFUSED), ["", "", "...", REFUSED], (1, 2, 3)),
    ):
        found = aligned(tmp_path, asks, [*zip(questions, said, strict=True)])
        assert list(found.answers.values()) == answers
        assert found.empty == tuple(f"{PART}/{n:03d}" for n in empty)
        assert fitting([tmp_path / "predictions"], asks) == [found]
    for question in ("A <image> here?", "<b> in bold?", "< image >?"):  # is no image token
        write(tmp_path / "release", PART, [row(question)])
        found = aligned(tmp_path, release.read_cvrr(tmp_path / "release"), [(question, "Yes.")])
        assert len(found.answers) == 1


def test_what_does_not_fit(tmp_path: Path, asks: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each, with file and first place; left out only where the user says so."""
    file = tmp_path / "predictions" / "model" / f"{PART}.json"
    for rows, told, why in (
        (
            [("A?", "1"), ("A?", "1"), ("X?", None), ("B?", None), (3, "4")],
            [
                f"{FITS}: 4, first 'A?'",
                "answers whose `A` is not a text: 1, first 'B?'",
                f"{LACKS}: 3, first {PART}/001 (A?)",
            ],
            "model: no answer fits",
        ),
        (
            [("A?", "1"), ("X?", "2"), ("Z?", "3"), ("X?", "4")],
            [f"{FITS}: 3, first 'X?'", f"{LACKS}: 3, first {PART}/002 (X?)"],
            "answers do not fit the release",
        ),
    ):
        found = aligned(tmp_path, asks, rows)
        assert list(found.problems) == [f"{file}: {line}" for line in told]
        with pytest.raises(DataError, match=why):
            fitting([tmp_path / "predictions"], asks)
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    assert fitting([tmp_path / "predictions"], asks) == [found]
    predict(tmp_path / "model", TIME, [("When?", "Now.")])
    found = alone(tmp_path / "model", asks)
    assert found.problems == (f"model: no answers in {PART} (4 questions)",)
    # A bad row of the release is no problem of the answers.
    write(tmp_path / "release", PART, [row("A?"), row("X?", ""), row("X?", "x2")])
    again = release.read_cvrr(tmp_path / "release")
    found = aligned(tmp_path, again, [("A?", "1"), ("X?", "2"), ("X?", "3")])
    assert (found.answers, found.problems) == ({f"{PART}/001": "1", f"{PART}/003": "3"}, ())


def test_folders(tmp_path: Path) -> None:
    for model in ("two", "one"):
        file = predict(tmp_path / "all" / model, PART, [("A?", model)])
    (tmp_path / "all" / "notes").mkdir()
    predict(tmp_path / "alone", TIME, [("A?", "x")])
    found = read_candidates([tmp_path / "alone", tmp_path / "all", tmp_path / "all"])
    names = [(name, list(own)) for name, own in found.items()]
    assert names == [("alone", [TIME]), ("one", [PART]), ("two", [PART])]
    refused(DataError, "nowhere: no such file or folder", read_candidates, [tmp_path / "nowhere"])
    for path in (tmp_path / "all" / "notes", file):
        refused(DataError, f"{path}: no answers", read_candidates, [path])
    predict(tmp_path / "b" / "one", PART, [("A?", "x")])
    both = [tmp_path / "all", tmp_path / "b"]
    refused(DataError, rf"two files with answers in {PART} by one:", read_candidates, both)
    for content in ('{"a": 1}', "[]", "[1]"):
        file.write_text(content)
        refused(DataError, f"^{file}: expected a list", read_candidates, [file.parent])


# --- which answer is to which question -----------------------------------------------------------


def test_what_is_joined() -> None:
    """Answers' questions, the annotations, places in the order of the answers; "." is none."""
    for answers, places, joined in (
        *((one, one, "012") for one in ("abc", "aba", "aaa")),
        ("cab", "abc", "201"),
        # The blocks ax and cx moved; inside them nothing did.
        ("cxdabxe", "abxecxd", "4560123"),
        # On one side alone neighbours tell nothing.
        ("axbcxd", "axcbxd", "0.32.5"),
        ("axb", "axxb", "0.3"),
        # One answer and one place are left.
        ("xabx", "axbx", "1023"),
        # Neighbours that are answered twice are none, nor is the end of a cut file.
        ("axbaxb", "axbx", "......"),
        ("ax", "axbx", "0."),
        # Numbers that do not match.
        ("azc", "abc", "0.2"),
        ("abbc", "abc", "0..2"),
        ("axbxcx", "axbxc", "01234."),
        ("axbc", "axbcx", "0123"),
        # A row without a text is nothing to be found by.
        ("-b", "b-", ".0"),
    ):
        found = join(*([letter.strip("-") for letter in texts] for texts in (answers, places)))
        assert "".join(str(found.get(n, ".")) for n in range(len(answers))) == joined, answers


def test_a_context_may_stand_in_front_of_questions() -> None:
    assert join(["Context: a. Question: b", "a"], ["b", "a"]) == {0: 0, 1: 1}
    assert not join(["A context for b"], ["b", "a"])


def test_moved_blocks_are_joined_rightly_or_left_open() -> None:
    """Whole blocks between unique questions, of any mixture of repeats, over 200 seeds."""
    n_open = 0
    for seed in range(200):
        draw = Random(seed)
        letters = [draw.choice("abcdefgxxyy") for _ in range(draw.randint(1, 14))]
        ends = [n for n, letter in enumerate(letters) if letters.count(letter) == 1]
        blocks = [range(a, b) for a, b in zip([0, *ends], [*ends, len(letters)], strict=True)]
        draw.shuffle(blocks)
        moved = [number for block in blocks for number in block]
        found = join([letters[n] for n in moved], letters)
        if [letters[number] for number in moved] == letters:
            assert len(found) == len(letters)
        else:
            assert all(moved[number] == place for number, place in found.items())
            n_open += len(letters) - len(found)
    assert n_open > 0  # else this has not tried anything hard


# --- runs of `cvrr_es_DIMENSION`: joined by ids, named by the run's model -------------------------


def save(folder: Path, items: list[dict[str, Any]], task: str = f"cvrr_es_{PART}") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"20250101_samples_{task}.jsonl"
    lines = [{"doc_id": n, "acc": {"right": 1}, "failed": item} for n, item in enumerate(items)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def item(place: int, reply: str, **more: Any) -> dict[str, Any]:
    kept = {"id": f"{PART}/{place:03d}", "dimension": PART, "reply": reply, "status": "ok"}
    return {**kept, **more}


def test_saved_answers_are_joined_by_id(tmp_path: Path, asks: Release) -> None:
    folder = tmp_path / "org__model"
    lost = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] no route"
    said = [item(4, "four", question="X?"), item(1, "<think>So ...</think> One.", answer="other")]
    save(folder, [*said, item(2, lost), item(3, "<think>and then")])
    save(folder, [item(1, "rated")], task="cvrr_judge")
    found = alone(folder, asks)
    assert found.candidate == "org__model"
    assert list(found.answers.values()) == ["One.", "", "", "four"]
    assert (len(found.empty), found.problems) == (2, ())
    items = [item(n, text) for n, text in ((1, "a"), (2, "b"), (9, "d"))]
    file = save(tmp_path / "odd", [*items, item(3, "e", question="Another?")])
    found = alone(tmp_path / "odd", asks)
    assert found.answers == {f"{PART}/001": "a", f"{PART}/002": "b"}
    assert list(found.problems) == [
        f"{file}: {FITS}: 2, first {PART}/003",
        f"{file}: {LACKS}: 2, first {PART}/003 (B?)",
    ]


def test_names_of_saved_runs(tmp_path: Path) -> None:
    """Of the run's results, or of its items; with the hint or without."""
    tasks = (f"cvrr_es_{PART}", f"cvrr_es_hint_{TIME}")
    parts = [save(tmp_path / "run", [item(1, "x")], task) for task in tasks]
    config = {"config": {"model": "tiny", "model_args": "a=1"}}
    (tmp_path / "run" / "20250101_results.json").write_text(json.dumps(config))
    for paths in ([tmp_path / "run"], parts):
        ((name, own),) = read_candidates(paths).items()
        assert (name, {*own}) == ("tiny (a=1)", {PART, TIME})
    items = [item(n, "x", candidate="tiny") for n in (1, 2)]
    file = save(tmp_path / "named", items)
    assert list(read_candidates([file])) == ["tiny"]
    items[1]["candidate"] = "huge"
    save(tmp_path / "named", items)
    refused(
        DataError,
        "answers of tiny and of huge; a file may hold the answers of only one model",
        read_candidates,
        [file],
    )
    file = save(tmp_path / "bad", [item(1, "x")], "cvrr_judge")
    refused(DataError, "cvrr_judge is not a task with answers of CVRR-ES", read_candidates, [file])


# --- the five published models' answers, and annotations made of the published judgements ---------


@pytest.mark.parametrize(("order", "model"), [*(("GPT4o", m) for m in MODELS), ("TimeChat",) * 2])
def test_every_published_answer(order: str, model: str, tmp_path: Path) -> None:
    """Every answer stands at a reference that it was judged against; read without our code.

    Annotations are those of one model's judgements, in their order. All but GPT4o were asked an
    older version: place 174 of one dimension had another question, and place 175 another reference;
    and two of its blocks stood elsewhere.
    """
    results, source = (real_data() / name for name in ("judge_results", "predictions"))
    asks = release.read_cvrr(release_from_judgements(results, tmp_path, model=order))
    found = alone(source / model, asks)
    assert (found.candidate, found.empty) == (model, ())
    for dimension in DIMENSIONS:
        text = (results / model / f"{dimension}.json").read_text(encoding="utf-8")
        judged = {
            (
                one["q"].split("\n")[-1].strip(),
                one["pred"].removesuffix("</s>").strip(),
                one["a"].strip(),
            )
            for one in map(asked, json.loads(text))
        }
        for one in asks.questions:
            is_old = order != model and one.id == f"{CONTINUITY}/175"
            if one.dimension == dimension and one.id in found.answers and not is_old:
                assert (one.question, found.answers[one.id], one.reference) in judged, one.id
    file = (source / model).resolve() / f"{CONTINUITY}.json"
    old = [
        f"{file}: {FITS}: 1, first 'What common clothing item is worn by both men who appear in "
        "the scene?'",
        f"{file}: {LACKS}: 1, first {CONTINUITY}/174 (How many persons are featured in the video?)",
    ]
    assert list(found.problems) == ([] if order == model else old)
    assert len(found.answers) == 2400 - len(found.problems) // 2
