"""What would stop a run is found before it, with what mends it, and hides nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import av
import pytest
import torch
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands import cli
from lmms_eval_tasks.doctor import checks, machine
from lmms_eval_tasks.doctor.checks import DoctorCheck, Finding
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.runs import prepare
from tests.checks import table
from tests.local_endpoint import LocalEndpoint

SECRET = "sk-planted-0123456789"
NOBODY = "mine@http://127.0.0.1:9/v1"


@dataclass
class Patient:
    """MAIA's sample in a folder of its own, and a command line."""

    folder: Path
    patch: pytest.MonkeyPatch
    arguments: list[str] = field(default_factory=lambda: ["--tasks", "maia_oevqa"])

    @property
    def videos(self) -> list[Path]:
        return sorted((self.folder / "data" / "maia" / "videos").iterdir())

    def set(self, variable: str, value: object) -> None:
        self.patch.setenv(variable, str(value))

    def options(self, *more: str) -> None:
        self.arguments += more

    def examined(self) -> tuple[int, list[Finding], str]:
        """Exit code, findings, and all that was printed."""
        done = CliRunner().invoke(cli.app, ["doctor", "--json", *self.arguments])
        told = json.loads(done.stdout)
        assert told["ok"] is (done.exit_code == 0)
        findings = [
            Finding(one["state"], one["told"], one["mend"], one["about"])
            for one in told["findings"]
        ]
        return done.exit_code, findings, done.output


