"""MAIA's files: schema with the place of the first error, ids, letters, docs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from lmms_eval_tasks import context
from lmms_eval_tasks.benchmark import LoadedData, Ran
from lmms_eval_tasks.context import ClassPlan
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia import data, release, tasks
from lmms_eval_tasks.maia.categories import SLUGS
from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.media import clips
from lmms_eval_tasks.runs import messages, prepare
from tests.checks import refused, table
from tests.local_hub import get_released

SAME = ("id", "answer", "options")  # of a pair in each setting


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


@table(
    "damage, says",
    [
        (lambda c: question(c)["true_statement"].pop(), "true_statement: expected at least 8, fou"),
        (lambda c: question(c).pop("answer"), "entry 2, .*_B, entry 4, answer: the field is m"),
        (lambda c: question(c)["answer"].__setitem__(4, " "), "_B, entry 4, answer, entry 5: "),
        (
            lambda c: question(c).update(category="Boh_A"),
            "entry 4, category: expected one .* 'Boh_A'",
        ),
        (lambda c: question(c).update(category="Sentiment"), "with _A or _B"),
        (
            lambda c: question(c).update(false_statement=question(c)["true_statement"]),
            "_B, entry 4: false_statement, entry 1: equals the true",
        ),
        (lambda c: c[1].update(video="clip2"), "entry 2, video: .*, found 'clip2'"),
        (lambda c: c[1].update(video=c[0]["video"]), "occurs twice"),
        (
            lambda c: c[1]["question_categories_B"].append(question(c)),
            "entry 2, video2, category Pianificazione_B occurs twice",
        ),
        (lambda c: c.clear(), "no videos"),
    ],
)
def test_the_first_error_is_named_with_its_place(
    damage: Callable[[Any], Any], says: str, sample_root: Path, tmp_path: Path
) -> None:
    content = json.loads((sample_root / "maia" / "data.json").read_text(encoding="utf-8"))
    damage(content)
    source = write(tmp_path / "source", content)
    refused(DataError, f"{source}: .*{says}", BENCHMARK.prepare, source, tmp_path / "root", False)
    assert not (tmp_path / "root").exists()


def test_both_names_of_causal_and_the_hash(released: Any, tmp_path: Path) -> None:
    """The hash is that of the content, whatever the form of the file."""
    first = release.read_maia(write(tmp_path / "a", released))
    file = write(tmp_path / "b", None)
    file.write_text(json.dumps(released, indent=3, sort_keys=True))
    assert release.read_maia(file).digest == first.digest
    asked = released[0]["question_categories_A"]
    (causal,) = (one for one in asked if one["category"] == "CausaleEsplicita_A")
    causal["category"] = "CausaleImplicita_A"
    found = release.read_maia(write(tmp_path / "c", released))
    assert found.digest != first.digest
    assert {q.slug for video in found.videos for q in video.questions} == set(SLUGS)
    released[0]["link"] = "\ud83d"  # half a character, where nobody reads
    file.write_text(json.dumps(released))
    assert release.read_maia(file).digest not in (first.digest, found.digest)


# --- the hub's tables ---------------------------------------------------------------------------

Rows = list[dict[str, Any]]


def hub_rows(released: list[dict[str, Any]]) -> dict[str, Rows]:
    """The sample as the hub's tables; the true statement is first where index and number agree."""
    gen: Rows = []
    mc: Rows = []
    for video in released:
        for part in "AB":
            for number, asked in enumerate(video[f"question_categories_{part}"]):
                own = {"video_id": video["video"].title(), "question_category": asked["category"]}
                answers = {f"answer{n}": text for n, text in enumerate(asked["answer"], 1)}
                gen.append({"id": len(gen), **own, "question": asked["question"], **answers})
                columns = zip(asked["true_statement"], asked["false_statement"], strict=True)
                for index, pair in enumerate(columns):
                    target = (index + number) % 2
                    shown = {"answer1": pair[target], "answer2": pair[1 - target]}
                    mc.append({**own, "pool_pos": index, **shown, "target": target})
    return {"gen": gen, "mc": mc[::-1]}  # the order of pairs in the file says nothing


def write_table(file: Path, rows: Rows) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        Dataset.from_list(rows).to_parquet(str(file))
    else:
        Dataset.from_list(rows).to_csv(str(file), index=False)


