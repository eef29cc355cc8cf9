"""The command `agreement`: test a judge with answers whose verdicts are known (checks.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.command_options import LIMITS, DryRun, with_settings
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from lmms_eval_tasks.judges import checks
from lmms_eval_tasks.judges.config import environment
from lmms_eval_tasks.notify import notify, table_console
from lmms_eval_tasks.report import invalid
from lmms_eval_tasks.tables.terminal_tables import show
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.metrics import aggregate

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.benchmark import Benchmark, Item, Items, KnownAnswer, KnownAnswers
    from lmms_eval_tasks.judges import Criterion, JudgeConfig
    from lmms_eval_tasks.judges.costs import LikelyRequest

ALL = "all"
NO_REPLY = {"api_error", "skipped"}  # statuses of a verdict without a reply of the judge
ASSUMED = "20 words for each reason, a claim for each sentence"
REASON = '{"reason": "%s", "score": 1}' % ("word " * 20)


@with_settings(settings.JUDGE, *LIMITS)
def agreement_command(
    benchmark: Annotated[str, typer.Argument(help=f"One of: {', '.join(registry.NAMES)}.")],
    *,
    items: Annotated[
        str,
        typer.Option(metavar="N|all", help="Number of answers for the judge; 0 or `all` for all."),
    ] = str(checks.ITEMS),
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Data file or folder; default: your data, or the packaged sample without them.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="JSON file for numbers, scores and verdicts.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Measure how often a judge gives the right verdicts, on answers with known verdicts."""
    from lmms_eval_tasks.judges import announcement, costs, run
    from lmms_eval_tasks.judges.verdict import NONE
    from lmms_eval_tasks.runs import known_answers, prepare
    from lmms_eval_tasks.utils.json_files import check_output, write_json

    whose, count = registry.find_benchmark(benchmark), _count(items)
    if dry_run and output is not None:
        raise TasksError("--dry-run makes no results: leave --output out")
    if output is not None:
        check_output(output)
    known, title = _known_answers(whose, source)
    with run.use(run.from_settings(progress=not dry_run)) as current:
        config = prepare.judge_config(whose, env=environment(dry_run) if dry_run else None)
        if config.provider == NONE:
            raise JudgeError("--judge none gives no verdicts: name a judge")
        print("\n".join(known.source))
        answers = known_answers.draw(known.answers, count)
        if not answers:
            raise DataError(
                f"{known.source[0]}: no answer with a known verdict: name other data with "
                "--from PATH, or leave --from out to use the packaged sample"
            )
        if count is None and known.tables:  # the tables also cover answers with unknown verdicts
            answers = list(known.answers)
        requests = _requests(whose, answers)
        cost = costs.plan(config, requests)
        summary = f"{len(answers)} answers to judge: {costs.summary(cost)}"
        if dry_run:
            prices = f"cost: {current.prices.origin}; replies in the cache are free"
            print(
                "\n".join(
                    [summary, f"assumed: {ASSUMED}; no repeated requests", *cost.notes, prices]
                )
            )
            return
        prepare.check_judge(whose)
        notify(announcement(config, prepare.judge_prompt(whose)))
        notify(summary)
        # Ordered_map counts 1 for each answer.
        current.progress.expect(len(requests) - len(answers))
        name = f"{benchmark}_agreement"
        judged = _judged(whose, config, answers, name)
        current.progress.close()
        usage = current.usage.as_dicts()
        problems = invalid.of_judge(usage, {config.label}) | invalid.of_items(name, judged)
        check = _check(title, known, answers, judged)
        check |= {"judge": config.label, "setup": prepare.judge_fingerprint(whose, config)}
        more: dict[str, object] = {"answers": _answers(answers, judged)}
        if count is None and known.tables:
            tables, more = known.tables(judged, bool(problems))
            show(table_console(), tables)
        show(table_console(), _table(check, known.clusters))
        print("\n".join([*current.report_lines(), check["line"]]))
        _keep(benchmark, check, judged)
        if output is not None:
            about = {"benchmark": benchmark, "source": list(known.source), "check": check}
            described = {"judge": prepare.describe_judge(whose), "usage": usage}
            write_json(output, {**about, **more, **described, "invalid": problems})
        invalid.stop(problems)


def _count(items: str) -> int | None:
    """Return the number of answers; None for all.

    Raises:
        TasksError: the text is no number.
    """
    if items == ALL:
        return None
    if not items.isdecimal():
        raise TasksError(f"--items {items}: expected a number such as {checks.ITEMS}, or {ALL}")
    return int(items) or None


def _known_answers(whose: Benchmark, source: Path | None) -> tuple[KnownAnswers, str]:
    """Return the answers of `--from`, of the user's data, or of the sample, and a title.

    Raises:
        DataError: `--from` has no such answers, or the data cannot be read.
    """
    from lmms_eval_tasks import sample

    place = source or settings.data_folder(whose.name)
    found = whose.known_answers(place) if source or place.is_dir() else None
    if found is None:
        if source is not None:
            where = "name other data with --from PATH (docs/judges.md), or leave --from out"
            raise DataError(f"{source}: no answers with known verdicts of {whose.title}; {where}")
        notify(
            f"no answers with known verdicts at {place}: using the packaged sample (--from "
            "PATH for other data)"
        )
        place = sample.build_sample(settings.cache_dir() / settings.SAMPLE) / whose.name
        found = whose.known_answers(place)
    if found is None:
        raise DataError(f"{whose.title} has no answers with known verdicts")
    return found, f"{whose.title}{', packaged sample' * sample.is_current(place)}"


