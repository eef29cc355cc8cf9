"""The published scores of MovieRecapsQA's released sample, summed up."""

import json
import statistics
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards.movierecapsqa_sample import describe, inversions, markdown
from lmms_eval_tasks.leaderboards.sample import Sample
from lmms_eval_tasks.movierecapsqa import schema
from tests.leaderboards.movierecapsqa_boards import NAME

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "movierecapsqa" / "segments.json"
needs_data = pytest.mark.skipif(not DATA.is_file(), reason=f"the released sample is not at {DATA}")
DIMENSIONS = ("factuality", "relevance")


@needs_data
def test_the_stored_figures_are_those_of_the_sample():
    board = leaderboard(NAME)
    assert describe(schema.read(DATA), board.models) == board.sample


@needs_data
def test_the_stored_figures_by_another_way():
    """From the file as it lies there, with the standard library's mean and variance."""
    questions = [q for segment in json.loads(DATA.read_text("utf-8")) for q in segment["questions"]]
    sample = leaderboard(NAME).sample
    full = [q for q in questions if all(a.get("scores") for a in q["modelAnswers"])]
    assert (len(questions), len(full)) == (sample.questions, sample.complete) == (52, 21)
    for row in sample.models():
        for asked, moments in ((questions, row.scored), (full, row.complete)):
            answers = [a for q in asked for a in q["modelAnswers"] if a["model"] == row.name]
            for dimension in DIMENSIONS:
                scores = [a["scores"][dimension] for a in answers if a.get("scores")]
                assert moments[dimension].n == len(scores)
                assert float(moments[dimension].mean) == pytest.approx(
                    statistics.mean(scores), abs=5e-5
                )
                assert float(moments[dimension].variance) == pytest.approx(
                    statistics.pvariance(scores), abs=5e-5
                )


def test_coverage_and_counts():
    sample = leaderboard(NAME).sample
    assert [(row.identity, row.scored["factuality"].n) for row in sample.rows] == [
        ("Amazon Nova Lite", 24),
        ("LLaVA-NeXT-Video", 52),
        ("Qwen2.5VL", 51),
        ("Mini-CPM-o", 52),
        ("Claude 3.5 Sonnet", 44),
        ("Gemini-2.5-Flash", 52),
        ("GPT-4o", 49),
        (None, 52),
    ]
    assert sum(row.empty for row in sample.rows) == 37
    assert sample.rows[0].coverage == pytest.approx(24 / 52)
    assert all(row.complete[d].n == 21 for row in sample.rows for d in DIMENSIONS)


def test_the_order_of_the_models_against_table_4():
    board = leaderboard(NAME)
    assert inversions(board, "factuality") == [
        ("GPT-4o", "Claude 3.5 Sonnet"),
        ("Mini-CPM-o", "LLaVA-NeXT-Video"),
    ]
    # Ties (GPT-4o with Claude, Nova with Gemini) are not the other order.
    assert inversions(board, "relevance") == [
        ("Amazon Nova Lite", "Claude 3.5 Sonnet"),
        ("Amazon Nova Lite", "Qwen2.5VL"),
        ("Mini-CPM-o", "LLaVA-NeXT-Video"),
    ]
    text = markdown(board)
    assert "2 of 21 pairs are the other way round" in text
    assert "| Amazon Nova Lite | 24 of 52 | 4.08 | 1.49 |" in text
    assert "37 answers are empty, 40 have no scores." in text


# --- on a small release ----------------------------------------------------------------------


def segment(*questions):
    return {
        "id": "v.1",
        "videoId": "v",
        "startTime": 0,
        "endTime": 9,
        "facts": ["A man runs."],
        "questions": [
            {
                "qid": number,
                "question": "Who runs?",
                "humanAnswer": {"answer": "He does.", "scores": scored(5, 5)},
                "modelAnswers": [
                    {"model": model, "answer": answer, "scores": scores}
                    for model, answer, scores in answers
                ],
            }
            for number, answers in enumerate(questions)
        ],
    }


def scored(factuality, relevance):
    return {"factuality": factuality, "relevance": relevance}


def release(folder, *questions):
    file = folder / "segments.json"
    file.write_text(json.dumps([segment(*questions)]), encoding="utf-8")
    return schema.read(file)


NAMES = {"one": "One", "two": "Two"}


def test_models_are_compared_where_all_have_scores(tmp_path):
    sample = describe(
        release(
            tmp_path,
            [("one", "a", scored(1, 2)), ("two", "b", scored(3, 3))],
            [("one", "a", scored(4, 2)), ("two", " ", None)],
            [("one", "a", {"factuality": 5}), ("two", "b", scored(0, 1))],
        ),
        NAMES,
    )
    one, two, people = sample.rows
    assert (sample.questions, sample.complete) == (3, 1)
    # Half of a pair of scores is none.
    assert (one.scored["factuality"].n, one.scored["factuality"].mean) == (2, Decimal("2.5"))
    assert one.scored["factuality"].variance == Decimal("2.25")
    assert (one.complete["factuality"].mean, one.complete["factuality"].variance) == (1, 0)
    assert (two.answers, two.empty, two.scored["relevance"].mean) == (3, 1, 2)
    assert (people.name, people.identity, people.complete["relevance"].n) == ("people", None, 1)


def test_a_model_without_scores_or_answers_is_told(tmp_path):
    bare = release(tmp_path, [("one", "a", scored(1, 2)), ("two", "b", None)])
    with pytest.raises(ValueError, match="no scores"):
        describe(bare, NAMES)
    missing = release(
        tmp_path, [("one", "a", scored(1, 2)), ("two", "b", scored(1, 2))], [("one", "a", None)]
    )
    with pytest.raises(ValueError, match="two: 1 answers to 2 questions"):
        describe(missing, NAMES)
    with pytest.raises(KeyError, match="one"):
        describe(release(tmp_path, [("one", "a", scored(1, 2))]), {})


def test_a_stored_sample_that_cannot_be_is_refused():
    sample = leaderboard(NAME).sample
    with pytest.raises(ValidationError, match="more scores than complete questions"):
        Sample(**{**dict(sample), "complete": 20})
    row = sample.rows[0].model_copy(update={"complete": {}})
    with pytest.raises(ValidationError, match="other dimensions"):
        Sample(**{**dict(sample), "rows": [row]})


def test_a_benchmark_without_a_sample_is_told():
    with pytest.raises(ValueError, match="maverix has no sample"):
        markdown(leaderboard("maverix"))
