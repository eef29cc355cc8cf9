"""The command `lmms-eval-tasks facts`: facts, questions and labels for a user's recap (3.2, 3.3).

The writer (judges/writer.py) requests the texts of several segments at a time. A stopped run can be
resumed. A segment in the file stays as it is, with corrections by hand, if the same model made it
from the same narration with the same instructions. Any other segment with its id is an error.
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
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import write_json

# Field of a segment that only we write: model, prompt and hash of the input.
GENERATED = "generated"
BuiltEntry = dict[str, Any]  # a segment in the form of the file


class FactsPlan(NamedTuple):
    """The segments to write, the file, the model and its prompt.

    `prompt` is that of `writer.load_step_prompt`.
    """

    file: Path
    config: JudgeConfig
    prompt: Prompt
    segments: Sequence[Narrated]

    def made_from(self, segment: Narrated) -> dict[str, str]:
        """Return a segment's origin for the file: the model, and hashes of prompt and input."""
        text = json.dumps([dict(segment.released), segment.narration], sort_keys=True)
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
        return {"model": self.config.label, "prompt": self.prompt.hash, "input": digest}

    def present(self) -> dict[str, BuiltEntry]:
        """Return the segments in the file, by id.

        Raises:
            DataError: the file is no list of segments, or holds a segment of this recap with
                another origin (`made_from`).
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
        """The segments that the file lacks; raises the errors of `present`."""
        there = self.present()
        return [one for one in self.segments if one.id not in there]


def build_facts(plan: FactsPlan) -> list[Written[BuiltEntry]]:
    """Write the segments that the file lacks, and the file if there is any new segment.

    A segment that fails is left out and reported. All other segments are written.

    Returns:
        The outcome of each segment that was requested.

    Raises:
        TasksError: the model cannot be used, or the file holds content that must not be
            overwritten.
    """
    config, prompt, todo = plan.config, plan.prompt, plan.todo
    writer.start(config, [step.criterion(prompt) for step in steps.STEPS], prompt.name)

    def each(result: Written[BuiltEntry]) -> None:
        entry = result.result
        counts = entry and f"{len(entry['facts'])} facts, {len(entry['questions'])} questions"
        notify(f"{result.unit}: {counts or 'failed'}")

    units = {segment.id: steps.unit(prompt, segment) for segment in todo}
    written = writer.run_units(units, config, "movierecapsqa facts", each)
    stored = plan.present()  # read again: another recap may have been added meanwhile
    built = {outcome.unit: outcome.result for outcome in written if outcome.result is not None}
    merged = {
        seg.id: {**built[seg.id], GENERATED: plan.made_from(seg)} if seg.id in built else entry
        for seg in plan.segments
        if (entry := stored.pop(seg.id, {})) or seg.id in built
    }
    if built:
        write_json(plan.file, [*stored.values(), *merged.values()])
    facts, questions = (sum(len(row[n]) for row in merged.values()) for n in ("facts", "questions"))
    print(
        f"{plan.file}: {len(merged)} of the recap's {len(plan.segments)} segments "
        f"({len(built)} made now, {len(merged) - len(built)} kept), {facts} facts, "
        f"{questions} questions"
    )
    return written
