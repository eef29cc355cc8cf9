"""ROUGE-1, ROUGE-2 and ROUGE-L of a summary against one reference (metrics.md, "Text"; Lin, 2004).

HAVEN's paper (Table 4: 0.152 to 0.235) prints one "aggregated" ROUGE and neither defines it nor
names an implementation: ours, unverified, is in `IMPLEMENTATION`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lmms_eval_tasks.utils.text_metrics import rouge_scorer

KINDS = ("rouge1", "rouge2", "rougeL")
IMPLEMENTATION = (
    "rouge-score RougeScorer: F1 in 0..1 of rouge1, rouge2 and rougeL (over the whole text, not "
    "rougeLsum's line by line) against one reference, `rouge` is their mean (ours: no definition "
    "is published); Unicode words in NFC and lower case (\\w+); no stemmer; not rouge-score's own "
    "tokenizer, which drops accented letters"
)


class Rouge(NamedTuple):
    """F1 in 0..1 of each kind."""

    rouge1: float
    rouge2: float
    rougeL: float  # noqa: N815 - its published name

    @property
    def rouge(self) -> float:
        """The aggregate: mean of the three F1."""
        return math.fsum(self) / len(self)


def rouge(candidate: str, reference: str) -> Rouge:
    """ROUGE F1 of a text, with Unicode words in lower case and no stemmer (`tokenize`).

    A candidate without a word scores 0 in all three, and so does anything against a reference
    without one. A text of one word has no two in a row: its ROUGE-2 is 0 even against itself.

    Time grows with the product of the two lengths (about 1 s for 5,000 by 1,000 words).
    """
    scores = rouge_scorer(*KINDS).score(reference, candidate)
    return Rouge(*(float(scores[kind].fmeasure) for kind in KINDS))
