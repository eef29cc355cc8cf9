"""BERTScore of summaries, and CLIPScore of summaries and frames, item by item (paper, 4.1).

The paper names no encoder, layer or CLIP model (Table 3: BERTScore 0.847 to 0.874; Table 4:
CLIPScore 0.741 to 0.899): ours are named with each result, and are unverified. What a model has
computed is kept for the process, since the same items are asked for in many means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils import local_models, text_scores
from lmms_eval_tasks.utils.text_scores import NO_REFERENCE, Pair, TextScores

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.bertscore import BertScore
    from lmms_eval_tasks.utils.clip_encoder import Picture

LANGUAGE = "en"  # of the release; decides bert-score's default encoder (roberta-large)
NOT_ASKED = f"no model was named with --clipscore ({settings.CLIPSCORE})"


def bertscore(candidates: Sequence[str], references: Sequence[str]) -> TextScores:
    """BERTScore F1 per item, not rescaled; a pair of texts is scored once for the process.

    A candidate without a word is worth 0, an item without a reference has no value. The note is
    about all pairs scored so far: the encoder, how many texts were cut, and whether its figures
    compare with others.

    Args:
        candidates: summaries without reasoning; "" for what is none.
        references: the release's summaries; "" where there is none.

    Raises:
        ValueError: the lengths differ.
    """
    model = settings.bertscore_model()
    pairs = text_scores.pairs(candidates, references)
    if not pairs:
        return text_scores.none(candidates, f"BERTScore not computed: {NO_REFERENCE}")
    known = _known(model)
    new = tuple(dict.fromkeys(pair for pair in pairs if pair not in known.values))
    if new:
        score = text_scores.bertscore(new, model, LANGUAGE)
        if score.reason is not None:
            return text_scores.none(candidates, score.describe())
        known.add(new, score)
    return text_scores.by_item(candidates, references, known.values, known.note())


def check() -> None:
    """Stop before a run whose CLIP model, if the user named one, cannot be used.

    Raises:
        TasksError: what is wrong with it.
    """
    if settings.clipscore_model() and (problem := clip_problem()):
        raise TasksError(
            f"{settings.CLIPSCORE}={settings.clipscore_model()}: {problem}; nothing is downloaded: "
            "name the folder of a model such as openai/clip-vit-base-patch32, or leave the option "
            "out"
        )


def clip_problem() -> str | None:
    """Why there is no CLIPScore, in one line; None if the model can be used, or so it looks."""
    from lmms_eval_tasks.utils import clipscore as implementation

    model = settings.clipscore_model()
    return NOT_ASKED if model is None else implementation.problem(model)


def clipscore(sentences: Sequence[str], pictures: Sequence[Picture]) -> float | None:
    """CLIPScore between a summary and its frames, 0..2.5 (utils/clipscore.py has the rule).

    Args:
        sentences: of the summary.
        pictures: of the frames selected with it; one is opened only if its key is new.

    Returns:
        None where there is no sentence with a word or no picture, and where it is not computed
        (`clip_problem`, or `clip_note` for a model that is broken).

    Raises:
        TasksError: a picture raised it when it was opened.
    """
    from lmms_eval_tasks.utils import clipscore as implementation

    model = settings.clipscore_model()
    return None if model is None else implementation.clip_score(sentences, pictures, model).value


def clip_note() -> str:
    """What CLIPScore was computed with so far in this process, or why it was not."""
    from lmms_eval_tasks.utils import clipscore as implementation

    model = settings.clipscore_model()
    if model is None:
        return f"CLIPScore not computed: {NOT_ASKED}"
    return implementation.describe(model)


@dataclass
class _Known:
    """What one encoder has scored so far."""

    values: dict[Pair, float] = field(default_factory=dict)
    n_truncated: int = 0
    last: BertScore | None = None

    def add(self, pairs: Iterable[Pair], score: BertScore) -> None:
        self.values.update(zip(pairs, score.values, strict=True))
        self.n_truncated += score.n_truncated
        self.last = score

    def note(self) -> str:
        last = self.last
        if last is None:
            return ""
        from bert_score.utils import model2layers

        comparable = local_models.is_released(last.model, model2layers)
        return (
            f"BERTScore F1, not rescaled, model {last.model}, layer {last.layer}, hash "
            f"{last.hash}; {self.n_truncated} texts of {len(self.values)} different pairs cut to "
            f"{last.max_tokens} tokens"
        ) + ("" if comparable else f"; {local_models.NOT_COMPARABLE}")


@lru_cache(maxsize=2)
def _known(model: str | None) -> _Known:  # noqa: ARG001 - by it they are kept apart
    return _Known()
