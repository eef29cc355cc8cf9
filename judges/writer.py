"""A model that writes data in place of verdicts: one resumable writer for every command that does.

A unit (a segment, a video, an answer) is a generator, as scoring is (asking.py). It yields lists of
`Want`s, which are asked side by side, gets a `Verdict` for each, and returns what was made of them.
Driven with a model (`write`) it is the run; with stand-ins (`estimate`) it is the estimate.

    FACTS = Step("movierecapsqa", "facts", Facts, ("narration",))
    PAIRS = Step("movierecapsqa", "pairs", Pairs, ("facts",))

    def unit(given: Prompt, narration: str) -> Unit[Pairs]:
        said = yield from needed(FACTS.want(given, {"narration": narration}, A_FACT))
        return (yield from needed(PAIRS.want(given, {"facts": said.facts}, A_PAIR)))

The model is asked through the layer of the judges, with its providers, cache, limits, budget and
ledger: a reply is checked by its schema, asked for once more if it does not fit, and kept the
moment it arrives. So a run that was ended goes on where it stopped, and nothing is paid for twice.
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
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.utils.json_files import Json

if TYPE_CHECKING:
    from rich.table import Table

R = TypeVar("R", bound=BaseModel)
R_co = TypeVar("R_co", bound=BaseModel, covariant=True)
T_co = TypeVar("T_co", covariant=True)

# --- replies --------------------------------------------------------------------------------------


def _some(value: Json) -> Json:
    """A text on one line, or a list, with something in it."""
    if not (kept := " ".join(value.split()) if isinstance(value, str) else value):
        raise ValueError(f"an empty {'text' if isinstance(value, str) else 'list'}")
    return kept


SOME = AfterValidator(_some)
Line = Annotated[str, SOME]


class ReplySchema(BaseModel):
    """A schema that such a model fills in."""

    model_config = ConfigDict(extra="forbid")


def checked(schema: type[R], check: Callable[[R], R]) -> type[R]:
    """A schema with a check in Python, which raises ValueError; what is sent is the same."""
    validators: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    return create_model(
        schema.__name__, __base__=schema, __doc__=schema.__doc__, __validators__=validators
    )


# --- what is asked --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Want(Generic[R_co]):
    """One request of a unit."""

    name: str  # in messages, such as `shot 3`; its first word is its row in the estimate
    criterion: Criterion
    fields: Mapping[str, object]  # what is shown, but for pictures
    stand_in: Json  # a reply of the usual length in plain types, for the estimate
    # Makes the pictures by field, when their turn comes; not for an estimate.
    images: Callable[[], Mapping[str, object]] = dict
    pictures: int = 0  # how many they are

    def said(self, verdict: Verdict) -> R_co | None:
        """The reply in its schema; None if there is none that can be used."""
        ok = verdict.status == Status.OK.value
        return reader.said(self.criterion, self.fields, verdict) if ok else None


Unit = Generator[Sequence[Want[BaseModel]], Sequence[Verdict], T_co]


@dataclass(frozen=True)
class Step(Generic[R]):
    """One kind of request: the parts `NAME` (instructions) and `NAME_user` of a prompt file."""

    benchmark: str  # whose file it is
    name: str  # of both parts
    schema: type[R]  # of the reply
    shows: tuple[str, ...]  # placeholders of `NAME_user`
    images: tuple[str, ...] = ()  # those of them that are lists of pictures
    words: tuple[str, ...] = ()  # placeholders of the instructions

    def criterion(self, given: Prompt, schema: type[R] | None = None) -> Criterion:
        """The step as the judges' layer asks it; its score says only that there is a reply."""
        return Criterion(
            name=f"{self.benchmark}_{self.name}",
            system=given.text[self.name],
            template=given.text[f"{self.name}_user"],
            schema=schema or self.schema,
            score=lambda _: 1.0,
            prompt_hash=given.hash,
            untrusted=tuple(one for one in self.shows if one not in self.images),
            images=self.images,
        )

    def want(
        self,
        given: Prompt,
        fields: Mapping[str, object],
        stand_in: Json,
        schema: type[R] | None = None,
    ) -> Want[R]:
        """The request of a unit; `schema` may check more (`checked`)."""
        return Want(self.name, self.criterion(given, schema), fields, stand_in)


def load(name: str, steps: Sequence[Step[Any]]) -> Prompt:
    """The prompt file of a benchmark's steps, the user's before ours; else PromptError."""
    required = {one.name: one.words for one in steps}
    required |= {f"{one.name}_user": one.shows for one in steps}
    return prompts.load(steps[0].benchmark, name, required)


