"""The table of model classes as text: all classes, one class, and docs/models.md."""

from __future__ import annotations

from importlib.resources import files

from lmms_eval_tasks.context import Interface
from lmms_eval_tasks.errors import TasksError, nearest
from lmms_eval_tasks.models.model_capabilities import Class, capability_table, class_of

PAPERS_FRAMES = 32  # frames of a video in MAIA, and in most papers
FRAMES = f"{PAPERS_FRAMES} frames"
COLUMNS = (
    *("model", "class", FRAMES, "pixels", "needs", "pictures", "sound", "failed request", "how"),
)


def others() -> dict[str, str]:
    """The classes that take none of our media, with the reason, by `NAME` or `NAME (simple)`."""
    reasons: dict[str, str] = {}
    for name, entry in capability_table().models.items():
        why = {kind: class_entry.media.none for kind, class_entry in entry.classes()}
        if all(why.values()):
            reasons[name] = next(iter(why.values()))
        else:
            reasons |= {f"{name} ({kind})": reason for kind, reason in why.items() if reason}
    return reasons


def facts(name: str) -> list[str]:
    """All facts about a model, in lines: its rows of the table, and its entry in classes.json.

    Raises:
        TasksError: lmms-eval has no model of this name.
    """
    import yaml

    if (entry := capability_table().model(name)) is None:
        near = nearest(name, capability_table().models)
        raise TasksError(f"{name}: no such model in lmms-eval {capability_table().host}{near}")
    told = [f"{name}, lmms-eval {capability_table().host}"]
    for kind, one in entry.classes():
        row = zip(COLUMNS[2:], _row(name, kind, one)[2:], strict=True)
        told += ["", f"{kind} class", *(f"  {what}: {said}" for what, said in row if said)]
    known = entry.model_dump(mode="json", exclude_defaults=True)
    return [*told, "", yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=100)]


def line(model: str, interface: Interface) -> str:
    """The media that a model's class takes, in one line; "" if the class is not in the table."""
    if (one := class_of(model, interface)) is None:
        return ""
    if one.media.none:
        return one.media.none
    told = zip(COLUMNS, _row(model, interface, one), strict=True)
    shown = (FRAMES, "pixels", "pictures", "sound", "needs")
    return "; ".join(f"{what}: {said}" for what, said in told if what in shown and said)


def markdown() -> str:
    """The text of docs/models.md."""
    classes = [
        (name, *own) for name, entry in capability_table().models.items() for own in entry.classes()
    ]
    rows = [_row(*one) for one in classes if not one[-1].media.none]
    cells = [[text.replace("|", "\\|").replace("<", "&lt;") for text in row] for row in rows]
    lines = [
        "# How lmms-eval's model classes treat videos, pictures and sound",
        "",
        f"For lmms-eval {capability_table().host}. `lmms-eval-tasks models` makes this page from",
        "`lmms_eval_tasks/models/classes.json`; `lmms-eval-tasks models NAME` "
        "says more about one class.",
        "",
        f"- **{FRAMES}**: the argument of `--model_args` with which a clip of {PAPERS_FRAMES}",
        "  frames (MAIA's) reaches the model whole; a run sets it, and your "
        "value in `--model_args` takes precedence.",
        "- **pixels**: the arguments of `--model_args` that set the size of a frame or",
        "  picture, with their defaults (pixels are width times height); or what sets it",
        "  where no argument does ([the same pixels](#the-same-pixels-on-each-class)).",
        "- **needs**: packages to install and arguments to pass.",
        "- **pictures**: one per request, several, or several in their places between the texts.",
        "- **sound**: whether it arrives by default, alone (A) and together with the video (V+A).",
        "- **how** it is known: the class was run, its code was called, or its code was read.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(row)} |" for row in cells),
        "",
        "## Classes that take neither videos nor pictures",
        "",
        *(f"- `{name}`: {why}" for name, why in others().items()),
        "",
        files(__package__).joinpath("recipes.md").read_text(encoding="utf-8"),
    ]
    return "\n".join(lines)


def _row(name: str, kind: str, model_class: Class) -> tuple[str, ...]:
    """The cells of a class of a model in words, one for each of COLUMNS."""
    said = {"delivered": "yes", "not delivered": "no", "raises": "raises", "unknown": "?"}
    media = model_class.media
    pictures = "interleaved" if media.interleaved else "several" if media.images else "one"
    alone, beside = (said[model_class.sound(with_picture).status] for with_picture in (False, True))
    sound = alone if alone == beside else f"A {alone}, V+A {beside}"
    known = (
        media.sizes(),
        media.needs,
        pictures if media.image else "none",
        sound,
        media.failed,
        media.how,
    )
    return (name, kind, media.frames(PAPERS_FRAMES), *known)