def _requests(whose: Benchmark, answers: Sequence[KnownAnswer]) -> list[LikelyRequest]:
    """Return the requests to the judge, each with a likely reply."""
    from lmms_eval_tasks.runs import estimate

    return [
        (request.criterion, request.fields, request.stand_in or _reply(request.criterion))
        for one in answers
        for request in estimate.judge_requests(whose.tasks[one.task], one.doc, one.text)
    ]


def _reply(criterion: Criterion) -> str:
    return criterion.labels[0][0] if criterion.labels else REASON


def _judged(
    whose: Benchmark, config: JudgeConfig, answers: Sequence[KnownAnswer], name: str
) -> list[Item]:
    """Return the items of the answers, each scored as in a run."""
    from lmms_eval_tasks.judges import make_judge, run
    from lmms_eval_tasks.judges.asking import VerdictSource
    from lmms_eval_tasks.runs import scoring

    def scored(answer: KnownAnswer) -> Item:
        return scoring.scored(
            whose.tasks[answer.task], answer.doc, answer.text, VerdictSource(make_judge(config))
        )

    return run.ordered_map(scored, answers, name)


def _check(
    title: str, reference_answers: KnownAnswers, answers: Sequence[KnownAnswer], items: Items
) -> JsonObject:
    """Return the figures of each verdict and a line about the result, in the form for JSON."""
    from lmms_eval_tasks.runs import known_answers

    pairs = known_answers.compare(answers, aggregate.as_counted(items))
    check: JsonObject = {
        "title": title,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "scale": list(reference_answers.scale),
        "verdicts": {
            name: checks.figures(own, reference_answers.scale) for name, own in pairs.items()
        },
    }
    return {**check, "line": checks.line(check)}


def _keep(benchmark: str, check: Mapping[str, Json], items: Items) -> None:
    """Save a check for later runs, if the judge replied about every answer."""
    verdicts = ((item.get("verdicts") or {}).values() for item in items)
    failures = [{one["status"] for one in own} - {"ok"} for own in verdicts]
    if lost := sum(bool(own) and own <= NO_REPLY for own in failures):
        notify(
            f"the judge did not reply for {lost} answers, so this check is not saved: run it again"
        )
    else:
        checks.save_check(benchmark, check["setup"], check)


def _table(check: Mapping[str, Json], clusters: str) -> list[Table]:
    """Return a table of the numbers of judge's verdicts, a row for each known verdict."""
    from lmms_eval_tasks.tables.paper_tables import by_row

    is_label, several = len(check["scale"]) == 2, len(check["verdicts"]) > 1
    heads = ["refused", "accepted"] if is_label else list(map(str, check["scale"]))
    known_as = {"0": "wrong answers", "1": "right answers"} if is_label else {}
    rows, notes = [], []
    for name, one in check["verdicts"].items():
        for worth, counts in one["counts"].items():
            cells = [str(counts.get(column, 0)) for column in (*map(str, check["scale"]), "none")]
            rows.append(([name] * several + [known_as.get(worth, f"worth {worth}")], cells))
        note = f"{name}: " * several
        note += f"agrees on {_with_ends(one['agree'], 100, 0, ' %')} of {one['answers']}"
        note += "" if is_label else f" within {checks.NEAR} point"
        if one["kappa"]:
            note += f", kappa {_with_ends(one['kappa'], 1, 2)}"
        notes.append(f"{note}; 95 %, clustered by {one['agree']['clusters']} {clusters}")
    return by_row(
        f"{check['title']}: verdicts of {check['judge']} on answers with known verdicts",
        [*(["verdict"] * several), "known"],
        [*heads, "no verdict"],
        rows,
        "\n".join(notes),
    )


def _with_ends(interval: Mapping[str, Json], times: float, decimals: int, unit: str = "") -> str:
    """Return a number, at most 1, as text with its interval if it has one: "93 % [80, 98]"."""
    parts = (interval["estimate"], interval["low"], interval["high"])
    value, *ends = (None if one is None else f"{times * min(one, 1):.{decimals}f}" for one in parts)
    return f"{value}{unit}" + (f" [{', '.join(map(str, ends))}]" if None not in ends else "")


def _answers(answers: Sequence[KnownAnswer], items: Items) -> list[JsonObject]:
    """Return each answer with its verdicts, for JSON; the answer's text stays in the data."""
    return [
        {"task": one.task, "id": one.doc["id"], "known": dict(one.right_verdicts)}
        | {name: item.get(name) for name in ("status", "verdicts")}
        for one, item in zip(answers, items, strict=True)
    ]
