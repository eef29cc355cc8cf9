"""lmms-eval's results file, as far as this package reads it: validated once, when it is read."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.conditions import Kind
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.released_files import read_json
from lmms_eval_tasks.utils.validation import validation_problems


class _StoredPrompt(BaseModel):
    hash: str


class _StoredJudge(BaseModel):
    provider: str
    model: str | None = None
    warning: str | None = None
    prompt: _StoredPrompt | None = None


class _Videos(BaseModel):
    asked: int
    of: int


class StoredCondition(BaseModel):
    """A condition of a run's numbers (conditions.py), as JSON."""

    kind: Kind
    text: str
    tasks: list[str]


class _Section(BaseModel):
    """A benchmark's section in the results file."""

    judge: _StoredJudge | None = None
    data: JsonObject | None = None
    videos: _Videos | None = None
    prompts: dict[str, _StoredPrompt | None] = Field(default_factory=dict)
    arrived: str | None = None
    conditions: list[StoredCondition] | None = None
    warnings: list[str] = Field(default_factory=list)  # from versions without conditions
    numbers: dict[str, JsonObject] = Field(default_factory=dict)
    details: dict[str, JsonObject] = Field(default_factory=dict)


class _StoredUsage(BaseModel):
    usage: list[JsonObject] = Field(default_factory=list)
    given_up: list[str] = Field(default_factory=list)


class _StoredSections(BaseModel):
    """The other sections of ours; every further name is a benchmark's."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Section | None]

    version: str | None = None
    data_root: str | None = None
    judges: _StoredUsage | None = None
    invalid: dict[str, str] = Field(default_factory=dict)


class _Config(BaseModel):
    resolved_cli_args: JsonObject | None = None
    limit: float | None = Field(default=None, strict=True)
    offset: int | None = Field(default=None, strict=True)


class _Counts(BaseModel):
    """Counts of a task's samples: in its data, and asked."""

    original: int = Field(default=0, strict=True)
    effective: int | None = Field(default=None, strict=True)


class _StoredResults(BaseModel):
    config: _Config = Field(default_factory=_Config)
    configs: dict[str, JsonObject | None] = Field(default_factory=dict)
    versions: JsonObject = Field(default_factory=dict)
    results: dict[str, JsonObject] = Field(default_factory=dict)
    groups: dict[str, JsonObject] = Field(default_factory=dict)
    group_subtasks: dict[str, list[str]] = Field(default_factory=dict)
    n_samples: dict[str, _Counts] = Field(default_factory=dict, alias="n-samples")
    total_evaluation_time_seconds: float | None = None
    lmms_eval_tasks: _StoredSections = _StoredSections.model_validate({})


def read_results(file: Path) -> JsonObject:
    """Return the file's content, unchanged.

    Raises:
        DataError: the file cannot be read, or a part of it has another form; names the place.
    """
    content = read_json(file)
    try:
        _StoredResults.model_validate(content)
    except ValidationError as error:
        raise DataError(
            f"{file}: not a results file of lmms-eval: {validation_problems(error)}"
        ) from None
    return dict(content)
