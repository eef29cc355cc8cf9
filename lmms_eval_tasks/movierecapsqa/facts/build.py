"""`lmms-eval-tasks facts`: a user's own recap becomes facts, questions and labels (3.2 and 3.3).

Segments are asked about side by side by the writer (judges/writer.py), so that a run can be
resumed. One that is in the file already, made from the same narration by the same model with the
same instructions, is kept as it is, hand corrections too. Anything else under its id is refused.
Segments of other recaps stay in the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import JudgeConfig, writer
from lmms_eval_tasks.judges.writer import Written
from lmms_eval_tasks.movierecapsqa.facts import steps
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import write_json

GENERATED = "generated"  # our field in a segment: how it was made
BuiltEntry = dict[str, Any]  # a segment as the file has it


class FactsPlan(NamedTuple):
    """What is to be done, and with what; `prompt` is `writer.load("facts", steps.STEPS)`."""

    file: Path
    config: JudgeConfig
    prompt: Prompt
    segments: Sequence[Narrated]

    def made_from(self, segment: Narrated) -> dict[str, str]:
        """How a segment comes about, for the file."""
        text = json.dumps([dict(segment.released), segment.narration], sort_keys=True)
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
        return {"model": self.config.label, "prompt": self.prompt.hash, "input": digest}

    def present(self) -> dict[str, BuiltEntry]:
        """The segments that the file has, by id.

        Raises:
            DataError: it is no such file, or holds a segment of this recap that was made otherwise.
        """
        content = released_files.read_json(self.file) if self.file.exists() else []
        if not isinstance(content, list) or not all(
            isinstance(entry, dict) and isinstance(entry.get("id"), str) for entry in content
        ):
            raise DataError(f"{self.file}: expected a list of segments with ids")
        there = {entry["id"].strip(): entry for entry in content}
        for one in self.segments:
            if (entry := there.get(one.id)) is None:
                continue
            now, before = self.made_from(one), entry.get(GENERATED) or {}
            if other := [what for what, value in now.items() if before.get(what) != value]:
                raise DataError(
                    f"{self.file}: has a segment {one.id} already, made with "
                    f"another {' and '.join(other)}: remove it there, or name "
                    "another file"
                )
        return there

    @property
    def todo(self) -> list[Narrated]:
        """Segments that the file lacks; raises as `present`."""
        there = self.present()
        return [one for one in self.segments if one.id not in there]


def build(planned: FactsPlan) -> list[Written[BuiltEntry]]:
    """Ask about the segments that the file lacks, and write it where any was made.

    A segment that fails is left out and told; all others are written.

    Returns:
        What became of those asked about.

    Raises:
        TasksError: the model cannot be used, or the file holds what must not be touched.
    """
    config, given, todo = planned.config, planned.prompt, planned.todo
    writer.start(config, [step.criterion(given) for step in steps.STEPS], given.name)

    def each(done: Written[BuiltEntry]) -> None:
        made = done.made
        counts = made and f"{len(made['facts'])} facts, {len(made['questions'])} questions"
        say(f"{done.unit}: {counts or 'failed'}")

    units = {one.id: steps.unit(given, one) for one in todo}
    written = writer.write(units, config, "movierecapsqa facts", each)
    there = planned.present()  # again: another recap may have been added meanwhile
    made = {one.unit: one.made for one in written if one.made is not None}
    own = {
        one.id: {**made[one.id], GENERATED: planned.made_from(one)} if one.id in made else entry
        for one in planned.segments
        if (entry := there.pop(one.id, {})) or one.id in made
    }
    if made:
        write_json(planned.file, [*there.values(), *own.values()])
    facts, questions = (sum(len(one[n]) for one in own.values()) for n in ("facts", "questions"))
    print(
        f"{planned.file}: {len(own)} of the recap's {len(planned.segments)} segments "
        f"({len(made)} made now, {len(own) - len(made)} kept), {facts} facts, "
        f"{questions} questions"
    )
    return written
