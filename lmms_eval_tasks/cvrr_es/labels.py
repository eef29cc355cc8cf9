"""CVRR-ES's names: its eleven dimensions, and the scales of its judges (vlm_judge, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dimension:
    """One of the eleven.

    title: as the release writes it. short: as the study's tables head it (Tables 4 to 7).
    """

    title: str
    short: str


# Slug, which is the name of the folder and of the files too -> dimension, in the tables' order.
DIMENSIONS: dict[str, Dimension] = {
    "continuity_and_object_instance_count": Dimension(
        "Continuity and Object Instance Count", "Cont. & Obj."
    ),
    "fine_grained_action_understanding": Dimension(
        "Fine-grained action understanding", "Fine Action"
    ),
    "interpretation_of_social_context": Dimension(
        "Interpretation of social context", "Social Context"
    ),
    "interpretation_of_visual_context": Dimension(
        "Interpretation of visual context", "Visual Context"
    ),
    "multiple_actions_in_a_single_video": Dimension(
        "Multiple actions in a single video", "Multi Actions"
    ),
    "non_existent_actions_with_existent_scene_depictions": Dimension(
        "Non-existent actions with existent scene depictions", "Non-exist (E)"
    ),
    "non_existent_actions_with_non_existent_scene_depictions": Dimension(
        "Non-existent actions with non-existent scene depictions", "Non-exist (NE)"
    ),
    "partial_actions": Dimension("Partial actions", "Partial Actions"),
    "time_order_understanding": Dimension("Time order understanding", "Time Order"),
    "understanding_emotional_context": Dimension(
        "Understanding of emotional context", "Emotional Context"
    ),
    "unusual_and_physically_anomalous_activities": Dimension(
        "Unusual and Physically Anomalous activities", "Unusual Activities"
    ),
}
PAPER_COUNTS = {"videos": 217, "questions": 2400}

# A judge of the study rates on five named levels (Figure 6).
RATINGS: dict[int, str] = {1: "poor", 2: "fair", 3: "average", 4: "good", 5: "excellent"}
SCALE = tuple(RATINGS)  # the whole of it, for every coefficient
# The benchmark's own judge says correct or incorrect, and a score of 0 to 5.
LOWEST_SCORE, HIGHEST_SCORE = 0, 5

# Task of the judge study -> how its judge comes to a rating.
JUDGE_TASKS = {
    "cvrr_judge": "first",
    "cvrr_judge_collective": "collective",
    "cvrr_judge_mixture": "mixture",
}
ANSWERS = "cvrr_es_"  # tasks of the benchmark itself: this and a dimension's slug
HINT = "cvrr_es_hint_"  # likewise, with a hint before the question


def dimension_of(task: str) -> str:
    """The slug of the dimension whose questions a task asks; "" if it is no such task."""
    slug = task.removeprefix(HINT if task.startswith(HINT) else ANSWERS)
    return slug if slug != task and slug in DIMENSIONS else ""


# How a judge came to its rating: `first` alone, `collective` with all other judges' ratings,
# `mixture` with those of selected ones, `reference` with the reference answer (debate or single).
ROUNDS = ("first", "collective", "mixture", "reference")
