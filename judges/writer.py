"""A model that writes data instead of verdicts: one resumable writer for all such commands.

A unit (a segment, a video, an answer) is a generator, as scoring is (asking.py). It yields lists of
`Want`s, which are sent side by side, gets a `Verdict` for each, and returns its result. With a
model (`run_units`) it is the run; with stand-ins (`estimated`) it is the estimate.

    FACTS = Step("movierecapsqa", "facts", Facts, ("narration",))
    PAIRS = Step("movierecapsqa", "pairs", Pairs, ("facts",))

    def unit(given: Prompt, narration: str) -> Unit[Pairs]:
        said = yield from needed(FACTS.want(given, {"narration": narration}, A_FACT))
        return (yield from needed(PAIRS.want(given, {"facts": said.facts}, A_PAIR)))

The requests go through the judges' layer, with its providers, cache, limits and budget, and are
counted there. A reply is checked by its schema, requested once more if it does not fit, and stored
as soon as it arrives. So a run that was ended goes on where it stopped, and nothing is paid for
twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, create_model, model_validator

from lmms_eval_tasks import judges, prompts, settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, JudgeConfig, Status, Verdict, engine, reader, run
from lmms_eval_tasks.judges.report import dollars
from lmms_eval_tasks.judges.verdict import MAX_TOKENS
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.utils.json_files import Json

if TYPE_CHECKING:
    from rich.table import Table

R = TypeVar("R", bound=BaseModel)
R_co = TypeVar("R_co", bound=BaseModel, covariant=True)
T_co = TypeVar("T_co", covariant=True)

# --- replies --------------------------------------------------------------------------------------


def _some(value: Json) -> Json:
    """Return a text on one line, or a list, that is not empty.

    Raises:
        ValueError: it is empty.
    """
    if not (kept := " ".join(value.split()) if isinstance(value, str) else value):
        raise ValueError(f"an empty {'text' if isinstance(value, str) else 'list'}")
    return kept


SOME = AfterValidator(_some)
Line = Annotated[str, SOME]


class ReplySchema(BaseModel):
    """A schema that such a model fills in."""

    model_config = ConfigDict(extra="forbid")


def checked(schema: type[R], check: Callable[[R], R]) -> type[R]:
    """Return a schema with a check in Python, which raises ValueError; what is sent stays."""
    validators: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    return create_model(
        schema.__name__, __base__=schema, __doc__=schema.__doc__, __validators__=validators
    )


# --- requests -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Want(Generic[R_co]):
    """A request of a unit."""

    name: str  # for messages, such as `shot 3`; its first word is its row in the estimate
    criterion: Criterion
    fields: Mapping[str, object]  # the criterion's fields but pictures
    stand_in: Json  # a reply of the usual length in plain types, for the estimate
    # Returns the pictures by field, called when the request goes out; not for an estimate.
    images: Callable[[], Mapping[str, object]] = dict
    pictures: int = 0  # the number of pictures

    def parsed_reply(self, verdict: Verdict) -> R_co | None:
        """Return the reply in its schema; None if there is no usable one."""
        ok = verdict.status == Status.OK.value
        return reader.parsed_reply(self.criterion, self.fields, verdict) if ok else None


Unit = Generator[Sequence[Want[BaseModel]], Sequence[Verdict], T_co]


@dataclass(frozen=True)
class Step(Generic[R]):
    """A kind of request: the parts `NAME` (instructions) and `NAME_user` of a prompt file."""

    benchmark: str  # the benchmark of the prompt file
    name: str  # the name of both parts
    schema: type[R]  # the schema of the reply
    shows: tuple[str, ...]  # placeholders of `NAME_user`
    images: tuple[str, ...] = ()  # those of `shows` that are lists of pictures
    words: tuple[str, ...] = ()  # placeholders of the instructions

    def criterion(self, prompt: Prompt, schema: type[R] | None = None) -> Criterion:
        """Return the step as a criterion; its score only means that there is a reply."""
        return Criterion(
            name=f"{self.benchmark}_{self.name}",
            system=prompt.text[self.name],
            template=prompt.text[f"{self.name}_user"],
            schema=schema or self.schema,
            score=lambda _: 1.0,
            prompt_hash=prompt.hash,
            untrusted=tuple(one for one in self.shows if one not in self.images),
            images=self.images,
        )

    def want(
        self,
        prompt: Prompt,
        fields: Mapping[str, object],
        stand_in: Json,
        schema: type[R] | None = None,
    ) -> Want[R]:
        """Return the request of a unit; `schema` may check more (`checked`)."""
        return Want(self.name, self.criterion(prompt, schema), fields, stand_in)


def load_step_prompt(name: str, steps: Sequence[Step[Any]]) -> Prompt:
    """Return the prompt file of a benchmark's steps: the user's if there is one, else ours.

    Raises:
        PromptError: the file lacks a part or a placeholder.
    """
    required = {one.name: one.words for one in steps}
    required |= {f"{one.name}_user": one.shows for one in steps}
    return prompts.load_prompt(steps[0].benchmark, name, required)


# --- the model ------------------------------------------------------------------------------------

REPLY_TOKENS = 4096  # a document is longer than a verdict
SECONDS = 300.0  # seconds that one reply may take: several times as long as a verdict


def writer(
    spec: str, env: Mapping[str, str], option: str, writes: str, default_model: str = ""
) -> JudgeConfig:
    """Return the model that writes, from a judge's short form or file.

    The setting of the judge is ignored: who writes and who judges are two decisions.

    Args:
        spec: the model.
        env: environment variables, for the keys.
        option: the option that named it, for messages.
        writes: the kind of data that it writes, for messages.
        default_model: the paper's model.

    Raises:
        JudgeError: it cannot be used, or is no single language model.
    """
    try:
        config = judges.resolve(spec.strip(), env, default_model=default_model)
    except JudgeError as error:
        raise JudgeError(str(error).replace(settings.JUDGE, option)) from None
    if config.endpoints != (config,):
        raise JudgeError(
            f"{option} {config.label}: {writes}: MODEL[@BASE_URL], hf:NAME_OR_FOLDER, or a file of "
            "one model"
        )
    sampling = config.sampling
    if sampling.max_tokens in (None, MAX_TOKENS):  # the default, which fits verdicts
        sampling = replace(sampling, max_tokens=REPLY_TOKENS)
    return replace(config, sampling=sampling, timeout=max(config.timeout, SECONDS))


# --- the run --------------------------------------------------------------------------------------


class EndedError(Exception):
    """The end of a unit that lacks a reply; the failure is reported already."""


@dataclass(frozen=True)
class Written(Generic[T_co]):
    """A finished unit: its result and its failures."""

    unit: str  # its name
    result: T_co | None  # its result; None if it ended early
    failures: Mapping[str, str]  # by name of a request without a usable reply: status and reason


def needed(want: Want[R]) -> Unit[R]:
    """Return the reply to one request, for `yield from`; without it the unit ends (EndedError)."""
    (verdict,) = yield [want]
    if (found := want.parsed_reply(verdict)) is None:
        raise EndedError
    return found


def start(config: JudgeConfig, criteria: Iterable[Criterion], prompt: str) -> None:
    """Check all that needs no request (`judges.preflight`), and print model and prompt."""
    judges.preflight(config, criteria)
    notify(f"model: {judges.announcement(config, prompt).removeprefix('judge: ')}")


def run_units(
    units: Mapping[str, Unit[T_co]],
    config: JudgeConfig,
    task: str,
    each: Callable[[Written[T_co]], object] = lambda written: None,  # noqa: ARG005
) -> list[Written[T_co]]:
    """Run all units, side by side as far as the limits allow; errors become failures.

    Args:
        units: the units, by name.
        config: the model.
        task: the name under which the work is counted.
        each: called with a unit as soon as it is finished, from several threads.

    Returns:
        The finished units, in order.
    """
    judge = judges.make_judge(config)

    def ask(want: Want[BaseModel]) -> Verdict:
        return judge.verdict(want.criterion, {**want.fields, **want.images()})

    def answer(wants: Sequence[Want[BaseModel]]) -> list[Verdict]:
        # A single request needs no thread, and the progress has counted it.
        return [ask(wants[0])] if len(wants) == 1 else run.ordered_map(ask, wants, task)

    def through(name: str) -> Written[T_co]:
        written = _drive(name, units[name], answer)
        each(written)
        return written

    return run.ordered_map(through, list(units), task)


def _drive(
    name: str, unit: Unit[T_co], answer: Callable[[Sequence[Want[BaseModel]]], Sequence[Verdict]]
) -> Written[T_co]:
    failures: dict[str, str] = {}
    verdicts: Any = None
    try:
        while True:
            wants = unit.send(verdicts)
            verdicts = answer(wants)
            for want, one in zip(wants, verdicts, strict=True):
                if one.status != Status.OK.value:
                    failures[want.name] = f"{one.status}: {one.reason}"
    except (StopIteration, EndedError) as done:
        return Written(name, getattr(done, "value", None), failures)


def outcome_lines(written: Iterable[Written[object]]) -> Iterator[str]:
    """Yield lines after a run: failures by unit, remedies, and the costs."""
    failed = [one for one in written if one.failures]
    for one in failed:
        for why in dict.fromkeys(one.failures.values()):
            names = [name for name, own in one.failures.items() if own == why]
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            yield f"failed: {one.unit}: {', '.join(names[:5])}{more}: {why}"
    again = [one.unit for one in failed if any(map(engine.fails_again, one.failures.values()))]
    if again and run.current().cache is not None:
        yield (
            "replies are kept, so the same command would fail again at "
            f"{', '.join(again)}: run it once without the cache "
            f"({settings.JUDGE_CACHE}=off), or with another model"
        )
    elif failed:
        yield "run the same command again to continue"
    yield from (line.removeprefix("judge ") for line in run.current().report_lines())


# --- the estimate ---------------------------------------------------------------------------------


def words(tokens: float) -> str:
    """Return a text of about `tokens` tokens, in place of an unknown one."""
    return " ".join(["word"] * round(tokens))


def estimated(
    units: Iterable[Unit[object]], config: JudgeConfig, assumed: str, picture_tokens: int = 0
) -> tuple[Table, list[str]]:
    """Return the work of each step and of all as a table, and notes on its assumptions.

    Repairs and cached replies are not counted.

    Args:
        units: the units, driven with stand-ins.
        config: the model.
        assumed: the assumptions of the stand-ins, in words.
        picture_tokens: tokens of one picture.
    """
    from rich import box
    from rich.table import Table

    from lmms_eval_tasks.judges.costs import plan

    requests: list[Want[BaseModel]] = []

    def answer(wants: Sequence[Want[BaseModel]]) -> list[Verdict]:
        requests.extend(wants)
        return [Verdict(1.0, Status.OK.value, raw=json.dumps(want.stand_in)) for want in wants]

    for unit in units:
        _drive("", unit, answer)
    table = Table(title="Estimate", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("step")
    for title in ("calls", "tokens in + out", "cost"):
        table.add_column(title, justify="right")
    for step in (*dict.fromkeys(want.name.split()[0] for want in requests), "all"):
        group = [want for want in requests if step in ("all", want.name.split()[0])]
        exchanges = []
        for want in group:
            fields = {**dict.fromkeys(want.criterion.images, ()), **want.fields}
            exchanges.append((want.criterion, fields, json.dumps(want.stand_in)))
        work = plan(config, exchanges, picture_tokens * sum(want.pictures for want in group))
        cost = "price unknown" if work.cost is None else dollars(work.cost)
        amount = f"{work.judge_tokens:,} + {work.reply_tokens:,}"
        table.add_row(step, f"{work.calls:,}", amount, cost)
    return table, [
        *work.notes,
        f"assumed: {assumed}; no repeated requests",
        f"cost: {run.current().prices.origin}; replies in the cache are free",
    ]
