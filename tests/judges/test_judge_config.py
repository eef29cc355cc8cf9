"""The judge's short form and file: what they resolve to, what is refused, and no key gets out."""

import json

import pytest
from pydantic import BaseModel

from lmms_eval_tasks import judges
from lmms_eval_tasks.errors import JudgeError, TasksError
from lmms_eval_tasks.judges.config import is_local, resolve
from lmms_eval_tasks.judges.verdict import JudgeConfig
from tests.checks import refused, table

KEY = "sk-planted-0123456789"


def resolved(spec, key=""):
    return resolve(spec, {"OPENAI_API_KEY": key}, default_model="gpt-4o")


@table("spec, model, base_url")
def test_forms(spec, model, base_url):
    config = resolved(spec, KEY)
    assert (config.provider, config.model, config.base_url) == ("openai", model, base_url)


def test_who_needs_a_key():
    local = ("localhost", "127.0.0.1", "127.9.9.9", "[::1]", "10.0.0.5", "192.168.1.2", "gpu07")
    for host in local:
        assert resolved(f"m@http://{host}:8000/v1").key is None
    for host in ("api.example.com", "8.8.8.8", "localhost.example.com"):
        assert not is_local(host)
        refused(JudgeError, "OPENAI_API_KEY", resolved, f"m@https://{host}/v1")
    message = refused(JudgeError, "gpt-4o", resolved, None)
    choices = ["set OPENAI_API_KEY"]
    choices += [f"--judge {how}" for how in ("MODEL@BASE_URL", "none")]
    assert [choice for choice in choices if choice not in message] == []


@table("spec")
def test_bad_forms(spec):
    refused(JudgeError, "MODEL@http", resolved, spec, KEY)


@table(
    "spec",
    [
        *(KEY, "sk-another-key", f"gpt-4o@user:{KEY}@host"),
        *(f"m@http://localhost/v1?api_key={KEY}", f"m@http://u:{KEY}@localhost:bad/v1"),
    ],
)
@table("key", [KEY, "other-key-in-the-environment"])
def test_errors_never_repeat_a_key(spec, key):
    with pytest.raises(JudgeError) as caught:
        resolved(spec, key)
    assert "planted" not in str(caught.value)
    assert "another" not in str(caught.value)


def test_a_common_word_is_no_key():
    for key in ("EMPTY", "x"):
        assert resolved("EMPTY-x@http://localhost:8001/v1", key).model == "EMPTY-x"


@table("spec, comparable")
def test_only_the_papers_judge_is_comparable(spec, comparable):
    description = judges.describe_judge(resolved(spec, KEY))
    assert description["comparable"] is comparable
    assert (description["warning"] is None) is comparable
    assert json.loads(json.dumps(description)) == description


def named(name):
    """A criterion of which only the name matters."""
    return judges.Criterion(name, "", "", BaseModel, lambda reply: 0.0, "0")


def test_one_judge_for_one_config_and_what_it_can_decide(tmp_path):
    assert judges.make_judge(resolved("none")) is judges.make_judge(resolved("none"))
    assert judges.make_judge(resolved("m", KEY)) is not judges.make_judge(resolved("m", "another"))
    for spec in ("none", "m@http://localhost:1/v1"):
        judges.preflight(resolved(spec), [named("anything")])
    refused(TasksError, "none.jsonl", judges.preflight, resolved("replay:none.jsonl"), [])


def test_a_key_with_line_ends():
    plain = resolved("gpt-4o", KEY).key
    assert resolved("gpt-4o", f" {KEY}\r\n").key == plain
    for key in (f"{KEY}\n{KEY}", "two words", "k\x00y", "kéy-kéy-kéy"):
        said = refused(JudgeError, "OPENAI_API_KEY is not a key", resolved, "gpt-4o", key)
        assert key not in str(said)
    assert resolved("none", "two\nlines") == JudgeConfig("none")


# --- files ---------------------------------------------------------------------------------------


def from_file(tmp_path, text, **env):
    file = tmp_path / "judge.yml"
    file.write_text(text, encoding="utf-8")
    return resolve(str(file), env, default_model="gpt-4o")


def test_a_file_sets_what_the_short_form_cannot(tmp_path):
    config = from_file(
        tmp_path,
        "model: org/m\nbase_url: http://gpu07:8000/v1/\ntemperature: 0.7\nmax_tokens: 64\n"
        "top_p: 0.9\nseed: 3\nreply_format: text\nrepairs: 0\ntimeout: 5\nretries: 1\n",
    )
    assert (config.provider, config.model) == ("openai", "org/m")
    assert (config.base_url, config.key) == ("http://gpu07:8000/v1", None)
    drawn = config.sampling
    assert (drawn.temperature, drawn.max_tokens, drawn.top_p, drawn.seed) == (0.7, 64, 0.9, 3)
    assert (config.reply_format, config.repairs) == ("text", 0)
    assert (config.timeout, config.retries) == (5.0, 1)
    # A file without settings is the short form.
    assert from_file(tmp_path, "model: gpt-4o", OPENAI_API_KEY=KEY) == resolved("gpt-4o", KEY)
    for spec in ("none", "m@http://localhost:1/v1"):
        assert from_file(tmp_path, f"model: {spec}") == resolved(spec)


def test_the_key_comes_from_the_variable_that_the_file_names(tmp_path):
    text = "model: m\nbase_url: https://api.example.com/v1\nkey_variable: MY_KEY\n"
    config = from_file(tmp_path, text, MY_KEY=KEY, OPENAI_API_KEY="another-key")
    assert config.key.get_secret_value() == KEY
    refused(JudgeError, "set MY_KEY", from_file, tmp_path, text, OPENAI_API_KEY=KEY)
    text = "model: m\nbase_url: https://team.openai.azure.com/openai/v1\n"
    config = from_file(tmp_path, text, AZURE_OPENAI_API_KEY=KEY, OPENAI_API_KEY="another-key")
    assert config.key.get_secret_value() == KEY


def test_a_panel_and_a_debate_from_a_file(tmp_path):
    members = "[a@http://localhost/v1, {model: b@http://localhost/v1, max_tokens: 9}]"
    panel = from_file(tmp_path, f"panel: {members}\nrule: median\nname: two\n")
    assert (panel.provider, panel.label) == ("panel", "two")
    assert panel.rule == "median"
    assert [member.model for member in panel.endpoints] == ["a", "b"]
    assert [member.sampling.max_tokens for member in panel.members] == [512, 9]
    debate = from_file(tmp_path, "debate: [a@http://localhost/v1, b@http://localhost/v1]\n")
    assert debate.provider == "debate"
    assert [member.model for member in debate.members] == ["a", "b", "b"]
    for config in (panel, debate):
        assert json.loads(json.dumps(config.describe())) == config.describe()
        assert judges.make_judge(config).config == config


@table("text, place")
def test_a_wrong_file_is_one_line_with_its_name_and_key(text, place, tmp_path):
    key = {"OPENAI_API_KEY": "another-key-0123"}
    message = refused(TasksError, place, from_file, tmp_path, text, **key)
    assert str(tmp_path) in message
    assert "planted" not in message
    missing = str(tmp_path / "no.yml")
    refused(TasksError, r"no\.yml: No such file", resolved, missing)
