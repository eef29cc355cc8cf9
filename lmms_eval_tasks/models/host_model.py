"""The base of our model classes: lmms-eval's contract for one or many processes, on any device.

Importing this module imports lmms-eval and torch.
"""

from __future__ import annotations

from typing import NoReturn, TypedDict

import torch
from accelerate import Accelerator
from lmms_eval.api.model import lmms

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models.host_types import Doc, ModelRequest


class ModelOptions(TypedDict, total=False):
    """Arguments of every HostModel."""

    batch_size: int | str
    device: str | None
    max_batch_size: int | None


class HostModel(lmms):  # type: ignore[misc]  # the host has no types
    """A model that answers `generate_until` only.

    lmms-eval sends every world_size-th doc to a process, and repeats the last doc on idle
    processes. Its evaluator reads `rank`, `world_size`, `accelerator` and `device` from the model
    and gathers the number of requests on that device.

    Args:
        batch_size: from `--batch_size` or the model's arguments; a number, 1 or more.
        device: from `--device`; only used by models that compute.
        max_batch_size: accepted because lmms-eval passes it; not used.

    Raises:
        TasksError: `batch_size` is not a number.
    """

    def __init__(
        self,
        batch_size: int | str = 1,
        device: str | None = None,
        max_batch_size: int | None = None,  # noqa: ARG002
    ) -> None:
        super().__init__()
        if not str(batch_size).isdecimal() or int(batch_size) < 1:
            raise TasksError(f"batch_size={batch_size}: expected a number, 1 or more")
        self.batch_size = int(batch_size)
        # Without a GPU and without cpu=True, Accelerator takes a torchrun process for a single one,
        # and a call of simple_evaluate under torchrun (without lmms-eval's script) cannot gather.
        self.accelerator = Accelerator(cpu=not torch.cuda.is_available())
        self._rank = self.accelerator.process_index
        self._world_size = self.accelerator.num_processes
        self._asked_device = device

    @property
    def device(self) -> torch.device:
        """The device of tensors that processes exchange: the device of the process group."""
        return self.accelerator.device

    @property
    def compute_device(self) -> torch.device:
        """The device on which the model runs.

        It is that of `--device`; in a run of several processes the process's own device.
        """
        if self._asked_device and (self.world_size == 1 or self._asked_device == "cpu"):
            return torch.device(self._asked_device)
        return self.accelerator.device

    def doc(self, task: str, split: str, doc_id: int) -> Doc:
        """Return the doc of a request."""
        doc: Doc = self.task_dict[task][split][doc_id]
        return doc

    def loglikelihood(self, requests: list[ModelRequest]) -> NoReturn:  # noqa: ARG002
        """Refuse the request: the class only generates.

        Raises:
            TasksError: always.
        """
        raise TasksError(f"{type(self).__name__} answers only generate_until tasks")

    generate_until_multi_round = loglikelihood
