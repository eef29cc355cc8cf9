"""MovieRecapsQA's text compared with its tables and itself: all statements that figures decide."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import Leaderboard
from lmms_eval_tasks.leaderboards.findings import Claim
from lmms_eval_tasks.leaderboards.movierecapsqa_category_claims import (
    STATEMENTS as ABOUT_CATEGORIES,
)
from lmms_eval_tasks.leaderboards.movierecapsqa_data_claims import STATEMENTS as ABOUT_DATA
from lmms_eval_tasks.leaderboards.movierecapsqa_metric_claims import STATEMENTS as ABOUT_METRICS
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import Paper
from lmms_eval_tasks.leaderboards.movierecapsqa_split_claims import STATEMENTS as ABOUT_SPLITS

STATEMENTS = (*ABOUT_DATA, *ABOUT_METRICS, *ABOUT_SPLITS, *ABOUT_CATEGORIES)


def claims(board: Leaderboard) -> list[Claim]:
    """Every statement that we check: about data and protocol, about metrics, about splits.

    Readings of soft words ("substantial", "roughly") are ours and stand in the statement.
    """
    paper = Paper(board)
    return [statement.claim(paper) for statement in STATEMENTS]
