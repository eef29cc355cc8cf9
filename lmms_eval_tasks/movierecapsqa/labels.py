"""What a task's name says, and the labels by which the paper splits its results (Tables 3, 5)."""

from __future__ import annotations

from dataclasses import dataclass

# Visual source: slug in task names -> title (abstract, (a) to (d)).
SOURCES = {
    "segment": "aligned recap segment",
    "recap": "full recap",
    "scenes": "aligned movie scenes",
    "movie": "full movie",
}


@dataclass(frozen=True)
class Condition:
    """What of the source reaches the model (5.2)."""

    slug: str  # in task names; the default has none
    title: str
    picture: bool
    dialogue: bool


CONDITIONS = {
    condition.slug: condition
    for condition in (
        Condition("", "both", picture=True, dialogue=True),
        Condition("frames", "only frames", picture=True, dialogue=False),
        Condition("dialogue", "only dialogue", picture=False, dialogue=True),
    )
}

# Slug in our data and in metric names -> title. Table 5 heads the vision-centric column "Scene".
UNLABELLED = "unlabelled"
SPLITS: dict[str, dict[str, str]] = {
    "modality": {
        "dialogue": "Dialogue-centric",
        "vision": "Vision-centric",
        "multimodal": "Multimodal",
        UNLABELLED: "Unlabelled",
    },
    "category": {
        "crd": "Character and Relationship Dynamics",
        "npa": "Narrative and Plot Analysis",
        "sta": "Setting and Technical Analysis",
        "temp": "Temporal Reasoning",
        "th": "Thematic Exploration",
        UNLABELLED: "Unlabelled",
    },
}

# The judge's dimensions, 0 to 5 each (4.2; coherence is in the paper's appendix).
DIMENSIONS = ("factuality", "relevance", "coherence")


def source_of(task: str) -> str:
    """The slug of the visual source in a task's name."""
    return task.removeprefix("movierecapsqa_").partition("_")[0]


def condition_of(task: str) -> Condition:
    """The condition in a task's name."""
    return CONDITIONS[task.removeprefix("movierecapsqa_").partition("_")[2]]
