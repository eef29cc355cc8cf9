"""`agreement` on the real sample, with replies whose agreement was computed beforehand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands import agreement_command
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.movierecapsqa import judge, published
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, asked
from tests.movierecapsqa import perturbed
from tests.movierecapsqa.asking import claimed, labelled

CASES = json.loads(perturbed.CASES.read_text(encoding="utf-8"))
NAMES = {
    "LLaVa-NeXT.response": "LLaVA-NeXT-Video",
    "MiniCPM-o.response": "Mini-CPM-o",
    "Qwen.response": "Qwen2.5VL",
    "amazon_nova.response": "Amazon Nova Lite",
    "claude.response": "Claude 3.5 Sonnet",
    "gemini_2.5-flash.response": "Gemini-2.5-Flash",
    "gpt_4o.response": "GPT-4o",
    "people": "people",
    "all": "all models",
}


def agreement(*arguments: str, **env: str | None) -> Result:
    return CliRunner().invoke(app, ["agreement", "movierecapsqa", *arguments], env=env)


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals are tested in test_agreement_scores.py."""
    monkeypatch.setattr(agreement_command, "RESAMPLES", 20)


# By score: labels that allow it, and labels that do not.
LABELS = {
    "factuality": (
        [
            ["unsupported", "unsupported"],
            *[["supported", "contradictory"]] * 2,
            *[["supported", "unsupported"]] * 2,
            ["supported", "supported"],
        ],
        [*[["supported", "supported"]] * 3, *[["supported", "contradictory"]] * 3],
    ),
    "relevance": (
        [
            ["irrelevant", "irrelevant"],
            *[["relevant", "irrelevant"]] * 2,
            *[["relevant", "relevant"]] * 3,
        ],
        [["irrelevant", "irrelevant"]] * 6,
    ),
}


def recordings(given: perturbed.Given, answer: published.Released) -> Iterator[dict[str, Any]]:
    """The judge's replies about one answer."""
    fields = {"question": answer.question, "candidate": given.text.strip()}
    claims = [f"{given.by} says something.", f"{given.by} says more."]
    found = claimed([] if perturbed.finds_nothing(given) else claims)
    yield {"criterion": judge.CLAIMS, "fields": fields, "reply": found}
    for dimension in DIMENSIONS:
        about = asked(answer.context, dimension, answer.question, claims)
        if dimension == "coherence":
            reply = labelled(["consistent", "consistent"], 4)
        elif (score := perturbed.says(given, dimension)) is None:
            reply = "It is quite good."
        else:
            allowing = not perturbed.contradicts_itself(given, dimension, score)
            reply = labelled(LABELS[dimension][0 if allowing else 1][score], score)
        yield {"criterion": judge.LABELS, "fields": about, "reply": reply}


@pytest.fixture
def replay(real: Path, tmp_path: Path) -> str:
    """A judge that says what perturbed.py rules."""
    released = {(a.question_id, a.by): a for a in published.read(real / "movierecapsqa").answers}
    lines = [
        line
        for given in perturbed.scored_answers()
        for line in recordings(given, released[given.question, NAMES[given.by]])
    ]
    file = tmp_path / "replies.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"replay:{file}"


def test_perturbed_scores_give_the_numbers_fixed_before(
    real: Path, replay: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    done = agreement("--judge", replay, "--data", str(real), "--output", str(out))
    assert done.exit_code == 0, (done.output, done.exception)
    found = json.loads(out.read_text(encoding="utf-8"))
    for dimension in perturbed.DIMENSIONS:
        expected, got = CASES[dimension], found["dimensions"][dimension]
        for name, numbers in expected["rows"].items():
            row = got["rows"][NAMES[name]]
            assert {key: row[key] for key in numbers} == pytest.approx(numbers, abs=1e-9), name
        for title, models in published.groups().items():
            own = [got["rows"][name] for name in models]
            row = got["rows"][f"{title}, mean of {len(own)}"]
            for key in ("kappa", "rho", "absolute", "ours", "published"):
                assert row[key] == pytest.approx(sum(one[key] for one in own) / len(own))
        order, wanted = got["order"], expected["order"]
        for key in ("complete", "judged", "same"):
            assert order[key] == wanted[key]
        assert order["tau"] == pytest.approx(wanted["tau"], abs=1e-9)
        for name, (ours, theirs) in wanted["means"].items():
            means = {"ours": ours, "published": theirs}
            assert order["means"][NAMES[name]] == pytest.approx(means, abs=1e-9)
        table = done.output.partition(f"{dimension}: our judge")[2]
        everyone = next(line for line in table.splitlines() if line.startswith(" all models"))
        assert everyone.split()[2] == str(expected["rows"]["all"]["n"])
        assert f" {expected['rows']['all']['kappa']:.2f} [" in everyone
        counted = f"{dimension}: {CASES['inconsistent'][dimension]} of"
        assert any(note.startswith(counted) for note in found["notes"])
    assert found["statuses"]["no_claims"] == CASES["no_claims"]
    for line in (
        "52 questions on 8 videos, answers of 7 models",
        "Amazon Nova Lite: 24 of 52 answers have scores; without: 28 empty",
        "GPT-4o: 49 of 52 answers have scores; without: 1 empty, 2 with a text",
        "21 of 52 questions have a published score of all 7 models",
        f"answers without a claim: {CASES['no_claims']} ",
    ):
        assert line in done.output


def test_an_estimate_of_the_real_sample(real: Path) -> None:
    """No key, nobody asked; the paper's judge has a price."""
    done = agreement("--data", str(real), "--dry-run", **{settings.JUDGE: None})
    assert done.exit_code == 0, done.output
    assert "376 answers to judge: 1,504 verdicts, 1,504 calls" in done.output
    assert "gpt-4.1-mini" in done.output
    assert "$1." in done.output
    assert "(at best $0." in done.output
    # 57,617 answers at the same price each.
    (whole,) = re.findall(r"7 models, .*?, \$([\d.]+) \(at best", done.output)
    (part,) = re.findall(r"376 answers .*?, \$([\d.]+) \(at best", done.output)
    assert float(whole) == pytest.approx(float(part) * 57_617 / 376, rel=0.005)
