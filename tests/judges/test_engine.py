"""A language model as judge, against a local endpoint: every reply becomes a verdict."""

import dataclasses
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from faults import AGREEMENT, RATING
from pydantic import BaseModel

from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.judges.engine import LanguageJudge, exact_schema, schema_of
from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.settings import JudgeLimits
from tests.checks import table
from tests.local_endpoint import LocalEndpoint

RIGHT = '{"reason": "agrees", "correct": true}'
WRONG = '{"reason": "differs", "correct": false}'
FIELDS = {"number": "1", "candidate": "rosso"}


class Bare(BaseModel):
    rating: int


BARE = dataclasses.replace(RATING, schema=Bare)


def judge(url, run=None, **changes):
    config = resolve(f"asked@{url}", {}, default_model="gpt-4o")
    plain = {"retries": 0, "timeout": 10.0, "repairs": 0}
    config = dataclasses.replace(config, **{**plain, **changes})
    return LanguageJudge(config, OpenAIProvider(config), run or JudgeSession(JudgeLimits()))


def ask(reply, **changes):
    """Verdict and endpoint of one question to an endpoint that always gives `reply`."""
    with LocalEndpoint(lambda request: reply, model="answered") as endpoint:
        return judge(endpoint.url, **changes).verdict(AGREEMENT, FIELDS), endpoint


@table("reply, score", [(RIGHT, 1.0), (WRONG, 0.0)])
def test_a_verdict(reply, score):
    verdict, endpoint = ask(reply)
    assert (verdict.score, verdict.status, verdict.raw) == (score, "ok", reply)
    assert verdict.reason in ("agrees", "differs")
    assert (verdict.judge, verdict.model) == (f"asked@{endpoint.url}", "answered")
    (request,) = endpoint.chats
    sent = [request.json[name] for name in ("model", "temperature", "max_tokens")]
    assert sent == ["asked", 0.0, 512]
    assert [message["role"] for message in request.json["messages"]] == ["system", "user"]
    form = request.json["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    schema = form["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["reason", "correct"]
    assert schema["additionalProperties"] is False


@table("accepts, first, later")
def test_the_reply_format_falls_back_and_is_remembered(accepts, first, later):
    def forms(endpoint):
        formats = [request.json.get("response_format") for request in endpoint.chats]
        return [form["type"] if form else "text" for form in formats]

    with LocalEndpoint(lambda request: f"```json\n{RIGHT}\n```", accepts=accepts) as endpoint:
        asked = judge(endpoint.url)
        assert asked.verdict(AGREEMENT, FIELDS).score == 1.0
        assert forms(endpoint) == first
        assert asked.verdict(AGREEMENT, FIELDS).score == 1.0
        assert forms(endpoint) == [*first, later]


@table(
    "schema, words, limit, exact",
    [
        (AGREEMENT, (), 512, {"reason": {"maxLength": 600}}),
        (RATING, (), 512, {"reason": {"maxLength": 600}}),
        (BARE, (), 512, None),  # no reason: nothing to add
        (BARE, (), 16, None),
        (BARE, ("yes",), 16, {}),
        (BARE, ("yes",), 512, None),  # room to think first
        (BARE, ("yes",), None, None),
    ],
)
def test_what_an_exact_schema_adds(schema, words, limit, exact):
    own = {"enum": list(words)} if words else None
    asked = dataclasses.replace(schema, labels=tuple((w, None) for w in words), exact_schema=own)
    found = exact_schema(asked, limit)
    if exact:
        general = schema_of(schema.schema)
        reason = {**general["properties"]["reason"], **exact["reason"]}
        assert found == {**general, "properties": {**general["properties"], "reason": reason}}
        assert list(found["properties"]) == list(general["properties"])
    else:
        assert found == (None if exact is None else own)


def test_a_request_under_way_while_another_learns_the_form_is_sent_again():
    learned = threading.Event()
    with LocalEndpoint(lambda request: RIGHT, accepts=("text",)) as endpoint:
        asked, record = judge(endpoint.url), endpoint.record

        def late(request):
            record(request)
            if "a late answer" in json.dumps(request.json):
                learned.wait(10)

        endpoint.record = late
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(asked.verdict, AGREEMENT, {**FIELDS, "candidate": "a late answer"})
            while not endpoint.chats:
                time.sleep(0.001)
            assert asked.verdict(AGREEMENT, FIELDS).score == 1.0
            learned.set()
            assert slow.result(10).status == "ok"


def test_a_local_endpoint_ignores_the_environment(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    assert ask(RIGHT)[0].score == 1.0
