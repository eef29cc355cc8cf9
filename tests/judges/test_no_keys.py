"""A planted key in every place that a run writes: it must be in none of them."""

import dataclasses
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import faults
import pytest

from lmms_eval_tasks.judges import Judge, resolve
from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges.report import usage_lines
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.settings import JudgeLimits
from tests import local_endpoint as server
from tests.checks import table
from tests.conftest import BIN, HostRun, host
from tests.local_endpoint import Fault, LocalEndpoint, choice, completion

KEY = "sk-proj-Planted_0123456789-abcdefghijklmnop"
PLAIN = "Planted84characters0123456789ABCDEF"  # nothing in it looks like a key
# What must not be seen: the secrets, and pieces of them that a cut or an encoding would leave.
SECRETS = (KEY, KEY[8:24], PLAIN, PLAIN[:20])


def echoing(headers: dict[str, str], number: int) -> Fault | str:
    """Repeats the credentials wherever an endpoint can put text, by turns."""
    sent = headers["authorization"]
    verdict = json.dumps({"reason": f"your header was {sent}", "correct": True, "rating": 3})
    right = json.dumps({"reason": f"your header was {sent}", "correct": True})
    turns: list[Fault | str] = [
        right,
        verdict,
        server.error(401, f"Incorrect API key provided: {sent}. See https://example.com/keys"),
        server.error(500, f"upstream got Authorization: {sent}"),
        Fault(status=429, message=sent, headers={"Retry-After": "0"}),
        server.error(400, f"header {sent} is not supported", code=sent, param=sent),
        server.refused(f"I refuse {sent}"),
        server.truncated(f'{{"reason": "{sent}'),
        Fault(body=f"<html>{sent}</html>".encode(), content_type="text/html"),
        Fault(body=json.dumps({"error": {"message": f"for {sent}"}}).encode()),
        completion([choice(right, finish_reason=sent)], None, model=f"m of {sent}"),
        completion([choice("4", logprobs={"content": [_token(sent)]})], None),
        Fault(content=f"Bearer {sent} {sent.partition(' ')[2]}"),
    ]
    return turns[number % len(turns)]


def _token(text: str) -> dict[str, Any]:
    top = [{"token": text, "logprob": -0.1}]
    return {"token": text, "logprob": -0.1, "top_logprobs": top}


def echo_endpoint() -> LocalEndpoint:
    """An endpoint whose replies are made of the request's headers."""
    endpoint = LocalEndpoint(
        lambda request: echoing(endpoint.chats[-1].headers, len(endpoint.chats))
    )
    return endpoint


def assert_clean(texts: Iterable[str | bytes]) -> None:
    """None of the secrets in any of the texts."""
    for text in texts:
        found = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        for secret in SECRETS:
            place = found.find(secret.encode())
            assert place < 0, found[max(0, place - 120) : place + 60]


def files_of(*folders: Path) -> list[bytes]:
    """The bytes of every file, and the names."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert files
    return [*(path.read_bytes() for path in files), *(str(path).encode() for path in files)]


@table("key", [KEY, PLAIN])
def test_an_endpoint_that_repeats_the_header(key, tmp_path, caplog, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_LOG", "debug")
    logging.getLogger("openai").setLevel(logging.DEBUG)
    logging.getLogger("httpx").setLevel(logging.DEBUG)
    with caplog.at_level(logging.DEBUG), echo_endpoint() as endpoint:
        config = resolve(f"m@{endpoint.url}", {"OPENAI_API_KEY": key}, default_model="gpt-4o")
        run = JudgeSession(JudgeLimits(stop_after=0), cache=tmp_path / "cache")
        judge: Judge = run.judge(dataclasses.replace(config, retries=0))
        verdicts = faults.judged(judge, faults.items(60), threads=1)
        # It did reach the endpoint.
        assert {one.headers["authorization"] for one in endpoint.chats} == {f"Bearer {key}"}
    assert run.cache is not None
    texts: list[str | bytes] = [json.dumps(verdict.as_dict()) for verdict in verdicts]
    assert len({verdict.status for verdict in verdicts}) >= 4
    assert sum("[key]" in text for text in map(str, texts)) >= 5
    texts += [repr(judge), repr(config), json.dumps(config.describe()), json.dumps(run.describe())]
    texts += [f"{config} {dataclasses.asdict(config)} {config.label}"]
    texts += [
        str(run.usage.as_dicts()),
        *usage_lines(run.usage.rows()),
        *run.stopped(),
        run.summary(),
    ]
    texts += files_of(tmp_path / "cache")  # with the WAL, which is not emptied yet
    texts += map(str, replies.cached_replies(run.cache.path))  # on disk they are compressed
    run.close()
    texts += files_of(tmp_path / "cache")
    assert_clean([*texts, *capsys.readouterr()])
    assert_clean(caplog.text.splitlines())


# --- through the host ---------------------------------------------------------------------------


@pytest.mark.host
def test_a_run_of_the_host_and_the_commands_after_it(launch, tmp_path):
    """Everything that a judged run leaves behind, with the debug logs of all libraries."""
    out, cache = tmp_path / "out", tmp_path / "judge"
    env = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_LOG": "debug",
        "LMMS_EVAL_TASKS_JUDGE_CACHE": str(cache),
        "LMMS_EVAL_TASKS_JUDGE_STOP_AFTER": "0",
    }
    command = ["--model", "tasks_scripted", "--tasks", "maia_oevqa_1frame", "--verbosity", "DEBUG"]
    command += ["--log_samples", "--output_path", str(out)]
    with echo_endpoint() as endpoint:
        file = tmp_path / "judge.yml"
        file.write_text(f"model: m\nbase_url: {endpoint.url}\nretries: 1\n", encoding="utf-8")
        spec = ["--judge", str(file)]  # asked again once: five times are half a minute of waiting
        run = launch(host(*command, *spec), out, env=env)
        assert run.code == 3, run.stderr[-3000:]  # most verdicts fail at such an endpoint
        sent = {request.headers["authorization"] for request in endpoint.chats}
        assert sent == {f"Bearer {KEY}"}
        usage = run.results["lmms_eval_tasks"]["judges"]["usage"]
        assert usage[0]["verdicts"] > 40
        tool = [str(BIN / "lmms-eval-tasks")]
        later: list[HostRun] = []
        for arguments in (
            ["judge", str(out), *spec, "--output", str(out / "numbers.json")],
            ["judge", str(out), *spec, "--batch", str(out / "batch.jsonl")],
            ["cache", "export", "--out", str(out / "replies.jsonl")],
        ):
            later.append(launch([*tool, *arguments], out, env=env))
            assert later[-1].code in (0, 3), later[-1].stderr
    assert "Traceback" not in "".join(done.stderr for done in later)
    assert "[key]" in (out / "replies.jsonl").read_text(encoding="utf-8")
    said = [text for done in (run, *later) for text in (done.stdout, done.stderr)]
    assert_clean([*said, *files_of(out, cache)])
