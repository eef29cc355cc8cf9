"""Two runs beside each other: paired differences by hand, and the forms for an appendix."""

from __future__ import annotations

import csv
import io
import itertools
import json
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import markupsafe
import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import ASKED, Item
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.models.fake_replies import UNREADABLE
from lmms_eval_tasks.report import compare, compared_runs
from lmms_eval_tasks.report.compared_runs import Side
from lmms_eval_tasks.report.exchange import frames
from lmms_eval_tasks.runs.rescore import rescore_saved
from lmms_eval_tasks.tables import escaping
from lmms_eval_tasks.utils.conditions import Condition, Kind, as_dicts
from tests.checks import refused, table
from tests.report import made

TASKS = ["maverix_av", "haven_temporal"]
VIDEOS = 4  # of MAVERIX's sample


@pytest.fixture(scope="module")
def runs(sample_root: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    out = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        return [
            made.saved_run(out / name, name, TASKS, reply, "none")
            for name, reply in (("one", made.any_reply), ("two", made.right))
        ]


@pytest.fixture(scope="module")
def both(runs: list[Path]) -> list[Side]:
    return compared_runs.read_sides(runs)


def rises(both: list[Side]) -> dict[str, list[float]]:
    """By video the second run's right less the first's, of each item."""
    before, after = ({one["id"]: one for one in side.items["maverix_av"]} for side in both)
    found = defaultdict(list)
    for name, item in after.items():
        found[item["video"]].append(float(item["right"]) - float(before[name]["right"]))
    return found


def line(both: list[Side], task: str, metric: str) -> compare.Comparison:
    benchmark = registry.of(task)
    lines = compare.headlines(benchmark, [benchmark.tasks[task]], both)
    (found,) = (one for one in lines if one.quantity.metric == metric)
    return found


@table(
    "task, lost", [("maverix_av", "video"), ("maverix_av", "right"), ("haven_temporal", "video")]
)
def test_an_item_that_lacks_a_field_is_named(
    runs: list[Path], task: str, lost: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(runs[0], tmp_path / "run")
    (file,) = folder.glob(f"*_samples_{task}.jsonl")
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    del lines[1]["failed"][lost]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (side,) = compared_runs.read_sides([folder])
    said = refused(DataError, f"has no `{lost}`", lambda: side.items)
    assert said.startswith(f"{file}: {lines[1]['failed']['id']} ")
    if lost == "video":
        run, of = side.runs[task], registry.of(task)
        assert refused(DataError, "has no `video`", rescore_saved, of, [run]).startswith(str(file))


def test_a_mean_differs_by_the_mean_of_its_items(both: list[Side]) -> None:
    """Over so few videos p is the exact test's, by every choice of signs, without an interval."""
    found = line(both, "maverix_av", "acc").differences["two"]
    own = rises(both)
    every = [one for values in own.values() for one in values]
    sums = [sum(values) for values in own.values()]
    assert found.value.estimate == pytest.approx(np.mean(every))
    signs = itertools.product((-1, 1), repeat=VIDEOS)
    far = [abs(np.dot(some, sums)) >= abs(sum(sums)) - 1e-9 for some in signs]
    assert found.p == np.mean(far)
    assert found.value.ends is None
    differ = sum(one != 0 for one in sums)
    assert found.value.method == f"none: {differ} of {VIDEOS} videos differ; at least 6 have to"
    assert (found.rose, found.fell) == (every.count(1), every.count(-1))
    assert found.rose > 0
    power = scipy.stats.norm.ppf(0.975) + scipy.stats.norm.ppf(0.8)
    assert found.value.se is not None
    assert found.needed == int(np.ceil(VIDEOS * (found.value.se * power / 0.03) ** 2))


def test_what_is_no_mean_is_not_tested_over_few_videos(both: list[Side]) -> None:
    """It has its interval, and its p-value is None, which no correction of others counts."""
    task = registry.of("maverix_av").tasks["maverix_av"]
    (acc, *_) = compare.headline_metrics(task)
    plain = compare.by_category(task, replace(acc, per_unit=None), "ability", both)
    tested = compare.by_category(task, acc, "ability", both)
    assert {one.differences["two"].p for one in plain} == {None}
    mixed = [*plain, *tested]
    again = [one.differences["two"].p for one in compare._corrected(mixed)]
    alone = [one.differences["two"].p for one in compare._corrected(tested)]
    assert again == [*[None] * len(plain), *alone]


def test_what_only_one_run_was_asked_is_in_no_difference(both: list[Side]) -> None:
    first, second = both
    fewer = first.items["maverix_av"][1:]
    short = Side("short", first.runs)
    short.__dict__["items"] = {**first.items, "maverix_av": fewer}
    found = line([short, second], "maverix_av", "acc")
    assert found.numbers["two"].n == len(fewer) + 1
    assert found.differences["two"].value.n == len(fewer)


def test_categories_are_corrected_together(both: list[Side]) -> None:
    """Benjamini and Hochberg, by the definition: the least of p * m / rank from there on."""
    task = registry.of("maverix_av").tasks["maverix_av"]
    (acc, *_) = compare.headline_metrics(task)
    plain = []
    for value in {one["ability"] for one in both[0].items["maverix_av"]}:
        parts = []
        for side in both:
            part = Side(side.label, side.runs)
            own = [one for one in side.items["maverix_av"] if one["ability"] == value]
            part.__dict__["items"] = {"maverix_av": own}
            parts.append(part)
        p = line(parts, "maverix_av", "acc").differences["two"].p
        plain += [] if p is None else [p]
    count, ranked = len(plain), [*enumerate(sorted(plain), 1)]
    expected = [min(p * count / rank for rank, p in ranked[n:]) for n in range(count)]
    lines = compare.by_category(task, acc, "ability", both)
    found = [one.differences["two"].p for one in lines]
    assert count > 1
    assert sorted(p for p in found if p is not None) == pytest.approx(expected)


@table("name", ["task", "metric", ""])
def test_a_run_may_be_called_anything(runs: list[Path], tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(runs[1], tmp_path / "run")
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text(encoding="utf-8")) | {"model_name": f"org/{name}"}
    file.write_text(json.dumps(results), encoding="utf-8")
    found = list(frames.headline_rows(compared_runs.read_sides([runs[0], folder])))
    row = frames.as_markdown(found).splitlines()[2]
    assert [one.strip() for one in row.split("|")[1:3]] == [found[0]["task"], found[0]["metric"]]


def test_differences_are_from_the_first_run_though_it_lacks_a_task(
    runs: list[Path], tmp_path: Path
) -> None:
    """The first row of the table is then another run's."""
    folder = shutil.copytree(runs[0], tmp_path / "fewer")
    (lost,) = folder.glob("*_samples_maverix_av.jsonl")
    lost.unlink()
    (file,) = folder.glob("*_results.json")
    file.write_text(file.read_text("utf-8").replace('"one"', '"fewer"'), encoding="utf-8")
    text = frames.as_markdown(list(frames.headline_rows(compared_runs.read_sides([folder, *runs]))))
    heads = [one.strip() for one in text.splitlines()[0].split("|")]
    assert [one for one in heads if " minus " in one] == ["one minus fewer", "two minus fewer"]


def test_a_run_of_a_part_without_our_section_says_so(runs: list[Path]) -> None:
    """The results file of a host without our hook has its config all the same."""
    (row, *_) = frames.headline_rows(compared_runs.read_sides([runs[0]]))
    assert "--limit 3" in row["limit"]


@table("form, ends", [("md", "|"), ("csv", ","), ("latex", r"\\"), ("json", "value")])
def test_forms_hold_the_numbers(runs: list[Path], form: str, ends: str, tmp_path: Path) -> None:
    file = tmp_path / "report"
    given = ["report", *map(str, runs), "--format", form, "-o", str(file)]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    text = file.read_text(encoding="utf-8")
    own = line(compared_runs.read_sides(runs), "maverix_av", "acc").numbers["one"]
    if form in ("md", "latex"):
        assert f"{own.estimate:.3f} [{own.low:.3f}, {own.high:.3f}]" in text
        assert ends in text
        return
    rows = json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))
    (row,) = (one for one in rows if (one["metric"], one["run"]) == ("acc", "one"))
    read = [float(row[name]) for name in ("value", "low", "high")]
    assert read == pytest.approx([own.estimate, own.low, own.high])
    assert (row["benchmark"], row["task"], int(row["videos"])) == ("maverix", "maverix_av", VIDEOS)


