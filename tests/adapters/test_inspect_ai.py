"""The tasks in Inspect: the items and numbers of a run of lmms-eval with the same replies."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nltk.data
import pytest

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.cvrr_es.settings import CVRR_NAME
from lmms_eval_tasks.haven.settings import HAVEN
from lmms_eval_tasks.models import fake_models
from tests.conftest import BIN, HostRun, Launch, environment, host
from tests.golden.run import write_replies
from tests.local_endpoint import LocalEndpoint
from tests.report import made
from tests.utils.metrics import tiny_nltk

# Imported by the tests that need it: 8 s, which each worker would spend when it collects.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None,
    reason="inspect-ai is not installed: pip install 'lmms-eval-tasks[inspect]'",
)
TASKS = (
    *("maia_vsv", "maia_oevqa", "maverix_av", "haven_temporal", "cvrr_es_partial_actions"),
    "maverix_av_oe",  # some of its ratings need two items
    "movierecapsqa_segment",
)
OF_THE_CLASS = {"hears", "sound"}  # MAVERIX: what lmms-eval's class of the model hears


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replies of every status (tests/golden)."""
    return write_replies(tmp_path_factory.mktemp("replies"))["faulty"]


@pytest.fixture(scope="module")
def judge(sample_root: Path, replies: Path) -> str:
    return made.recorded(sample_root, replies.with_name("judge.jsonl"))


@pytest.fixture(scope="module")
def of_lmms_eval(launch: Launch, replies: Path, judge: str) -> HostRun:
    model = ("--model", "tasks_recorded", "--model_args", f"replies={replies}")
    out = replies.with_name("out")
    # lmms-eval would delete `<think>...</think>` from a reply; scoring does that, too.
    output = ("--log_samples", "--output_path", str(out), "--reasoning_tags", "none")
    env = {settings.JUDGE: judge}
    done = launch(host(*model, "--tasks", ",".join(TASKS), *output), out, env=env)
    assert done.code in (0, 3), done.stderr[-3000:]  # 3: some verdicts are not recorded
    return done


