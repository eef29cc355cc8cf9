"""Models that metrics need, from this machine only: found, loaded whole, and their limits.

Nothing here asks the network. No model means no number: a metric's value is None with the reason in
one line, never 0.
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

# The hub later gave owners to models whose names had none; bert-score's table has the old names.
_OWNERS = ("google-bert", "FacebookAI", "distilbert", "albert", "xlnet", "openai-community")
_FALLBACK_MAX_TOKENS = 512  # where neither a model nor its tokenizer has a limit


class ModelScores(NamedTuple):
    """A metric of many items by a model.

    Attributes:
        values: per item, in the order given; None for an item that has none.
        note: one line for the results: what it was computed with, or why nothing was.
        computed: whether anything was.
    """

    values: tuple[float | None, ...]
    note: str
    computed: bool = True

    @property
    def value(self) -> float | None:
        """Mean over the items that have a value; None if none has."""
        return aggregate.mean(self.values)


def find(name: str) -> Path | None:
    """Folder of a model on this machine: `name` itself, or in the Hugging Face cache; or None."""
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
    """Return what `use` makes of a model's folder, or None and why not, in one line.

    Args:
        kind: what the model is to a reader.
        name: of the model, or its folder.
        use: may raise what it likes, as loaders and models do: an exception in an aggregation would
            cost the host's whole run (docs/design.md).
    """
    folder = find(name)
    if folder is None:
        return None, f"{kind} {name!r} is neither a folder nor in the local Hugging Face cache"
    try:
        return use(folder), ""
    except TasksError:
        raise  # a picture that cannot be opened: the caller knows what it is of
    except Exception as error:
        return None, f"{folder}: {type(error).__name__}: {' '.join(str(error).split())}"


# Loaded once, and so is the reason why it cannot be: every metric and every item asks.
@lru_cache(maxsize=4)
def loaded(kind: str, name: str, load: Callable[[str, Path], object]) -> tuple[object, str]:
    """Return what `load` makes of a name and folder, kept for the process; as `attempt`."""
    return attempt(kind, name, lambda folder: load(name, folder))


def scored(
    kind: str, name: str, load: Callable[[str, Path], M], use: Callable[[M], T]
) -> tuple[T | None, str]:
    """Return what `use` makes of a loaded model, or None and why not, in one line."""
    made, why = loaded(kind, name, load)
    return (None, why) if made is None else attempt(kind, name, lambda _: use(cast(M, made)))


def problem(kind: str, name: str) -> str | None:
    """The reason why a model cannot be used, in one line, or None; for checks before a run.

    Its config is read and its weights are not: its metric finds out whether those are whole, and of
    that kind of model.
    """
    from transformers import AutoConfig

    safe = {"local_files_only": True, "trust_remote_code": False}
    found, why = attempt(kind, name, lambda folder: AutoConfig.from_pretrained(folder, **safe))
    return None if found else why


def check(setting: str, model: str | None, kind: str, like: str) -> None:
    """Stop before a run whose `model`, if the user's `setting` names one, cannot be used.

    Raises:
        TasksError: what is wrong with it; `like` is an example of the kind.
    """
    if model and (why := problem(kind, model)):
        raise TasksError(
            f"{setting}={model}: {why}; models are not downloaded: name the "
            f"folder of a model such as {like}, or leave the option out"
        )


def load(auto: type[AutoModel], folder: Path, *, optional: str | None = None) -> PreTrainedModel:
    """A model in single precision, ready to be evaluated.

    Args:
        auto: the transformers class that loads it, such as AutoModel.
        folder: what `find` returned. Code that comes with it is not run.
        optional: part of the names of weights that may be absent, since nothing here uses them.

    Raises:
        ValueError: weights are missing (they would be random).
        Exception: whatever transformers raises for a folder that it cannot read.
    """
    model, info = auto.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, output_loading_info=True
    )
    missing = sorted(key for key in info["missing_keys"] if not (optional and optional in key))
    if missing:
        raise ValueError(f"{len(missing)} weights are not in the folder, e.g. {missing[0]}")
    return model.float().eval()  # a checkpoint in half precision would stay in it


def tokenizer_of(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer that comes with a model."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def made_by(model: str, folder: Path) -> str:
    """Model, precision, and the commit of one in the Hugging Face cache, for a note."""
    import transformers

    at = f" at {folder.name[:12]}" if folder.parent.name == "snapshots" else ""
    return f"model {model}{at}, transformers {transformers.__version__}, float32"


def least(*limits: int | None) -> int:
    """The smallest of some limits in tokens; those that are none, or that no model has, are out.

    A tokenizer without a limit of its own says 10^30.
    """
    real = [limit for limit in limits if limit is not None and 0 < limit < 10**9]
    return min(real, default=_FALLBACK_MAX_TOKENS)
