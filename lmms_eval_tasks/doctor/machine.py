"""Checks of the machine: settings, packages, a GPU, encoders, folders, keys."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from lmms_eval_tasks import settings
from lmms_eval_tasks.doctor.checks import ROOM, DoctorCheck, Finding, Findings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.config import AZURE_KEY, KEY
from lmms_eval_tasks.models import model_capabilities
from lmms_eval_tasks.utils.json_files import check_folder

# Packages that most trouble comes from. The versions of all required packages are checked below.
_SHOWN = ("lmms-eval", "lmms-eval-tasks", "torch", "transformers", "av", "decord", "torchcodec")
_KEYS = (KEY, AZURE_KEY, "HF_TOKEN")
_ENCODERS = ("libx264", "aac")  # for the clips and their sound


def checks() -> Iterator[DoctorCheck]:
    """The checks of this machine, for any run."""
    yield DoctorCheck(
        "settings",
        _settings,
        f"unset the variable (docs/settings.md lists all {settings.PREFIX}...)",
    )
    yield DoctorCheck("versions", _versions, "pip install --upgrade lmms-eval-tasks")
    yield DoctorCheck(
        "gpu", _gpu, "run nvidia-smi, and install the torch for its CUDA version (pytorch.org)"
    )
    yield DoctorCheck("encoders", _encoders, "pip install --force-reinstall 'av>=15,<16'")
    yield DoctorCheck("keys", _keys, f"export {KEY}=...")
    places = {settings.CACHE: settings.cache_dir, settings.JUDGE_CACHE: settings.judge_cache}
    for variable, folder in places.items():
        yield DoctorCheck("folders", partial(_folder, variable, folder()), f"{variable}=DIR")
    yield DoctorCheck("folders", _hub, "HF_HOME=DIR")


@contextmanager
def usable_cache() -> Iterator[None]:
    """Context manager with a temporary cache folder if the user's cannot be written.

    Another check reports that error; without a cache every video would seem unreadable.
    """
    try:
        check_folder(settings.cache_dir(), settings.CACHE)
    except TasksError:
        data = settings.SAMPLE if settings.is_sample() else settings.data_root()
    else:
        yield
        return
    with (
        TemporaryDirectory() as folder,
        settings.use_options({settings.DATA: data, settings.CACHE: folder}),
    ):
        yield


def _settings() -> Findings:
    for line in settings.misspelt():
        yield Finding("error", line, f"unset {line.partition(':')[0]}")
    chosen = [one for one in settings.TABLE.values() if settings.text(one)]
    for one in chosen:
        try:
            settings.value(one)
        except TasksError as error:
            yield Finding("error", str(error), f"{one.option} {one.metavar}, or unset {one}")
    # Names only, no values: a value may be a key by mistake.
    yield Finding("ok", f"set: {', '.join(one for one in chosen) or 'none'}")


def _versions() -> Findings:
    from packaging.requirements import Requirement

    there = {one: _version(one) for one in _SHOWN}
    there["decord"] = there["decord"] or _version("decord2")  # the same module, for ARM
    told = [f"{name} {version or 'not installed'}" for name, version in there.items()]
    yield Finding("ok", ", ".join([f"Python {platform.python_version()}", *told]))
    for needed in map(Requirement, metadata.requires("lmms-eval-tasks") or ()):
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        found = _version(needed.name)
        if found is None or not needed.specifier.contains(found, prereleases=True):
            told_ = f"{needed.name} {found or 'is not installed'}; required: {needed.specifier}"
            yield Finding("error", told_, f"pip install '{needed.name}{needed.specifier}'")
    if another := model_capabilities.of_another_host():
        yield Finding(
            "warning",
            another,
            f"pip install lmms-eval=={model_capabilities.capability_table().host}",
        )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _gpu() -> Findings:
    import torch

    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(number)
            name = torch.cuda.get_device_name(number)
            told = f"{name}: {free / 1e9:.0f} of {total / 1e9:.0f} GB free"
            yield Finding("ok", f"{told}, CUDA {torch.version.cuda}")
    elif shutil.which("nvidia-smi"):
        made_for = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
        yield Finding(
            "warning",
            f"an NVIDIA driver is installed, but torch, built for {made_for}, finds no GPU",
        )
    else:
        yield Finding("ok", "no GPU: enough for models behind an API and for small models")


def _encoders() -> Findings:
    import av

    if lacking := [name for name in _ENCODERS if name not in av.codecs_available]:
        yield Finding("error", f"PyAV {av.__version__} was built without {', '.join(lacking)}")
    else:
        yield Finding("ok", f"{', '.join(_ENCODERS)} in PyAV {av.__version__}")


def _keys() -> Findings:
    """Report for each API key if it is set in the environment, without its value."""
    states = {one: "set" if os.environ.get(one) else "not set" for one in _KEYS}
    yield Finding("ok", ", ".join(f"{one} is {state}" for one, state in states.items()))


def _folder(variable: str, folder: Path | None) -> Findings:
    if folder is None:
        yield Finding(
            "warning", "judges' replies are not kept: a run that was stopped pays for them again"
        )
        return
    check_folder(folder, variable)
    free = shutil.disk_usage(folder).free
    told = f"{folder}: writable, {free / 1e9:,.1f} GB free"
    yield Finding("ok" if free > ROOM else "warning", told)


def _hub() -> Findings:
    """Check the folder of weights of the Hugging Face hub; an unwritable one is only a warning."""
    from huggingface_hub.constants import HF_HOME

    try:
        yield from _folder("HF_HOME", Path(HF_HOME))
    except TasksError as error:
        yield Finding("warning", f"{error}: nothing can be downloaded from the Hugging Face hub")
