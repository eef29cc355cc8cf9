"""Installed packages add tasks through the entry point group `lmms_eval.tasks`."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Iterator

import pytest
from loguru import logger

from lmms_eval.tasks import TaskManager

# Each package: the code of its module, whose `tasks` is the entry point, and its task files by folder.
PACKAGES = {
    "as_path": ("tasks = HERE / 'a'", {"a": "one_path"}),
    "as_list": ("tasks = [str(HERE / 'a'), str(HERE / 'b')]", {"a": "first_of_list", "b": "second_of_list"}),
    "as_callable": ("def tasks():\n    return str(HERE / 'a')", {"a": "from_callable"}),
    "broken_import": ("raise RuntimeError('cannot be imported')", {"a": "never_found_1"}),
    "broken_object": ("tasks = 3", {"a": "never_found_2"}),
    "broken_yaml": ("tasks = HERE / 'a'", {"a": "[never, closed"}),
    "no_folder": ("tasks = HERE / 'elsewhere'", {"a": "never_found_3"}),
    "takes_names": ("tasks = [HERE / 'a', HERE / 'b', HERE / 'c']", {"a": "mme", "b": "of_the_user", "c": "its_own"}),
    "given_twice": ("tasks = HERE / 'a'", {"a": "known_already"}),
}


def install(site: Path, name: str, code: str, tasks: dict[str, str]) -> None:
    """Writes a package in the form in which pip installs it, with a task file in each folder."""
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[lmms_eval.tasks]\n{name} = {name}:tasks\n")
    for folder, task in tasks.items():
        (site / name / folder).mkdir(parents=True)
        (site / name / folder / "task.yaml").write_text(f"task: {task}\noutput_type: generate_until\n")
    (site / name / "__init__.py").write_text(f"from pathlib import Path\n\nHERE = Path(__file__).parent\n{code}\n")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    for name, (code, tasks) in PACKAGES.items():
        install(folder, name, code, tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder
    for name in PACKAGES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def found(site: Path) -> SimpleNamespace:
    """The index of all tasks with all packages installed, and the warnings."""
    user = site.parent / f"{site.name}-of-the-user"
    user.mkdir()
    (user / "task.yaml").write_text("task: of_the_user\noutput_type: generate_until\n")
    warnings: list[str] = []
    sink = logger.add(lambda message: warnings.append(message.record["message"]), level="WARNING")
    manager = TaskManager(include_path=[str(user), str(site / "given_twice" / "a")])
    logger.remove(sink)
    return SimpleNamespace(index=manager.task_index, warnings=[one for one in warnings if one.startswith("Entry point")], user=user)


@pytest.mark.parametrize("task", ["one_path", "first_of_list", "second_of_list", "from_callable", "its_own", "known_already"])
def test_tasks_of_a_package_are_found(found: SimpleNamespace, task: str) -> None:
    assert found.index[task]["type"] == "task"


@pytest.mark.parametrize("name, why", [("broken_import", "cannot be imported"), ("broken_object", "not iterable"), ("broken_yaml", ""), ("no_folder", "elsewhere")])
def test_a_broken_package_is_named_and_breaks_no_other(found: SimpleNamespace, name: str, why: str) -> None:
    (warning,) = [one for one in found.warnings if f" {name} = {name}:tasks: its tasks are not available: " in one]
    assert why in warning


def test_a_name_that_is_taken_stays(found: SimpleNamespace) -> None:
    """Tasks of lmms-eval come first, then those of include_path; the same files in both are no clash."""
    assert "takes_names" not in found.index["mme"]["yaml_path"]
    assert Path(found.index["of_the_user"]["yaml_path"]).parent == found.user
    assert [one for one in found.warnings if "not available" not in one] == ["Entry point takes_names = takes_names:tasks: left out, as the names are taken: mme, of_the_user"]
    assert not [name for name in found.index if name.startswith("never")]


def test_without_defaults_nothing_is_added(site: Path) -> None:
    assert TaskManager(include_defaults=False).all_tasks == []
