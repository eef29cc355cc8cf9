"""Every contradiction within and between HAVEN's tables, with what this package goes by."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import Leaderboard, checking
from lmms_eval_tasks.leaderboards import haven_checks as checks
from lmms_eval_tasks.leaderboards import haven_keyframe_checks as keyframes
from lmms_eval_tasks.leaderboards.findings import Contradiction
from lmms_eval_tasks.leaderboards.haven_paper import Paper


def contradictions(board: Leaderboard) -> list[Contradiction]:
    """What the checks find, in the order of the tables; a check that finds nothing is left out."""
    return checking.contradictions(_CHECKS, Paper(board))


_Check = checking.Check[Paper]
_CHECKS = (
    _Check(
        "averages",
        "Table 1",
        "the average of the whole is not that of its sources",
        checks.averages,
        "We count the frames of the user's files. The average number of shots and the sum of the "
        "videos do fit.",
    ),
    _Check(
        "tenths",
        "Table 1",
        "the shots are not round(F / 10) on average: four sources are near floor(F / 10), which "
        "takes about 0.45 off, two near one more than that",
        checks.tenths,
        "Suspicious, not impossible: it rests on the last digits of F. Our copy of 3.2 has lost "
        "the number it targets. We use the shots of the file, and round(F / 10) as the target for "
        "videos that have none.",
    ),
    _Check(
        "modalities",
        "Table 1 and references",
        "VideoXum has video alone",
        checks.modalities,
        "Nothing here rests on it; our copy runs two columns of this table into one.",
    ),
    _Check(
        "constants",
        "Table 2",
        "agreement is exactly zero by both measures, though about half of the ratings are equal",
        checks.constants,
        "Suspicious, not impossible: a rater who gives one mark throughout gives kappa 0, and a "
        "correlation that is not defined, which ours is printed as.",
    ),
    _Check(
        "budget",
        "Table 4",
        "precision and recall do not come from the fixed budget: 15 % of the frames are true "
        "(3.2) and 15 % are asked for (4.1), so that both would be about equal; in some video the "
        "number of frames given is at least as far off as R / P says, and in most it suggests it",
        keyframes.budgets,
        "We score what was given, and count every reply with too many, too few or repeated frames "
        "beside the score.",
    ),
    _Check(
        "below_both",
        "Tables 3 and 4",
        "F1 is below precision and recall, so that more frames are given than are true in some "
        "videos and fewer in others, though both are 15 %",
        keyframes.below_both,
        "Whether the given ones vary, or the true ones, cannot be decided. K is 15 % of the "
        "sampled frames here, whatever the number of true ones.",
    ),
    _Check(
        "lead",
        "Tables 3 and 4",
        "the joint F1 is no farther above chance than the separate one, once chance has as many "
        "frames",
        keyframes.leads,
        "As P and R are means over videos this suggests it, no more. We print the random baseline "
        "beside every score, and P and R beside F1.",
    ),
    _Check(
        "unprinted",
        "Tables 3 and 4",
        "metrics that 4.1 announces are not in the tables",
        checks.unprinted,
        "Order and saliency have one column, which does not say whose correlation it is, and "
        "grounding's other metrics are in Fig. 4(b) alone. We print all of them.",
    ),
    _Check(
        "spelling",
        "Table 3",
        "a model is named without what tells it from a larger one of its family",
        checks.spellings,
        "We go by 4.1's name.",
    ),
    _Check(
        "name",
        "Title and Appendix B",
        "the benchmark has two names",
        checks.benchmark_names,
        "We use the title's, and take Appendix B to be about the same data.",
    ),
)
