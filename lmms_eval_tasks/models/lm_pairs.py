"""MAIA's unimodal baseline (paper, 4.3 and B.1): the statement that language models prefer.

    lmms_eval --model lm_pairs --model_args pretrained=a,b,c --tasks maia_unimodal

`pretrained` names causal language models (Hub names or folders), separated by commas. Only one is
in memory at a time: it scores all requests before the next one is loaded. The other arguments:
`dtype` (default `auto`, the checkpoint's dtype), `batch_size` (pairs in one forward pass, default
1) and `device`.

A statement's score is its length-normalised log-probability. It follows minicons 0.3.39, which the
paper used (`IncrementalLMScorer.sequence_score` with its defaults). The statement is tokenized
alone, with the special tokens that its tokenizer adds and no others. The first token only gives
context. The score is the mean natural log-probability of the tokens after it. So with a tokenizer
that adds a BOS token (Llama, Gemma) every token of the statement is scored; with one that does not
(GPT-2, Qwen2.5) the statement's first token is not. Nothing makes them alike. minicons averages in
the model's precision; here logits become float32 first.

The choice is the statement with the highest score over all models (paper, 4.3). Means per token of
different tokenizers are not on one scale; the paper compares them nevertheless. If both statements
have the same highest score, there is no choice (null). All scores are in the reply, as JSON
(fake_replies.read_lm_pairs).

Importing this module imports lmms-eval and torch.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import fake_replies
from lmms_eval_tasks.models.host_model import HostModel, ModelOptions
from lmms_eval_tasks.models.host_types import Arguments, ModelRequest

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizer
    from typing_extensions import Unpack

_OPTIONS = ("pretrained", "dtype", "batch_size", "device")
_DTYPES = ("auto", "float32", "float16", "bfloat16")


class LmPairs(HostModel):
    """Language models that choose between the two statements of a pair; no video, no prompt.

    Args:
        pretrained: names of models, separated by commas (see above).
        dtype: `auto`, `float32`, `float16` or `bfloat16`.
        batch_size: pairs in one forward pass. With 1 the scores are the same to the last digit for
            any number of processes.
        device: `cpu`, `cuda`, ...; default: the process's GPU if there is one.

    Raises:
        TasksError: no model, one named twice, an unknown dtype or a tokenizer that cannot be
            loaded. Weights are loaded later.
    """

    is_simple = True
    requests_at_once = sys.maxsize  # a call loads every model, so one call gets all requests

    def __init__(
        self, pretrained: str = "", dtype: str = "auto", **kwargs: Unpack[ModelOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.names = [name.strip() for name in pretrained.split(",") if name.strip()]
        if not self.names or len(set(self.names)) < len(self.names):
            raise TasksError(
                "lm_pairs requires its models, each once: --model_args "
                "pretrained=NAME_OR_FOLDER,..., not "
                f"{', '.join(self.names) or 'none'}"
            )
        if dtype not in _DTYPES:
            raise TasksError(f"lm_pairs: dtype={dtype}: expected one of {', '.join(_DTYPES)}")
        self._dtype = dtype
        # Tokenizers are small: a misspelt last name shows before the first model's hours are spent.
        self._tokenizers = {name: load_pretrained("AutoTokenizer", name) for name in self.names}

    @classmethod
    def create_from_arg_string(
        cls, arg_string: str, additional_config: Arguments | None = None
    ) -> LmPairs:
        """Build from `--model_args`, where the commas of `pretrained=a,b,c` belong to its value.

        An argument in `--model_args` wins over an option (`--batch_size` is always sent).

        Raises:
            TasksError: an argument is unknown; see also the class.
        """
        given = {k: v for k, v in (additional_config or {}).items() if v is not None}
        for part in filter(None, re.split(r",(?=\s*[A-Za-z_]\w*=)", arg_string)):
            name, _, value = part.partition("=")
            if name.strip() not in _OPTIONS:
                raise TasksError(
                    f"lm_pairs: unknown argument {name!r}; known: {', '.join(_OPTIONS)}"
                )
            given[name.strip()] = value.strip()
        return cls(**given)

    def generate_until(self, requests: list[ModelRequest]) -> list[str]:
        """Return one JSON reply per request, in order (fake_replies.lm_pairs_reply).

        Raises:
            TasksError: a doc has no two `options`, a statement is too short to be scored, a model
                cannot be loaded or gives no finite probability.
        """
        keys = [tuple(request.args[-3:]) for request in requests]  # doc_id, task, split
        # A set of keys: on idle processes requests repeat a doc.
        pairs = {key: self._pair(*key) for key in keys}
        scores: dict[tuple[int, str, str], dict[str, list[float]]] = {key: {} for key in pairs}
        for name, tokenizer in self._tokenizers.items() if pairs else ():
            # Before the weights are loaded: a text that cannot be scored shows at once.
            tokens = {key: [tokenize(tokenizer, t, name) for t in pairs[key]] for key in pairs}
            model = load_pretrained("AutoModelForCausalLM", name, torch_dtype=self._dtype)
            model = model.to(self.compute_device).eval()
            size, once = self.batch_size, list(pairs)
            for start in tqdm(range(0, len(once), size), desc=name, disable=self.rank != 0):
                batch = once[start : start + size]
                flat = mean_logprobs(model, [ids for key in batch for ids in tokens[key]])
                for key, *pair in zip(batch, flat[::2], flat[1::2], strict=True):
                    if not all(float("-inf") < score <= 0 for score in pair):
                        raise TasksError(
                            f"lm_pairs: {name} gives {pair} for {pairs[key]}; try dtype=float32"
                        )
                    scores[key][name] = pair
            del model  # free this model before the next one is loaded
            gc.collect()
            torch.cuda.empty_cache()
        replies = [fake_replies.lm_pairs_reply(scores[key]) for key in keys]
        for request, reply in zip(requests, replies, strict=True):
            self.cache_hook.add_partial("generate_until", request.args[:2], reply)
        return replies

    def _pair(self, doc_id: int, task: str, split: str) -> tuple[str, str]:
        options = self.doc(task, split, doc_id).get("options")
        if options is None or len(options) != 2 or not all(isinstance(o, str) for o in options):
            raise TasksError(f"lm_pairs: {task}, doc {doc_id}: no two statements in `options`")
        return options[0], options[1]


def load_pretrained(loader: str, name: str, **kwargs: str) -> PreTrainedModel | PreTrainedTokenizer:
    """Load the tokenizer or model `name` with a class of transformers, named `loader`.

    Raises:
        TasksError: it cannot be loaded.
    """
    import transformers

    try:
        return getattr(transformers, loader).from_pretrained(str(Path(name).expanduser()), **kwargs)
    except (OSError, ValueError, ImportError) as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise TasksError(f"lm_pairs: {name} cannot be loaded: {reason}") from None


def tokenize(tokenizer: PreTrainedTokenizer, text: str, name: str) -> list[int]:
    """The ids of a text's tokens, with the special tokens that the tokenizer adds.

    Raises:
        TasksError: fewer than two tokens; the first has no probability, so nothing could be scored.
    """
    ids: list[int] = tokenizer(text)["input_ids"]
    if len(ids) < 2:
        raise TasksError(f"lm_pairs: {text!r} has {len(ids)} token under {name}: nothing to score")
    return ids


def mean_logprobs(model: PreTrainedModel, texts: Sequence[Sequence[int]]) -> list[float]:
    """Mean natural log-probability (at most 0) of the tokens after the first, for each text.

    Texts are padded on the right and masked. In a causal model no token sees the padding after it,
    so any id may stand there, and a tokenizer without a padding token works too.

    Args:
        model: a causal language model; its logits are (texts, length, vocabulary).
        texts: token ids of each text, two or more.
    """
    ids = pad_sequence([torch.tensor(text) for text in texts], batch_first=True).to(model.device)
    mask = pad_sequence([torch.ones(len(text)).long() for text in texts], batch_first=True)
    mask = mask.to(model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1].float()
    logprobs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    scored = mask[:, 1:].bool()
    # Row by row, over the tokens of the row alone: a sum over padded rows would round differently.
    return [row[keep].mean().item() for row, keep in zip(logprobs, scored, strict=True)]
