"""docs/adding_a_benchmark.md is executed: its toy runs through the host, rescore, estimate, tables.

Its code is written beside the package's own folders and found through the package's path, so that
nothing of it stays.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lmms_eval_tasks
from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.commands import cli
from lmms_eval_tasks.host import plugin
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.runs import screen
from tests.conftest import REPOSITORY
from tests.local_endpoint import LocalEndpoint

pytestmark = pytest.mark.host

PAGE = (REPOSITORY / "docs" / "adding_a_benchmark.md").read_text(encoding="utf-8")
FILES = ("tasks.py", "prompts/judge.yml", "toy_qa.yaml")
ROWS = [
    {"id": f"v{n // 3}/{n}", "video": f"v{n // 3}", "question": f"Q{n}?", "answer": f"answer {n}"}
    for n in range(9)
]


def blocks() -> list[str]:
    """The page's code, in the order of FILES."""
    return re.findall(r"```\w+\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data root, with the toy installed."""
    for name, text in zip(FILES, blocks(), strict=True):
        file = tmp_path / "package" / "toy" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "package" / "toy" / "__init__.py").touch()
    monkeypatch.setattr(
        lmms_eval_tasks, "__path__", [*lmms_eval_tasks.__path__, str(tmp_path / "package")]
    )
    monkeypatch.setattr(registry, "NAMES", (*registry.NAMES, "toy"))
    root = tmp_path / "root"
    (root / "toy" / "videos").mkdir(parents=True)
    for row in ROWS:  # the player looks whether they are there
        (root / "toy" / "videos" / f"{row['video']}.mp4").write_bytes(b"a clip")
    (root / "toy" / "data.json").write_text(json.dumps(ROWS), encoding="utf-8")
    monkeypatch.setenv(settings.DATA, str(root))
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv(settings.MAX_FAILED, "1")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("lmms_eval_tasks.toy")]:
        del sys.modules[name]


def decide(request: Any) -> str:
    """The judge: right unless the answer is not the reference; cut off for one question."""
    user = request["messages"][-1]["content"]
    if "Q4?" in user:
        return "I would rather not say."
    _, _, rest = user.partition("Reference: ")
    reference, _, answer = rest.partition("\n")
    return json.dumps({"reason": "r", "correct": reference.strip() in answer})


def test_the_page_is_one_page() -> None:
    assert sum(len(block.splitlines()) for block in blocks()) < 120
    assert len(PAGE.splitlines()) < 170


@pytest.mark.parametrize("force_simple", [False, True])
def test_the_toy_runs(
    toy: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    force_simple: bool,
) -> None:
    plugin.install()
    from lmms_eval import evaluator
    from lmms_eval.tasks import TaskManager

    given = {"tasks": ["toy_qa"], "task_manager": TaskManager("ERROR"), "verbosity": "ERROR"}
    with LocalEndpoint(decide, model="local") as endpoint:
        monkeypatch.setenv(settings.JUDGE, f"local@{endpoint.url}")
        results = evaluator.simple_evaluate("tasks_scripted", force_simple=force_simple, **given)
        asked = len(endpoint.chats)
    section = results["lmms_eval_tasks"]["toy"]
    items = {s["failed"]["id"]: s["failed"] for s in results["samples"]["toy_qa"]}
    rights = [item["right"] for item in items.values()]
    numbers = section["numbers"]["toy_qa"]
    assert numbers["acc"] == sum(one or 0 for one in rights) / len(ROWS)
    assert 0 < numbers["acc"] < 1
    assert numbers["failed"] == sum(one["status"] != "ok" for one in items.values()) > 0
    assert items["v1/4"]["status"] in ("judge_parse_failure", "judge_refused", "empty")
    assert results["results"]["toy_qa"]["acc,none"] == numbers["acc"]
    assert results["results"]["toy_qa"]["failed,none"] == numbers["failed"]
    assert section["details"]["toy_qa"]["intervals"]["acc"]["clusters"] == 3
    assert asked >= sum("verdicts" in one and bool(one["verdicts"]) for one in items.values())
    screen.full(results, table_console(), every=True)
    assert "toy_qa" in capsys.readouterr().out

    # Saved as the host saves samples, then computed again: nobody is asked.
    logs = toy / "logs"
    logs.mkdir()
    lines = [json.dumps(sample, default=str) for sample in results["samples"]["toy_qa"]]
    (logs / "1_samples_toy_qa.jsonl").write_text("\n".join(lines), encoding="utf-8")
    again = toy / "again.json"
    run_command(monkeypatch, "rescore", str(logs), "--output", str(again))
    assert json.loads(again.read_text())["toy"]["numbers"]["toy_qa"] == numbers
    run_command(monkeypatch, "estimate", "--tasks", "toy_qa", "--judge", "gpt-4o")
    (line,) = [
        one for one in capsys.readouterr().out.splitlines() if "toy_qa" in one and " 9 " in one
    ]
    assert line.split()[1] == line.split()[3] == "9"  # generations and verdicts


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["lmms-eval-tasks", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
