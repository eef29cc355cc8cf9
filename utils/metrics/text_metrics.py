"""ROUGE, METEOR, BLEU and CIDEr of free answers (docs/metrics.md, "Text").

MAIA's paper prints these numbers beside its judge's (section 5.2, Table 4) and names neither the
implementations nor their options. Ours are named in `IMPLEMENTATIONS`. `rouge_1`, `bleu_13a`,
`meteor_wordnet` and `cider_ptb` are those of the authors' later code, with tokenizers made for
English; the others are ours. BERTScore needs an encoder and has its own module, `bertscore`.

One tokenizer serves all of ours: Unicode words in NFC and lower case. Punctuation never counts, an
apostrophe separates words (`l'uomo` is `l`, `uomo`, with either form of the apostrophe), and an
accented letter is a different letter (`è` is not `e`).

Rules for these metrics:

- A candidate without a single word scores 0, since it answered nothing.
- A reference without a single word can match nothing and is left out. An item without any other
  reference scores 0. An item without any reference is an error in the data: ValueError.
- The order of items and the order of references change no bit of a result.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import fmean
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEUScore

_WORDS = "Unicode words in NFC and lower case (\\w+)"
IMPLEMENTATIONS: dict[str, str] = {
    "rouge_l": (
        f"rouge-score RougeScorer, rougeL F1 of the best reference, 0..1; {_WORDS}; no stemmer; "
        "not rouge-score's own tokenizer, which drops accented letters"
    ),
    "rouge_1": (
        "rouge-score RougeScorer, rouge1 F1 of the best reference, 0..1, its own tokenizer, which "
        "drops accented letters; no stemmer; mean over items (the authors': the middle of a "
        "bootstrap of it)"
    ),
    "bleu_13a": (
        "as Hugging Face's evaluate: corpus BLEU-4, 0..1, 13a tokens, no smoothing, shortest "
        "reference length"
    ),
    "meteor": (
        f"NLTK meteor_score, best reference, 0..1, alpha 0.9, beta 3, gamma 0.5; {_WORDS}; exact "
        "and Snowball-stem matches, no WordNet, no paraphrases; not the Java METEOR 1.5 (English "
        "resources, other parameters)"
    ),
    "bleu": (
        f"sacrebleu corpus BLEU-4 divided by 100, 0..1; {_WORDS}, sacrebleu tokenizer none; "
        "smoothing exp, no effective order; closest reference length; not a mean of sentence "
        "scores, not the 13a tokenizer"
    ),
    "cider": (
        "pycocoevalcap CiderScorer (clipped counts and length penalty with sigma 6, as in "
        f"CIDEr-D), mean of items on its own scale 0..10; {_WORDS}; no stemmer; document "
        "frequencies of the scored corpus's references; not the PTB tokenizer, not comparable "
        "between corpora (so not between a run and its --limit)"
    ),
    "meteor_wordnet": (
        "as Hugging Face's evaluate: NLTK meteor_score with its English words, Porter stems and "
        "WordNet, mean of items, 0..1"
    ),
    "cider_ptb": (
        "as cider, on words like those of Stanford's English PTB tokenizer in lower case without "
        "punctuation (in all 11,026 texts of the authors' 20 % sample the same; English "
        "contractions and abbreviations, addresses and tags are not split as there)"
    ),
    "bertscore": (
        "bert-score's greedy matching, F1 of the best reference, not rescaled, no idf weights, in "
        "NFC; encoder, layer and hash are given with each result; not torchmetrics"
    ),
}
NO_REFERENCE = "no answer has a reference"
ROUGE_KINDS = ("rouge1", "rouge2", "rougeL")
ROUGE_IMPLEMENTATION = (
    "rouge-score RougeScorer: F1 in 0..1 of rouge1, rouge2 and rougeL (over the whole text, not "
    "rougeLsum's line by line) against one reference, `rouge` is their mean (ours: no definition "
    "is published); Unicode words in NFC and lower case (\\w+); no stemmer; not rouge-score's own "
    "tokenizer, which drops accented letters"
)


def tokenize(text: str) -> list[str]:
    """Return the words of `text`: NFC, lower case, runs of letters, digits and underscores.

    Decomposed and composed accents give the same words.
    """
    return re.findall(r"\w+", unicodedata.normalize("NFC", text).lower())


# Elisions of one letter stay together ("l'uomo", but "all", "uomo"), and so do words joined by
# points, hyphens or slashes. English slang is split: "gonna", an Italian skirt, is "gon", "na".
_PTB_WORD = re.compile(
    r"""
    (?:gon|wan)(?=na(?![\w-])) | got(?=ta(?![\w-])) | (?:gim|lem)(?=me(?![\w-]))
    | (?:[a-z]\.)+(?!\w)
    | [dl]['’](?![^\W_]{2})
    | (?:[dlno]['’](?=[^\W_]{2}))? [^\W_]+ (?:[-./&_]\w+ | (?<=\d)[,:]\d+)*
    | ['’]\d\d(?!\S)
    | [?!]+ | ([^\w\s])\1*
    """,
    re.VERBOSE,
)
_PTB_DROPPED = re.compile(r"[.,:;'\"`…–—«»“”‘’-]+|[?!]")  # "?!" is a word
_PTB_NAMES = {
    "(": "-lrb-",
    ")": "-rrb-",
    "[": "-lsb-",
    "]": "-rsb-",
    "{": "-lcb-",
    "}": "-rcb-",
    "€": "$",
}


def ptb_words(text: str) -> list[str]:
    """Return the words of `text` like pycocoevalcap with Stanford's tokenizer, which needs Java."""
    words = (found[0] for found in _PTB_WORD.finditer(text.lower()))
    return [_PTB_NAMES.get(word, word) for word in words if not _PTB_DROPPED.fullmatch(word)]


# --- metrics of one item --------------------------------------------------------------------------


def rouge_l(candidate: str, references: Sequence[str]) -> float:
    """Return ROUGE-L F1 in 0..1 against the best-matching reference.

    Time grows with the product of the two lengths (about 1 s for 5,000 by 1,000 words).

    Raises:
        ValueError: there is no reference.
    """
    return _best_f1(rouge_scorer("rougeL"), candidate, references)


def rouge_1(candidate: str, references: Sequence[str]) -> float:
    """Return ROUGE-1 F1 in 0..1 against the best-matching reference, by rouge-score's tokenizer.

    Raises:
        ValueError: there is no reference.
    """
    return _best_f1(rouge_scorer("rouge1", plain=True), candidate, references)


def _best_f1(scorer: RougeScorer, candidate: str, references: Sequence[str]) -> float:
    check_corpus([candidate], [references])
    (found,) = scorer.score_multi(references, candidate).values()
    return float(found.fmeasure)


def rouge(candidate: str, reference: str) -> dict[str, float]:
    """Return ROUGE F1, 0..1, of a summary against one reference (Lin, 2004), without a stemmer.

    The values are those of ROUGE_KINDS, and their mean as `rouge`. HAVEN's paper (Table 4: 0.152 to
    0.235) prints one "aggregated" ROUGE and neither defines it nor names an implementation. Ours,
    unverified, is in `ROUGE_IMPLEMENTATION`.

    A candidate without a word scores 0 in all three, and so does any candidate against a reference
    without a word. A text of one word has no pair of words: its ROUGE-2 is 0 even against itself.
    """
    scores = rouge_scorer(*ROUGE_KINDS).score(reference, candidate)
    found = {kind: float(scores[kind].fmeasure) for kind in ROUGE_KINDS}
    return {"rouge": fmean(found.values()), **found}


@lru_cache(maxsize=8)
def rouge_scorer(*kinds: str, plain: bool = False) -> RougeScorer:
    """Return rouge-score's scorer of some kinds, by `tokenize`, or `plain` with its own tokenizer.

    Threads may share it: scoring reads the object and changes nothing in it.
    """
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import Tokenizer

    class WordTokenizer(Tokenizer):  # type: ignore[misc]
        def tokenize(self, text: str) -> list[str]:
            return tokenize(text)

    return RougeScorer(list(kinds), use_stemmer=False, tokenizer=None if plain else WordTokenizer())


def meteor(candidate: str, references: Sequence[str]) -> float:
    """Return METEOR in 0..1 against the best-matching reference, by NLTK with Italian stems.

    The fragmentation penalty never vanishes: n words against themselves score 1 - 0.5 / n^3, so one
    right word alone has 0.5.

    Raises:
        ValueError: there is no reference.
    """
    from nltk.translate.meteor_score import meteor_score

    check_corpus([candidate], [references])
    stemmer = SimpleNamespace(stem=_italian_stem)
    given = [tokenize(ref) for ref in references]
    no_synonyms = SimpleNamespace(synsets=lambda *_: [])  # NLTK would look for a corpus
    return float(meteor_score(given, tokenize(candidate), stemmer=stemmer, wordnet=no_synonyms))


@lru_cache(maxsize=2**16)
def _italian_stem(word: str) -> str:
    """Return the stem of a word, computed once: NLTK asks anew for each reference and answer."""
    from nltk.stem.snowball import SnowballStemmer

    # A stemmer for each word, since some languages' stemmers keep state, and this runs in threads.
    return str(SnowballStemmer("italian").stem(word))


# --- metrics of all items together ----------------------------------------------------------------
#
# All have the arguments `candidates`, one text for each item, and `references`, one or more texts
# for each item. They raise a ValueError if there is no item, if the lengths differ, or if an item
# has no reference.


def meteor_wordnet(
    candidates: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[float | None, str]:
    """Return METEOR in 0..1 like Hugging Face's `evaluate`: English words, stems and synonyms.

    Returns:
        The mean over items of the best reference's score; or None and the reason, if NLTK's data
        are not on this machine. Nothing is downloaded.
    """
    from nltk import word_tokenize
    from nltk.corpus import wordnet
    from nltk.translate.meteor_score import meteor_score

    check_corpus(candidates, references)
    try:
        wordnet.ensure_loaded()
        scores = [
            meteor_score([word_tokenize(ref) for ref in refs], word_tokenize(candidate))
            for candidate, refs in zip(candidates, references, strict=True)
        ]
    # Damaged data raise any error, which would lose lmms-eval's whole run (local_models.py).
    except Exception as error:
        what = "are not all here" if isinstance(error, LookupError) else f"cannot be used ({error})"
        get = "python -m nltk.downloader wordnet punkt_tab"
        return None, f"not computed: NLTK's WordNet and punkt_tab {what}; to get them: {get}"
    return fmean(scores), IMPLEMENTATIONS["meteor_wordnet"]


def corpus_bleu(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return corpus BLEU-4 in 0..1, which sums counts over all items before dividing.

    If no candidate has four words in a row, the score is 0, even if each candidate equals its
    reference: there are no 4-grams.
    """
    found = _sacrebleu(*_joined(candidates, references), tokenize="none", smooth_method="exp")
    # exp(mean(log)) of four precisions of 100 is 100.00000000000004.
    return min(float(found.score) / 100.0, 1.0)


def bleu_13a(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return corpus BLEU-4 in 0..1 like Hugging Face's `evaluate`.

    sacrebleu's own score counts lengths differently. The score is 0 if some order has no match. The
    length of an item's shortest reference counts.
    """
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    check_corpus(candidates, references)
    found = _sacrebleu(candidates, references, tokenize="13a", smooth_method="none")
    if not all(found.counts):
        return 0.0
    split = Tokenizer13a()
    shortest = sum(min(len(split(ref).split()) for ref in refs) for refs in references)
    orders = zip(found.counts, found.totals, strict=True)
    mean = math.fsum(math.log(matched / possible) for matched, possible in orders) / 4
    return math.exp(mean + min(0.0, 1 - shortest / found.sys_len))


def _sacrebleu(
    candidates: Sequence[str], references: Sequence[Sequence[str]], **how: str
) -> BLEUScore:
    from sacrebleu.metrics import BLEU

    # sacrebleu takes the k-th references of all items together, None for an item with fewer.
    width = max(map(len, references))
    streams = [[refs[k] if k < len(refs) else None for refs in references] for k in range(width)]
    return BLEU(**how, effective_order=False, force=True).corpus_score(list(candidates), streams)


def corpus_cider(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    words: Callable[[str], list[str]] = tokenize,
) -> float:
    """Return CIDEr in 0..10 of the whole corpus; identical corpora have 10 (pycocoevalcap).

    The weight of a word depends on how few items' references have it, so all items have to come
    together. One item alone scores 0 in any case, and a word that all items share weighs nothing.
    The score of an item is the mean over its references, not the best.

    Args:
        candidates: one text for each item.
        references: one or more texts for each item.
        words: function that splits a text into words.
    """
    from pycocoevalcap.cider.cider_scorer import CiderScorer

    texts, others = _joined(candidates, references, words)
    if not any(map(any, others)):
        return 0.0  # the scorer would take a maximum over no words
    scorer = CiderScorer()
    for candidate, refs in zip(texts, others, strict=True):
        scorer.cook_append(candidate, refs)
    # The library's own mean depends on the order of the items in its last digits; fmean does not.
    return fmean(map(float, scorer.compute_score()[1]))


def check_corpus(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Check the rules of every metric of a corpus.

    Raises:
        ValueError: there is no item, the lengths differ, or an item has no reference; the message
            has the item's position.
    """
    if len(candidates) != len(references):
        raise ValueError(f"{len(candidates)} candidates but {len(references)} lists of references")
    if not candidates:
        raise ValueError("no items: a corpus metric of nothing has no value")
    for index, refs in enumerate(references):
        if not refs:
            raise ValueError(f"item {index}: no references")


def _joined(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    words: Callable[[str], list[str]] = tokenize,
) -> tuple[list[str], list[list[str]]]:
    """Return candidates and references as words joined by blanks.

    An item whose references have no word gets one reference "". References are sorted, because sums
    over them round differently in another order.
    """
    check_corpus(candidates, references)
    others = [sorted(filter(None, (" ".join(words(ref)) for ref in refs))) for refs in references]
    return [" ".join(words(text)) for text in candidates], [refs or [""] for refs in others]
