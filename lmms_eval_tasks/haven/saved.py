"""HAVEN's saved runs: every metric again from the samples, and what joins them by video."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import joined, scores, scoring, text_scores, text_values
from lmms_eval_tasks.haven import judge as judging
from lmms_eval_tasks.haven.labels import SUMMARIES, TASKS, Task
from lmms_eval_tasks.haven.results import doubts
from lmms_eval_tasks.haven.uncertainty import details
from lmms_eval_tasks.judges import Judge, Verdict, concurrency
from lmms_eval_tasks.judges.candidate import usable
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.judges.geval_ratings import sampling
from lmms_eval_tasks.runs.rescore import Pair, Rescored, Run, refuse_twice, saved_items
from lmms_eval_tasks.utils import provenance
from lmms_eval_tasks.utils.aggregate import Carrier

Side = tuple[str | None, bool]  # a model's runs with pictures, or those of text proxies

# What scoring.reply_metrics reads of an item, by type: no list may be another kind of thing.
_TEXTS = ("id", "source", "video", "kind", "data", "record", "status", "reply")
_LISTS = (
    *("keyframes", "shots", "importance", "document", "summary", "summary_shots"),
    *("units", "asked"),
)
_NUMBERS = ("budget", "n_sentences", "n_frames")
_SWITCHES = ("text", "with_document")


def rescore_saved(
    runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
) -> Rescored:
    """Every metric again from saved samples; joined by video where a model's runs are all there.

    Args:
        runs: saved runs of HAVEN's tasks.
        judge: rate the summaries (G-Eval) with this judge; None keeps the saved verdicts.
        missing_only: keep the verdicts that this very judge has given already.

    Raises:
        DataError: a sample lacks what these tasks write, two samples of a run share an id, or two
            runs are of one task and model.
        JudgeError, PromptError, TasksError: the judge or the CLIP model cannot be used.
    """
    done = Rescored()
    refuse_twice(runs)
    several = len({run.task for run in runs}) < len(runs)
    if judge:
        judging.check(judge)
    ask = usable(lambda: judging.config(judge) if judge else JudgeConfig(NONE))
    if any(run.task in TASKS and TASKS[run.task].kind in SUMMARIES for run in runs):
        text_scores.check()
    sides: dict[Side, dict[str, list[Carrier]]] = {}
    records: dict[Side, dict[str, set[str]]] = {}
    for run in runs:
        items = _items(run)
        label = f"{run.task} {run.model}" if several else run.task
        if items[0]["status"] == scores.NOT_RUN:
            done.numbers[label] = {scores.FIRST: 0}
            done.sidecar[label] = details(run.task, items)
            done.notes.append(f"{label}: not run: {items[0]['not_run']}")
            continue
        values, pairs = _again(run, items, ask, missing_only=missing_only)
        collected: dict[str, list[Any]] = {}
        for value in values:
            for name, item in value.items():
                collected.setdefault(name, []).append(item)
        numbers = {
            name: aggregation(collected[name])
            for name, aggregation in scores.SCORES[run.task].items()
            if collected.get(name)
        }
        carriers = {name: n for name, n in numbers.items() if isinstance(n, Carrier)}
        done.numbers[label] = {n: value for n, value in numbers.items() if n not in carriers}
        done.sidecar[label] = details(run.task, [value[scores.FIRST] for value in values])
        if TASKS[run.task].kind in SUMMARIES:
            done.verdicts[label] = pairs
        side = (run.model, TASKS[run.task].text)
        own = sides.setdefault(side, {})
        for name, carrier in carriers.items():
            own.setdefault(name, []).append(carrier)
        for item in items:
            records.setdefault(side, {}).setdefault(item["id"], set()).add(item["record"])
    _join(sides, records, done, several=several)
    done.notes += doubts(provenance.notes().get(text_values.NOTES, {}))
    return done


def _join(
    sides: Mapping[Side, Mapping[str, list[Carrier]]],
    records: Mapping[Side, Mapping[str, set[str]]],
    done: Rescored,
    *,
    several: bool,
) -> None:
    """The group's numbers of each model, under the name of the group."""
    for (model, text), carriers in sides.items():
        group = "haven_text" if text else "haven"
        if other := sorted(video for video, own in records[model, text].items() if len(own) > 1):
            done.notes.append(
                f"{model}: its runs of {group} are of different data in {len(other)} videos, such "
                f"as {other[0]}: these are not joined"
            )
        label = f"{group} {model}" if several else group
        numbers = {name: joined.join(own) for name, own in carriers.items()}
        if found := {name: value for name, value in numbers.items() if value is not None}:
            done.numbers[label] = found


