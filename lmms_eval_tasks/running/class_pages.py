"""The table of model classes for people: all of them, one of them, and docs/models.md."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from lmms_eval_tasks import running
from lmms_eval_tasks.errors import TasksError, nearest
from lmms_eval_tasks.running.class_table import Chat, Media, Model, Nothing, Simple, table

PAPERS_FRAMES = 32  # MAIA's, and what most papers give
FRAMES = f"{PAPERS_FRAMES} frames"
COLUMNS = ("model", "class", FRAMES, "needs", "pictures", "sound", "failed request", "how")


class Row(NamedTuple):
    """One class of a model, in words."""

    model: str
    interface: str
    frames: str
    needs: str
    pictures: str
    sound: str
    failed: str
    how: str


def rows() -> list[Row]:
    """All classes that take some of our media, in the host's order."""
    return [row for name, entry in table().models.items() for row in _rows(name, entry)]


def others() -> dict[str, str]:
    """The classes that take none, with the reason: `NAME (simple)` or NAME where all are such."""
    found: dict[str, str] = {}
    for name, entry in table().models.items():
        mine = list(_classes(entry))
        none = {kind: one.media.none for kind, one in mine if isinstance(one.media, Nothing)}
        if len(none) == len(mine):
            found[name] = next(iter(none.values()))
        else:
            found |= {f"{name} ({kind})": why for kind, why in none.items()}
    return found


def facts(name: str) -> list[str]:
    """All that is known of a model, in lines.

    Raises:
        TasksError: the host has no model of this name.
    """
    entry = table().model(name)
    if entry is None:
        near = nearest(name, table().models)
        raise TasksError(f"{name}: lmms-eval {table().host} has no such model{near}")
    told = [f"{name}, lmms-eval {table().host}"]
    if (installed := running.host_version()) != table().host:
        told.append(f"installed is {installed}: what is marked as gone may be otherwise there")
    if entry.aliases:
        told.append(f"also called: {', '.join(entry.aliases)}")
    if entry.papers:
        told.append(f"loads models that these papers evaluate: {', '.join(entry.papers)}")
    for kind, one in _classes(entry):
        forced = kind == "simple" and entry.chat
        told += ["", f"{kind} class{' (--force_simple)' if forced else ''}"]
        told += [f"  {line}" for line in _told(one)]
    return told


def markdown() -> str:
    """docs/models.md."""
    lines = [
        "# What the host's model classes do with our media",
        "",
        f"Of lmms-eval {table().host}. `lmms-eval-tasks models --markdown` makes this page of",
        "`lmms_eval_tasks/running/classes.json`; `lmms-eval-tasks models NAME` says more of one.",
        "",
        f"- **{FRAMES}**: the argument of `--model_args` with which a clip of {PAPERS_FRAMES}",
        "  frames (MAIA's) reaches the model whole; our tasks set it unless you do.",
        "- **needs**: what has to be installed or passed.",
        "- **pictures**: one in a request, several, or several that stay between the texts.",
        "- **sound**: whether it arrives alone (A) and beside the picture (V+A), by default.",
        "- **how** it is known: run, its code called alone, or read.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(_cell(text) for text in row)} |" for row in rows()),
        "",
        "## Classes that take none of our media",
        "",
        *(f"- `{name}`: {why}" for name, why in others().items()),
        "",
        files(__package__).joinpath("recipes.md").read_text(encoding="utf-8"),
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _rows(name: str, entry: Model) -> Iterator[Row]:
    for kind, one in _classes(entry):
        media = one.media
        if isinstance(media, Media):
            known = (media.needs, _pictures(media), _sound(one), media.failed, media.how)
            yield Row(name, kind, media.frames(PAPERS_FRAMES), *known)


def _classes(entry: Model) -> Iterator[tuple[str, Simple | Chat]]:
    """The class that the host takes by default first."""
    if entry.chat:
        yield "chat", entry.chat
    if entry.simple:
        yield "simple", entry.simple


def _pictures(media: Media) -> str:
    if not media.image:
        return "none"
    if not media.images:
        return "one"
    return "interleaved" if media.interleaved else "several"


def _sound(one: Simple | Chat) -> str:
    """Of A and V+A, at default arguments."""
    said = {"delivered": "yes", "not delivered": "no", "raises": "raises", "unknown": "?"}
    states = said[one.alone.status], said[one.beside.status]
    return states[0] if len({*states}) == 1 else f"A {states[0]}, V+A {states[1]}"


def _told(one: Simple | Chat) -> Iterator[str]:
    media = one.media
    if isinstance(media, Nothing):
        yield media.none
    else:
        yield f"{PAPERS_FRAMES} frames of a clip: {media.frames(PAPERS_FRAMES)}"
        if media.video:
            limit = media.rate or f"{media.frames_default or 'number not known'} frames by default"
            yield f"reads videos with {media.video}: {limit}; shorter ones: {media.fewer}"
        yield f"pictures in a request: {_pictures(media)}"
        yield f"pictures and videos in one run: {_yes(media.mixed)}"
        yield f"sound: {_sound(one)}"
        yield f"max_new_tokens: {media.max_new_tokens}; until: {media.until}"
        yield f"a failed request: {media.failed}"
        for what, text in (
            ("batch size", media.batches),
            ("batches", media.batch),
            ("asked one request at a time", media.mixes),
            ("needs", media.needs),
        ):
            if text:
                yield f"{what}: {text}"
    yield f"known because: {media.how}"
    for line in media.evidence:
        gone = "" if line.stands else ", which is gone from the installed file"
        yield f"  {line.fact}: {line.file}:{line.line}{gone}"


def _yes(known: bool | None) -> str:
    return "not known" if known is None else "yes" if known else "no"
