"""Verdicts through OpenAI's batches: the same as asked directly, at half the price."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.judges.providers.batch import Results
from lmms_eval_tasks.judges.providers.exchange import ProviderError
from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider
from lmms_eval_tasks.runs import scoring
from lmms_eval_tasks.settings import JUDGE_CACHE, JUDGE_RPM, MAX_CALLS, MAX_COST, PRICES
from tests.checks import refused, table
from tests.conftest import host
from tests.local_endpoint import Fault, LocalEndpoint, choice, completion, last_user_text

TASK, COUNT = "maia_oevqa_1frame", 48
USAGE = {"prompt_tokens": 400, "completion_tokens": 20}
PRICE = (400 * 2 + 20 * 10) / 1e6  # dollars for one reply
REPAIR = "An earlier reply"


def verdict_on(request: Mapping[str, Any]) -> str:
    """What the judge says, by the request alone: half of the answers are right."""
    text = last_user_text(dict(request)).partition(f"\n\n{REPAIR}")[0]
    right = sum(text.encode()) % 2 == 0
    return json.dumps({"reason": f"it has {len(text)} characters", "correct": right})


def direct(request: dict[str, Any]) -> Fault:
    return completion([choice(verdict_on(request))], USAGE, model="m-2026")


Answer = Callable[[int, dict[str, Any]], "dict[str, Any] | None"]


def body(content: str) -> dict[str, Any]:
    return {
        "status_code": 200,
        "body": json.loads(completion([choice(content)], USAGE, "m-2026").body or b""),
    }


def well(number: int, request: dict[str, Any]) -> dict[str, Any]:
    return {"response": body(verdict_on(request)), "error": None}


def run_batch(requests: Path, results: Path, answer: Answer = well) -> int:
    """Play OpenAI's batch: a result for each line, in another order. Returns the lines read."""
    lines = [json.loads(line) for line in requests.read_text(encoding="utf-8").splitlines()]
    written = []
    for number, line in enumerate(lines):
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        found = answer(number, line["body"])
        if found is not None:
            written.append({"id": f"batch_req_{number}", "custom_id": line["custom_id"], **found})
    text = "".join(json.dumps(line) + "\n" for line in reversed(written))
    results.write_text(text, encoding="utf-8")
    return len(lines)