@pytest.fixture
def patient(sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    shutil.copytree(sample_root / "maia", tmp_path / "data" / "maia")
    made = Patient(tmp_path, monkeypatch)
    made.set(settings.DATA, tmp_path / "data")
    made.set(settings.JUDGE, "none")
    made.set("OPENAI_API_KEY", SECRET)
    return made


def missing(patient: Patient) -> None:
    patient.videos[0].unlink()


def cut_short(patient: Patient) -> None:
    video = patient.videos[0]
    video.write_bytes(video.read_bytes()[: video.stat().st_size // 2])


def damaged_at_its_end(patient: Patient) -> None:
    """All packets are there, as a probe counts them; the last ones hold nothing."""
    content = bytearray(patient.videos[0].read_bytes())
    with av.open(str(patient.videos[0])) as file:
        packets = [one for one in file.demux(video=0) if one.size]
        for one in packets[-len(packets) // 4 :]:
            content[one.pos : one.pos + one.size] = b"\xff" * one.size
    patient.videos[0].write_bytes(content)


def no_data(patient: Patient) -> None:
    patient.set(settings.DATA, patient.folder / "empty")
    patient.arguments = []


def unwritable(patient: Patient) -> None:
    place = patient.folder / "file"
    place.write_text("")
    patient.set(settings.CACHE, place / "cache")


def full(patient: Patient) -> None:
    patient.set(settings.CACHE, patient.folder / "cache")
    patient.patch.setattr(checks, "TRIAL", 1)
    patient.patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))


def no_key(patient: Patient) -> None:
    patient.patch.delenv("OPENAI_API_KEY")
    patient.set(settings.JUDGE, "gpt-4o")


def needs_more(patient: Patient) -> None:
    patient.patch.setattr(metadata, "requires", lambda _: ["no-such-package>=2", "av>=900"])


def no_model_key(patient: Patient) -> None:
    patient.patch.delenv("OPENAI_API_KEY")
    patient.options("--model", "openai", "--model_args", "model_version=x")


def variable(name: str, value: str) -> Callable[[Patient], None]:
    return lambda patient: patient.set(settings.PREFIX + name, value)


def option(*given: str) -> Callable[[Patient], None]:
    return lambda patient: patient.options(*given)


# What is broken, where that is found, in which words, what mends it, and whether a run's own check
# ends with the same words.
BROKEN: list[tuple[Callable[[Patient], None], str, str, str, bool]] = [
    (missing, "maia: data", "1 of 2 MAIA videos cannot be used", "--allow-missing-videos", True),
    (cut_short, "maia: data", ": unreadable: ", "lmms-eval-tasks data status", True),
    (damaged_at_its_end, "maia: videos", "cannot be decoded", "download it again", False),
    (no_data, "tasks", "no data of any benchmark", "data get BENCHMARK", False),
    (
        option("--tasks", "maia_ovqa"),
        "tasks",
        "did you mean maia_oevqa?",
        "lmms-eval-tasks l",
        False,
    ),
    (unwritable, "folders", "cannot be written", f"{settings.CACHE}=DIR", False),
    (full, "maia: clips", "and 0.00 GB are free", f"{settings.CACHE}=DIR on", False),
    (no_key, "maia: judge", "the judge gpt-4o requires a key", "export OPENAI_API_KEY=...", True),
    (
        option("--judge", NOBODY),
        "maia: judge",
        "api_error: no reply from ",
        "the URL, the model's",
        False,
    ),
    (variable("FRAME", "3"), "settings", "did you mean", "unset LMMS_EVAL_TASKS_FRAME", True),
    (variable("MAX_COST", "abc"), "settings", "_MAX_COST='abc'", "--max-cost DOLLARS, or", True),
    (option("--frames", "32,video9=3"), "frames", "of the run: video9", "correct --fr", True),
    (needs_more, "versions", "no-such-package is not", "pip install 'no-such-package>=2'", False),
    (needs_more, "versions", "required: >=900", "pip install 'av>=900'", False),
    (option("--model", "nosuch"), "model", "no model 'nosuch'", "lmms-eval-tasks models", False),
    (
        option("--model", "bagel_umm"),
        "model",
        "to see what it requires: ",
        "models bagel_umm",
        False,
    ),
    (no_model_key, "model", "OPENAI_API_KEY or AZURE_OPEN", "export OPENAI_API_KEY=...", False),
]


@table("breaks, about, told, mend, ends_a_run", BROKEN)
def test_what_is_broken(
    breaks: Callable[[Patient], None],
    about: str,
    told: str,
    mend: str,
    ends_a_run: bool,
    patient: Patient,
) -> None:
    breaks(patient)
    code, found, printed = patient.examined()
    assert code == 1
    (one,) = (
        one for one in found if (one.state, one.about) == ("error", about) and told in one.message
    )
    assert mend in one.mend
    assert all(one.mend for one in found if one.state != "ok")
    assert not any(re.match(r"\w+Error: ", one.message) for one in found)  # no bug of a check's own
    areas = {one.about for one in found}
    assert areas >= {"settings", "versions", "encoders", "folders", "lmms-eval", "tasks"}
    assert breaks is no_data or "--tasks" in patient.arguments[2:] or areas >= {"maia: judge"}
    assert SECRET not in printed
    if ends_a_run:
        given = {settings.FRAMES: "32,video9=3"} if about == "frames" else {}
        with pytest.raises(TasksError) as ended, settings.use_options(given):
            prepare.check_tasks(["maia_oevqa"])
        assert str(ended.value) == one.message


def test_a_good_set_up_and_one_request_to_a_judge_that_is_named(patient: Patient) -> None:
    with LocalEndpoint(lambda request: "Correct") as endpoint:
        patient.options("--judge", f"mine@{endpoint.url}", "--model", "tasks_coin")
        code, found, _ = patient.examined()
    assert (code, [one for one in found if one.state == "error"]) == (0, [])
    asked, *shown = endpoint.chats  # the others show what it ignores: all, in this case
    assert len(shown) == 3
    assert "max_tokens" in asked.json or "max_completion_tokens" in asked.json
    (judge,) = (one for one in found if one.about == "maia: judge")
    assert "a verdict in" in judge.message
    assert (
        "reference_agreement as one word; it accepts response_format but ignores it"
        in judge.message
    )
    assert judge.state == "warning"
    schema = asked.json["response_format"]["json_schema"]["schema"]
    assert schema == {"type": "string", "enum": ["Correct", "Incorrect"]}
    by_area = {one.about: one.message for one in found}
    assert by_area["maia: requests"] == "maia_oevqa 48"
    assert by_area["maia: videos"] == "first and last frame of 2 videos decoded"
    assert by_area["model"].startswith("tasks_coin (chat): ")


def test_nobody_is_asked_whom_nobody_named(patient: Patient) -> None:
    """The paper's judge, for which there is a key, costs money."""
    patient.patch.delenv(settings.JUDGE)
    patient.patch.setattr("lmms_eval_tasks.judges.providers.probe.probe", pytest.fail)
    code, found, _ = patient.examined()
    (judge,) = (one for one in found if one.about == "maia: judge")
    assert (code, judge.state) == (0, "ok")
    assert "not tested" in judge.message


def test_a_reply_that_is_no_verdict(patient: Patient) -> None:
    with LocalEndpoint(lambda request: "Who knows?") as endpoint:
        patient.options("--judge", f"mine@{endpoint.url}")
        code, found, _ = patient.examined()
    assert (code, len(endpoint.chats)) == (1, 1)  # not repaired
    (judge,) = (one for one in found if one.about == "maia: judge")
    assert "parse_failure: " in judge.message
    assert "reply_format" in judge.mend


def test_a_judge_of_several_benchmarks_is_asked_once(patient: Patient, sample_root: Path) -> None:
    shutil.copytree(sample_root / "haven", patient.folder / "data" / "haven")
    patient.arguments = ["--tasks", "maia_oevqa,haven_v2t_text"]
    with LocalEndpoint(lambda request: "Who knows?") as endpoint:
        patient.options("--judge", f"mine@{endpoint.url}")
        _, found, _ = patient.examined()
    told = [(one.state, one.message) for one in found if one.about.endswith(": judge")]
    assert (len(endpoint.chats), len(told), len({*told})) == (1, 2, 1)
    assert told[0][0] == "error"


def test_data_that_a_setting_names(patient: Patient, sample_root: Path) -> None:
    patient.set(settings.DATA, sample_root)
    patient.arguments = ["--tasks", "cvrr_judge_collective"]
    code, found, _ = patient.examined()
    (data,) = (one for one in found if one.about == "cvrr_es: data")
    assert (code, data.state, data.mend) == (1, "error", "--cvrr-ratings PATH,...")


def test_what_was_allowed_is_a_warning(patient: Patient) -> None:
    missing(patient)
    patient.options("--allow-missing-videos")
    code, found, _ = patient.examined()
    assert code == 0
    assert [
        one.about
        for one in found
        if one.state == "warning" and "skipped, as allowed" in one.message
    ] == ["maia: data"]


def test_lines_for_people(patient: Patient) -> None:
    missing(patient)
    done = CliRunner().invoke(cli.app, ["doctor", *patient.arguments])
    lines = done.output.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("✘ maia: data: "))
    assert lines[place + 3].startswith("    -> put them there")
    assert any(line.startswith("✔ versions: Python 3.") for line in lines)
    assert lines[-1].startswith("errors: 1, warnings: ")


@table(
    "cuda, driver, state, told",
    [
        (True, "", "ok", "H: 1 of 2 GB free"),
        (False, "", "ok", "no GPU"),
        (False, "/usr/bin/nvidia-smi", "warning", "finds no GPU"),
    ],
)
def test_the_gpu(
    cuda: bool, driver: str, state: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: driver)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1e9, 2e9))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "H")
    own = [check for check in machine.checks() if check.about == "gpu"]
    (found,) = checks.carried_out(own)
    assert (found.state, bool(found.mend)) == (state, state == "warning")
    assert told in found.message


