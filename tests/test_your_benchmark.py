"""docs/your_benchmark.md is carried out: its package is installed, outside our tree, and used."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import registry, settings
from tests.checks import table
from tests.conftest import BIN, REPOSITORY, Launch
from tests.local_endpoint import LocalEndpoint

pytestmark = pytest.mark.host

PAGE = (REPOSITORY / "docs" / "your_benchmark.md").read_text(encoding="utf-8")
ROWS = [
    {"id": f"v{n // 3}/{n}", "video": f"v{n // 3}", "question": f"Q{n}?", "answer": f"answer {n}"}
    for n in range(9)
]


def files() -> dict[str, str]:
    """The page's files: the paragraph before a block begins with the name of its file."""
    pieces = PAGE.split("```")
    names = [one.strip().split("\n\n")[-1].split("`")[1] for one in pieces[:-1:2]]
    assert len(set(names)) == len(names) == 9
    return dict(zip(names, (one.split("\n", 1)[1] for one in pieces[1::2]), strict=True))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as pip installs it, which an environment can have in its path."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "installed"))
    for name, text in files().items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    install = ["pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"]
    python = ["--python", sys.executable, "--target", str(target), str(source)]
    subprocess.run([BIN / "uv", *install, *python], check=True)
    return target


class Environment:
    """Commands in an environment that has the package."""

    def __init__(self, installed: Path, folder: Path, launch: Launch) -> None:
        self.folder, self.launch = folder, launch
        self.variables = {
            "PYTHONPATH": str(installed),
            "COLUMNS": "",
            settings.CACHE: str(folder / "cache"),
            settings.DATA: str(folder / "data"),
            settings.MAX_FAILED: "1",
            settings.JUDGE: "",
            settings.TABLES: "",
        }

    def run(self, *command: str, code: int = 0, fresh: bool = False, **variables: str) -> str:
        """What a command prints."""
        env = {**self.variables, **variables}
        done = self.launch([str(BIN / command[0]), *command[1:]], self.folder, env, fresh=fresh)
        assert done.code == code, done.stdout[-2000:] + done.stderr[-3000:]
        return done.stdout + done.stderr

    def results(self, out: Path) -> dict[str, Any]:
        """The results file of a run."""
        (file,) = out.rglob("*_results.json")
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found


@pytest.fixture
def environment(installed: Path, tmp_path: Path, sample_root: Path, launch: Launch) -> Environment:
    made = Environment(installed, tmp_path, launch)
    (tmp_path / "data" / "toy" / "videos").mkdir(parents=True)
    clip = sample_root / "maia" / "videos" / "1.mp4"
    for row in ROWS:
        shutil.copy(clip, tmp_path / "data" / "toy" / "videos" / f"{row['video']}.mp4")
    (tmp_path / "data" / "toy" / "data.json").write_text(json.dumps(ROWS), encoding="utf-8")
    return made


@pytest.fixture
def judge() -> Iterator[str]:
    """Right unless the answer is not the reference; no verdict for one question."""

    def decide(request: Any) -> str:
        user = request["messages"][-1]["content"]
        if "Q4?" in user:
            return "I would rather not say."
        reference, _, answer = user.partition("Reference: ")[2].partition("\n")
        return json.dumps({"reason": "r", "correct": reference.strip() in answer})

    with LocalEndpoint(decide, model="local") as endpoint:
        yield f"local@{endpoint.url}"


RUN = ("lmms_eval", "--tasks", "toy_qa", "--log_samples", "--output_path", "out")


def test_the_page_is_short() -> None:
    code = {name: text for name, text in files().items() if name.endswith(".py")}
    assert sum(len(text.splitlines()) for text in code.values()) < 245


@table("interface", [(), ("--force_simple",)])
def test_it_runs_and_every_command_knows_it(
    interface: tuple[str, ...], environment: Environment, judge: str
) -> None:
    out = environment.folder / "out"
    model = ("--model", "tasks_scripted", *interface, "--judge", judge)
    told = environment.run(*RUN, *model, fresh=not interface)
    results = environment.results(out)
    section = results["lmms_eval_tasks"]["toy"]
    (saved,) = out.rglob("*_samples_toy_qa.jsonl")
    items = [json.loads(line)["failed"] for line in saved.read_text().splitlines()]
    numbers = section["numbers"]["toy_qa"]
    assert numbers["acc"] == sum(one["right"] or 0 for one in items) / len(ROWS)
    assert 0 < numbers["acc"] < 1
    assert numbers["failed"] == sum(one["status"] != "ok" for one in items) > 0
    assert results["results"]["toy_qa"]["acc,none"] == numbers["acc"]
    assert section["details"]["toy_qa"]["intervals"]["acc"]["clusters"] == 3
    assert "Toy-7B" in told  # of the paper, beside the run on its first screen

    again = environment.folder / "again.json"
    environment.run("lmms-eval-tasks", "rescore", "out", "--output", str(again))
    assert json.loads(again.read_text())["toy"]["numbers"]["toy_qa"] == numbers
    told = environment.run("lmms-eval-tasks", "report", "out", "--format", "text")
    assert "toy_qa" in told
    told = environment.run("lmms-eval-tasks", "leaderboard", "toy", "out")
    assert "61.5" in told, told
    told = environment.run("lmms-eval-tasks", "estimate", "--tasks", "toy_qa", "--judge", "gpt-4o")
    (line,) = (one for one in told.splitlines() if "toy_qa" in one and " 9 " in one)
    assert line.split()[1] == line.split()[6] == "9"  # requests to the model and to the judge


