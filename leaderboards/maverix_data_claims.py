"""What MAVERIX's text says about its data and its protocol, compared with itself and its tables."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.maverix_checks import HUMAN, TABLE_10
from lmms_eval_tasks.leaderboards.maverix_counts import judged_denominators
from lmms_eval_tasks.leaderboards.maverix_paper import Paper, Statement


def _options(p: Paper) -> tuple[bool, str]:
    said, choice = p.stated("options_questions"), p.stated("choice_questions")
    return said == choice, (
        f"MAVERIX Statistics has {choice} questions with eight options and "
        f"{p.stated('open_prompts')} open ones"
    )


def _questions_add_up(p: Paper) -> tuple[bool, str]:
    choice, prompts = p.stated("choice_questions"), p.stated("open_prompts")
    holds = choice + prompts == p.stated("questions") and prompts == 2 * choice
    return holds, f"{choice} and {prompts} make {choice + prompts}"


def _questions_per_video(p: Paper) -> tuple[bool, str]:
    each = p.stated("questions") / p.stated("videos")
    return 3 <= each <= 4, f"{each:.2f}"


def _chance(p: Paper) -> tuple[bool, str]:
    return p.stated("random_accuracy") * 8 == 100, "100 / 8 = 12.5"


def _dimensions(p: Paper) -> tuple[bool, str]:
    first, second = p.names("design_dimensions"), p.names("statistics_dimensions")
    divisions = p.stated("divisions")
    holds = len(first) == len(second) == p.stated("dimensions") == divisions
    return holds, (
        f"It lists {len(first)} ({', '.join(first)}); MAVERIX Statistics lists {len(second)} that "
        f"are not the same ({', '.join(second)}); Table 1 counts {divisions}"
    )


def _length(p: Paper) -> tuple[bool, str]:
    mean, std = p.overall("Media Length"), p.overall("Media std.")
    holds = (mean, std) == (p.stated("mean_length"), p.stated("std_length"))
    return holds, f"Table 2: {mean} and {std}"


def _durations(p: Paper) -> tuple[bool, str]:
    low, high = p.overall("Media min. Length"), p.overall("Media max. Length")
    holds = low >= p.stated("shortest_s") and high <= 60 * p.stated("longest_min")
    return holds, f"Table 2: {low} s to {high} s, which is {high / 60:.1f} minutes"


def _long_class(p: Paper) -> tuple[bool, str]:
    high, end = p.overall("Media max. Length") / 60, p.stated("long_class_min")
    return high <= end, f"Table 2: the longest has {high:.1f} minutes, the class ends at {end}"


def _hours(p: Paper) -> tuple[bool, str]:
    videos, mean, said = p.stated("videos"), p.stated("mean_length"), p.stated("hours")
    hours = videos * mean / 3600
    holds = abs(hours - said) < 1
    return holds, (
        f"{videos} videos of {mean} s on average are {hours:.1f} hours; {said} hours would be "
        f"{said * 3600 / videos:.0f} s each"
    )


def _shares(p: Paper) -> tuple[bool, str]:
    total = p.stated("share_short") + p.stated("share_medium") + p.stated("share_long")
    return abs(total - 100) <= Decimal("0.15"), f"{total} %"  # three roundings


def _factors(p: Paper) -> tuple[bool, str]:
    factors, aspects = p.names("rubric_factors"), p.names("judge_aspects")
    return len(factors) == len(aspects), (
        f"C.2 has {len(aspects)} prompts ({', '.join(aspects)}), and Tables 8 and 9 their four "
        f"scores; {factors[-1]} has neither"
    )


def _models(p: Paper) -> tuple[bool, str]:
    return len(p.models()) == p.stated("models"), f"Table 3: {len(p.models())}"


def _models_named(p: Paper) -> tuple[bool, str]:
    named = p.names("named_models")
    return len(named) == p.stated("models"), (
        f"{len(named)} are named; Qwen-2-VL and GPT-4o-mini, which have rows in Table 3, are not"
    )


def _families(p: Paper) -> tuple[bool, str]:
    kinds = {p.row(3, m).attributes["architecture"] for m in p.models()} - {None}
    return len(kinds) == p.stated("families"), f"Table 3: {', '.join(sorted(map(str, kinds)))}"


def _all_in_ten(p: Paper) -> tuple[bool, str]:
    return len(TABLE_10) == len(p.models()), (
        f"Table 10 has {len(TABLE_10)} of {len(p.models())} models, with video and sound "
        "or subtitles only"
    )


def _judged_by_category(p: Paper) -> tuple[bool, str]:
    groups = {row.group for number in (8, 9) for row in p.table(number).rows}
    return groups != {""}, "Tables 8 and 9, to which it refers, have no categories"


def _people_by_category(p: Paper) -> tuple[bool, str]:
    agentic = [row.name for row in p.table(10).rows if row.group == "agentic"]
    have = {row.name for row in p.table(7).rows}
    missing = [name for name in agentic if name not in have]
    return not missing, f"Table 7 has no row for {', '.join(missing)}"


def _survey_inputs(p: Paper) -> tuple[bool, str]:
    inputs, conditions = p.names("survey_inputs"), p.names("survey_conditions")
    printed = [m for m in ("a", "s", "v", "vs", "av") if p.row(3, HUMAN).figures[m] is not None]
    return len(inputs) == len(conditions), (
        f"The same section lists {len(inputs)} inputs ({', '.join(inputs)}), and Table 3's human "
        f"row has {len(printed)}"
    )


def _subset(p: Paper) -> tuple[bool, str]:
    asked, part = p.stated("survey_questions"), p.stated("human_subset")
    choice, whole = p.stated("choice_questions"), p.stated("questions")
    holds = asked in (choice / part, whole / part)
    return holds, (
        f"D has {asked} questions: {100 * asked / choice:.1f} % of the {choice} choice questions, "
        f"{100 * asked / whole:.1f} % of all {whole}"
    )


def _clips(p: Paper) -> tuple[bool, str]:
    return p.stated("clips") == 2 * p.stated("videos"), f"2 x {p.stated('videos')}"


def _answers_judged(p: Paper) -> tuple[bool, str]:
    prompts = int(p.stated("open_prompts"))
    fit = judged_denominators([p.table(8), p.table(9)], prompts)
    return fit["odd"] > 0, (
        f"All {fit['half']} of the {fit['cells']} means of models in Tables 8 and 9 are whole "
        f"numbers of points over {prompts // 2} answers; over {prompts} about half would need an "
        f"odd number of points, {fit['odd']} do"
    )


STATEMENTS = (
    Statement(
        "options",
        "Dual-Format Evaluation",
        "each of the 2,556 questions has eight options",
        _options,
        "We follow the statistics: 852 items have options, the others are open-ended.",
    ),
    Statement(
        "questions_add_up",
        "MAVERIX Statistics",
        "852 choice and 1,704 open questions make 2,556",
        _questions_add_up,
    ),
    Statement(
        "questions_per_video",
        "MAVERIX Statistics",
        "a video has 3 to 4 questions on average",
        _questions_per_video,
    ),
    Statement("chance", "Dual-Format Evaluation", "chance is 12.5 %", _chance),
    Statement(
        "dimensions",
        "Design Motivation and Principle",
        "the benchmark has six evaluation dimensions",
        _dimensions,
        "We follow Tables 4, 5 and 10, which have results, and add duration, whose classes the "
        "text defines; which seven Table 1 counts cannot be decided.",
    ),
    Statement("length", "MAVERIX Statistics", "mean and deviation of the length", _length),
    Statement(
        "durations",
        "MAVERIX Statistics",
        "videos run from 10 seconds to 63 minutes",
        _durations,
        "We follow neither: where a file states no duration class, it is measured from the video.",
    ),
    Statement(
        "long_class",
        "MAVERIX Statistics",
        "the class of long videos covers 10 to 65 minutes",
        _long_class,
        "Our long class has no upper end, so that no video of Table 2 falls out of it.",
    ),
    Statement(
        "hours",
        "MAVERIX Statistics",
        "the videos are 105.8 hours",
        _hours,
        "We use neither figure; which of hours, mean and number of videos is wrong cannot be "
        "decided.",
    ),
    Statement("shares", "MAVERIX Statistics", "three duration classes cover all videos", _shares),
    Statement(
        "factors",
        "Dual-Format Evaluation",
        "answers are graded on five factors (the protocol: in five dimensions)",
        _factors,
        "We follow C.2, whose prompts are given, and measure robustness by comparing the scores "
        "of a question and its paraphrase.",
    ),
    Statement(
        "answers_judged",
        "Dual-Format Evaluation",
        "each question is asked again as a paraphrase, and the answers are judged (1,704 open "
        "prompts)",
        _answers_judged,
        "We follow the text and pool both; the tables look like one answer for each question, and "
        "which one it was cannot be decided.",
    ),
    Statement("models", "Baselines", "17 models are evaluated", _models),
    Statement(
        "models_named",
        "Baselines",
        "it names the 17 models",
        _models_named,
        "We follow Table 3, which has 17 rows of models.",
    ),
    Statement("families", "Multimodal Gains", "five architectural families", _families),
    Statement(
        "people_by_category",
        "C.3",
        "human performance is given over the agentic categories",
        _people_by_category,
        "We report the missing category as absent; Table 5 has a human figure for it.",
    ),
    Statement(
        "judged_by_category",
        "C.4",
        "judged scores are given by agentic category too",
        _judged_by_category,
        "We report them by category as the text says; there is nothing to compare them with.",
    ),
    Statement(
        "all_in_ten",
        "C.5",
        "results of all models are given in each split, input modalities included",
        _all_in_ten,
        "We report every split for every mode that was run.",
    ),
    Statement(
        "survey_inputs",
        "D",
        "people were tested in three conditions",
        _survey_inputs,
        "We follow Table 3, which has figures for all five.",
    ),
    Statement(
        "subset",
        "Dataset Generation Pipeline",
        "people answered a third of the questions",
        _subset,
        "We use neither: human rows are copied as printed and no interval is put on them.",
    ),
    Statement("clips", "A", "1,400 clips are released, localized and full length", _clips),
)
