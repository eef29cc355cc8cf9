"""Positions of the text behind a video in models of transformers: checked and corrected.

Since transformers 5.3, `get_rope_index` of the families in FAMILIES starts this text at the larger
of a frame's height and width. That lies inside the video's own times if the video has more of them.
The models were trained with text that starts at the largest position of the video plus one.
"""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from lmms_eval_tasks import settings
from lmms_eval_tasks.models.host_types import ModelInstance
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils.conditions import Condition, Kind

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig

# Families (packages of transformers.models) that are known to follow this rule. It was read in
# their functions in transformers before 5.3, in vLLM's, and in the processor of ERNIE's authors.
FAMILIES = frozenset({"qwen2_vl", "qwen2_5_vl", "ernie4_5_vl_moe", "paddleocr_vl"})
# The probe is a video of 32 frames, two in each of 16 groups, as a video of 30 s has, with 4 x 4
# tokens for each group.
_GROUPS, _SIDE, _SECONDS = 16, 4, 2.0
_VIDEO = 2  # in `mm_token_type_ids`; 0 is text, 1 an image
_TEXT_TOKEN, _START_TOKEN, _VIDEO_TOKEN = -1, -2, -3  # used if the config names no tokens


_Positions: TypeAlias = Callable[..., "tuple[Tensor, Tensor]"]


class Positioned(Protocol):
    """A module of transformers that computes the positions of its tokens."""

    config: PretrainedConfig
    get_rope_index: _Positions


class Start(NamedTuple):
    """The position of the text behind the probe in a model."""

    family: str  # the package of transformers.models that computes the position, or another module
    largest: int  # largest position of the video
    text: int  # position of the first token behind the video
    times: int = _GROUPS  # number of different times of the 16 groups of frames

    @property
    def has_times(self) -> bool:
        """False if several groups of frames have one time (transformers 5.3)."""
        return self.times >= _GROUPS

    @property
    def is_off(self) -> bool:
        """True if the text starts inside the video, or the video has no times."""
        return self.text <= self.largest or not self.has_times

    @property
    def line(self) -> str:
        """The positions or times that the model computes, as a line."""
        how = f"transformers {importlib.metadata.version('transformers')} ({self.family})"
        if not self.has_times:
            return f"{how} gives {_GROUPS} groups of frames {self.times} different times"
        return (
            f"{how} starts the text behind a video of 32 frames at position {self.text}, inside "
            f"the video, which ends at {self.largest}"
        )


def start(model: Positioned) -> Start | None:
    """Return the position at which a model puts the text behind a video of 32 frames.

    Args:
        model: a module with `get_rope_index` and its checkpoint's config. Its weights are not used
            and may be on the device "meta".

    Returns:
        None if its function takes no videos as grids, or expects another layout of tokens.
    """
    takes = inspect.signature(model.get_rope_index).parameters
    vision = getattr(getattr(model, "config", None), "vision_config", None)
    if "video_grid_thw" not in takes or vision is None:
        return None
    # A model of the second layout raises an error for the first.
    for layout in (_frame_by_frame, _whole):
        try:
            positions, is_video = _probed(model, takes, vision, layout)
        except Exception:  # noqa: S112 - each raises errors of its own at another's layout
            continue
        last = int(is_video.nonzero().max())
        largest, text = int(positions[:, is_video].max()), int(positions[:, last + 1].max())
        return Start(_family(model), largest, text, len(positions[0, is_video].unique()))
    return None


def _whole(video: int) -> list[int]:
    """Return the kinds of the probe's tokens: text, the whole video, text."""
    return [0] * 4 + [_VIDEO] * video * _GROUPS + [0] * 4


def _frame_by_frame(video: int) -> list[int]:
    """Return the kinds of the probe's tokens if texts, such as times, stand between frames."""
    return [*([0] * 4 + [_VIDEO] * video) * _GROUPS, *[0] * 4]


def _probed(
    model: Positioned,
    takes: Collection[str],
    vision: PretrainedConfig,
    layout: Callable[[int], list[int]],
) -> tuple[Tensor, Tensor]:
    """Return the positions of the probe's tokens (axes x tokens), and a mask of the video's."""
    import torch

    merge = vision.spatial_merge_size
    times = _GROUPS * getattr(vision, "temporal_merge_size", 1)
    kinds = torch.tensor([layout(_SIDE * _SIDE)])
    is_video = kinds == _VIDEO
    begins = torch.zeros_like(is_video)  # the token before each video, or frame
    begins[:, :-1] = is_video[:, 1:] & ~is_video[:, :-1]
    tokens = torch.full_like(kinds, _TEXT_TOKEN)
    tokens[is_video] = getattr(model.config, "video_token_id", _VIDEO_TOKEN)
    tokens[begins] = getattr(model.config, "vision_start_token_id", _START_TOKEN)
    given = {
        "input_ids": tokens,
        "attention_mask": torch.ones_like(tokens),
        "video_grid_thw": torch.tensor([[times, _SIDE * merge, _SIDE * merge]]),
        "mm_token_type_ids": kinds,
        "second_per_grid_ts": torch.tensor([_SECONDS]),
        "second_per_grids": torch.tensor([_SECONDS]),
    }
    positions, _ = model.get_rope_index(**{k: v for k, v in given.items() if k in takes})
    return positions[:, 0], is_video[0]


