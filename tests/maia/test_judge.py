"""MAIA's criterion: prompt, schema, score."""

from __future__ import annotations

from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.maia import judge


def test_everything_reaches_the_judge() -> None:
    references = [f"risposta {number}" for number in range(8)]
    fields = {"question": "Che cosa?", "references": references, "candidate": "un'«altra»\n{x}"}
    system, user = render(judge.criterion(), fields)
    for text in ["Che cosa?", "un'«altra»\n{x}", *references]:
        assert text in user["content"]
    assert "JSON" in system["content"]  # JSON mode insists on the word
