"""What HAVEN asks of a judge: one G-Eval rating, 1 to 5, of a text summary (paper, 4.1, Table 4).

The paper speaks of "a simplified G-Eval-style" judge and prints ratings of 2.25 to 3.54; it names
neither the judge nor its criteria nor its prompt. All of these are ours, unverified. The rating is
the mean over the probabilities of the score's token where the judge gives them, else over samples
(judges/geval_ratings.py): two measurements, so two metrics, geval_logprobs and geval_samples. It
stays on the scale of 1 to 5, which Table 4 has.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, JudgeConfig, Verdict, geval_ratings
from lmms_eval_tasks.judges.config import DEBATE, NONE, PANEL
from lmms_eval_tasks.judges.geval_ratings import TOP_LOGPROBS, Rating
from lmms_eval_tasks.judges.verdict import Asks
from lmms_eval_tasks.utils import aggregate, answers, prompts

# Ours, since the paper names none: it gives log-probabilities, and MovieRecapsQA's paper judges
# with it. Whoever uses another compares with runs of that judge alone.
PAPER_JUDGE = "gpt-4.1-mini"
WARNING = (
    "the paper names neither judge nor criteria nor prompt of its G-Eval: these ratings cannot be "
    "compared with its Table 4"
)
GEVAL = "geval"  # name of the ask, and of the item's field with its rating
NO_REFERENCE = "no_reference"  # status: there is no reference summary to compare with

_PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "geval": (),
    "show": ("document", "reference", "candidate"),
    "no_document": (),
    "score": (),
}


def prompt() -> prompts.Prompt:
    """The judge's prompt, ours or the user's.

    Raises:
        PromptError: the user's file does not fit.
    """
    return _prompt(settings.prompts_dir())


def criterion() -> Criterion:
    """The criterion; its fields are those of `fields`, and `candidate`.

    Raises:
        PromptError: as `prompt`.
    """
    return _criterion(settings.prompts_dir())


def fields(doc: Mapping[str, Any]) -> dict[str, str]:
    """What a request about one doc shows beside the summary that is to be rated.

    Args:
        doc: with `summary` and `document`, lists of sentences.
    """
    document = " ".join(doc["document"]).strip()
    return {
        "reference": " ".join(doc["summary"]),
        "document": document or prompt().text["no_document"],
    }


def rated(
    doc: Mapping[str, Any], summary: str, status: str
) -> Generator[Asks, Sequence[Verdict], dict[str, Any]]:
    """Rate one summary (geval_ratings.rated; asking.py).

    A summary that is none (empty, refused, cut off) is the candidate's own failure: it has the
    score 0, below the scale, and counts as 0 in means of ratings too (utils/rating_means.py).

    Args:
        doc: as for `fields`.
        summary: the candidate's, without reasoning.
        status: of the summary as it was parsed from its reply; other than ok, nobody is asked, and
            the score is 0 for the candidate's own (empty, refused, truncated), else None.

    Returns:
        score (1..5; 0 as above; None), status (that of the summary, `judge_...` for the judge's
        failures, `unjudged`, `no_reference`), mode ("logprobs" or "samples"; None without a rating)
        and mass (share of the probability that lies on the scale; logprobs only).
    """
    nothing: dict[str, Any] = {"score": None, "mode": None, "mass": None}
    if not " ".join(doc["summary"]).strip():
        return {**nothing, "status": NO_REFERENCE}
    if status == "ok":
        status = answers.reply_status(summary)
    if status != "ok":
        own = status in aggregate.CANDIDATE_FAILURES
        return {**nothing, "status": status, "score": 0.0 if own else None}
    made = yield from geval_ratings.rated({GEVAL: criterion()}, fields(doc), summary)
    kept = {name: made[name] for name in ("score", "status", "mode")}
    return {**kept, "mass": made["dimensions"][GEVAL]["mass"]}


def suited(judge: JudgeConfig) -> JudgeConfig:
    """The judge, never the paper's (`comparable`), which is not known.

    Raises:
        JudgeError: it is several judges in one.
    """
    if judge.provider in (PANEL, DEBATE):
        raise JudgeError(
            f"the judge {judge.label} is several judges, and G-Eval's rating is one model's: name "
            "one model for HAVEN, and judge again with another (rescore --judge)"
        )
    return replace(judge, comparable=False)


def notes(judge: JudgeConfig) -> dict[str, Any]:
    """The way of rating for a run's results, as plain types, and what warns of it."""
    told: dict[str, Any] = {GEVAL: geval_ratings.describe(judge)}
    if judge.provider != NONE:  # whose warning says that nothing is judged yet
        told["warning"] = f"judged by {judge.label}: {WARNING}"
    return told


@lru_cache(maxsize=8)
def _prompt(override_dir: Path | None) -> prompts.Prompt:
    return prompts.load("haven", "judge", _PLACEHOLDERS, override_dir)


@lru_cache(maxsize=8)
def _criterion(override_dir: Path | None) -> Criterion:
    given = _prompt(override_dir)
    return Criterion(
        name="haven_geval",
        system=given.text["geval"],
        template="\n".join([given.text["show"], given.text["score"]]),
        schema=Rating,
        score=_score,
        prompt_hash=given.hash,
        bare="score",
        top_logprobs=TOP_LOGPROBS,
    )


def _score(reply: Rating) -> float:
    return float(reply.score)