@pytest.mark.usefixtures("on_sample")
def test_how_replies_were_read_is_told(tmp_path: Path) -> None:
    """In a bar on the page, below the tables elsewhere; markup in a reply is a text."""
    reply = f"| <b>{UNREADABLE}</b> |"
    run = made.saved_run(tmp_path / "run", "m", ["maverix_av"], lambda *_: reply, "none", 8)
    told = "maverix_av: 8 of 8 replies were not read (100 %), so the numbers rest on none of 8; "
    told += f'most common forms: 8 like "{reply}"'
    file = tmp_path / "report"
    for form, text in (
        ("text", told),
        ("md", f"\n- {escaping.markdown(told)}\n"),
        ("html", str(markupsafe.escape(told))),
    ):
        done = CliRunner().invoke(app, ["report", str(run), "--format", form, "-o", str(file)])
        assert done.exit_code == 0, done.output
        assert text in file.read_text(encoding="utf-8"), form


def test_the_terminal_has_intervals_below_numbers(runs: list[Path], both: list[Side]) -> None:
    done = CliRunner().invoke(app, ["report", *map(str, runs), "--format", "text"])
    assert done.exit_code == 0, done.output
    for row in frames.headline_rows(both):
        assert f"{row['value']:.3f}" in done.output
    own = line(both, "maverix_av", "acc").numbers["one"]
    assert f"{own.low:.3f}–{own.high:.3f}" in done.output


