"""Prompt files: found, checked, hashed and filled in, the same way for models and for judges.

A prompt file is a YAML mapping from a part's name to its text, with `{placeholder}` where a value
goes. It ends in `.yml`, since the host takes every `.yaml` below our folder for a task. The user's
folder comes first, file by file, then the packaged `<benchmark>/prompts/`.
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

# A lone identifier in braces. JSON written in a prompt (`{"correct": true}`) is no placeholder.
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def digest(content: bytes) -> str:
    """The hash by which results tell one prompt file from another."""
    return hashlib.sha256(content).hexdigest()[:12]


@dataclass(frozen=True)
class Prompt:
    """One checked prompt file."""

    text: dict[str, str]  # part -> text with placeholders
    hash: str  # first 12 hex digits of the SHA-256 of the file's bytes
    source: str  # where it was read: the user's path, or the packaged one inside the package

    def note(self) -> dict[str, str]:
        """Its hash and file, for results."""
        return {"hash": self.hash, "source": self.source}

    @property
    def name(self) -> str:
        """Its file and hash, for people."""
        return f"{self.source} ({self.hash})"


def placeholders(template: str) -> set[str]:
    """Names that `fill` replaces in `template`."""
    return set(_PLACEHOLDER.findall(template))


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values where their placeholders stand, in one pass: a value is never read as a template.

    Raises:
        PromptError: the template has a placeholder without a value.
    """
    if missing := placeholders(template) - set(values):
        raise PromptError(f"no value for placeholder {_braced(missing)}")
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def load(
    benchmark: str,
    name: str,
    required: Mapping[str, Collection[str]],
    override_dir: Path | None = None,
    optional: Mapping[str, Collection[str]] | None = None,
) -> Prompt:
    """Read `<name>.yml` of a benchmark, the user's version before the packaged one.

    Args:
        benchmark: subpackage of lmms_eval_tasks, and subfolder of the user's folder.
        name: file name, with or without `.yml`.
        required: for each part its placeholders, "a|b" for at least one of two, "a|" for one that
            may lack. No others are allowed in it: a misspelt one would reach the model.
        override_dir: the user's folder, that of the settings unless told; a file it lacks is ours.
        optional: parts that may be there too, likewise.

    Raises:
        PromptError: naming the file, the part and the placeholder.
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
    """Values made of prompts in a run, by the function and its arguments."""


def once(make: Made) -> Made:
    """`make`, called once in a run for its arguments: each item asks for what prompts make."""

    @functools.wraps(make)
    def kept(*args: Any, **named: Any) -> Any:
        made, key = context.current().own(_Made), (make, args, *sorted(named.items()))
        if key not in made:
            made[key] = make(*args, **named)
        return made[key]

    return cast(Made, kept)


def file(
    benchmark: str,
    name: str,
    required: Mapping[str, Collection[str]],
    optional: Mapping[str, Collection[str]] | None = None,
) -> Callable[[], Prompt]:
    """`load` of this file, once for a run and when it is first asked for."""
    return once(functools.partial(load, benchmark, name, required, optional=optional))


def forget() -> None:
    """Read prompts anew from now on, in the run that goes on."""
    context.current().put(_Made, None)


def _read(benchmark: str, file: str, override_dir: Path | None) -> tuple[bytes, str]:
    ours = resources.files(registry.package(benchmark)) / "prompts"
    if override_dir is not None:
        if not override_dir.is_dir():
            raise PromptError(f"{override_dir}: no such folder of prompts")
        folders = {*registry.NAMES, "judges"}
        known = {one.name for one in ours.iterdir() if one.name.endswith(".yml")}
        for stray in sorted(override_dir.glob("*/*.y*ml")):  # what would have no effect
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
