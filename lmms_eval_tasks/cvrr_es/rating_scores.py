"""A judge's own numbers, from its ratings: kappa with the reference, leniency, distribution.

- kappa: quadratic weighted kappa, per candidate and dimension, the mean over candidates of each
  dimension (Table 5's averages), and the mean of these; `kappa_percent` is the same times 100, as
  the paper prints it; `kappa_pooled` is over all items at once; `kappa_DIMENSION` and
  `kappa_pooled_DIMENSION`, `kappa_of_CANDIDATE`. `kappa_skip_empty` leaves out empty answers, which
  the published scripts skip. None without reference ratings: they can be added later (`rescore`).
- leniency: mean rating minus reference, on the items that have both; by dimension and candidate.
- rating_valid: mean of the ratings that could be read; `rating_share_1` to `_5`: shares of them;
  `rating_coverage`: share of the answers that have one, the others being failures; all of these by
  dimension and candidate too.
- `rating_failed`, `no_reason` (ratings without a reason, which count), `empty_rated` and
  `empty_failed` (empty answers): counts.

A rating that cannot be read is a failure: no middle rating, and in no kappa.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.cvrr_es import rating_reply
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS
from lmms_eval_tasks.cvrr_es.rating_rows import RatingRow
from lmms_eval_tasks.cvrr_es.reliability import kappas
from lmms_eval_tasks.cvrr_es.reliability.leniency import leniency
from lmms_eval_tasks.cvrr_es.reliability.study import Study
from lmms_eval_tasks.utils import aggregate
from lmms_eval_tasks.utils.aggregate import Item, metric_list

Aggregation = Callable[[Sequence[Item]], Any]

FIRST = "kappa"  # has the whole item
REFERENCE = "reference"  # judge of the reference's rows, whose name the items do not keep
_OF_ROW = ("dimension", "question", "video", "candidate", "judge", "round", "rating", "reason")
_ROW = (*_OF_ROW, "status", "empty")


def reply_metrics(item: Mapping[str, Any], reply: str) -> dict[str, dict[str, Any]]:
    """The metrics of one rating, by name.

    Args:
        item: a doc's identity (utils.rating_identity).
        reply: the model's text, as the host hands it over.
    """
    read = rating_reply.read(reply, [item["answer"]])
    return spread(
        {
            **item,
            "reply": reply,
            "rating": read.rating,
            "reason": read.reason,
            "status": read.status,
            "notes": dict(read.notes),
        }
    )


def broken(item: Mapping[str, Any], reply: str) -> dict[str, Any]:
    """The item of a reply whose scoring broke."""
    nothing: dict[str, Any] = {"rating": None, "reason": "", "status": "error", "notes": {}}
    return {**item, "reply": reply, **nothing}


# --- items as a study ---------------------------------------------------------------------------


def rows(items: Iterable[Item]) -> list[RatingRow]:
    """The items' ratings."""
    return [RatingRow(**{name: item[name] for name in _ROW}) for item in items]


def reference_rows(items: Iterable[Item]) -> list[RatingRow]:
    """The reference ratings that the items bring along."""
    return [
        RatingRow(
            item["dimension"],
            item["question"],
            item["video"],
            item["candidate"],
            REFERENCE,
            "reference",
            item["reference_rating"],
            empty=item["empty"],
        )
        for item in items
        if item["reference_rating"] is not None
    ]


def study(items: Sequence[Item]) -> Study:
    """Items of one judge and round, with their reference."""
    ordered = sorted(items, key=lambda item: item["id"])
    return Study.of(rows(ordered), reference_rows(ordered))


def _kappa(items: Sequence[Item], *, percent: bool = False) -> float | None:
    made = study(items)
    value = kappas.reliability(made, _ratings(made), resamples=0).mean.value
    return value if value is None or not percent else 100 * value


def _skip_empty(items: Sequence[Item]) -> float | None:
    kept = [item for item in items if not item["empty"]]
    return _kappa(kept) if kept else None


def _pooled(items: Sequence[Item]) -> float | None:
    made = study(items)
    return kappas.reliability(made, _ratings(made), resamples=0).pooled.value


