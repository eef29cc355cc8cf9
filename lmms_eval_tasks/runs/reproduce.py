"""The commands that reproduce a paper's rows (from recipes), and their estimated costs.

Numbers of requests, texts, media and the judge's tokens are the published ones
(leaderboards/recipes/data.yaml), whatever data the user has. A GPU computes a prompt with 2
operations for each parameter and token. It reads all weights for each token of a reply. Both run at
a share of the figures on an A100's data sheet.

With vLLM (`tasks_vllm`), media before several questions are computed once, a batch shares one
reading of the weights, and all GPUs of a model work at the same time. With other classes, one
request follows another, and GPUs take turns on a model's layers. Vision towers, loading, the
engine's overhead and waiting are left out. None of these estimates was ever measured on a GPU.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.judges.config import KEY
from lmms_eval_tasks.judges.costs import CostEstimate, default_rate
from lmms_eval_tasks.judges.prices import Price
from lmms_eval_tasks.judges.report import dollars, duration, price
from lmms_eval_tasks.models import model_capabilities, recipes
from lmms_eval_tasks.models.plan import FRAMES
from lmms_eval_tasks.models.recipes import ModelFacts, RowRecipe, TaskWorkload
from lmms_eval_tasks.runs import prepare

OPERATIONS = 312e12  # operations a second of an A100, dense bfloat16
BANDWIDTH = 2.0e12  # bytes a second of an A100's 80 GB memory
SHARE = 0.4  # share of both that a run reaches, a guess
BYTES = 2  # bytes of a parameter
ROOM = 2  # a job's time limit, as a multiple of the longest estimate

Engine = Literal["vllm"]


class Cost(NamedTuple):
    """The cost of a recipe; dollars are None if a price is unknown."""

    name: str
    requests: int
    prompt: int  # tokens of the prompts, including media
    cached: int  # prompt tokens that an engine has from an earlier question on the same media
    reply: int  # tokens of the replies
    hours: float  # GPU hours
    gpus: int  # GPUs at a time; 0 if the model is on a server
    dollars: float | None  # price of the model's server
    calls: int  # requests to the judge
    judge: float | None  # price of the judge in dollars

    @property
    def wall(self) -> float:
        """The recipe's time in hours; requests to servers count with the rate of `estimate`."""
        asked = self.calls + (0 if self.gpus else self.requests)
        return self.hours / max(1, self.gpus) + asked / default_rate()[0] / 3600

    def __str__(self) -> str:
        by = f"about {self.hours:,.1f} GPU hours ({self.gpus} of 80 GB)"
        where = by if self.gpus else f"its server: {price(self.dollars)}"
        judge = f"; judge: {self.calls:,} calls, {price(self.judge)}" if self.calls else ""
        share = f" ({self.cached / self.prompt:.1%} of the prompts' cached)" if self.cached else ""
        tokens = f"{self.prompt / 1e6:,.1f} + {self.reply / 1e6:,.2f} million tokens{share}"
        took = f"; {duration(self.wall * 3600)} in all"
        return f"{self.name}: {self.requests:,} requests, {tokens}, {where}{judge}{took}"


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
        forms = {recipe.path.stem: recipes.on_vllm(recipe) for recipe in chosen}
        refused = {name: form for name, form in forms.items() if isinstance(form, str)}
        chosen = [form for form in forms.values() if isinstance(form, RowRecipe)]
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
        hours = {row.name: row.hours for row in map(cost, stored)}
        lost = sum(hours[name] for name in refused)
        yield (
            "# By the recipes' own classes these are about "
            f"{sum(hours.values()) - lost:,.1f} hours, and those that cannot "
            f"run with it {lost:,.1f}."
        )
    jobs = [(_told(*pair), _command(pair[0])) for pair in zip(chosen, each, strict=True)]
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
    hours = sum(one.hours for one in each)
    yield (
        f"{benchmark}: {len(each)} recipes, about {hours:,.1f} hours of A100s, "
        f"{_summed([one.dollars for one in each])} for the models' servers and "
        f"{_summed([one.judge for one in each])} for the judge."
    )
    yield "Counts are the published ones (leaderboards/recipes/data.yaml)."
    yield (
        f"GPU hours: 2 operations a parameter and prompt token at {SHARE:.0%} "
        f"of {OPERATIONS / 1e12:g} TFLOP/s, all weights a reply token at "
        f"{SHARE:.0%} of {BANDWIDTH / 1e12:g} TB/s. A formula, not measured on "
        "a GPU."
    )
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


