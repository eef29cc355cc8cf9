"""A model that writes data in place of verdicts: who may, one reply, and what all of them cost.

It is asked through the layer of the judges, with its providers, cache, limits, budget and ledger.
So a run that was ended goes on where it stopped, and nothing is paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, create_model, model_validator

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, reader
from lmms_eval_tasks.judges.verdict import HUGGINGFACE, MAX_TOKENS, OPENAI, Status

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.judges.costs import Asked, Plan

R = TypeVar("R", bound=BaseModel)


def _line(value: str) -> str:
    if not (line := " ".join(value.split())):
        raise ValueError("an empty text")
    return line


def _some(values: list[Any]) -> list[Any]:
    if not values:
        raise ValueError("an empty list")
    return values


Line = Annotated[str, AfterValidator(_line)]
SOME = AfterValidator(_some)  # of a list


class Form(BaseModel):
    """What such a model has to fill in."""

    model_config = ConfigDict(extra="forbid")


def checked(schema: type[R], check: Callable[[R], R]) -> type[R]:
    """A schema with a check in Python: what is sent is the same, so that it is compiled once."""
    validators: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    return create_model(
        schema.__name__, __base__=schema, __doc__=schema.__doc__, __validators__=validators
    )


REPLY_TOKENS = 4096  # a document is longer than a verdict
SECONDS = 300.0  # that one reply may take: several times as long as a verdict


class FailedError(Exception):
    """A request without a usable reply."""


def writer(
    spec: str, env: Mapping[str, str], option: str, writes: str, default_model: str = ""
) -> JudgeConfig:
    """The model that writes, in the forms of a judge: `MODEL[@BASE_URL]`, `hf:...`, `FILE.yml`.

    The user's setting of the judge is not looked at: who writes and who judges are two decisions.

    Args:
        option: by which it was named, for messages.
        writes: who writes what, for messages.
        default_model: of an endpoint that is named alone.

    Raises:
        JudgeError: it cannot be used, or is no single language model.
    """
    try:
        config = judges.resolve(spec.strip(), env, default_model=default_model)
    except JudgeError as error:
        raise JudgeError(str(error).replace(settings.JUDGE, option)) from None
    if config.provider not in (OPENAI, HUGGINGFACE):
        raise JudgeError(
            f"{option} {config.label}: {writes}: MODEL[@BASE_URL], hf:NAME_OR_FOLDER, or a file of "
            "one model"
        )
    sampling = config.sampling
    if sampling.max_tokens in (None, MAX_TOKENS):  # the default, which fits verdicts
        sampling = replace(sampling, max_tokens=REPLY_TOKENS)
    return replace(config, sampling=sampling, timeout=max(config.timeout, SECONDS))


def reply(judge: Judge, asked: Criterion, fields: Mapping[str, Any], schema: type[R]) -> R:
    """What the model replies.

    Raises:
        FailedError: there is no reply that can be used.
    """
    verdict = judge.verdict(asked, fields)
    if verdict.status != Status.OK.value:
        raise FailedError(f"{verdict.status}: {verdict.reason}")
    read = reader.read(verdict.raw, schema, reader.quotable(asked, fields))
    if not isinstance(read, schema):
        raise TypeError(f"{asked.name}: {type(read).__name__}")
    return read


# --- what it will cost ----------------------------------------------------------------------------


def words(tokens: float) -> str:
    """A text of about so many tokens, in place of one that nobody knows yet."""
    return " ".join(["word"] * round(tokens))


def estimate(
    config: JudgeConfig,
    asked: Mapping[str, Sequence[Asked]],
    picture_tokens: Mapping[str, int] | None = None,
) -> dict[str, Plan]:
    """The work of each step, and of `all` of them.

    Args:
        asked: each step's requests, with stand-ins for what is not known before.
        picture_tokens: of a step's pictures, which its requests leave out.
    """
    from lmms_eval_tasks.judges.costs import plan

    pictures = dict(picture_tokens or {})
    every = {**asked, "all": [one for own in asked.values() for one in own]}
    pictures["all"] = sum(pictures.values())
    return {name: plan(config, own, pictures.get(name, 0)) for name, own in every.items()}


def tokens(work: Plan) -> str:
    """Of prompts and of replies."""
    return f"{work.judge_tokens:,} + {work.reply_tokens:,}"


def cost(work: Plan) -> str:
    """In dollars."""
    from lmms_eval_tasks.judges.report import dollars

    return "price unknown" if work.cost is None else dollars(work.cost)


def table(work: Mapping[str, Plan], pictures: Mapping[str, int] | None = None) -> Table:
    """The steps and their sum; with numbers of pictures where these are shown."""
    from rich import box
    from rich.table import Table

    made = Table(title="Estimate", title_justify="left", box=box.SIMPLE_HEAD)
    made.add_column("step")
    for title in ("calls", *(["pictures"] if pictures else []), "tokens in + out", "cost"):
        made.add_column(title, justify="right")
    for name, step in work.items():
        shown = [f"{pictures[name]:,}"] if pictures else []
        made.add_row(name, f"{step.calls:,}", *shown, tokens(step), cost(step))
    return made
