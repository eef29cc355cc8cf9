"""What MovieRecapsQA's text says about its data and protocol, against itself and its tables."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.movierecapsqa_counts import (
    MOVIE,
    QUESTIONS,
    RECAP,
    SEGMENT,
    VIDEOS,
    WINDOW,
    Range,
    about,
    yes_or_no,
)
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import (
    AVERAGE,
    CATEGORIES,
    MODALITIES,
    REFERENCE_FREE,
    Paper,
    Statement,
)


def _videos(p: Paper) -> tuple[bool, str]:
    keys = ("abstract_videos", "introduction_videos", "statistics_films")
    value = p.statistic(VIDEOS)
    return all(p.stated(key) == value for key in keys), f"Table 2: {value}"


def _questions(p: Paper) -> tuple[bool, str]:
    value = p.statistic(QUESTIONS)
    exact = ("statistics_questions", "table1_questions", "table3_questions")
    holds = all(p.stated(key) == value for key in exact)
    holds = holds and round(value / 1000, 1) == p.stated("abstract_questions_k")
    holds = holds and round(value, -2) == p.stated("introduction_questions")
    return holds and value == _total(p), f"Table 2: {value}; Table 3: {_total(p)}"


def _total(p: Paper) -> Decimal:
    return p.table(3).row("total", "Total").printed("questions")


def _minutes(p: Paper) -> tuple[bool, str]:
    printed = {
        "abstract_recap_min": RECAP,
        "table2_recap_min": RECAP,
        "abstract_scenes_min": WINDOW,
        "table2_scenes_min": WINDOW,
        "table2_movie_min": MOVIE,
        "abstract_segment_min": SEGMENT,
    }
    exact = p.statistic(RECAP) == p.stated("table1_seconds")
    fits = [
        not about(p.stated(key)).apart(_divided(p.statistic(name))) for key, name in printed.items()
    ]
    seconds = ", ".join(str(p.statistic(name)) for name in (RECAP, MOVIE, SEGMENT, WINDOW))
    return exact and all(fits), f"Table 2 in seconds: {seconds}"


def _recap_length(p: Paper) -> tuple[bool, str]:
    value = _divided(p.statistic(RECAP))
    holds = p.stated("genre_low_min") <= value.low and value.high <= p.stated("genre_high_min")
    holds = holds and round(value.middle, -1) == p.stated("introduction_recap_min")
    return holds, f"Table 2: {value.middle:.0f} minutes on average"


def _divided(seconds: Decimal) -> Range:
    whole = about(seconds)
    return Range(whole.low / 60, whole.high / 60)


def _modalities(p: Paper) -> tuple[bool, str]:
    total = sum(p.questions(MODALITIES).values())
    return total == _total(p), f"Table 3: {total} of {_total(p)}"


def _categories(p: Paper) -> tuple[bool, str]:
    total = sum(p.questions(CATEGORIES).values())
    return total == _total(p), f"Table 3: {total} of {_total(p)}"


def _statistics_table(p: Paper) -> tuple[bool, str]:
    have = [n for n in (2, 3, 4, 5) if any(row.name == VIDEOS for row in p.table(n).rows)]
    return have == [int(p.stated("statistics_table"))], (
        f"They are in Table {', '.join(map(str, have))}; Table 3 has the questions by modality "
        "and category"
    )


def _dimensions(p: Paper) -> tuple[bool, str]:
    announced, names = p.stated("dimensions"), p.names("listed_dimensions")
    promised = [d for d in p.names("promised_dimensions") if d.capitalize() not in names]
    return len(names) == announced, (
        f"It lists {len(names)} ({', '.join(names)}); the introduction also has "
        f"{', '.join(promised)}, which 4.2 leaves to an appendix"
    )


def _fluency_scale(p: Paper) -> tuple[bool, str]:
    row_names = [row.name for row in p.table(4).rows]
    means = [p(name, "helmet_fluency") for name in row_names]
    fits = [
        not yes_or_no(mean).apart(about(p(name, "helmet_fluency_var")))
        for name, mean in zip(row_names, means, strict=True)
    ]
    binary = max(means) <= 1 < p.stated("helmet_top") and all(fits)
    return not binary, (
        f"HELMET Fluency is {min(means)} to {max(means)}, and for {sum(fits)} of {len(fits)} rows "
        f"its ± is the variance m (1 - m) of answers that are 0 or 1; 4.1 has the scale to "
        f"{p.stated('correctness_top')} for Correctness alone"
    )


def _variances(p: Paper) -> tuple[bool, str]:
    low, top = p.stated("score_low"), p.stated("score_top")
    outside = [
        f"{row.name} {row.printed(name)} ± {row.printed(name + '_var')}"
        for row in p.table(4).rows
        for name in REFERENCE_FREE
        if row.identity and not _possible(row.printed(name), row.printed(name + "_var"), low, top)
    ]
    listed = "; ".join(outside) or "all means and variances of models are possible"
    return not outside, f"Table 4: {listed} with whole scores from {low} to {top}"


def _possible(mean: Decimal, variance: Decimal, low: Decimal, top: Decimal) -> bool:
    """Whether whole scores from low to top have such a mean and such a variance."""
    rest = mean % 1
    slack = Decimal("0.03")  # what rounding of both can do: 5 x 0.005 + 0.005
    return rest * (1 - rest) - slack <= variance <= (mean - low) * (top - mean) + slack


def _models(p: Paper) -> tuple[bool, str]:
    named = [*p.names("open_models"), *p.names("proprietary_models")]
    rows = len(p.models())
    said = {p.stated("abstract_models"), p.stated("introduction_models")}
    return said == {rows} and len(named) == rows, f"Table 4: {rows}; 5.1 names {len(named)}"


def _human_questions(p: Paper) -> tuple[bool, str]:
    keys = ("human_questions", "table4_human_questions", "table5_human_questions")
    said = [p.stated(key) for key in keys]
    return len(set(said)) == 1, f"5.3 and both captions: {', '.join(map(str, said))}"


def _human_metrics(p: Paper) -> tuple[bool, str]:
    named = p.names("human_metrics")
    row = next(row for row in p.table(4).rows if row.name == AVERAGE)
    printed = [
        column.title
        for column in p.table(4).columns
        if column.unit != "variance" and row.figures[column.name] is not None
    ]
    more = [title for title in printed if title not in named]
    return not more, f"Table 4 has people's {', '.join(more) or 'scores in no other metric'} too"


def _prior_benchmarks(p: Paper) -> tuple[bool, str]:
    choice = p.names("choice_benchmarks")
    both = [name for name in p.names("open_ended_benchmarks") if name in choice]
    return not both, f"Table 1 has multiple choice for {', '.join(both) or 'none of them'}"


def _script(p: Paper) -> tuple[bool, str]:
    inputs, statistics = p.names("dialogue_inputs"), p.names("dialogue_statistics")
    more = [name for name in inputs if name not in statistics]
    return not more, (
        f"3.3 has {', '.join(statistics)} alone, and a footnote of 3.1 leaves scripts to future "
        "work"
    )


STATEMENTS = (
    Statement("videos", "Abstract", "60 recaps of 60 films (also 1 and 3.3)", _videos),
    Statement("questions", "Abstract", "about 8.2K questions (1: 8,200; 3.3: 8,231)", _questions),
    Statement(
        "minutes",
        "Abstract",
        "recaps of 11, aligned scenes of 14, segments of 1.2 minutes (also Table 1)",
        _minutes,
    ),
    Statement(
        "recap_length",
        "3",
        "a recap is 8 to 15 minutes long (1: about 10; read as: to the nearest ten)",
        _recap_length,
    ),
    Statement("modalities", "Table 3", "three modalities cover all questions", _modalities),
    Statement("categories", "Table 3", "five categories cover all questions", _categories),
    Statement(
        "statistics_table",
        "3.3",
        "the summary of the key statistics is Table 3",
        _statistics_table,
        "We read it as Table 2.",
    ),
    Statement(
        "dimensions",
        "4.2",
        "the judge scores three dimensions",
        _dimensions,
        "We judge three, and report coherence apart, without figures to compare it with.",
    ),
    Statement(
        "fluency_scale",
        "Table 4",
        "HELMET scores (both of them) range from 0 to 3",
        _fluency_scale,
        "We score fluency 0 or 1 and correctness 0 to 3.",
    ),
    Statement(
        "variances",
        "4.2",
        "scores are whole numbers from 0 to 5 (and Table 4's ± their variance)",
        _variances,
    ),
    Statement("models", "Abstract", "seven models are evaluated (also 1)", _models),
    Statement("human_questions", "5.3", "people answered 118 questions", _human_questions),
    Statement(
        "human_metrics",
        "5.3",
        "people's answers were scored by HELMET Correctness, Factuality and Relevance",
        _human_metrics,
        "Here the released answers of people get Factuality and Relevance (`agreement`).",
    ),
    Statement(
        "prior_benchmarks",
        "2",
        "Video-Bench, MVBench, EgoSchema and CinePile are open-ended",
        _prior_benchmarks,
        "Nothing here rests on it.",
    ),
    Statement(
        "script",
        "5.2",
        "a question comes with subtitles and script",
        _script,
        "We follow 3.3 and the released sample: subtitles.",
    ),
)