def _family(model: Positioned) -> str:
    """Return the package of transformers.models whose function computes a model's positions."""
    module = str(getattr(model.get_rope_index, "__module__", ""))
    before, _, name = module.partition("transformers.models.")
    return module if before or not name else name.partition(".")[0]


# --- the right rule -------------------------------------------------------------------------------


@contextmanager
def right(lm: ModelInstance) -> Iterator[list[Condition]]:
    """Correct the position of the text behind a video while the context lasts.

    `--model-positions installed` leaves the model as it is. A family whose rule is not known also
    stays. Yields the conditions of the numbers, which are empty if the model's positions are right.
    """
    found = []
    with ExitStack() as stack:
        for model in models_of(lm):
            if (one := start(model)) is None or not one.is_off:
                continue
            found.append(_condition(one))
            notify(found[-1].text)
            if is_put_right(one):
                model.get_rope_index = behind_videos(model.get_rope_index)
                stack.callback(delattr, model, "get_rope_index")
        yield found


def is_put_right(start: Start) -> bool:
    """Return True if runs with our tasks replace the installed rule with the right one."""
    known = start.family in FAMILIES and start.has_times
    return known and settings.value(settings.MODEL_POSITIONS) == "right"


def position_line(start: Start) -> str:
    """Return the line on wrong positions: the installed ones, and whether a run corrects them."""
    if is_put_right(start):
        return f"{start.line}: put right, at {start.largest + 1}"
    return f"{start.line}: as installed"


def _condition(start: Start) -> Condition:
    return Condition(Kind.MENDED if is_put_right(start) else Kind.POSITIONS, position_line(start))


def models_of(lm: ModelInstance) -> Sequence[Positioned]:
    """Return the modules of lmms-eval's model that compute positions, each once."""
    from torch.nn import Module

    held = [one for one in getattr(lm, "__dict__", {}).values() if isinstance(one, Module)]
    modules = chain.from_iterable(one.modules() for one in held)
    return list(dict.fromkeys(one for one in modules if hasattr(one, "get_rope_index")))


def behind_videos(positions_of: _Positions) -> _Positions:
    """Return `get_rope_index` by the right rule: text starts at a video's largest position + 1.

    If the installed function follows the rule, the result is the same, bit for bit.
    """
    signature = inspect.signature(positions_of)

    @functools.wraps(positions_of)
    def get_rope_index(*args: object, **kwargs: object) -> tuple[Tensor, Tensor]:
        given = signature.bind(*args, **kwargs).arguments
        positions, deltas = positions_of(*args, **kwargs)
        return moved(positions, deltas, given["mm_token_type_ids"], given.get("attention_mask"))

    return get_rope_index


def moved(
    positions: Tensor, deltas: Tensor, kinds: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return positions in which each run of one kind of token starts behind the run before it.

    Args:
        positions: axes x rows x tokens.
        deltas: rows x 1: the difference between a generated token's position and its number.
        kinds: rows x tokens: 0 for text, 1 for an image, 2 for a video.
        mask: rows x tokens: 0 for padding; None if there is none.

    Returns:
        Positions and deltas of the same shapes. A run that already starts behind the run before it
        moves only with that run.
    """
    import torch

    positions, deltas = positions.clone(), deltas.clone()
    for row, all_kinds in enumerate(kinds):
        kept = torch.ones_like(all_kinds) if mask is None else mask[row].to(all_kinds.device)
        kept = kept.bool()
        own, of = positions[:, row, kept], all_kinds[kept]
        changes = (torch.nonzero(of[1:] != of[:-1]).flatten() + 1).tolist()
        largest, by = own.max(), 0
        for begin, end in pairwise([0, *changes, len(of)]):
            if begin:
                behind = int(own[:, :begin].max()) + 1
                by += max(0, behind - by - int(own[:, begin:end].min()))
            own[:, begin:end] += by
        deltas[row] += own.max() - largest
        positions[:, row, kept] = own
    return positions, deltas


# --- for the command `doctor` ---------------------------------------------------------------------


def starts_of(checkpoint: Path) -> list[Start]:
    """Return the positions where a checkpoint's model puts the text behind a video, by its config.

    Empty if transformers lacks the model's class, or the class computes no such positions.
    """
    import torch
    import transformers
    from transformers.models.auto import modeling_auto

    told, _ = transformers.PretrainedConfig.get_config_dict(checkpoint)
    # Qwen2.5-Omni's file names a class that transformers does not have, and some files name none.
    by_kind = getattr(modeling_auto, "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES", {})
    names = [*(told.get("architectures") or ()), by_kind.get(told.get("model_type"))]
    classes = (getattr(transformers, str(name), None) for name in names)
    if (built := next(filter(None, classes), None)) is None:
        return []
    with torch.device("meta"):
        model = built._from_config(built.config_class.from_pretrained(checkpoint))
    found = (start(one) for one in model.modules() if hasattr(one, "get_rope_index"))
    return list(dict.fromkeys(one for one in found if one is not None))
