"""Which questions of a run can be asked, and which answers can be rated."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import candidates, judge_items, naming, rating_files, selection
from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.checked import Checked
from lmms_eval_tasks.cvrr_es.judge_items import Material
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.rating_rows import RatingRow
from lmms_eval_tasks.cvrr_es.rating_scores import slug
from lmms_eval_tasks.cvrr_es.reliability.study import Place
from lmms_eval_tasks.cvrr_es.schema import Release
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files, video_checks
from lmms_eval_tasks.utils.video_checks import ALLOW_MISSING, LEAVE_OUT, listed


def look(release: Release, tasks: Sequence[str]) -> Checked:
    """What the tasks can ask and rate.

    Args:
        release: the user's data.
        tasks: names.

    Raises:
        DataError: questions or answers do not fit and `--allow-bad-items` was not given, videos are
            missing and `--allow-missing-videos` was not given, candidates or ratings are not named,
            or nothing is left of a task; says all of it.
    """
    troubles = _troubles(release)
    told = _complaints(release, troubles)
    for task in tasks:
        own = "" if task in JUDGE_TASKS else task.removeprefix(ANSWERS)
        asked = [one for one in release.questions if own in ("", one.dimension)]
        if not told and not any(one.id not in troubles for one in asked):
            told.append(f"{task}: not one question can be asked")
    if told:
        raise DataError(f"{release.folder}: " + "\n".join(told))
    judging = [task for task in tasks if task in JUDGE_TASKS]
    if not judging:
        return Checked(release, tasks, troubles)
    given = _material(release, judging)
    if not any(item.question not in troubles for item in given.asked):
        raise DataError("no candidate answered a question that can be asked")
    rated = {task: judge_items.make(task, given) for task in judging}
    return Checked(release, tasks, troubles, given.candidates, rated)


def _troubles(release: Release) -> dict[str, str]:
    """Why a question's video cannot be shown, by the question's id."""
    paths = {one.id: release.video_path(one) for one in release.questions}
    _, found = video_checks.look({str(path): path for path in sorted(set(paths.values()))})
    return {name: found[str(path)] for name, path in paths.items() if str(path) in found}


def _complaints(release: Release, troubles: Mapping[str, str]) -> list[str]:
    told = []
    total = len(release.questions) + len(release.problems)
    if release.problems and not settings.allow_bad_items():
        told.append(
            f"{len(release.problems)} of {total} CVRR-ES questions cannot be used:\n"
            f"{listed(release.problems)}\n{LEAVE_OUT}"
        )
    missing, unreadable = released_files.by_trouble(troubles)
    if missing and not settings.allow_missing_videos():
        told.append(
            f"the videos of {len(missing)} of {total} CVRR-ES questions are not there:\n"
            f"{listed(missing)}\nPut them there, or leave the questions out (they are counted in "
            f"the results) with {ALLOW_MISSING}"
        )
    if unreadable and not settings.allow_missing_videos():
        told.append(
            f"the videos of {len(unreadable)} of {total} CVRR-ES questions cannot be read:\n"
            f"{listed(unreadable)}\nLeave the questions out with {ALLOW_MISSING}"
        )
    return told


def aligned(release: Release) -> list[Aligned]:
    """The candidates that the user named, their answers put to the release's questions.

    Raises:
        DataError: none is named, answers do not fit, or two names differ in nothing that metrics'
            names can show.
    """
    paths = settings.paths(settings.CVRR_CANDIDATES)
    if not paths:
        raise DataError(
            "no candidates to judge: name folders MODEL/DIMENSION.json, or saved samples of "
            f"cvrr_es runs, with --cvrr-candidates or {settings.CVRR_CANDIDATES}=PATH,PATH"
        )
    found = candidates.fitting(paths, release)
    named: dict[str, str] = {}
    for one in found:
        other = named.setdefault(slug(one.candidate), one.candidate)
        if other != one.candidate:
            raise DataError(
                f"candidates {other} and {one.candidate} would have the same metrics "
                f"(kappa_of_{slug(other)}): rename the folder of one of them"
            )
    return found


def _material(release: Release, tasks: Sequence[str]) -> Material:
    first: list[RatingRow] = []
    if any(JUDGE_TASKS[task] != "first" for task in tasks):
        paths = settings.paths(settings.CVRR_RATINGS)
        if not paths:
            raise DataError(
                "no ratings of other judges: name files of ratings, or saved samples of cvrr_judge "
                f"runs, with --cvrr-ratings or {settings.CVRR_RATINGS}=PATH,PATH"
            )
        first = rating_files.read(paths)
    return Material(
        candidates=aligned(release),
        place_of={one.id: Place(one.dimension, one.video_id) for one in release.questions},
        first=first,
        reference=reference(),
        rule=selection.parse(os.environ.get(settings.CVRR_SELECTION, "")),
        judge=naming.running_model(),
    )


def reference() -> list[RatingRow]:
    """The reference ratings that the user named; none is no error: they can be added later.

    Raises:
        DataError: the files cannot be used, or two rows are of one item.
    """
    paths = settings.paths(settings.CVRR_REFERENCE)
    rows = [row for row in rating_files.read(paths) if row.round == "reference"] if paths else []
    if paths and not rows:
        raise DataError(
            f"{', '.join(map(str, paths))}: no rows of the round `reference` "
            f"({settings.CVRR_REFERENCE}); make them with lmms-eval-tasks debate"
        )
    seen: dict[tuple[str, str], str] = {}
    for row in rows:
        other = seen.setdefault(row.item, row.judge)
        if other != row.judge:
            raise DataError(
                f"{row.question}, {row.candidate}: reference ratings by {other} and {row.judge}; "
                "name one of them"
            )
    return rows
