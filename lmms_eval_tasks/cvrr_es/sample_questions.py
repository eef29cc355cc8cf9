"""What is asked about the packaged clips: every dimension on two clips, our own words.

No question stands in another one, so that the oracle's key (by text) has one answer to each. As in
the release one is asked of two clips; here, unlike there, both have the same answer.
"""

from __future__ import annotations

from typing import NamedTuple


class Asked(NamedTuple):
    """A question on a clip, the right answer, and a wrong one that looks right."""

    video: str
    question: str
    reference: str
    lure: str


_BROKEN = ("Is anything broken in the video?", "No, nothing is broken.", "Yes, a shape is broken.")

QUESTIONS: dict[str, tuple[Asked, ...]] = {
    "continuity_and_object_instance_count": (
        Asked(
            "pair.mp4",
            "How many circles are there in all?",
            "There are two circles.",
            "There are three circles.",
        ),
        Asked(
            "night.mp4",
            "How many stars stand around the moon?",
            "There are four stars.",
            "There are six stars.",
        ),
        Asked(
            "night.mp4",
            "Does the number of stars change?",
            "No, the stars stay the same.",
            "Yes, two stars vanish.",
        ),
    ),
    "fine_grained_action_understanding": (
        Asked(
            "box.mp4",
            "Which way does the red circle roll?",
            "It rolls from left to right.",
            "It rolls from right to left.",
        ),
        Asked(
            "float.mp4",
            "Which way does the orange circle move?",
            "It rises.",
            "It sinks.",
        ),
    ),
    "interpretation_of_social_context": (
        Asked(
            "pair.mp4",
            "Why does the purple circle stay where it is at first?",
            "It waits for the pink circle.",
            "It hides from the pink circle.",
        ),
        Asked(
            "face.mp4",
            "Why does the face stop smiling?",
            "The green ball has left it.",
            "The green ball has hit it.",
        ),
    ),
    "interpretation_of_visual_context": (
        Asked(
            "night.mp4",
            "What time of day do the moon and the sky point to?",
            "It is night.",
            "It is noon.",
        ),
        Asked(
            "box.mp4",
            "Where does the white square stand?",
            "It stands on the right.",
            "It stands on the left.",
        ),
    ),
    "multiple_actions_in_a_single_video": (
        Asked(
            "swap.mp4",
            "What do the blue square and the yellow triangle do?",
            "The square goes to the right, and the triangle goes down.",
            "The square goes up, and the triangle goes to the left.",
        ),
        Asked(
            "pair.mp4",
            "What does the pink circle do, one thing after the other?",
            "It comes to the purple circle, and then both go to the right.",
            "It leaves to the left, and then it comes back.",
        ),
    ),
    "non_existent_actions_with_existent_scene_depictions": (
        Asked("box.mp4", *_BROKEN),
        Asked(
            "float.mp4",
            "When does the orange circle fall to the ground?",
            "It never falls.",
            "It falls at the end.",
        ),
        Asked("float.mp4", *_BROKEN),
    ),
    "non_existent_actions_with_non_existent_scene_depictions": (
        Asked(
            "night.mp4",
            "Which boat passes under the moon?",
            "There is no boat.",
            "A small red boat passes.",
        ),
        Asked(
            "swap.mp4",
            "What does the dog do beside the triangle?",
            "There is no dog.",
            "It lies down.",
        ),
    ),
    "partial_actions": (
        Asked(
            "box.mp4",
            "Does the red circle reach the white square?",
            "No, it stops before the square.",
            "Yes, it touches the square.",
        ),
        Asked(
            "float.mp4",
            "Does the orange circle leave the picture at the top?",
            "No, it stays inside the picture.",
            "Yes, it leaves at the top.",
        ),
    ),
    "time_order_understanding": (
        Asked(
            "swap.mp4",
            "Which of the two moves first, the square or the triangle?",
            "The square moves first.",
            "The triangle moves first.",
        ),
        Asked(
            "night.mp4",
            "Is there light in the window from the beginning?",
            "No, the light comes later.",
            "Yes, there is light from the beginning.",
        ),
    ),
    "understanding_emotional_context": (
        Asked(
            "face.mp4",
            "How does the face feel while the green ball is there?",
            "It is happy.",
            "It is angry.",
        ),
        Asked("face.mp4", "How does the face feel at the end?", "It is sad.", "It is happy."),
        Asked(
            "pair.mp4",
            "Do the two circles like to be together?",
            "Yes, they stay side by side.",
            "No, they flee from each other.",
        ),
    ),
    "unusual_and_physically_anomalous_activities": (
        Asked(
            "float.mp4",
            "What is strange about the orange circle?",
            "It hangs in the air and does not fall.",
            "It changes its colour.",
        ),
        Asked(
            "night.mp4",
            "What happens to the window with nobody near it?",
            "A light goes on by itself.",
            "It breaks by itself.",
        ),
    ),
}
