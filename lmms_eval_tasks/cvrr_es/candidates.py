"""Candidates and their answers, put to the questions of the release.

    MODEL/DIMENSION.json                          a list of {Q, A}; A is the model's answer
    RUN_samples_cvrr_es_DIMENSION.jsonl           written by the host with --log_samples

Some released questions begin with image tokens ("<image> <image>\\n..."), some answers end in
"</s>": both are taken off. Saved samples have the questions' ids. In predictions questions repeat
("What is happening in the video?" is asked of many videos), files come in other orders than the
annotations, and an answer at the wrong question is never seen again. So an answer is joined by what
shows where it belongs, the surest first:

1. order: all questions are the annotations', place by place.
2. text: the question is unique in the dimension, in the annotations and among the answers.
3. neighbours: up to the next unique question on either side all questions are the same.
4. last: one answer and one question of this text are left.

A question may stand behind the context that two-step prompting put in front of it. What nothing
shows is not joined but told, with its file, and stops unless the user leaves such items out
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

# <image>, <video>, <|image|>, <image_1>, <im_start>, <ImageHere>: what prompts put in for pictures.
_TOKEN = r"<\|?(?:image|img|im|video|vid|frame)(?:[_ ]?\w+)?\|?>"
_TOKENS = re.compile(rf"^(?:\s*{_TOKEN})+\s*", re.IGNORECASE)
_END = re.compile(r"(?:\s*</s>)+\s*$")


class CandidateAnswer(NamedTuple):
    """One entry of a file."""

    id: str  # of the question, as our saved samples have it; "" in predictions
    question: str  # without image tokens; "" if the file does not say
    text: str | None  # what the candidate said, without "</s>"; None if the entry holds no text
    video: str = ""  # and the reference, as our saved samples have them
    reference: str = ""


class AnswerFile(NamedTuple):
    """A candidate's answers in one dimension, in the order of their file."""

    file: Path
    entries: Sequence[CandidateAnswer]


Candidates = dict[str, dict[str, AnswerFile]]  # name -> dimension -> what it said


class Aligned(NamedTuple):
    """A candidate's answers to the questions of a release."""

    candidate: str
    answers: Mapping[str, str]  # question id -> answer as it stands, in the release's order
    empty: tuple[str, ...]  # ids of those whose answer holds no letter, digit or symbol
    problems: tuple[str, ...]  # what does not fit, a line each; these answers are left out


def fitting(paths: Sequence[Path], release: CvrrRelease) -> list[Aligned]:
    """The candidates in files and folders, their answers put to the release's questions.

    Raises:
        DataError: as `read`; a candidate has no answer that fits; or answers do not fit and the
            user did not allow to leave them out, with every problem in a line.
    """
    found = [align(name, own, release) for name, own in read(paths).items()]
    for one in found:
        if not one.answers:
            raise DataError(f"{one.candidate}: no answer fits the release: {one.problems[0]}")
    problems = [problem for one in found for problem in one.problems]
    if problems and not settings.value(settings.ALLOW_BAD_ITEMS):
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise DataError(f"answers do not fit the release:\n{lines}\n{LEAVE_OUT}")
    return found


