"""The five input modes, and the labels by which the paper splits results (Tables 3-5, 10)."""

from __future__ import annotations

from typing import NamedTuple

N_OPTIONS = 8
LETTERS = "ABCDEFGH"


class Mode(NamedTuple):
    """An input mode, one column of Table 3: the streams of a video that reach the model."""

    slug: str  # in task names
    title: str  # in the paper's tables
    picture: bool
    sound: bool
    subtitles: bool


# V+A has no subtitles. The paper does not say whether it has; with subtitles, the column would not
# measure the effect of sound alone.
MODES = {
    "a": Mode("a", "A", picture=False, sound=True, subtitles=False),
    "s": Mode("s", "S", picture=False, sound=False, subtitles=True),
    "v": Mode("v", "V", picture=True, sound=False, subtitles=False),
    "vs": Mode("vs", "V+S", picture=True, sound=False, subtitles=True),
    "av": Mode("av", "V+A", picture=True, sound=True, subtitles=False),
}


class MaverixTask(NamedTuple):
    """The kind, the input mode and the length of a task's videos."""

    kind: str  # choice, circular or open
    mode: Mode
    length: str  # localized: an item's segment; long: the whole video


KINDS = {"": "choice", "_circular": "circular", "_oe": "open"}  # by the last part of a task's name
TASKS = {
    f"maverix_{start}{mode.slug}{end}": MaverixTask(kind, mode, length)
    for start, length in (("", "localized"), ("long_", "long"))
    for mode in MODES.values()
    for end, kind in KINDS.items()
    if not (start and kind == "circular")
}


def duration_class(seconds: float) -> str:
    """Return the paper's class of a whole video's length: under 1 minute, 1 to 10, 10 and more."""
    return "short" if seconds < 60 else "middle" if seconds < 600 else "long"


UNIMODAL, MULTIMODAL = ("a", "s", "v"), ("vs", "av")

# Split -> slug, in our data and in metric names -> title in the paper's tables. The paper has three
# vocabularies of abilities (introduction, Table 2, Table 10). Here it is Table 10's, the one with
# results.
SPLITS: dict[str, dict[str, str]] = {
    "difficulty": {"easy": "Easy", "medium": "Medium", "hard": "Hard"},
    "agentic": {
        "social": "Social",
        "sentiment": "Sentiment",
        "egocentric": "Egocentric Agent",
        "information": "Information Querying",
        "sports": "Sports",
        "gaming": "Gaming",
        "shopping": "Shopping",
    },
    "audio": {
        "natural": "Natural Sound",
        "speech": "Speech",
        "music": "Music",
        "artificial": "Artificial Sound",
        "mixed": "Mixed Sounds",
    },
    "topic": {
        "humanities": "Humanities and Society",
        "geography": "Geography and Travel",
        "technology": "Technology and Gaming",
        "science": "Science and Knowledge",
        "movies": "Movies, TV and Animations",
        "arts": "Arts and Performance",
        "pets": "Pets and Animals",
        "business": "Business and Commerce",
        "life": "Life and Practical Skills",
        "adventure": "Sports and Adventure",
        "trends": "Social Trends and Reactions",
        "vehicles": "Vehicles and Transportation",
        "extended": "Low Quality and Extended Content",
    },
    "ability": {
        "visual": "Visual Reasoning",
        "emotional": "Emotional Inference",
        "situational": "Situational Reasoning",
        "causal": "Causal Reasoning",
        "factual": "Factual Recall",
        "spatial": "Spatial Reasoning",
        "relationship": "Relationship",
        "temporal": "Temporal Distance",
    },
    "duration": {
        "short": "Short (under 1 minute)",
        "middle": "Medium (1 to 10 minutes)",
        "long": "Long (10 minutes and more)",
    },
}

# Ratings of an open answer, 0 to 5 each.
DIMENSIONS = ("correctness", "detail", "context", "temporal")
CONSISTENCY = "consistency"  # rating of a question's two open answers, 0 to 5
