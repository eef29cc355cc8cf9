"""The commands that reproduce a paper's rows (from recipes), and their estimated costs.

Numbers of requests, texts, media and the judge's tokens are the published ones
(leaderboards/recipes/data.yaml), whatever data the user has. runs/estimate.py counts.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.judges.report import dollars
from lmms_eval_tasks.models import recipes
from lmms_eval_tasks.models.recipes import RowRecipe
from lmms_eval_tasks.runs import estimate
from lmms_eval_tasks.runs.estimate import Cost

ROOM = 2  # a job's time limit, as a multiple of the longest estimate

Engine = Literal["vllm"]


def script_lines(benchmark: str, *, slurm: bool, engine: Engine | None = None) -> Iterator[str]:
    """Yield the commands of a benchmark's recipes with estimates: a shell script, or a job array.

    Args:
        benchmark: the benchmark's name.
        slurm: True for a job array.
        engine: use only recipes that this engine can run, in the engine's form; comments give the
            reason for the others.

    Raises:
        TasksError: there are no recipes, or the judge's settings are wrong.
    """
    chosen = stored = recipes.of(benchmark)
    refused: dict[str, str] = {}
    if engine is not None:
        forms = {one.path.stem: recipes.on_vllm(one) for one in chosen}
        refused = {name: one for name, one in forms.items() if isinstance(one, str)}
        chosen = [one for one in forms.values() if isinstance(one, RowRecipe)]
    without = [f"# {name} cannot run with {engine}: {why}" for name, why in refused.items()]
    if not chosen:
        of_engine = f" with {engine}" if engine else ""
        where = f"no recipes for {benchmark}{of_engine} in leaderboards/recipes"
        raise TasksError("\n".join([where, *(line.removeprefix("# ") for line in without)]))
    each = list(map(cost, chosen))
    if slurm:
        yield from _directives(benchmark, each)
    yield from (f"# {line}" for line in _headed(benchmark, chosen, each))
    if engine is not None:
        hours = {one.name: one.hours or 0 for one in map(cost, stored)}
        lost = sum(hours[name] for name in refused)
        yield (
            "# By the recipes' own classes these are about "
            f"{sum(hours.values()) - lost:,.1f} hours, and those that cannot "
            f"run with it {lost:,.1f}."
        )
    jobs = [(_told(*one), _command(one[0])) for one in zip(chosen, each, strict=True)]
    yield from _array(jobs) if slurm else _script(jobs)
    yield from without
    for name, why in recipes.missing(benchmark).items():
        yield f"# no recipe for {name}: {why}"


def _told(recipe: RowRecipe, cost: Cost) -> list[str]:
    return [str(cost), *([f"differs from the paper: {recipe.differs}"] if recipe.differs else [])]


def _command(recipe: RowRecipe) -> str:
    whole, here = recipe.path.resolve(), Path.cwd()
    shown = whole.relative_to(here) if whole.is_relative_to(here) else whole
    return shlex.join(["lmms_eval", "--config", str(shown), *recipe.options])


def _headed(
    benchmark: str, row_recipes: Sequence[RowRecipe], each: Sequence[Cost]
) -> Iterator[str]:
    hours = sum(one.hours or 0 for one in each)
    yield (
        f"{benchmark}: {len(each)} recipes, about {hours:,.1f} hours of A100s, "
        f"{_summed([one.dollars for one in each])} for the models' servers and "
        f"{_summed([one.judge.cost for one in each])} for the judge "
        f"({run.current().prices.origin})."
    )
    yield "Counts are the published ones (leaderboards/recipes/data.yaml), as of `estimate`."
    yield f"GPU hours: {estimate.FORMULA}"
    if any(one.model.name == recipes.VLLM for one in row_recipes):
        yield (
            f"With {recipes.VLLM}: media shared by several questions are "
            "computed once (MAIA: 192 pairs and 24 questions a video; of 192 "
            "prompts on one clip vLLM 0.32 for CPUs cached 94.2%, and this "
            "formula says 94.2%), and a batch shares the weights: "
            f"{', '.join(sorted({str(one.batch) for one in row_recipes}, key=int))} "
            "requests. The estimate leaves out loading, vision encoders and "
            "the engine's work per request, which may take most of the time."
        )


def _summed(each: Sequence[float | None]) -> str:
    known = [one for one in each if one is not None]
    unknown = len(each) - len(known)
    return dollars(sum(known)) + (f" and {unknown} unknown prices" if unknown else "")


def _script(jobs: Sequence[tuple[Sequence[str], str]]) -> Iterator[str]:
    for told, command in jobs:
        yield from ("", *(f"# {line}" for line in told), command)
    yield ""


def _directives(benchmark: str, each: Sequence[Cost]) -> Iterator[str]:
    """Yield the head of a job array, which Slurm reads up to the first command."""
    hours, most = math.ceil(ROOM * max(one.wall for one in each)), max(one.gpus for one in each)
    yield "#!/bin/bash"
    yield f"#SBATCH --job-name={benchmark}"
    yield f"#SBATCH --array=0-{len(each) - 1}"
    yield f"#SBATCH --output={benchmark}-%a.log"
    yield f"#SBATCH --time={max(1, hours) // 24}-{max(1, hours) % 24:02}:00:00"
    if most:
        yield f"#SBATCH --gres=gpu:{most}"
    yield f"# Each job has {ROOM} times the longest estimate and the largest model's GPUs;"
    yield "# with its own number of them, in place of `sbatch FILE`:"
    for gpus in sorted({one.gpus for one in each}):
        own = ",".join(str(number) for number, one in enumerate(each) if one.gpus == gpus)
        served = f"bash FILE N, for N in {own}: models on a server; no GPU"
        yield f"#   {f'sbatch --array={own} --gres=gpu:{gpus} FILE' if gpus else served}"


def _array(jobs: Sequence[tuple[Sequence[str], str]]) -> Iterator[str]:
    yield from ("set -euo pipefail", 'case "${SLURM_ARRAY_TASK_ID:-${1:?which recipe}}" in')
    for number, (told, command) in enumerate(jobs):
        yield from (f"{number})", *(f"  # {line}" for line in told), f"  {command}", "  ;;")
    yield from ('*) echo "no such recipe" >&2; exit 2 ;;', "esac")


def cost(recipe: RowRecipe) -> Cost:
    """Return the cost of a recipe on the published data, as `estimate` counts without data.

    Raises:
        TasksError: the judge's settings are wrong.
    """
    with settings.use_options(recipe.settings):
        each = [
            estimate.estimate(task, recipe.model, recipe.batch, published=True)
            for task in registry.selected(recipe.tasks)
        ]
    return estimate.sum_costs(each, recipe.path.stem)