def test_its_option_is_a_condition_of_its_numbers(environment: Environment) -> None:
    run = [*RUN, "--model", "tasks_scripted", "--judge", "none", "--toy-short"]
    environment.run(*run)
    results = environment.results(environment.folder / "out")
    conditions = results["lmms_eval_tasks"]["toy"]["conditions"]
    assert any("--toy-short" in one["text"] for one in conditions)
    told = environment.run("lmms-eval-tasks", "list", code=2, LMMS_EVAL_TASKS_TOY_SHRT="1")
    assert "LMMS_EVAL_TASKS_TOY_SHORT" in told  # a slip of the pen


def test_its_commands_prompts_and_sample(
    environment: Environment, judge: str, sample_root: Path
) -> None:
    # Ours, so that its own alone is made.
    shutil.copytree(sample_root, environment.folder / "cache" / "sample")
    assert "9 questions" in environment.run("lmms-eval-tasks", "toy-size")
    assert "toy_qa" in environment.run("lmms-eval-tasks", "list")
    assert "toy_qa" in environment.run("lmms_eval", "tasks", "list")
    own = environment.folder / "prompts" / "toy" / "judge.yml"
    own.parent.mkdir(parents=True)
    own.write_text('system: Judge.\nuser: "{question} {reference} {nobody}"\n')
    asked = [*RUN, "--model", "tasks_coin", "--judge", judge, "--prompts", str(own.parents[1])]
    told = environment.run(*asked, code=2)
    assert "{candidate}" in told
    sampled = [*RUN, "--model", "tasks_oracle", "--judge", "replay", "--data", "sample"]
    environment.run(*sampled, "--limit", "1", code=2)  # it brings no recorded verdicts
    made = environment.folder / "cache" / "sample" / "toy"
    assert sorted(one.name for one in made.iterdir()) == ["VERSION", "data.json", "videos"]


def changed(
    installed: Path, folder: Path, changes: Mapping[str, str], entry: str = "toy"
) -> dict[str, str]:
    """The environment with a changed copy of the package: file -> text."""
    shutil.copytree(installed, folder)
    for file, text in changes.items():
        (folder / "toy_benchmark" / file).write_text(text, encoding="utf-8")
    (about,) = folder.glob("*.dist-info")
    names = "[lmms_eval_tasks.benchmarks]\n" + f"{entry} = toy_benchmark.tasks:BENCHMARK\n"
    (about / "entry_points.txt").write_text(names)
    return {"PYTHONPATH": str(folder)}


BROKEN = "import nobody_has_this\n"
DECLARES = "from lmms_eval_tasks.settings import declare\nTOY_SHORT = declare("
ADDS = "def f(): pass\ndef add(app): app.command("


@table(
    "changes, entry, told",
    [
        (
            {"tasks.py": BROKEN},
            "toy",
            "the benchmark toy cannot be imported from",
        ),
        (
            {"tasks.py": "raise SystemExit(7)"},
            "toy",
            "BENCHMARK: SystemExit: 7",
        ),
        ({"tasks.py": "def :"}, "toy", "toy_benchmark.tasks:BENCHMARK: SyntaxError"),
        ({"settings.py": BROKEN}, "toy", "the options of toy are not available"),
        ({"__init__.py": "raise SystemExit(7)"}, "toy", "toy are not available (SystemExit(7))"),
        (
            {"commands.py": "1 / 0"},
            "toy",
            "not available (ZeroDivisionError",
        ),
        ({"commands.py": f"{ADDS}'list')(f)"}, "toy", "the command list of toy is skipped"),
        (
            {"settings.py": f"{DECLARES}'LIMIT', bool, '', 'x')"},
            "toy",
            "begin with the benchmark's name",
        ),
        ({"settings.py": f"{DECLARES}'MAX_COST', bool, '', 'x')"}, "toy", "MAX_COST already"),
        ({"settings.py": f"{DECLARES}'Toy x', bool, '', 'x')"}, "toy", "cannot be called 'Toy x'"),
        ({}, "maia", "lmms_eval_tasks.maia.tasks:BENCHMARK also has the name maia"),
        ({}, "judges", "invalid name of a benchmark: judges"),
    ],
)
def test_a_package_that_is_broken_costs_its_own_benchmark_alone(
    changes: Mapping[str, str], entry: str, told: str, installed: Path, environment: Environment
) -> None:
    own = changed(installed, environment.folder / "changed", changes, entry)
    found = environment.run("lmms-eval-tasks", "list", **own)
    assert told in found
    assert "maia_vsv" in found


