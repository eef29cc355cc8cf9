"""What MovieRecapsQA's Table 2 says about facts, questions and lengths, multiplied out.

The paper does not print the number of segments. If they fill the recap (3.2 divides the summary
into segments), a recap has its length over a segment's: a deduction of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import half
from lmms_eval_tasks.leaderboards.findings import Finding
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import Paper

VIDEOS, FACTS = "Total Films & Recap Videos", "Total Aligned Atomic Facts"
QUESTIONS = "Total QA Pairs"
SEGMENT_FACTS, VIDEO_FACTS = "Avg. Total Facts from Segments", "Avg. Facts per Video"
SEGMENT_QUESTIONS = "Avg. Questions from Segments"
RECAP, MOVIE = "Avg. Length of Full Recap Video", "Avg. Length of Full Movie"
SEGMENT, WINDOW = "Avg. Segment Length (Recap)", "Avg. Aligned Segment (Full)"


@dataclass(frozen=True)
class Range:
    """All values that printed figures, or what follows from them, can stand for; positive."""

    low: Decimal
    high: Decimal

    @property
    def middle(self) -> Decimal:
        """The value that follows from the figures as printed, nearly."""
        return (self.low + self.high) / 2

    def __mul__(self, other: Range) -> Range:
        return Range(self.low * other.low, self.high * other.high)

    def __truediv__(self, other: Range) -> Range:
        return Range(self.low / other.high, self.high / other.low)

    def apart(self, other: Range) -> bool:
        """Whether the two have no value in common."""
        return self.high < other.low or other.high < self.low


def exactly(count: Decimal) -> Range:
    """A count that is printed in full."""
    return Range(count, count)


def about(figure: Decimal) -> Range:
    """A rounded figure."""
    return Range(figure - half(figure), figure + half(figure))


def yes_or_no(mean: Decimal) -> Range:
    """The variance of scores that are 0 or 1, by their printed mean (0.5 or more)."""
    ends = about(mean)
    high = min(ends.high, Decimal(1))
    return Range(high * (1 - high), ends.low * (1 - ends.low))


def segments(paper: Paper) -> Range:
    """Segments of a recap, if they fill it."""
    return about(paper.statistic(RECAP)) / about(paper.statistic(SEGMENT))


def facts(paper: Paper) -> list[Finding]:
    """Facts per video in three ways: printed, from the total, from facts per segment."""
    printed = about(paper.statistic(VIDEO_FACTS))
    videos, total = exactly(paper.statistic(VIDEOS)), exactly(paper.statistic(FACTS))
    by_total, in_all = total / videos, printed * videos
    by_segment = about(paper.statistic(SEGMENT_FACTS)) * segments(paper)
    found = []
    if by_total.apart(printed):
        text = (
            f"{total.low} are printed, {videos.low} videos of {paper.statistic(VIDEO_FACTS)} have "
            f"{in_all.middle:.0f}, and {total.low} would be {by_total.middle:.0f} each"
        )
        values = {"printed": total.low, "follows": in_all.middle}
        found.append(_finding("facts", "size", FACTS, values, text))
    if by_segment.apart(printed):
        text = (
            f"{paper.statistic(SEGMENT_FACTS)} in each of the {segments(paper).middle:.1f} "
            f"segments that fill a recap are {by_segment.middle:.0f} per video, "
            f"{paper.statistic(VIDEO_FACTS)} are printed"
        )
        values = {"printed": printed.middle, "follows": by_segment.middle}
        found.append(_finding("facts", "facts", SEGMENT_FACTS, values, text))
    return found


def facts_per_question(paper: Paper) -> list[Finding]:
    """The total of facts as a whole multiple of the questions: suspicious, not impossible."""
    total, asked = paper.statistic(FACTS), paper.statistic(QUESTIONS)
    if total % asked:
        return []
    text = f"{total} is exactly {total // asked} x {asked}, the number of questions"
    values = {"facts": total, "questions": asked}
    return [_finding("facts_per_question", "size", FACTS, values, text)]


def questions(paper: Paper) -> list[Finding]:
    """The average of questions "from segments" against the total, per video and per segment."""
    printed, total = paper.statistic(SEGMENT_QUESTIONS), exactly(paper.statistic(QUESTIONS))
    per_video = total / exactly(paper.statistic(VIDEOS))
    per_segment = per_video / segments(paper)
    if not (about(printed).apart(per_video) and about(printed).apart(per_segment)):
        return []
    text = (
        f"{printed} are printed, {total.low} questions are {per_video.middle:.1f} per video and "
        f"{per_segment.middle:.1f} per segment, if segments fill the recap"
    )
    values = {"printed": printed, "video": per_video.middle, "segment": per_segment.middle}
    return [_finding("questions", "facts", SEGMENT_QUESTIONS, values, text)]


def windows(paper: Paper) -> list[Finding]:
    """The windows of a movie's segments against its length: suspicious, not impossible."""
    movie, window = about(paper.statistic(MOVIE)), about(paper.statistic(WINDOW))
    sum_of_windows = window * segments(paper)
    if sum_of_windows.low <= movie.high:
        return []
    text = (
        f"{segments(paper).middle:.1f} windows of {paper.statistic(WINDOW)} s are "
        f"{sum_of_windows.middle:.0f} s, the movie has {paper.statistic(MOVIE)} s"
    )
    values = {"movie": movie.middle, "windows": sum_of_windows.middle}
    return [_finding("windows", "seconds", WINDOW, values, text)]


def _finding(kind: str, group: str, name: str, values: Mapping[str, Decimal], text: str) -> Finding:
    plain = {key: float(round(value, 2)) for key, value in values.items()}
    return Finding(kind, (2,), group, name, "value", plain, text)