@pytest.fixture
def on_machine(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the run of lmms-eval."""
    for name, value in environment(cache).items():
        monkeypatch.setenv(name, value)


def evaluated(name: str, texts: Mapping[tuple[str, str], str], logs: Path, **options: Any) -> Any:
    """The log of a task whose model gives the recorded replies, one after the other."""
    import inspect_ai
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from lmms_eval_tasks.adapters.inspect_ai import make_task

    task = make_task(name, **options)
    # With usage, since `mockllm` would else download a vocabulary to count tokens.
    outputs = [
        ModelOutput.from_content("mockllm", texts[str(one.id), name]) for one in task.dataset
    ]
    for one in outputs:
        one.usage = ModelUsage()
    model = get_model("mockllm/model", custom_outputs=outputs)
    more = {"max_samples": 1, "log_dir": str(logs), "display": "none", "log_images": False}
    (log,) = inspect_ai.eval(task, model=model, **more)
    assert log.status == "success", log.error
    return log


def numbers(log: Any) -> dict[str, float]:
    (score,) = log.results.scores
    return {name: one.value for name, one in score.metrics.items()}


@pytest.mark.host
@pytest.mark.parametrize("name", TASKS)
def test_items_and_numbers_are_those_of_lmms_eval(
    name: str,
    of_lmms_eval: HostRun,
    replies: Path,
    judge: str,
    on_machine: None,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # As in the other process; this one may have read NLTK_DATA before it was set.
    monkeypatch.setattr(nltk.data, "path", [str(tiny_nltk.build(cache / "nltk"))])
    monkeypatch.setenv(CVRR_NAME, "tasks_recorded")  # the name of the model in the items
    log = evaluated(name, fake_models.recorded(replies), tmp_path, judge=judge)
    items = {one.id: one.scores[name].metadata for one in log.samples}
    expected = {one["failed"]["id"]: one["failed"] for one in of_lmms_eval.samples(name)}
    assert len(expected) >= 2
    together = name == "maverix_av_oe"  # the log of Inspect has no ratings of two answers
    if together:
        for one in (*items.values(), *expected.values()):
            one["dimensions"].pop("consistency", None)
            one["verdicts"].pop("consistency", None)
    assert items.keys() == expected.keys()
    differing = {
        (item, field): (found.get(field), expected[item].get(field))
        for item, found in items.items()
        for field in (found.keys() | expected[item].keys()) - OF_THE_CLASS
        if found.get(field) != expected[item].get(field)
    }
    assert differing == {}
    known = {n: v for n, v in of_lmms_eval.numbers[name].items() if v is not None}
    found = numbers(log)
    is_invalid = name in of_lmms_eval.results["lmms_eval_tasks"]["invalid"]
    assert bool(found.pop("invalid", 0)) == is_invalid
    for number in [one for one in known if one.startswith("n_sound_")]:
        known[number] = found[number]
    assert found == known
    assert len(known) > 2
    assert "the packaged sample" in " ".join(log.eval.metadata["conditions"])


@pytest.mark.host
def test_the_command(launch: Launch, cache: Path, tmp_path: Path) -> None:
    """`inspect eval` with a model at an endpoint; its requests are those of the task."""
    from inspect_ai.log import list_eval_logs, read_eval_log

    with LocalEndpoint(lambda request: "A") as endpoint:
        model = ("--model", "openai-api/local/any", "--limit", "2", "--display", "plain")
        tasks = ("lmms_eval_tasks/maia_vsv", "lmms_eval_tasks/cvrr_es_partial_actions")
        pictures = ("-T", "videos_as_pictures=true", "-T", "data=sample")
        env = {**environment(cache), "LOCAL_BASE_URL": endpoint.url, "LOCAL_API_KEY": "none"}
        done = subprocess.run(
            [str(BIN / "inspect"), "eval", *tasks, *model, *pictures],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    logs = [read_eval_log(one) for one in list_eval_logs(str(tmp_path / "logs"))]
    by_task = {one.eval.task.rpartition("/")[2]: one for one in logs}
    assert by_task.keys() == {"maia_vsv", "cvrr_es_partial_actions"}
    assert {(one.status, len(one.samples)) for one in logs} == {("success", 2)}
    assert numbers(by_task["maia_vsv"])["failed"] == 0
    (sample, _) = by_task["cvrr_es_partial_actions"].samples
    item = sample.scores["cvrr_es_partial_actions"].metadata
    assert (item["candidate"], item["status"]) == ("any", "unjudged")
    assert sample.scores["cvrr_es_partial_actions"].value["acc"] is None
    limits = {
        one.json["max_tokens"]: [part["type"] for part in one.json["messages"][0]["content"]]
        for one in endpoint.chats
    }
    assert limits == dict.fromkeys((128, 256), ["image_url"] * 32 + ["text"])
    assert {one.json["temperature"] for one in endpoint.chats} == {0}


def test_every_task_is_registered() -> None:
    from inspect_ai._util.registry import registry_find

    import lmms_eval_tasks.adapters.inspect_ai  # noqa: F401

    names = {
        f"lmms_eval_tasks/{task}" for own in registry.usable_benchmarks() for task in own.tasks
    }
    tasks = registry_find(lambda info: info.type == "task")
    # In a checkout, Inspect may leave out the package's name.
    prefix = "lmms_eval_tasks/"
    found = {f"{prefix}{one.__registry_info__.name.removeprefix(prefix)}" for one in tasks}
    assert names <= found


def test_a_system_text_is_a_system_message(
    on_sample: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lmms_eval_tasks.adapters.inspect_ai import InspectRun

    monkeypatch.setenv(HAVEN, "system=task")
    run = InspectRun("haven_temporal", {}, pictures=False)
    system, user = run.call(run.request, next(iter(run.docs.values())))
    assert (system.role, user.role) == ("system", "user")
    assert system.text
    assert {one.type for one in user.content} == {"text", "image"}


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    from inspect_ai._util.error import PrerequisiteError

    from lmms_eval_tasks.adapters.inspect_ai import make_content, make_task

    with pytest.raises(PrerequisiteError) as raised:
        make_task("maia_vsv", data=str(tmp_path))
    assert str(tmp_path) in str(raised.value.message)
    assert "-T data=ROOT" in str(raised.value.message)
    for options in ({"data": 3}, {"videos_as_pictures": "maybe"}):
        with pytest.raises(PrerequisiteError) as raised:
            make_task("maia_vsv", **options)
        assert str(*options.values()) in str(raised.value.message)
    film = tmp_path / "film.mkv"
    film.write_bytes(b"")
    with pytest.raises(Exception, match="-T videos_as_pictures=true"):
        make_content({"type": "video", "url": str(film)})


def test_failures_are_no_scores(on_sample: None, tmp_path: Path) -> None:
    """Of a request, of Inspect's own options, and with other pictures than the default."""
    import inspect_ai
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from lmms_eval_tasks.adapters.inspect_ai import make_task

    sent: list[int] = []

    def reply(messages: list[Any], *_: Any) -> ModelOutput:
        sent.append(len(messages[0].content) - 1)
        if len(sent) == 1:
            raise ConnectionError("no route")
        made = ModelOutput.from_content("mockllm", "A", stop_reason="max_tokens")
        made.usage = ModelUsage()
        return made

    task = make_task("maia_vsv", videos_as_pictures=True)
    model = get_model("mockllm/model", custom_outputs=reply)
    more = {"model": model, "log_dir": str(tmp_path), "display": "none", "max_samples": 1}
    more |= {"limit": 3, "log_images": False}
    (log,) = inspect_ai.eval(task, fail_on_error=False, **more)
    assert [one.error is None for one in log.samples] == [False, True, True]
    assert not log.samples[0].scores
    assert log.results.scores[0].scored_samples == 2
    found = numbers(log)
    assert (found["pair_acc_failed"], found["invalid"]) == (1, 1)  # as in a run of lmms-eval
    assert found["part"] == 3 / 384
    told = "\n".join(log.eval.metadata["conditions"])
    assert "INVALID: maia_vsv: 1 of 3 requests to the model failed" in told
    assert "no route" in told
    assert "only part of the data was run (3 of 384 docs)" in told
    assert "2 of 3 replies reach the limit of tokens" in told
    assert log.samples[1].scores["maia_vsv"].metadata["at_limit"] is True
    assert sent == [32, 32, 32]
    assert Path(log.location.removeprefix("file://")).stat().st_size < 100_000
    with pytest.raises(PrerequisiteError, match="--epochs"):
        inspect_ai.eval(task, epochs=2, **more)
    assert len(sent) == 3  # no request was paid for
    (log,) = inspect_ai.eval(task, epochs=1, **more)
    assert log.status == "success"


def ended(text: str, reason: str = "stop", error: str | None = None) -> Any:
    from inspect_ai.model import ModelOutput

    return ModelOutput.from_content("any", text, stop_reason=reason, error=error)


def no_output() -> Any:
    from inspect_ai.model import ModelOutput

    return ModelOutput()


@pytest.mark.parametrize(
    ("output", "status"),
    [
        (lambda: ended("A"), "ok"),
        (lambda: ended(""), "empty"),
        (lambda: ended("A", "max_tokens"), "ok"),
        # What Inspect returns as a text if a provider refuses the request.
        (lambda: ended("A content policy ends the request.", "content_filter"), "model_error"),
        (lambda: ended("A model's context is at most 8 tokens.", "model_length"), "model_error"),
        (lambda: ended("A", error="moderated"), "model_error"),
        (no_output, "model_error"),  # --time-limit and its kind, --score-on-error
    ],
)
def test_a_request_without_a_reply_is_no_answer(
    output: Callable[[], Any], status: str, on_sample: None
) -> None:
    from lmms_eval_tasks.adapters.inspect_ai import InspectRun

    run = InspectRun("maia_vsv", {}, pictures=True)
    doc = next(iter(run.docs.values()))
    score = run.call(run.score, doc, output())
    assert score.metadata["status"] == status
    assert (score.value["pair_acc"] is None) == (status == "model_error")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("maia_oevqa", {"rouge_l", "meteor"}),
        ("cvrr_es_partial_actions", set()),
        ("maverix_av_oe", set()),
        ("movierecapsqa_segment", set()),
    ],
)
def test_a_failed_judge_is_no_score(
    name: str, values: set[str], on_sample: None, tmp_path: Path
) -> None:
    """The judge of recorded replies knows none of the answers."""
    from lmms_eval_tasks.adapters.inspect_ai import InspectRun

    other = json.dumps({"criterion": "other", "fields": {}, "reply": "Correct"})
    (tmp_path / "judge.jsonl").write_text(other)
    judge = {str(settings.JUDGE): f"replay:{tmp_path / 'judge.jsonl'}"}
    run = InspectRun(name, judge, pictures=True)
    docs = list(run.docs.values())
    scores = [run.call(run.score, doc, ended("A man walks to the door.")) for doc in docs]
    for score in scores:
        assert score.metadata["status"].startswith("judge_"), score.metadata
        assert score.value
        assert {n for n, v in score.value.items() if v is not None} == values
    found = run.call(run.numbers, [score.metadata for score in scores])
    assert found["invalid"] == 1
    assert "verdicts failed" in run.facts["conditions"][0]
