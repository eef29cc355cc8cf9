"""Saved runs: the same numbers again, other judges, what is missing only, and Table 3's join."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import DataError, JudgeError
from lmms_eval_tasks.maverix import report, saved, scores, utils
from lmms_eval_tasks.maverix.labels import DIMENSIONS, MODES
from lmms_eval_tasks.runs.rescore import Run
from tests.local_endpoint import Fault, LocalEndpoint, last_user_text
from tests.maverix import runs
from tests.maverix.runs import sample
from tests.maverix.test_utils import fail

__all__ = ["sample"]
pytestmark = pytest.mark.usefixtures("sample")
FIRST = scores.FIRST["open"]


class Rater:
    """Rates an answer by its length and the dimension; fails where it is told to."""

    def __init__(self, plus: int = 0, fails: str = "") -> None:
        self.plus, self.fails = plus, fails

    def __call__(self, request: dict[str, Any]) -> str | Fault:
        name = runs.dimension_of(request)
        if name == self.fails:
            return "no rating"
        number = len(last_user_text(request)) + DIMENSIONS.index(name) + self.plus
        return json.dumps({"score": number % 6})


@pytest.fixture
def endpoint() -> Iterator[LocalEndpoint]:
    with LocalEndpoint(Rater()) as made:
        yield made


def choice(mode: str = "s", model: str | None = "m (x)", count: int = 20) -> Run:
    docs = runs.docs("choice", mode)[:count]
    plays = {"a": 3, "s": 5, "v": 7, "vs": 9, "av": 11}
    right = set(range(plays[mode]))

    def reply(doc: runs.Doc) -> str:
        return doc["answer"] if docs.index(doc) in right else runs.wrong(doc)

    return runs.run(f"maverix_{mode}", runs.score("choice", docs, reply), model)


def open_run(
    endpoint: LocalEndpoint | None, monkeypatch: pytest.MonkeyPatch, count: int = 6, **more: Any
) -> Run:
    """Open answers, judged at the endpoint, or by nobody."""
    if endpoint is not None:
        monkeypatch.setenv(settings.JUDGE, f"one@{endpoint.url}")
    docs = runs.docs("open")[:count]
    scored = runs.score("open", docs, lambda doc: "" if "q02" in doc["id"] else runs.right(doc))
    monkeypatch.setenv(settings.JUDGE, "none")
    return runs.run("maverix_s_oe", scored, **more)


def test_kind_of() -> None:
    names = ("maverix_av", "maverix_long_s_oe", "maverix_v_circular")
    assert [saved.kind_of(name) for name in names] == ["choice", "open", "circular"]


class TestAgain:
    """Every metric once more from the samples alone."""

    @pytest.mark.parametrize("kind", ["choice", "circular"])
    def test_as_the_host_aggregated(self, kind: str) -> None:
        scored = runs.score(kind, runs.docs(kind), runs.some_right)
        task = "maverix_s" if kind == "choice" else "maverix_s_circular"
        again = saved.rescore_saved([runs.run(task, scored[::-1])], None)
        expected = runs.aggregated(kind, scored)
        assert again.numbers == {task: expected}
        assert 0 < expected["acc"] < expected["acc_valid"] < 1
        assert again.verdicts == {}
        assert again.sidecar[task]["items"] == len(scored)

    def test_open_with_its_verdicts(
        self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = open_run(endpoint, monkeypatch)
        asked = len(endpoint.chats)
        assert asked == 4 * 4  # the two empty answers cost nothing
        again = saved.rescore_saved([run], None)
        expected = runs.aggregated("open", run.samples)
        assert again.numbers == {"maverix_s_oe": expected}
        assert 0 < expected["correctness_valid"] < 5
        assert len(endpoint.chats) == asked
        pairs = again.verdicts["maverix_s_oe"]
        assert len(pairs) == 6 * 4
        assert all(pair.before == pair.after for pair in pairs)
        assert sum(pair.before is None for pair in pairs) == 2 * 4

    def test_withheld(self) -> None:
        docs = [runs.withheld(doc) for doc in runs.docs("choice")]
        answers = [runs.withheld(doc) for doc in runs.docs("open")]
        both = [
            runs.run("maverix_s", runs.score("choice", docs, lambda _: "B")),
            runs.run("maverix_s_oe", runs.score("open", answers, lambda _: "red")),
        ]
        again = saved.rescore_saved(both, None)
        for run, kind in zip(both, ("choice", "open"), strict=True):
            assert again.numbers[run.task] == runs.aggregated(kind, run.samples)
        assert again.numbers["maverix_s"]["acc"] is None
        assert again.numbers["maverix_s"]["n_withheld"] == 20
        assert again.verdicts == {}

    def test_items_of_an_error_are_scored_now(self, monkeypatch: pytest.MonkeyPatch) -> None:
        docs = runs.docs("choice")[:2]
        with monkeypatch.context() as patch:
            patch.setattr(utils, "choice_metrics", fail)
            scored = runs.score("choice", docs, runs.right)
        again = saved.rescore_saved([runs.run("maverix_s", scored)], None)
        assert again.numbers["maverix_s"]["acc"] == 1

    def test_open_items_of_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(utils, "open_metrics", fail)
            run = open_run(None, monkeypatch)
        again = saved.rescore_saved([run], None)
        assert again.numbers["maverix_s_oe"]["correctness_valid"] is None
        assert {pair.before for pair in again.verdicts["maverix_s_oe"]} == {None}

    @pytest.mark.parametrize("broken", [{}, {"acc": 1}, {"acc": {"id": "x"}}])
    def test_samples_of_someone_else(self, broken: dict[str, Any]) -> None:
        run = choice(count=2)
        run.samples.append(broken)
        with pytest.raises(DataError, match=r"samples_maverix_s\.jsonl, line 3: no `acc` item"):
            saved.rescore_saved([run], None)

    def test_an_item_twice(self) -> None:
        run = choice(count=2)
        run.samples.append(run.samples[0])
        with pytest.raises(DataError, match="line 3: lights-1-q01 occurs twice"):
            saved.rescore_saved([run], None)

    @pytest.mark.parametrize("model", ["m (x)", None])
    def test_a_run_twice(self, model: str | None) -> None:
        later = dataclasses.replace(choice(model=model), file=Path("later.jsonl"))
        with pytest.raises(DataError, match=r"later\.jsonl: a second maverix_s run"):
            saved.rescore_saved([choice(model=model), later], None)

    def test_a_verdict_that_is_none(
        self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = open_run(endpoint, monkeypatch)
        run.samples[0][FIRST]["dimensions"]["detail"]["verdict"] = {"x": 1}
        with pytest.raises(DataError, match="lights-1-q01/original/detail: the saved verdict"):
            saved.rescore_saved([run], None)


class TestJudges:
    """Saved answers, another judge."""

    def test_another_judge(self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        run = open_run(endpoint, monkeypatch)
        kept = copy.deepcopy(run.samples)
        with LocalEndpoint(Rater(plus=1)) as other:
            again = saved.rescore_saved([run], f"two@{other.url}")
            assert len(other.chats) == 4 * 4
        assert run.samples == kept
        for pair in again.verdicts["maverix_s_oe"]:
            if pair.before is None:
                assert pair.after is None
            else:
                assert pair.after is not None
                assert pair.after.score == (pair.before.score + 1) % 6
                assert (pair.before.judge[:3], pair.after.judge[:3]) == ("one", "two")
        assert again.numbers["maverix_s_oe"] != runs.aggregated("open", run.samples)

    def test_missing_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One dimension failed in the run: only that one is asked for again."""
        rater = Rater(fails="temporal")
        with LocalEndpoint(rater) as endpoint:
            run = open_run(endpoint, monkeypatch)
            assert runs.aggregated("open", run.samples)["temporal_failed"] == 4
            rater.fails = ""
            before = len(endpoint.chats)
            again = saved.rescore_saved([run], f"one@{endpoint.url}", missing_only=True)
            asked = [runs.dimension_of(chat.json) for chat in endpoint.chats[before:]]
            assert asked == ["temporal"] * 4
            assert again.numbers["maverix_s_oe"]["temporal_failed"] == 0
            # Another judge's verdicts do not stand for this one's.
            before = len(endpoint.chats)
            saved.rescore_saved([run], f"two@{endpoint.url}", missing_only=True)
            assert len(endpoint.chats) - before == 16

    def test_a_run_without_a_judge_is_judged_later(
        self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = open_run(None, monkeypatch)
        assert saved.rescore_saved([run], None).numbers["maverix_s_oe"]["detail_valid"] is None
        judged = saved.rescore_saved([run], f"one@{endpoint.url}", missing_only=True)
        at_once = open_run(endpoint, monkeypatch)
        assert judged.numbers["maverix_s_oe"] == runs.aggregated("open", at_once.samples)

    def test_a_judge_that_cannot_stops(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = open_run(None, monkeypatch)
        for spec, said in (("offline", "cannot decide"), ("gpt-4o", "OPENAI_API_KEY")):
            with pytest.raises(JudgeError, match=said):
                saved.rescore_saved([run], spec)
        assert saved.rescore_saved([choice()], "offline").numbers  # nothing to judge there

    def test_commands(
        self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """`judge` completes, `rescore` repeats the numbers and compares two judges."""
        run = open_run(endpoint, monkeypatch)
        expected = runs.aggregated("open", run.samples)
        runs.write(tmp_path, dataclasses.replace(run, saved=expected))
        output = tmp_path / "made.json"
        command = ["rescore", str(tmp_path), "--output", str(output)]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert f"{len(expected)} of {len(expected)} numbers equal the saved ones" in done.output
        made = json.loads(output.read_text(encoding="utf-8"))["maverix"]
        assert made["numbers"]["maverix_s_oe"] == expected
        assert len(made["verdicts"]["maverix_s_oe"]) == 24
        with LocalEndpoint(Rater(plus=1)) as other:
            done = CliRunner().invoke(app, [*command, "--judge", f"two@{other.url}"])
        assert done.exit_code == 0, done.output
        made = json.loads(output.read_text(encoding="utf-8"))["maverix"]
        assert made["judge"]["model"] == "two"
        assert "maverix_s_oe" in made["judges_compared"]
        before = len(endpoint.chats)
        done = CliRunner().invoke(app, ["judge", str(tmp_path), "--judge", f"one@{endpoint.url}"])
        assert done.exit_code == 0, done.output
        assert len(endpoint.chats) == before  # nothing was missing


class TestJoin:
    """The row of Table 3 over runs that were made one by one."""

    def test_five_runs(self) -> None:
        again = saved.rescore_saved([choice(mode) for mode in MODES], None)
        assert again.numbers["maverix_table3"] == {
            "best_uni": 7 / 20,
            "best_multi": 11 / 20,
            "delta_multi": 11 / 20 - 7 / 20,
        }
        assert again.notes == []

    def test_as_the_hosts_group(self) -> None:
        made = [choice(mode) for mode in MODES]
        again = saved.rescore_saved(made, None).numbers["maverix_table3"]
        for name in scores.JOINED:
            parts = [scores.CHOICE[name]([one[name] for one in run.samples]) for run in made]
            assert again[name] == scores.join(parts, [20] * 5, False)

    def test_a_model_without_sound_that_ran_s_v_and_vs_alone(self) -> None:
        """The items say it; those that were saved before they did leave no number."""
        with running.model(running.Model("tasks_scripted", "chat")):
            made = [choice(mode) for mode in ("s", "v", "vs")]
        again = saved.rescore_saved(made, None)
        assert again.numbers["maverix_table3"] == {
            "best_uni": 7 / 20,
            "best_multi": 9 / 20,
            "delta_multi": 9 / 20 - 7 / 20,
        }
        assert again.numbers["maverix_v"]["n_sound_missing_a"] == 20
        shown = report.tables([("", again.numbers)])[0]
        cells = [column._cells[0] for column in shown.columns[2:]]
        assert cells == ["25.0*", "25.0", "35.0", "35.0", "45.0", "45.0*", "45.0", "+10.0"]
        for run in made:
            for line in run.samples:
                for item in line.values():
                    if isinstance(item, dict):
                        item.pop("hears")
        old = saved.rescore_saved(made, None).numbers
        assert set(old["maverix_table3"].values()) == {None}
        assert (old["maverix_v"]["acc"], "n_sound_missing_a" in old["maverix_v"]) == (7 / 20, False)

    def test_a_missing_mode_is_named_and_no_number(self) -> None:
        again = saved.rescore_saved([choice(mode) for mode in ("a", "s", "v", "vs")], None)
        found = again.numbers["maverix_table3"]
        assert (found["best_uni"], found["best_multi"]) == (7 / 20, None)
        assert again.notes == ["maverix_table3: without V+A"]

    def test_other_items_are_told(self) -> None:
        made = [choice(mode, count=12 if mode == "av" else 20) for mode in MODES]
        again = saved.rescore_saved(made, None)
        (note,) = again.notes
        assert "not asked the same items (A 20, S 20, V 20, V+S 20, V+A 12)" in note

    def test_models_are_not_mixed(self) -> None:
        made = [choice(mode, model) for model in ("m (x)", "n (y)") for mode in ("a", "s")]
        again = saved.rescore_saved(made, None)
        assert {"maverix_table3 m (x)", "maverix_table3 n (y)"} <= again.numbers.keys()
        assert "maverix_a n (y)" in again.numbers
        alone = saved.rescore_saved([choice("a"), choice("s", "n (y)")], None)
        assert not [name for name in alone.numbers if "table3" in name]

    def test_whole_videos_and_rotations_are_no_part(self) -> None:
        whole = runs.score("choice", runs.docs("choice", "v", "long"), runs.right)
        turned = runs.score("circular", runs.docs("circular", "v")[:8], runs.right)
        again = saved.rescore_saved(
            [
                choice("s"),
                runs.run("maverix_long_v", whole),
                runs.run("maverix_v_circular", turned),
            ],
            None,
        )
        assert set(again.numbers) == {"maverix_s", "maverix_long_v", "maverix_v_circular"}
        assert not [n for values in again.numbers.values() for n in values if n in scores.JOINED]