# --- the same items, or none ---------------------------------------------------------------------

PAIRS = registry.load_benchmark("maia").tasks["maia_vsv"]


def asked(name: str, **changes: Any) -> Item:
    """A pair of MAIA as a log holds it, by its number in the pool of a question."""
    own = {"video": "v1", "setting": "32frames", "options": ["a", name[-1]], "answer": "A"}
    own |= {"id": name, "category": "causal", "status": "ok", "right": 1, "reply": "A", **changes}
    return {**own, ASKED: changes.get(ASKED, PAIRS.hash_of(own))}


def with_question(item: Item, text: str = "Why?") -> Item:
    """As a log that holds the hash of the question's text too."""
    return {**item, ASKED: PAIRS.hash_of(item, text)}


def both_asked(first: list[Item], second: list[Item]) -> compare.Paired:
    return compare.paired(*([(PAIRS, item) for item in own] for own in (first, second)))


@table(
    "first, second, pairs, other",
    [
        ([asked("v1/q/0")], [asked("v1/q/0")], [("v1/q/0", "v1/q/0")], 0),
        # The data are in another order, or their questions have other names.
        (
            [asked("v1/q/0"), asked("v1/q/1")],
            [asked("v1/p/1"), asked("v1/p/0")],
            [("v1/q/0", "v1/p/0"), ("v1/q/1", "v1/p/1")],
            0,
        ),
        # Another question under the same id.
        ([asked("v1/q/0")], [asked("v1/q/0", options=["a", "x"])], [], 1),
        ([asked("v1/q/0")], [asked("v1/q/0", answer="B")], [], 1),
        ([asked("v1/q/0")], [asked("v1/q/0", setting="black")], [], 1),
        ([asked("v1/q/0")], [asked("v1/q/0", video="v2")], [], 1),
        # Of a pool that lost an item none is compared.
        ([asked("v1/q/0"), asked("v1/q/1")], [asked("v1/q/0")], [], 0),
        # Asked twice: by id first.
        (
            [asked("v1/q/0"), asked("v1/q/1", options=["a", "0"])],
            [asked("v1/q/1", options=["a", "0"]), asked("v1/q/0")],
            [("v1/q/0", "v1/q/0"), ("v1/q/1", "v1/q/1")],
            0,
        ),
        # Only one of the two logs knows the question's text.
        ([asked("v1/q/0")], [with_question(asked("v1/q/0"))], [("v1/q/0", "v1/q/0")], 0),
        (
            [with_question(asked("v1/q/0"), "Why?")],
            [with_question(asked("v1/q/0"), "Who?")],
            [],
            1,
        ),
    ],
)
def test_items_are_paired_by_what_was_asked(
    first: list[Item], second: list[Item], pairs: list[tuple[str, str]], other: int
) -> None:
    marked = [{**item, "reply": item["id"]} for item in second]
    found = both_asked(first, marked)
    assert [(a["id"], b["reply"]) for (_, a), (_, b) in found.pairs] == pairs
    assert all(a["id"] == b["id"] for (_, a), (_, b) in found.pairs)
    assert (found.first, found.second, found.other) == (len(first), len(second), other)


