"""What MAVERIX's text says about overall results, compared with its tables."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards.checking import listed, mean
from lmms_eval_tasks.leaderboards.maverix_checks import HUMAN
from lmms_eval_tasks.leaderboards.maverix_paper import (
    EGO,
    GEMINI20,
    GEMINI25,
    OLA,
    OMNI,
    VITA,
    Paper,
    Statement,
)

DIMENSIONS = ((8, "correctness"), (8, "temporal"), (9, "context"), (9, "detail"))


def _abstract(p: Paper) -> tuple[bool, str]:
    said = p.stated("abstract_accuracy")
    pair = [(m, p(3, m, "best_multi")) for m in (OMNI, GEMINI25)]
    near = [(m, p(3, m, "best_multi")) for m in p.models()]
    have = listed((m, v) for m, v in near if round(v) == said)
    holds = all(round(value) == said for _, value in pair)
    return holds, f"Table 3, Best-Multi: {listed(pair)}; {said} fits {have} alone"


def _human_best(p: Paper) -> tuple[bool, str]:
    value = p(3, HUMAN, "av")
    return value == p.stated("abstract_human"), f"Table 3, V+A: {value}"


def _gemini_av(p: Paper) -> tuple[bool, str]:
    value = p(3, GEMINI25, "av")
    return value == p.stated("gemini_av"), f"Table 3, V+A: {value}"


def _open_models(p: Paper) -> tuple[bool, str]:
    said = p.stated("open_models")
    six = mean(p(6, m, "score_av") for m in p.models(6))
    each = [(d, mean(p(n, m, f"{d}_av") for m in p.models(n))) for n, d in DIMENSIONS]
    whole = mean(p(n, m, f"{d}_av") for n, d in DIMENSIONS for m in p.models(n))
    own = listed((m, p(6, m, "score_av")) for m in (GEMINI20, GEMINI25))
    holds = any(round(value, 1) == said for value in (six, each[0][1], whole))
    means = listed((d, round(value, 2)) for d, value in each)
    return holds, (
        f"Means over models, both modes together: Table 6 {six:.2f}; Tables 8 and 9 {means}, "
        f"all four {whole:.2f}. {said} is what Table 6 has for {own}"
    )


def _open_human(p: Paper) -> tuple[bool, str]:
    said = p.stated("open_human")
    six = p(6, HUMAN, "score_av")
    four = [(d, p(n, HUMAN, f"{d}_av")) for n, d in DIMENSIONS]
    average = mean(value for _, value in four)
    holds = said in (six, four[0][1]) or round(average, 2) == said
    return holds, (
        f"Table 6 has {six}; Tables 8 and 9 have {listed(four)}, on average {average:.2f}"
    )


def _transcripts(p: Paper) -> tuple[bool, str]:
    sound = p.with_sound()
    without = [(m, p(3, m, "vs")) for m in p.models() if m not in sound]
    limit = p(3, GEMINI25, "av")
    above = [(m, value) for m, value in without if value > limit]
    with_mean, without_mean = mean(p(3, m, "av") for m in sound), mean(v for _, v in without)
    return not above, (
        f"Table 3: {len(above)} of {len(without)} models without sound have more with V+S than "
        f"the {limit} said before ({listed(above)}); the mean of their V+S is "
        f"{without_mean:.1f}, that of the others' V+A {with_mean:.1f}"
    )


def _best_uni_range(p: Paper) -> tuple[bool, str]:
    values = [p(3, m, "best_uni") for m in p.models()]
    holds = round(min(values)) == p.stated("best_uni_low")
    holds = holds and round(max(values)) == p.stated("best_uni_high")
    return holds, f"Table 3: {min(values)} to {max(values)}"


def _most_gain(p: Paper) -> tuple[bool, str]:
    gains = [p(3, m, "delta_multi") for m in p.models()]
    rising = sum(gain > 0 for gain in gains)
    return 2 * rising > len(gains), f"Table 3: {rising} of {len(gains)}"


def _no_regress(p: Paper) -> tuple[bool, str]:
    changes = [(m, p(3, m, "av") - p(3, m, "best_uni")) for m in (OLA, EGO, OMNI, VITA)]
    holds = all((change >= 0) == (m != VITA) for m, change in changes)
    return holds, f"Table 3, V+A less Best-Uni: {listed(changes)}"


def _gemini_gain(p: Paper) -> tuple[bool, str]:
    gains = [(m, p(3, m, "av") - p(3, m, "best_uni")) for m in (GEMINI20, GEMINI25)]
    return all(gain > 0 for _, gain in gains), f"Table 3, V+A less Best-Uni: {listed(gains)}"


def _usual_gain(p: Paper) -> tuple[bool, str]:
    models = ("Qwen-2-VL", "NOVA-Lite", "NOVA-Pro", "Claude Sonnet 3.5")
    gains = [(m, p(3, m, "delta_multi")) for m in models]
    holds = all(abs(gain - p.stated("usual_gain")) <= 1 for _, gain in gains)
    return holds, f"Table 3: {listed(gains)}"


def _subtitles_beat_sound(p: Paper) -> tuple[bool, str]:
    changes = [(m, p(3, m, "av") - p(3, m, "vs")) for m in (GEMINI25, EGO, VITA, OMNI)]
    return all(change < 0 for _, change in changes), f"Table 3, V+A less V+S: {listed(changes)}"


STATEMENTS = (
    Statement(
        "abstract",
        "Abstract",
        "models such as Qwen 2.5 Omni and Gemini 2.5 Flash-Lite reach about 64 %",
        _abstract,
        "We follow Table 3: it has each model's figure, and the models that the sentence names "
        "are not those with 64.",
    ),
    Statement("human_best", "Abstract", "people reach 92.8 %", _human_best),
    Statement(
        "gemini_av", "Introduction", "Gemini 2.5 Flash-Lite with sound has 54.7 %", _gemini_av
    ),
    Statement(
        "open_models",
        "Introduction",
        "in open-ended answers models average 1.9 of 5",
        _open_models,
        "We follow the tables: no mean of theirs is 1.9.",
    ),
    Statement(
        "open_human",
        "Introduction",
        "in open-ended answers people have 2.79 of 5",
        _open_human,
        "We follow Table 8's 2.65 for correctness: it has two decimals and belongs to the table "
        "that gives all models; where 2.79 and 3.4 come from cannot be decided.",
    ),
    Statement(
        "transcripts",
        "Introduction",
        "models without sound, which get transcripts only, are even worse than Gemini 2.5-FL",
        _transcripts,
        "We follow Table 3; S and V+S that stand in for A and V+A are marked.",
    ),
    Statement(
        "best_uni_range",
        "Multimodal Gains",
        "best unimodal accuracies span about 26 to 55 %",
        _best_uni_range,
    ),
    Statement("most_gain", "Multimodal Gains", "most models gain from more inputs", _most_gain),
    Statement(
        "no_regress",
        "Multimodal Gains",
        "with sound Ola, EgoGPT and Qwen 2.5 Omni do not fall below their best single input, and "
        "VITA 1.5 does",
        _no_regress,
    ),
    Statement("gemini_gain", "Multimodal Gains", "both Gemini models gain", _gemini_gain),
    Statement(
        "usual_gain",
        "Multimodal Gains",
        "Qwen2-VL, Nova-Lite, Nova-Pro and Claude 3.5 Sonnet gain about 10",
        _usual_gain,
    ),
    Statement(
        "subtitles_beat_sound",
        "Multimodal Gains",
        "Gemini 2.5-FL, EgoGPT, VITA 1.5 and Qwen 2.5 Omni score lower with V+A than with V+S",
        _subtitles_beat_sound,
    ),
)
