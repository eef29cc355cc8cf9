"""Models that metrics need, from this machine only: found, loaded whole, and their limits.

Nothing here asks the network. No model means no number: a metric's value is None with the reason in
one line, never 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.metrics import aggregate

T = TypeVar("T")
Loader = Callable[[str, Path], Any]  # of a name and its folder

# The hub later gave owners to models whose names had none; older tables have the old names.
_OWNERS = (
    *("google-bert", "FacebookAI", "distilbert", "albert", "xlnet", "openai-community"),
    "google-t5",
)
_FALLBACK_MAX_TOKENS = 512  # where neither a model nor its tokenizer has a limit


class Scores(NamedTuple):
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
        return aggregate.mean(value for value in self.values if value is not None)


def find(name: str, *, may_be_path: bool = True) -> Path | None:
    """Folder of a model on this machine, or None.

    A default name is looked up in the Hugging Face cache only (`may_be_path` is False), so that a
    folder of that name in the working directory is not taken for it.
    """
    from huggingface_hub import try_to_load_from_cache

    path = Path(name).expanduser()
    if may_be_path and path.is_dir():
        return path.resolve()
    for known in aliases(name):
        try:
            found = try_to_load_from_cache(known, "config.json")
        except ValueError:  # a path that does not exist is no valid name
            return None
        if isinstance(found, str):
            return Path(found).parent
    return None


def attempt(
    kind: str, name: str, use: Callable[[Path], T], *, may_be_path: bool = True
) -> tuple[T | None, str]:
    """What `use` makes of a model's folder, or None and why not, in one line.

    Args:
        kind: what the model is to a reader.
        name: of the model, or its folder.
        use: may raise what it likes, as loaders and models do: an exception in an aggregation would
            cost the host's whole run (host.md).
        may_be_path: as of `find`.
    """
    folder = find(name, may_be_path=may_be_path)
    if folder is None:
        also = " and is no folder" if may_be_path else ""
        return None, f"{kind} {name!r} is not in the local Hugging Face cache{also}"
    try:
        return use(folder), ""
    except TasksError:
        raise  # a picture that cannot be opened: the caller knows what it is of
    except Exception as error:
        return None, f"{folder}: {type(error).__name__}: {' '.join(str(error).split())}"


# Loaded once, and so is the reason why it cannot be: every metric and every item asks.
@lru_cache(maxsize=4)
def loaded(kind: str, name: str, load: Loader, may_be_path: bool) -> tuple[Any, str]:
    """What `load` makes of a model's folder, kept for the process; as `attempt`."""
    return attempt(kind, name, lambda folder: load(name, folder), may_be_path=may_be_path)


def scored(
    kind: str, name: str, load: Loader, use: Callable[[Any], T], *, may_be_path: bool = True
) -> tuple[T | None, str]:
    """What `use` makes of what `loaded` keeps, or None and why not, in one line."""
    made, why = loaded(kind, name, load, may_be_path)
    if made is None:
        return None, why
    return attempt(kind, name, lambda _: use(made), may_be_path=may_be_path)


def problem(kind: str, name: str) -> str | None:
    """Why a model cannot be used, in one line, or None; for the time before a run.

    Its config is read, its weights are not: that they are damaged, or of another kind of model,
    its metric alone finds.
    """
    from transformers import AutoConfig

    def look(folder: Path) -> bool:
        AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        return True

    found, reason = attempt(kind, name, look)
    return None if found else reason


def aliases(name: str) -> list[str]:
    """The names that the hub has for one model: with the owner it got later, and without."""
    owner, _, bare = name.rpartition("/")
    if not owner:
        return [name, *(f"{later}/{name}" for later in _OWNERS)]
    return [name, bare] if owner in _OWNERS else [name]


def revision(folder: Path) -> str | None:
    """The commit of a model in the Hugging Face cache; None for a folder of the user's."""
    return folder.name if folder.parent.name == "snapshots" else None


def load(auto: Any, folder: Path, *, optional: str | None = None) -> Any:
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


def tokenizer_of(folder: Path) -> Any:
    """The tokenizer that comes with a model."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def made_by(model: str, folder: Path) -> str:
    """Model, revision and precision, for a note."""
    import transformers

    at = f" at {commit[:12]}" if (commit := revision(folder)) else ""
    return f"model {model}{at}, transformers {transformers.__version__}, float32"


def least(*limits: int | None) -> int:
    """The smallest of some limits in tokens; those that are none, or that no model has, are out.

    A tokenizer without a limit of its own says 10^30.
    """
    real = [limit for limit in limits if limit is not None and 0 < limit < 10**9]
    return min(real, default=_FALLBACK_MAX_TOKENS)
