"""The table of model classes as text: all classes, one class, and docs/models.md."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from lmms_eval_tasks.context import Interface, RunModel
from lmms_eval_tasks.errors import TasksError, nearest
from lmms_eval_tasks.models import model_capabilities, plan, recipes
from lmms_eval_tasks.models.model_capabilities import (
    Class,
    MediaSupport,
    ModelEntry,
    capability_table,
    class_of,
)
from lmms_eval_tasks.models.plan import MediaNeeds
from lmms_eval_tasks.models.recipes import RowRecipe

if TYPE_CHECKING:
    from rich.table import Table

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


def page(name: str, width: int) -> list[str]:
    """A page about a model, in lines: its classes, their media, what a run sets, a command, faults.

    Args:
        name: a model of lmms-eval.
        width: columns of the terminal.

    Raises:
        TasksError: lmms-eval has no model of this name.
    """
    entry, made = _entry(name), recipes.made_with(name)
    head = f"{name}: a model of lmms-eval {capability_table().host}"
    if others := [alias for alias in entry.aliases if alias != name]:
        head += f", also called {', '.join(others)}"
    rows: list[tuple[str, str]] = []
    if entry.papers:
        rows.append(("papers", f"{', '.join(entry.papers)} evaluate models that it loads"))
    if made:
        files_of = [f"{one.path.parent.name}/{one.path.name}" for one in made]
        checkpoints = dict.fromkeys(recipes.checkpoint_of(one.model) for one in made)
        rows.append(("checkpoints", ", ".join(checkpoints)))
        rows.append(("recipes", f"in leaderboards/recipes: {', '.join(files_of)}"))
    told = [*textwrap.wrap(head, width, subsequent_indent="  "), *_wrapped(rows, width)]
    kinds = [kind for kind, _ in entry.classes()]
    for kind, one in entry.classes():
        default = ", which lmms-eval takes by default" if kind == kinds[0] and kinds[1:] else ""
        told += ["", f"{kind} class{default}", *_wrapped(_facts(name, kind, one), width)]
        if not one.media.none:
            command = _command(name, kind, one, made)
            told += ["  run with", *(f"    {word}" for word in command)]
    more = f"More, with lines of source code: lmms-eval-tasks models {name} --all"
    return [*told, "", *textwrap.wrap(more, width, break_on_hyphens=False)]


def stored_entry(name: str) -> str:
    """A model's entry in classes.json, as YAML.

    Raises:
        TasksError: lmms-eval has no model of this name.
    """
    import yaml

    known = _entry(name).model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=100)


def _entry(name: str) -> ModelEntry:
    if (entry := capability_table().model(name)) is None:
        near = nearest(name, capability_table().models)
        raise TasksError(f"{name}: no such model in lmms-eval {capability_table().host}{near}")
    return entry


def _wrapped(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    for heading, text in rows:
        yield from textwrap.wrap(
            text,
            width,
            initial_indent=f"  {heading:<13}",
            subsequent_indent=" " * 15,
            break_on_hyphens=False,
        )


_HOW = {
    "run": "the class was run with a tiny checkpoint or a local server",
    "called": "the class's code was called, without a model",
    "read": "the class's code was read, not run",
}


def _facts(name: str, kind: Interface, model_class: Class) -> Iterator[tuple[str, str]]:
    """Yield the rows of a class's page: a heading and a text."""
    media, (_, _, frames, pixels, needs, pictures, *_) = (
        model_class.media,
        _row(name, kind, model_class),
    )
    yield "runs", model_capabilities.engine_of(name)
    if media.none:
        yield "takes", f"no videos or pictures: {media.none}"
        return
    yield FRAMES, frames
    if media.rate and media.rate not in frames:
        yield "rate", media.rate
    needed = MediaNeeds("maia_vsv", videos=True, frames=frozenset({PAPERS_FRAMES}))
    try:
        lines = plan.of(RunModel(name, kind, {}), [needed]).lines if not media.broken else ()
    except TasksError as error:
        lines = (str(error),)
    yield "a run sets", "; ".join(lines) or "nothing for MAIA's 32 frames"
    yield "pixels", pixels or "the checkpoint's processor decides"
    yield "pictures", _PICTURES[pictures]
    alone, beside = (model_class.sound(with_picture) for with_picture in (False, True))
    same = (alone.status, alone.why) == (beside.status, beside.why)
    for heading, cell in (("sound", alone), *(() if same else (("with video", beside),))):
        yield heading, f"{_SOUND[cell.status]}: {cell.why}"
    for heading, text in (
        ("tokens", media.max_new_tokens and f"a task's max_new_tokens: {media.max_new_tokens}"),
        ("until", media.until and f"a task's stop texts: {media.until}"),
        ("batches", media.batches and f"pass --batch_size {media.batches}"),
        ("needs", needs),
        ("broken", media.broken),
        ("failure", media.failed and f"a request that fails: {media.failed}"),
        ("fault", media.batch),
        ("fault", media.mixes),
    ):
        if text:
            yield heading, text
    yield "known how", _HOW[media.how]


