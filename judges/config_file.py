"""A judge from a YAML file: the short form's settings by name, panels and debates.

model: gpt-5-mini                  # or hf:FOLDER, replay:FILE, offline
base_url: http://localhost:8000/v1 # optional
key_variable: MY_KEY               # the variable that holds the key, never the key itself
max_tokens: 2048

panel: [gpt-4o, qwen@http://gpu07:8000/v1, other.yml]
rule: median
tie: lower
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import config
from lmms_eval_tasks.judges.config import JudgeConfig
from lmms_eval_tasks.judges.exchange import Sampling


def resolve(spec: str | None, env: Mapping[str, str], *, default_model: str) -> JudgeConfig:
    """The judge that a file (`FILE.yml`) or a short form names (`config.short_form`).

    Raises:
        JudgeError: no key, or not one of the forms; the message never repeats a key.
    """
    given = (spec or "").strip()
    if given.endswith((".yml", ".yaml")):
        config.refuse_key(given, env)
        return read(Path(given).expanduser(), env, default_model=default_model)
    return config.short_form(spec, env, default_model=default_model)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Model(_Strict):
    """One language model, or `offline`; every setting is optional but the model."""

    model: str = Field(min_length=1)
    base_url: str | None = None
    api_version: str | None = None
    key_variable: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    reasoning_effort: str | None = None
    reply_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    repairs: int = Field(default=1, ge=0)
    timeout: float = Field(default=60.0, gt=0)
    retries: int = Field(default=5, ge=0)
    device: str = "auto"
    dtype: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False


class _Panel(_Strict):
    panel: list[str | _Model] = Field(min_length=2)
    rule: Literal["majority", "mean", "median"] = "majority"
    tie: Literal["lower", "higher", "mean", "none"] = "lower"
    name: str = ""


class _Debate(_Strict):
    debate: list[str | _Model] = Field(min_length=2)  # the agents
    consolidator: str | _Model | None = None  # the first agent's model if not given
    rounds: int = Field(default=2, ge=1)
    name: str = ""


def read(path: Path, env: Mapping[str, str], *, default_model: str) -> JudgeConfig:
    """The judge that a file describes.

    Members of a panel or a debate are short forms, further files (relative to this one) or the
    same keys.

    Raises:
        JudgeError: naming the file and the key that is wrong.
    """
    values = _load(path)
    kind: type[_Model] | type[_Panel] | type[_Debate] = _Model
    for name in _KINDS.keys() & values.keys():
        kind = _KINDS[name]
    try:
        parsed = kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise JudgeError(f"{path}: {place}: {first['msg']}") from None
    if isinstance(parsed, _Panel):
        members = tuple(_member(m, path, env, default_model) for m in parsed.panel)
        return JudgeConfig(
            config.PANEL, members=members, rule=parsed.rule, tie=parsed.tie, name=parsed.name
        )
    if isinstance(parsed, _Model):
        return _model(parsed, path, env, default_model)
    last = parsed.consolidator or parsed.debate[0]
    members = tuple(_member(m, path, env, default_model) for m in (*parsed.debate, last))
    return JudgeConfig(config.DEBATE, members=members, rounds=parsed.rounds, name=parsed.name)


_KINDS: dict[str, type[_Panel] | type[_Debate]] = {"panel": _Panel, "debate": _Debate}


def _load(path: Path) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise JudgeError(f"{path}: the judge's file cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise JudgeError(f"{path}: not YAML in UTF-8 ({' '.join(str(error).split())})") from None
    if not isinstance(values, dict):
        raise JudgeError(f"{path}: expected keys such as `model: gpt-4o`")
    return values


def _member(
    member: str | _Model, path: Path, env: Mapping[str, str], default_model: str
) -> JudgeConfig:
    if isinstance(member, _Model):
        return _model(member, path, env, default_model)
    if member.endswith((".yml", ".yaml")):
        file = path.parent / Path(member).expanduser()
        if _KINDS.keys() & _load(file).keys():  # checked first: a file may name itself
            raise JudgeError(f"{path}: {member} is a panel or a debate itself: name models")
        member = str(file)
    found = resolve(member, env, default_model=default_model)
    if found.members or found.provider == config.NONE:
        raise JudgeError(f"{path}: {member} cannot be a member: name models")
    return found


def _model(given: _Model, path: Path, env: Mapping[str, str], default_model: str) -> JudgeConfig:
    """The resolved model, with what the file sets in place of the defaults."""
    if given.base_url or given.key_variable:
        found = config.endpoint(
            given.model,
            given.base_url,
            env,
            default_model=default_model,
            key_variable=given.key_variable,
        )
    elif given.model.endswith((".yml", ".yaml")):
        raise JudgeError(f"{path}: model: a model's name, not a file")
    else:
        found = resolve(given.model, env, default_model=default_model)
    names = given.model_fields_set
    sampled = {f.name for f in dataclasses.fields(Sampling)} & names
    kept = names - sampled - {"model", "base_url", "key_variable"}
    return dataclasses.replace(
        found,
        sampling=dataclasses.replace(
            found.sampling, **{name: getattr(given, name) for name in sampled}
        ),
        **{name: getattr(given, name) for name in kept},
    )
