"""CVRR-ES's names: its eleven dimensions, and the scales of its judges (vlm_judge, Table 2)."""

from __future__ import annotations

# Names of folders and files, in the order of the study's tables (leaderboards/cvrr_es.json).
DIMENSIONS = (
    "continuity_and_object_instance_count",
    "fine_grained_action_understanding",
    "interpretation_of_social_context",
    "interpretation_of_visual_context",
    "multiple_actions_in_a_single_video",
    "non_existent_actions_with_existent_scene_depictions",
    "non_existent_actions_with_non_existent_scene_depictions",
    "partial_actions",
    "time_order_understanding",
    "understanding_emotional_context",
    "unusual_and_physically_anomalous_activities",
)
PAPER_COUNTS = {"videos": 217, "questions": 2400}

# A judge of the study rates on five named levels (Figure 6).
RATINGS: dict[int, str] = {1: "poor", 2: "fair", 3: "average", 4: "good", 5: "excellent"}
SCALE = tuple(RATINGS)  # all labels, for every coefficient
# The benchmark's judge replies correct or incorrect, and a score of 0 to 5.
LOWEST_SCORE, HIGHEST_SCORE = 0, 5

# Task of the judge study -> round of its judge.
JUDGE_TASKS = {
    "cvrr_judge": "first",
    "cvrr_judge_collective": "collective",
    "cvrr_judge_mixture": "mixture",
}
ANSWERS = "cvrr_es_"  # prefix of the benchmark's tasks, before a dimension's slug
HINT = "cvrr_es_hint_"  # the same, for tasks with a hint before the question


def dimension_of(task: str) -> str:
    """The slug of the dimension of a task's questions; "" if the task has none."""
    slug = task.removeprefix(HINT if task.startswith(HINT) else ANSWERS)
    return slug if slug != task and slug in DIMENSIONS else ""


# The other ratings that a judge sees: `first` none, `collective` all other judges', `mixture` those
# of selected judges. `reference`: the judge has the reference answer (debate or single).
ROUNDS = ("first", "collective", "mixture", "reference")
