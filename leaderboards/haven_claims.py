"""HAVEN's text compared with its tables and itself: all statements that printed figures decide."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import Leaderboard
from lmms_eval_tasks.leaderboards.findings import Claim
from lmms_eval_tasks.leaderboards.haven_data_claims import STATEMENTS as ABOUT_DATA
from lmms_eval_tasks.leaderboards.haven_keyframe_claims import STATEMENTS as ABOUT_KEYFRAMES
from lmms_eval_tasks.leaderboards.haven_paper import Paper
from lmms_eval_tasks.leaderboards.haven_summary_claims import STATEMENTS as ABOUT_SUMMARIES
from lmms_eval_tasks.leaderboards.haven_task_claims import STATEMENTS as ABOUT_TASKS

STATEMENTS = (*ABOUT_DATA, *ABOUT_KEYFRAMES, *ABOUT_SUMMARIES, *ABOUT_TASKS)

# Statements about results that no printed figure decides: section, our words, why.
UNDECIDED = (
    (
        "4.4",
        "grounding: Hit@1 is above F1, and F1 above IoU",
        "Fig. 4(b) has no numbers in our copy; F1 cannot be below IoU by their formulas",
    ),
    (
        "4.4",
        "grounding: GPT-5.2 is the best model in IoU and Hit@1 too",
        "Fig. 4(b) has no numbers in our copy",
    ),
    (
        "4.4",
        "grounding: GLM-4.6V is above Qwen3-VL in IoU and below it in Hit@1",
        "Fig. 4(b) has no numbers in our copy",
    ),
    (
        "4.2",
        "from separate to joint the text proxy's points stay in place and most models' move down",
        "Fig. 5 has no numbers in our copy, and its axes are not named",
    ),
    (
        "4.5",
        "Qwen3-VL is even over all tasks and has the largest area",
        "Fig. 1 has no numbers in our copy",
    ),
    (
        "5.1",
        "models that are strong in V2T drop in V2V and in grounding",
        "the metrics have different scales",
    ),
    (
        "4.2",
        "models are strong in text and weaker in keyframes",
        "the metrics have different scales",
    ),
)


def claims(board: Leaderboard) -> list[Claim]:
    """Every statement that we check: about the data, keyframes, summaries and the other tasks.

    Readings of soft words ("substantially", "far", "moderate") are ours and stand in the statement.
    """
    paper = Paper(board)
    return [statement.claim(paper) for statement in STATEMENTS]
