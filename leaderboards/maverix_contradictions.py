"""Every contradiction within and between MAVERIX's tables, with what this package goes by."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import Leaderboard, checking
from lmms_eval_tasks.leaderboards import maverix_checks as checks
from lmms_eval_tasks.leaderboards import maverix_counts as counts
from lmms_eval_tasks.leaderboards.findings import Contradiction, Finding
from lmms_eval_tasks.leaderboards.maverix_paper import OMNI, Paper


def contradictions(board: Leaderboard) -> list[Contradiction]:
    """What the checks find, in the order of the tables; a check that finds nothing is left out."""
    return checking.contradictions(_CHECKS, Paper(board))


def spellings(paper: Paper) -> list[Finding]:
    """Rows of Qwen 2.5 Omni under a name that says another version."""
    return [
        Finding("spelling", (number,), row.group, row.name, "", {}, f"in Table {number}")
        for number in (3, 4, 5, 6, 8, 9)
        for row in paper.table(number).rows
        if row.identity == OMNI and "2.5" not in row.name
    ]


def absent(paper: Paper) -> list[Finding]:
    """Models of Table 3 without a row in Table 6, 8 or 9, which have all the others."""
    missing = checks.missing_models([paper.table(number) for number in (3, 6, 8, 9)])
    return [
        Finding("absent", (number,), "", model, "", {}, f"not in Table {number}")
        for number, models in missing.items()
        for model in models
    ]


def vocabularies(paper: Paper) -> list[Finding]:
    """The lists of abilities in the introduction, Table 2 and Table 10; empty if they agree."""
    printed = {
        "Introduction": paper.names("introduction_abilities"),
        "Table 2": [row.name for row in paper.table(2).rows if row.group == "counts"],
        "Table 10": [row.name for row in paper.table(10).rows if row.group == "ability"],
    }
    if len({frozenset(name.lower() for name in names) for names in printed.values()}) == 1:
        return []
    return [
        Finding("abilities", (2, 10), "", where, "", {"abilities": len(names)}, ", ".join(names))
        for where, names in printed.items()
    ]


_Check = checking.Check[Paper]
_CHECKS = (
    _Check(
        "formula",
        "Table 3",
        "Best-Uni is not the maximum of A, S and V of its row",
        lambda p: checks.best_columns(p.table(3)),
        "We follow the caption's formula, on unrounded figures.",
    ),
    _Check(
        "share",
        "Table 3",
        "these cells are no share of 852 questions",
        lambda p: counts.impossible_shares(p.table(3)),
        "The cells stay as printed; for NOVA-Lite Table 10 has 50.9, which is 434 of 852.",
    ),
    _Check(
        "overall",
        "Tables 3 and 10",
        "Table 10's last row differs from V+A, or V+S for a model without sound",
        lambda p: checks.overall_against_10(p.table(3), p.table(10)),
        "We follow Table 10, since 51.0 is no share of 852.",
    ),
    _Check(
        "difficulty",
        "Tables 4 and 10",
        "the two differ in accuracy by difficulty with video and sound",
        lambda p: checks.difficulty_against_10(p.table(4), p.table(10)),
        "We follow Table 10: with it the right answers of Ola-7B add up to its overall 53.1.",
    ),
    _Check(
        "levels",
        "Tables 3 and 4",
        "with 333 easy, 368 medium and 151 hard questions, the only counts that fit Table 10 "
        "without Qwen 2.5 Omni (our deduction), the levels do not give the overall figure",
        lambda p: counts.levels_against_overall(p.table(3), p.table(4), p.table(10)),
        "We follow Table 3 for overall figures; differences under 0.2 are one answer, and the "
        "sound-alone row of Gemini 2.0-FL is wrong in one of the two tables.",
    ),
    _Check(
        "no_gain",
        "Tables 3 and 4",
        "a model is as good with video alone as with sound, overall and at each level",
        lambda p: checks.sound_adds_nothing(p.table(3), p.table(4)),
        "We follow the tables; whether V was copied into V+A cannot be decided.",
    ),
    _Check(
        "taxonomy",
        "Tables 5 and 10",
        "a row of Table 5 is shifted: it shows the figures of other categories",
        lambda p: checks.taxonomy_against_10(p.table(5), p.table(10)),
        "We follow Table 10, in which every model's agentic categories add up to its overall.",
    ),
    _Check(
        "correctness",
        "Tables 6 and 8",
        "the rounded correctness is not that of Table 8; only Qwen-2.5-VL, InternVL2, "
        "DeepSeek-VL2, LLaVA-OneVision, Claude Sonnet 3.5, GPT-4o, Grok-4, NOVA-Lite and NOVA-Pro "
        "agree in all three cells",
        lambda p: checks.correctness_against_8(p.table(6), p.table(8)),
        "We follow Table 8, which has more digits; for Qwen 2.5 Omni we follow Table 6, because "
        "its row in Table 8 is another model's.",
    ),
    _Check(
        "identical",
        "Table 8",
        "two models have the same row",
        lambda p: [*checks.identical_rows(p.table(8)), *checks.identical_rows(p.table(9))],
        "We take it as Qwen-2.5-VL's, which Table 6 confirms, and have no detailed figures for "
        "Qwen 2.5 Omni.",
    ),
    _Check(
        "absent",
        "Tables 6 and 9",
        "models of Table 3 are missing",
        absent,
        "We leave the cells empty.",
    ),
    _Check(
        "spelling",
        "Tables 4 and 6",
        "Qwen 2.5 Omni has another name",
        spellings,
        "We read it as Qwen 2.5 Omni: Table 4's figures with sound are Table 10's.",
    ),
    _Check(
        "average",
        "Table 7",
        "people's average is above the best of them",
        lambda p: checks.averages_outside(p.table(7)),
        "The cell stays as printed; which of the three is wrong cannot be decided.",
    ),
    _Check(
        "people",
        "Tables 3, 5 and 7",
        "human accuracy differs",
        lambda p: checks.people_against_7(p.table(3), p.table(5), p.table(7)),
        "We follow Tables 3 and 5, beside which the models stand; Table 7's overall averages are "
        "plain means over its six categories.",
    ),
    _Check(
        "abilities",
        "Tables 2 and 10, and the introduction",
        "there are three vocabularies of abilities; Figures 5 to 10 use words of Table 10",
        vocabularies,
        "We follow Table 10, which has results for its eight and whose counts add up.",
    ),
    _Check(
        "counts",
        "Tables 2 and 10",
        "Table 2's counts of abilities do not cover the questions",
        lambda p: counts.ability_counts(p.table(2), p.table(10), int(p.stated("questions"))),
        "We follow Table 10; that Context Understanding is its Visual and Spatial Reasoning, and "
        "that Relationship and Temporal Distance are left out, is deduced from the counts.",
    ),
)