def test_a_log_that_does_not_say_what_it_asked_is_paired_by_id() -> None:
    bare = {"id": "v1/q/0", "status": "ok", "right": 1, ASKED: ""}
    found = both_asked([bare], [bare, {**bare, "id": "v1/q/1"}])
    assert (len(found.pairs), found.by_id, found.other) == (1, 1, 0)


def test_runs_on_other_data(runs: list[Path], tmp_path: Path) -> None:
    """Counted, said in every form, and in no difference; on the page each has a row of its own."""
    folder = shutil.copytree(runs[1], tmp_path / "two")
    (file,) = folder.glob("*_samples_maverix_av.jsonl")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for row in rows[:3]:
        row["failed"]["options"] = row["failed"]["options"][::-1]
        row["failed"].pop(ASKED)
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    both = compared_runs.read_sides([runs[0], folder])
    benchmark = registry.of("maverix_av")
    task, count = benchmark.tasks["maverix_av"], len(rows)
    told = f"maverix_av: {count - 3} items are in both runs and are compared (one has {count}, "
    told += f"this run {count}); 3 have the same id in both runs but another prompt"
    own = compare.conditions([task], both)["two"]
    assert [one.text for one in own if one.kind is Kind.OTHER_ITEMS] == [told]
    (acc, *_) = compare.headlines(benchmark, [task], both)
    assert acc.differences["two"].value.n == count - 3
    assert any(told in line for line in frames.condition_notes(both))
    first, second = compare.rows_of(task, both)
    assert len(first.keys() & second.keys()) == count - 3
    assert {name for name in second if name.endswith(" (two)")} == second.keys() - first.keys()


def test_an_invalid_run_is_in_no_difference(runs: list[Path], tmp_path: Path) -> None:
    folder = shutil.copytree(runs[1], tmp_path / "two")
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    stored = [Condition(Kind.INVALID, "56 of 96 verdicts failed", ("maverix_av",))]
    results["lmms_eval_tasks"] = {"maverix": {"conditions": as_dicts(stored)}, "invalid": {}}
    file.write_text(json.dumps(results), encoding="utf-8")
    rows = list(frames.headline_rows(compared_runs.read_sides([runs[0], folder])))
    own = {row["task"]: row for row in rows if row["run"] == "two"}
    assert not own["maverix_av"]["valid"]
    assert "difference" not in own["maverix_av"]
    assert own["haven_temporal"]["valid"]
    assert "difference" in own["haven_temporal"]


