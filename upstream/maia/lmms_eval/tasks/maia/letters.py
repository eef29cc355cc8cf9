"""The letter that an Italian or English reply chooses among lettered options; never guessed. Only the best rank of statement in a reply is read.

machine: \\boxed{B}, <answer>B</answer>, {"answer": "B"}, "Final answer: B"; label: "Answer: B", "la risposta è la B"; alone: the letter, or it and its option's text, as the reply, its first or
its last line; verdict: "B is correct", "A ✗, B ✓"; text: an option's text. Of two letters in a rank the last counts, behind words of correction only. Denials, questions, hearsay: no statements."""

import re
import string
import unicodedata
from functools import partial
from typing import Iterable, NamedTuple, Optional, Sequence

_re = partial(re.compile, flags=re.IGNORECASE)
Statement = NamedTuple("Statement", [("letters", frozenset[str]), ("start", int), ("end", int)])  # a place in a reply that names letters

_NOME = r"risp\.?|risposta|scelta|opzione|alternativa|affermazione|lettera|frase|descrizione|quell[ao] (?:corrett|giust|ver|esatt)[ao]"
NOUN = rf"(?:answer|choice|option|statement|letter|response|prediction|pick|description|conclusione?|(?:correct|right|true) one|ans\.?|{_NOME})"
RIGHT = r"(?:correct|(?:più )?(?:corrett|giust|esatt|accurat)[ao])"
TRUE = rf"(?:{RIGHT}|right|true|accurate|ver[ao]|veritier[ao]|(?:the |la |l')?(?:(?:best|correct|right|true) )?(?:answer|choice|option|statement|one|risposta|scelta|opzione|affermazione))"
FALSE = r"(?:wrong|incorrect|false|untrue|excluded|eliminated|nope|(?:sbagliat|errat|fals|scorrett|incorrett|esclus|scartat|eliminat)[aoei]|da (?:escludere|scartare)|(?:least|less|meno) \w{4,12}|✗)"
NOT = r"(?:n't|\b(?:not|cannot|never|neither|nor|non(?! (?:c'è|ci sono) dubbi)|né|mai|nessun[ao]?|(?<!no )(?<!without a )doubt|dubito))\b|(?<!\bat )\bleast\b|(?<!\ba )(?<!\bo )\bmeno\b"
IS = r"(?<!\w)(?:is|è|e'|sia|(?:would|should|must|will) be|sarebbe|dovrebbe essere|deve essere)(?!\w)"
REASON = r",? ?(?:because|since|as|given that|due to|perch[ée]|poich[ée]|in quanto|dato che|visto che|siccome|infatti)\b"
FILLER = rf"(?:l'|(?:the|la|il|lo|both|either|sia|proprio|clearly|definitely|therefore|simply|likely|chiaramente|sicuramente|quindi|dunque|probabilmente|{NOUN}(?: ?:)?) ){{0,4}}"
GAP = rf"(?:(?!\b(?:{NOUN}|{FALSE}|options|answers|statements|opzioni|affermazioni|other|altr[aoei])\b|{NOT}|{IS}|(?-i:\b[A-Z]\b))[^.!?:;=>\n(){{}}\"]){{0,60}}?"
SIGN = r"(?::|=?-?>|=| - )[ \n]?"
FORMAL = r"\\{1,2}(?:boxed|fbox) ?\{\s?(?:\\[a-z]{2,8} ?\{ ?)?|<(?:answer|final|conclusion|box|choice|risposta)> ?|\[answer\] ?|[{,] ?\"(?:answer|choice|prediction|risposta|scelta|option|letter)\" ?: ?\""
FINAL = rf"(?:\bfinal {NOUN}|{NOUN} (?:finale|definitiva)){GAP}(?: ?{SIGN}|{IS}[ \n])"
LABEL = rf"(?<![^\W_])(?<!/)(?<!empio: )(?<!ample: ){NOUN}(?!\w)[\"']?{GAP}(?: ?\((?![A-Z]\))[^()\n]{{1,40}}\))?[\"']? ?(?:{SIGN}|(?:(?:that|which|che) {IS} {TRUE} )?(?:{IS}|(?<=answer)'s\b)[\"']?(?: ?:[ \n]?|[ \n]))"
HEADING = rf"(?m:^)(?:(?:la|lo|the) )?{RIGHT} ?:[ \n]?|(?<!\w)(?:la|lo|the) {RIGHT} {IS} |(?m:^)(?:the |la |l')?(?:\w{{2,12}} )?{NOUN}\n"
CHOOSING = r"\b(?:i(?:'d|'ll| would)? (?:choose|select|pick|go with|think|believe|say)(?: that)?(?: it is| it's)?|(?:scelgo|sceglierei|seleziono|opto per|propendo per|voto|penso|credo|ritengo|direi)(?: che)?(?: sia)?) "
CONTRAST = rf"(?<!\w)(?:non(?: è| sia)?|not|isn't) (?:la |the |option )?\(?(?-i:[A-Z])\)?(?: ?[,;.:-] ?| )(?:(?:but|ma|bensì)(?: {IS})?|it is|it's|è) "
INVERTED = rf"(?<!\w)(?:è|e') (?:{RIGHT}|ver[ao]|veritier[ao])(?: ?:)? "
CLOSING = rf"(?:[.!;] |\n)(?:la |l'|the )?{NOUN} (?=(?-i:[A-Z])[)\]\"'.!]*\Z)|[.!] (?=\((?-i:[A-Z])\)\.?\Z)"
CONCLUSION = r"(?:\b(?:quindi|dunque|perciò|pertanto|allora|therefore|hence|thus|so),? |[.;!,\n] ?(?:but |ma )?(?:it's|it is|è) )(?=(?:la )?[(\"']*(?-i:[A-Z])[)\]\"'.!]*\Z)"
_SEEMS = r"(?:is|seems|è|e'|sembra) (?:(?:l'|the|l'unica|only|la|il|quella|sola|clearly) ?){0,3}"
VERDICT = rf"(?<!\w)[(\"']?(?-i:(?P<letter>[A-Z]))[)\"']? (?:{_SEEMS}(?:{TRUE}(?!\w| (?:of|behind|next|side)\b)|che descrive)|corrisponde|matches|descrive (?:il|corr|meglio))(?![^.!?\n]{{0,80}}\?)"
JUDGED = _re(rf"(?:{NOUN} )?[(\"']?(?-i:(?P<letter>[A-Z]))[)\"']? ?(?:[:.=-]+|is|è|\)|) ?[\"']?(?:(?P<right>{TRUE}|yes|sì|v|✓)|(?:no|f|{FALSE}))(?!\w)|(?:(?P<first>{TRUE})|{FALSE}) ?: ?(?-i:(?P<named>[A-Z]))(?!\w)")
ORDINAL = _re(rf"(?:it is |it's |è )?(?:the |la )?(?:(?P<first>first|prima)|seconda?)(?: (?:one|{NOUN}))?(?: {IS} (?:the |la |quella )?{TRUE})?[.!]?")
WHOLE = _re(
    r"(?:[-•✓] ?|(?:assistant|q1)(?: ?:[ \n]?|\n))?(?P<lead>(?:(?:secondo me|per me|rispondo|solo|only|sure|so|in conclusione|\w{4,12}mente|definitely|probably)[:,]? )?"
    rf"(?:it (?:is|must be) |it's |è |e' |dovrebbe essere )?(?:the |la |l')?(?P<noun>{NOUN} )?)"
)
LETTER = _re(FILLER + r"[(\"'\[]{0,3}(?P<letter>[A-Z])(?!\w)(?:(?<='.)|(?!'))(?!-\w|\.\w\.|&\w|\+\+)")
END = {whole: _re(rf"[ \"'>]*(?:\Z|[\n:;!?<|()\]}}\"✓✗]|\.(?!\.)|- |-\Z|{comma})|{REASON}") for whole, comma in ((False, ","), (True, r",(?:\Z|\n)"))}
SECOND = _re(
    r"[)\]}\"']*(?:,? ?\(?\b(?:or|oppure|o|che|nor|né|and|ed?) | ?[/|,&+;:<>] ?|[ \n](?!\(?[A-Z][).:]{1,2} ?\w)|[.)] ?(?=(?-i:[A-Z])[.)]*\Z))(?:l'|(?:la|the|option|opzione) ){0,2}[(\"']*(?P<letter>(?-i:[A-Z]))(?!\w|'\w|-\w|\.\w)"
    rf"(?= ?(?:\Z|[\n.,:;!?)\]}}\"/])| (?:are|sono|is|è)\b(?! {FALSE}))"
)
NAME = _re(r"(?: |-)?(?:[♭♯#]|(?:flat|sharp|major|minor|maggiore|minore|bemolle)\b)|\. ?(?-i:[A-Z])\. ?\w")
CORRECTION = r"\b(?:no|wait|actually|anzi|aspetta|rather|sorry|scusa|cioè|i mean|edit|correction|on reflection|second look|in realtà|o+ps|meglio|rettifico|ripensandoci|sbagliato|correggermi)\b"
CLAUSE = _re(r"[.!?;:,\n()]| - |\b(?:so|and|but|therefore|because|since|while|quindi|dunque|perciò|allora|ma|e|mentre|perché|poiché)\b")
_SUPPOSED = r"\b(?:which|what|quale?|if|se|whether|suppose|assuming|unless|qualora|opposite of|contrario d|errore|improbabile|unlikely|thought|pensavo)\b|\b(?:team|squadra|gruppo|vitamina?|hepatitis|type|each|every|ogni|ciascun[ao]?) ?\Z"
_HEARSAY = r"\b(?:you|some(?:one|body)?(?: \w+)?|else|others|people|user|host|amico|qualcuno|alcuni|altri|utente|si) (?:might|may|could|would|thinks?|says?|believes?|claims?|potrebber?o?|direbber?o?|pensa(?:no)?|dicono|dice)\b"
DENIED_BEFORE = _re(rf"{NOT}|{_SUPPOSED}|{_HEARSAY}|\b(?:{FALSE}|other|altr[ao])(?: (?:that|che)(?: [\w']{{1,20}}){{0,2}})? ?\Z|\b(?:{FALSE}|other)(?: \w{{1,20}}){{0,2}} (?:is|è) ?\Z")
_SUBJECT = rf"[)\]]? ?(?:[.:,(-] ?)?(?:(?:this|that|it|the (?:video|clip)|quest[ao]|(?:il|nel) (?:video|filmato)|l?'?{NOUN})(?: {NOUN})? ?)?"
_UNSHOWN = r"(?:not what|shows?|shown|supported|match|happen|seen|visible|depicted|present|mostra|corrisponde|supportat[ao]|present[ei]|accade|vede|visibile)\b(?: (?:by |in |dal |nel |al |that|it|this|questo|the |video){1,3})?"
DENIED_AFTER = _re(
    rf"[)\]}}\"' ]*✗|[)\]}}\"']* ?(?:\?|[:=-]? ?{FALSE}\b|isn't\b|non (?:è|sia|sarebbe) (?:la |l'|quella )?{TRUE}\b|(?:is|was|would be|è|sarebbe|risulta)(?: clearly| chiaramente)? ?(?:not\b|n't\b|{FALSE}\b))"
    rf"|(?-i: non (?:è|sia|può)|,? (?:only |solo )?(?:if|unless|se))\b|[^.,;:\n]{{0,60}}? (?:only|solo)\b|{_SUBJECT}(?:(?:(?:is|è) )?{FALSE}|(?:is not|isn't|not|non è|non) (?:the |la )?{TRUE}|no)(?= ?(?:[.!,;:)\n]|\Z)|{REASON})"
    rf"|{_SUBJECT}(?:(?:does|is|was|did) not|doesn't|isn't|didn't|non)\b [^.!?:;,\n]{{0,30}}?\b{_UNSHOWN} ?(?:[.!]|\Z)"
)