def align(name: str, given: Mapping[str, AnswerFile], release: CvrrRelease) -> Aligned:
    """Put a candidate's answers to the release's questions; raises nothing.

    Answers to questions that cannot be used themselves (`release.problems`) are left out, as the
    questions are. Dimensions that the release lacks are not looked into.
    """
    found: dict[str, str] = {}
    problems: list[str] = []
    for dimension, places in release.places.items():
        if dimension not in given:
            problems.append(f"{name}: no answers in {dimension} ({len(places):,} questions)")
            continue
        file, entries = given[dimension]
        known = {one.id: one for one in release.questions if one.dimension == dimension}
        joined = _joined(entries, places, known)
        texts = {place: entries[number].text for place, number in joined.items()}
        told = {
            "answers that fit no question of the release, or several questions": [
                one.id or repr(one.question)
                for number, one in enumerate(entries)
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
            f"{file}: {why}: {len(own):,}, first {own[0]}" for why, own in told.items() if own
        ]
        found |= {place: text for place, text in texts.items() if text is not None}
    ordered = {one.id: found[one.id] for one in release.questions if one.id in found}
    empty = tuple(one for one, text in ordered.items() if reply_text.reply_status(text) == "empty")
    return Aligned(name, ordered, empty, tuple(problems))


def _joined(
    entries: Sequence[CandidateAnswer], places: Mapping[str, str], known: Mapping[str, CvrrQuestion]
) -> dict[str, int]:
    """Numbers of the answers by the ids of their questions.

    Saved samples have ids, which are places in a file: an answer belongs where question, video and
    reference are the same, be it under another id.
    """
    asked = {place: _fold(question) for place, question in places.items()}
    if not any(one.id for one in entries):
        by_text = join([_fold(one.question) for one in entries], list(asked.values()))
        return {list(asked)[place]: number for number, place in by_text.items()}
    found: dict[str, int] = {}
    wheres: dict[tuple[str, str, str], list[str]] = {}
    for place, own in known.items():
        wheres.setdefault((_fold(own.question), own.video_id, own.reference), []).append(place)
    for number, one in enumerate(entries):
        text = _fold(one.question)
        alike = wheres.get((text, one.video, one.reference), [])
        # A file that says less, or a row of the annotations that cannot be used.
        if not (one.video and one.reference) or one.id not in known:
            alike = [*alike, one.id] if one.id in asked and text in ("", asked[one.id]) else alike
        free = [place for place in alike if place not in found]
        if free:
            found[one.id if one.id in free else free[0]] = number
    return found


def _fold(text: str) -> str:
    """A text as it is compared here: single spaces, none at the ends."""
    return " ".join(text.split())


def join(said: Sequence[str], places: Sequence[str]) -> dict[int, int]:
    """Join the answers to the places of the annotations: answer -> its place, both from 0.

    Args:
        said: the answers' questions, folded, in the file's order; "" where it does not say.
        places: the annotations' questions, folded, in their order.
    """
    asked = Counter(filter(None, places))
    questions = [
        one if one in asked else next((own for own in asked if one.endswith(f": {own}")), one)
        for one in said
    ]
    if questions == list(places):
        return {number: number for number in range(len(places))}
    answered = Counter(questions)
    unique = {text for text, often in asked.items() if often == answered[text] == 1}
    where = {around: place for place, around in enumerate(_surroundings(places, unique))}
    # A unique question is known by itself, a repeated one by all that is around it.
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
    """For each text the stretch between unique ones that it stands in, and its place in there.

    A stretch begins with its unique text, but the file's first one, and includes the next one's;
    the file's end is "", which no question is. So no two places of a file have the same.
    """
    ends = [number for number, text in enumerate(texts) if text in unique]
    found: list[tuple[tuple[str, ...], int]] = []
    for start, end in zip([-1, *ends], [*ends, len(texts)], strict=True):
        last = ("",) if end == len(texts) else (texts[end],)
        stretch = (*texts[max(start, 0) : end], *last)
        found += [(stretch, number - start) for number in range(max(start, 0), end)]
    return found


# --- files ----------------------------------------------------------------------------------------


def read(paths: Sequence[Path]) -> Candidates:
    """The candidates in files and folders, in the order of the paths, then by name.

    Args:
        paths: folders of one candidate's predictions, folders of such folders, saved samples, or
            folders with saved samples.

    Raises:
        DataError: a path is not there or holds no answers; a file is of another form; a candidate
            has two files of a dimension.
    """
    found: Candidates = {}
    for path in dict.fromkeys(path.expanduser().resolve() for path in paths):
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        given = [*_predictions(path), *_saved(path)]
        if not given:
            raise DataError(
                f"{path}: no answers (expected MODEL/DIMENSION.json with {{Q, "
                f"A}}, or *_samples_{ANSWERS}DIMENSION.jsonl)"
            )
        for name, dimension, answers in given:
            other = found.setdefault(name, {}).setdefault(dimension, answers)
            if other.file != answers.file:
                raise DataError(
                    f"two files with answers in {dimension} by {name}: {other.file} and "
                    f"{answers.file}; name one of them, or rename a folder"
                )
    return found


def plain_question(value: object) -> str | None:
    """A released question without image tokens; None for what is no text."""
    return _TOKENS.sub("", value, count=1).strip() if isinstance(value, str) else None


def plain_answer(value: object) -> str | None:
    """A released answer without "</s>"; None for what is no text."""
    return _END.sub("", value, count=1).strip() if isinstance(value, str) else None


def _predictions(path: Path) -> Iterator[tuple[str, str, AnswerFile]]:
    """Name, dimension and answers of predictions as released, of one candidate or of several."""
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
    """The same of saved runs; of a folder those of our tasks, whatever else was saved there."""
    is_samples = path.is_file() and path.suffix == ".jsonl"
    files = [path] if is_samples else sorted(path.rglob(f"*_samples_{ANSWERS}*.jsonl"))
    for run in map(saved_runs.read, files):
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
        # Without the run's results file it is the folder, which the host calls after the model.
        name = names[0] or run.model or run.file.parent.name
        entries = []
        for item in items:
            # Reasoning is left out. The host's own error text and a reply that was cut off in its
            # reasoning are nothing that the candidate said: empty.
            _, text = reply_text.to_judge(item["reply"])
            asked = (item.get(name) or "" for name in ("video", "reference"))
            entries.append(CandidateAnswer(item["id"], item.get("question") or "", text, *asked))
        yield name, dimension, AnswerFile(run.file, entries)
