"""What the hook asks of the host and mends in it; that it hooks is shown by tests/host/."""

from __future__ import annotations

import functools
import inspect
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lmms_eval.models.model_utils.media_encoder import _build_cache_key
from lmms_eval.protocol import ChatMessages
from PIL import Image

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.host import discovery
from lmms_eval_tasks.host.evaluation import _score_side_by_side
from lmms_eval_tasks.host.model_class import interface_of
from lmms_eval_tasks.host.plugin import guarded
from lmms_eval_tasks.host.requests.endpoints import right_media
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.report import provenance
from tests.checks import refused, table


def test_a_picture_never_gets_another_s_bytes() -> None:
    """The host's cache knows a picture by its id, which a dropped picture leaves to a new one."""
    picture = Image.new("RGB", (2, 2), "red")
    key = _build_cache_key(picture, image_format="PNG", convert_rgb=False, quality=None)
    messages, earlier = ChatMessages(messages=[]), {key: "an earlier picture"}
    assert messages.encode_image(picture, earlier) == "an earlier picture"  # else: not needed
    with right_media():
        assert messages.encode_image(picture, earlier) == messages.encode_image(picture)
    assert messages.encode_image(picture, earlier) == "an earlier picture"


@table(
    "model, force_simple, expected",
    [
        ("openai", False, "chat"),
        ("openai", True, "simple"),
        ("openai_compatible_chat", True, "simple"),  # the alias of both classes
        ("qwen2_5_vl", False, "chat"),
        ("qwen2_5_vl", True, "simple"),
        ("vllm_generate", True, "chat"),  # has no simple class
        ("qwen2_audio", False, "simple"),  # has no chat class
        ("tasks_oracle", True, "simple"),
        ("lm_pairs", False, "simple"),
    ],
)
def test_interface_of(model: str, force_simple: bool, expected: str) -> None:
    assert interface_of(model, force_simple) == expected
    refused(TasksError, "lmms-eval has no model 'gpt5'", interface_of, "gpt5")


def test_a_run_knows_what_the_host_was_told_to_ask(
    sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its check, made before the host builds anything, looks at no more (`--limit`)."""
    shutil.copytree(sample_root / "maia", tmp_path / "maia")
    (tmp_path / "maia" / "videos" / "2.mp4").write_bytes(b"no video")
    monkeypatch.setenv(settings.DATA, str(tmp_path))
    runs: list[slice] = []

    def simple_evaluate(
        model: Any = None,
        tasks: Any = None,
        limit: float | None = None,
        offset: int = 0,
        verbosity: str = "ERROR",
        task_manager: Any = None,
    ) -> None:
        runs.append(context.current().docs)

    file = Path(discovery.task_folders()[0], "maia", "maia_vsv_1frame.yaml")
    known = {"type": "task", "yaml_path": str(file)}
    manager = SimpleNamespace(task_index={"maia_vsv_1frame": known}, include_path=None)
    evaluate = functools.partial(guarded(simple_evaluate), task_manager=manager)
    evaluate("tasks_coin", ["maia_vsv_1frame"], limit=8)
    evaluate("tasks_coin", ["maia_vsv_1frame"], limit=100, offset=92)
    assert runs == [slice(0, 8), slice(92, 192)]
    # A share of docs counts as all: the host alone knows of how many.
    for more in ({}, {"limit": -1}, {"limit": 0.01}, {"limit": 193}, {"limit": 1, "offset": 192}):
        with pytest.raises(DataError, match=r"1 of 2 .*\n  video2: unreadable: "):
            evaluate("tasks_coin", ["maia_vsv_1frame"], **more)
    assert len(runs) == 2
    assert context.current().docs == slice(None)


@table("at_once", [False, True])
def test_two_runs_of_a_process_do_not_see_each_other(
    at_once: bool, sample_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, or in two threads; nor do the threads that a model's class starts."""
    monkeypatch.setenv(settings.DATA, str(sample_root))
    seen: dict[str, Any] = {}

    def look(model: str) -> None:
        run = context.current()
        before = provenance.implementation_notes("maia")
        provenance.note("maia", model, "noted")
        share = settings.may_fail()
        told = (run.model and run.model.name, run.docs, share, before, judge_run.current())
        seen.setdefault(model, []).append(told)

    def simple_evaluate(
        model: Any = None,
        tasks: Any = None,
        limit: float | None = None,
        verbosity: str = "ERROR",
        task_manager: Any = None,
    ) -> None:
        monkeypatch.setenv(settings.MAX_FAILED, "0.9")  # too late: they are taken when it begins
        look(model)
        of_a_class = threading.Thread(target=look, args=(model,))
        of_a_class.start()
        of_a_class.join()
        monkeypatch.delenv(settings.MAX_FAILED)

    file = Path(discovery.task_folders()[0], "maia", "maia_vsv_1frame.yaml")
    known = {"type": "task", "yaml_path": str(file)}
    manager = SimpleNamespace(task_index={"maia_vsv_1frame": known}, include_path=None)
    evaluate = functools.partial(guarded(simple_evaluate), task_manager=manager)

    def run(model: str, limit: int, share: float) -> None:
        with settings.use_options({settings.MAX_FAILED: share} if share else {}):
            evaluate(model, ["maia_vsv_1frame"], limit=limit)

    threads = [
        threading.Thread(target=run, args=one)
        for one in (("tasks_coin", 8, 0.0), ("tasks_oracle", 16, 0.25))
    ]
    for thread in threads:
        thread.start()
        if not at_once:
            thread.join()
    for thread in threads:
        thread.join()
    for model, limit, share in (("tasks_coin", 8, 0.05), ("tasks_oracle", 16, 0.25)):
        first, second = seen[model]
        assert first[:4] == (model, slice(0, limit), share, {})
        assert second[:4] == (model, slice(0, limit), share, {model: "noted"})
        assert first[4] is second[4]
    assert seen["tasks_coin"][0][4] is not seen["tasks_oracle"][0][4]
    assert provenance.implementation_notes("maia") == {}


@table(
    "own, expected, said",
    [
        ("process_docs_parallel=4", 16, ""),
        ("process_docs_parallel=3", 3, ""),  # the user's number
        ("threads=4", None, "the judge gets one request at a time"),
    ],
)
def test_as_many_threads_as_requests(
    own: str, expected: int | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, number = own.split("=")
    given: dict[str, Any] = {name: int(number)}
    parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    _score_side_by_side(given, 16, inspect.Signature([parameter]))
    assert given.get("process_docs_parallel") == expected
    assert said in capsys.readouterr().err