def test_the_hubs_tables(
    released: list[dict[str, Any]],
    sample_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CSV in two files, or parquet: the same data, in the released order."""
    rows = hub_rows(released)
    source = tmp_path / "csv"
    write_table(source / "gen.csv", rows["gen"])
    write_table(source / "mc" / "train.csv", rows["mc"][:100])
    write_table(source / "mc" / "test.csv", rows["mc"][100:])
    (source / "Videos").mkdir()
    for number in (1, 2):
        video = sample_root / "maia" / "videos" / f"{number}.mp4"
        (source / "Videos" / f"Video{number}.mp4").symlink_to(video)
    assert "48 of 2,400 questions" in BENCHMARK.prepare(source, tmp_path / "root", link=True)
    found = BENCHMARK.status(tmp_path / "root")
    assert (found.counts["pairs"], found.videos, found.bad) == (384, 2, {})

    # As `data get` downloads them: the tables from the hub, the videos from the repository.
    shutil.copytree(source / "Videos", tmp_path / "git" / "Videos")
    shutil.rmtree(source / "Videos")
    said = get_released(BENCHMARK, (source, tmp_path / "git"), tmp_path / "get", monkeypatch)
    assert "linked 5 files to" in said[2]
    assert BENCHMARK.status(tmp_path / "get").version == found.version
    assert BENCHMARK.status(tmp_path / "get").videos == 2

    # Parquet in folders: what the tables hold is the same.
    for kind in rows:
        write_table(tmp_path / "hub" / "data" / kind / "train-0.parquet", rows[kind])
    assert release.read_maia(tmp_path / "hub").digest == found.version

    def questions(of: release.Release) -> list[release.MaiaQuestion]:
        return [asked for video in of.videos for asked in video.questions]

    hub, json_form = (
        release.read_maia(tmp_path / "hub"),
        release.read_maia(sample_root / "maia"),
    )
    bare = [asked.model_copy(update={"target": None}) for asked in questions(hub)]
    assert bare == questions(json_form)
    shown = data.pairs(LoadedData(hub, ""), "text")[8:16]  # the second question
    assert [doc["answer"] for doc in shown] == ["B", "A"] * 4
    true = questions(hub)[1].true_statement
    assert [doc["options"]["AB".index(doc["answer"])] for doc in shown] == true


@table(
    "kind, damage, says",
    [
        ("gen", lambda r: r[3].update(answer5=" "), "video1, .*_A, entry 4, answer, entry 5: exp"),
        (
            "gen",
            lambda r: r.append(dict(r[0])),
            "gen.csv, row 49: video1, .* stands already in .*, row 1",
        ),
        ("gen", lambda r: r.pop(3), "mc.csv: video1, .*_A: has pairs but no row in gen"),
        ("mc", lambda r: r[5].update(target=2), "mc.csv, row 6, target: .*less than or equal to 1"),
        ("mc", lambda r: r.pop(5), "gen.csv: video2, .*true_statement: expected at least 8, fou"),
        (
            "mc",
            lambda r: r[1].update(r[0]),  # a doubled pair in place of a lost one
            r"mc.csv, row 2: video2, .*_B, pool_pos \d stands already in .*mc.csv, row 1",
        ),
        ("mc", lambda r: r.clear(), "holds MAIA's table gen .gen.csv. without the other"),
    ],
)
def test_the_first_error_of_a_table_is_named(
    kind: str, damage: Callable[[Rows], Any], says: str, released: Any, tmp_path: Path
) -> None:
    rows = hub_rows(released)
    damage(rows[kind])
    for name, own in rows.items():
        if own:
            write_table(tmp_path / f"{name}.csv", own)
    refused(DataError, f"{tmp_path}.*{says}", release.read_maia, tmp_path)


def test_files_that_are_left_beside_tables(released: Any, tmp_path: Path) -> None:
    for name, own in hub_rows(released).items():
        write_table(tmp_path / f"{name}.csv", own)
    expected = release.read_maia(tmp_path).videos
    left = {
        **{"._gen.csv": b"\0\5\x16\7\xff", "__MACOSX/._mc.csv": b"\0\5\x16\7\xff"},
        ".ipynb_checkpoints/gen-checkpoint.csv": (tmp_path / "gen.csv").read_bytes(),
        **{"notes.csv": "Frage;Bemerkung\n1;schön\n".encode("latin-1"), "folder.csv/x": b""},
    }
    for name, content in left.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert release.read_maia(tmp_path).videos == expected
    (tmp_path / "mc (1).csv").write_bytes((tmp_path / "mc.csv").read_bytes())
    twice = r"mc.csv, row 1: video2, .*pool_pos 7 stands already in .*mc \(1\).csv, row 1"
    refused(DataError, twice, release.read_maia, tmp_path)


def test_letters() -> None:
    """Which statement is A: by the pair's identity alone, four of eight.

    A changed rule would silently change every published number: it must show here.
    """
    eight = [f"text {number}" for number in range(8)]
    for statements in (eight, eight[::-1]):
        asked = release.MaiaQuestion(
            category="Sentiment_A",
            question="Come si sente la persona?",
            answer=eight,
            true_statement=statements,
            false_statement=["another"] * 8,
        )
        assert "".join(data.true_letters("video7", asked)) == "AABAABBB"


def test_docs(on_sample: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids and letters are the same in every setting; a pool's pairs follow each other."""
    found = BENCHMARK.load([])
    pairs = data.pairs(found, "32frames")
    assert len({doc["id"] for doc in pairs}) == len(pairs) == 384
    assert all(doc["id"] == f"{doc['question_id']}/{doc['index']}" for doc in pairs)
    asked = data.questions(found, "black")
    assert [doc["id"] for doc in asked] == list(dict.fromkeys(doc["question_id"] for doc in pairs))
    for setting in ("1frame", "black", "text"):
        for one, other in zip(pairs, data.pairs(found, setting), strict=True):
            assert [one[name] for name in SAME] == [other[name] for name in SAME]
    monkeypatch.setenv("LMMS_EVAL_TASKS_FRAMES", "16,video2=8")
    pairs = data.pairs(found, "32frames")
    assert {(d["video"], d["n_frames"]) for d in pairs} == {("video1", 16), ("video2", 8)}
    assert {d["n_frames"] for d in data.pairs(found, "1frame")} == {1}


@table(
    "setting, chosen, still, kind, n_frames, recipe, size",
    [
        ("32frames", "", "", "video", 4, "uniform-4", None),
        ("32frames", "media=images", "", "images", 4, "uniform-4", (100, 63)),
        ("1frame", "media=images", "", "image", 1, "first_frame", (100, 63)),
        ("1frame", "", "1", "video", 4, "first_frame-still", None),
        ("black", "media=clip", "", "image", 1, "black-image", (100, 63)),
        ("black", "", "1", "video", 4, "black-4", None),
    ],
)
def test_what_is_handed_over(
    setting: str,
    chosen: str,
    still: str,
    kind: str,
    n_frames: int,
    recipe: str,
    size: tuple[int, int] | None,
    on_sample: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clip, or pictures of which none is larger than the longest side."""
    monkeypatch.setenv("LMMS_EVAL_TASKS_FRAMES", "4")
    monkeypatch.setenv("LMMS_EVAL_TASKS_MAIA", chosen)
    monkeypatch.setenv("LMMS_EVAL_TASKS_STILL_CLIP", still)
    monkeypatch.setattr(tasks, "LONGEST_SIDE", 100)
    tasks._taken.cache_clear()
    doc = data.questions(BENCHMARK.load([]), setting)[0]
    media = {"kind": kind, "n_frames": n_frames, "recipe": recipe}
    assert tasks._media_log(doc) == {"media": media}
    shown = messages.visuals_of(tasks.question_prompt("it", doc))
    if size is None:
        assert [Path(one).suffix for one in shown] == [".mp4"]
        return
    assert [one.size for one in shown] == [size] * n_frames
    assert (setting == "black") is all(one.getextrema() == ((0, 0),) * 3 for one in shown)


@table(
    "plan, setting, kinds",
    [
        (ClassPlan("simple", videos_as_pictures=True), "32frames", ["Image"] * 4),
        (ClassPlan("simple", videos_as_pictures=True), "1frame", ["Image"]),
        (ClassPlan("simple", pictures_as_videos=True), "1frame", ["str"]),
        (ClassPlan("simple", pictures_as_videos=True), "black", ["str"]),
        (ClassPlan("simple", pictures_as_videos=True), "32frames", ["str"]),
    ],
)
def test_in_the_form_that_a_class_takes(
    plan: ClassPlan,
    setting: str,
    kinds: list[str],
    on_sample: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same frames as pictures; and a picture as a clip that shows it alone."""
    monkeypatch.setenv("LMMS_EVAL_TASKS_FRAMES", "4")
    with context.begun(context.RunModel("some", "simple")):
        context.current().go_by(plan)
        doc = data.questions(BENCHMARK.load([]), setting)[0]
        parts = tasks.question_prompt("it", doc)
        shown = messages.visuals_of(parts)
        (message,) = messages.messages_of(parts)
    assert [type(one).__name__ for one in shown] == kinds
    sent = ["video" if kind == "str" else "image" for kind in kinds]
    assert [part["type"] for part in message["content"]] == [*sent, "text"]
    if kinds == ["Image"] * 4:
        clip = clips.images(tasks.media_of(doc))
        assert [one.tobytes() for one in shown] == [one.tobytes() for one in clip]


# --- `data status` and `data prepare` -----------------------------------------------------------


def test_a_video_damaged_in_its_middle(
    sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found before the model is loaded, where it matters; and a file shorter than its header."""
    shutil.copytree(sample_root / "maia", tmp_path / "maia")
    file = tmp_path / "maia" / "videos" / "2.mp4"
    whole = file.read_bytes()
    half = len(whole) // 2
    file.write_bytes(whole[:half] + bytes(half // 4) + whole[half + half // 4 :])
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(tmp_path))
    monkeypatch.setenv("LMMS_EVAL_TASKS_FRAMES", "4")
    names = ["maia_vsv", "maia_vsv_1frame", "maia_unimodal"]
    prepare.check_tasks(names)
    with pytest.raises(
        DataError, match=f"1 of 2 items .*\n  video2: {file}.*\n.*--allow-missing-v"
    ):
        prepare.make_media(names)
    prepare.make_media(names, 8)  # it is not needed
    monkeypatch.setenv("LMMS_EVAL_TASKS_ALLOW_MISSING_VIDEOS", "1")
    prepare.make_media(names)
    assert [len(prepare.usable_docs(BENCHMARK, name)) for name in names] == [192, 384, 384]
    known = prepare.checked(BENCHMARK, names)
    left_out = {name: prepare.left_out(BENCHMARK, known, name) for name in names}
    section, told = BENCHMARK.describe(Ran(known.loaded, names, left_out, {}))
    assert {name: list(own) for name, own in section["left_out"].items()} == {
        "maia_vsv": ["video2"]
    }
    assert section["questions_left_out"] == 24
    assert any(one.text.startswith("maia_vsv: 1 videos skipped (video2), such") for one in told)

    file.write_bytes(whole[: half * 3 // 2])
    assert BENCHMARK.load(["maia_unimodal"]).left_out("maia_unimodal") == {}  # it shows none
    # Beside a task that shows it, it asks the same questions.
    assert [*BENCHMARK.load(names).left_out("maia_unimodal")] == ["video2"]


@table(
    "frames, options, told",
    [
        ("32", "", []),
        ("4,video2=2", "", ["--frames 4,video2=2: not the default"]),
        ("", "media=images", ["--maia media=images: not the default"]),
    ],
)
def test_other_frames_than_the_papers_are_told(
    frames: str, options: str, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_FRAMES", frames)
    monkeypatch.setenv("LMMS_EVAL_TASKS_MAIA", options)
    _, warnings = BENCHMARK.describe(Ran(None, ["maia_vsv"], {}, {}))
    assert len(warnings) == bool(told)
    assert all(piece in line.text for piece in told for line in warnings)


def test_the_real_release(maia_data: Path) -> None:
    found = release.read_maia(maia_data)
    assert found.counts == {"videos": 5, "questions": 120, "pools": 120, "pairs": 960}
    assert BENCHMARK.status(maia_data.parent).bad == {}
    assert found.path_of("video5") == maia_data / "videos" / "5.mp4"