# --- what a recipe costs --------------------------------------------------------------------------


def cost(recipe: RowRecipe) -> Cost:
    """Return the cost of a recipe.

    Raises:
        TasksError: the judge's settings are wrong.
    """
    facts, frames = recipes.facts(recipe.checkpoint), _frames(recipe)
    requests, prompt, cached, reply, judged = 0, 0.0, 0.0, 0.0, CostEstimate()
    batched = recipe.model.name == recipes.VLLM
    for task in registry.selected(recipe.tasks):
        work = recipes.work(task)
        media = work.docs * _media(work, facts, frames)
        requests += work.docs
        prompt += round(work.docs * work.text) + media
        cached += media * (1 - work.clips / work.docs) if batched and work.clips else 0
        reply += work.docs * (work.reply + facts.thinks)
        with settings.use_options(recipe.settings):
            judged.add(_judged(task, work))
    weights = facts.billions * 1e9
    reading = BYTES / BANDWIDTH / (recipe.batch if batched else 1)
    # For a large batch, the operations take longer than the reading of the weights.
    a_reply_token = max(reading, 2 / OPERATIONS)
    seconds = weights * (2 * (prompt - cached) / OPERATIONS + reply * a_reply_token)
    gpus = facts.gpus if weights else 0
    # If GPUs take turns on the layers, all are occupied while one works.
    idle = 1 if batched else gpus
    return Cost(
        recipe.path.stem,
        requests,
        round(prompt),
        round(cached),
        round(reply),
        seconds / SHARE / 3600 * idle,
        gpus,
        0.0 if gpus else _dollars(recipe.checkpoint, facts, round(prompt), round(reply)),
        judged.calls,
        judged.cost,
    )


def _frames(recipe: RowRecipe) -> int:
    """Return the largest number of a video's frames that reach the model."""
    media = model_capabilities.media_of(recipe.model.name, recipe.model.interface)
    if media is None or media.frames_argument is None:
        return FRAMES
    given = recipe.model.arguments.get(media.frames_argument)
    return int(given or media.frames_default or FRAMES)


def _media(workload: TaskWorkload, facts: ModelFacts, frames: int) -> float:
    """Return the tokens of a doc's media."""
    video = workload.video * facts.second or (frames * facts.frame if workload.video else 0)
    picture = facts.frame if facts.picture is None else facts.picture
    return video + workload.pictures * picture + workload.sound * facts.sound


def _dollars(model: str, facts: ModelFacts, prompt: int, reply: int) -> float | None:
    known = run.current().prices.of(model, None)
    if known is None and facts.input is not None and facts.output is not None:
        known = Price(input=facts.input, output=facts.output)
    return known.cost(prompt, reply) if known else None


def _judged(task: str, work: TaskWorkload) -> CostEstimate:
    """Return the judge's part of a task's cost."""
    benchmark, spent = registry.of(task), CostEstimate(task)
    if benchmark.tasks[task].judgements:
        env = {**os.environ, KEY: os.environ.get(KEY) or "none"}  # no request is sent
        config = prepare.judge_config(benchmark, env=env)
        if config.endpoints:
            spent.calls = round(work.docs * work.calls)
            prompt, reply = round(spent.calls * work.asked), round(spent.calls * work.told)
            rate = run.current().endpoint(config).price
            spent.cost = rate.cost(prompt, reply) if rate else None
    return spent
