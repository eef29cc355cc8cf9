"""Every contradiction within and between MovieRecapsQA's tables, with what this package goes by."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import Leaderboard, checking
from lmms_eval_tasks.leaderboards import movierecapsqa_checks as checks
from lmms_eval_tasks.leaderboards import movierecapsqa_counts as counts
from lmms_eval_tasks.leaderboards.findings import Contradiction, Finding
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import CATEGORIES, MODALITIES, Paper


def contradictions(board: Leaderboard) -> list[Contradiction]:
    """What the checks find, in the order of the tables; a check that finds nothing is left out."""
    return checking.contradictions(_CHECKS, Paper(board))


def spellings(paper: Paper) -> list[Finding]:
    """What Table 5 heads otherwise than Table 3, and 5.1's models otherwise than Table 4."""
    titles = {column.name: column.title for column in paper.table(5).columns}
    rows = MODALITIES | CATEGORIES
    found = [
        Finding("spelling", (3, 5), "", rows[name], name, {}, f"{title} in Table 5")
        for name, title in titles.items()
        if title.lower() not in rows[name].lower()
    ]
    named = [*paper.names("open_models"), *paper.names("proprietary_models")]
    for row in paper.table(4).rows:
        if row.identity and row.name not in named:
            (other,) = (name for name in named if _folded(name) == _folded(row.name))
            found.append(
                Finding("spelling", (4,), row.group, row.name, "", {}, f"{other} in Section 5.1")
            )
    return found


def benchmark_names(paper: Paper) -> list[Finding]:
    """The names that the paper gives its benchmark; empty if they differ in capitals alone."""
    names = paper.names("benchmark_names")
    if len({name.lower() for name in names}) == 1:
        return []
    return [Finding("name", (), "", "text", "", {"names": len(names)}, ", ".join(names))]


def _folded(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


_Check = checking.Check[Paper]
_CHECKS = (
    _Check(
        "facts",
        "Table 2",
        "facts in all, per video and per segment do not fit each other",
        counts.facts,
        "We follow the total where the full set is compared with the paper, and count the facts "
        "of the file; which figure is wrong cannot be decided.",
    ),
    _Check(
        "facts_per_question",
        "Table 2",
        "the total of facts may be another count: two for each question, say",
        counts.facts_per_question,
        "Suspicious, not impossible. We judge against all facts of the segment, not against those "
        "that a question was made from.",
    ),
    _Check(
        "questions",
        "Table 2",
        "the average number of questions fits neither videos nor segments",
        counts.questions,
        "We follow the total, which Table 3 confirms.",
    ),
    _Check(
        "windows",
        "Table 2",
        "the aligned windows of a movie's segments are longer than the movie",
        counts.windows,
        "Not impossible: windows may overlap, and the averages may be over questions. We take "
        "each segment's window from the data, and assume nothing about their sum.",
    ),
    _Check(
        "best",
        "Table 4",
        "the best of the people, the maximum for each question (5.3), is below their average",
        checks.best_below_average,
        "We take the maximum in each metric by itself, which cannot be below the average; a best "
        "answer chosen by one metric for all would explain the figures.",
    ),
    _Check(
        "one_person",
        "Table 4",
        "people's average varies as single answers do, though it is over five people for each "
        "question (5.3)",
        checks.people_vary_as_one,
        "Suspicious, not impossible. We follow 5.3: a question's average first.",
    ),
    _Check(
        "bertscore",
        "Table 4",
        "people are about three times as far above the models in BERTScore as the models are "
        "spread, and below every model in ROUGE-L, against the same references",
        checks.people_by_bertscore,
        "Suspicious: it looks like another encoder or another scaling for people. We use one "
        "encoder for all answers and name it beside the number.",
    ),
    _Check(
        "groups",
        "Tables 3, 4 and 5",
        "with Table 3's counts of modalities, Table 5's averages of models are not those of the "
        "models in Table 4",
        checks.groups_against_5,
        'We average over all models of a group (5.1); the caption says "an open-source model and '
        'a proprietary model", and what was averaged cannot be decided.',
    ),
    _Check(
        "halves",
        "Tables 3 and 5",
        "a row's mean over modalities is not its mean over categories, though every question has "
        "one of each",
        checks.halves_of_5,
        "We follow neither: answers without scores, as the sample has, may shift both. Our splits "
        "are over the same answers, and unlabelled questions are a row of their own.",
    ),
    _Check(
        "people",
        "Tables 4 and 5",
        "the human rows of Table 5 do not give the averages of Table 4",
        checks.people_against_5,
        "We follow Table 4 for people overall, beside the models.",
    ),
    _Check(
        "spelling",
        "Tables 3, 4 and 5",
        "the same thing has two names",
        spellings,
        "We read Scene as vision-centric: the text quotes its figures so (6.2).",
    ),
    _Check(
        "name",
        "Title, text and Table 1",
        "the benchmark has several names (our copy of the text may have lost letters)",
        benchmark_names,
        "We use Table 1's.",
    ),
)