@table(
    "model, lengths, words",
    [
        ("one", (4568, 2360), "a median of 4,568 against 2,360 tokens"),
        ("one", (4568, 4568), ""),
        ("two", (4568, 2360), ""),  # other checkpoints have other processors
    ],
)
def test_runs_of_a_checkpoint_that_saw_other_pixels(
    runs: list[Path], tmp_path: Path, model: str, lengths: tuple[int, int], words: str
) -> None:
    folders = [
        shutil.copytree(runs[0], tmp_path / str(number) / "run") for number in range(len(lengths))
    ]
    for folder, tokens, name in zip(folders, lengths, ("one", model), strict=True):
        for file in folder.glob("*_samples_*.jsonl"):
            rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            for row in rows:
                row["failed"]["arrived"] = {
                    **{"at": "processor", "frames": 32, "distinct": 32, "pictures": 0},
                    **{"seconds": 0, "of": 32, "prompt_tokens": tokens},
                }
            file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        (file,) = folder.glob("*_results.json")
        results = json.loads(file.read_text(encoding="utf-8")) | {"model_name": name}
        file.write_text(json.dumps(results), encoding="utf-8")
    both = compared_runs.read_sides(folders)
    tasks = [registry.of("maverix_av").tasks["maverix_av"]]
    found = compare.conditions(tasks, both)[both[1].label]
    told = " ".join(one.text for one in found if one.kind is Kind.PIXELS)
    assert words in told
    assert bool(words) == bool(told)


@pytest.mark.usefixtures("on_sample")
def test_tasks_of_different_data_or_settings_are_not_joined(tmp_path: Path) -> None:
    """Two runs of a model in one folder, one on other data: the same id may be two questions."""
    folder = made.saved_run(tmp_path / "m", "m", ["maia_vsv", "maia_oevqa"], made.right, "none")
    benchmark = registry.load_benchmark("maia")
    tasks = [benchmark.tasks[name] for name in ("maia_vsv", "maia_oevqa")]
    (file,) = folder.glob("*_samples_maia_oevqa.jsonl")
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    own = {name: lines[0]["failed"][name] for name in ("data", "setting")}
    for changed, joins in ((own, True), ({"data": "another"}, False), ({"setting": "text"}, False)):
        for one in lines:
            one["failed"] |= {**own, **changed, "right": 1, "status": "ok"}
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        (side,) = compared_runs.read_sides([folder])
        found = compare.headlines(benchmark, tasks, [side])
        rows = [(one.quantity.row, one.quantity.metric) for one in found]
        assert (("maia", "agg_acc") in rows) is joins
        told = compare.conditions(tasks, [side])["m"]
        assert any("not computed" in one.text for one in told) is not joins


@pytest.mark.usefixtures("on_sample")
def test_a_part_that_lacks_samples_makes_the_whole_invalid(tmp_path: Path) -> None:
    """Of an array of two parts one was killed while it was saved."""
    for offset in (0, 8):
        folder = made.saved_run(tmp_path / str(offset), "m", ["maverix_av"], made.right, "none", 16)
        (file,) = folder.glob("*_samples_*.jsonl")
        rows = file.read_text("utf-8").splitlines()[offset : offset + (8 if not offset else 3)]
        file.write_text("\n".join(rows), encoding="utf-8")
        (file,) = folder.glob("*_results.json")
        results = json.loads(file.read_text(encoding="utf-8"))
        results["config"] |= {"limit": 8, "offset": offset}
        results["n-samples"] = {"maverix_av": {"original": 16, "effective": 8 + offset}}
        results["lmms_eval_tasks"] = {"maverix": {"conditions": []}, "invalid": {}}
        file.write_text(json.dumps(results), encoding="utf-8")
    (side,) = compared_runs.read_sides([tmp_path])
    assert not side.is_valid(["maverix_av"])
    told = [one.text for one in side.record(["maverix_av"]) if one.kind is Kind.INVALID]
    assert len(told) == 1
    assert "3 of the run's 8 samples" in told[0]
