"""What a check of published figures has found. Each kind of result, for all benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """One contradiction. `figures` holds what was printed and what follows from it."""

    kind: str
    tables: tuple[int, ...]
    setting: str  # the row's group
    model: str  # the row's printed name
    column: str  # a column's name, or a range "first..last"
    figures: dict[str, float] = field(hash=False)
    text: str  # in our words; where it is (table, row, column) is said by the other fields


@dataclass(frozen=True)
class Claim:
    """A statement of the paper's text and what the tables, or its other statements, say."""

    key: str
    section: str
    says: str  # our words
    holds: bool
    evidence: str  # printed figures and differences of them
    follow: str = ""  # if it does not hold: what this package goes by, and why


@dataclass(frozen=True)
class Contradiction:
    """What one check of the tables found, with what this package goes by."""

    kind: str
    where: str
    says: str  # our words
    findings: tuple[Finding, ...]
    follow: str  # what this package goes by, and why; "" leaves it to the reader
