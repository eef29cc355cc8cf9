"""The sample's players: the oracle reaches the best value of every item, the coin gets chance."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import data, demo, metrics, options, sample, tasks
from lmms_eval_tasks.haven import sample_players as players
from lmms_eval_tasks.haven.options import TASKS, parse
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.judges.asking import Asker
from lmms_eval_tasks.runs import before, scoring
from lmms_eval_tasks.sample import demo as demos
from tests.haven.docs import chat, simple
from tests.haven.scored import numbers

Item = dict[str, Any]
Player = Callable[[list[Any]], str | None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sample")
    sample.write(made)
    return made


def docs(folder: Path, task: str, chosen: options.Options | None = None) -> list[dict[str, Any]]:
    """Every doc of a task, from the sample's files."""
    given = options.current() if chosen is None else chosen
    release = released.read(folder, given)
    assert not release.problems
    rows = [data.row(record, release.digest) for record in release.records]
    return [{**data.make_doc(row, TASKS[task], given), "task": task} for row in rows]


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Decoded frames, for all tests of this file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(frames: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CACHE, str(frames))


def worth(given: Item, parts: list[Any], player: Player = players.oracle) -> Item:
    """What a player's reply is worth; its form is good."""
    reply = player(parts)
    assert reply is not None
    found = tasks.score(tasks.keep(given), reply)
    assert (found["status"], found["violations"]) == ("ok", {}), reply
    return found


def test_the_oracle_reaches_the_best_value_of_every_item(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = ("frames_per_shot=1", "frames_per_shot=0,size=96", "max_shots=3,seed=5")
    before = "max_sentences=0,max_shots=30,sentences=4"
    for given in ("", *others, before):
        monkeypatch.setenv(settings.HAVEN, given)
        for task in TASKS:
            for one in docs(folder, task)[3:5] if given else docs(folder, task):
                for parts in (chat(one), simple(one)):
                    found = worth(one, parts)
                    scores = {n: v for n, v in found["scores"].items() if metrics.IS_GT not in n}
                    best = {n: found["baselines"].get(f"{n}_best", 1.0) for n in scores}
                    assert scores == pytest.approx(best), (task, one["id"])
    monkeypatch.delenv(settings.HAVEN)
    for task in ("haven_v2vt", "haven_v2t_text", "haven_v2vt_text"):
        for n in (1, 2):  # fewer sentences, and each of them longer
            one = docs(folder, task, parse(f"sentences={n}"))[0]
            assert worth(one, chat(one))["scores"]["rouge"] == 1


def test_a_request_that_lost_something_is_not_answered(folder: Path) -> None:
    for task in TASKS:
        one = docs(folder, task)[0]
        for parts in (chat(one), simple(one)):
            texts = [part for part in parts if isinstance(part, str)]
            if len(texts) < len(parts):
                black = [p if isinstance(p, str) else Image.new("RGB", p.size) for p in parts]
                assert players.oracle(black) is players.oracle(texts) is None
            last = next(n for n in reversed(range(len(parts))) if isinstance(parts[n], str))
            assert players.oracle([*parts[:last], *parts[last + 1 :]]) is None
    other = "Which statement is true?\nA. The box is red.\nB. The box is blue."
    assert players.oracle([other]) is players.coin([other]) is None


# --- what the demo checks -------------------------------------------------------------------------


def played(folder: Path, player: Player) -> dict[str, list[Item]]:
    """Every task's items, as a run makes them."""
    spec = f"replay:{folder / 'replay.jsonl'}"
    answer = Asker(judges.make(before.judge_config(tasks.BENCHMARK, spec, {})))
    return {
        name: [
            scoring.scored(tasks.BENCHMARK.tasks[name], tasks.keep(one), player(chat(one)), answer)
            for one in docs(folder, name)
        ]
        for name in TASKS
    }


def saved(folder: Path, items: dict[str, list[Item]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, own in items.items():
        lines = [json.dumps({"doc_id": n, "failed": one}) for n, one in enumerate(own)]
        (folder / f"1_samples_{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_the_oracle_gets_what_the_demo_expects(folder: Path) -> None:
    items = played(folder, players.oracle)
    demos._check_oracle({name: numbers(name, own) for name, own in items.items()}, demo.ORACLE)


def test_a_coin_that_is_none_stops_the_demo(folder: Path, tmp_path: Path) -> None:
    items = played(folder, players.coin)
    lines = demo.check_coin({}, saved(tmp_path / "coin", items), folder / "key.json")
    assert [line.split(" (chance ")[0].split()[-4:] for line in lines] == [
        ["on", "32", "HAVEN", "keyframes"],
        ["on", "48", "HAVEN", "orders"],
        ["on", "16", "HAVEN", "alignments"],
    ]
    lucky = played(folder, players.oracle)
    with pytest.raises(TasksError, match=r"the coin got f1 = 0\.911 on 32 HAVEN keyframes, not"):
        demo.check_coin({}, saved(tmp_path / "lucky", lucky), folder / "key.json")
