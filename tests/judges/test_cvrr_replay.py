"""CVRR-ES: 12,000 published GPT-3.5 judgements, written as models write and read by our reader.

The released files hold parsed judgements. Each is read as it was published, but for the label
"partially correct", which the schema does not have. tests/host/test_cvrr_published.py has the
averages that follow.
"""

import json
from collections import Counter
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.judges.providers.replay import Recordings, ReplayJudge
from tests.checks import table
from tests.conftest import SHARED

DATA = SHARED / "data" / "cvrr_es" / "judge_results"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no published judgements at {DATA}")


class Judgement(BaseModel):
    pred: Literal["correct", "incorrect"]
    score: float = Field(ge=0, le=5)
    reason: str


TEMPLATE = "{question} {reference} {candidate}"
CORRECT = Criterion(
    "cvrr_es", "Grade.", TEMPLATE, Judgement, lambda found: float(found.pred == "correct"), "0"
)


@pytest.fixture(scope="module")
def rows():
    """(model, dimension), the fields of the question, the published judgement."""
    found = []
    for path in sorted(DATA.glob("*/*.json")):
        place = (path.parent.name, path.stem)
        for judgement, asked in json.loads(path.read_text(encoding="utf-8")):
            fields = dict(zip(("model", "dimension"), place, strict=True))
            # Questions repeat in a dimension; with reference and answer they are unique.
            fields |= {"question": asked["q"], "reference": asked["a"], "candidate": asked["pred"]}
            found.append((place, fields, judgement))
    return found


def naive(judgement, quote="'"):
    """Single quotes around every text, whatever stands inside."""
    parts = [
        f"{quote}{name}{quote}: "
        + (f"{quote}{value}{quote}" if isinstance(value, str) else repr(value))
        for name, value in judgement.items()
    ]
    return "{" + ", ".join(parts) + "}"


FORMS = {
    "a printed dict": repr,
    "single quotes, nothing escaped": naive,
    "double quotes, nothing escaped": lambda judgement: naive(judgement, '"'),
    "fenced JSON": lambda judgement: f"```json\n{json.dumps(judgement, indent=2)}\n```",
    "a fenced dict in prose": lambda judgement: (
        "Here's my evaluation of the predicted answer:\n"
        f"```\n{judgement!r}\n```\nLet me know if you'd like {{more}} detail; I've kept it short."
    ),
    "doubled braces": lambda judgement: "{" + naive(judgement) + "}",
}


@table("form", FORMS)
def test_every_judgement_is_read_as_published(rows, form, tmp_path):
    path = tmp_path / "gpt-3.5.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for _, fields, judgement in rows:
            line = {"criterion": "cvrr_es", "fields": fields, "reply": FORMS[form](judgement)}
            file.write(json.dumps(line) + "\n")
    judge = ReplayJudge(JudgeConfig("replay", str(path)), Recordings.load(path))
    verdicts = [judge.verdict(CORRECT, fields) for _, fields, _ in rows]
    assert len(verdicts) == 12_000
    assert Counter(verdict.status for verdict in verdicts) == {"ok": 11_999, "parse_failure": 1}
    for (place, _, judgement), verdict in zip(rows, verdicts, strict=True):
        if verdict.score is not None:
            found = (verdict.score, verdict.reason)
            assert found == (float(judgement["pred"] == "correct"), judgement["reason"])
            continue
        assert (place[0], judgement["pred"]) == ("Video-ChatGPT", "partially correct")
        assert verdict.raw == FORMS[form](judgement)
        assert verdict.reason.startswith("pred: Input should be 'correct' or 'incorrect'")
