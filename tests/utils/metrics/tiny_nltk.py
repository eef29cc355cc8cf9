"""NLTK's English data in small: one pair of synonyms, which is Italian, and no abbreviation."""

from __future__ import annotations

import os
from pathlib import Path

KINDS = ("noun", "verb", "adj", "adv")


def build(folder: Path) -> Path:
    """Write `corpora/wordnet` and `tokenizers/punkt_tab` to a folder and return it."""
    wordnet = folder / "corpora" / "wordnet"
    files = {f"{form}.{kind}": "" for form in ("index", "data") for kind in KINDS}
    files |= {f"{kind}.exc": "" for kind in KINDS}
    files |= {"index.noun": "gatto n 1 0 1 0 00000000\nfelino n 1 0 1 0 00000000\n"}
    files |= {"data.noun": "00000000 00 n 02 gatto 0 felino 0 000 | miagola\n"}
    files |= {"data.adj": "  1 WordNet 3.0 Copyright\n", "index.sense": "", "lexnames": "00 x 1\n"}
    english = folder / "tokenizers" / "punkt_tab" / "english"
    empty = ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab")
    for place, text in [
        *((wordnet / name, text) for name, text in files.items()),
        *((english / name, "") for name in empty),
    ]:
        if not place.exists():  # processes side by side make it, and read it
            place.parent.mkdir(parents=True, exist_ok=True)
            made = place.with_name(f"{place.name}.{os.getpid()}")
            made.write_text(text, encoding="utf-8")
            made.replace(place)
    return folder
