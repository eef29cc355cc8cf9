"""The table of model classes for people: all of them, one of them, and docs/models.md."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from lmms_eval_tasks import running
from lmms_eval_tasks.errors import TasksError, nearest
from lmms_eval_tasks.running.class_table import Class, Entry, table

PAPERS_FRAMES = 32  # MAIA's, and what most papers give
FRAMES = f"{PAPERS_FRAMES} frames"
COLUMNS = ("model", "class", FRAMES, "needs", "pictures", "sound", "failed request", "how")
# What is said of one model beside the columns, where there is something.
_MORE = (
    *("video", "frames_default", "rate", "fewer", "sampling", "video_types", "mixed", "batches"),
    *("batch", "mixes", "max_new_tokens", "until"),
)


class Row(NamedTuple):
    """One class of a model, in words: COLUMNS."""

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
    found = [row for name, entry in table().models.items() for row in _rows(name, entry)]
    return [row for row, one in found if not one.media.none]


def others() -> dict[str, str]:
    """The classes that take none, with the reason: `NAME (simple)` or NAME where all are such."""
    found: dict[str, str] = {}
    for name, entry in table().models.items():
        why = {kind: one.media.none for kind, one in entry.classes()}
        if all(why.values()):
            found[name] = next(iter(why.values()))
        else:
            found |= {f"{name} ({kind})": said for kind, said in why.items() if said}
    return found


def facts(name: str) -> list[str]:
    """All that is known of a model, in lines.

    Raises:
        TasksError: the host has no model of this name.
    """
    entry, host = table().model(name), table().host
    if entry is None:
        near = nearest(name, table().models)
        raise TasksError(f"{name}: lmms-eval {host} has no such model{near}")
    told = [f"{name}, lmms-eval {host}"]
    if (installed := running.host_version()) != host:
        told.append(f"installed is {installed}: what is marked as gone may be otherwise there")
    if entry.aliases:
        told.append(f"also called: {', '.join(entry.aliases)}")
    if entry.papers:
        told.append(f"loads models that these papers evaluate: {', '.join(entry.papers)}")
    for row, one in _rows(name, entry):
        forced = row.interface == "simple" and entry.chat
        told += ["", f"{row.interface} class{' (--force_simple)' if forced else ''}"]
        lines = {**dict(zip(COLUMNS[2:], row[2:], strict=True))}
        lines |= {name.replace("_", " "): getattr(one.media, name) for name in _MORE}
        if one.media.none:
            lines = {"takes none of our media": one.media.none, "how": row.how}
        told += [f"  {what}: {said}" for what, said in lines.items() if said not in ("", None, ())]
        for line in one.media.evidence:
            place = f"{line.file}:{line.line}" if line.line else line.file
            gone = "" if line.stands else ", which is gone from the installed file"
            told.append(f"    {line.fact}: {place}{gone}")
    return told


def markdown() -> str:
    """docs/models.md."""
    cells = [[text.replace("|", "\\|") for text in row] for row in rows()]
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
        *(f"| {' | '.join(row)} |" for row in cells),
        "",
        "## Classes that take none of our media",
        "",
        *(f"- `{name}`: {why}" for name, why in others().items()),
        "",
        files(__package__).joinpath("recipes.md").read_text(encoding="utf-8"),
    ]
    return "\n".join(lines)


def _rows(name: str, entry: Entry) -> list[tuple[Row, Class]]:
    said = {"delivered": "yes", "not delivered": "no", "raises": "raises", "unknown": "?"}
    found = []
    for kind, one in entry.classes():
        media = one.media
        pictures = "interleaved" if media.interleaved else "several" if media.images else "one"
        alone, beside = (said[one.sound(with_picture).status] for with_picture in (False, True))
        sound = alone if alone == beside else f"A {alone}, V+A {beside}"
        known = (media.needs, pictures if media.image else "none", sound, media.failed, media.how)
        found.append((Row(name, kind, media.frames(PAPERS_FRAMES), *known), one))
    return found