@table(
    "file, text, told",
    [
        ("tasks.py", BROKEN, "the benchmark toy cannot be imported from"),
        ("leaderboard.json", "{not json", "leaderboard.json: not valid JSON"),
        ("leaderboard.json", "[]", "leaderboard.json: expected an object"),
        ("prompts/judge.yml", "system: x\nuser: y", "part 'user': the placeholder {candidate}"),
    ],
)
def test_what_is_wrong_is_one_line_before_the_run(
    file: str, text: str, told: str, installed: Path, environment: Environment, judge: str
) -> None:
    own = changed(installed, environment.folder / "changed", {file: text})
    asked = [*RUN, "--model", "tasks_coin", "--judge", judge]
    found = environment.run(*asked, code=2, **own)
    assert told in found
    assert "Traceback" not in found


def test_the_longest_name_has_a_task() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "NAMES", ("maia", "maia_plus"))
        assert registry.of_task_name("maia_plus_qa") == "maia_plus"
        assert registry.of_task_name("maia_vsv") == "maia"


# Each line with a comment is an error of mypy that holds the comment.
WRONG = """
from collections.abc import Sequence
from lmms_eval_tasks.benchmark import Metric, Part, Task, select_fields, split
from lmms_eval_tasks.judges.verdict import ScoringSteps
from lmms_eval_tasks.utils.metrics import aggregate, rating_means
from toy_benchmark.tasks import (
    METRICS, KeptToy, ToyDoc, ToyItem, ToyScore, keep, prompt, score
)

def asks_nothing(doc: ToyDoc) -> list[Part]:
    return [Part("text", doc["qestion"])]  # no key "qestion"

def keeps_less(doc: ToyDoc) -> KeptToy:
    return {"id": doc["id"], "video": doc["video"], "question": ""}  # Missing key "reference"

def changes(doc: ToyDoc) -> KeptToy:
    doc["question"] = ""  # ReadOnly TypedDict key "question" TypedDict is mutated
    return select_fields(doc, KeptToy)

def says_yes(doc: KeptToy, reply: str) -> ToyScore:
    return {"candidate": reply, "status": "ok", "right": "yes"}  # has type "int | None"

def says_more(doc: KeptToy, reply: str) -> ToyScore:
    return {"candidate": "", "status": "ok", "right": 1, "wrong": 0}  # Extra key "wrong"

def judged(doc: KeptToy, reply: str) -> ScoringSteps[ToyScore]:
    yield []
    return {"status": "ok", "right": 1}  # Missing key "candidate"

def wants_options(doc: ToyScore, reply: str) -> ToyScore:
    return doc

def mean(items: Sequence[ToyItem]) -> float | None:
    return aggregate.mean(item["candidate"] for item in items)  # incompatible item type "str"

metrics: list[Metric[ToyItem]] = [
    *METRICS,
    Metric("right", lambda items: items[0]["rigth"]),  # no key "rigth"
    Metric("text", lambda items: items[0]["candidate"]),  # got "str"
    Metric("some", len, lambda item: item["right"] > 0),  # Unsupported operand types
    Metric("rated", rating_means.mean_valid),  # incompatible type "Callable[[Sequence[
    Metric("n", len, per_unit=lambda own: {i["video"]: i["right"] for i in own}),  # "int | None"
    *split(Metric[ToyScore]("right", len), "video", ["v1"]),
]
Task("toy_qa", prompt, keep, wants_options, metrics)  # Cannot infer value of type parameter "K"
Task("toy_qa", prompt, keep, score, metrics, pool=lambda item: item["pool"])  # no key "pool"
Task("toy_qa", prompt, keep, score, metrics, frames=lambda doc: doc["id"])  # got "str"
"""


def test_its_types_hold_and_what_is_wrong_does_not(installed: Path, tmp_path: Path) -> None:
    changed(installed, tmp_path / "changed", {"wrong.py": WRONG})
    config = ["--config-file", str(REPOSITORY / "pyproject.toml"), "--hide-error-context"]
    done = subprocess.run(
        [BIN / "mypy", *config, str(tmp_path / "changed" / "toy_benchmark")],
        cwd=BIN.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[tuple[str, int], str] = {}
    for line in done.stdout.splitlines():
        file, _, rest = line.partition(":")
        number, _, message = rest.partition(": error: ")
        if message:
            place = Path(file).name, int(number)
            found[place] = found.get(place, "") + message
    told = {
        ("wrong.py", number): line.rpartition("  # ")[2]
        for number, line in enumerate(WRONG.splitlines(), 1)
        if "  # " in line
    }
    assert found.keys() == told.keys(), done.stdout
    assert [place for place, part in told.items() if part not in found[place]] == [], done.stdout
