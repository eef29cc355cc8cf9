"""HAVEN's names: its sources, its tasks, and what each task shows and asks (paper, 3.4, C)."""

from __future__ import annotations

from dataclasses import dataclass

OWN = "own"  # a user's own videos (`lmms-eval-tasks haven build`), which are no part of the paper
# Slug, which is the name of the files too -> title; the paper's six in its order (Table 1).
SOURCES = {
    "summe": "SumMe",
    "tvsum": "TVSum",
    "ovp": "OVP",
    "youtube": "YouTube",
    "videoxum": "VideoXum",
    "mrhisum": "MR.HiSum",
    OWN: "own videos",
}
# The paper evaluates 100 videos of each of the two large sources, and all of the others (4.1).
LARGE_SOURCES = ("videoxum", "mrhisum")
SUBSET = 100
# Videos of the full release (Table 1).
PAPER_COUNTS = {
    "summe": 25,
    "tvsum": 50,
    "ovp": 50,
    "youtube": 40,
    "videoxum": 5300,
    "mrhisum": 5590,
}
BUDGET_PERCENT = 15  # of the sampled frames: keyframes, and frames of key shots (3.2, 4.1)

KINDS = {
    "v2t": "text summary",
    "v2v": "keyframes",
    "v2vt": "joint summary",
    "temporal": "temporal order",
    "grounding": "grounding",
    "saliency": "saliency ranking",
}
SUMMARIES = ("v2t", "v2vt")  # kinds whose replies hold a text summary
SELECTIONS = ("v2v", "v2vt")  # kinds whose replies hold keyframes
ORDERS = ("temporal", "saliency")  # kinds whose replies are an order of all that is shown


@dataclass(frozen=True)
class Task:
    """One task: `haven_KIND`, with `_doc` (the document is given) or `_text` (text proxy).

    A text proxy shows descriptions in place of pictures (Appendix C); none is given the document.
    """

    kind: str
    document: bool = False
    text: bool = False

    @property
    def name(self) -> str:
        """As the host knows it."""
        return f"haven_{self.kind}{'_doc' if self.document else ''}{'_text' if self.text else ''}"


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *(Task(kind) for kind in ("v2t", "v2v", "v2vt", "temporal")),
        Task("temporal", document=True),
        Task("grounding"),
        Task("saliency"),
        Task("saliency", document=True),
        *(Task(kind, text=True) for kind in KINDS),
    )
}


def budget(n_frames: int) -> int:
    """K, the number of keyframes asked for: 15 % of the sampled frames, at least 1.

    From the number of frames alone, never from the number of true keyframes.

    Args:
        n_frames: F, at least 1.
    """
    return max(1, n_frames * BUDGET_PERCENT // 100)
