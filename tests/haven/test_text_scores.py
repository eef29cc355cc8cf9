"""BERTScore and CLIPScore per item; models here are tiny and random: rules, not quality."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError, TasksError
from lmms_eval_tasks.haven import text_scores
from lmms_eval_tasks.utils import bertscore, clipscore, local_models
from lmms_eval_tasks.utils import text_scores as shared
from lmms_eval_tasks.utils.clip_encoder import Picture
from tests.utils import tiny_bert, tiny_clip

CANDIDATES = ["Un uomo corre nel parco", "", "Il gatto dorme.", "chitarra", "un gatto"]
REFERENCES = ["Un uomo dipinge la barca", "un gatto", "Il gatto nero dorme.", "", "un gatto"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert.build(tmp_path_factory.mktemp("models") / "bert", max_length=16))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_clip.build(tmp_path_factory.mktemp("models") / "clip"))


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No result of another test, and no model of the developer's cache or settings."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv(settings.BERTSCORE, raising=False)
    monkeypatch.delenv(settings.CLIPSCORE, raising=False)
    caches = (text_scores._known, shared.bertscore, clipscore._loaded)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs each call of the encoder was about."""
    original, found = bertscore.bert_score, []

    def counted(candidates: Any, references: Any, **options: Any) -> Any:
        found.append(len(candidates))
        return original(candidates, references, **options)

    monkeypatch.setattr(bertscore, "bert_score", counted)
    return found


# --- BERTScore --------------------------------------------------------------------------------


def test_bertscore_per_item(bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.BERTSCORE, bert)
    score = text_scores.bertscore(CANDIDATES, REFERENCES)

    def alone(place: int) -> float | None:
        one = [CANDIDATES[place]], [[REFERENCES[place]]]
        return bertscore.bert_score(*one, model=bert).value

    assert score.computed
    assert score.values == (alone(0), 0.0, alone(2), None, alone(4))
    assert alone(0) != alone(2)
    assert text_scores.bertscore(CANDIDATES[::-1], REFERENCES[::-1]).values == score.values[::-1]


def test_a_part_of_the_items_is_known(
    bert: str, monkeypatch: pytest.MonkeyPatch, calls: list[int]
) -> None:
    """Means over sources and over valid replies ask for parts of what the first mean asked for."""
    monkeypatch.setenv(settings.BERTSCORE, bert)
    whole = text_scores.bertscore(CANDIDATES, REFERENCES)
    part = text_scores.bertscore(CANDIDATES[2:], REFERENCES[2:])
    assert part.values == whole.values[2:]
    assert part.note == whole.note
    assert calls == [4]  # one item has no reference
    more = text_scores.bertscore(["Un uomo corre", *CANDIDATES], [REFERENCES[0], *REFERENCES])
    assert more.values[1:] == whole.values
    assert calls == [4, 1]
    assert "of 4 different pairs" in whole.note
    assert "of 5 different pairs" in more.note


def test_equal_pairs_are_scored_once(
    bert: str, monkeypatch: pytest.MonkeyPatch, calls: list[int]
) -> None:
    monkeypatch.setenv(settings.BERTSCORE, bert)
    one, other = text_scores.bertscore(["un gatto"] * 2, ["il gatto"] * 2).values
    assert one == other is not None
    assert calls == [1]