def _leniency(items: Sequence[Item]) -> float | None:
    made = study(items)
    return leniency(made, _ratings(made), made.items).value


def _ratings(made: Study) -> Any:
    return next(iter(made.raters.values()))


def _given(items: Sequence[Item]) -> list[int]:
    return [item["rating"] for item in items if item["rating"] is not None]


def _mean(items: Sequence[Item]) -> float | None:
    return aggregate.mean(_given(items))


def _coverage(items: Sequence[Item]) -> float | None:
    return len(_given(items)) / len(items) if items else None


def _share(rating: int, items: Sequence[Item]) -> float | None:
    given = _given(items)
    return given.count(rating) / len(given) if given else None


def _failed(items: Sequence[Item]) -> int:
    return len(items) - len(_given(items))


def _no_reason(items: Sequence[Item]) -> int:
    return sum(item["rating"] is not None and not item["reason"].strip() for item in items)


def _empty(items: Sequence[Item], *, rated: bool) -> int:
    return sum(item["empty"] and (item["rating"] is not None) == rated for item in items)


_OF_PART: dict[str, Aggregation] = {
    "kappa": _kappa,
    "leniency": _leniency,
    "rating_valid": _mean,
    "rating_coverage": _coverage,
    **{f"rating_share_{rating}": functools.partial(_share, rating) for rating in RATINGS},
}
_OF_DIMENSION: dict[str, Aggregation] = {**_OF_PART, "kappa_pooled": _pooled}
_OVERALL: dict[str, Aggregation] = {
    **_OF_DIMENSION,
    "kappa_percent": functools.partial(_kappa, percent=True),
    "kappa_skip_empty": _skip_empty,
    "rating_failed": _failed,
    "no_reason": _no_reason,
    "empty_rated": functools.partial(_empty, rated=True),
    "empty_failed": functools.partial(_empty, rated=False),
}
SCORES: dict[str, Aggregation] = {
    **_OVERALL,
    **{
        f"{name}_{dimension}": aggregation
        for name, aggregation in _OF_DIMENSION.items()
        for dimension in DIMENSIONS
    },
}
OF = "_of_"  # in a metric's name, before a candidate's slug


def slug(candidate: str) -> str:
    """A candidate's name as part of a metric's: `Video-LLaVA` as `video_llava`, `模型` as it is."""
    plain = unicodedata.normalize("NFKC", candidate).casefold()
    return re.sub(r"[\W_]+", "_", plain).strip("_") or "unnamed"


def by_candidate(slugs: Iterable[str]) -> dict[str, Aggregation]:
    """The metrics of single candidates."""
    return {
        f"{name}{OF}{one}": aggregation for one in slugs for name, aggregation in _OF_PART.items()
    }


def spread(full: Item) -> dict[str, dict[str, Any]]:
    """The item under each of its metrics: whole under the first, elsewhere what they need.

    The host saves all of them: a judge's reason is there twice, not with every metric.
    """
    needed = ("id", *_ROW, "reference_rating")
    light = {**{name: full[name] for name in needed}, "reason": ""}
    own = by_candidate([slug(full["candidate"])])
    of_dimension = [f"{name}_{full['dimension']}" for name in _OF_DIMENSION]
    names = [*_OVERALL, *of_dimension, *own]
    reason = {**light, "reason": full["reason"]}
    return {**dict.fromkeys(names, light), "no_reason": reason, FIRST: dict(full)}


def __getattr__(name: str) -> Any:
    """`METRICS`: the host's `metric_list`, with a metric for each candidate of the run.

    The candidates are the user's, so the list is made when a selected task asks for it.
    """
    if name != "METRICS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lmms_eval_tasks.cvrr_es import naming

    metrics = {**SCORES, **by_candidate(sorted({slug(one) for one in naming.candidates()}))}
    return metric_list(metrics, _higher_is_better)


def _higher_is_better(name: str) -> bool | None:
    if name.startswith(("leniency", "rating_valid", "rating_share", "empty_rated")):
        return None
    return name not in ("rating_failed", "empty_failed", "no_reason")
