"""Every contradiction in the judge study's tables, formula and prompts, and what we go by."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import Leaderboard, checking
from lmms_eval_tasks.leaderboards import cvrr_es_checks as checks
from lmms_eval_tasks.leaderboards import cvrr_es_example_checks as examples
from lmms_eval_tasks.leaderboards import cvrr_es_release_checks as release
from lmms_eval_tasks.leaderboards import cvrr_es_selection_checks as selection
from lmms_eval_tasks.leaderboards.cvrr_es_paper import Paper
from lmms_eval_tasks.leaderboards.findings import Contradiction


def contradictions(board: Leaderboard) -> list[Contradiction]:
    """What the checks find, in the order of the paper; a check that finds nothing is left out."""
    return checking.contradictions(_CHECKS, Paper(board))


_Check = checking.Check[Paper]
_CHECKS = (
    _Check(
        "formula",
        "Section 3.2",
        "the formula of weighted kappa takes weights of disagreement, and is given those of "
        "agreement, so that its sign is turned round",
        examples.formula,
        "We compute kappa with weights of disagreement, ((a - b) / (k - 1))^2, on the whole scale. "
        "The printed figures look as if they were computed so: GPT-4o's are positive.",
    ),
    _Check(
        "equal_ratings",
        "Table 4",
        "a judge's rows for two candidates are the same in every dimension",
        checks.equal_ratings,
        "We take one of them to be a copy of the other; which, cannot be told. No agreement of "
        "GPT-3.5 is printed, so that nothing else rests on it.",
    ),
    _Check(
        "outliers",
        "Table 4",
        "a mean rating is far from all others of its row (read as: farther than one rating)",
        checks.outliers,
        "We take it to be the debate's figure, printed in the judge's row: a judge that always "
        "gives 4 has a kappa of 0.",
    ),
    _Check(
        "equal_text_judges",
        "Table 4",
        "two judges give the same mean to two decimals in some dimensions",
        checks.equal_text_judges,
        "Suspicious, not impossible; we take the figures as printed.",
    ),
    _Check(
        "averages",
        "Tables 5 and 7",
        "averages are not the means of their rows",
        checks.averages,
        "We go by the rows. All other averages of Tables 5 to 7 fit, those of the last column of "
        "Table 7 too.",
    ),
    _Check(
        "equal_agreement",
        "Table 5",
        "a judge has the same agreement on two candidates in every dimension, though Table 4's "
        "ratings of the two differ",
        checks.equal_agreement,
        "We take one of them to be a copy. GPT-4o mini's averages count both, InternVL2's one.",
    ),
    _Check(
        "repeated_candidates",
        "Table 5",
        "a judge has more rows than there are candidates",
        checks.repeated_candidates,
        "We go by the distinct rows. In the order of Tables 4 and 6 they would be LLaMA-VID's, "
        "GPT-4o mini's, Video-ChatGPT's, mPLUG-Owl-Video's and Video-LLaVA's, so that three names "
        "would be one off: our guess.",
    ),
    _Check(
        "unknown_candidates",
        "Table 6",
        "a candidate is not one of Table 1",
        checks.unknown_candidates,
        "We read GPT-4o mini, which Table 7 has in its place, with the same figures in five "
        "dimensions.",
    ),
    _Check(
        "equal_dimensions",
        "Tables 6 and 7",
        "in some dimensions the mixture has the collective's figures, candidate by candidate",
        selection.equal_dimensions,
        "It seems to show all judges' ratings where nobody is reliable enough. Ours does so where "
        "none passes, and names it; it is a default of ours.",
    ),
    _Check(
        "odd_cells",
        "Table 7",
        "a figure differs from Table 6 in a dimension where all others repeat it",
        selection.odd_cells,
        "We read Table 6's figure, by the average.",
    ),
    _Check(
        "thresholds",
        "Tables 5 to 7",
        "no threshold of the judges' averages leaves out everybody in the repeated dimensions and "
        "nobody in the others",
        selection.thresholds,
        "The paper gives neither the threshold nor k. Our defaults are named in the results; our "
        "threshold fits every dimension but this one.",
    ),
    _Check(
        "example_ratings",
        "Figures 6 and 13",
        "a rating is not the one in the judge's own reply",
        examples.example_ratings,
        "Nothing here rests on it.",
    ),
    _Check(
        "keys",
        "Figures 7 to 13",
        "the prompt asks for the rating under one key and shows a reply with another",
        examples.keys,
        "Our prompts name one key, `rating`; the reader takes the others too.",
    ),
    _Check(
        "notations",
        "Figures 7 to 13",
        "the prompts ask different judges to write a rating in different ways",
        examples.notations,
        "Our prompt is the same for every judge; the reader takes all of them.",
    ),
    _Check(
        "shown_judges",
        "Figure 7 and Section 5.3",
        "the collective's prompt has another number of judges than its text",
        examples.shown_judges,
        "Ours shows every judge of the file of ratings, under neutral names, and says how many.",
    ),
    _Check(
        "repeated_replies",
        "Figures 7 to 10",
        "a panel's replies are a single judge's",
        examples.repeated_replies,
        "Suspicious, not impossible. The judge shown in Figure 8 has the rating and the reason of "
        "GPT-4o's reply about another candidate's answer (Figure 9).",
    ),
    _Check(
        "release_means",
        "The release",
        "a mean is not that of its dimensions",
        release.means,
        "We go by the dimensions.",
    ),
)
