"""Players see the rendered text and a key; cases of the reader are in tests/cases/players.json."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import players
from lmms_eval_tasks.sample.players import AnswerKey
from lmms_eval_tasks.utils.replies import answers
from tests.checks import refused, table

CASES = json.loads((Path(__file__).parents[1] / "cases" / "players.json").read_text("utf-8"))
KEY = AnswerKey(
    pairs=tuple((true, false) for true, false in CASES["key"]["pairs"]),
    answers=CASES["key"]["answers"],
    lures=CASES["key"]["lures"],
)


@table("case", CASES["oracle"])
def test_oracle(case: dict[str, str]) -> None:
    assert players.oracle(case["text"], KEY) == case["reply"]


@table("case", CASES["lm_pairs"])
def test_read_lm_pairs(case: dict[str, Any]) -> None:
    read = players.read_lm_pairs(case["reply"])
    assert (read[0] if read else "not of that form") == case["choice"]
    scores = {"a/b": [-1.0 / 3, -2.0 / 3], "é": [-1e-17, -7.1]}  # to the last digit
    assert players.read_lm_pairs(players.lm_pairs_reply(scores)) == ("A", scores)
    assert players.read_lm_pairs("[" * 100_000) is None


def render(true: str, false: str, letter: str) -> str:
    first, second = (true, false) if letter == "A" else (false, true)
    return f"Quale?\n\nA. {first}\nB. {second}\n\nRispondi con la lettera, A oppure B."


def test_the_oracle_goes_by_its_key_and_not_by_the_data() -> None:
    """Were the data's labels swapped, its answers would be wrong."""
    for i, (true, false) in enumerate(KEY.pairs[:2]):
        assert players.oracle(render(true, false, "AB"[i]), KEY) == "AB"[i]
        assert players.oracle(render(false, true, "AB"[i]), KEY) == "BA"[i]
    pairs = (("È Anna", "È Ugo"), ("È Ugo", "È Anna"), ("Uguale", "Uguale"))  # not told apart
    for true, false in pairs:
        assert players.oracle(render(true, false, "A"), AnswerKey(pairs)) == players.UNKNOWN


def test_coin_is_fair_fixed_by_seed_and_keeps_to_what_is_shown() -> None:
    texts = [render(f"Vero {i}", f"Falso {i}", "AB"[i % 2]) for i in range(1000)]
    replies = [players.coin(text) for text in texts]
    assert replies == [players.coin(text) for text in texts]
    assert replies != [players.coin(text, seed=1) for text in texts]
    # Five standard deviations of a fair coin over 1000 throws are 79.
    right = sum(reply == "AB"[i % 2] for i, reply in enumerate(replies))
    assert abs(right - 500) < 80
    # The rule, written out: a change of the hash would change the demo's numbers.
    first_bytes = [hashlib.sha256(f"coin\x1f0\x1f{text}".encode()).digest()[0] for text in texts]
    assert replies == ["AB"[byte >= 128] for byte in first_bytes]
    assert {players.coin(f"A: 1\nB: 2\nC: 3\n{i}") for i in range(50)} == {"A", "B", "C"}


def test_scripted_choices() -> None:
    docs = [
        {"id": f"v{n}", "question_id": f"v{n // 8}", "options": ["1", "2"], "answer": "AB"[n % 2]}
        for n in range(4000)
    ]
    replies = [players.scripted(doc) for doc in docs]
    right = [reply == doc["answer"] for reply, doc in zip(replies, docs, strict=True)]
    unreadable = replies.count(players.UNREADABLE)
    assert 0.65 < sum(right) / 4000 < 0.75
    assert 0.035 < unreadable / 4000 < 0.065
    assert set(replies) == {"A", "B", players.UNREADABLE}
    assert answers.read_choice(players.UNREADABLE, ["a", "b"]).status == "unparsed"
    pools = [all(right[start : start + 8]) for start in range(0, 4000, 8)]
    assert 0.4 < sum(pools) / len(pools) < 0.6
    for change in ({"mode": "v"}, {"mode": "v", "length": "full"}):  # draws anew
        other = [players.scripted({**doc, **change}) for doc in docs]
        assert 0.2 < sum(a != b for a, b in zip(replies, other, strict=True)) / 4000 < 0.8


def test_scripted_open_answers_and_those_whose_truth_is_withheld() -> None:
    ids = [{"id": f"v{i}", "question_id": f"v{i}"} for i in range(2000)]

    def found(**own: Any) -> Counter[str]:
        return Counter(players.scripted({**doc, **own}) for doc in ids)

    replies = found(references=["si", "sì"], lure="no")
    assert replies.keys() == {"si", "no", ""}
    assert 0.65 < replies["si"] / 2000 < 0.75
    assert 0.03 < replies[""] / 2000 < 0.07
    assert found(references=["si"], lure=None).keys() == {"si", players.UNKNOWN, ""}
    # It has to hand in something, and nothing is right.
    assert found(references=[], lure="").keys() == {players.UNKNOWN, ""}
    letters = found(options=list("abcdefgh"), answer="")
    assert letters.keys() == {*"ABCDEFGH", players.UNREADABLE}
    assert 0.03 < letters[players.UNREADABLE] / 2000 < 0.07
    assert all(0.08 < letters[letter] / 2000 < 0.16 for letter in "ABCDEFGH")


@table(
    "lacking",
    [
        {},
        {"references": None},
        {"options": ["a", "b"]},
        {"options": ["a", "b"], "answer": "C"},
        {"options": ["a"], "answer": "A"},
    ],
)
def test_scripted_names_what_a_doc_lacks(lacking: dict[str, Any]) -> None:
    refused(TasksError, "tasks_scripted", players.scripted, {"id": "x", **lacking})


def test_key_file(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(CASES["key"]), encoding="utf-8")
    assert AnswerKey.load(file) == KEY
    file.write_text('{"pictures": ["haven"]}', encoding="utf-8")
    assert AnswerKey.load(file) == AnswerKey(pictures=("haven",))


@table("case", CASES["bad_keys"])
def test_bad_key_file(case: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(case["content"], encoding="utf-8")
    refused(TasksError, r"key\.json", AnswerKey.load, file)
    words = r"nowhere\.json: No such file"
    refused(TasksError, words, AnswerKey.load, tmp_path / "nowhere.json")
