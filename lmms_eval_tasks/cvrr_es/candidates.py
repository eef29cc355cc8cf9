"""Answers of candidates, joined to the questions of the release.

    MODEL/DIMENSION.json                          a list of {Q, A}; A is the model's answer
    RUN_samples_cvrr_es_DIMENSION.jsonl           written by lmms-eval with --log_samples

Some released questions begin with image tokens ("<image> <image>\\n..."), and some answers end in
"</s>": both are removed.

Saved samples have the ids of their questions; predictions have none. There the same question ("What
is happening in the video?") is asked about many videos, and files are not in the order of the
annotations. An answer joined to the wrong question would never be noticed. So an answer is joined
by the first of these rules that holds, the most certain first:

1. order: all questions of the file equal those of the annotations, in order.
2. text: the question occurs once in the annotations of the dimension and once in the file.
3. neighbours: all questions between the same two such questions are equal.
4. last: a single answer and a single question with this text are left.

A question may follow the context of a two-step prompt. An answer without a certain question is not
joined but reported with its file; the command stops unless the user leaves such items out
(`--allow-bad-items`). Empty answers are kept and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, dimension_of
from lmms_eval_tasks.cvrr_es.release import CvrrQuestion, CvrrRelease
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media.sources import LEAVE_OUT
from lmms_eval_tasks.utils import released_files, saved_runs
from lmms_eval_tasks.utils.replies import reply_text

# Tokens that prompts put in for pictures: <image>, <video>, <|image|>, <image_1>, <im_start>,
# <ImageHere>.
_TOKEN = r"<\|?(?:image|img|im|video|vid|frame)(?:[_ ]?\w+)?\|?>"
_TOKENS = re.compile(rf"^(?:\s*{_TOKEN})+\s*", re.IGNORECASE)
_END = re.compile(r"(?:\s*</s>)+\s*$")


class CandidateAnswer(NamedTuple):
    """An answer in a file, with its question."""

    id: str  # the question's id in saved samples; "" in predictions
    question: str  # without image tokens; "" if the file does not have it
    text: str | None  # the answer without "</s>"; None if the entry has no text
    video: str = ""  # video and reference from saved samples; "" in predictions
    reference: str = ""


class AnswerFile(NamedTuple):
    """A candidate's answers in one dimension, in the order of the file."""

    file: Path
    entries: Sequence[CandidateAnswer]


Candidates = dict[str, dict[str, AnswerFile]]  # name -> dimension -> answers


class Aligned(NamedTuple):
    """A candidate's answers, joined to the questions of a release."""

    candidate: str
    answers: Mapping[str, str]  # question id -> answer, unchanged, in the release's order
    empty: tuple[str, ...]  # question ids of the answers without letter, digit or symbol
    # A line for each kind of answer that could not be joined and is left out.
    problems: tuple[str, ...]


def fitting(paths: Sequence[Path], release: CvrrRelease) -> list[Aligned]:
    """The candidates in files and folders, with their answers joined to the release's questions.

    Raises:
        DataError: see `read_candidates`; a candidate has no answer that can be joined; or some
            answers cannot be joined and the user did not allow to leave them out, with a line per
            problem.
    """
    found = [align(name, own, release) for name, own in read_candidates(paths).items()]
    for one in found:
        if not one.answers:
            raise DataError(f"{one.candidate}: no answer fits the release: {one.problems[0]}")
    problems = [problem for one in found for problem in one.problems]
    if problems and not settings.value(settings.ALLOW_BAD_ITEMS):
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise DataError(f"answers do not fit the release:\n{lines}\n{LEAVE_OUT}")
    return found


