"""What the offline judge sees in an Italian text: content stems, polarity, slots, numbers. Pure.

Words are compared as Snowball stems of accent-free lower-case forms ("perchè" and "perché" are
one). Word lists are general Italian; nothing here comes from a benchmark's answers.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

STOP_WORDS = frozenset(
    """a ad agli ai al all alla alle allo anche c che chi ci come con cui d da dagli dai dal dall dalla
    dalle dallo degli dei del dell della delle dello di e ed era erano essere gli ha hanno ho i il in
    io l la le li lo loro ma mi ne nel nell negli nei nella nelle nello o od per quella quelle quelli
    quello questa queste questi questo se si sia siano sono sta stanno stata state stati stato su sua
    sue sugli sui sul sull sulla sulle sullo suo suoi tra fra un una uno viene vengono
    video filmato scena registrazione ripresa""".split()
)
_NEGATORS = frozenset(
    "no non nessun nessuna nessuno niente nulla mai senza neanche neppure nemmeno".split()
)
# Lexical negations: "manca il padre" says what "il padre non c'è" says.
_ABSENT = "manca assente privo impossibile".split()
# Negated or hard, these say that the video does not tell: an answer in its own right.
_KNOW = """so saprei sapere saperlo dedurre deduce deducibile dedurlo determinare determinabile
    stabilire capire capisce capirlo comprendere conoscere informazione elementi emerge evince evincere
    fornisce indica specifica rispondere intuire desumere possibile""".split()
_HARD = "difficile impossibile mancano insufficienti".split()
_SCOPE = 5  # tokens after a negator that it reaches

# Words that exclude each other. A text that names one value of a slot contradicts a text that names
# another; `/` separates values, each a list of words that stand for it.
_SLOTS = """
    sinistra sinistro mancina / destra destro
    davanti fronte anteriore frontale / dietro spalle retro posteriore posteriormente
    sopra superiore alto / sotto inferiore basso
    inizio iniziale iniziare cominciare / fine finale termine finire terminare
    vicino accanto fianco avvicinare avvicinarsi / lontano distante allontanare allontanarsi
    dentro interno / fuori esterno
    secondi / minuti / ore / giorni / settimane / mesi / anni
    rosso scarlatto cremisi vermiglio porpora magenta bordeaux / blu azzurro celeste turchese / verde
        / giallo / nero / bianco / grigio / marrone bruno / arancione / rosa fucsia / viola lilla / beige
    scuro cupo / chiaro
    felice allegro gioioso contento divertito sereno entusiasta gioia divertimento entusiasmo allegria
        felicità positivo
        / triste annoiato infelice scontento depresso malinconico tristezza noia cupo arrabbiato negativo
    calmo tranquillo rilassato sereno tranquillità
        / teso agitato nervoso ansioso spaventato preoccupato frenetico ansia paura agitazione
    attento concentrato interessato focalizzato assorto attenzione concentrazione interesse
        / distratto annoiato disinteressato distrazione disinteresse indifferente indifferenza
    tutto intero completo / metà mezzo quarto / pochi breve
    più maggiore / meno minore
    grande ampio / piccolo
    aperto aprire / chiuso chiudere
    giorno diurno / notte notturno
    caldo / freddo
    stesso uguale / diverso altro differente
    estate / inverno / primavera / autunno
    mattina / pomeriggio / sera
    giovane / vecchio anziano
    lungo / corto
    veloce rapido / lento
    pieno / vuoto
    salire sale / scendere scende
    entrare entra / uscire esce
    aumentare / diminuire
    accendere acceso / spegnere spento
    mettere indossare / togliere rimuovere
    ridere / piangere
    vincere / perdere
    pulito / sporco
    forte / debole
    seduto sedersi / piedi alzarsi
"""
# Stemming makes these pairs equal, so they are compared as written.
_GENDER = """
    prima / dopo / mentre durante intanto contemporaneamente
    uomo uomini signore signori padre papà marito fratello maschio maschile
        / donna donne signora madre mamma moglie sorella femmina femminile
    bambino ragazzo / bambina ragazza
