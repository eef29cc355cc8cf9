"""What `lmms-eval-tasks haven build` says: what the texts will cost, and what became of each video.

Before anybody is asked the document and the summary are about descriptions that nobody has yet:
these get stand-ins of the usual size, which are counted like the real ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.haven.records import steps
from lmms_eval_tasks.haven.records.build import Done
from lmms_eval_tasks.haven.records.steps import WORDS, Said, Texts
from lmms_eval_tasks.haven.records.structure import Structure
from lmms_eval_tasks.judges import JudgeConfig, engine, writer

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.judges.costs import Asked

# Tokens; assumptions, as nothing of the kind has been measured.
FRAME, SHOT, SENTENCE = 40, 60, 30
SHOTS_PER_SENTENCE = 2


class Work(NamedTuple):
    """A video's structure, the texts it has, and the size of its pictures in pixels."""

    made: Structure
    have: Texts
    size: tuple[int, int]


def estimate(works: Sequence[Work], config: JudgeConfig) -> Table:
    """What the texts of some videos need of a model, by step."""
    from lmms_eval_tasks.judges.prices import image_tokens

    asked: dict[str, list[Asked]] = {step: [] for step in steps.STEPS}
    shown, picture_tokens = dict.fromkeys((*steps.STEPS, "all"), 0), dict.fromkeys(steps.STEPS, 0)
    for work in works:
        for step, pictures, texts, reply in _asked(work):
            fields = steps.fields(step, texts)
            asked[step].append((steps.criterion(step), fields, json.dumps(reply)))
            picture_tokens[step] += pictures * image_tokens(*work.size)
            shown[step] += pictures
            shown["all"] += pictures
    return writer.table(writer.estimate(config, asked, picture_tokens), shown)


def notes(config: JudgeConfig) -> list[str]:
    """How the numbers came about, one line each."""
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.prices import counter

    return [
        f"tokens by {counter(config.model).name}, pictures by OpenAI's rule for gpt-4o; assumed: "
        f"{FRAME} for a frame's description, {SHOT} for a shot's, a sentence of {SENTENCE} for "
        f"{SHOTS_PER_SENTENCE} shots; no repairs",
        f"cost: {run.current().prices.origin}; replies in the cache are free",
    ]


def _asked(work: Work) -> Iterator[tuple[str, int, list[str], Any]]:
    """Each request: its step, number of pictures, descriptions shown, and a reply like the real."""
    have, made = work.have, work.made
    for text in have.frames:
        if not text:
            yield "frame", 1, [], {"description": writer.words(FRAME)}
    for text, shot in zip(have.shots, made.shots, strict=True):
        if not text:
            yield "shot", len(shot), [], {"description": writer.words(SHOT)}
    shown = [text or writer.words(SHOT) for text in have.shots]
    if not have.document:
        yield "document", 0, shown, _sentences(len(shown))
    if made.key_shots and not have.summary:
        chosen = [shown[n] for n in made.key_shots]
        yield "summary", 0, chosen, _sentences(len(chosen))


def _sentences(shots: int) -> Any:
    number = -(-shots // SHOTS_PER_SENTENCE)
    return {"sentences": [{"sentence": writer.words(SENTENCE), "shots": [1, 2]}] * number}


_NAMED = 5  # of the texts that fail for one reason


def lines(done: Done, source: str, *, cached: bool) -> Iterator[str]:
    """The lines of one video, in order.

    Args:
        cached: whether replies were kept, so that a second run reads them again.
    """
    name = f"{source}/{done.key or '-'} ({done.job.name})"
    if done.made is None:
        lacks = f"; missing: {', '.join(done.job.missing)}" if done.job.missing else ""
        yield f"{name}: kept as it was{lacks}"
        return
    yield f"{name}: {_counts(done.made)}"
    if not done.made.key_shots:
        yield (
            f"{name}: no shot fits the budget of 15 % of the frames: no key shots and no summary; "
            "--shots N with more and shorter shots helps"
        )
    if done.texts is not None:
        if missing := done.texts.missing(done.made.key_shots):
            yield f"{name}: missing: {', '.join(missing)}"
        yield from (f"{name}: to look at: {line}" for line in review(done.texts, done.made))
    for why in dict.fromkeys(done.failures.values()):
        places = [place for place, own in done.failures.items() if own == why]
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        yield f"{name}: failed: {', '.join(places[:_NAMED])}{more}: {why}"
    if not done.key:
        yield f"{name}: not written: {_advice(done.failures.values(), cached=cached)}"


def _advice(reasons: Iterable[str], *, cached: bool) -> str:
    """What to do about a record that was kept back."""
    if not cached or not any(map(engine.fails_again, reasons)):
        return "run the same command again to go on, or add --keep-gaps"
    return (
        "replies are kept, so the same command would fail the same way: name another --judge, or "
        f"switch the cache off for one run ({settings.JUDGE_CACHE}=off); after a run with "
        "--keep-gaps these ask only for the texts that are missing"
    )


def _counts(made: Structure) -> str:
    shots, frames = made.shots, len(made.sampled.picks)
    inside = sum(len(shots[n]) for n in made.key_shots)
    ties = f" ({made.ties} later ones are as important)" if made.ties else ""
    return (
        f"{frames} frames, {len(shots)} shots, {len(made.keyframes)} keyframes{ties}, "
        f"{len(made.key_shots)} key shots of {inside} frames together"
    )


def review(texts: Texts, made: Structure) -> Iterator[str]:
    """What a person should look at: found by rules, told, and never changed."""
    long = [n for n, text in enumerate(texts.shots, 1) if len(text.split()) > WORDS]
    if long:
        yield f"shots described in more than {WORDS} words: {_listed(long)}"
    blocks = {
        "document": (texts.document, range(len(made.starts))),
        "summary": (texts.summary, made.key_shots),
    }
    for name, (sentences, shots) in blocks.items():
        if sentences:
            told = {shot for one in sentences for shot in one.shots}
            if untold := [shot + 1 for shot in shots if shot not in told]:
                yield f"no sentence of the {name} tells of shots {_listed(untold)}"
            if late := out_of_order(sentences):
                yield f"sentences of the {name} that begin before the one before: {_listed(late)}"


def out_of_order(sentences: Sequence[Said]) -> list[int]:
    """Numbers, from 1, of sentences whose first shot is earlier than that of the one before."""
    firsts = [min(one.shots, default=0) for one in sentences]
    return [number for number, (a, b) in enumerate(pairwise(firsts), 2) if b < a]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
