"""How many requests a class is handed at a time, by what it has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tqdm import tqdm

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import plugin
from lmms_eval_tasks.host.requests.pace import PORTION, SECONDS, Pace, one_bar
from lmms_eval_tasks.models import tiny
from tests.checks import table

CHAT = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=print)))


class Plain:
    def __init__(self, **more: Any) -> None:
        vars(self).update(more)

    def generate_until(self, requests: list[Any]) -> list[Any]:
        return requests


class Threads(Plain):
    def generate_until(self, requests: list[Any]) -> list[Any]:
        with ThreadPoolExecutor() as pool:
            return list(pool.map(str, requests))


class Strange(Plain):
    """As some classes: the device decides on the batch, and there is none yet."""

    @property
    def batch_size(self) -> int:
        raise RuntimeError("no device")


@table(
    "lm, run, in_flight, at_once",
    [
        (Plain(), {}, 0, 1),
        (Plain(batch_size_per_gpu=4, batch_size=4), {}, 0, 4),
        (Plain(), {"batch_size": "8"}, 0, 8),
        (Plain(), {"batch_size": "auto"}, 0, 1),
        (Strange(), {}, 0, 1),
        (Plain(client=CHAT, num_concurrent=16), {}, 16, 16),
        (Plain(client=CHAT, num_cpus=0), {}, 1, 1),
        (Plain(batch_size=4, requests_at_once=500), {}, 0, 500),
        (Plain(batch_size=4, requests_in_flight=256), {}, 256, 4),
        (Plain(client=CHAT), {}, 0, 1),  # nobody knows how many it may be asked at a time
        (Plain(num_concurrent=16), {}, 0, 16),  # with a client of its own
        (Plain(client=CHAT, num_concurrent=16, adaptive_concurrency=True), {}, 0, 16),
        (Plain(client=CHAT, num_cpus=16, mcp_client=object()), {}, 0, 16),
    ],
)
def test_what_a_class_is_handed(lm: Any, run: Any, in_flight: int, at_once: int) -> None:
    pace = Pace(lm, run)
    assert (pace.in_flight, pace.at_once) == (in_flight, at_once)


@table(
    "kind, asked, seconds, expected",
    [
        (Plain, 4, 0.1, 4),  # batch after batch
        (Threads, 4, SECONDS, 4),  # a portion takes so long
        (Threads, 4, SECONDS / 3, 12),
        (Threads, 8, SECONDS / 3, 24),
        (Threads, 4, 0.0, 4 * PORTION),
        (Threads, 4, 10 * SECONDS, 4),
    ],
)
def test_a_portion_ends_by_time_and_by_count(
    kind: Any, asked: int, seconds: float, expected: int
) -> None:
    pace = Pace(kind(batch_size=4), {})
    assert pace.next_portion(asked, seconds) == expected


@table(
    "more, first, next_one",
    [
        ({"batch_size": 64}, 20, 64),  # enough to see that all fails
        ({"batch_size": 4}, 4, 4),
        ({"requests_at_once": 500}, 500, 500),
    ],
)
def test_the_first_portion(more: Any, first: int, next_one: int) -> None:
    pace = Pace(Plain(**more), {})
    assert (pace.first_portion(20), pace.next_portion(first, SECONDS)) == (first, next_one)


def test_one_bar_counts_all(capsys: pytest.CaptureFixture[str]) -> None:
    with one_bar(10, 4, silent=False) as bar:
        own = tqdm(range(3), desc="of the class")
        for _ in own:
            bar.update()
        assert own.format_dict["elapsed"] > 0
    shown = capsys.readouterr().err
    assert "7/10" in shown
    assert "of the class" not in shown
    list(tqdm(range(1), desc="afterwards"))
    assert "afterwards" in capsys.readouterr().err


def test_each_language_model_is_loaded_once(
    on_sample: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lm_pairs` works in passes: in portions it would load all of its models for each."""
    plugin.install()
    from lmms_eval import evaluator

    from lmms_eval_tasks.models import lm_pairs

    loads: list[str] = []
    load = lm_pairs.load_pretrained

    def counted(loader: str, name: str, **kwargs: Any) -> Any:
        loads.extend([name] * (loader == "AutoModelForCausalLM"))
        return load(loader, name, **kwargs)

    monkeypatch.setattr(lm_pairs, "load_pretrained", counted)
    monkeypatch.setenv(settings.FRESH, "1")
    names = [str(tiny.build_checkpoint(kind, tmp_path / kind)) for kind in ("llama", "gpt2")]
    evaluator.simple_evaluate(
        model="lm_pairs",
        model_args=f"pretrained={','.join(names)},device=cpu",
        tasks=["maia_unimodal"],
        limit=48,
        verbosity="ERROR",
    )
    assert loads == names