class Saved(NamedTuple):
    """A run that was not judged, and the command on it."""

    logs: Path
    folder: Path

    def judge(self, *arguments: str, cache: str = "cache") -> Result:
        env = {JUDGE_CACHE: str(self.folder / cache), PRICES: str(self.folder / "prices.yml")}
        name = arguments[-1] if "--output" in arguments else self.path("other.json")
        save = ["--save", str(Path(name).with_suffix(""))]
        return CliRunner().invoke(app, ["judge", str(self.logs), *arguments, *save], env=env)

    def write(self, spec: list[str], name: str) -> Result:
        return self.judge(*spec, "--batch", self.path(name))

    def read(self, spec: list[str], results: str, output: str) -> Result:
        files = ["--batch-results", self.path(results), "--output", self.path(output)]
        return self.judge(*spec, *files)

    def output(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        (file,) = (self.folder / name).with_suffix("").glob(f"*_samples_{TASK}.jsonl")
        items = [json.loads(line)["failed"] for line in file.read_text("utf-8").splitlines()]
        found["verdicts"] = [v for item in items for v in item["verdicts"].values()]
        return found

    def path(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="module")
def unjudged(launch, tmp_path_factory):
    """One run of the host on the packaged sample."""
    out = tmp_path_factory.mktemp("unjudged")
    command = ["--model", "tasks_scripted", "--tasks", TASK, "--judge", "none", "--log_samples"]
    run = launch(host(*command, "--output_path", str(out)), out)
    assert run.code == 0, run.stderr[-2000:]
    return run


@pytest.fixture
def saved(unjudged, tmp_path):
    (tmp_path / "prices.yml").write_text("models:\n  m@*: {input: 2.0, output: 10.0}\n")
    return Saved(unjudged.out, tmp_path)


@pytest.fixture
def endpoint():
    with LocalEndpoint(direct) as running:
        yield running


def verdicts(output: dict[str, Any]) -> list[dict[str, Any]]:
    """All but how they were paid for."""
    found: list[dict[str, Any]] = output["verdicts"]
    for verdict in found:
        verdict.get("usage", {}).pop("batch", None)
    return found


@pytest.mark.host
def test_a_batch_gives_the_direct_verdicts_at_half_the_price(saved, endpoint):
    spec = ["--judge", f"m@{endpoint.url}"]
    asked = saved.judge(*spec, "--output", saved.path("direct.json"), cache="another")
    assert asked.exit_code == 0, asked.output
    requests = len(endpoint.chats)
    assert 40 <= requests <= COUNT  # an answer that is none is not put to the judge

    written = saved.write(spec, "batch.jsonl")
    assert written.exit_code == 0, written.output
    assert f"{requests} requests to m" in written.output
    assert run_batch(saved.folder / "batch.jsonl", saved.folder / "results.jsonl") == requests
    # The very requests that the endpoint got, but for their exact schema, in whatever order.
    lines = (saved.folder / "batch.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(request.json.pop("response_format") for request in endpoint.chats)
    sent = sorted(json.dumps(request.json, sort_keys=True) for request in endpoint.chats)
    assert sorted(json.dumps(json.loads(line)["body"], sort_keys=True) for line in lines) == sent

    read = saved.read(spec, "results.jsonl", "batch.json")
    assert read.exit_code == 0, read.output
    assert len(endpoint.chats) == requests  # nobody was asked
    assert f"{requests} of {requests} results used" in read.output
    first, second = saved.output("direct.json"), saved.output("batch.json")
    assert verdicts(second) == verdicts(first)
    assert second["maia"]["numbers"] == first["maia"]["numbers"]
    assert 0.2 < second["maia"]["numbers"][TASK]["judge_acc"] < 0.8
    (row,), (half,) = first["usage"], second["usage"]
    assert row["paid_cost"] == pytest.approx(requests * PRICE)
    assert half["paid_cost"] == pytest.approx(row["paid_cost"] / 2)
    assert half["cost"] == pytest.approx(row["cost"] / 2)
    assert f"${requests * PRICE / 2:.4f}" in read.output

    # Everything is in the cache now, at the price that was paid.
    assert "no batch to write" in saved.write(spec, "second.jsonl").output
    assert not (saved.folder / "second.jsonl").exists()
    again = saved.judge(*spec, "--output", saved.path("again.json"))
    assert again.exit_code == 0
    assert len(endpoint.chats) == requests
    assert verdicts(saved.output("again.json")) == verdicts(first)
    (row,) = saved.output("again.json")["usage"]
    assert (row["paid_calls"], row["cost"]) == (0, half["cost"])


@pytest.mark.host
def test_what_went_wrong_in_a_batch_is_in_the_next_one(saved, endpoint):
    spec = ["--judge", f"m@{endpoint.url}"]

    def badly(number: int, request: dict[str, Any]) -> dict[str, Any] | None:
        if number < 5:
            return {"response": body("I like it."), "error": None}
        if number < 7:
            failed = {"code": "batch_expired", "message": "not in time"}
            return {"response": None, "error": failed}
        if number == 7:
            failed = {"error": {"message": "try later", "code": "rate_limit_exceeded"}}
            return {"response": {"status_code": 429, "body": failed}, "error": None}
        return None if number < 10 else well(number, request)

    saved.write(spec, "1.jsonl")
    requests = run_batch(saved.folder / "1.jsonl", saved.folder / "1-results.jsonl", badly)
    first = saved.read(spec, "1-results.jsonl", "1.json")
    assert first.exit_code == 3, first.output  # ten of 48 have no verdict
    statuses = [v.get("status") for v in verdicts(saved.output("1.json"))]
    for status, count in (("parse_failure", 5), ("api_error", 3), ("skipped", 2)):
        assert statuses.count(status) == count
    assert statuses.count("ok") == requests - 10
    failed = [v for v in verdicts(saved.output("1.json")) if v.get("status") == "api_error"]
    assert sum("not in time" in v["reason"] for v in failed) == 2
    assert sum("try later" in v["reason"] for v in failed) == 1
    assert f"{requests - 2} of {requests - 2} results used" in first.output

    second = saved.write(spec, "2.jsonl")
    assert second.exit_code == 0, second.output
    assert run_batch(saved.folder / "2.jsonl", saved.folder / "2-results.jsonl") == 10
    texts = (saved.folder / "2.jsonl").read_text(encoding="utf-8").splitlines()
    assert sum(REPAIR in text for text in texts) == 5
    last = saved.read(spec, "2-results.jsonl", "2.json")
    assert last.exit_code == 0, last.output
    assert "5 repairs" in last.output
    assert not endpoint.chats
    whole = saved.judge(*spec, "--output", saved.path("direct.json"), cache="another")
    assert whole.exit_code == 0
    scores = [v.get("score") for v in verdicts(saved.output("direct.json"))]
    assert [v.get("score") for v in verdicts(saved.output("2.json"))] == scores


@pytest.mark.host
def test_a_batch_has_no_limits(saved, endpoint, monkeypatch):
    """Writing and reading it pays for nothing: a budget or a rate must not leave requests out."""
    for variable in (MAX_CALLS, MAX_COST, JUDGE_RPM):
        monkeypatch.setenv(variable, "1")
    spec = ["--judge", f"m@{endpoint.url}"]
    saved.write(spec, "1.jsonl")
    assert run_batch(saved.folder / "1.jsonl", saved.folder / "2.jsonl") > 1
    read = saved.judge(*spec, "--batch-results", saved.path("2.jsonl"))
    assert read.exit_code == 0, read.output
    assert "skipped" not in read.output
    other = saved.read(["--judge", f"other@{endpoint.url}"], "2.jsonl", "other.json")
    assert (other.exit_code, "0 of " in other.output) == (3, True)  # another judge's results


@pytest.mark.host
def test_what_cannot_work_is_said_before_anyone_is_asked(saved, endpoint):
    spec = ["--judge", f"m@{endpoint.url}"]
    batch, nowhere = saved.path("batch.jsonl"), saved.path("no/such/folder/x")
    assert saved.judge(*spec, "--batch", batch).exit_code == 0
    for arguments, words in (
        ([*spec, "--batch-results", batch], "line 1: not a result of a batch"),
        ([*spec, "--batch", "a", "--batch-results", "b"], "use one of the two"),
        ([*spec, "--batch", nowhere], "no/such/folder/x: the batch cannot be written"),
        ([*spec, "--output", nowhere], "no/such/folder/x"),
        (["--judge", f"other@{endpoint.url}", "--max-cost", "1"], "price"),
        (["--judge", f"hf:{saved.path('none')}"], "none"),
        (["--judge", "none", "--batch", batch], "the judge none cannot be asked in batches"),
        (
            ["--judge", "hf:/a/folder", "--batch", batch],
            "the judge hf:/a/folder cannot be asked in",
        ),
    ):
        said = saved.judge(*arguments)
        assert isinstance(said.exception, TasksError), said.output
        assert words in str(said.exception)
    assert not endpoint.chats


def test_what_is_no_result_names_file_and_line(tmp_path):
    file = tmp_path / "results.jsonl"
    for content, why in (
        (b'\n{"custom_id": "a", "response": null, "error": null}\n{"cus', "line 3: not valid JSON"),
        (b'{"id": "batch_1"}\n', "line 1: not a result of a batch"),
        (b'{"custom_id": "a", "method": "POST", "body": {}}\n', "line 1: not a result of a batch"),
    ):
        file.write_bytes(content)
        assert why in refused(TasksError, str(file), Results, file)


@table("response, status")
def test_a_result_fails_as_the_endpoint_does(response, status, tmp_path):
    """Also one of another form; and reading the same line again would not help."""
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps({"custom_id": "a", "response": response, "error": None}) + "\n")
    made = OpenAIProvider(resolve("m@http://localhost/v1", {}, default_model="gpt-4o"))
    with pytest.raises(ProviderError) as caught:
        Results(file).reply("a", made)
    assert (caught.value.status.value, caught.value.retry) == (status, False)


@pytest.mark.host
def test_a_key_is_required_only_to_judge_something(saved, endpoint, monkeypatch):
    """The judge is the saved run's: each step begins with the run that the one before left."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    judged = Saved(Path(saved.path("judged")), saved.folder)

    def judge(run: Saved, *arguments: str) -> str:
        env = {JUDGE_CACHE: saved.path("cache")}
        done = CliRunner().invoke(app, ["judge", str(run.logs), *arguments], env=env)
        is_ours = isinstance(done.exception, TasksError)
        assert done.exit_code == (1 if is_ours else 0), done.output
        return f"{done.exception}" if is_ours else done.output

    with monkeypatch.context() as spied:
        spy = Mock(wraps=scoring.scored)
        spied.setattr(scoring, "scored", spy)
        assert "requires a key: set OPENAI_API_KEY" in judge(saved)
        assert spy.call_count == 1  # the first item shows that a judge is asked
    judge(saved, "--judge", f"m@{endpoint.url}", "--save", str(judged.logs))
    asked = len(endpoint.chats)
    nothing = f"nothing to judge: every answer of {TASK} has its verdict"
    for arguments in ([], ["--judge", f"m@{endpoint.url}"], ["--batch", saved.path("b.jsonl")]):
        assert nothing in judge(judged, *arguments)
    copied = judge(judged, "--save", saved.path("copied"))
    assert nothing in copied
    assert "numbers equal the saved ones" in copied
    assert "requires a key" in judge(judged, "--judge", "gpt-4o")

    (file,) = judged.logs.glob(f"*_samples_{TASK}.jsonl")
    samples = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    sample = next(one for one in samples if one["failed"]["verdicts"])
    sample["failed"]["verdicts"] = {}
    file.write_text("".join(f"{json.dumps(one)}\n" for one in samples), encoding="utf-8")
    (results,) = judged.logs.glob("*_results.json")
    told = json.loads(results.read_text("utf-8"))
    told["lmms_eval_tasks"]["maia"]["judge"]["temperature"] = 0.7  # from a file of settings
    results.write_text(json.dumps(told), encoding="utf-8")
    assert "name the file with --judge FILE.yml" in judge(judged)
    told["lmms_eval_tasks"]["maia"]["judge"]["temperature"] = 0.0
    results.write_text(json.dumps(told), encoding="utf-8")
    shutil.rmtree(saved.path("cache"))
    assert "1 verdicts new" in judge(judged)
    assert len(endpoint.chats) == asked + 1
