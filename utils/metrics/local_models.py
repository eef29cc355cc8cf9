"""Models that metrics need: found on this machine only, loaded completely, with their limits.

Nothing here uses the network. Without a model there is no number: the metric is None with the
reason in one line, never 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.metrics import aggregate

if TYPE_CHECKING:
    from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

T = TypeVar("T")
M = TypeVar("M")

# The hub later added owners to models' names that had none; bert-score's table has the old names.
_OWNERS = ("google-bert", "FacebookAI", "distilbert", "albert", "xlnet", "openai-community")
_FALLBACK_MAX_TOKENS = 512  # used if neither a model nor its tokenizer has a limit


class ModelScores(NamedTuple):
    """A metric of many items that a model computes.

    Attributes:
        values: one value for each item, in their order; None for an item without a value.
        note: one line for the results: how the values were computed, or the reason why not.
        computed: True if any value was computed.
    """

    values: tuple[float | None, ...]
    note: str
    computed: bool = True

    @property
    def value(self) -> float | None:
        """The mean over the items that have a value; None without any."""
        return aggregate.mean(self.values)


def find_model(name: str) -> Path | None:
    """Return a model's folder on this machine: `name` itself, or one in the Hugging Face cache.

    None if there is neither.
    """
    from huggingface_hub import try_to_load_from_cache

    path = Path(name).expanduser()
    if path.is_dir():
        return path.resolve()
    for known in (name, *(f"{owner}/{name}" for owner in _OWNERS if "/" not in name)):
        try:
            found = try_to_load_from_cache(known, "config.json")
        except ValueError:  # a path that does not exist is no valid name
            return None
        if isinstance(found, str):
            return Path(found).parent
    return None


def attempt(kind: str, name: str, use: Callable[[Path], T]) -> tuple[T | None, str]:
    """Return the result of `use` for a model's folder, or None and the reason in one line.

    Args:
        kind: the kind of model, for the message.
        name: the model's name, or its folder.
        use: function that may raise any error, as loaders and models do. An exception in an
            aggregation would lose lmms-eval's whole run (docs/design.md).

    Raises:
        TasksError: `use` raised it.
    """
    folder = find_model(name)
    if folder is None:
        return None, f"{kind} {name!r} is neither a folder nor in the local Hugging Face cache"
    try:
        return use(folder), ""
    except TasksError:
        raise  # a picture cannot be opened; the caller knows which one
    except Exception as error:
        return None, f"{folder}: {type(error).__name__}: {' '.join(str(error).split())}"


# The model, or the reason for its failure, is cached, since every metric and every item needs it.
@lru_cache(maxsize=4)
def loaded(kind: str, name: str, load: Callable[[str, Path], object]) -> tuple[object, str]:
    """Return the result of `load` for a name and folder, cached for the process (see `attempt`)."""
    return attempt(kind, name, lambda folder: load(name, folder))


def scored(
    kind: str, name: str, load: Callable[[str, Path], M], use: Callable[[M], T]
) -> tuple[T | None, str]:
    """Return the result of `use` for a loaded model, or None and the reason in one line."""
    made, why = loaded(kind, name, load)
    return (None, why) if made is None else attempt(kind, name, lambda _: use(cast(M, made)))


def problem(kind: str, name: str) -> str | None:
    """Return the reason why a model cannot be used, in one line, or None; for checks before a run.

    This reads the model's config and not its weights. Missing weights, or weights of another kind
    of model, show when the metric is computed.
    """
    from transformers import AutoConfig

    safe = {"local_files_only": True, "trust_remote_code": False}
    found, why = attempt(kind, name, lambda folder: AutoConfig.from_pretrained(folder, **safe))
    return None if found else why


def check_model(setting: str, model: str | None, kind: str, like: str) -> None:
    """Stop before a run if the user's `setting` names a model that cannot be used.

    Args:
        setting: the setting's variable.
        model: the setting's value; None if it is not set.
        kind: the kind of model, for the message.
        like: an example of such a model.

    Raises:
        TasksError: the model cannot be used; the message has the reason.
    """
    if model and (why := problem(kind, model)):
        raise TasksError(
            f"{setting}={model}: {why}; models are not downloaded: name the "
            f"folder of a model such as {like}, or leave the option out"
        )


def load_local_model(
    auto: type[AutoModel], folder: Path, *, optional: str | None = None
) -> PreTrainedModel:
    """Load a model in single precision, ready for evaluation.

    Args:
        auto: the transformers class that loads it, such as AutoModel.
        folder: the result of `find`. Code in it is not run.
        optional: part of the names of weights that may be missing, since they are not used here.

    Raises:
        ValueError: weights are missing (they would be random).
        Exception: any error of transformers for a folder that it cannot read.
    """
    model, info = auto.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, output_loading_info=True
    )
    missing = sorted(key for key in info["missing_keys"] if not (optional and optional in key))
    if missing:
        raise ValueError(f"{len(missing)} weights are not in the folder, e.g. {missing[0]}")
    return model.float().eval()  # otherwise a checkpoint in half precision would stay so


def tokenizer_of(folder: Path) -> PreTrainedTokenizerBase:
    """Return the tokenizer in a model's folder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def made_by(model: str, folder: Path) -> str:
    """Return the model, its precision, and its commit in the Hugging Face cache, for a note."""
    import transformers

    at = f" at {folder.name[:12]}" if folder.parent.name == "snapshots" else ""
    return f"model {model}{at}, transformers {transformers.__version__}, float32"


def least(*limits: int | None) -> int:
    """Return the smallest of some limits in tokens, without missing and unreal ones.

    A tokenizer without a limit reports 10^30.
    """
    real = [limit for limit in limits if limit is not None and 0 < limit < 10**9]
    return min(real, default=_FALLBACK_MAX_TOKENS)
