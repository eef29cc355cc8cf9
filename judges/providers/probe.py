"""A test of an endpoint before a run: does it judge, which parameters does it ignore?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges.engine import LanguageJudge
from lmms_eval_tasks.judges.prices import load_prices
from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.judges.verdict import Criterion, JudgeConfig, Verdict

PROBE_SECONDS = 20.0  # seconds that a probe's reply may take


def probe(
    model: JudgeConfig, criterion: Criterion, fields: Mapping[str, object]
) -> tuple[Verdict, str, list[str]]:
    """Send one request to an endpoint, within the user's limits; not cached, repaired or repeated.

    If it gives a verdict, further requests show which parameters it accepts and ignores.

    Returns:
        The verdict, the form in which it was requested ("one word", or a schema's form), and lines
        on parameters that are ignored or not accepted.
    """
    limits = settings.judge_limits()
    seconds = limits.timeout or min(model.timeout, PROBE_SECONDS)
    once = replace(model, repairs=0, retries=0, timeout=seconds)
    prices = load_prices(settings.value(settings.PRICES))
    with (
        closing(JudgeSession(limits, prices=prices)) as run,
        closing(OpenAIProvider(once)) as asked,
    ):
        verdict = LanguageJudge(once, asked, run).verdict(criterion, fields)
        departures = [] if verdict.score is None else asked.departures()
        return verdict, "one word" if criterion.labels else asked.form, departures
