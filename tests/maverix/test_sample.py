"""MAVERIX's packaged sample: our schema, a truth for every item, clips that carry their code."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from lmms_eval_tasks.maverix import release as files
from lmms_eval_tasks.maverix import sample
from lmms_eval_tasks.maverix.labels import LETTERS, SPLITS


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "maverix"


@pytest.fixture(scope="module")
def release(folder: Path) -> files.Release:
    return files.read(folder)


class TestItems:
    """Twenty items in our schema, true whether the segment or the whole video is seen."""

    def test_the_schema_accepts_it(self, release: files.Release, folder: Path) -> None:
        """Every label occurs, and every letter is right about as often."""
        assert (len(release.videos), len(release.items), release.problems) == (4, 20, {})
        assert release.withheld == {"answers": 0, "references": 0}
        assert all(release.path_of(item.video).is_file() for item in release.items)
        for split in SPLITS.keys() - {"duration"}:
            assert {getattr(item, split) for item in release.items} == set(SPLITS[split]), split
        found = Counter(LETTERS[item.answer or 0] for item in release.items)
        assert sorted(found) == list(LETTERS)
        assert max(found.values()) <= 3

    def test_the_key(self, release: files.Release, folder: Path) -> None:
        key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
        asked = [text for item in release.items for text in (item.question, item.paraphrase)]
        assert not any(one in other for one in asked for other in asked if one != other)
        assert set(key["answers"]) == set(key["lures"]) == set(asked)
        assert len(set(asked)) == 40
        assert set(key["choices"]) == {item.question for item in release.items}
        for item in release.items:
            assert key["choices"][item.question] == item.options[item.answer or 0]
            for text in (item.question, item.paraphrase):
                assert key["answers"][text] == item.reference != key["lures"][text]


def test_two_builds_are_the_same(folder: Path, tmp_path: Path) -> None:
    """Byte by byte: x264 with macroblock trees was seen to differ in every second build."""
    sample.write(tmp_path)
    names = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert len(names) == 9
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
