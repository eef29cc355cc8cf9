"""What MAVERIX's text says about categories, sound and difficulty, compared with tables."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import listed
from lmms_eval_tasks.leaderboards.maverix_checks import HUMAN, LEVELS, difficulty_gains
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

TAXONOMY = ("social", "egocentric", "sports", "gaming")
AUDIO = ("natural", "speech", "music", "artificial", "mixed")


def _people_agentic(p: Paper) -> tuple[bool, str]:
    five = {name: p(5, HUMAN, name) for name in TAXONOMY}
    least = min(five["social"], five["egocentric"])
    seven = p.table(7)
    social, sports = (seven.row("av", name).printed("average") for name in ("Social", "Sports"))
    holds = least > max(five["sports"], five["gaming"]) and social > sports
    return holds, (
        f"Table 5: {listed(five.items())}; Table 7, both: Social {social}, Sports {sports}"
    )


def _egocentric(p: Paper) -> tuple[bool, str]:
    lowest = []
    for model in (GEMINI20, GEMINI25, OMNI, VITA):
        scores = {name: p(5, model, name) for name in TAXONOMY}
        lowest.append((model, min(scores, key=lambda name: scores[name])))
    names = ", ".join(f"{model} {name}" for model, name in lowest)
    return all(name == "egocentric" for _, name in lowest), f"Table 5, the lowest: {names}"


def _spreads(p: Paper) -> dict[str, Decimal]:
    """Highest less lowest accuracy over the audio types of Table 5, by model."""
    scores = {m: [p(5, m, name) for name in AUDIO] for m in (HUMAN, *p.models(5))}
    return {model: max(values) - min(values) for model, values in scores.items()}


def _people_stable(p: Paper) -> tuple[bool, str]:
    spreads = _spreads(p)
    return min(spreads.values()) == spreads[HUMAN], f"Table 5, spreads: {listed(spreads.items())}"


def _broad_stable(p: Paper) -> tuple[bool, str]:
    spreads = _spreads(p)
    broad = max(spreads[m] for m in (OMNI, GEMINI20, GEMINI25))
    holds = broad <= min(spreads[m] for m in (EGO, OLA, VITA))
    return holds, f"Table 5, spreads: {listed(spreads.items())}"


def _music(p: Paper) -> tuple[bool, str]:
    worst = [m for m in p.models(5) if p(5, m, "music") == min(p(5, m, name) for name in AUDIO)]
    return 2 * len(worst) > len(p.models(5)), f"Table 5: {', '.join(worst)} are lowest in music"


def _ego_hears(p: Paper) -> tuple[bool, str]:
    alone = [(m, p(3, m, "a")) for m in p.with_sound()]
    ranked = sorted((value for _, value in alone), reverse=True)
    holds = p(3, EGO, "a") in ranked[: len(ranked) // 2]
    return holds, f"Table 3, sound alone: {listed(alone)}"


def _small_vary(p: Paper) -> tuple[bool, str]:
    spreads = _spreads(p)
    largest = sorted(spreads, key=lambda m: spreads[m])[-2:]
    lowest = all(p(5, m, "music") == min(p(5, m, n) for n in AUDIO) for m in (OLA, VITA))
    return {*largest} == {OLA, VITA} and lowest, f"Table 5, spreads: {listed(spreads.items())}"


def _quoted_gains(p: Paper) -> tuple[bool, str]:
    gains = {(g.model, g.level): g for g in difficulty_gains(p.table(4))}
    quoted = [
        (p.stated(f"{key}_{level}"), gains[model, level])
        for key, model in (("gemini20", GEMINI20), ("gemini25", GEMINI25))
        for level in ("easy", "hard")
    ]
    detail = "; ".join(
        f"{gain.model} {gain.level} +{said}, printed {gain.printed:+}, AV less V {gain.over_v:+}"
        for said, gain in quoted
    )
    over_a = sum(gain.printed == gain.over_a for gain in gains.values())
    over_v = sum(gain.printed == gain.over_v for gain in gains.values())
    return all(said == gain.printed for said, gain in quoted), (
        f"{detail}. All in all {over_a} of Table 4's {len(gains)} Δ are AV less A, as its caption "
        f"says, and {over_v} of them AV less V as well"
    )


def _omni_hard(p: Paper) -> tuple[bool, str]:
    gains = {g.level: g for g in difficulty_gains(p.table(4)) if g.model == p.row(4, OMNI).name}
    over_v = [(level, gains[level].over_v) for level in LEVELS]
    over_a = [(level, gains[level].over_a) for level in LEVELS]
    holds = gains["hard"].over_v >= max(value for _, value in over_v)
    return holds, f"Table 4: AV less V {listed(over_v)}; AV less A {listed(over_a)}"


def _easy_most(p: Paper) -> tuple[bool, str]:
    best = {}
    for base in ("a", "v"):
        best[base] = [
            m
            for m in p.models(4)
            if p(4, m, "easy_av") - p(4, m, f"easy_{base}")
            == max(p(4, m, f"{level}_av") - p(4, m, f"{level}_{base}") for level in LEVELS)
        ]
    total = len(p.models(4))
    holds = all(2 * len(models) >= total for models in best.values())
    counts = " and ".join(f"{len(models)} (against {b.upper()})" for b, models in best.items())
    return holds, f"Table 4: {counts} of {total} models gain most on easy items"


def _people_jump(p: Paper) -> tuple[bool, str]:
    old, new = p(3, HUMAN, "v"), p(3, HUMAN, "av")
    holds = (old, new) == (p.stated("human_v"), p.stated("human_av"))
    return holds, f"Table 3: {old} and {new}"


STATEMENTS = (
    Statement(
        "people_agentic",
        "Agentic Ability",
        "people are best on social and egocentric questions, and lower on gaming and sports",
        _people_agentic,
        "We follow Table 5, to which the sentence refers; Table 7 has other figures for the same "
        "categories, and sports above social.",
    ),
    Statement(
        "egocentric",
        "Agentic Ability",
        "Gemini, Qwen 2.5 Omni and VITA 1.5 are weaker on egocentric videos (read as: lowest of "
        "Table 5's four categories)",
        _egocentric,
        "We follow the table.",
    ),
    Statement(
        "people_stable", "Agentic Ability", "people vary least over audio types", _people_stable
    ),
    Statement(
        "broad_stable",
        "Agentic Ability",
        "Qwen 2.5 Omni and the Gemini models vary less over audio types (than EgoGPT, Ola and "
        "VITA 1.5)",
        _broad_stable,
        "We follow the table: Gemini 2.0-FL is the exception.",
    ),
    Statement("music", "Agentic Ability", "many models are weak on music", _music),
    Statement(
        "ego_hears",
        "Agentic Ability",
        "EgoGPT understands sound relatively well (read as: in the upper half with sound alone)",
        _ego_hears,
        "We follow Table 3, the only one with sound alone over all questions.",
    ),
    Statement(
        "small_vary",
        "Agentic Ability",
        "Ola and VITA 1.5 vary most over audio types, with a drop in music",
        _small_vary,
    ),
    Statement(
        "easy_most",
        "Perception of Difficulty",
        "more inputs often help most on easy items (read as: for half the models or more)",
        _easy_most,
    ),
    Statement(
        "quoted_gains",
        "Perception of Difficulty",
        "the gains that it quotes for the Gemini models are those of Table 4",
        _quoted_gains,
        "We follow the caption and the cells, Δ = AV less A; the text quotes AV less V, which the "
        "same cells give.",
    ),
    Statement(
        "omni_hard",
        "Perception of Difficulty",
        "Qwen 2.5 Omni gains much on hard items too (read as: most there, AV less V)",
        _omni_hard,
    ),
    Statement(
        "people_jump",
        "Perception of Difficulty",
        "people go from 81.4 with video alone to 92.8",
        _people_jump,
    ),
)
