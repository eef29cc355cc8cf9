"""Published scores of the real sample, changed by a fixed rule: what a replayed judge answers.

The numbers that must come out are in tests/cases/movierecapsqa_agreement.json. They were computed
once, before the command was run on them, by `python -m tests.movierecapsqa.perturbed`, which reads
the release itself and takes kappa from scikit-learn and both correlations from SciPy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import SHARED

RELEASE = SHARED / "data" / "movierecapsqa" / "segments.json"
CASES = Path(__file__).parents[1] / "cases" / "movierecapsqa_agreement.json"
DIMENSIONS = ("factuality", "relevance")
PEOPLE = "people"


class Given(NamedTuple):
    """One scored answer of the release."""

    segment: str
    question: str  # SEGMENT/QID
    by: str  # the model as the release spells it
    text: str
    published: dict[str, int]


def scored_answers() -> Iterator[Given]:
    """Every answer with scores, read without this suite's reader."""
    for segment in json.loads(RELEASE.read_text(encoding="utf-8")):
        for question in segment["questions"]:
            people = {**question["humanAnswer"], "model": PEOPLE}
            for answer in [*question["modelAnswers"], people]:
                if answer.get("scores"):
                    name = f"{segment['id']}/{question['qid']}"
                    scores = {dimension: answer["scores"][dimension] for dimension in DIMENSIONS}
                    yield Given(segment["id"], name, answer["model"], answer["answer"], scores)


def _bytes(given: Given, what: str) -> bytes:
    return hashlib.sha256(f"{given.by}|{given.question}|{what}".encode()).digest()


def finds_nothing(given: Given) -> bool:
    """Whether the judge finds no claim in the answer (about one in 64)."""
    return _bytes(given, "claims")[0] < 4


def says(given: Given, dimension: str) -> int | None:
    """The judge's score: a fifth is one lower, a fifth one higher, within 0 to 5.

    None: it says nothing that can be read (about one in 43).
    """
    drawn = _bytes(given, dimension)
    if drawn[1] < 6:
        return None
    change = {0: -1, 1: 1}.get(drawn[0] % 5, 0)
    return min(5, max(0, given.published[dimension] + change))


def contradicts_itself(given: Given, dimension: str, score: int) -> bool:
    """Whether its labels do not allow its score (one in 16); they always allow relevance 0."""
    return _bytes(given, dimension)[2] < 16 and (dimension == "factuality" or score > 0)


def counted(given: Given, dimension: str) -> int | None:
    """The score that counts: an answer without claims is worth 0."""
    return 0 if finds_nothing(given) else says(given, dimension)


def _expected() -> dict[str, Any]:
    from scipy.stats import kendalltau, spearmanr
    from sklearn.metrics import cohen_kappa_score

    given = list(scored_answers())
    models = list(dict.fromkeys(one.by for one in given if one.by != PEOPLE))
    expected: dict[str, Any] = {"no_claims": sum(map(finds_nothing, given))}
    expected["inconsistent"] = {
        dimension: sum(
            score is not None and contradicts_itself(one, dimension, score)
            for one in given
            if not finds_nothing(one)
            for score in [says(one, dimension)]
        )
        for dimension in DIMENSIONS
    }
    for dimension in DIMENSIONS:
        rows = {}
        for title, names in {**{name: [name] for name in [*models, PEOPLE]}, "all": models}.items():
            own = [one for one in given if one.by in names]
            pairs = [(counted(one, dimension), one.published[dimension]) for one in own]
            ours, published = zip(*[pair for pair in pairs if pair[0] is not None], strict=True)
            rows[title] = {
                "n": len(ours),
                "missing": len(own) - len(ours),
                "kappa": cohen_kappa_score(
                    ours, published, labels=list(range(6)), weights="quadratic"
                ),
                "rho": float(spearmanr(ours, published).statistic),
                "absolute": sum(abs(a - b) for a, b in zip(ours, published, strict=True))
                / len(ours),
                "ours": sum(ours) / len(ours),
                "published": sum(published) / len(published),
            }
        table: dict[str, dict[str, Given]] = {}
        for one in given:
            table.setdefault(one.question, {})[one.by] = one
        complete = [row for row in table.values() if all(name in row for name in models)]
        judged = [
            row
            for row in complete
            if all(counted(row[name], dimension) is not None for name in models)
        ]
        means = [
            (
                sum(counted(row[name], dimension) or 0 for row in judged) / len(judged),
                sum(row[name].published[dimension] for row in judged) / len(judged),
            )
            for name in models
        ]
        order = {
            "complete": len(complete),
            "judged": len(judged),
            "means": dict(zip(models, means, strict=True)),
            "same": sum((a - c) * (b - d) > 0 for (a, b), (c, d) in combinations(means, 2)),
            "tau": float(kendalltau(*zip(*means, strict=True)).statistic),
        }
        expected[dimension] = {"rows": rows, "order": order}
    return expected


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return round(value, 10) if isinstance(value, float) else value


def main() -> None:
    """Print the case file."""
    import scipy
    import sklearn

    source = (
        "Rule: tests/movierecapsqa/perturbed.py. Computed from the released file, without this "
        "suite's code, by python -m tests.movierecapsqa.perturbed: quadratic kappa over the labels "
        f"0 to 5 by scikit-learn {sklearn.__version__}, Spearman's rho and Kendall's tau-b by "
        f"SciPy {scipy.__version__}, means by division. Models as the release spells them."
    )
    print(json.dumps({"source": source, **_rounded(_expected())}, indent=2))


if __name__ == "__main__":
    main()
