"""The cuts before a run: a damaged file shows before a model is loaded, or is left out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.maverix import benchmark, checked, data, inputs, utils
from lmms_eval_tasks.runs import cuts, preflight
from tests.maverix import runs
from tests.maverix.runs import root, source
from tests.maverix.test_benchmark import task

__all__ = ["root", "source"]


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(settings.JUDGE, "none")
    inputs.cut.cache_clear()
    yield
    checked.remember(None)
    inputs.cut.cache_clear()


@pytest.fixture
def placed(root: Path, source: Path) -> Path:
    benchmark.prepare(source, root, link=True)
    return root / "maverix"


class Cutter:
    """Stands for segments.segment: notes what is cut, and fails on some windows."""

    def __init__(self) -> None:
        self.cuts: list[tuple[str, float | None, float | None]] = []
        self.bad: set[tuple[str, float | None, float | None]] = set()

    def __call__(self, path: str, start: float | None, end: float | None) -> Any:
        window = (path, start, end)
        self.cuts.append(window)
        if window in self.bad:
            raise MediaError(f"{path}: is damaged after {start} s")
        return SimpleNamespace(video=f"{path}-{start}-{end}", sound="x.wav")


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Cutter:
    made = Cutter()
    monkeypatch.setattr(inputs.segments, "segment", made)
    return made


def windows(count: int | None = None, length: str = "localized") -> list[Any]:
    rows = data.rows(data.load())[:count]
    return [checked.window_of(row, length) for row in rows]


def check(names: Sequence[str], limit: float | None = None) -> None:
    tasks = [task(name) for name in names]
    preflight.check(tasks)
    preflight.make_media(tasks, limit)


class TestWhatIsCut:
    """Once for all modes of an item, only what a mode needs, only what the limit leaves."""

    def test_nothing_for_subtitles_alone(self, placed: Path, cutter: Cutter) -> None:
        check(["maverix_s", "maverix_long_s_oe", "maverix_s_circular"])
        assert cutter.cuts == []

    def test_the_check_alone_cuts_nothing(self, placed: Path, cutter: Cutter) -> None:
        """It is made twice, and for the first time without knowing the limit."""
        preflight.check([task("maverix_av")])
        assert cutter.cuts == []

    def test_once_for_all_modes(self, placed: Path, cutter: Cutter) -> None:
        check(["maverix_a", "maverix_v", "maverix_av", "maverix_vs_oe", "maverix_v_circular"])
        assert len(cutter.cuts) == len(set(windows()))
        assert set(cutter.cuts) == set(windows())
        for doc in runs.docs("choice", "av"):
            utils.doc_to_messages(doc)
        assert len(cutter.cuts) == len(set(windows()))  # a run finds them

    def test_full_length(self, placed: Path, cutter: Cutter) -> None:
        check(["maverix_long_a"])
        assert sorted(map(str, cutter.cuts)) == sorted(map(str, set(windows(length="long"))))

    @pytest.mark.parametrize(
        ("name", "limit", "items"),
        [
            ("maverix_v", 3, 3),
            ("maverix_v_oe", 3, 2),
            ("maverix_v_circular", 9, 2),
            ("maverix_v", 0.25, 5),
            ("maverix_v", -1, 20),
            ("maverix_v", 0, 20),
            ("maverix_v", 999, 20),
        ],
    )
    def test_a_limit(
        self, name: str, limit: float, items: int, placed: Path, cutter: Cutter
    ) -> None:
        check([name], limit)
        assert set(cutter.cuts) == set(windows(items))

    def test_a_share_is_the_number_of_the_first_task(self, placed: Path, cutter: Cutter) -> None:
        """As the host has it: a quarter of 40 docs are 10, and 10 items of the second task."""
        check(["maverix_v_oe", "maverix_v"], 0.25)
        assert set(cutter.cuts) == set(windows(10))

    def test_long_cuts_are_told(
        self,
        placed: Path,
        cutter: Cutter,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        check(["maverix_v"])
        assert capsys.readouterr().err == ""
        inputs.cut.cache_clear()
        clock = itertools.count(0, 4)
        monkeypatch.setattr(cuts.time, "monotonic", lambda: next(clock))
        check(["maverix_v"])
        lines = capsys.readouterr().err.splitlines()
        total = len(set(windows()))
        assert 2 <= len(lines) < total
        assert f"of {total} segments cut (kept in " in lines[0]


class TestWhatCannotBeCut:
    """A run that would break stops before its model is loaded, or goes on without the item."""

    @pytest.fixture
    def bad(self, placed: Path, cutter: Cutter) -> str:
        """The first item; its window is nobody else's."""
        first, *others = windows()
        assert first not in others
        cutter.bad.add(first)
        return str(data.load().items[0].id)

    def test_it_stops_the_run(self, bad: str) -> None:
        with pytest.raises(
            DataError,
            match=rf"1 of 20 .* cut:\n  {bad}: .*is damaged after .*\n.*--allow-bad-items",
        ):
            check(["maverix_s", "maverix_v"])
        check(["maverix_s"])

    def test_it_is_left_out_where_it_is_needed(
        self, bad: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        names = ["maverix_s", "maverix_v", "maverix_a_oe", "maverix_av_circular", "maverix_long_v"]
        check(names)
        asked = {
            "maverix_s": runs.docs("choice", "s"),
            "maverix_v": runs.docs("choice", "v"),
            "maverix_a_oe": runs.docs("open", "a"),
            "maverix_av_circular": runs.docs("circular", "av"),
            "maverix_long_v": runs.docs("choice", "v", "long"),
        }
        counts = {name: len(docs) for name, docs in asked.items()}
        assert list(counts.values()) == [20, 19, 38, 152, 20]
        missing = {n for n, docs in asked.items() if bad not in {d["question_id"] for d in docs}}
        assert missing == {"maverix_v", "maverix_a_oe", "maverix_av_circular"}
        results: dict[str, Any] = {"results": {}, "lmms_eval_tasks": {}}
        benchmark.annotate(results, [task(name) for name in names])
        section = results["lmms_eval_tasks"]["maverix"]
        assert list(section["not_cut"]) == [bad]
        assert "is damaged" in section["not_cut"][bad]
        (told,) = [line for line in section["warnings"] if "cannot be cut" in line]
        assert told == f"1 items that cannot be cut left out of all modes but S: {bad}"
        assert any("(S 20, V 19)" in line for line in section["warnings"])

    def test_the_next_item_comes_inside_the_limit(
        self, bad: str, cutter: Cutter, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        cutter.bad.add(windows()[3])
        check(["maverix_v"], 3)
        assert set(cutter.cuts) == set(windows(5))
        assert len(runs.docs("choice", "v")[:3]) == 3

    def test_nothing_left(
        self, placed: Path, cutter: Cutter, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        cutter.bad |= set(windows())
        with pytest.raises(DataError, match="none of the segments of maverix_v can be cut:\n"):
            check(["maverix_s", "maverix_v"])

    def test_a_mended_file_is_asked_again(
        self, bad: str, cutter: Cutter, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        check(["maverix_v"])
        assert len(runs.docs("choice", "v")) == 19
        cutter.bad.clear()
        check(["maverix_v"])
        assert len(runs.docs("choice", "v")) == 20

    def test_what_breaks_during_the_run_is_one_line(self, bad: str) -> None:
        doc = runs.docs("choice", "v")[0]
        with pytest.raises(
            MediaError, match=rf"^{bad}: its segment cannot be cut any more.*\("
        ) as e:
            utils.doc_to_messages(doc)
        assert "\n" not in str(e.value)


def test_a_file_that_is_damaged_in_the_middle(
    root: Path, source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its packets can be listed and its first frame decodes: only the cut shows it."""
    monkeypatch.setenv(settings.CACHE, str(cache))
    video = source / "videos" / "lights-1.mp4"
    content = bytearray(video.read_bytes())
    first, last = len(content) * 45 // 100, len(content) * 55 // 100
    content[first:last] = bytes((7 * n) % 251 for n in range(last - first))
    video.write_bytes(content)
    items = json.loads((source / "data.json").read_text(encoding="utf-8"))
    entry = items["items"][0]
    items["items"] = [
        {**entry, "id": name, "start": start, "end": start + 2}
        for name, start in (("early", 1), ("middle", 14), ("late", 27))
    ]
    (source / "data.json").write_text(json.dumps(items), encoding="utf-8")
    benchmark.prepare(source, root, link=True)
    with pytest.raises(DataError, match=r"1 of 3 .*\n  middle: .*lights-1.mp4: "):
        check(["maverix_av"])
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    check(["maverix_av"])
    docs = runs.docs("choice", "av")
    assert [doc["id"] for doc in docs] == ["early", "late"]
    for doc in docs:
        utils.doc_to_messages(doc)