def align(name: str, answer_files: Mapping[str, AnswerFile], release: CvrrRelease) -> Aligned:
    """Join a candidate's answers to the release's questions; never raises.

    Answers to questions that cannot be used (`release.problems`) are left out with the questions.
    Dimensions that the release lacks are ignored.
    """
    answers: dict[str, str] = {}
    problems: list[str] = []
    for dimension, places in release.places.items():
        if dimension not in answer_files:
            problems.append(f"{name}: no answers in {dimension} ({len(places):,} questions)")
            continue
        file, entries = answer_files[dimension]
        questions = {q.id: q for q in release.questions if q.dimension == dimension}
        joined = _joined(entries, places, questions)
        texts = {place: entries[number].text for place, number in joined.items()}
        faults = {
            "answers that fit no question of the release, or several questions": [
                entry.id or repr(entry.question)
                for number, entry in enumerate(entries)
                if number not in joined.values()
            ],
            "answers whose `A` is not a text": [
                repr(entries[joined[place]].question) for place in texts if texts[place] is None
            ],
            "questions without an answer": [
                f"{place} ({question})" for place, question in places.items() if place not in joined
            ],
        }
        problems += [
            f"{file}: {why}: {len(ids):,}, first {ids[0]}" for why, ids in faults.items() if ids
        ]
        answers |= {place: text for place, text in texts.items() if text is not None}
    ordered = {q.id: answers[q.id] for q in release.questions if q.id in answers}
    empty = tuple(key for key, text in ordered.items() if reply_text.reply_status(text) == "empty")
    return Aligned(name, ordered, empty, tuple(problems))


def _joined(
    entries: Sequence[CandidateAnswer],
    places: Mapping[str, str],
    questions: Mapping[str, CvrrQuestion],
) -> dict[str, int]:
    """The indices of a candidate's answers by the id of their question.

    Ids in saved samples are places in a file, which may differ between releases: an answer belongs
    to the question with the same text, video and reference, even under another id.
    """
    texts = {place: _fold(question) for place, question in places.items()}
    if not any(entry.id for entry in entries):
        by_text = join([_fold(entry.question) for entry in entries], list(texts.values()))
        return {list(texts)[place]: number for number, place in by_text.items()}
    joined: dict[str, int] = {}
    wheres: dict[tuple[str, str, str], list[str]] = {}
    for place, q in questions.items():
        wheres.setdefault((_fold(q.question), q.video_id, q.reference), []).append(place)
    for number, row in enumerate(entries):
        text = _fold(row.question)
        alike = wheres.get((text, row.video, row.reference), [])
        # For a file without video or reference, and for a row of the annotations that cannot be
        # used.
        if not (row.video and row.reference) or row.id not in questions:
            alike = [*alike, row.id] if row.id in texts and text in ("", texts[row.id]) else alike
        free = [place for place in alike if place not in joined]
        if free:
            joined[row.id if row.id in free else free[0]] = number
    return joined


def _fold(text: str) -> str:
    """Return a text for comparison: single spaces, none at the ends."""
    return " ".join(text.split())


def join(answers: Sequence[str], places: Sequence[str]) -> dict[int, int]:
    """Return the place in the annotations by the index of an answer, both from 0.

    Answers that no rule joins (see the module) are left out.

    Args:
        answers: the questions of the answers, folded, in the file's order; "" if the file has none.
        places: the annotations' questions, folded, in order.
    """
    asked = Counter(filter(None, places))
    questions = [
        one if one in asked else next((own for own in asked if one.endswith(f": {own}")), one)
        for one in answers
    ]
    if questions == list(places):
        return {number: number for number in range(len(places))}
    answered = Counter(questions)
    unique = {text for text, often in asked.items() if often == answered[text] == 1}
    where = {around: place for place, around in enumerate(_surroundings(places, unique))}
    # A unique question is known by its text, a repeated one by all questions around it.
    first = {text: place for place, text in enumerate(places)}
    found = {}
    for number, around in enumerate(_surroundings(questions, unique)):
        text = questions[number]
        if text in unique:
            found[number] = first[text]
        elif asked[text] > 1 and around in where:
            found[number] = where[around]
    taken = set(found.values())
    for text in asked:
        waiting = [n for n, one in enumerate(questions) if one == text and n not in found]
        free = [n for n, one in enumerate(places) if one == text and n not in taken]
        if asked[text] > 1 and len(waiting) == len(free) == 1:
            found[waiting[0]] = free[0]
    return found


def _surroundings(texts: Sequence[str], unique: set[str]) -> list[tuple[tuple[str, ...], int]]:
    """Return for each text its stretch between two unique texts, and its place in the stretch.

    A stretch begins with a unique text (the first one: with the file) and ends with the next unique
    text, included; the end of the file is "", which no question is. So no two places of a file have
    the same result.
    """
    ends = [number for number, text in enumerate(texts) if text in unique]
    stretches: list[tuple[tuple[str, ...], int]] = []
    for start, end in zip([-1, *ends], [*ends, len(texts)], strict=True):
        last = ("",) if end == len(texts) else (texts[end],)
        stretch = (*texts[max(start, 0) : end], *last)
        stretches += [(stretch, number - start) for number in range(max(start, 0), end)]
    return stretches


