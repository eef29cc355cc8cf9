"""The five input modes, and the labels by which the paper splits its results (Tables 3-5, 10)."""

from __future__ import annotations

from typing import NamedTuple

N_OPTIONS = 8
LETTERS = "ABCDEFGH"


class Mode(NamedTuple):
    """What of a video reaches the model in one column of Table 3."""

    slug: str  # in task names
    title: str  # in the paper's tables
    picture: bool
    sound: bool
    subtitles: bool


# V+A carries no subtitles: the paper leaves it open, and with them the column would not tell what
# the sound is worth.
MODES = {
    "a": Mode("a", "A", picture=False, sound=True, subtitles=False),
    "s": Mode("s", "S", picture=False, sound=False, subtitles=True),
    "v": Mode("v", "V", picture=True, sound=False, subtitles=False),
    "vs": Mode("vs", "V+S", picture=True, sound=False, subtitles=True),
    "av": Mode("av", "V+A", picture=True, sound=True, subtitles=False),
}


class MaverixTask(NamedTuple):
    """What a task asks."""

    kind: str  # choice, circular or open
    mode: Mode
    length: str  # localized: an item's segment; long: the whole video


KINDS = {"": "choice", "_circular": "circular", "_oe": "open"}  # by the end of a task's name
TASKS = {
    f"maverix_{start}{mode.slug}{end}": MaverixTask(kind, mode, length)
    for start, length in (("", "localized"), ("long_", "long"))
    for mode in MODES.values()
    for end, kind in KINDS.items()
    if not (start and kind == "circular")
}


def duration_class(seconds: float) -> str:
    """The paper's class of a whole video's length: under 1 minute, 1 to 10, 10 and more."""
    return "short" if seconds < 60 else "middle" if seconds < 600 else "long"


UNIMODAL, MULTIMODAL = ("a", "s", "v"), ("vs", "av")

# Each split's labels: slug in our data and in metric names -> title in the paper's tables. The
# paper has three vocabularies of abilities (introduction, Table 2, Table 10): Table 10's has
# results, so it is ours.
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

DIMENSIONS = ("correctness", "detail", "context", "temporal")  # of open answers, 0 to 5 each
CONSISTENCY = "consistency"  # of a question's two open answers, 0 to 5 as well