def normalise(text: str) -> str:
    """Return text with one form of each letter, quote, blank and check mark, without markdown, struck-out text and special tokens."""
    text = unicodedata.normalize("NFKC", text).translate(str.maketrans("’‘´“”«»‐–—−→✅☑✔❌✘。、", '\'\'\'""""---->✓✓✓✗✗.,')).replace("->", " > ")
    text = re.sub("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\ufe0e\ufe0f]|~~[^~]*~~|<\\|[^<>|\n]{1,40}\\|>|</?s>|</?(?:b|strong|i|em)>", "", text)
    text = re.sub(r"```\w* *\n|\n *```|<br ?/?>|\r\n?", "\n", re.sub(r"(?m)^\[x\](?= )", "✓", text))
    text = re.sub(r"(?<!\w)(\*\*|__|`)\(?([A-Za-z])\)?[.:]?\1(?!\w)", r"(\2)", text)
    text = re.sub(r"[*`$]|(?<!\w)_+|_+(?!\w)|(?m:^[#>]+)|\\(?=[()\[\]])", "", text)
    text = re.sub(r" ?\n[ \n]*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()
    return re.split(r"\n(?:question|domanda|user|human)\b[^\n]{0,10}:", text, flags=re.I)[0]


def fold(text: str) -> str:
    """Return text in lower case, without accents, with every run of other signs as one space; a number keeps its sign."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(re.findall(r"(?:(?<!\w)-(?=\d))?[^\W_]+", plain)) or text.strip()


def read_letter(answer: str, options: Sequence[str]) -> Optional[str]:
    """The letter that an answer without its reasoning chooses among `options` (the first is A); None if it names none, or two."""
    text, item = normalise(answer), dict(zip(string.ascii_uppercase, (fold(normalise(option)) for option in options)))
    judged = {match["letter"] or match["named"]: match["right"] or match["first"] for match in JUDGED.finditer(text)}
    if set(judged) == set(item) and not any(map(str.isalnum, JUDGED.sub("", text))):
        right = [letter for letter, is_right in judged.items() if is_right]
        return right[0] if len(right) == 1 else None
    alone = [*_whole(text, item), *_found(text, item, CLOSING, CONCLUSION)]
    for statements in (_found(text, item, FORMAL, FINAL), _found(text, item, LABEL, HEADING, CHOOSING, CONTRAST), alone, _found(text, item, VERDICT, INVERTED)):
        if statements:
            return _settled(text, item, sorted(statements, key=lambda one: one.end))
    short = {letter for letter, end in _opened(text, item).items() if text[end : end + 1] in (",", ".") and len(item[letter].split()) < 3}
    short = set() if any(f" {item[letter]} " in f" {fold(text)} " for letter in set(item) - short) else short
    named = {letter for letter, option in item.items() if option == fold(text)} or short or {"BA"[bool(match["first"])] for match in [ORDINAL.fullmatch(text)] if match}
    return min(named) if len(named) == 1 and not text.endswith("?") else None


def _settled(text: str, item: dict[str, str], statements: Sequence[Statement]) -> Optional[str]:
    """Return the last statement's letter, unless it names two, another one or the reply's opening contradicts it, or a correction follows."""
    last, opened = statements[-1], set(_opened(text, item))
    behind = re.finditer(CORRECTION + r"[^\n]{0,40}?(?<![\w'])(?-i:([A-Z]))(?!\w|'\w)(?=[ \"')]*(?:\Z|[\n.,:;!?)]))", text[last.end : last.end + 400], re.I)
    against = [one for one in statements if one.letters != last.letters and not re.search(CORRECTION, text[one.end : last.start], re.I)]
    wrong = against or {match[1] for match in behind} & set(item) - last.letters or (opened and not opened & last.letters)
    return min(last.letters) if len(last.letters) == 1 and last.letters <= set(item) and not wrong else None


def _opened(text: str, item: dict[str, str]) -> dict[str, int]:
    """Return the options whose whole text opens `text`, up to the end of a clause, and where it ends."""
    skipped, longest = len(re.match(r"(?:[\s()\]}\"'>.:,]|-(?!\d))*", text)[0]), 2 * max(map(len, item.values())) + 40
    ends = [*(match.start() for match in re.finditer(r"[.!?;:,\n(\"}<✗]| - ", text[:longest])), min(len(text), longest)]
    return {letter: end for end in reversed(ends) for letter, option in item.items() if end > skipped and option == fold(text[skipped:end])}


def _stated(letters: Iterable[str], text: str, start: int, end: int) -> list[Statement]:
    """Return the statement, unless the words around it deny, doubt, suppose or ask it."""
    denied = DENIED_AFTER.match(text, end) or DENIED_BEFORE.search(CLAUSE.split(text[max(0, start - 80) : start])[-1])
    return [] if denied or not letters else [Statement(frozenset(letters), start, end)]


def _content(text: str, item: dict[str, str], start: int, at: int, expects: bool = False, whole: bool = False) -> list[Statement]:
    """Return what the text states at `at`: a letter, two, or an option's text; nothing if neither, or if it is denied."""
    match = LETTER.match(text, at)
    at = match.start("letter") if match else at
    named = _opened(text[at:], item)
    if match:
        letter, after = match["letter"].upper(), text[match.end() :]
        own, second = _opened(after, item), SECOND.match(after)
        ends = END[whole].match(after) or second or (expects and match["letter"] in "BCDFGHJKLMNPQRSTUVWXYZ" and after.startswith(" "))
        if letter in own or (ends and not named and not NAME.match(after)):
            return _stated({letter} if letter in own else {letter, *own, *(second["letter"] if second else "")}, text, start, match.end() + own.get(letter, 0))
    return _stated(named, text, start, at + max(named.values(), default=0)) if expects else []


def _found(text: str, item: dict[str, str], *patterns: str) -> list[Statement]:
    """Return what the places of these patterns state."""
    places = [(pattern, match) for pattern in patterns for match in re.finditer(pattern, text, re.I)]
    return [one for pattern, m in places for one in (_stated(m["letter"], text, *m.span()) if pattern is VERDICT else _content(text, item, m.start(), m.end(), pattern in (FORMAL, FINAL, LABEL, HEADING)))]


def _whole(text: str, item: dict[str, str]) -> list[Statement]:
    """Return what the reply states that is only a letter, alone or before its option's text or a reason; and its last line likewise."""
    found = []
    listed = {match[1] for match in re.finditer(rf"(?:\A|\n|[.;!] )(?:- )?(?:{NOUN} )?\(?(?-i:([A-Z]))[).:] ?\w", text, re.I)}
    for line in dict.fromkeys((0, text.rfind("\n") + 1)):
        lead = WHOLE.match(text, line)
        is_article = lead["lead"] and not lead["noun"] and text[lead.end() : lead.end() + 1].islower()  # "la a"
        for one in _content(text, item, line, lead.end(), whole=True) if not is_article and fold(text[line:]) not in item.values() else ():
            if not (listed - one.letters and text[lead.end() + 1 :].split("\n")[0].strip(" .)]\"'")) and not (line and text[one.end :].strip(" .)]\"'")):
                found.append(one)
    return found
