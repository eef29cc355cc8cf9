"""MovieRecapsQA's layer for a user's own recap: facts, questions, labels (paper, 3.2 and 3.3).

Segments are asked about side by side, the steps of one after each other (steps.py). Replies
go through the judges' layer: its providers, cache, limits, budget and ledger. So a run that was
ended goes on where it stopped, and nothing is paid for twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import JudgeConfig
from lmms_eval_tasks.judges.config import KEY
from lmms_eval_tasks.judges.verdict import NONE
from lmms_eval_tasks.judges.writer import writer
from lmms_eval_tasks.movierecapsqa.facts import segments_file, steps
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.movierecapsqa.facts.replies import SCHEMAS
from lmms_eval_tasks.movierecapsqa.facts.steps import Written
from lmms_eval_tasks.utils.prompts import Prompt

PAPER_MODEL = "gpt-4.1"  # paper, 3.2
_NAME = re.compile(r"[\w./-]+(?<!\.yml)(?<!\.yaml)")  # of a model at OpenAI
TASK = "movierecapsqa facts"  # under which the ledger books


def model(spec: str | None, env: Mapping[str, str]) -> JudgeConfig:
    """The model that writes, in the forms of a judge (judges/writer.py); in the paper GPT-4.1.

    Args:
        spec: None for the paper's.

    Raises:
        JudgeError: it cannot be used, or is no single language model.
    """
    spec = (spec or PAPER_MODEL).strip()
    if not env.get(KEY, "").strip() and _NAME.fullmatch(spec) and spec != NONE:
        raise JudgeError(
            f"--model: a model at OpenAI (unset: {PAPER_MODEL}) needs a key: set {KEY}, or name "
            "one at an endpoint of your own, MODEL@BASE_URL"
        )
    return writer(spec, env, "--model", "one language model writes the facts", PAPER_MODEL)


@dataclass(frozen=True)
class Plan:
    """What is to be done, and with what.

    Attributes:
        segments: of the recap, in order.
        todo: those among them that the file lacks.
        made_from: how each one comes about, by id (segments_file.made_from).
    """

    file: Path
    config: JudgeConfig
    prompt: Prompt
    segments: Sequence[Narrated]
    todo: Sequence[Narrated]
    made_from: Mapping[str, Mapping[str, str]]
    append: bool


def plan(segments: Sequence[Narrated], config: JudgeConfig, file: Path, *, append: bool) -> Plan:
    """Look at the file and the instructions; nobody is asked.

    Raises:
        TasksError: the file holds what must not be touched, or the instructions do not fit.
    """
    given = steps.prompt()
    writer = (config.label, config.fingerprint, given.hash)
    made = {one.id: segments_file.made_from(one, *writer) for one in segments}
    kept = segments_file.kept(file, segments_file.read(file), made, append=append)
    todo = [one for one in segments if one.id not in kept]
    return Plan(file, config, given, segments, todo, made, append)


def announce(planned: Plan) -> str:
    """One line about the model, said before it is asked."""
    told = judges.announcement(planned.config, planned.prompt.name)
    return f"model: {told.removeprefix('judge: ')}"


@dataclass
class Result:
    """What became of a recap."""

    entries: list[dict[str, Any]]  # its segments that are in the file now
    made: int = 0
    failures: dict[str, str] = field(default_factory=dict)  # by id: the step and why
    repeated_facts: int = 0
    repeated_pairs: int = 0


def build(planned: Plan) -> Result:
    """Ask about the segments that the file lacks, and write it where any was made.

    A segment that fails is left out and told; all others are written.

    Raises:
        TasksError: the model cannot be used, or the file changed so that it cannot be added to.
    """
    from lmms_eval_tasks.judges.run import ordered_map
    from lmms_eval_tasks.utils.json_files import write_json

    config, given = planned.config, planned.prompt
    judges.preflight(config, [steps.criterion(step, given) for step in SCHEMAS])
    judge = judges.make(config)

    def write(segment: Narrated) -> Written:
        done = steps.write(judge, given, segment)
        say(f"{done.id}: {_told(done)}")
        return done

    written = ordered_map(write, planned.todo, TASK)
    made = {
        one.id: {**one.entry, segments_file.GENERATED: dict(planned.made_from[one.id])}
        for one in written
        if one.entry is not None
    }
    # Read again: another recap may have been added meanwhile.
    present = segments_file.read(planned.file)
    if made:
        segments_file.kept(planned.file, present, planned.made_from, append=planned.append)
        present = segments_file.merged(present, made, list(planned.made_from))
        write_json(planned.file, present)
    return Result(
        [entry for entry in present if entry["id"].strip() in planned.made_from],
        len(made),
        {one.id: one.failure for one in written if one.failure},
        sum(one.repeated_facts for one in written),
        sum(one.repeated_pairs for one in written),
    )


def _told(done: Written) -> str:
    if done.entry is None:
        return f"failed at {done.failure}"
    return f"{len(done.entry['facts'])} facts, {len(done.entry['questions'])} questions"
