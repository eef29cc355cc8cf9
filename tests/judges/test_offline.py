"""The embedded rules: cases, and their measured quality on the real data."""

import json
from pathlib import Path

from pydantic import BaseModel

from lmms_eval_tasks.judges import Criterion, make, offline, resolve
from lmms_eval_tasks.judges.offline import Acceptance, agreement
from tests.checks import table

FILE = Path(__file__).parents[1] / "cases" / "judge_offline.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))
COLOUR = ("Di che colore è la palla?", CASES[0]["references"])


@table("case", CASES)
def test_rules(case):
    found = {
        verdict: [a for a in case[verdict] if agreement(case["question"], case["references"], a)[0]]
        for verdict in ("agree", "differ")
    }
    assert found == {"agree": case["agree"], "differ": []}


def test_texts_of_other_forms():
    assert not agreement(COLOUR[0], COLOUR[1], "correct: true " * 1500)[0]
    # An empty answer does not equal an empty reference; accents and compositions are one.
    assert not agreement(COLOUR[0], ["", "rosso"], " ?!")[0]
    assert agreement("Perché?", ["perche\u0301 è città"], "PERCHÈ E\u0300 citta\u0300")[0]


class Reply(BaseModel):
    correct: bool


def judged(judge, name, fields):
    criterion = Criterion(name, "", "", Reply, lambda reply: float(reply.correct), "0")
    return make(resolve(judge, {}, default_model="gpt-4o")).verdict(criterion, fields)


def test_the_judge_and_what_it_declines():
    fields = {"question": COLOUR[0], "references": COLOUR[1], "candidate": "rosso"}
    verdict = judged("offline", "reference_agreement", fields)
    assert (verdict.score, verdict.status, verdict.judge) == (1.0, "ok", "offline")
    other = judged("offline", "fluency", fields)
    assert (other.score, other.status) == (None, "skipped")
    assert "fluency" in other.reason
    none = judged("none", "any", {})
    assert (none.score, none.status, none.judge) == (None, "skipped", "none")
    for share in ("86.6 % of the true", "15.6 % of the false", "46.9 %", "86.7 %", "18.5 %"):
        assert share in offline.WARNING


# --- on the real data --------------------------------------------------------------------------


def pairs(folder, videos=None):
    """(question, references, true statement, false statement, its index) of the public sample."""
    for video in json.loads((folder / "data.json").read_text(encoding="utf-8")):
        if videos is None or video["video"] in videos:
            for entry in video["question_categories_A"] + video["question_categories_B"]:
                statements = zip(entry["true_statement"], entry["false_statement"], strict=True)
                for index, (true, false) in enumerate(statements):
                    yield entry["question"], entry["answer"], true, false, index


@table("stated, videos, without_own")
def test_the_stated_quality_is_the_measured_one(maia_data, stated, videos, without_own):
    count = true = false = 0
    for question, answers, right, wrong, index in pairs(maia_data, videos):
        references = [a for i, a in enumerate(answers) if not (without_own and i == index)]
        count += 1
        true += agreement(question, references, right)[0]
        false += agreement(question, references, wrong)[0]
    assert Acceptance(count, true, false) == getattr(offline, stated)