# --- files ----------------------------------------------------------------------------------------


def read_candidates(paths: Sequence[Path]) -> Candidates:
    """The candidates in files and folders, in the order of the paths, then by name.

    Args:
        paths: folders of one candidate's predictions, folders of such folders, saved samples, or
            folders with saved samples.

    Raises:
        DataError: a path does not exist or has no answers; a file is of another form; a candidate
            has two files of a dimension.
    """
    candidates: Candidates = {}
    for path in dict.fromkeys(path.expanduser().resolve() for path in paths):
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        answer_files = [*_predictions(path), *_saved(path)]
        if not answer_files:
            raise DataError(
                f"{path}: no answers (expected MODEL/DIMENSION.json with {{Q, "
                f"A}}, or *_samples_{ANSWERS}DIMENSION.jsonl)"
            )
        for name, dimension, answers in answer_files:
            other = candidates.setdefault(name, {}).setdefault(dimension, answers)
            if other.file != answers.file:
                raise DataError(
                    f"two files with answers in {dimension} by {name}: {other.file} and "
                    f"{answers.file}; name one of them, or rename a folder"
                )
    return candidates


def plain_question(value: object) -> str | None:
    """Return a released question without image tokens; None if it is no text."""
    return _TOKENS.sub("", value, count=1).strip() if isinstance(value, str) else None


def plain_answer(value: object) -> str | None:
    """Return a released answer without "</s>"; None if it is no text."""
    return _END.sub("", value, count=1).strip() if isinstance(value, str) else None


def _predictions(path: Path) -> Iterator[tuple[str, str, AnswerFile]]:
    """Yield name, dimension and answers of released predictions, of one candidate or of several."""
    own = any((path / f"{dimension}.json").is_file() for dimension in DIMENSIONS)
    for folder in [path] if own else sorted(path.glob("*")):
        for dimension in DIMENSIONS:
            if (file := folder / f"{dimension}.json").is_file():
                rows = released_files.read_json(file)
                if not (isinstance(rows, list) and rows and all(isinstance(r, dict) for r in rows)):
                    raise DataError(f"{file}: expected a list of {{Q, A}}")
                said = [(plain_question(row.get("Q")), plain_answer(row.get("A"))) for row in rows]
                entries = [CandidateAnswer("", question or "", answer) for question, answer in said]
                yield folder.name, dimension, AnswerFile(file, entries)


def _saved(path: Path) -> Iterator[tuple[str, str, AnswerFile]]:
    """Yield name, dimension and answers of saved samples; in a folder only those of our tasks.

    Raises:
        DataError: a file is of another task, or has answers of two models.
    """
    is_samples = path.is_file() and path.suffix == ".jsonl"
    files = [path] if is_samples else sorted(path.rglob(f"*_samples_{ANSWERS}*.jsonl"))
    for run in map(saved_runs.read_saved_run, files):
        dimension = dimension_of(run.task)
        if not dimension:
            raise DataError(f"{run.file}: {run.task} is not a task with answers of CVRR-ES")
        items = saved_runs.saved_items(run)
        names = list(dict.fromkeys(item.get("candidate") or "" for item in items))
        if len(names) > 1:
            raise DataError(
                f"{run.file}: answers of {names[0]} and of {names[1]}; a file "
                "may hold the answers of only one model"
            )
        # Without the run's results file: the folder, which lmms-eval names after the model.
        name = names[0] or run.model or run.file.parent.name
        entries = []
        for item in items:
            # Reasoning is removed. lmms-eval's error text, and a reply that was cut off in its
            # reasoning, are no answers of the candidate: empty.
            _, text = reply_text.to_judge(item["reply"])
            asked = (item.get(name) or "" for name in ("video", "reference"))
            entries.append(CandidateAnswer(item["id"], item.get("question") or "", text, *asked))
        yield name, dimension, AnswerFile(run.file, entries)
