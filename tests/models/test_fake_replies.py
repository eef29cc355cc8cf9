"""What players answer: worth by the doc, replies by the fingerprint of what was handed over."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval_tasks import registry, sample, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import fake_replies, perception_probe
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import messages, prepare, scoring
from lmms_eval_tasks.sample.demo import check_chance, check_probe, check_right_replies, write_key
from lmms_eval_tasks.utils.replies import answers
from tests.checks import refused, table

CASES = json.loads((Path(__file__).parents[1] / "cases" / "lm_pairs.json").read_text("utf-8"))


@table("case", CASES["lm_pairs"])
def test_read_lm_pairs(case: dict[str, Any]) -> None:
    read = fake_replies.read_lm_pairs(case["reply"])
    assert (read[0] if read else "not of that form") == case["choice"]
    scores = {"a/b": [-1.0 / 3, -2.0 / 3], "é": [-1e-17, -7.1]}  # to the last digit
    assert fake_replies.read_lm_pairs(fake_replies.lm_pairs_reply(scores)) == ("A", scores)
    assert fake_replies.read_lm_pairs("[" * 100_000) is None


# --- by the doc -----------------------------------------------------------------------------------


def test_scripted_choices() -> None:
    docs = [
        {"id": f"v{n}", "question_id": f"v{n // 8}", "options": ["1", "2"], "answer": "AB"[n % 2]}
        for n in range(4000)
    ]
    replies = [fake_replies.scripted(doc) for doc in docs]
    right = [reply == doc["answer"] for reply, doc in zip(replies, docs, strict=True)]
    assert 0.65 < sum(right) / 4000 < 0.75
    assert 0.035 < replies.count(fake_replies.UNREADABLE) / 4000 < 0.065
    assert set(replies) == {"A", "B", fake_replies.UNREADABLE}
    assert answers.read_choice(fake_replies.UNREADABLE, ["a", "b"]).status == "unparsed"
    pools = [all(right[start : start + 8]) for start in range(0, 4000, 8)]
    assert 0.4 < sum(pools) / len(pools) < 0.6
    for change in ({"mode": "v"}, {"mode": "v", "length": "full"}):  # draws anew
        other = [fake_replies.scripted({**doc, **change}) for doc in docs]
        assert 0.2 < sum(a != b for a, b in zip(replies, other, strict=True)) / 4000 < 0.8


@table(
    "doc, shares",
    [
        ({"references": ["si", "sì"], "lure": "no"}, {"si": 0.7, "no": 0.25, "": 0.05}),
        ({"references": ["si"], "lure": None}, {"si": 0.7, fake_replies.UNKNOWN: 0.25, "": 0.05}),
        ({"references": [], "lure": ""}, {fake_replies.UNKNOWN: 0.95, "": 0.05}),
    ],
)
def test_scripted_answers(doc: dict[str, Any], shares: dict[str, float]) -> None:
    docs = [{**doc, "id": f"v{n}"} for n in range(2000)]
    found = Counter(map(fake_replies.scripted, docs))
    assert {reply: n / 2000 for reply, n in found.items()} == pytest.approx(shares, abs=0.04)


@table(
    "lacking",
    [
        {},
        {"references": None},
        {"options": ["a", "b"]},
        {"options": ["a", "b"], "answer": "C"},
        {"options": ["a"], "answer": "A"},
        {"kind": "v2v"},
    ],
)
def test_a_doc_that_lacks_something(lacking: dict[str, Any]) -> None:
    refused(TasksError, "id|x: answer|lacks a field", fake_replies.scripted, {"id": "x", **lacking})


# --- by what was handed over ----------------------------------------------------------------------


@pytest.fixture
def on_sample_alone(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, "sample")
    recorded = cache / "all-replay.jsonl"
    files = sorted(sample_root.glob("*/replay.jsonl"))
    recorded.write_text("".join(one.read_text(encoding="utf-8") for one in files), encoding="utf-8")
    monkeypatch.setenv(settings.JUDGE, f"replay:{recorded}")


@pytest.mark.usefixtures("on_sample_alone")
@pytest.mark.parametrize("name", registry.NAMES)
def test_oracle_and_coin_get_what_the_demo_expects(name: str, tmp_path: Path) -> None:
    """From chat and from simple requests, through the recorded judge; and the reverse is seen."""
    from lmms_eval_tasks import judges
    from lmms_eval_tasks.judges.asking import VerdictSource

    benchmark, played = registry.load_benchmark(name), sample.module(name).PLAYED
    tasks = [task for task in played.expected if task in benchmark.tasks]
    key = fake_replies.load_key(write_key(tmp_path / "key.json", tasks))
    spec = benchmark.criteria() and prepare.judge_config(benchmark)
    answer = VerdictSource(judges.make_judge(spec)) if spec else None
    numbers, thrown = {}, {}
    for task in tasks:
        made, right, thrown[task] = benchmark.tasks[task], [], []
        for doc in prepare.usable_docs(benchmark, task):
            parts = made.prompt(doc)
            chat = fake_replies.of_messages(messages.messages_of(parts))
            simple = fake_replies.of_visuals(messages.visuals_of(parts), messages.text_of(parts))
            reply = fake_replies.right_reply(key, chat)
            assert reply == fake_replies.right_reply(key, simple) != fake_replies.UNKNOWN
            assert (
                fake_replies.right_reply(key, chat[:-1])
                == fake_replies.right_reply(key, [*chat, "More."])
                == fake_replies.UNKNOWN
            )
            random = fake_replies.random_reply(key, chat, 0)
            for said, items in ((reply, right), (random, thrown[task])):
                items.append(scoring.scored(made, made.log_fields(doc), said, answer))
        numbers[task] = aggregation.numbers(made, right)
    joined = {task: metrics for task, metrics in played.expected.items() if task in tasks}
    checks = list(check_right_replies(name, played._replace(expected=joined), numbers))
    assert [check.text for check in checks if not check.good] == []
    for chance in played.chances:
        items = [item for task in chance.tasks for item in thrown[task]]
        assert check_chance(name, chance, items).good
        best = chance._replace(value=lambda item: 1.0)
        assert not check_chance(name, best._replace(expected=lambda item: item["place"] / 1e3), [
            {**item, "place": place} for place, item in enumerate(items)
        ]).good  # fmt: skip


def test_fingerprints_and_files(tmp_path: Path) -> None:
    one, other = Image.new("RGB", (4, 2)), Image.new("RGB", (2, 4))
    shown = [Path("/a/1.mp4"), one, "Perche\u0301  no?"]
    name = fake_replies.fingerprint(shown)
    assert fake_replies.fingerprint([Path("/b/1.mp4"), one, "Perché no?"]) == name
    changed = ([shown[0], other, shown[2]], [one, shown[0], shown[2]], shown[:2], shown[1:])
    assert name not in map(fake_replies.fingerprint, changed)
    key = {name: ["yes", "a", "b", "c"]}
    assert (fake_replies.right_reply(key, shown), fake_replies.right_reply(key, ["?"])) == (
        "yes",
        fake_replies.UNKNOWN,
    )
    assert {fake_replies.random_reply(key, shown, seed) for seed in range(50)} == {"a", "b", "c"}
    assert fake_replies.random_reply(key, ["?"], 0) == fake_replies.UNKNOWN
    file = tmp_path / "key.json"
    for content in ("{", '"x"', "[1]", '{"a": [1]}', '{"a": 1}'):
        file.write_text(content, encoding="utf-8")
        refused(TasksError, r"key .*key\.json: expected a JSON object", fake_replies.load_key, file)
    refused(
        TasksError, r"nowhere\.json: No such file", fake_replies.load_key, tmp_path / "nowhere.json"
    )


# --- the witness ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_sample_alone")
def test_the_witness_knows_what_reached_it() -> None:
    """Whatever the mode hands over decides is right, chat and simple; the rest is guessed."""
    benchmark, decided = registry.load_benchmark("maverix"), sample.module("maverix").DECIDED
    for task, sure in decided.items():
        made, right = benchmark.tasks[task], []
        for doc in prepare.usable_docs(benchmark, task):
            parts = made.prompt(doc)
            chat = fake_replies.of_messages(messages.messages_of(parts))
            simple = fake_replies.of_visuals(messages.visuals_of(parts), messages.text_of(parts))
            assert perception_probe.reply(chat) == perception_probe.reply(simple)
            right.append(perception_probe.reply(chat) == doc["answer"])
            if task == "maverix_av":  # deaf or blind it is as good as without
                assert (
                    set(perception_probe.read_pitches(chat[0]))
                    == set()
                    == set(perception_probe.read_colours(chat[1]))
                )
        assert check_probe(task, sure, sum(right) / len(right), len(right)).good, task
    assert not check_probe("maverix_av", 17, 0.8, 20).good
    assert not check_probe("maverix_s", 0, 0.9, 20).good