def test_another_encoder_has_its_own_values(
    bert: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(settings.BERTSCORE, bert)
    first = text_scores.bertscore(CANDIDATES, REFERENCES)
    other = str(tiny_bert.build(tmp_path / "other", seed=1))
    monkeypatch.setenv(settings.BERTSCORE, other)
    second = text_scores.bertscore(CANDIDATES, REFERENCES)
    assert second.values[0] != first.values[0]
    assert other in second.note


def test_the_note_names_encoder_cuts_and_doubt(bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.BERTSCORE, bert)
    long = "un uomo dipinge la barca con un pennello e una donna suona la chitarra in una piazza"
    score = text_scores.bertscore([long, "un gatto"], ["un gatto", "il gatto"])
    made = bertscore.bert_score(["un gatto"], [["il gatto"]], model=bert)
    assert score.note == (
        f"BERTScore F1, not rescaled, model {bert}, layer 3, hash {made.hash}; 1 texts of 2 "
        f"different pairs cut to 16 tokens; {local_models.NOT_COMPARABLE}"
    )
    again = text_scores.bertscore([long], ["il gatto"])
    assert "2 texts of 3 different pairs cut" in again.note


@pytest.mark.parametrize(
    ("name", "comparable"),
    [("roberta-large", True), ("FacebookAI/roberta-large", True), ("someone/roberta-large", False)],
)
def test_a_released_encoder_is_comparable(
    name: str, comparable: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tiny_bert.into_cache(tmp_path / "hub", name)
    if name != "roberta-large":  # which is the default for English
        monkeypatch.setenv(settings.BERTSCORE, name)
    score = text_scores.bertscore(["un gatto"], ["il gatto"])
    assert score.computed
    assert f"model {name}, layer" in score.note
    assert (local_models.NOT_COMPARABLE in score.note) is not comparable


def test_bertscore_without_its_encoder_is_not_computed() -> None:
    score = text_scores.bertscore(CANDIDATES, REFERENCES)
    assert (score.values, score.computed) == ((None,) * 5, False)
    assert score.note == (
        "BERTScore not computed: encoder 'roberta-large' is not in the local Hugging Face cache"
    )


def test_bertscore_of_nothing(bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.BERTSCORE, bert)
    for candidates, references in ((["a", ""], ["", " "]), ([], [])):
        score = text_scores.bertscore(candidates, references)
        assert (score.values, score.computed) == ((None,) * len(candidates), False)
        assert score.note == "BERTScore not computed: no answer has a reference"
    assert text_scores.bertscore(["", "..."], ["un gatto", "un uomo"]).values == (0.0, 0.0)
    with pytest.raises(ValueError, match="zip"):
        text_scores.bertscore(["a"], ["a", "b"])


# --- CLIPScore --------------------------------------------------------------------------------

SENTENCES = ["A man paints the boat.", "The red dog sleeps"]


def pictures() -> list[Picture]:
    return [
        Picture("tvsum/video_1 3", lambda: tiny_clip.picture((20, 60, 200))),
        Picture("tvsum/video_1 9", lambda: tiny_clip.picture((40, 180, 60))),
    ]


def test_clipscore_of_a_summary(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CLIPSCORE, clip)
    assert text_scores.clip_problem() is None
    expected = clipscore.clip_score(SENTENCES, pictures(), clip).value
    assert expected is not None
    assert text_scores.clipscore(SENTENCES, pictures()) == expected
    assert text_scores.clipscore([], pictures()) is None
    assert text_scores.clipscore(SENTENCES, []) is None
    assert text_scores.clip_note() == clipscore.describe(clip)
    assert "0 of 2 sentences cut" in text_scores.clip_note()
    assert text_scores.clip_note().endswith(local_models.NOT_COMPARABLE)


def test_a_picture_that_is_gone_is_told(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CLIPSCORE, clip)

    def gone() -> Any:
        raise MediaError("tvsum/video_1: gone")

    with pytest.raises(MediaError, match="tvsum/video_1: gone"):
        text_scores.clipscore(SENTENCES, [Picture("x", gone)])


def test_clipscore_that_nobody_asked_for() -> None:
    said = "no model was named with --clipscore (LMMS_EVAL_TASKS_CLIPSCORE)"
    assert text_scores.clip_problem() == said
    assert text_scores.clipscore(SENTENCES, pictures()) is None
    assert text_scores.clip_note() == f"CLIPScore not computed: {said}"
    text_scores.check()


def test_check(clip: str, bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CLIPSCORE, clip)
    text_scores.check()
    for model, said in (("/no/such/folder", "is no folder"), (bert, "bert is no CLIP model")):
        monkeypatch.setenv(settings.CLIPSCORE, model)
        with pytest.raises(TasksError, match=f"^{settings.CLIPSCORE}={model}: .*{said}") as raised:
            text_scores.check()
        assert "\n" not in str(raised.value)
        assert said in str(text_scores.clip_problem())
        assert text_scores.clipscore(SENTENCES, pictures()) is None
        assert text_scores.clip_note().startswith("CLIPScore not computed: ")