# --- who writes -----------------------------------------------------------------------------------

REPLY_TOKENS = 4096  # a document is longer than a verdict
SECONDS = 300.0  # that one reply may take: several times as long as a verdict


def writer(
    spec: str, env: Mapping[str, str], option: str, writes: str, default_model: str = ""
) -> JudgeConfig:
    """The model that writes, in the forms of a judge; the user's setting of the judge is not looked
    at: who writes and who judges are two decisions.

    JudgeError: it cannot be used, or is no single language model; in the words of the `option` that
    named it, and of who `writes` what.
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
    """A unit lacks a reply that it needs; the failure is told already."""


@dataclass(frozen=True)
class Written(Generic[T_co]):
    """A unit that was run, and what it returned."""

    unit: str  # its name
    made: T_co | None  # what it returned; None if it ended early
    failures: Mapping[str, str]  # requests without a usable reply: name -> status and reason


def needed(want: Want[R]) -> Unit[R]:
    """The reply to one request, for `yield from`; a unit without it ends (EndedError)."""
    (verdict,) = yield [want]
    if (found := want.said(verdict)) is None:
        raise EndedError
    return found


def start(config: JudgeConfig, criteria: Iterable[Criterion], prompt: str) -> None:
    """Check all that can be checked without asking anyone (`judges.preflight`), and say who writes
    by which instructions.
    """
    judges.preflight(config, criteria)
    say(f"model: {judges.announcement(config, prompt).removeprefix('judge: ')}")


def write(
    units: Mapping[str, Unit[T_co]],
    config: JudgeConfig,
    task: str,
    each: Callable[[Written[T_co]], object] = lambda written: None,  # noqa: ARG005
) -> list[Written[T_co]]:
    """Ask for all units, side by side as far as the limits allow; trouble becomes a failure.

    `task` is booked in the ledger; `each` is called with a unit as soon as it is through, from
    several threads. What became of each unit, in their order.
    """
    judge = judges.make(config)

    def ask(want: Want[BaseModel]) -> Verdict:
        return judge.verdict(want.criterion, {**want.fields, **want.images()})

    def answer(wants: Sequence[Want[BaseModel]]) -> list[Verdict]:
        # One alone needs no thread of its own, and the progress has counted it.
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


def lines(written: Iterable[Written[object]]) -> Iterator[str]:
    """Return lines after a run: failures by unit, what helps, and what it took."""
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
    yield from (line.removeprefix("judge ") for line in run.current().told())


# --- what it will cost ----------------------------------------------------------------------------


def words(tokens: float) -> str:
    """A text of about so many tokens, in place of one that nobody knows yet."""
    return " ".join(["word"] * round(tokens))


def estimated(
    units: Iterable[Unit[object]], config: JudgeConfig, assumed: str, picture_tokens: int = 0
) -> tuple[Table, list[str]]:
    """The work of each step and of all, and how the numbers came about: what stand-ins assume, in
    words, and the tokens of one picture. Without repairs and what is in the cache already.
    """
    from rich import box
    from rich.table import Table

    from lmms_eval_tasks.judges.costs import plan

    wanted: list[Want[BaseModel]] = []

    def answer(wants: Sequence[Want[BaseModel]]) -> list[Verdict]:
        wanted.extend(wants)
        return [Verdict(1.0, Status.OK.value, raw=json.dumps(want.stand_in)) for want in wants]

    for unit in units:
        _drive("", unit, answer)
    made = Table(title="Estimate", title_justify="left", box=box.SIMPLE_HEAD)
    made.add_column("step")
    for title in ("calls", "tokens in + out", "cost"):
        made.add_column(title, justify="right")
    for step in (*dict.fromkeys(want.name.split()[0] for want in wanted), "all"):
        own = [want for want in wanted if step in ("all", want.name.split()[0])]
        asked = []
        for want in own:
            shown = {**dict.fromkeys(want.criterion.images, ()), **want.fields}
            asked.append((want.criterion, shown, json.dumps(want.stand_in)))
        work = plan(config, asked, picture_tokens * sum(want.pictures for want in own))
        cost = "price unknown" if work.cost is None else dollars(work.cost)
        amount = f"{work.judge_tokens:,} + {work.reply_tokens:,}"
        made.add_row(step, f"{work.calls:,}", amount, cost)
    return made, [
        *work.notes,
        f"assumed: {assumed}; no repeated requests",
        f"cost: {run.current().prices.origin}; replies in the cache are free",
    ]
