"""What a run sets for its model's class, and what it says or refuses, before the model is loaded.

The tasks say what they hand over (`Needs`), the table of classes what a class takes: where the two
differ, the class's own arguments are set, or what is handed over takes another form. Whatever the
user set stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval_tasks import running
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.running import Model, class_table
from lmms_eval_tasks.running.class_table import Interface, Media, Nothing

FRAMES = 32  # of a video that goes as pictures: MAIA's number, and what most papers give


@dataclass(frozen=True)
class Needs:
    """What the requests of a task hold.

    Attributes:
        task: its name.
        videos: whether there are videos in them.
        pictures: the most pictures in one; 0 is none.
        frames: how many its videos have, where the protocol says how many a model should see.
    """

    task: str
    videos: bool = False
    pictures: int = 0
    frames: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Plan:
    """What is done for a run's class.

    Attributes:
        interface: which of the model's classes runs.
        arguments: of `--model_args`, beside the user's.
        videos_as_pictures: videos go as pictures, FRAMES of each.
        pictures_as_videos: a single picture goes as a video that shows nothing else.
        reader: what reads videos in the class (class_table.Media.video), "" if it is given none.
        modality: by task, for a class whose `modality` says what all of its requests hold.
        one_by_one: requests go to the class one at a time.
        told: lines for the user.
    """

    interface: Interface
    arguments: Mapping[str, Any] = field(default_factory=dict)
    videos_as_pictures: bool = False
    pictures_as_videos: bool = False
    reader: str = ""
    modality: Mapping[str, str] = field(default_factory=dict)
    one_by_one: bool = False
    told: tuple[str, ...] = ()


def of(model: Model, needs: Sequence[Needs]) -> Plan:
    """The plan of a run.

    Args:
        model: as the user named it.
        needs: of its tasks.

    Raises:
        TasksError: no class of the model can take what the tasks hand over, or an argument of the
            user's ends the run.
    """
    interface = _interface(model, needs)
    media = class_table.media_of(model.name, interface)
    if media is not None and media.ours and not getattr(media, "frames_argument", None):
        return Plan(interface)
    told = []
    if changed := class_table.changed(model.name, interface):
        told.append(f"{model.name} ({interface}): what it does with frames is not known: {changed}")
    if interface != model.interface:
        told.append(
            f"{model.name}: its {interface} class is taken (as with --force_simple): the "
            f"{model.interface} one {_lacking(model, model.interface, needs)}"
        )
    if isinstance(media, Nothing) and _shown(needs):
        told.append(f"{model.name} takes no videos or pictures: {media.none}")
    if not isinstance(media, Media):
        return Plan(interface, told=tuple(told))
    who = f"{model.name} ({interface})"
    more = f"lmms-eval-tasks models {model.name}"
    if media.broken:
        told.append(f"{who} does not work as it is: {media.broken} ({more})")
    elif lacking := _lacking(model, interface, needs):
        raise TasksError(f"{who} {lacking}: leave these tasks out, or take another model ({more})")
    elif shown := [one.task for one in needs if one.videos and media.video_types]:
        kind = running.checkpoint_type(model)
        if kind and kind not in media.video_types:
            raise TasksError(
                f"{who} gives no videos to checkpoints of the type {kind}, and {_listed(shown)} "
                f"hand them over: take one of the type {' or '.join(media.video_types)}, or "
                "another model"
            )
    arguments, lines = _frames(model, media, who, needs)
    videos_as_pictures = not media.video and media.images
    if videos_as_pictures and (tasks := [one.task for one in needs if one.videos]):
        told.append(f"{who} takes no videos: {_listed(tasks)} hand over {FRAMES} pictures of each")
    modality = _modality(media, needs)
    if modality:
        arguments["modality"] = next(iter(modality.values()))
        if {*modality.values()} - {model.arguments.get("modality")}:
            told.append(f"{who}: modality is set to what each task hands over")
    return Plan(
        interface,
        arguments,
        videos_as_pictures,
        pictures_as_videos=bool(media.video) and not media.image,
        reader=media.video if any(one.videos for one in needs) else "",
        modality=modality,
        one_by_one=bool(media.mixes),
        told=(*told, *lines),
    )


def _modality(media: Media, needs: Iterable[Needs]) -> dict[str, str]:
    """By task, where the class asks for it: with another one its requests end the run."""
    if not media.modality:
        return {}
    return {one.task: "video" if one.videos else "image" for one in needs if _shown([one])}


def _interface(model: Model, needs: Sequence[Needs]) -> Interface:
    """The user's, or the simple class where only that one takes what the tasks hand over."""
    other = class_table.media_of(model.name, "simple")
    if model.interface == "chat" and isinstance(other, Media):
        mine = class_table.media_of(model.name, "chat")
        native = isinstance(mine, Media) and (mine.video or not any(one.videos for one in needs))
        alone = isinstance(mine, Media) and (not native or mine.broken)
        if alone and other.video and not _lacking(model, "simple", needs):
            return "simple"
    return model.interface


