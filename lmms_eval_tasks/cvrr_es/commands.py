"""Commands of the judge study: `debate` makes reference ratings, `reliability` compares judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.command_options import LIMITS, DryRun, with_settings
from lmms_eval_tasks.cvrr_es import candidates as candidate_files
from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.cvrr_es.judge import load_judge_prompt
from lmms_eval_tasks.cvrr_es.study import page, ratings, reference, tables
from lmms_eval_tasks.cvrr_es.study import ratings as rating_files
from lmms_eval_tasks.cvrr_es.study.reference import AnswerToRate, ReferenceVerdict
from lmms_eval_tasks.cvrr_es.study.report import report
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import JudgeConfig, run
from lmms_eval_tasks.judges.config import environment
from lmms_eval_tasks.media.sources import bad_items, stop
from lmms_eval_tasks.notify import notify, table_console
from lmms_eval_tasks.report import invalid
from lmms_eval_tasks.tables.terminal_tables import show
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.conditions import OF_JUDGE, Kind
from lmms_eval_tasks.utils.json_files import check_output, write_json, write_lines, write_text
from lmms_eval_tasks.utils.metrics.aggregate import mean
from lmms_eval_tasks.utils.released_files import listed

# Not .jsonl: a folder of ratings is read as all its .jsonl files (cvrr_es/study/ratings.py).
ENDING = "_transcripts.ndjson"


@with_settings(settings.DATA, settings.ALLOW_BAD_ITEMS, *LIMITS)
def debate_command(
    *,
    candidates: Annotated[
        list[Path],
        typer.Option(help="Folder of MODEL/DIMENSION.json, or saved samples; may be repeated."),
    ],
    out: Annotated[Path, typer.Option(help="File to write the ratings to, one per line.")] = Path(
        "reference.jsonl"
    ),
    judge: Annotated[
        str | None,
        typer.Option(
            help="File of a debate, or with --single a model (docs/judges.md); "
            "default: GPT-3.5 and GPT-4o, as in the paper."
        ),
    ] = None,
    single: Annotated[
        bool,
        typer.Option(
            "--single",
            help="Ask one model that sees the reference answer, in place of a debate; "
            "default: GPT-3.5.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Rate answers 1 to 5 in a debate of models that see the reference; can be resumed."""
    said = out.with_name(f"{out.stem}{ENDING}")
    for file in (out, said):
        check_output(file)
    answers, notes = _asked(candidates)
    with run.use(run.from_settings(progress=not dry_run)) as current:
        config = reference.config(judge, environment(dry_run), single=single)
        _check_old(out, config.label, answers)
        for line in notes:
            print(line)
        planned = reference.estimate(config, answers)
        if dry_run:
            print(f"{len(answers):,} answers to rate with {config.label}")
            print("\n".join(planned))
            return
        judges.preflight(config, [reference.reference_criterion()])
        notify(judges.announcement(config, load_judge_prompt(reference.ROUND).name))
        for line in planned:
            notify(line)
        rated = reference.rate(judges.make_judge(config), answers)
        current.progress.close()
        write_lines(said, (one.transcript(config.label) for one in rated))
        write_lines(out, (one.row(config.label).as_dict() for one in rated))
        problems = _tell(rated, config, current)
    print(f"{out}: {len(rated):,} answers; transcripts in {said}")
    if failed := sum(one.verdict.score is None for one in rated):
        print(
            f"{failed:,} without a rating: run the same command again to "
            "continue; to ask again for replies that could not be read, set "
            "`repairs: 2` in the judge's file (docs/judges.md)"
        )
    invalid.stop(problems)


def _asked(paths: Sequence[Path]) -> tuple[list[AnswerToRate], list[str]]:
    """The answers to rate, and notes on them.

    Raises:
        DataError: the answers do not fit the release, or questions cannot be used.
    """
    place = settings.required_folder("cvrr_es", "CVRR-ES", release.HOW_TO_GET)
    data = release.read_cvrr(place)  # videos are not opened: the debate has texts only
    stop(data.place, bad_items(data.problems, "questions cannot be used"))
    aligned = candidate_files.fitting(paths, data)
    notes = [problem for c in aligned for problem in c.problems]
    notes += [
        f"{c.candidate}: {len(c.answers):,} answers, {len(c.empty):,} of them empty"
        for c in aligned
    ]
    return reference.asked_about(data, aligned), notes


