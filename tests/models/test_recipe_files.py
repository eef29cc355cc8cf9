"""The recipes of published models: whole, read by the host, and such as its classes can run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from lmms_eval_tasks import context, leaderboards, registry, settings
from lmms_eval_tasks.haven.settings import CLIPSCORE
from lmms_eval_tasks.host import model_class
from lmms_eval_tasks.models import model_capabilities, recipes
from lmms_eval_tasks.models.recipes import RowRecipe
from lmms_eval_tasks.runs import prepare
from tests.checks import table
from tests.models.test_classes_host import parameters, registered
from tests.page_commands import MORE

ALL = [(name, one) for name in registry.NAMES for one in recipes.of(name)]


class Stub:
    """In place of a model's class, which may need packages and weights."""

    def __init__(self, device_map: str = "auto") -> None: ...


@pytest.fixture
def as_the_host_reads(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `lmms_eval --config PATH ...` would run, as `simple_evaluate` is told."""
    from lmms_eval import __main__ as host

    runs: list[dict[str, Any]] = []
    monkeypatch.setattr(host, "Accelerator", lambda **_: MagicMock())
    monkeypatch.setattr(host, "cli_evaluate_single", lambda args: (runs.append(vars(args)), None))

    def read(recipe: RowRecipe, *more: str) -> dict[str, Any]:
        for name in recipe.settings:  # the host sets them; gone after the test
            monkeypatch.setenv(name, "")
        monkeypatch.setattr(sys, "argv", ["lmms_eval", "--config", str(recipe.path), *more])
        host.cli_evaluate()
        return runs[-1]

    return read


@pytest.mark.parametrize("benchmark", registry.NAMES)
def test_every_published_model_has_a_recipe_or_lacks_something(benchmark: str) -> None:
    names = leaderboards.stored(benchmark)["models"]
    published = {identity for identity in names.values() if identity}
    lacking = set(recipes.missing(benchmark))
    known = {recipes.slug(one) for one in {*published, *names} - lacking}
    made = {one.path.stem for one in recipes.of(benchmark)}
    assert lacking <= published
    assert {recipes.slug(one) for one in published - lacking} <= made
    for one in made:  # of a published model or row, perhaps with a role behind
        assert one in known or one.removesuffix("_judge").removesuffix("_final") in known, one


@table("benchmark, recipe", ALL)
def test_the_host_reads_it_and_its_class_can_run(
    benchmark: str,
    recipe: RowRecipe,
    as_the_host_reads: Any,
    on_sample: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(model_class, "built", lambda _: Stub)
    run = as_the_host_reads(recipe)
    tasks = registry.selected(run["tasks"].split(","))
    assert {registry.of_task_name(task) for task in tasks} == {benchmark}
    model = model_class.run_model(run)
    read = recipe.model
    assert model is not None
    assert (model.name, model.interface) == (read.name, read.interface)
    assert model.arguments.get("", "").endswith(recipe.checkpoint) or all(
        str(model.arguments[name]) == value for name, value in read.arguments.items()
    )
    absent = {CLIPSCORE: ""}  # its model is in nobody's cache here
    with context.begun(model), settings.use_options(absent):
        prepare.check_tasks(tasks)
        model_class.set_up(run)
        decided = context.current().plan
    media = model_capabilities.media_of(model.name, decided.interface)
    assert media is not None
    assert not media.broken
    assert decided.interface == model.interface
    assert media.frames_argument not in decided.arguments  # it says its frames itself


@table("benchmark, recipe", ALL)
def test_its_arguments_are_the_class_s(benchmark: str, recipe: RowRecipe) -> None:
    manifest, name = registered()[recipe.model.name], recipe.model.name
    path = getattr(manifest, f"{recipe.model.interface}_class_path")
    assert set(recipe.model.arguments) <= parameters(path).keys() | MORE.get(name, set())


@pytest.mark.parametrize("benchmark", registry.NAMES)
def test_each_task_of_the_tables_is_in_a_recipe(benchmark: str) -> None:
    board = leaderboards.stored(benchmark)
    cells = (
        cell
        for table in leaderboards.stored_tables(board)
        for row in leaderboards.cells(board, table)
        for cell in row
    )
    wanted = {cell.ours.task for cell in cells if isinstance(cell.ours, leaderboards.OurNumber)}
    found = {task for one in recipes.of(benchmark) for task in registry.selected(one.tasks)}
    assert set(registry.selected(wanted)) <= found


def test_what_a_user_says_stands_above_a_recipe(as_the_host_reads: Any) -> None:
    recipe = next(o for n, o in ALL if (n, o.path.stem) == ("maia", "qwen2_5_vl_7b_instruct"))
    run = as_the_host_reads(recipe, "--model_args", "pretrained=tiny", "--limit", "2")
    assert run["model_args"] == "pretrained=tiny"
    assert run["limit"] == 2
    assert run["tasks"] == "maia,maia_1frame,maia_black"


def test_the_data_of_plans_are_of_tasks_and_models_that_there_are() -> None:
    tasks = {task for name in registry.NAMES for task in registry.load_benchmark(name).tasks}
    assert set(recipes._stored("data")) <= tasks
    used = {one for _, recipe in ALL for one in recipe.checkpoint.split(",")}
    assert set(recipes._stored("models")) == used
    for name in used:
        recipes.facts(name)
    folder = Path(str(ALL[0][1].path)).parent.parent
    assert {one.name for one in folder.iterdir() if one.is_dir()} == set(registry.NAMES)
