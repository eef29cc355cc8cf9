"""The judge study's text compared with its tables: all statements that printed figures decide."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import Leaderboard
from lmms_eval_tasks.leaderboards.cvrr_es_agreement_claims import STATEMENTS as ABOUT_AGREEMENT
from lmms_eval_tasks.leaderboards.cvrr_es_panel_claims import STATEMENTS as ABOUT_PANELS
from lmms_eval_tasks.leaderboards.cvrr_es_paper import Paper
from lmms_eval_tasks.leaderboards.cvrr_es_rating_claims import STATEMENTS as ABOUT_RATINGS
from lmms_eval_tasks.leaderboards.cvrr_es_setting_claims import STATEMENTS as ABOUT_SETTING
from lmms_eval_tasks.leaderboards.findings import Claim

STATEMENTS = (*ABOUT_SETTING, *ABOUT_RATINGS, *ABOUT_AGREEMENT, *ABOUT_PANELS)

# Statements that no printed figure decides: section, our words, why.
UNDECIDED = (
    (
        "3.1",
        "answers that did not meet the criteria were left out",
        "neither the criteria nor how many; the tables do not say what each figure is over",
    ),
    (
        "3.2",
        "several rounds of debate lead to the reference rating",
        "neither the number of rounds nor of agents is given, nor who consolidates",
    ),
    (
        "3.3",
        "judges are selected by a threshold, or the best k are",
        "neither number is given, nor which of the two was used, nor what if nobody passes",
    ),
    (
        "5.1",
        "ratings of 4 are most frequent with Video-LLaVA and LLaMA-VID, lower ones with GPT-4o "
        "and the debate, and even with InternVL2 and GPT-4o mini",
        "Fig. 4, left, has no numbers in our copy",
    ),
    (
        "5.3",
        "the panels' agreement by candidate and dimension",
        "Fig. 5 has no numbers in our copy; Tables 5 to 7 have what it is drawn from",
    ),
    (
        "6",
        "fine-tuning Video-LLaVA makes it a little more reliable, far from GPT-4o, and leaves its "
        "ratings high",
        "Fig. 14 has no numbers in our copy",
    ),
    (
        "6",
        "a reliable judge needs more than understanding",
        "Fig. 15 has no numbers in our copy",
    ),
)


def claims(board: Leaderboard) -> list[Claim]:
    """Every statement that we check: about the setting, ratings, agreement and panels.

    Readings of soft words ("nearly all", "substantial", "comparable") are ours and stand in the
    statement.
    """
    paper = Paper(board)
    return [statement.claim(paper) for statement in STATEMENTS]