def _check_old(out: Path, label: str, answers: Iterable[AnswerToRate]) -> None:
    """Raise DataError if `out` has a rating that this run would not make again."""
    ours = {(label, reference.ROUND, one.item) for one in answers}
    there = ratings.read_ratings([out]) if out.exists() else []
    for row in (one for one in there if (one.judge, one.round, one.item) not in ours):
        raise DataError(
            f"--out {out}: has a rating of {row.candidate}'s answer to "
            f"{row.question} by {row.judge} ({row.round}), which this run would "
            "not repeat; name another file, or remove this one"
        )


def _tell(
    rated: Sequence[ReferenceVerdict], config: JudgeConfig, current: run.JudgeSession
) -> Mapping[str, str]:
    """Print the mean ratings, failures and costs; return the reasons why the run is invalid."""
    for name in dict.fromkeys(one.answer.candidate for one in rated):
        own = [one.verdict for one in rated if one.answer.candidate == name]
        scores = [one.score for one in own if one.score is not None]
        average = mean(scores)
        failed = Counter(one.status for one in own if one.score is None)
        told = "no rating" if average is None else f"mean {average:.2f} of {len(scores):,} ratings"
        why = ", ".join(f"{number:,} {status}" for status, number in sorted(failed.items()))
        print(f"{name}: {told}" + (f"; failed: {why}" if why else ""))
    print("\n".join(current.report_lines()))
    return invalid.of_judge(current.usage.as_dicts(), {config.label})


BENCHMARK = "cvrr_es"


@with_settings(settings.ALLOW_BAD_ITEMS)
def reliability_command(
    ratings: Annotated[
        list[Path],
        typer.Argument(help="Files of ratings and saved samples, from all judges and rounds."),
    ],
    *,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            help="Files of reference ratings by one rater (`debate` makes them); may be repeated."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="JSON file for all numbers.")] = None,
    html: Annotated[Path | None, typer.Option(help="HTML file for the report.")] = None,
) -> None:
    """Measure the agreement of judges with a reference: kappas, intervals, panels, tables, page."""
    if html is not None:
        extras.require("report", "--html")
    for file in filter(None, (output, html)):
        check_output(file)
    loaded = rating_files.load_ratings(ratings)
    compared = rating_files.load_ratings(reference) if reference else None
    study = report(loaded.rows, compared.rows if compared else [])
    notes = [line for one in (loaded, compared) if one for line in _told(one)]
    study["notes"] = [*dict.fromkeys(notes), *study["notes"]]
    show(table_console(), tables.printed(study))
    for note in study["notes"]:
        print(note)
    if output is not None:
        write_json(output, study)
        print(f"{output}: everything as JSON")
    if html is not None:
        write_text(html, page.html(study))
        print(f"{html}: the report as a page")
    invalid.stop(
        {
            f"{run.model}, {run.task}": one.text
            for run in loaded.runs
            for one in run.conditions(BENCHMARK, settings.may_fail())
            if one.kind == Kind.INVALID
        }
    )


def _told(loaded: rating_files.Loaded) -> Sequence[str]:
    """Lines on rows that are left out, and the conditions of the runs."""
    left_out = listed(loaded.problems).split("\n") if loaded.problems else []
    notes = [f"skipped: {line.strip()}" for line in left_out]
    for rated in loaded.runs:
        # Conditions of the judge are about the answers' judge, not about ratings.
        own = [
            one.line
            for one in rated.conditions(BENCHMARK, settings.may_fail())
            if one.kind not in OF_JUDGE
        ]
        notes += [f"{rated.model}: {line}" for line in own]
    return notes


def add(app: typer.Typer) -> None:
    """Add both commands to `lmms-eval-tasks`."""
    app.command("debate")(debate_command)
    app.command("reliability")(reliability_command)