def _lacking(model: Model, interface: Interface, needs: Sequence[Needs]) -> str:
    """What a class cannot take of what tasks hand over; "" if it takes all."""
    media = class_table.media_of(model.name, interface)
    if not isinstance(media, Media):
        return ""
    if media.broken:
        return f"does not work: {media.broken}"
    if found := [one.task for one in needs if one.videos and not media.video and not media.images]:
        return f"takes no videos, which {_listed(found)} hand over"
    if found := [one.task for one in needs if one.pictures > 1 and not media.images]:
        kind = "one picture alone" if media.image else "no pictures"
        return f"takes {kind} in a request, and {_listed(found)} hand over several"
    return ""


def _frames(
    model: Model, media: Media, who: str, needs: Sequence[Needs]
) -> tuple[dict[str, Any], list[str]]:
    """The argument for frames that is set, and what is said of it."""
    by_task = {one.task: one.frames for one in needs if one.videos and one.frames}
    counts = sorted(set().union(*by_task.values()))
    if not counts or media.broken or media.video in ("", "server"):
        return {}, []
    argument, tasks = media.frames_argument, _listed(by_task)
    most = counts[-1]
    if argument is None:
        taken = media.rate or f"{media.frames_default or 'a number not known of'} frames"
        return {}, [
            f"{who} takes {taken}, and no argument changes it; the videos of {tasks} have {most}"
        ]
    apart = f"run the tasks, or videos, with {' and '.join(map(str, counts))} frames apart"
    if argument in model.arguments:
        return {}, _of_the_user(str(model.arguments[argument]), media, who, by_task, apart)
    told = []
    if len(counts) > 1 and media.fewer == "raises":
        raise TasksError(f"{who} takes videos of one number of frames only: {apart}")
    if len(counts) > 1 and media.fewer not in ("all", "by rate"):
        told = [f"{who} {media.fewer} frames of videos that have fewer than others: {apart}"]
    default = media.frames_default or 0
    enough = default == most or (default > most and media.fewer in ("all", "by rate"))
    made: dict[str, Any] = {} if enough else {argument: most}
    whole = {k: v for k, v in media.whole.items() if k not in model.arguments}
    if whole and all(one.frames for one in needs if one.videos):
        made |= whole
    elif media.fewer == "by rate" and media.whole.keys() <= whole.keys():
        mend = f": run {tasks} apart for all of them" if whole else ""
        told.append(f"{who} takes {media.rate}: not all {most} frames of short videos{mend}")
    if made:
        shown = ", ".join(f"{name}={value}" for name, value in made.items())
        told.append(f"{model.name}: {shown} set for {tasks}; say another to override")
    return made, told


def _of_the_user(
    given: str, media: Media, who: str, by_task: Mapping[str, frozenset[int]], apart: str
) -> list[str]:
    """What is said of the number of frames that the user gives, which stands."""
    counts, tasks, argument = (
        set().union(*by_task.values()),
        _listed(by_task),
        media.frames_argument,
    )
    if not given.isdecimal():
        return []
    if media.fewer == "raises" and int(given) > min(counts):
        raise TasksError(
            f"{argument}={given}: {who} fails on videos with fewer frames than it asks for, and "
            f"those of {tasks} have {min(counts)}: pass {argument}={min(counts)}"
            + (f", and {apart}" if len(counts) > 1 else "")
        )
    # 0 is "all" where it is a number at all.
    if 0 < int(given) < max(counts):
        return [f"{who}: {argument}={given}, and the videos of {tasks} have {max(counts)} frames"]
    return []


def _shown(needs: Iterable[Needs]) -> bool:
    return any(one.videos or one.pictures for one in needs)


def _listed(tasks: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(tasks))
