"""The recipes of leaderboards/recipes: a file for lmms-eval's `--config` per published model."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.context import RunModel
from lmms_eval_tasks.models import model_capabilities
from lmms_eval_tasks.models.model_capabilities import Strict
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.released_files import read_yaml

VLLM = "tasks_vllm"  # our class over vLLM
IN_FLIGHT = 256  # requests that vLLM runs at once on most GPUs (its max_num_seqs)


class TaskWorkload(Strict):
    """A task's docs, and one of them on average (data.yaml): seconds, tokens, counts."""

    docs: int
    clips: int = 0  # number of different videos; 0: each doc has its own
    text: float  # tokens of the prompt's text
    reply: float
    video: float = 0  # seconds
    sound: float = 0  # seconds
    pictures: float = 0
    calls: float = 0  # requests to the judge
    asked: float = 0  # tokens of a request to the judge
    told: float = 0  # tokens of the judge's reply
    frames: int = 0  # frames of a video, if the protocol fixes them


class ModelFacts(Strict):
    """A model (models.yaml): 0 billions of parameters is one that a server has."""

    billions: float = 0  # billions of parameters that a token passes through
    gpus: int = 1  # of 80 GB
    frame: int = 0  # tokens of a video's frame
    picture: int | None = None  # tokens of a picture; None: the same as a frame
    second: int = 0  # tokens of a second of an uploaded video, in place of frames
    sound: int = 0  # tokens of a second
    thinks: int = 0  # tokens of reasoning before a reply
    input: float | None = None  # dollars per million tokens; None: not known
    output: float | None = None


class _VllmForm(Strict):
    """A recipe by vLLM (vllm.yaml)."""

    batch_size: int
    model_args: str
    differs: str = ""


class RowRecipe(NamedTuple):
    """The recipe that makes a published row again."""

    path: Path
    model: RunModel
    tasks: list[str]  # tasks and groups, in lmms-eval's names
    settings: Mapping[str, str]  # this package's settings, by variable
    batch: int  # requests that the class gets together, or that its engine runs at once
    options: tuple[str, ...] = ()  # options of the command that override the file
    differs: str = ""  # how the model's input differs from that of the file

    @property
    def checkpoint(self) -> str:
        """The model's name; several, separated by commas, for a class that takes several."""
        return checkpoint_of(self.model)


CHECKPOINT = ("pretrained", "model", "model_version")  # arguments that name a checkpoint


def checkpoint_of(model: RunModel) -> str:
    """The name of a run's checkpoint; several, separated by commas, for a class that takes several.

    It is "" if the model arguments name none.
    """
    given = (model.arguments.get(name) for name in CHECKPOINT)
    return str(next(filter(None, given), ""))


def slug(identity: str) -> str:
    """The name of a model's recipe file; a file may add further words (`gpt_4o_judge`)."""
    return re.sub(r"[^a-z0-9]+", "_", identity.rpartition("/")[2].lower()).strip("_")


def of(benchmark: str) -> list[RowRecipe]:
    """The recipes of a benchmark, in the order of their names."""
    return [_read(path) for path in sorted(_folder().joinpath(benchmark).glob("*.yaml"))]


def made_with(model: str) -> list[RowRecipe]:
    """The recipes of all benchmarks with this model of lmms-eval."""
    folders = sorted({path.parent.name for path in _folder().glob("*/*.yaml")})
    return [one for folder in folders for one in of(folder) if one.model.name == model]


def missing(benchmark: str) -> Mapping[str, str]:
    """The published models without a recipe: the reason, by the model's identity."""
    reasons: Mapping[str, str] = _stored("missing").get(benchmark, {})
    return reasons


def on_vllm(recipe: RowRecipe) -> RowRecipe | str:
    """The recipe for `tasks_vllm`, our class over vLLM; or a sentence on why there is none."""
    if recipe.model.name == VLLM:
        return recipe
    if not facts(recipe.checkpoint).billions:
        return "the model is on a server"
    name = recipe.path.stem
    stored = _stored("vllm")[recipe.path.parent.name][name]
    if isinstance(stored, str):
        return stored
    form = _VllmForm.model_validate(stored)
    # A folder beside the recipe's, whose replies stay.
    output = f"{read_yaml(recipe.path, 'options of lmms_eval')['output_path']}_vllm"
    options = {"model": VLLM, "model_args": form.model_args, "batch_size": str(form.batch_size)}
    return recipe._replace(
        model=RunModel(VLLM, "chat", _arguments(form.model_args)),
        batch=form.batch_size,
        options=tuple(
            word
            for option, value in {**options, "output_path": output}.items()
            for word in (f"--{option}", value)
        ),
        differs=form.differs,
    )


def facts(checkpoint: str) -> ModelFacts:
    """The facts about a checkpoint; for several (by commas), with the sum of their parameters.

    A folder counts as the checkpoint of the same name.

    Raises:
        KeyError: a checkpoint has no facts.
    """
    known = _stored("models")
    by_folder = {name.rpartition("/")[2]: one for name, one in known.items()}
    each = [
        ModelFacts.model_validate(known[name] if name in known else by_folder[Path(name).name])
        for name in checkpoint.split(",")
    ]
    return each[0].model_copy(update={"billions": sum(one.billions for one in each)})


def work(task: str) -> TaskWorkload:
    """The workload of a task on the published data.

    Raises:
        KeyError: data.yaml does not have the task.
    """
    return TaskWorkload.model_validate(_stored("data")[task])


def _folder() -> Path:
    with as_file(files(leaderboards) / "recipes") as folder:
        return Path(folder)


@functools.cache
def _stored(name: str) -> Mapping[str, Json]:
    return read_yaml(_folder() / f"{name}.yaml", "a mapping")


def _read(path: Path) -> RowRecipe:
    given = read_yaml(path, "options of lmms_eval")
    entry = (
        model_capabilities.capability_table().model(given["model"])
        or model_capabilities.ModelEntry()
    )
    kinds = [kind for kind, _ in entry.classes()]
    interface = "chat" if "chat" in kinds and not given.get("force_simple") else "simple"
    said = {name: str(value) for name, value in given.get("env", {}).items()}
    arguments = _arguments(given["model_args"])
    model = RunModel(given["model"], interface, arguments)  # type: ignore[arg-type]
    return RowRecipe(path, model, given["tasks"].split(","), said, int(given["batch_size"]))


def _arguments(model_args: str) -> dict[str, str]:
    """Return the model arguments by name; a value may hold commas (several models of lm_pairs)."""
    return dict(re.findall(r"(\w+)=(.*?)(?=,\w+=|$)", model_args))
