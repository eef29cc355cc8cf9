"""The plan of a run: the arguments that it sets for its model's class, and messages about it.

The plan is made before the model is loaded. The tasks declare the media of their requests
(`MediaNeeds`); the table of classes has the media that a class takes. If the two differ, arguments
of the class are set, or the media take another form. An argument that the user set stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval_tasks.context import ClassPlan, Interface, RunModel
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import model_capabilities
from lmms_eval_tasks.models.model_capabilities import MediaSupport

FRAMES = 32  # pictures of a video for a class without videos: MAIA's number, as in most papers


@dataclass(frozen=True)
class MediaNeeds:
    """The media in the requests of a task."""

    task: str
    videos: bool = False  # True if requests have videos
    pictures: int = 0  # the largest number in one request
    frames: frozenset[int] = frozenset()  # numbers of frames of its videos, if the protocol has any


def of(model: RunModel, needs: Sequence[MediaNeeds]) -> ClassPlan:
    """The plan of a run, for the model as the user named it.

    Raises:
        TasksError: no class of the model can take the media of the tasks.
    """
    interface = _interface(model, needs)
    lines: list[str] = []
    media = model_capabilities.media_of(model.name, interface)
    if media is not None and media.ours and not media.frames_argument:
        return ClassPlan(interface)
    if another := model_capabilities.of_another_host():
        lines.append(f"{model.name} ({interface}) may treat frames differently: {another}")
    if interface != model.interface:
        lines.append(
            f"{model.name}: using its {interface} class (as with "
            f"--force_simple), because the {model.interface} class "
            f"{_lacking(model, model.interface, needs)}"
        )
    video_tasks = [need.task for need in needs if need.videos]
    if media is None or media.none:
        if media and (video_tasks or any(need.pictures for need in needs)):
            none = f"{model.name} takes no videos or pictures: {media.none}"
            return ClassPlan(interface, lines=(*lines, none), short=(none,))
        return ClassPlan(interface, lines=tuple(lines))
    who, more = f"{model.name} ({interface})", f"lmms-eval-tasks models {model.name}"
    if media.broken:
        lines.append(f"{who} does not work as installed: {media.broken} ({more})")
    elif lacking := _lacking(model, interface, needs):
        raise TasksError(f"{who} {lacking}: leave these tasks out, or use another model ({more})")
    elif video_tasks and media.video_types:
        kind = checkpoint_type(model)
        if kind and kind not in media.video_types:
            raise TasksError(
                f"{who} passes no videos to checkpoints of the type {kind}, but "
                f"{', '.join(video_tasks)} have videos: use one of the type "
                f"{' or '.join(media.video_types)}, or another model"
            )
    as_pictures = not media.video and media.images
    if as_pictures and video_tasks:
        tasks = ", ".join(video_tasks)
        lines.append(f"{who} takes no videos: {tasks} pass {FRAMES} pictures of each video")
    arguments, set_, short = _frames(model, media, who, needs)
    # A request of another modality ends the run. Texts alone may pass as "image".
    shows = media.modality and any(need.videos or need.pictures for need in needs)
    modality = {need.task: "video" if need.videos else "image" for need in needs if shows}
    if modality:
        arguments["modality"] = next(iter(modality.values()))
        if {*modality.values()} - {model.arguments.get("modality")}:
            lines.append(f"{who}: modality is set for each task to what its requests hold")
    return ClassPlan(
        interface,
        arguments,
        as_pictures,
        pictures_as_videos=bool(media.video) and not media.image,
        reader=media.video if video_tasks else "",
        modality=modality,
        one_by_one=bool(media.mixes),
        lines=(*lines, *short, *set_),
        short=tuple(short),
    )


def checkpoint_type(model: RunModel) -> str:
    """The model_type (transformers) of a run's checkpoint; "" if its config cannot be read."""
    from transformers import AutoConfig

    name = model.arguments.get("pretrained") or model.arguments.get("model") or ""
    try:
        return str(AutoConfig.from_pretrained(str(name)).model_type)
    except (OSError, ValueError):  # no config, or one with code: the model's class will report it
        return ""


def _interface(model: RunModel, needs: Sequence[MediaNeeds]) -> Interface:
    """The interface to run: the user's, or "simple" if only that class takes the tasks' media."""
    mine, other = (
        model_capabilities.media_of(model.name, kind) for kind in (model.interface, "simple")
    )
    if model.interface == "simple" or not mine or mine.none or not other or not other.video:
        return model.interface
    alone = mine.broken or (not mine.video and any(one.videos for one in needs))
    return "simple" if alone and not _lacking(model, "simple", needs) else "chat"


def _lacking(model: RunModel, interface: Interface, needs: Sequence[MediaNeeds]) -> str:
    """The media of the tasks that a class cannot take, in words; "" if it takes all."""
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
    """The arguments on frames to set, lines on them, and lines on frames that do not arrive."""
    framed = [need for need in needs if need.videos and need.frames]
    if not framed or media.broken or media.video in ("", "server"):
        return {}, [], []
    tasks, argument = ", ".join(need.task for need in framed), media.frames_argument
    most = max(count for need in framed for count in need.frames)
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
        value = str(model.arguments[argument])
        line = f"{who}: {argument}={value}, and the videos of {tasks} have {most} frames"
        # 0 means all frames, for classes that accept it
        return {}, [], [line] if value.isdecimal() and 0 < int(value) < most else []
    by_rate, lines, default = media.fewer == "by rate", [], media.frames_default or 0
    enough = default == most or (default > most and (by_rate or media.fewer == "all"))
    arguments: dict[str, object] = {} if enough else {argument: most}
    whole = {k: v for k, v in media.whole.items() if k not in model.arguments}
    if whole and all(need.frames for need in needs if need.videos):
        arguments |= whole
    elif by_rate and len(whole) == len(media.whole):
        mend = f": to pass all of them, run {tasks} separately" if whole else ""
        lines.append(f"{who} takes {media.rate}: not all {most} frames of short videos{mend}")
    typed = ", ".join(f"{name}={value}" for name, value in arguments.items())
    set_ = (
        [f"{model.name}: {typed} set for {tasks}; to change it, pass your value in --model_args"]
        if arguments
        else []
    )
    return arguments, set_, lines


def whole(name: str, value: int | str) -> int:
    """Return a model's argument as an int, from a text or a number.

    Raises:
        TasksError: it is no whole number.
    """
    try:
        number = int(value)
    except (OverflowError, TypeError, ValueError):
        number = None
    if number is None or (isinstance(value, float) and value != number):
        raise TasksError(f"--model_args {name}={value}: expected a whole number")
    return number


def flag(name: str, value: bool | int | str) -> bool:
    """Return a model's argument as a bool; a text such as "no" would count as True.

    Raises:
        TasksError: it is neither a bool nor a text or number that stands for one.
    """
    text = str(value).lower()
    if text not in {"true", "1", "false", "0"}:
        raise TasksError(f"--model_args {name}={value}: expected True or False")
    return text in {"true", "1"}
