"""Every command on every page is one that its program takes (page_commands.py).

Those of `lmms-eval-tasks` that need no GPU, key or data of one's own are run, one after the other.
"""

import re
from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from tests import page_commands
from tests.conftest import REPOSITORY, Launch, host
from tests.golden.command import tasks_command

# Where commands are run that are not run here, on data and endpoints of their own.
ELSEWHERE = {
    **dict.fromkeys(("agreement", "debate", "facts", "reliability"), "golden/commands.py"),
    **{
        "haven": "golden/commands.py",
        "judge": "golden/commands.py",
        "doctor": "runs/test_doctor.py",
    },
    "cache": "judges/test_cache.py",
}


@pytest.mark.parametrize("page", page_commands.PAGES, ids=str)
def test_commands_are_taken(page: Path) -> None:
    for language, text in page_commands.blocks(page):
        page_commands.check_block(language, text)
    for command in page_commands.of(page):
        try:
            page_commands.check(command)
        except (Exception, SystemExit) as error:
            raise AssertionError(f"{command.text}: {error!r}") from error


@pytest.mark.parametrize("page", page_commands.PRESENT, ids=str)
def test_options_exist(page: Path) -> None:
    """Those that stand alone, in a comment or in what a command prints too."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    declared = re.findall(r'declare\("([A-Z_]+)"', text)
    own = {f"--{name.lower().replace('_', '-')}" for name in declared}  # by the page's own code
    assert page_commands.unknown_options(page) <= own


@pytest.mark.parametrize("page", page_commands.PAGES, ids=str)
def test_every_word_is_shown(page: Path) -> None:
    """What looks like a tag of HTML is not: `<NAME>` outside of code would vanish."""
    for token in page_commands.tokens(page):
        for one in (token, *(token.children or ())):
            assert one.type not in ("html_block", "html_inline"), one.content


def whole() -> list[list[str]]:
    """The words of each command of ours that stands in a block, once."""
    found = [
        one.parts for page in page_commands.PAGES for one in page_commands.of(page) if one.whole
    ]
    words = [part for parts in found for part in parts if "lmms-eval-tasks" in part]
    return [
        list(one)
        for one in dict.fromkeys(tuple(w[w.index("lmms-eval-tasks") + 1 :]) for w in words)
    ]


def test_what_is_not_run_here_is_run_elsewhere() -> None:
    for words in whole():
        if (place := ELSEWHERE.get(words[0])) is not None:
            text = (REPOSITORY / "tests" / place).read_text(encoding="utf-8")
            assert f'"{words[0]}' in text, f"{place} no longer runs {words[0]}"


@pytest.mark.host
def test_commands_run(
    launch: Launch,
    sample_root: Path,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a folder with a saved run of the sample in `out`."""
    run = ("--model", "tasks_scripted", "--tasks", "maia")
    saved = ("--log_samples", "--output_path", "out")
    done = launch(host(*run, *saved), tmp_path / "run", cwd=tmp_path)
    assert done.code == 0, done.stderr[-3000:]
    monkeypatch.chdir(tmp_path)
    ran = set()
    for given in (one for one in whole() if one[0] not in ELSEWHERE):
        if given[:2] == ["data", "get"]:  # with a hub in tests/media/test_downloads.py
            continue
        words, env = page_commands.without_dots(given), {settings.JUDGE: "none"}
        if "--from" in words:  # a release, put in place
            words = [*words[:3], "--from", str(sample_root / words[2])]
            env[settings.DATA] = str(tmp_path / "root")
        words = ["out" if word.startswith("out/") else word for word in words]
        said = tasks_command(*words, cache=cache, env=env)
        assert said.code == 0, f"{words}: {said.stdout}{said.stderr}"[-3000:]
        ran.add(words[0])
    assert ran >= {"data", "estimate", "leaderboard", "report", "rescore"}
