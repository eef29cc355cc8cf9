"""What HAVEN asks of a judge: one G-Eval rating, 1 to 5, of a text summary (paper, 4.1, Table 4).

The paper speaks of "a simplified G-Eval-style" judge and prints ratings of 2.25 to 3.54; it names
neither the judge nor its criteria nor its prompt. All of these are ours, unverified. The rating is
the mean over the probabilities of the score's token where the judge gives them, else over samples
(../geval_ratings.py): two measurements, so two metrics, geval_logprobs and geval_samples. It stays
on the scale of 1 to 5, which Table 4 has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Verdict, geval_ratings
from lmms_eval_tasks.judges.config import DEBATE, NONE, PANEL
from lmms_eval_tasks.judges.geval_ratings import SAMPLES, TOP_LOGPROBS, Rating
from lmms_eval_tasks.utils import aggregate, answers, prompt_notes, prompts

# Ours, since the paper names none: it gives log-probabilities, and MovieRecapsQA's paper judges
# with it. Whoever uses another compares with runs of that judge alone.
PAPER_JUDGE = "gpt-4.1-mini"
WARNING = (
    "the paper names neither judge nor criteria nor prompt of its G-Eval: these ratings cannot be "
    "compared with its Table 4"
)
GEVAL = "geval"
NO_REFERENCE = "no_reference"  # status: there is no reference summary to compare with

_PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "geval": (),
    "show": ("document", "reference", "candidate"),
    "no_document": (),
    "score": (),
}


def criterion(override_dir: Path | None = None) -> Criterion:
    """The criterion; fields as `fields` makes them.

    Args:
        override_dir: folder of prompts whose `haven/judge.yml` replaces ours; None for the user's
            setting. Read once for each folder.

    Raises:
        PromptError: the user's file does not fit.
    """
    return _criterion(override_dir or settings.prompts_dir())


def fields(doc: Mapping[str, Any], candidate: str) -> dict[str, str]:
    """What a request about one doc is filled with.

    Args:
        doc: with `summary` and `document`, lists of sentences.
        candidate: the summary to rate.
    """
    reference, document = " ".join(doc["summary"]), " ".join(doc["document"])
    return {**_facts(reference, document), "candidate": candidate}


def rate_summary(
    judge: Judge,
    reference: str,
    document: str,
    summary: str,
    saved: Verdict | None = None,
    *,
    status: str = "ok",
    samples: int = SAMPLES,
) -> dict[str, Any]:
    """Rate one summary.

    A failure is never turned into a minimum: where the judge fails there is no score. A summary
    that is none (empty, refused, cut off) is not put to the judge, and is the candidate's own
    failure: it has the score 0, below the scale, and counts as 0 in means of ratings too, as in
    MovieRecapsQA (utils/rating_means.py): abstaining must not pay.

    Args:
        judge: who is asked.
        reference: the reference summary; "" if there is none.
        document: what happens in the video; "" if it is not known.
        summary: the candidate's, without reasoning.
        saved: a verdict that stands in place of asking.
        status: of the summary as it was parsed from its reply; other than ok, nobody is asked, and
            the score is 0 for the candidate's own (empty, refused, truncated), else None.
        samples: to draw where the judge gives no log-probabilities, at least 1.

    Returns:
        Plain types: score (1..5; 0 as above; None), status (that of the summary, `judge_...` for
        the judge's failures, `unjudged`, `no_reference`), mode ("logprobs" or "samples"; None
        without a rating), mass (share of the probability that lies on the scale; logprobs only) and
        verdict.
    """
    nothing: dict[str, Any] = {"score": None, "mode": None, "mass": None, "verdict": None}
    if not reference.strip():
        return {**nothing, "status": NO_REFERENCE}
    if status == "ok":
        status = answers.reply_status(summary)
    if status != "ok":
        own = status in aggregate.CANDIDATE_FAILURES
        return {**nothing, "status": status, "score": 0.0 if own else None}
    made = geval_ratings.rate(
        judge,
        {GEVAL: criterion()},
        _facts(reference, document),
        summary,
        saved={GEVAL: saved},
        samples=samples,
    )
    rated = made["dimensions"][GEVAL]
    return {
        "score": made["score"],
        "status": made["status"],
        "mode": made["mode"],
        "mass": rated["mass"],
        "verdict": rated["verdict"],
    }


def config(spec: str | None = None, env: Mapping[str, str] | None = None) -> JudgeConfig:
    """The judge of `spec`, or of the user's setting, or ours (judges.configured).

    It is never the paper's (`comparable`), which is not known.

    Raises:
        JudgeError: it cannot be used as configured, or is several judges in one.
    """
    found = judges.configured(PAPER_JUDGE, spec, env)
    if found.provider in (PANEL, DEBATE):
        raise JudgeError(
            f"the judge {found.label} is several judges, and G-Eval's rating is one model's: name "
            "one model for HAVEN, and judge again with another (rescore --judge)"
        )
    return replace(found, comparable=False)


def check(spec: str | None = None) -> None:
    """Stop before a run whose judge (`spec`, or the user's) or judge's prompt cannot be used.

    Raises:
        JudgeError, PromptError: what is wrong and the choices there are.
    """
    judges.preflight(config(spec), [criterion()])


def describe(spec: str | None = None) -> dict[str, Any]:
    """Judge, prompt and way of rating for a run's results, as plain types; no secrets."""
    found = config(spec)
    notes = prompt_notes.judge(found, _prompt(settings.prompts_dir()))
    if found.provider != NONE:  # whose warning says that nothing is judged yet
        notes["warning"] = f"judged by {found.label}: {WARNING}"
    return {**notes, GEVAL: geval_ratings.describe(found)}


def prompt_name() -> str:
    """The prompt in use: its file and its hash."""
    return prompt_notes.name(_prompt(settings.prompts_dir()))


def _facts(reference: str, document: str) -> dict[str, str]:
    return {"reference": reference, "document": document.strip() or _no_document()}


def _no_document() -> str:
    return _loaded(settings.prompts_dir()).text["no_document"]


def _prompt(override_dir: Path | None) -> prompts.Prompt:
    return prompts.load("haven", "judge", _PLACEHOLDERS, override_dir)


@lru_cache(maxsize=8)
def _loaded(override_dir: Path | None) -> prompts.Prompt:
    return _prompt(override_dir)


@lru_cache(maxsize=8)
def _criterion(override_dir: Path | None) -> Criterion:
    prompt = _loaded(override_dir)
    return Criterion(
        name="haven_geval",
        system=prompt.text["geval"],
        template="\n".join([prompt.text["show"], prompt.text["score"]]),
        schema=Rating,
        score=_score,
        prompt_hash=prompt.hash,
        bare="score",
        top_logprobs=TOP_LOGPROBS,
    )


def _score(reply: Rating) -> float:
    return float(reply.score)