def _items(run: Run) -> list[dict[str, Any]]:
    """A run's items in the order of their ids.

    Raises:
        DataError: one of them lacks what these tasks write; names the file and the item.
    """
    if run.task not in TASKS:
        raise DataError(f"{run.file}: {run.task} is no task of HAVEN")
    for number, sample in enumerate(run.samples, 1):
        item = sample.get(scores.FIRST)
        if isinstance(item, dict) and (problem := _problem(item, TASKS[run.task])):
            raise _damaged(run, f"line {number}, {item.get('id')} {problem}")
    return saved_items(run, scores.FIRST)


def _damaged(run: Run, what: str) -> DataError:
    return DataError(f"{run.file}: {what}; take its line out or run the task again")


def _problem(item: Mapping[str, Any], task: Task) -> str:
    """What is wrong with a saved item of a task; "" if nothing is."""
    kinds: Iterable[tuple[Sequence[str], type, str]] = (
        (_TEXTS, str, "text"),
        (_LISTS, list, "list"),
        (_NUMBERS, int, "number"),
        (_SWITCHES, bool, "true or false"),
    )
    for names, of_type, word in kinds:
        for name in names:
            if not isinstance(item.get(name), of_type):
                return f"has no {word} `{name}`"
    if item["status"] == scores.NOT_RUN and not isinstance(item.get("not_run"), str):
        return "has no text `not_run`"
    own = Task(item["kind"], document=item["with_document"], text=item["text"])
    return "" if own == task else f"is an item of {own.name}"


def _again(
    run: Run, items: Sequence[dict[str, Any]], judge: Judge, *, missing_only: bool
) -> tuple[list[dict[str, Any]], list[Pair]]:
    """The replies' metrics again, and each verdict as saved and as given now."""
    asks = judge.config.provider != NONE
    before = [_saved_verdict(item, f"{run.file}: ") for item in items]
    setups = (
        {judges.setup(one, judging.criterion()) for one in (judge.config, sampling(judge.config))}
        if asks
        else set()
    )

    def kept(verdict: Verdict | None) -> Verdict | None:
        if not asks or verdict is None:
            return verdict
        same = verdict.score is not None and verdict.setup in setups
        return verdict if missing_only and same else None

    def score(place: int) -> dict[str, Any]:
        item = items[place]
        saved = kept(before[place])
        try:
            return scoring.reply_metrics(item, item["reply"], judge=judge, saved=saved)
        except (LookupError, TypeError, ValueError) as error:
            if item.get("status") == "error":  # as in the run: nothing is lost
                return scoring.failed_metrics(item, item["reply"])
            what = f"{item['id']} cannot be scored ({type(error).__name__}: {error})"
            raise _damaged(run, what) from error

    values = concurrency.ordered_map(score, range(len(items)), task=run.task)
    pairs = [
        Pair(item["id"], old, _saved_verdict(value[scores.FIRST]))
        for item, old, value in zip(items, before, values, strict=True)
    ]
    return values, pairs


def _saved_verdict(item: Mapping[str, Any], file: str = "") -> Verdict | None:
    """G-Eval's verdict in an item; None if nobody was asked.

    Raises:
        DataError: it is none; begins with `file`.
    """
    saved = (item.get("geval") or {}).get("verdict")
    try:
        return None if saved is None else Verdict.from_dict(saved)
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"{file}{item['id']}: the saved verdict is none ({error})") from None
