"""One of the host's model classes with a tiny checkpoint, in this process: what arrived of a task.

asked     frames or pictures that the task hands over
arrived   how many the vision tower got
distinct  how many different ones of them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from lmms_eval_tasks.host import plugin
from tests.classes import coded, families, tower

CPU = {"device": "cpu", "device_map": "cpu"}
Outcome = Any  # [asked, arrived, distinct], with an error as a fourth; or only an error, a text


class Row(NamedTuple):
    """A class with a checkpoint, and what is expected of it.

    Attributes:
        model, interface: as in classes.json.
        family: of families/.
        tasks: an outcome for each task. Of an error the words that it has to begin with: its type
            and some more, or `model_error` and what the host logged.
        arguments: beside `pretrained` and CPU; null takes one of these away.
        needs: whether a module has to be installed, or has to be missing.
    """

    model: str
    interface: str
    family: str
    tasks: dict[str, Outcome]
    arguments: dict[str, Any] = {}  # noqa: RUF012 - never changed
    needs: dict[str, bool] = {}  # noqa: RUF012

    @property
    def name(self) -> str:
        given = [f"{name}={value}" for name, value in self.arguments.items()]
        given += [f"{'with' if there else 'without'} {name}" for name, there in self.needs.items()]
        return " ".join([self.model, self.interface, self.family, *given])

    @property
    def missing(self) -> list[str]:
        """What is not as the row needs it."""
        return [one for one, there in self.needs.items() if (find_spec(one) is not None) != there]


@cache
def manager() -> Any:
    """The host's task manager with our tasks alone: its own take seconds to read."""
    from lmms_eval.tasks import TaskManager

    paths = [str(folder) for folder in plugin._folders()]
    return TaskManager(include_path=paths, include_defaults=False)


def measured(row: Row, checkpoints: Path, tasks: Sequence[str]) -> dict[str, Outcome]:
    """What arrived of the first doc of each task; those that fail have a run of their own."""
    together = [task for task in tasks if len(row.tasks[task]) == 3]
    alone = [[task] for task in tasks if task not in together]
    checkpoint = families.build(row.family, checkpoints)
    found: dict[str, Outcome] = {}
    for asked in ([together] if together else []) + alone:
        found |= _run(row, checkpoint, asked)
    return {task: found[task] for task in tasks}


def _run(row: Row, checkpoint: Path, tasks: list[str]) -> dict[str, Outcome]:
    from lmms_eval.evaluator import simple_evaluate

    given = {"pretrained": checkpoint, **CPU, **row.arguments}
    elsewhere = _as_elsewhere(checkpoint) if "omni" in row.model else nullcontext()
    with tower.watched(*families.own_generate(row.family)) as requests, elsewhere:
        try:
            results = simple_evaluate(
                model=row.model,
                model_args=",".join(f"{k}={v}" for k, v in given.items() if v is not None),
                tasks=list(tasks),
                task_manager=manager(),
                limit=1,
                batch_size=1,
                force_simple=row.interface == "simple",
                gen_kwargs="max_new_tokens=2",
                bootstrap_iters=0,
            )
        except Exception as error:
            return dict.fromkeys(tasks, f"{type(error).__name__}: {error}")
    by_task = {one.task: one for one in requests}
    assert len(by_task) == len(requests) <= len(tasks)
    found: dict[str, Outcome] = {}
    for task in tasks:
        (sample,) = results["samples"][task]
        item = sample["failed"]  # any metric's
        failed = item["status"] == "model_error"
        counted = _counted(by_task[task], checkpoint) if task in by_task else []
        found[task] = [*counted, *([f"model_error: {item['reply']}"] if failed else [])]
    return found


@contextmanager
def _as_elsewhere(checkpoint: Path) -> Iterator[None]:
    """Two things that are not here: processors of the hub, and a GPU for a class's inputs.

    Qwen's Omni classes ask for both whatever they are told. Their processor is the checkpoint's.
    """
    from transformers import BatchFeature, ProcessorMixin

    load, move = ProcessorMixin.from_pretrained.__func__, BatchFeature.to

    def from_pretrained(cls: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        return load(cls, name if Path(name).exists() else checkpoint, *args, **kwargs)

    def to(self: Any, place: Any = None, *args: Any, **kwargs: Any) -> Any:
        return (
            self if place == "cuda" else move(self, *[place][: place is not None], *args, **kwargs)
        )

    with (
        patch.object(ProcessorMixin, "from_pretrained", classmethod(from_pretrained)),
        patch.object(BatchFeature, "to", to),
    ):
        yield


def _counted(request: tower.Request, checkpoint: Path) -> list[int]:
    """[asked, arrived, distinct] of a request.

    Raises:
        AssertionError: a coded picture cannot be read, is of another doc or stands at another
            place; or of several, they are not from the first to the last that was handed over.
    """
    handed = [one for visual in request.visuals for one in coded.pictures(visual)]
    arrived = tower.pictures(request.tensors, _processor(checkpoint))
    wanted, read = ([coded.number(one) for one in pictures] for pictures in (handed, arrived))
    if None in wanted:  # a released video
        return [len(handed), len(arrived), len({picture.tobytes() for picture in arrived})]
    assert None not in read, read
    assert read == sorted(read, key=wanted.index), (wanted, read)  # and all of them are wanted ones
    assert len(read) < 2 or {read[0], read[-1]} == {wanted[0], wanted[-1]}, (wanted, read)
    return [len(wanted), len(read), len({*read})]


@cache
def _processor(checkpoint: Path) -> Any:
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(checkpoint)


def expected(row: Row, found: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """What the row says of these tasks; an error that begins as it says is given whole."""

    def whole(told: Outcome, own: Outcome) -> Outcome:
        if isinstance(told, list) and isinstance(own, list) and len(told) == len(own):
            return [whole(one, two) for one, two in zip(told, own, strict=True)]
        both = isinstance(told, str) and isinstance(own, str)
        return own if both and own.startswith(told) else told

    return {task: whole(row.tasks[task], own) for task, own in found.items()}