_PICTURES = {
    "interleaved": "several, in their places between the texts",
    "several": "several, together",
    "one": "one in a request",
    "none": "none",
}
_SOUND = {"delivered": "yes", "not delivered": "no", "raises": "raises", "unknown": "?"}


# The model argument that names the checkpoint, where it is not `pretrained`.
_CHECKPOINT = {
    "model": (
        *("async_openai", "gemini", "litellm", "longvila", "openai"),
        *("sglang", "vllm", "vllm_generate"),
    ),
    "model_version": ("batch_gpt4", "claude", "gpt4v", "qwen_vl_api", "reka", "srt_api"),
    "model_path": ("videoChatGPT",),
    "nim_model": ("cosmos_wm",),
}


def _command(
    name: str, kind: Interface, model_class: Class, rows: Sequence[RowRecipe]
) -> Iterator[str]:
    """Yield the lines of a command that runs a class."""
    argument = next((key for key, own in _CHECKPOINT.items() if name in own), "pretrained")
    checkpoint = recipes.checkpoint_of(rows[0].model) if rows else argument.upper()
    yield f"lmms_eval --model {name} \\"
    if rows or not model_class.media.ours or name == recipes.VLLM:
        yield f"  --model_args {argument}={checkpoint} \\"
    batches = re.match(r"\d+", model_class.media.batches)
    options = "--force_simple " if kind == "simple" and len([*_entry(name).classes()]) > 1 else ""
    options += f"--batch_size {batches[0]} " if batches else ""
    yield f"  --tasks maia {options}--log_samples --output_path out"


def class_table(width: int) -> Table:
    """The table of the classes that take videos or pictures, for a terminal of this width."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    wide = width >= WIDE
    for heading in ("model", "class", "videos", *([FRAMES] if wide else []), *_SHORT):
        table.add_column(heading, overflow="fold")
    for name, entry in capability_table().models.items():
        for kind, one in entry.classes():
            if not one.media.none:
                _, _, frames, _, _, pictures, sound, _, how = _row(name, kind, one)
                more = [frames] if wide else []
                table.add_row(name, kind, _videos(one.media), *more, pictures, sound, how)
    return table


WIDE = 120  # columns from which the table also has the argument for 32 frames
_SHORT = ("pictures", "sound", "known")


def _videos(media: MediaSupport) -> str:
    if media.broken:
        return "broken"
    return "yes" if media.video else "no"


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
        f"For lmms-eval {capability_table().host}. `lmms-eval-tasks models --format md` makes this",
        "page from `lmms_eval_tasks/models/classes.json`; `lmms-eval-tasks models NAME` "
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
    media = model_class.media
    pictures = "interleaved" if media.interleaved else "several" if media.images else "one"
    alone, beside = (
        _SOUND[model_class.sound(with_picture).status] for with_picture in (False, True)
    )
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