@table(
    "name, offline, state, told, mend",
    [
        ("/no/such", "", "error", "no checkpoint in this folder", "pretrained=NAME_OR_FOLDER"),
        ("./such", "", "error", "no checkpoint in this folder", "pretrained=NAME_OR_FOLDER"),
        ("no-such/name", "1", "error", "HF_HUB_OFFLINE is set", "hf download no-such/name"),
        ("no-such/name", "0", "warning", "will download it", "hf download no-such/name"),
    ],
)
def test_the_checkpoint(
    name: str, offline: str, state: str, told: str, mend: str, patient: Patient
) -> None:
    patient.set("HF_HUB_OFFLINE", offline)
    patient.options("--model", "tasks_coin", "--model_args", f"pretrained={name}")
    _, found, _ = patient.examined()
    (one,) = (one for one in found if one.about == "model" and name in one.message)
    assert (one.state, told in one.message, mend in one.mend) == (state, True, True)


def test_a_bug_in_one_check_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)

    def breaks() -> Iterator[Finding]:
        yield Finding("ok", "begun")
        raise ZeroDivisionError(f"by {SECRET}")

    fine = [Finding("warning", "so so")]
    found = list(
        checks.carried_out([DoctorCheck("a", breaks, "x"), DoctorCheck("b", lambda: fine, "y")])
    )
    assert found == [
        Finding("ok", "begun", "", "a"),
        Finding("error", "ZeroDivisionError: by [SOME_API_KEY]", "x", "a"),
        Finding("warning", "so so", "y", "b"),
    ]