"""
_NEGATIVE_PREFIXES = ("in", "im", "il", "ir", "dis", "s", "anti")

_NUMBERS = {
    word: number
    for number, word in enumerate(
        """zero _ due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici
        quindici sedici diciassette diciotto diciannove venti""".split()
    )
} | {
    "paio": 2, "coppia": 2, "decina": 10, "dozzina": 12, "quindicina": 15, "ventina": 20,
    "trenta": 30, "trentina": 30, "quaranta": 40, "quarantina": 40, "cinquanta": 50,
    "cinquantina": 50, "sessanta": 60, "settanta": 70, "ottanta": 80, "novanta": 90, "cento": 100,
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """One text as the rules see it."""

    tokens: tuple[str, ...]
    stems: frozenset[str]  # content words, without negators and stop words
    negated: frozenset[str]  # for each negation, what comes next ("" at the end)
    slots: dict[int, frozenset[int]]  # slot -> values named
    numbers: frozenset[int]
    unsure: bool  # says that the answer cannot be known

    def __hash__(self) -> int:
        return hash(self.tokens)


@lru_cache(maxsize=8192)
def analyse(text: str) -> Text:
    """Read one text; cached, because a question's references come back with every answer."""
    tokens = _tokens(text)
    stems = [_stem(token) for token in tokens]
    return Text(
        tokens=tuple(tokens),
        stems=frozenset(
            stem
            for token, stem in zip(tokens, stems, strict=True)
            if token not in STOP_WORDS and token not in _NEGATORS
        ),
        negated=_negated(tokens, stems),
        slots=_slots(tokens, stems),
        numbers=frozenset(
            int(token) if token.isdecimal() else _NUMBERS[token]
            for token in tokens
            if (token.isdecimal() and len(token) < 10) or token in _NUMBERS
        ),
        unsure=_unsure(tokens, stems),
    )


def opposite_by_prefix(word: str, others: frozenset[str]) -> bool:
    """Whether a stem is another with a negative prefix, or the other way round (in-felice)."""
    return any(
        len(short) > 3 and long == prefix + short
        for other in others
        for short, long in (sorted((word, other), key=len),)
        for prefix in _NEGATIVE_PREFIXES
    )


def _tokens(text: str) -> list[str]:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return re.findall(r"\w+", "".join(c for c in decomposed if not unicodedata.combining(c)))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    from nltk.stem.snowball import SnowballStemmer

    return SnowballStemmer("italian")


@lru_cache(maxsize=65536)
def _stem(token: str) -> str:
    return str(_stemmer().stem(token))


def _negated(tokens: Sequence[str], stems: Sequence[str]) -> frozenset[str]:
    """The stem after each negator, so that a negation in the question can be told from the answer's."""
    absent = _stems(*_ABSENT)
    return frozenset(
        next((s for t, s in zip(tokens[i + 1 :], stems[i + 1 :], strict=True) if t not in STOP_WORDS), "")
        for i, token in enumerate(tokens)
        if token in _NEGATORS or stems[i] in absent
    )


def _unsure(tokens: Sequence[str], stems: Sequence[str]) -> bool:
    know, hard = _stems(*_KNOW), _stems(*_HARD)
    return any(
        (token in _NEGATORS or stems[i] in hard) and know & set(stems[i + 1 : i + 1 + _SCOPE])
        for i, token in enumerate(tokens)
    )


@lru_cache(maxsize=8)
def _stems(*words: str) -> frozenset[str]:
    return frozenset(_stem(token) for word in words for token in _tokens(word))


@lru_cache(maxsize=1)
def _lexicon() -> tuple[dict[str, list[tuple[int, int]]], dict[str, list[tuple[int, int]]]]:
    """Slot values by stem, and by written form for the pairs that stemming would merge."""
    by_stem: dict[str, list[tuple[int, int]]] = defaultdict(list)
    by_form: dict[str, list[tuple[int, int]]] = defaultdict(list)
    slot = 0
    for table, index in ((_SLOTS, by_stem), (_GENDER, by_form)):
        # A line that starts with "/" or is indented further continues the slot above.
        for line in re.split(r"\n {4}(?! )", table.rstrip("\n")):
            for value, words in enumerate(line.split("/") if line.strip() else []):
                for word in words.split():
                    token = _tokens(word)[0]
                    key = _stem(token) if index is by_stem else token
                    index[key].append((slot, value))
            slot += 1
    return dict(by_stem), dict(by_form)


def _slots(tokens: Sequence[str], stems: Sequence[str]) -> dict[int, frozenset[int]]:
    by_stem, by_form = _lexicon()
    found: dict[int, set[int]] = defaultdict(set)
    for token, stem in zip(tokens, stems, strict=True):
        for slot, value in (*by_stem.get(stem, ()), *by_form.get(token, ())):
            found[slot].add(value)
    return {slot: frozenset(values) for slot, values in found.items()}
