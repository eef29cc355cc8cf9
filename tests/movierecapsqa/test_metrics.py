"""MovieRecapsQA's numbers, on items whose values can be checked by eye.

Models of text metrics are tiny here and have random weights: rules, not quality.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.geval import MODES
from lmms_eval_tasks.movierecapsqa import metrics
from lmms_eval_tasks.movierecapsqa.baselines import HELMET_NAMES
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.schema import SPLITS
from lmms_eval_tasks.runs import scoring
from lmms_eval_tasks.utils import bartscore, bertscore, provenance, text_scores
from tests.conftest import SHARED
from tests.movierecapsqa.items import TASK, answer, answers, geval, helmet, numbers
from tests.utils import tiny_bert

METRICS = {metric.name: metric for metric in metrics.METRICS}
JUDGED = (*MODES, *HELMET_NAMES)


# --- ratings ------------------------------------------------------------------------------------


def test_ratings_by_hand() -> None:
    """5 3 1 0 and an empty one: 9/5; squares 25 9 1: 35/5 - 81/25 = 94/25."""
    found = numbers(answers("5310ej"))
    for name in DIMENSIONS:
        assert found[f"{name}_valid"] == 9 / 5
        assert found[f"{name}_var"] == pytest.approx(94 / 25)
        assert (found[f"{name}_failed"], found[f"{name}_coverage"]) == (1, 5 / 6)
    for mark in "eftn":  # the candidate's own failures are 0
        found = numbers(answers(f"4{mark}"))
        parts = ("valid", "var", "failed", "low", "high")
        assert [found[f"relevance_{part}"] for part in parts] == [2, 4, 0, 0, 2.5]
    for mark in "jpmx":  # all others are left out, and counted
        found = numbers(answers(f"4{mark}2"))
        parts = ("valid", "var", "failed", "coverage")
        assert [found[f"factuality_{part}"] for part in parts] == [3, 1, 1, 2 / 3]


def test_dimensions_fail_apart() -> None:
    marks = {"factuality": "j", "relevance": "5", "coherence": "1"}
    found = numbers([answer("v.1/0", marks), answer("v.1/1", "3")])
    assert [found[f"{name}_valid"] for name in DIMENSIONS] == [3, 4, 2]
    assert [found[f"{name}_failed"] for name in DIMENSIONS] == [1, 0, 0]
    assert found["claims_mean"] == 2  # the claims of both are known


def test_a_run_that_waits_for_its_judge_has_no_number() -> None:
    found = numbers(answers("sses"))
    for name in DIMENSIONS:
        for form in ("valid", "var", "low", "high", "valid_modality_unlabelled"):
            assert found[f"{name}_{form}"] is None, form
        counts = [found[f"{name}_{form}"] for form in ("coverage", "failed", "inconsistent")]
        assert counts == [0, 4, 0]
    assert (found["claims_mean"], found["rouge_l"]) == (None, 0.5)


def test_bounds_beside_the_scores() -> None:
    """All supported allows 5 alone, a contradiction at most 2, nothing supported 0."""
    labels = [["supported"], ["supported", "contradictory"], ["unsupported"]]
    items = [
        answer(f"v.1/{n}", mark, labels={"factuality": own})
        for n, (mark, own) in enumerate(zip("432", labels, strict=True))
    ]
    found = numbers(items)
    parts = ("inconsistent", "low", "high", "valid")
    assert [found[f"factuality_{part}"] for part in parts] == [3, 5 / 3, 7 / 3, 3]
    assert found["coherence_inconsistent"] == 0
    # Neither failures nor empty answers are scores that break a rule.
    assert numbers([*items, *answers("ejx")])["factuality_inconsistent"] == 3
    assert numbers([*items, answer("v.1/9", "e")])["factuality_low"] == 5 / 4
    assert numbers([*items, answer("v.1/9", "j")])["factuality_low"] == 5 / 3


def test_claims() -> None:
    items = [answer("a.1/0", n_claims=4), answer("a.1/1", n_claims=1), *answers("nejs")]
    found = numbers(items)
    assert (found["claims_mean"], found["no_claims"]) == (2.5, 1)


def test_labels_of_table_5() -> None:
    items = [
        answer("a.1/0", "5", modality="vision", category="sta"),
        answer("a.1/1", "1", modality="vision", category="npa"),
        answer("a.1/2", "4", modality="multimodal", category="npa"),
        answer("a.1/3", "e", modality="dialogue", category="th"),
        answer("b.1/0", "j", modality="dialogue", category="crd"),
        answer("b.1/1", "2"),
        answer("b.1/2", "3", category="temp"),
    ]
    expected = {
        "modality": {"dialogue": 0, "vision": 3, "multimodal": 4, "unlabelled": 2.5},
        "category": {"crd": None, "npa": 2.5, "sta": 5, "temp": 3, "th": 0, "unlabelled": 2},
    }
    found = numbers(items)
    for name in DIMENSIONS:
        for split, slugs in SPLITS.items():
            own = {slug: found[f"{name}_valid_{split}_{slug}"] for slug in slugs}
            assert own == expected[split]
    # A label that no item has has no number.
    assert len(numbers(items)) - len(numbers(items[:1])) == 3 * (3 + 5)


MARKS = st.sampled_from("012345eftnmxjps")


@hypothesis.settings(deadline=None)  # the first call imports numpy
@given(
    st.lists(st.tuples(MARKS, MARKS, MARKS, st.floats(0, 1)), min_size=1, max_size=7),
    st.randoms(use_true_random=False),
)
def test_no_number_depends_on_the_order(
    drawn: list[tuple[str, str, str, float]], shuffled: random.Random
) -> None:
    items = [
        answer(
            f"v{n % 2}.1/{n}",
            dict(zip(DIMENSIONS, marks, strict=True)),
            rouge_l=share,
            baselines=geval(share, ("logprobs", "samples")[n % 2]) | helmet(n % 2, n % 4),
            n_claims=n,
        )
        for n, (*marks, share) in enumerate(drawn)
    ]
    other = items[:]
    shuffled.shuffle(other)
    assert numbers(items) == numbers(other)
    assert scoring.details(TASK, items) == scoring.details(TASK, other)


def test_details_by_hand() -> None:
    items = [answer("a.1/0", "5"), answer("a.1/1", "3"), answer("b.1/0", "1"), answer("b.1/1", "j")]
    found = scoring.details(TASK, items)
    assert found["items"] == 4
    assert found["status"] == found["ratings"]["coherence"] == {"judge_api_error": 1, "ok": 3}
    interval = found["intervals"]["relevance_valid"]
    assert (interval["estimate"], interval["n"], interval["clusters"]) == (3, 3, 2)
    assert set(found["intervals"]) == {f"{name}_valid" for name in DIMENSIONS}
    assert scoring.details(TASK, answers("ss"))["intervals"] == {}
    assert scoring.details(TASK, answers("x"))["ratings"]["factuality"] == {"error": 1}


def test_which_way_is_better() -> None:
    low = {name for name, metric in METRICS.items() if metric.better is False}
    assert low == {
        "no_claims",
        *(f"{name}_{form}" for name in DIMENSIONS for form in ("failed", "inconsistent")),
        *(f"{name}_failed" for name in JUDGED),
    }
    neither = {name for name, metric in METRICS.items() if metric.better is None}
    assert neither == {
        "claims_mean",
        *(f"{name}_{form}" for name in DIMENSIONS for form in ("var", "low", "high")),
        *(f"{name}_var" for name in (*JUDGED, "rouge_l", "bertscore", "bartscore")),
    }
    assert len(METRICS) == len(metrics.METRICS) == 3 * (7 + 4 + 6) + 2 + 6 + 4 * 4


def test_the_hosts_table_is_short() -> None:
    rows = [row["metric"] for row in scoring.metric_list(TASK, ())]
    assert rows == ["failed", *(f"{name}_valid" for name in DIMENSIONS), "rouge_l"]


# --- text metrics -------------------------------------------------------------------------------

CANDIDATES = ["Un uomo corre nel parco", "", "Il gatto dorme.", "chitarra", "un gatto"]
REFERENCES = ["Un uomo dipinge la barca", "un gatto", "Il gatto nero dorme.", "", "un gatto"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {
        kind: str(tiny_bert.build(folder / kind, architecture=kind)) for kind in ("bert", "bart")
    }


@pytest.fixture
def models(folders: dict[str, str], monkeypatch: pytest.MonkeyPatch, nothing_kept: None) -> None:
    monkeypatch.setenv(settings.BERTSCORE, folders["bert"])
    monkeypatch.setenv(settings.BARTSCORE, folders["bart"])


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No result of another test, and no model of the developer's cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(provenance, "_notes", {})
    kept = (text_scores.bertscore, metrics._bartscore)
    for one in kept:
        one.cache_clear()
    yield
    for one in kept:
        one.cache_clear()


def test_rouge_l() -> None:
    for candidate, reference, expected in (
        ("The man runs home.", "the man RUNS home", 1.0),
        # two of four words in order, of four: precision 1/2, recall 1/2
        ("he is the man", "the man runs home", 0.5),
        # the common subsequence is "the ... home": 2 of 3 and 2 of 4 -> 4/7
        ("the long home", "the man runs home", 4 / 7),
        ("he is running", "he runs", 0.4),  # without a stemmer `running` is not `runs`
        ("nothing of it", "the man runs", 0.0),
        ("", "the man runs", 0.0),
        ("...", "the man runs", 0.0),
        ("the man runs", "", None),
        ("", "", None),
        ("the man", " - ", None),
    ):
        found = metrics.rouge_l(candidate, reference)
        assert found == (expected if expected is None else pytest.approx(expected))
    assert "no stemmer" in metrics.ROUGE_L
    items = [answer(f"v.1/{n}", rouge_l=value) for n, value in enumerate((0.25, 0.75, None))]
    found = numbers(items)
    assert (found["rouge_l"], found["rouge_l_var"]) == (0.5, 0.0625)
    assert numbers(items[2:])["rouge_l"] is numbers(items[2:])["rouge_l_var"] is None


def test_published_answers_have_the_size_of_table_4() -> None:
    """ROUGE-L of the site's sample beside the paper's full set: the same size, and a variance.

    The sample has other questions than the table (52 here), hence the tolerance.
    """
    file = SHARED / "data" / "movierecapsqa" / "segments.json"
    if not file.is_file():
        pytest.skip(f"no real MovieRecapsQA data at {file}")
    questions = [q for segment in json.loads(file.read_text()) for q in segment["questions"]]
    published = {  # Table 4: mean, variance
        "gpt_4o.response": (0.28, 0.03),
        "gemini_2.5-flash.response": (0.22, 0.02),
        "LLaVa-NeXT.response": (0.23, 0.01),
        "human": (0.16, 0.01),
    }
    for model, (mean, variance) in published.items():
        values = []
        for question in questions:
            own = [a["answer"] for a in question["modelAnswers"] if a["model"] == model]
            for text in own or [question["humanAnswer"]["answer"]] * (model == "human"):
                values.append(metrics.rouge_l(text or "", question["datasetAnswer"]))
        assert len(values) > 40
        known = [value for value in values if value is not None]
        assert statistics.fmean(known) == pytest.approx(mean, abs=0.03)
        assert statistics.pvariance(known) == pytest.approx(variance, abs=0.015)


@pytest.mark.usefixtures("models")
def test_metrics_by_models_per_item(folders: dict[str, str]) -> None:
    bert = metrics.bertscore(CANDIDATES, REFERENCES)

    def alone(place: int) -> float | None:
        own = [CANDIDATES[place]], [[REFERENCES[place]]]
        return bertscore.bert_score(*own, model=folders["bert"]).value

    assert bert.values == (alone(0), 0.0, alone(2), None, alone(4))
    assert folders["bert"] in bert.note
    bart = metrics.bartscore(CANDIDATES, REFERENCES)
    first, empty, second, absent, third = bart.values
    assert (empty, absent) == (0.0, None)  # an empty answer is worth 0, and does not vanish

    def likelihood(place: int) -> float:
        own = [CANDIDATES[place]], [REFERENCES[place]]
        value = bartscore.bart_score(*own, model=folders["bart"]).value
        assert value is not None
        return value

    # Random weights find every text unlikely, so that only the logarithms tell them apart.
    expected = [likelihood(place) for place in (0, 2, 4)]
    assert first and second and third  # noqa: PT018 - numbers above 0
    logarithms = [math.log(value) for value in (first, second, third)]
    assert logarithms == pytest.approx(expected, abs=1e-5)
    assert len({round(value, 2) for value in expected}) == 3
    assert "P(candidate | reference) (precision)" in bart.note
    assert bart.note.endswith(
        "1 of 4 items left out for lack of words; these are 0 in the exponentiated column"
    )
    for score in (metrics.bertscore, metrics.bartscore):
        assert score(["", "..."], ["un gatto", "un uomo"]).values == (0.0, 0.0)
        back = score(CANDIDATES[::-1], REFERENCES[::-1])
        assert back.values == score(CANDIDATES, REFERENCES).values[::-1]
        for candidates, references in ((["a", ""], ["", " "]), ([], [])):
            none = score(candidates, references)
            assert (none.values, none.computed) == ((None,) * len(candidates), False)
            assert none.note.endswith("not computed: no answer has a reference")
        with pytest.raises(ValueError, match="zip"):
            score(["a"], ["a", "b"])


@pytest.mark.usefixtures("models")
def test_mean_and_variance_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [("un gatto", "il gatto dorme"), ("", "il gatto"), ("barca", ""), ("re", "un re")]
    items = [answer(f"v.1/{n}", candidate=a, reference=b) for n, (a, b) in enumerate(texts)]
    items.append(answer("v.1/8", "m", candidate=""))  # its request failed: no text of the model's
    for name, module in (("bert", bertscore), ("bart", bartscore)):
        original, calls = getattr(module, f"{name}_score"), []

        def counted(*arguments: Any, of: Any = original, at: Any = calls, **options: Any) -> Any:
            at.append(options)
            return of(*arguments, **options)

        monkeypatch.setattr(module, f"{name}_score", counted)
        score = getattr(metrics, f"{name}score")
        found = score([a for a, _ in texts], [b for _, b in texts])
        values = [value for value in found.values if value is not None]
        assert (len(values), values[1]) == (3, 0)  # the empty answer
        for order in (items, items[::-1]):
            assert METRICS[f"{name}score"].of(order) == math.fsum(values) / 3
            variance = METRICS[f"{name}score_var"].of(order)
            assert variance == pytest.approx(statistics.pvariance(values), rel=1e-9, abs=0)
        assert len(calls) == 1
        (note,) = metrics.notes_of(["movierecapsqa_segment"])[f"{name}score"].values()
        assert note == found.note


@pytest.mark.usefixtures("nothing_kept")
def test_without_models_there_is_no_number_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bertscore", "bertscore_var", "bartscore", "bartscore_var"):
        assert METRICS[name].of(answers("55")) is None
    provenance.note("bertscore", "MAIA's")
    told = metrics.notes_of(["movierecapsqa_segment", "movierecapsqa_movie"])
    reasons = {name: notes["movierecapsqa_segment"] for name, notes in told.items()}
    assert reasons == {
        "bertscore": "BERTScore not computed: encoder 'roberta-large' is not in the local "
        "Hugging Face cache",
        "bartscore": "BARTScore not computed: no model was named with --bartscore "
        "(LMMS_EVAL_TASKS_BARTSCORE)",
    }
    # Each task has its own note: the last one's must not stand for all of them.
    assert all(list(notes) == ["movierecapsqa_segment"] for notes in told.values())
    monkeypatch.setenv(settings.BARTSCORE, "/no/such/folder")
    METRICS["bartscore"].of(answers("5", source="movie", condition="frames"))
    told = metrics.notes_of(["movierecapsqa_segment", "movierecapsqa_movie_frames"])
    assert "no model was named" in told["bartscore"]["movierecapsqa_segment"]
    assert "is no folder" in told["bartscore"]["movierecapsqa_movie_frames"]
    assert metrics.notes_of(["movierecapsqa_recap"]) == {}


def test_the_check_of_bartscores_model(
    folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics.check_bartscore()  # nothing is asked for
    monkeypatch.setenv(settings.BARTSCORE, folders["bart"])
    metrics.check_bartscore()
    for model, said in (
        ("/no/such/folder", "is no folder"),
        (folders["bert"], "bert is no sequence-to-sequence model"),
    ):
        monkeypatch.setenv(settings.BARTSCORE, model)
        with pytest.raises(TasksError, match=f"^{settings.BARTSCORE}={model}: .*{said}") as raised:
            metrics.check_bartscore()
        assert "\n" not in str(raised.value)


# --- judged baselines ---------------------------------------------------------------------------


def rated(*made: dict[str, Any]) -> list[dict[str, Any]]:
    return [answer(f"v.1/{n}", baselines=one) for n, one in enumerate(made)]


def four(items: list[dict[str, Any]], name: str) -> list[Any]:
    found = numbers(items)
    return [found[f"{name}{form}"] for form in ("", "_var", "_failed", "_coverage")]


def test_baselines_that_were_not_asked_for_have_no_number() -> None:
    for items in (rated({}, {}), answers("e5x")):
        for name in JUDGED:
            assert four(items, name) == [None, None, 0, None]


def test_helmet_by_hand() -> None:
    items = rated(helmet(1, 3), helmet(0, 1), helmet(0, 0, "empty"))
    items += rated(helmet(None, None, "judge_truncated"))
    assert four(items, "helmet_fluency") == [1 / 3, pytest.approx(2 / 9), 1, 3 / 4]
    assert numbers(items)["helmet_correctness"] == 4 / 3
    assert four(items, "geval_logprobs") == [None, None, 0, None]
    # Items without a reference are none of theirs; one whose scoring broke counts as failed.
    items = rated(helmet(1, 3), helmet(None, None, "no_reference"))
    assert four(items, "helmet_fluency") == [1, 0, 0, 1]
    items = [*rated(helmet(1, 2) | geval(0.5)), answer("x.1/0", "x")]
    for name in (*HELMET_NAMES, "geval_logprobs"):
        assert four(items, name)[2:] == [1, 1 / 2]
    assert four(items, "geval_samples")[2] == 0


def test_the_modes_of_g_eval_never_share_a_column() -> None:
    for mode, other in (("logprobs", "samples"), ("samples", "logprobs")):
        made = [geval(0.25, mode), geval(0.75, mode), geval(0.0, None, "empty")]
        items = rated(*made, geval(None, None, "judge_refused"))
        variance = pytest.approx(statistics.pvariance([0, 1, 3]) / 16)
        assert four(items, f"geval_{mode}") == [1 / 3, variance, 1, 3 / 4]
        assert four(items, f"geval_{other}") == [None, None, 0, None]
    items = rated(geval(0.25), geval(1.0, "samples"), geval(0.75), geval(0.5, "samples"))
    assert four(items, "geval_logprobs")[0::2] == [0.5, 2]
    assert four(items, "geval_samples")[0::2] == [0.75, 2]


def test_baselines_that_wait_for_the_judge() -> None:
    items = rated(helmet(None, None, "unjudged") | geval(None, None, "unjudged"))
    assert four(items, "helmet_fluency") == [None, None, 1, 0]
    assert four(items, "geval_samples")[0] is None
