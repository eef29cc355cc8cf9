"""Which judge, resolved once from its short form or its file; nothing reads the environment here.

The key lives in a SecretStr that neither repr, `describe` nor any message shows.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import SecretStr

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.exchange import Sampling

OPENAI, HUGGINGFACE, REPLAY = "openai", "huggingface", "replay"
OFFLINE, NONE, PANEL, DEBATE = "offline", "none", "panel", "debate"
KEY, AZURE_KEY = "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"
# Always given to the client: it would otherwise take OPENAI_BASE_URL, which on many machines points
# at the model under test.
DEFAULT_BASE_URL = "https://api.openai.com/v1"
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com")
MAX_TOKENS = 512  # of a reply: one short reason and a verdict
REASONING_TOKENS = 8192  # a reasoning model's reply includes what it thought

_CHOICES = (
    f"set {KEY}; or {settings.JUDGE}=MODEL@BASE_URL for a local endpoint; or "
    f"{settings.JUDGE}=offline for the embedded rules (not comparable with the paper); or "
    f"{settings.JUDGE}=none to generate now and judge later"
)
_FORMS = (
    f"{settings.JUDGE} takes MODEL, MODEL@http(s)://HOST[:PORT]/v1, hf:NAME_OR_FOLDER, "
    "replay:FILE.jsonl, FILE.yml, offline or none (docs/judges.md)"
)
_SPEC = re.compile(r"(?P<model>(?!https?://)[^@\s]+)(?:@(?P<url>https?://\S+))?")
_REASONING = re.compile(r"(?:.*/)?(?:o[1-9]|gpt-5)(?!\d)", re.IGNORECASE)


@dataclass(frozen=True)
class JudgeConfig:
    """Everything that makes a judge. Hashable: one judge per config and run (`judges.make`)."""

    provider: str  # one of the names above
    model: str = ""  # as asked for; a recordings file for `replay`
    base_url: str | None = None  # without userinfo, query or fragment; None for OpenAI's own
    api_version: str | None = None  # Azure's dated API; None for its v1 API and everyone else
    sampling: Sampling = field(default_factory=lambda: Sampling(0.0, MAX_TOKENS))
    reply_format: str = "auto"  # or json_schema, json_object, text
    repairs: int = 1  # times to ask again for a reply that could not be used
    timeout: float = 60.0  # seconds, each attempt
    retries: int = 5  # after the first attempt
    device: str = "auto"  # huggingface
    dtype: str = "auto"  # huggingface
    revision: str | None = None  # huggingface
    trust_remote_code: bool = False  # huggingface
    members: tuple[
        JudgeConfig, ...
    ] = ()  # panel: the judges; debate: the agents, consolidator last
    rule: str = "majority"  # panel: majority, mean, median
    tie: str = "lower"  # panel: lower, higher, mean, none
    rounds: int = 2  # debate
    name: str = ""  # panel, debate: what to call it
    comparable: bool = False  # the judge of the benchmark's paper, at its own endpoint
    authorization: SecretStr | None = field(default=None, repr=False)  # scheme and key

    @property
    def label(self) -> str:
        """Short name of the judge in verdicts and tables."""
        if self.provider in (PANEL, DEBATE):
            return self.name or f"{self.provider}({', '.join(m.label for m in self.members)})"
        if self.provider in (HUGGINGFACE, REPLAY):
            return f"{'hf' if self.provider == HUGGINGFACE else REPLAY}:{self.model}"
        if self.provider != OPENAI:
            return self.provider
        return f"{self.model}@{self.base_url}" if self.base_url else self.model

    @property
    def fingerprint(self) -> str:
        """12 hex digits of everything that can change a verdict; no part of the key."""
        described = self.describe()
        for name in ("timeout", "retries", "openai_version", "version", "comparable", "warning"):
            described.pop(name, None)
        described["members"] = [member.fingerprint for member in self.members]
        text = json.dumps(described, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def endpoints(self) -> tuple[JudgeConfig, ...]:
        """The language models behind this judge: itself, a panel's members, a debate's agents."""
        if self.members:
            return tuple(model for member in self.members for model in member.endpoints)
        return (self,) if self.provider in (OPENAI, HUGGINGFACE) else ()

    def describe(self) -> dict[str, Any]:
        """Plain types for results and logs; no secrets.

        `warning` is None, or one sentence that every number made by this judge must carry.
        """
        description: dict[str, Any] = {"provider": self.provider, "model": self.model or None}
        if self.provider in (OPENAI, HUGGINGFACE):
            description |= {**vars(self.sampling), "repairs": self.repairs}
        if self.provider == OPENAI:
            description |= {
                "base_url": self.base_url or DEFAULT_BASE_URL,
                "api_version": self.api_version,
                "reply_format": self.reply_format,
                "timeout": self.timeout,
                "retries": self.retries,
                "openai_version": _version("openai"),
            }
        if self.provider == HUGGINGFACE:
            description |= {"device": self.device, "dtype": self.dtype, "revision": self.revision}
            description |= {f"{name}_version": _version(name) for name in ("transformers", "torch")}
        if self.provider == PANEL:
            description |= {"rule": self.rule, "tie": self.tie}
        if self.provider == DEBATE:
            description["rounds"] = self.rounds
        if self.members:
            description["members"] = [member.describe() for member in self.members]
        return description | {
            "version": _version("lmms-eval-tasks"),
            "comparable": self.comparable,
            "warning": self._warning(),
        }

    def _warning(self) -> str | None:
        if self.comparable:
            return None
        if self.provider == OFFLINE:
            from lmms_eval_tasks.judges import offline

            return offline.WARNING
        if self.provider == NONE:
            return "not judged yet: judge the saved samples with `lmms-eval-tasks judge`"
        return f"judged by {self.label}, not by the paper's judge: compare with that in mind"


def short_form(spec: str | None, env: Mapping[str, str], *, default_model: str) -> JudgeConfig:
    """The judge that a short form names; files of judges are `config_file.resolve`'s.

    `MODEL[@BASE_URL]` is an OpenAI-compatible endpoint (OpenAI's own without a URL),
    `hf:NAME_OR_FOLDER` a model in this process, `replay:FILE` recorded replies, `offline` the
    embedded rules, `none` nobody. None or a
    blank is `default_model` at OpenAI. The key comes from OPENAI_API_KEY (AZURE_OPENAI_API_KEY for
    Azure's hosts, if set), or from the URL's userinfo as basic authentication. Local URLs need
    none: loopback, private and link-local addresses, and host names without a dot.

    Args:
        spec: `settings.judge_spec()`.
        env: where the key is looked up, usually os.environ.
        default_model: the judge of the benchmark's paper; it alone is `comparable`.

    Raises:
        JudgeError: no key, or not one of the forms; the message never repeats a key.
    """
    spec, key = (spec or "").strip(), env.get(KEY, "").strip()
    if spec in (OFFLINE, NONE):
        return JudgeConfig(provider=spec)
    refuse_key(spec, env)
    kind, _, rest = spec.partition(":")
    if kind in ("hf", REPLAY) and not rest and ":" in spec:
        raise JudgeError(f"{spec!r} names nothing. {_FORMS}")
    if kind == "hf" and rest:
        return JudgeConfig(HUGGINGFACE, rest)
    if kind == REPLAY and rest:
        return JudgeConfig(REPLAY, str(Path(rest).expanduser()))
    if not spec:
        if not key:
            raise JudgeError(f"no judge: {default_model} needs a key. {_CHOICES}")
        spec = default_model
    match = _SPEC.fullmatch(spec)
    if match is None:
        # Only the part before the first @: what follows may hold a password.
        shown = spec.partition("@")[0]
        raise JudgeError(f"not a judge: {shown + ('@...' if '@' in spec else '')!r}. {_FORMS}")
    return endpoint(match["model"], match["url"], env, default_model=default_model)


def refuse_key(spec: str, env: Mapping[str, str]) -> None:
    """A key in the judge's name would be printed and saved.

    Raises:
        JudgeError: there is one.
    """
    key = env.get(KEY, "").strip()
    # What is shorter (vLLM users set EMPTY, or x) is no key but a common word.
    if (len(key) >= 8 and key in spec) or spec.startswith("sk-"):
        raise JudgeError(f"{settings.JUDGE} holds a key: keys go into {KEY}; {_FORMS}")


def endpoint(
    model: str,
    url: str | None,
    env: Mapping[str, str],
    *,
    default_model: str,
    key_variable: str | None = None,
) -> JudgeConfig:
    """An OpenAI-compatible endpoint with its key and the sampling that suits the model.

    Raises:
        JudgeError: the URL is none, or the endpoint needs a key that the variable does not hold.
    """
    variable = key_variable or KEY
    key = env.get(variable, "").strip()
    sampling = default_sampling(model)
    if url is None:
        if not key:
            raise JudgeError(
                f"the judge {model} at OpenAI needs a key: "
                + (_CHOICES if variable == KEY else f"set {variable}")
            )
        paper = re.fullmatch(re.escape(default_model) + r"(-\d{4}-\d\d-\d\d)?", model)
        return JudgeConfig(
            OPENAI, model, sampling=sampling, comparable=bool(paper), authorization=_bearer(key)
        )
    parts = _split(url)
    host = parts.hostname or ""
    if host.endswith(AZURE_HOSTS) and key_variable is None:
        key = env.get(AZURE_KEY, "").strip() or key
        variable = f"{AZURE_KEY} or {KEY}"
    authorization = _userinfo(parts) or (_bearer(key) if key else None)
    base_url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    if authorization is None and not is_local(host):
        raise JudgeError(
            f"the judge {model} at {base_url} is not local and needs a key: set {variable}"
        )
    return JudgeConfig(OPENAI, model, base_url, sampling=sampling, authorization=authorization)


def default_sampling(model: str) -> Sampling:
    """Greedy and short; a reasoning model takes no temperature and needs room to think."""
    if is_reasoning(model):
        return Sampling(temperature=None, max_tokens=REASONING_TOKENS)
    return Sampling(temperature=0.0, max_tokens=MAX_TOKENS)


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
    if parts.query or parts.fragment:
        raise JudgeError(f"the judge's URL must not have a query or a fragment. {_FORMS}")
    return parts


def _userinfo(parts: SplitResult) -> SecretStr | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return SecretStr("Basic " + b64encode(pair.encode()).decode())


def _bearer(key: str) -> SecretStr:
    return SecretStr(f"Bearer {key}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
