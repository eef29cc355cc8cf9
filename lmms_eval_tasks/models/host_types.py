"""Types of lmms-eval's objects, as far as this package uses them; lmms-eval has no types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, overload

Doc: TypeAlias = Mapping[str, Any]  # a task's doc, from `process_docs`, in plain types
Arguments: TypeAlias = dict[str, Any]  # arguments of `simple_evaluate`, by name
Results: TypeAlias = dict[str, Any]  # a run's results, in the form of lmms-eval's results file
Function: TypeAlias = Callable[..., Any]  # a function of a library


class TokenCounts(Protocol):
    """The numbers of tokens of one request, if the model's class or its server counts them."""

    input_tokens: int | None
    output_tokens: int | None


# A picture or sound of a request: a file's path, a PIL picture, or samples with their rate.
Medium: TypeAlias = object
# What a model's class returns for one request: a text, a `GenerationResult`, or nothing.
Reply: TypeAlias = object


class ModelRequest(Protocol):
    """lmms-eval's `Instance`: one request to a model's `generate_until`.

    `args` end with the doc's number, task and split. Before these, simple classes get the text, the
    generation arguments and `doc_to_visual`; chat classes the text, `doc_to_messages` and the
    generation arguments.
    """

    args: tuple[Any, ...]
    task_name: str
    doc: object


class DocRows(Protocol):
    """The docs of a task, as `datasets` has them."""

    @overload
    def __getitem__(self, number: int) -> Doc: ...

    @overload
    def __getitem__(self, number: list[int]) -> Mapping[str, Sequence[object]]: ...


class ModelInstance(Protocol):
    """lmms-eval's `lmms`: a model's instance. Only some have a `client` or a `modality`."""

    task_dict: Mapping[str, Mapping[str, DocRows]]
    generate_until: Callable[[list[ModelRequest]], list[Reply]]
    client: object
    modality: str


class Tokenizer(Protocol):
    """A tokenizer or processor of transformers."""

    def encode(self, text: str, *, add_special_tokens: bool) -> Sequence[int]:
        """Return the tokens of a text."""

    def apply_chat_template(
        self, turns: Sequence[Mapping[str, object]], *, tokenize: bool, add_generation_prompt: bool
    ) -> str:
        """Return the prompt of a conversation."""


class TaskManager(Protocol):
    """lmms-eval's `TaskManager`: the known tasks and groups, and their files."""

    include_path: object
    task_index: dict[str, dict[str, Any]]
    all_tasks: list[str]
    all_groups: list[str]
    all_subtasks: list[str]

    def initialize_tasks(
        self, *, include_path: Sequence[str], include_defaults: bool
    ) -> Mapping[str, dict[str, Any]]:
        """Return the entries of `task_index` for the task files in some folders."""


class CommandArguments(Protocol):
    """The options of `lmms_eval`, from its argument parser."""

    tasks: str | None
    include_path: object
    output_path: str | None
    log_samples: bool
    timezone: str
