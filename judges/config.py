"""Which judge, resolved once from its short form or its file; nothing reads the environment here.

The key lives in a SecretStr that neither repr, `describe` nor any message shows.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError, nearest
from lmms_eval_tasks.judges.verdict import (
    DEBATE,
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
REASONING_TOKENS = 8192  # a reasoning model's reply includes what it thought

_CHOICES = (
    f"set {KEY}; or {settings.JUDGE}=MODEL@BASE_URL for a local endpoint; or "
    f"{settings.JUDGE}=none to generate now and judge later"
)
_FORMS = (
    f"{settings.JUDGE} takes MODEL, MODEL@http(s)://HOST[:PORT]/v1, hf:NAME_OR_FOLDER, "
    "replay:FILE.jsonl, FILE.yml or none (docs/judges.md)"
)
_SPEC = re.compile(r"(?P<model>(?!https?://)[^@\s]+)(?:@(?P<url>https?://\S+))?")
_OPENAI = re.compile(r"gpt-|chatgpt-|o\d", re.IGNORECASE)  # its models, whichever there will be
_REASONING = re.compile(r"(?:.*/)?(?:o[1-9]|gpt-5)(?!\d)", re.IGNORECASE)
_FILE = (".yml", ".yaml")


def resolve(spec: str | None, env: Mapping[str, str], *, default_model: str) -> JudgeConfig:
    """The judge that a short form or a file (`FILE.yml`) names.

    `MODEL[@BASE_URL]` is an OpenAI-compatible endpoint (OpenAI's own without a URL),
    `hf:NAME_OR_FOLDER` a model in this process, `replay:FILE` recorded replies, `none`
    nobody. None or a blank is `default_model` at OpenAI. The key comes from OPENAI_API_KEY
    (AZURE_OPENAI_API_KEY for Azure's hosts, if set). Local URLs need none: loopback, private and
    link-local addresses, and host names without a dot.

    Args:
        default_model: the judge of the benchmark's paper; it alone is `comparable`.

    Raises:
        JudgeError: no key, or not one of the forms; the message never repeats a key.
    """
    spec = (spec or "").strip()
    if spec == NONE:
        return JudgeConfig(NONE)
    _refuse_key(spec, env)
    if spec.endswith(_FILE):
        return _read(Path(spec).expanduser(), env, default_model=default_model)
    kind, colon, rest = spec.partition(":")
    if kind in ("hf", REPLAY) and colon:
        if not rest:
            raise JudgeError(f"{spec!r} names nothing. {_FORMS}")
        local = HUGGINGFACE if kind == "hf" else REPLAY
        return JudgeConfig(local, rest if kind == "hf" else str(Path(rest).expanduser()))
    if "@" not in spec and not colon and spec.lower() != default_model.lower():
        if nearest(spec, ["offline"]):  # the rules of earlier versions
            raise JudgeError(
                f"there is no judge {spec!r}: offline is gone; name none to judge later, hf:MODEL, "
                "or an endpoint MODEL@BASE_URL"
            )
        near = "" if _OPENAI.match(spec) else nearest(spec, (NONE, default_model))
        if near:
            raise JudgeError(f"there is no judge {spec!r}{near} {_FORMS}")
    if not spec:
        if not _key_of(env, KEY):
            raise JudgeError(f"no judge: {default_model} needs a key. {_CHOICES}")
        spec = default_model
    match = _SPEC.fullmatch(spec)
    if match is None:
        # Only the part before the first @: what follows may hold a password.
        shown = spec.partition("@")[0]
        raise JudgeError(f"not a judge: {shown + ('@...' if '@' in spec else '')!r}. {_FORMS}")
    return _endpoint(match["model"], match["url"], env, default_model)


def _refuse_key(spec: str, env: Mapping[str, str]) -> None:
    """A key in the judge's name would be printed and saved."""
    key = env.get(KEY, "").strip()
    # What is shorter (vLLM users set EMPTY, or x) is no key but a common word.
    if (len(key) >= 8 and key in spec) or spec.startswith("sk-"):
        raise JudgeError(f"{settings.JUDGE} holds a key: keys go into {KEY}; {_FORMS}")


def _key_of(env: Mapping[str, str], variable: str) -> str:
    """The key in a variable, without blanks and line ends around it; "" if there is none."""
    key = env.get(variable, "").strip()
    if not key.isascii() or any(c.isspace() or not c.isprintable() for c in key):
        raise JudgeError(f"{variable} holds what no key holds: a space, a line end, not ASCII")
    return key


def _endpoint(
    model: str,
    url: str | None,
    env: Mapping[str, str],
    default_model: str,
    key_variable: str | None = None,
) -> JudgeConfig:
    """An OpenAI-compatible endpoint with its key and the sampling that suits the model."""
    variable = key_variable or KEY
    key = _key_of(env, variable)
    # Greedy and short; a reasoning model takes no temperature and needs room to think.
    thinks = is_reasoning(model)
    sampling = Sampling(None, REASONING_TOKENS) if thinks else Sampling(0.0, MAX_TOKENS)
    if url is None:
        if not key:
            raise JudgeError(
                f"the judge {model} at OpenAI needs a key: "
                + (_CHOICES if variable == KEY else f"set {variable}")
            )
        paper = re.fullmatch(re.escape(default_model) + r"(-\d{4}-\d\d-\d\d)?", model)
        return JudgeConfig(
            OPENAI,
            model,
            sampling=sampling,
            comparable=bool(paper),
            key=SecretStr(key),
        )
    parts = _split(url)
    host = parts.hostname or ""
    if host.endswith(AZURE_HOSTS) and key_variable is None:
        key = _key_of(env, AZURE_KEY) or key
        variable = f"{AZURE_KEY} or {KEY}"
    base_url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    if not key and not is_local(host):
        raise JudgeError(
            f"the judge {model} at {base_url} is not local and needs a key: set {variable}"
        )
    secret = SecretStr(key) if key else None
    return JudgeConfig(OPENAI, model, base_url, sampling=sampling, key=secret)


def is_reasoning(model: str) -> bool:
    """OpenAI's reasoning models (o1, o3, gpt-5, ...), which take other parameters."""
    return bool(_REASONING.match(model)) and "chat" not in model


def is_local(host: str) -> bool:
    """Loopback, private or link-local address, or a name without a dot (localhost, a node)."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(".localhost"))
    return address.is_loopback or address.is_private or address.is_link_local


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.scheme not in ("http", "https"):
        raise JudgeError(f"the judge's URL has no usable host and port. {_FORMS}")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise JudgeError(f"the judge's URL must not have a query, a fragment or a key. {_FORMS}")
    return parts


# --- from a file ----------------------------------------------------------------------------------


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Model(_Strict):
    """One language model; every setting is optional but the model."""

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
    consolidator: str | _Model | None = None  # the last agent's model if not given
    rounds: int = Field(default=0, ge=1)  # 0, as published: debate.py
    name: str = ""


_KINDS: dict[str, type[_Panel] | type[_Debate]] = {"panel": _Panel, "debate": _Debate}
_FORM = "keys such as `model: gpt-4o`"


def _read(path: Path, env: Mapping[str, str], *, default_model: str) -> JudgeConfig:
    """The judge that a file describes.

    Members of a panel or a debate are short forms, further files (relative to this one) or the
    same keys.
    """
    values = read_yaml(path, _FORM)
    kind: type[_Model] | type[_Panel] | type[_Debate] = _Model
    for name in _KINDS.keys() & values.keys():
        kind = _KINDS[name]
    try:
        parsed = kind.model_validate(values)
    except ValidationError as error:
        raise JudgeError(f"{path}: {first_problem(error)}") from None
    if isinstance(parsed, _Model):
        return _model(parsed, path, env, default_model)
    given = parsed.panel if isinstance(parsed, _Panel) else parsed.debate
    if isinstance(parsed, _Debate):
        given = [*given, parsed.consolidator or given[-1]]
    members = tuple(_member(member, path, env, default_model) for member in given)
    if isinstance(parsed, _Debate):
        return JudgeConfig(DEBATE, members=members, rounds=parsed.rounds, name=parsed.name)
    rule, tie = parsed.rule, parsed.tie
    return JudgeConfig(PANEL, members=members, rule=rule, tie=tie, name=parsed.name)


def _member(
    member: str | _Model, path: Path, env: Mapping[str, str], default_model: str
) -> JudgeConfig:
    if isinstance(member, _Model):
        return _model(member, path, env, default_model)
    if member.endswith(_FILE):
        file = path.parent / Path(member).expanduser()
        if _KINDS.keys() & read_yaml(file, _FORM).keys():  # first: a file may name itself
            raise JudgeError(f"{path}: {member} is a panel or a debate itself: name models")
        member = str(file)
    found = resolve(member, env, default_model=default_model)
    if found.members or found.provider == NONE:
        raise JudgeError(f"{path}: {member} cannot be a member: name models")
    return found


def _model(given: _Model, path: Path, env: Mapping[str, str], default_model: str) -> JudgeConfig:
    """The resolved model, with what the file sets in place of the defaults."""
    if given.model.endswith(_FILE):
        raise JudgeError(f"{path}: model: a model's name, not a file")
    if given.base_url or given.key_variable:
        found = _endpoint(given.model, given.base_url, env, default_model, given.key_variable)
    else:
        found = resolve(given.model, env, default_model=default_model)
    own = given.model_dump(exclude_unset=True, exclude={"model", "base_url", "key_variable"})
    drawn = {
        field.name: own.pop(field.name)
        for field in dataclasses.fields(Sampling)
        if field.name in own
    }
    return dataclasses.replace(found, sampling=dataclasses.replace(found.sampling, **drawn), **own)
