"""CVRR-ES: 12,000 published GPT-3.5 judgements, replayed through our reader.

The released files hold parsed judgements. They are fed as the texts that a model would have sent,
and the accuracy by model and dimension must come out as published: the label "partially correct",
which the schema does not have, fails and is left out.
"""

import json
from collections import Counter, defaultdict
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.judges.replay import Recordings, ReplayJudge
from tests.checks import table
from tests.conftest import SHARED
from tests.cvrr_es.published import figures

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


def accuracies(rows, scores):
    """Percentages with two decimals by model and dimension, and the mean over dimensions."""
    groups, means = defaultdict(list), defaultdict(list)
    for (place, _, _), score in zip(rows, scores, strict=True):
        if score is not None:
            groups[place].append(score)
    exact = {place: 100 * sum(group) / len(group) for place, group in groups.items()}
    for (model, _), value in exact.items():
        means[model, "mean"].append(value)
    exact |= {place: sum(values) / len(values) for place, values in means.items()}
    return {place: f"{value:.2f}" for place, value in exact.items()}


@table("form", FORMS)
def test_the_published_accuracies_come_out(rows, form, tmp_path):
    published = {(m, name): said for m, row in figures().items() for name, said in row.items()}
    assert len(published) == 60
    path = tmp_path / "gpt-3.5.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for _, fields, judgement in rows:
            line = {"criterion": "cvrr_es", "fields": fields, "reply": FORMS[form](judgement)}
            file.write(json.dumps(line) + "\n")
    judge = ReplayJudge(JudgeConfig("replay", str(path)), Recordings.load(path))
    verdicts = [judge.verdict(CORRECT, fields) for _, fields, _ in rows]
    assert len(verdicts) == 12_000
    assert Counter(verdict.status for verdict in verdicts) == {"ok": 11_999, "parse_failure": 1}
    assert accuracies(rows, [verdict.score for verdict in verdicts]) == published
    for (place, _, judgement), verdict in zip(rows, verdicts, strict=True):
        if verdict.score is not None:
            assert verdict.reason == judgement["reason"]
            continue
        assert (place[0], judgement["pred"]) == ("Video-ChatGPT", "partially correct")
        assert verdict.raw == FORMS[form](judgement)
        assert verdict.reason.startswith("pred: Input should be 'correct' or 'incorrect'")
    # The failure counted as wrong gives another figure.
    found = accuracies(rows, [verdict.score or 0.0 for verdict in verdicts])
    changed = {place for place in published if found[place] != published[place]}
    assert {model for model, _ in changed} == {"Video-ChatGPT"}
    mean = ("Video-ChatGPT", "mean")
    assert (found[mean], published[mean]) == ("24.94", "24.96")
