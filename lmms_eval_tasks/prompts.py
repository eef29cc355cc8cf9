"""Prompt files: search, check, hash and filling in, in the same way for models and for judges.

A prompt file is a YAML mapping from a part's name to its text, with `{placeholder}` in place of a
value. Its name ends in `.yml`, because lmms-eval takes every `.yaml` below our folder for a task.
For each file, the user's folder comes before the packaged `<benchmark>/prompts/`.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

from lmms_eval_tasks import context, registry, settings
from lmms_eval_tasks.errors import DataError, PromptError, nearest
from lmms_eval_tasks.utils import json_files

Made = TypeVar("Made", bound=Callable[..., Any])

# A placeholder is one identifier in braces. JSON in a prompt (`{"correct": true}`) does not match.
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def digest(content: bytes) -> str:
    """Return 12 hex digits of the content's SHA-256, by which results tell prompt files apart."""
    return hashlib.sha256(content).hexdigest()[:12]


@dataclass(frozen=True)
class Prompt:
    """One checked prompt file."""

    text: dict[str, str]  # part -> text with placeholders
    hash: str  # first 12 hex digits of the SHA-256 of the file's bytes
    source: str  # path of the file: the user's, or inside the package

    def note(self) -> dict[str, str]:
        """Return the file's hash and source, for results."""
        return {"hash": self.hash, "source": self.source}

    @property
    def name(self) -> str:
        """The file's source and hash, for messages."""
        return f"{self.source} ({self.hash})"


def placeholders(template: str) -> set[str]:
    """Return the names of the placeholders in `template`."""
    return set(_PLACEHOLDER.findall(template))


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with each placeholder replaced by its value.

    All are replaced in one pass, so that a value with braces is never read as a template.

    Raises:
        PromptError: the template has a placeholder without a value.
    """
    if missing := placeholders(template) - set(values):
        raise PromptError(f"no value for placeholder {_braced(missing)}")
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def load_prompt(
    benchmark: str,
    name: str,
    required: Mapping[str, Collection[str]],
    override_dir: Path | None = None,
    optional: Mapping[str, Collection[str]] | None = None,
) -> Prompt:
    """Read and check `<name>.yml` of a benchmark: the user's file if it exists, else ours.

    Args:
        benchmark: the benchmark's name, which is also the subfolder of the user's folder.
        name: file name, with or without `.yml`.
        required: for each required part its placeholders: "a|b" requires at least one of the two,
            "a|" allows one. Other placeholders are errors, because a misspelt one would reach the
            model.
        override_dir: the user's folder; default: the setting `--prompts`. For a file that it lacks,
            the packaged file counts.
        optional: the same for parts that the file may lack.

    Raises:
        PromptError: a part or placeholder is wrong or missing; the message names the file, the part
            and the placeholder.
    """
    file = name if name.endswith(".yml") else f"{name}.yml"
    content, source = _read(benchmark, file, override_dir or settings.value(settings.PROMPTS))
    try:
        text = json_files.parsed_yaml(content.decode("utf-8"))
    except ValueError as error:
        raise PromptError(f"{source}: not YAML in UTF-8 ({error})") from error
    if not isinstance(text, dict) or not text:
        raise PromptError(f"{source}: expected a mapping from a part's name to its text")
    known_parts = {**(optional or {}), **required}
    if absent := [part for part in required if part not in text]:
        raise PromptError(f"{source}: part {absent[0]!r} is missing")
    for part, said in text.items():
        if not isinstance(said, str) or not said.strip():
            raise PromptError(f"{source}: part {part!r} has no text")
        if part not in known_parts:
            known = f"known: {', '.join(sorted(known_parts))}{nearest(part, known_parts)}"
            raise PromptError(f"{source}: unknown part {part!r}; {known}")
        place, found, names = f"{source}, part {part!r}", placeholders(said), known_parts[part]
        if missing := [one for one in names if not {*found, ""} & set(one.split("|"))]:
            raise PromptError(f"{place}: the placeholder {_braced(missing)} is missing")
        allowed = {one for name in names for one in name.split("|") if one}
        if unknown := found - allowed:
            known = _braced(allowed) or "none"
            raise PromptError(f"{place}: unknown placeholder {_braced(unknown)}; known: {known}")
    return Prompt(text, digest(content), source)


class _Made(dict[Any, Any]):
    """Values that were computed from prompts in a run, by function and arguments."""


def once(make: Made) -> Made:
    """Return a function that calls `make` once in a run for the same arguments.

    All items of a run share what is computed from prompts.
    """

    @functools.wraps(make)
    def cached(*args: Any, **kwargs: Any) -> Any:
        made, key = context.current().instance_of(_Made), (make, args, *sorted(kwargs.items()))
        if key not in made:
            made[key] = make(*args, **kwargs)
        return made[key]

    return cast(Made, cached)


def file(
    benchmark: str,
    name: str,
    required: Mapping[str, Collection[str]],
    optional: Mapping[str, Collection[str]] | None = None,
) -> Callable[[], Prompt]:
    """Return a function that calls `load` for this file, once in a run and at the first use."""
    return once(functools.partial(load_prompt, benchmark, name, required, optional=optional))


def forget() -> None:
    """Discard this run's prompts, so that their files are read again at the next use."""
    context.current().put(_Made, None)


def _read(benchmark: str, file: str, override_dir: Path | None) -> tuple[bytes, str]:
    ours = resources.files(registry.package(benchmark)) / "prompts"
    if override_dir is not None:
        if not override_dir.is_dir():
            raise PromptError(f"{override_dir}: no such folder of prompts")
        folders = {*registry.NAMES, "judges"}
        known = {one.name for one in ours.iterdir() if one.name.endswith(".yml")}
        for stray in sorted(override_dir.glob("*/*.y*ml")):  # a file that would have no effect
            if stray.parent.name not in folders:
                wrong, whose, names = stray.parent, "this package", folders
            elif stray.parent.name == benchmark and stray.name not in known:
                wrong, whose, names = stray, benchmark, known
            else:
                continue
            near = nearest(wrong.name, names) or f"; known: {', '.join(sorted(names))}"
            raise PromptError(f"{wrong}: no prompt file of {whose} has this name{near}")
        own = override_dir / benchmark / file
        if own.exists():
            try:
                return json_files.read_bytes(own), str(own)
            except DataError as error:
                raise PromptError(str(error)) from None
    source = f"{registry.package(benchmark).replace('.', '/')}/prompts/{file}"
    if not (ours / file).is_file():
        raise PromptError(f"{source}: no such prompt file")
    return (ours / file).read_bytes(), source


def _braced(names: Collection[str]) -> str:
    return ", ".join(f"{{{name}}}".replace("|", "} or {") for name in sorted(names))
