"""What a run sets for its model's class, and what it says or refuses, before the model is loaded.

The tasks say what they hand over (`MediaNeeds`), the table of classes what a class takes: where the
two differ, the class's own arguments are set, or what is handed over takes another form. Whatever
the user set stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval_tasks.context import ClassPlan, Interface, RunModel
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import model_capabilities
from lmms_eval_tasks.models.model_capabilities import MediaSupport

FRAMES = 32  # of a video that goes as pictures: MAIA's number, and what most papers give


@dataclass(frozen=True)
class MediaNeeds:
    """What the requests of a task hold."""

    task: str
    videos: bool = False  # whether there are videos in them
    pictures: int = 0  # the most in one
    frames: frozenset[int] = frozenset()  # of its videos, where the protocol says how many


def of(model: RunModel, needs: Sequence[MediaNeeds]) -> ClassPlan:
    """The plan of a run, of the model as the user named it.

    Raises:
        TasksError: no class of the model can take what the tasks hand over.
    """
    interface = _interface(model, needs)
    told: list[str] = []
    media = model_capabilities.media_of(model.name, interface)
    if media is not None and media.ours and not media.frames_argument:
        return ClassPlan(interface)
    if another := model_capabilities.of_another_host():
        told.append(f"{model.name} ({interface}) may treat frames differently: {another}")
    if interface != model.interface:
        told.append(
            f"{model.name}: using its {interface} class (as with "
            f"--force_simple), because the {model.interface} class "
            f"{_lacking(model, model.interface, needs)}"
        )
    shown = [one.task for one in needs if one.videos]
    if media is None or media.none:
        if media and (shown or any(one.pictures for one in needs)):
            none = f"{model.name} takes no videos or pictures: {media.none}"
            return ClassPlan(interface, told=(*told, none), short=(none,))
        return ClassPlan(interface, told=tuple(told))
    who, more = f"{model.name} ({interface})", f"lmms-eval-tasks models {model.name}"
    if media.broken:
        told.append(f"{who} does not work as installed: {media.broken} ({more})")
    elif lacking := _lacking(model, interface, needs):
        raise TasksError(f"{who} {lacking}: leave these tasks out, or use another model ({more})")
    elif shown and media.video_types:
        kind = checkpoint_type(model)
        if kind and kind not in media.video_types:
            raise TasksError(
                f"{who} passes no videos to checkpoints of the type {kind}, but "
                f"{', '.join(shown)} have videos: use one of the type "
                f"{' or '.join(media.video_types)}, or another model"
            )
    as_pictures = not media.video and media.images
    if as_pictures and shown:
        tasks = ", ".join(shown)
        told.append(f"{who} takes no videos: {tasks} pass {FRAMES} pictures of each video")
    arguments, set_, short = _frames(model, media, who, needs)
    # With another modality than a task's its requests end the run; texts alone go with pictures.
    shows = media.modality and any(one.videos or one.pictures for one in needs)
    modality = {one.task: "video" if one.videos else "image" for one in needs if shows}
    if modality:
        arguments["modality"] = next(iter(modality.values()))
        if {*modality.values()} - {model.arguments.get("modality")}:
            told.append(f"{who}: modality is set for each task to what its requests hold")
    return ClassPlan(
        interface,
        arguments,
        as_pictures,
        pictures_as_videos=bool(media.video) and not media.image,
        reader=media.video if shown else "",
        modality=modality,
        one_by_one=bool(media.mixes),
        told=(*told, *short, *set_),
        short=tuple(short),
    )


def checkpoint_type(model: RunModel) -> str:
    """transformers' model_type of a run's checkpoint; "" where its config cannot be read."""
    from transformers import AutoConfig

    name = model.arguments.get("pretrained") or model.arguments.get("model") or ""
    try:
        return str(AutoConfig.from_pretrained(str(name)).model_type)
    except (OSError, ValueError):  # none there, or code of its own; its class will say it
        return ""


def _interface(model: RunModel, needs: Sequence[MediaNeeds]) -> Interface:
    """The user's, or the simple class where only that one takes what the tasks hand over."""
    mine, other = (
        model_capabilities.media_of(model.name, kind) for kind in (model.interface, "simple")
    )
    if model.interface == "simple" or not mine or mine.none or not other or not other.video:
        return model.interface
    alone = mine.broken or (not mine.video and any(one.videos for one in needs))
    return "simple" if alone and not _lacking(model, "simple", needs) else "chat"


def _lacking(model: RunModel, interface: Interface, needs: Sequence[MediaNeeds]) -> str:
    """What a class cannot take of what tasks hand over; "" if it takes all."""
    media = model_capabilities.media_of(model.name, interface)
    if media is None or media.none:
        return ""
    if media.broken:
        return f"does not work: {media.broken}"
    if media.images:
        return ""
    if found := [one.task for one in needs if one.videos and not media.video]:
        return f"takes no videos, but {', '.join(found)} have videos"
    if found := [one.task for one in needs if one.pictures > 1]:
        kind = "only one picture" if media.image else "no pictures"
        return f"takes {kind} in a request, but {', '.join(found)} have several"
    return ""


def _frames(
    model: RunModel, media: MediaSupport, who: str, needs: Sequence[MediaNeeds]
) -> tuple[dict[str, object], list[str], list[str]]:
    """The arguments for frames that are set; a line on them; and lines on what will not arrive."""
    framed = [one for one in needs if one.videos and one.frames]
    if not framed or media.broken or media.video in ("", "server"):
        return {}, [], []
    tasks, argument = ", ".join(one.task for one in framed), media.frames_argument
    most = max(count for one in framed for count in one.frames)
    if argument is None:
        taken = media.rate or f"{media.frames_default or 'a number not known of'} frames"
        return (
            {},
            [],
            [
                f"{who} takes {taken}, and no argument changes that; the videos of "
                f"{tasks} have {most} frames"
            ],
        )
    if argument in model.arguments:
        given = str(model.arguments[argument])
        told = f"{who}: {argument}={given}, and the videos of {tasks} have {most} frames"
        # 0 is "all" where it is a number at all.
        return {}, [], [told] if given.isdecimal() and 0 < int(given) < most else []
    by_rate, lines, default = media.fewer == "by rate", [], media.frames_default or 0
    enough = default == most or (default > most and (by_rate or media.fewer == "all"))
    made: dict[str, object] = {} if enough else {argument: most}
    whole = {k: v for k, v in media.whole.items() if k not in model.arguments}
    if whole and all(one.frames for one in needs if one.videos):
        made |= whole
    elif by_rate and len(whole) == len(media.whole):
        mend = f": to pass all of them, run {tasks} separately" if whole else ""
        lines.append(f"{who} takes {media.rate}: not all {most} frames of short videos{mend}")
    shown = ", ".join(f"{name}={value}" for name, value in made.items())
    set_ = (
        [f"{model.name}: {shown} set for {tasks}; to change it, pass your value in --model_args"]
        if made
        else []
    )
    return made, set_, lines


def whole(name: str, value: int | str) -> int:
    """A model's argument that is a whole number, as text or not.

    Raises:
        TasksError: it is none.
    """
    try:
        return int(value)
    except ValueError:
        raise TasksError(f"--model_args {name}={value}: expected a whole number") from None
