"""What `lmms-eval-tasks facts` says in the end: what was made, what failed, and what to look at.

What a person should look at in written questions is found by rules, told, and never dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import engine
from lmms_eval_tasks.movierecapsqa.schema import UNLABELLED

if TYPE_CHECKING:
    from lmms_eval_tasks.movierecapsqa.facts.build import Plan, Result

NOT_RELEASED = "not in the released form"  # a failure of replies that could be read
_WORD = re.compile(r"[^\W\d_](?:[\w'\u2019-]*\w)?")
_CONTENT = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_SENTENCE_END = re.compile(r"[.!?:\u2026]['\"\u201d)\]]*\s*$")
_TITLE = re.compile(r"\b(?:Capt|Col|Dr|Gen|Jr|Lt|Mrs?|Ms|Prof|Rev|Sgt|Sr|St|[A-Z])\.\s*$")
_SHORT = 4  # letters; shorter words are mostly articles and pronouns


def folded(text: str) -> str:
    """A text without what does not change it: case, signs, spaces, compatibility forms."""
    return " ".join(_CONTENT.findall(unicodedata.normalize("NFKC", text).casefold()))


def leaks(question: str, answer: str) -> bool:
    """Whether a question holds its answer: as it is, or all words of it that carry meaning.

    These are the words of at least four letters and the numbers, or all words if there are none.
    """
    asked, answered = folded(question), folded(answer)
    if not answered:
        return False
    if f" {answered} " in f" {asked} ":
        return True
    words = set(answered.split())
    content = {word for word in words if len(word) >= _SHORT or word.isdigit()} or words
    return content <= set(asked.split())


def names_left(question: str, facts: Sequence[str]) -> list[str]:
    """Words of a question that look like names of its segment's facts, in their order.

    Those that are capitalised in both. At the beginning of a sentence every word is: there one
    counts only if a fact has it capitalised elsewhere. Languages that capitalise all nouns have
    more words like that than names, and scripts without capitals have none.
    """
    anywhere: set[str] = set()
    inside: set[str] = set()
    for fact in facts:
        for word, first in _capitalised(fact):
            anywhere.add(word)
            if not first:
                inside.add(word)
    found = (
        word for word, first in _capitalised(question) if word in (inside if first else anywhere)
    )
    return list(dict.fromkeys(found))


def _capitalised(text: str) -> Iterator[tuple[str, bool]]:
    """Capitalised words of two letters or more, and whether a sentence begins with them."""
    for match in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", match[0])
        if len(word) > 1 and word[0].isupper():
            before = text[: match.start()].rstrip("\"'\u201c\u2018([ ")
            ended = _SENTENCE_END.search(before) and not _TITLE.search(before)
            yield word, not before or bool(ended)


def review(segment: Mapping[str, Any]) -> dict[str, list[str]]:
    """What to look at in a segment of the released form: lines by kind, kinds always the same."""
    found: dict[str, list[str]] = {"answer": [], "name": [], "repeated": []}
    questions = segment["questions"]
    often = Counter(folded(question["question"]) for question in questions)
    for question in questions:
        asked, place = question["question"], f"{segment['id']}/{question['qid']}"
        answer = question.get("datasetAnswer") or ""
        if leaks(asked, answer):
            found["answer"].append(f"{place}: {asked} -> {answer}")
        if names := names_left(asked, segment["facts"]):
            found["name"].append(f"{place}: {asked} ({', '.join(names)})")
        if often[folded(asked)] > 1:
            found["repeated"].append(f"{place}: {asked}")
    return found


# --- the lines ----------------------------------------------------------------------------------

_REVIEW = {
    "answer": "hold their answer",
    "name": "still have what looks like a name of the facts",
    "repeated": "are asked more than once in their segment",
}


def lines(planned: Plan, result: Result, *, cached: bool) -> Iterator[str]:
    """The lines, in order.

    Args:
        cached: whether replies were kept, so that a second run reads them again.
    """
    entries = result.entries
    questions = [question for entry in entries for question in entry["questions"]]
    kept = len(entries) - result.made
    yield (
        f"{planned.file}: {len(entries)} of the recap's {len(planned.segments)} segments "
        f"({result.made} made now, {kept} kept), {sum(len(e['facts']) for e in entries)} facts, "
        f"{len(questions)} questions"
    )
    for name in ("modality", "category"):
        counts = Counter(question.get(name) or UNLABELLED for question in questions)
        if counts:
            yield f"{name}: {', '.join(f'{label} {n}' for label, n in counts.most_common())}"
    unjudged = [
        entry["id"] for entry in entries if not any(q.get("modality") for q in entry["questions"])
    ]
    if unjudged:
        yield f"no modality without dialogue: {', '.join(unjudged)}"
    if result.repeated_facts or result.repeated_pairs:
        yield (
            f"left out because they repeat others: {result.repeated_facts} facts, "
            f"{result.repeated_pairs} pairs"
        )
    reviews = [review(entry) for entry in entries]
    for kind, what in _REVIEW.items():
        lines = [line for review in reviews for line in review[kind]]
        yield f"to look at: {len(lines)} questions {what}"
        yield from (f"  {line}" for line in lines)
    for name, failure in result.failures.items():
        yield f"failed: {name} at {failure}"
    if result.failures:
        yield _advice(planned, result, cached=cached)


def _advice(planned: Plan, result: Result, *, cached: bool) -> str:
    """What to do about the segments that failed; each failure begins with its step."""
    stay = [name for name, why in result.failures.items() if _stays(why)]
    if not cached or not stay:
        return "run the same command again to go on: what the file has is not asked for again"
    return (
        f"replies are kept, so the same command would fail the same way at {', '.join(stay)}: "
        f"switch the cache off for one run ({settings.JUDGE_CACHE}=off), which asks about what "
        f"{planned.file} lacks, or name another --model with another --out"
    )


def _stays(failure: str) -> bool:
    _, _, why = failure.partition(": ")  # the step
    return engine.fails_again(why) or why.startswith(NOT_RELEASED)
