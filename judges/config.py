"""Which judge, resolved once from its short form; nothing here reads the environment at import.

The key lives in a SecretStr that neither repr, `describe` nor any message shows.
"""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import SecretStr

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError

OPENAI, OFFLINE, NONE = "openai", "offline", "none"
KEY = "OPENAI_API_KEY"
# Always given to the client: it would otherwise take OPENAI_BASE_URL, which on many machines points
# at the model under test.
DEFAULT_BASE_URL = "https://api.openai.com/v1"

_CHOICES = (
    f"set {KEY}; or {settings.JUDGE}=MODEL@BASE_URL for a local endpoint; or "
    f"{settings.JUDGE}=offline for the embedded rules (not comparable with the paper); or "
    f"{settings.JUDGE}=none to generate now and judge later"
)
_FORMS = f"{settings.JUDGE} takes MODEL, MODEL@http(s)://HOST[:PORT]/v1, offline or none"
_SPEC = re.compile(r"(?P<model>(?!https?://)[^@\s]+)(?:@(?P<url>https?://\S+))?")


@dataclass(frozen=True)
class JudgeConfig:
    """Everything that makes a judge. Hashable: one judge per config and process (`judges.make`)."""

    provider: str  # openai, offline or none
    model: str = ""  # as asked for
    base_url: str | None = None  # without userinfo, query or fragment; None for OpenAI's own
    temperature: float = 0.0
    max_tokens: int = 512  # of the reply: one short reason and a verdict
    timeout: float = 60.0  # seconds, each attempt
    retries: int = 5  # after the first attempt; backoff and Retry-After are the openai package's
    comparable: bool = False  # the judge of the benchmark's paper, at its own endpoint
    authorization: SecretStr | None = field(default=None, repr=False)  # the whole header value

    @property
    def label(self) -> str:
        """Short name of the judge in a verdict."""
        if self.provider != OPENAI:
            return self.provider
        return f"{self.model}@{self.base_url}" if self.base_url else self.model

    def describe(self) -> dict[str, Any]:
        """Plain types for results and logs; no secrets.

        `warning` is None, or one sentence that every number made by this judge must carry.
        """
        description: dict[str, Any] = {"provider": self.provider, "model": self.model or None}
        if self.provider == OPENAI:
            description |= {
                "base_url": self.base_url or DEFAULT_BASE_URL,
                "temperature": self.temperature,
                "max_tokens": self.max_tokens,
                "timeout": self.timeout,
                "retries": self.retries,
                "openai_version": _version("openai"),
            }
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
            return "not judged yet: judge the saved samples with `lmms-eval-tasks rescore`"
        return f"judged by {self.label}, not by the paper's judge: compare with that in mind"


def resolve(spec: str | None, env: Mapping[str, str], *, default_model: str) -> JudgeConfig:
    """The judge that a short form names.

    `MODEL[@BASE_URL]` is an OpenAI-compatible endpoint (OpenAI's own without a URL), `offline` the
    embedded rules, `none` nobody. None or a blank is `default_model` at OpenAI. The key comes from
    OPENAI_API_KEY, or from the URL's userinfo as basic authentication. Local URLs need none:
    loopback, private and link-local addresses, and host names without a dot.

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
    if (key and key in spec) or spec.startswith("sk-"):
        raise JudgeError(f"{settings.JUDGE} holds a key: keys go into {KEY}; {_FORMS}")
    if not spec:
        if not key:
            raise JudgeError(f"no judge: {default_model} needs a key. {_CHOICES}")
        spec = default_model
    match = _SPEC.fullmatch(spec)
    if match is None:
        # Only the part before the first @: what follows may hold a password.
        shown = spec.partition("@")[0]
        raise JudgeError(f"not a judge: {shown + ('@...' if '@' in spec else '')!r}. {_FORMS}")
    model, url = match["model"], match["url"]
    if url is None:
        if not key:
            raise JudgeError(f"the judge {model} at OpenAI needs a key: {_CHOICES}")
        paper = re.fullmatch(re.escape(default_model) + r"(-\d{4}-\d\d-\d\d)?", model)
        return JudgeConfig(OPENAI, model, comparable=bool(paper), authorization=_bearer(key))
    parts = _split(url)
    authorization = _userinfo(parts) or (_bearer(key) if key else None)
    base_url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    if authorization is None and not is_local(parts.hostname or ""):
        raise JudgeError(f"the judge {model} at {base_url} is not local and needs a key: set {KEY}")
    return JudgeConfig(OPENAI, model, base_url, authorization=authorization)


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
    if not usable:
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
