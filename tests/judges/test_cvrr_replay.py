"""CVRR-ES: 12,000 published GPT-3.5 judgements, written as models write and read by our reader.

The released files hold parsed judgements. Each is read as it was published, but for the label
"partially correct", which the schema does not have. tests/host/test_cvrr_published.py has the
averages that follow.
"""

import json
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from lmms_eval_tasks.judges import reader
from tests.checks import table
from tests.conftest import SHARED

DATA = SHARED / "data" / "cvrr_es" / "judge_results"


class Judgement(BaseModel):
    pred: Literal["correct", "incorrect"]
    score: float = Field(ge=0, le=5)
    reason: str


def naive(judgement):
    """Single quotes around every text, whatever stands inside."""
    texts = {n: f"'{v}'" if isinstance(v, str) else repr(v) for n, v in judgement.items()}
    return "{" + ", ".join(f"'{name}': {text}" for name, text in texts.items()) + "}"


FORMS = {"a printed dict": repr, "single quotes, nothing escaped": naive}


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no published judgements at {DATA}")
@table("form", FORMS)
def test_every_judgement_is_read_as_published(form):
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*/*.json"))]
    judgements = [(judgement, asked["pred"]) for rows in files for judgement, asked in rows]
    assert len(judgements) == 12_000
    unread = []
    for judgement, candidate in judgements:
        try:
            found = reader.read_reply(FORMS[form](judgement), Judgement, [candidate])
        except reader.UnreadableError:
            unread.append(judgement["pred"])
        else:
            assert found.model_dump() == judgement
    assert unread == ["partially correct"]
