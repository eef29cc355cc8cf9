"""The five published models' answers put to annotations made of the published judgements."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.cvrr_es.candidates import Aligned, align, read
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from tests.cvrr_es.release_files import MODELS, asked, real_data, release_from_judgements

CONTINUITY = "continuity_and_object_instance_count"


def references(model: str, dimension: str) -> dict[tuple[str, str], set[str]]:
    """Published (question, answer) -> references, read without the code under test."""
    file = real_data() / "judge_results" / model / f"{dimension}.json"
    found: dict[tuple[str, str], set[str]] = {}
    for one in map(asked, json.loads(file.read_text(encoding="utf-8"))):
        answer = one["pred"].removesuffix("</s>").strip()
        found.setdefault((one["q"].split("\n")[-1].strip(), answer), set()).add(one["a"].strip())
    return found


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> release.Release:
    """Annotations of GPT4o's judgements, in their order."""
    folder = tmp_path_factory.mktemp("gpt4o")
    return release.read(release_from_judgements(real_data() / "judge_results", folder))


class TestPublished:
    """All five models' 2,400 answers, against annotations in GPT4o's order.

    Four models were asked an older version: place 174 of one dimension had another question, and
    place 175 another reference.
    """

    def check(self, found: Aligned, release: release.Release, model: str) -> None:
        """Every answer stands at the reference that it was judged against."""
        judged = {dimension: references(model, dimension) for dimension in DIMENSIONS}
        for one in release.questions:
            if one.id not in found.answers or one.id == f"{CONTINUITY}/175":
                continue
            key = (one.question, found.answers[one.id])
            assert one.reference in judged[one.dimension][key], one.id

    @pytest.mark.parametrize("judgements", [True, False])
    @pytest.mark.parametrize("model", MODELS)
    def test_every_answer(
        self, model: str, judgements: bool, published: release.Release, tmp_path: Path
    ) -> None:
        source = real_data() / "predictions" / model
        if not judgements:
            shutil.copytree(source, tmp_path / "predictions" / model)
            source = tmp_path / "predictions" / model
        (candidate,) = read([source])
        found = align(candidate, published)
        marked = 2400 if model == "Video-LLaVA" else 0
        assert (found.candidate, found.tokens, found.ends) == (model, marked, marked)
        assert found.empty == ()
        self.check(found, published, model)
        if model == "GPT4o":
            assert (len(found.answers), found.ways) == (2400, {"order": 2400})
            assert (found.problems, found.notes) == ((), ())
            return
        file = source.resolve() / f"{CONTINUITY}.json"
        assert list(found.problems) == [
            f"{file}: 1 answer to a question that is not in the release, first entry 174 "
            "(What common clothing item is worn by both men who appear ...)",
            f"{file}: questions without an answer: 1, first {CONTINUITY}/174 "
            "(How many persons are featured in the video?)",
        ]
        assert len(found.answers) == 2399
        assert found.ways["order"] == 2223
        assert found.ways["text"] == 166
        if judgements:
            assert found.ways["judgement"] + found.ways["neighbours"] == 10
            assert len(found.notes) == 1
            assert "entry 175" in found.notes[0]
        else:
            assert (found.ways["neighbours"], found.notes) == (10, ())

    def test_annotations_in_another_order(self, tmp_path: Path) -> None:
        """Those of the other four models' judgements: two blocks of one dimension moved."""
        results = real_data() / "judge_results"
        release = release.read(release_from_judgements(results, tmp_path, model="TimeChat"))
        for model in ("TimeChat", "Video-LLaVA"):
            (candidate,) = read([real_data() / "predictions" / model])
            found = align(candidate, release)
            assert (len(found.answers), found.problems) == (2400, ())
            judged = {dimension: references(model, dimension) for dimension in DIMENSIONS}
            for one in release.questions:
                key = (one.question, found.answers[one.id])
                assert one.reference in judged[one.dimension][key], one.id
