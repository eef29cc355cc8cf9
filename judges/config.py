"""The judge's configuration from a short form or a file; no function here reads the environment.

The key is a SecretStr, which neither repr, `describe` nor any message shows.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.providers.exchange import MOST_TOKENS
from lmms_eval_tasks.judges.verdict import (
    DEBATE,
    DEFAULT_BASE_URL,
    HUGGINGFACE,
    MAX_TOKENS,
    NONE,
    OPENAI,
    PANEL,
    REPLAY,
    JudgeConfig,
    Sampling,
    first_problem,
)
from lmms_eval_tasks.utils.released_files import read_yaml

KEY, AZURE_KEY = "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com")
REASONING_TOKENS = 8192  # a reasoning model's reply includes its reasoning

_CHOICES = (
    f"set {KEY}, or {settings.JUDGE.option} MODEL@BASE_URL for a local "
    f"endpoint, or {settings.JUDGE.option} none to generate now and judge later"
)
_FORMS = (
    f"{settings.JUDGE.option} takes MODEL, MODEL@http(s)://HOST[:PORT]/v1, "
    "hf:NAME_OR_FOLDER, replay:FILE.jsonl, FILE.yml or none (docs/judges.md)"
)
_SPEC = re.compile(r"(?P<model>(?!(?i:https?)://)[^@\s]+)(?:@(?P<url>(?i:https?)://\S+))?")
_REASONING = re.compile(r"(?:.*/)?(?:o[1-9]|gpt-5)(?!\d)", re.IGNORECASE)
_FILE = (".yml", ".yaml")


def environment(dry_run: bool) -> Mapping[str, str]:
    """Return the process's environment; for an estimate, with a made-up key if none is set.

    An estimate sends no request, so it needs no key.
    """
    return {**os.environ, KEY: os.environ.get(KEY) or "none"} if dry_run else os.environ


def resolve(spec: str | None, env: Mapping[str, str], *, default_model: str) -> JudgeConfig:
    """Return the judge of a short form or a file (`FILE.yml`).

    `MODEL[@BASE_URL]` is an OpenAI-compatible endpoint (OpenAI's own without a URL),
    `hf:NAME_OR_FOLDER` a model in this process, `replay:FILE` recorded replies, `none` no judge.
    None or a blank is `default_model` at OpenAI. The key comes from OPENAI_API_KEY (for Azure's
    hosts from AZURE_OPENAI_API_KEY, if set). Local URLs need none: loopback, private and link-local
    addresses, and host names without a dot.

    Args:
        spec: the short form or file.
        env: environment variables, for the keys.
        default_model: the judge of the benchmark's paper, the only one that is `comparable`.

    Raises:
        JudgeError: no key, or not one of the forms; the message never repeats a key.
    """
    spec = (spec or "").strip()
    if spec.lower() == NONE:
        return JudgeConfig(NONE)
    key = env.get(KEY, "").strip()
    # Else the key would be printed and saved. A shorter value (vLLM users set EMPTY, or x) may be a
    # common word.
    if (len(key) >= 8 and key in spec) or spec.startswith("sk-"):
        raise JudgeError(f"{settings.JUDGE.option} holds a key: put keys into {KEY}; {_FORMS}")
    if spec.endswith(_FILE):
        return _read(Path(spec).expanduser(), env, default_model)
    kind, colon, rest = spec.partition(":")
    if kind == "hf" and colon:
        return JudgeConfig(HUGGINGFACE, rest)
    if kind == REPLAY and colon:
        return JudgeConfig(REPLAY, str(Path(rest).expanduser()))
    match = _SPEC.fullmatch(spec or default_model)
    if match is None:
        # Only the part before the first @: the rest may have a password.
        shown = spec.partition("@")[0]
        raise JudgeError(f"not a judge: {shown + ('@...' if '@' in spec else '')!r}. {_FORMS}")
    return _endpoint(match["model"], match["url"], env, default_model)


def _endpoint(
    model: str,
    url: str | None,
    env: Mapping[str, str],
    default_model: str,
    key_variable: str | None = None,
) -> JudgeConfig:
    """Return an OpenAI-compatible endpoint with its key and the sampling that suits the model."""
    try:
        parts = urlsplit(url or DEFAULT_BASE_URL)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or "@" in parts.netloc:
        raise JudgeError(
            "the judge's URL requires a host name, and may have no query, "
            f"fragment, user or invalid port. {_FORMS}"
        )
    host, variable = parts.hostname or "", key_variable or KEY
    if host.endswith(AZURE_HOSTS) and key_variable is None and env.get(AZURE_KEY, "").strip():
        variable = AZURE_KEY
    key = env.get(variable, "").strip()
    if not key.isascii() or any(c.isspace() or not c.isprintable() for c in key):
        raise JudgeError(
            f"{variable} is not a key: it holds a space, a line end or a character outside ASCII"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    base_url = url and f"{parts.scheme}://{parts.netloc}{path}"
    if not key and not is_local(host):
        where = f" at {base_url} is not local and" if url else ""
        how = _CHOICES if url is None and key_variable is None else f"set {variable}"
        raise JudgeError(f"the judge {model}{where} requires a key: {how}")
    # Greedy and short; a reasoning model takes no temperature and needs tokens for its reasoning.
    drawn = (None, REASONING_TOKENS) if is_reasoning(model) else (0.0, MAX_TOKENS)
    paper = re.fullmatch(re.escape(default_model) + r"(-\d{4}-\d\d-\d\d)?", model)
    return JudgeConfig(
        OPENAI,
        model,
        base_url,
        sampling=Sampling(*drawn),
        comparable=bool(paper) and url is None,
        key=SecretStr(key) if key else None,
    )


def is_reasoning(model: str) -> bool:
    """Return True for OpenAI's reasoning models (o1, gpt-5, ...), which take other parameters."""
    return bool(_REASONING.match(model)) and "chat" not in model


def is_local(host: str) -> bool:
    """Return True for a loopback, private or link-local address, or a name without a dot."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(".localhost"))
    return address.is_loopback or address.is_private or address.is_link_local


# --- from a file ----------------------------------------------------------------------------------


class _JudgeFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Model(_JudgeFile):
    """One language model; every setting is optional but the model."""

    model: str = Field(min_length=1)
    base_url: str | None = None
    key_variable: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    reasoning_effort: str | None = None
    reply_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    repairs: int = Field(default=1, ge=0)
    timeout: float = Field(default=60.0, gt=0, le=86_400)  # at most a day
    retries: int = Field(default=5, ge=0)
    device: str = "auto"
    dtype: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False


class _Panel(_JudgeFile):
    panel: list[str | _Model] = Field(min_length=2)
    rule: Literal["majority", "mean", "median"] = "majority"
    name: str = ""


class _Debate(_JudgeFile):
    debate: list[str | _Model] = Field(min_length=2, max_length=2)  # the agents
    consolidator: str | _Model | None = None  # default: the last agent's model
    name: str = ""


def _read(path: Path, env: Mapping[str, str], default_model: str) -> JudgeConfig:
    """Return the judge that a file describes; members are short forms, or mappings of one model."""
    values = read_yaml(path, "keys such as `model: gpt-4o`")
    kind = _Panel if "panel" in values else _Debate if "debate" in values else _Model
    try:
        parsed = kind.model_validate(values)
    except ValidationError as error:
        raise JudgeError(f"{path}: {first_problem(error)}") from None

    def config_of(spec: str | _Model) -> JudgeConfig:
        spec = _Model(model=spec) if isinstance(spec, str) else spec
        if spec.model.endswith(_FILE):
            raise JudgeError(f"{path}: model {spec.model}: expected a model's name, found a file")
        if spec.base_url or spec.key_variable:
            found = _endpoint(spec.model, spec.base_url, env, default_model, spec.key_variable)
        else:
            found = resolve(spec.model, env, default_model=default_model)
        if found.provider == NONE and parsed is not spec:
            raise JudgeError(f"{path}: {NONE} cannot be a member of several judges: name models")
        own = spec.model_dump(exclude_unset=True, exclude={"model", "base_url", "key_variable"})
        names = {field.name for field in dataclasses.fields(Sampling)} & own.keys()
        drawn = dataclasses.replace(found.sampling, **{name: own.pop(name) for name in names})
        return dataclasses.replace(found, sampling=drawn, **own)

    if isinstance(parsed, _Model):
        return config_of(parsed)
    if isinstance(parsed, _Debate):
        given = (*parsed.debate, parsed.consolidator or parsed.debate[-1])
        return JudgeConfig(DEBATE, members=tuple(map(config_of, given)), name=parsed.name)
    members = tuple(map(config_of, parsed.panel))
    return JudgeConfig(PANEL, members=members, rule=parsed.rule, name=parsed.name)
