"""The letter that a reply to two statements chooses: explicit statements first, then a reply that is only a letter or an option's text. Never guessed."""

import re
import string
import unicodedata
from typing import NamedTuple, Optional, Sequence


def _words(text: str) -> str:
    """Return a pattern that matches any of the blank-separated words; "_" in a word stands for a blank."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# Normalisation.
TYPOGRAPHY = str.maketrans(dict.fromkeys("’‘‛′´", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‐‑‒–—―−→", "-") | {"。": ".", "、": ","})
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad\ufe0e\ufe0f]")
SPECIAL_TOKEN = re.compile(r"<\|[^<>|\n]{1,40}\|>|</?s>|<(?:eos|end_of_turn|end_of_utterance)>")
CODE_FENCE = re.compile(r"```(?:[A-Za-z]{2,12})? *\n|\n *```")
EMPHASISED_LETTER = re.compile(r"(?<!\w)(\*{2,3}|_{2,3}|`{1,3})\(?([A-Za-z])\)?[.:]?\1(?!\w)")
MARKDOWN = re.compile(r"[*`$~]|(?<!\w)_+|_{1,3}(?!\w)|(?m:^[#>]+)|\\(?=[()\[\]])")
# Vocabulary.
NOUN = _words(
    "answer choice option statement letter response solution selection pick description (?:correct|right|true|best)_one best_(?:match|fit) ans\\.? risp\\.? "
    "risposta scelta opzione alternativa affermazione lettera soluzione frase enunciato descrizione asserzione quell[ao]_(?:corrett|giust|ver|esatt)[ao]"
)
PLURAL = _words("answers choices options statements letters descriptions risposte scelte opzioni alternative affermazioni frasi lettere descrizioni")
FALSE = _words(
    "wrong incorrect false untrue excluded ruled_out eliminated nope sbagliat[aoei] errat[aoei] fals[aoei] (?:s|in)corrett[aoei] esclus[aoei] scartat[aoei] eliminat[aoei] da_(?:escludere|scartare) "
    "(?:least|less|meno)_(?:accurate|correct|likely|plausible|probable|suitable|appropriate|true|accurat[ao]|corrett[ao]|giust[ao]|ver[ao]|esatt[ao]|adatt[ao]|plausibile|probabile)"
)
OTHER = _words("other altr[aoei]")
# "least describes", "descrive meno"; not "at least", "più o meno", "a meno che".
_LEAST = r"(?<!\bat )\bleast\b|(?<!\ba )(?<!\bo )\bmeno\b"
NOT = r"(?:n't|\b(?:not|cannot|never|neither|nor|non(?! (?:c'è|v'è|ci sono) dubbi)|né|mai|nessun[ao]?|(?<!no )(?<!without a )doubt|dubito))\b"
TRUE = _words(
    "correct right(?!_(?:of|behind|next|side|in|above|below|before|after|hand)) true accurate (?:more|most)_(?:accurate|likely|plausible) (?:best|correct|right|true)_(?:answer|choice|"
    "option|statement|one) answer corrett[ao] giust[ao] ver[ao] esatt[ao] veritier[ao] (?:la_)?(?:risposta|scelta|opzione|soluzione|affermazione)"
)
_YES = r"(?:true|correct|right|yes|ver[ao]|corrett[ao]|giust[ao]|esatt[ao]|sì)"
_NO = rf"(?:no|{FALSE})"
_VERB = r"(?<!\w)(?:is|è|e'|sia|(?:would|should|must|will) be|sarebbe|dovrebbe essere|deve essere)(?!\w)"
IS = rf"(?:{_VERB}|(?<=\w)'s\b)"
REASON = r",? ?" + _words("because since as given_that due_to perch[ée] poich[ée] in_quanto dato_che visto_che siccome dal_momento_che infatti") + r"\b"
FILLER = (
    r"(?:l'|(?:"
    + _words(
        "the la il lo both either sia o option opzione letter lettera statement affermazione choice scelta answer risposta alternativa number numero clearly definitely certainly "
        "obviously therefore thus simply indeed actually (?:most_)?(?:likely|probably) sicuramente certamente chiaramente ovviamente quindi dunque probabilmente proprio"
    )
    + r"(?: ?:)? )){0,4}"
)
LETTER = (
    r"""(?:[("'\[{<] ?){0,3}(?:\\{1,2}[a-z]{2,8} ?\{ ?)?(?:[("'] ?)?"""  # \text{C}, "(C)", [C]
    # Not c'è, e-mail, e.g. or A&B; 'C' between quotes is meant.
    r"""(?P<letter>[A-Z])(?!\w)(?:(?<='.)|(?!'))(?!-\w|\.\w\.|&\w|\+\+)"""
)
# Between a noun and its letter: no end of a clause, second noun, verb, denial or other letter.
_GAP = rf"(?:(?!\b(?:{NOUN}|{PLURAL}|{FALSE}|{OTHER})\b|{NOT}|{_LEAST}|{_VERB}|(?-i:\b[A-Z]\b))" r"[^.!?:;=>\n(){}\"]){0,60}?"
_NOUN = rf"(?<![^\W_])(?<!/){NOUN}(?!\w)"
# "La corretta è A", "Corretta: A": a verdict in place of its noun.
_RIGHT = r"(?:corrett[ao]|giust[ao]|esatt[ao]|correct)(?!\w)"
# The patterns that name a letter.
LABEL = _compile(rf"(?:{_NOUN}[\"']?{_GAP}(?: ?\([^()\n]{{1,40}}\))?[\"']? ?(?::|=?-?>|=| - )|(?m:^)(?:(?:la|lo|il|the) )?{_RIGHT} ?:)[ \n]?{FILLER}{LETTER}")
COPULA = _compile(rf"(?:{_NOUN}(?: (?:that|which|che) (?:is|è) {TRUE})?{_GAP}|(?<!\w)(?:la|lo|il|the) (?:{_RIGHT}|ver[ao](?!\w)) ){IS}[\"']?(?: ?:[ \n]?|[ \n]){FILLER}{LETTER}")
BOXED = _compile(rf"\\{{1,2}}(?:boxed|fbox) ?\{{ ?{FILLER}{LETTER}")
CHOOSING = _compile(
    r"\b(?:i(?:'d|'ll| would| will)?(?: therefore| thus)? (?:choose|select|pick|go with|opt for)|i(?:'d| would)? (?:think|believe|say)(?: that)?(?: it is| it's)?"
    rf"|scelgo|sceglierei|seleziono|opto per|(?:penso|credo|ritengo|direi)(?: che)?(?: sia)?) {FILLER}{LETTER}"
)
# "... Opzione B." as the reply's closing sentence.
CLOSING = _compile(rf"(?:[.!;] |\n)(?:la |l'|the )?{NOUN} {LETTER}(?=[)\]\"'.!]*\Z)")
# A heading, the letter on the next line.
HEADING = _compile(rf"(?m:^)(?:the |la |l')?(?:\w{{2,12}} )?{NOUN}(?: \w{{2,12}})?\n{LETTER}")
# "È vera l'affermazione A": the verdict before the letter.
INVERTED = _compile(rf"(?<!\w)(?:è|e') (?:corrett[ao]|giust[ao]|ver[ao]|esatt[ao]|veritier[ao])(?: ?:[ \n]?| ){FILLER}{LETTER}")
# "Non è A, è B", "not A but B".
CONTRAST = _compile(
    r"(?:(?<!\w)(?:non (?:è|sia)|not|isn't)) (?:(?:la|the|option|opzione) |l'){0,2}[(\"']?(?-i:[A-Z])[)\"']?(?: ?[,;.:-] ?| )(?:(?:but|ma|bensì)(?: (?:it is|it's|è))?|it is|it's|è|e')" rf" {FILLER}(?=[(\"'\[]*(?-i:[A-Z])){LETTER}"
)
# "B è falsa, quindi A." as the reply's end.
CONCLUSION = _compile(rf"(?:\b(?:quindi|dunque|perciò|allora|therefore|hence|thus|so),? |[.;!,\n] ?(?:but |ma )?(?:it's|it is|è) ){FILLER}(?=[(\"'\[]*(?-i:[A-Z])){LETTER}(?=[)\]\"'.!]*\Z)")
STATEMENTS = (LABEL, COPULA, BOXED, CHOOSING, CLOSING, HEADING, INVERTED, CONTRAST, CONCLUSION)
# After these, a capital before more words counts as a letter, too ("Answer: B The man runs"); after "I think B ..." it
# may be the subject of a sentence.
LETTER_EXPECTED = (LABEL, COPULA, BOXED)
VERDICT = _compile(
    r"(?<!\w)[(\"'\[]?(?-i:(?P<letter>[A-Z]))[)\"'\]]? (?:is|seems|è|e'|sembra|sarebbe|would be) (?:l'|l'unica |(?:the|only|la|il|quella|sola|my|indeed|clearly|definitely|certainly"
    rf"|sicuramente|chiaramente|certamente|effettivamente) ){{0,3}}{TRUE}(?!\w)(?! (?:(?:that|which|che) (?:is|è) |(?:più|most) )?{FALSE}\b)"
)
# Names that are no letters: "Team B", "B flat", "B. B. King".
NAMED_BEFORE = _compile(rf"\b{_words('team group player squadra gruppo vitamina? hepatitis epatite plan piano type')} [(\"']?\Z")
WORD_BEFORE = re.compile(r"(\w{1,40}) [(\"'\[]?\Z")
NAMED_AFTER = _compile(r"(?: |-)?(?:[♭♯#]|(?:flat|sharp|major|minor|maggiore|minore|bemolle|diesis)\b)|\. ?(?-i:[A-Z])\. ?\w")
NEXT_WORD = re.compile(r"(?:\. ?| )(\w{1,40})")
# The whole reply: `lead` is a word that may stand before the letter: "Option", "L'opzione", "La", "It's".
WHOLE = _compile(
    r"(?:(?:assistant|assistente|model|bot|ai)(?: ?:[ \n]?|\n))?(?:[-•] )?(?:(?:secondo me|rispondo|solo|only|sicuramente|probabilmente|definitely|probably|(?:most )?likely)(?: ?[:,])? (?=(?-i:[A-Z])))?"
    rf"(?P<lead>(?:it is |it's |è |e' )?(?:the |la |l')?(?:{_words('final correct best')} )?(?P<noun>{NOUN} )?){LETTER}"
)
# Both options judged: "A: falso. B: vero."
JUDGED = _compile(rf"(?:{NOUN} )?[(\"']?(?-i:(?P<letter>[A-Z]))[)\"']? ?(?:[:.=-]+|is|è) ?(?:(?P<right>{_YES})|{_NO})(?!\w)|(?:(?P<first>{_YES})|{_NO}) ?: ?(?-i:(?P<named>[A-Z]))(?!\w)")
# The text behind a letter that is no word of a sentence. After a whole reply's letter a comma is not enough: "E, come
# si vede, ...".
END = _compile(rf"[ \"'>]*(?:\Z|[\n,:;!?<|()\]}}\"]|\.(?!\.)|- |-\Z)|{REASON}")
END_OF_WHOLE = _compile(rf"[ \"'>]*(?:\Z|[\n:!?<|)\]}}\"]|\.(?!\.)|- |-\Z|,(?:\Z|\n))|{REASON}")
PLAIN_LETTERS = "BCDFGHJKLMNPQRSTUVWXYZ"  # A, E, I, O are words in one of the languages
# Guards.
CLAUSE_END = _compile(r"[.!?;:,\n()]| - |\b" + _words("so and but therefore thus hence because since then while quindi dunque perciò allora ma e mentre perché poiché") + r"\b")
DENIED_BEFORE = _compile(
    rf"{NOT}|\b(?:{FALSE}|{OTHER})(?: (?:that|che)(?: [\w']{{1,20}}){{0,2}})? ?\Z|\b(?:{FALSE}|{OTHER})(?: \w{{1,20}}){{0,2}} (?:is|è|e') ?\Z|\b{_words('if se whether suppose assuming unless qualora')}\b|{_LEAST}"
    r"|\b(?:opposite of|contrario d)"
    # A statement of another person: "the user thinks", "qualcuno potrebbe dire".
    r"|\b(?:you|some(?:one|body|body else)?|someone else|others|people|many|the user) (?:might|may|could|would|thinks?|says?|believes?|claims?)\b"
    r"|\b(?:qualcuno|alcuni|altri|l'utente|si) (?:potrebbe|potrebbero|direbbe|direbbero|pensa|pensano|dice|dicono)\b"
)
_CLOSERS = r"[)\]}\"']*"
# An option's text may itself begin with "Se ..." or "Non è ...": these two deny only in lower case,
# with no bracket before them.
DENIED_AFTER = _compile(
    rf"{_CLOSERS} ?(?:[:=-]? ?{FALSE}\b|isn't\b|non (?:è|sia|sarebbe) (?:la |l'|quella )?{TRUE}\b|(?:is|was|would be|è|sarebbe|risulta)(?: (?:clearly|definitely|obviously|chiaramente))? ?(?:not\b|n't\b|{FALSE}\b))"
    r"|[\"']?(?-i: non (?:è|sia|sarebbe|può)|,? (?:only |solo )?(?:if|unless|se|a meno che))\b"
    # "A. Falso.", "A (incorrect)", "A - non è corretta", "A. This is wrong", "A: no."
    rf"|[)\]]? ?(?:[.:,(-] ?)?(?:(?:(?:this|that|it|quest[ao])(?: {NOUN})?(?: is|'s| è)?|è|is|{NOUN}) )?(?:(?:(?:is|è) )?{FALSE}|(?:is not|isn't|not|non è|non) (?:the |la |l'|quella )?{TRUE}|no)"
    rf"(?= ?(?:[.!,;:)\n]|\Z)|{REASON})"
)
# A sentence that denies the option before it: "This is not what the video shows", "non si vede".
UNSHOWN = _compile(
    rf"[)\]]? ?(?:[.:,-] ?)?(?:(?:this|that|it|the (?:video|clip|{NOUN})|quest[ao]|(?:il|nel) (?:video|filmato)|l'{NOUN}|la {NOUN})(?: {NOUN})? ?)?"
    r"(?:(?:does|is|was|did) not|doesn't|isn't|wasn't|didn't|non)\b [^.!?:;,\n]{0,30}?\b(?:not what|"
    + _words("shows? shown supported support correspond match happen appear seen visible depicted depict present mostra mostrato corrisponde corrispondente supportat[ao] present[ei] accade succede vede visibile appare")
    + r")\b(?: (?:(?:by|in|to) )?(?:this|that|it|the (?:video|clip)|quest[ao]|(?:al|nel|dal) video))? ?(?:[.!]|\Z)"
)
ASKED = _compile(rf"{_CLOSERS} ?\?")
ASKED_VERDICT = _compile(r"[^.!?\n]{0,80}\?")
# A second letter joined by "or" always counts; one joined by "and", a comma or nothing
# counts if no clause about it follows ("B, and A is wrong").
_SECOND_LEAD = r"(?:l'|(?:" + _words("also anche possibly perhaps maybe forse the la option opzione statement affermazione risposta answer letter lettera") + r" )){0,3}(?:\\[a-z]{2,8}\{)?[(\"'\[]{0,2}"
_SECOND_TAIL = r"(?!\w|'\w|-\w|\.\w\.)"
_PAIR_END = rf"(?=[ \"'>]*(?:\Z|[\n.,:;!?<|)\]}}\"/])|{REASON}| (?:and|or|e|o|ed|oppure|are|both|sono|entramb[ei])\b)"
PAIR = _compile(
    rf"[)\]}}\"'.:]*(?:(?: ?,? ?\(?\b(?:or|oppure|o|che|nor|né|and/or|e/o|vs) | ?[/|] ?){_SECOND_LEAD}(?P<either>(?-i:[B-DF-HJ-NP-Z]){_SECOND_TAIL}|[A-Z]{_SECOND_TAIL}{_PAIR_END})"
    rf"|(?: ?,? ?\(?\b(?:and|ed?) | ?[,&+;] ?| - |-){_SECOND_LEAD}(?P<also>[A-Z]){_SECOND_TAIL}{_PAIR_END}|[ \n](?:[-•] )?\(?(?P<next>(?-i:[A-Z])){_SECOND_TAIL}{_PAIR_END})"
)
# The same from the second letter's side: "A or B is correct", "A is true and B is true".
PAIR_BEFORE = _compile(rf"(?<!\w)(?-i:(?P<letter>[A-Z]))[)\]}}\"']*(?: (?:is|è) (?:the |la )?{TRUE},?)? ?(?:/|&|\b(?:or|and|o|e|ed|oppure|nor|né)\b) ?" r"(?:l'|(?:la|the|option|opzione|statement|affermazione) ){0,3}[(\"'\[]*\Z")
EITHER_BEFORE = _compile(r"(?<!\w)(?-i:(?P<letter>[A-Z]))[)\]}\"']*(?:,? (?:or|o|oppure) |/ ?)\Z")
CORRECTION = _compile(
    r"\b" + _words("no wait actually anzi aspetta rather sorry scusa scusate pardon cioè i_mean") + r"\b[,.:;! -]{0,3}(?:(?:no|wait|it's|it is|è|la|the|option|opzione)\b[, ]{0,2}){0,3}"
    rf"[(\"']?(?-i:(?P<letter>[A-Z])){_SECOND_TAIL}(?=[ \"']*(?:\Z|[\n.,:;!?)\]]))"
)
# Another option's marker: "B) ..." or "Opzione B: ..." on a new line, "(B) ..." inside one.
LISTED = _compile(rf"(?:\n(?:[-•] ?)?(?:{NOUN} )?\(?(?=[A-Z][).:]| ?[A-Z] -)|(?<=[.!?;]) (?=[A-Z]\. \w)|[ (](?:{NOUN} )?(?=[A-Z][):] ?\w))(?-i:(?P<letter>[A-Z]))")
MAX_MARKS = 8  # combining marks kept per character: NFKC is quadratic in a run of them
BEFORE = 80  # characters looked at before a statement, for a negation
AFTER = 400  # characters looked at after a statement, beyond twice the longest option


class _Item:
    """The options of a pair or a question: their letters, their folded texts, the longest one's size."""

    def __init__(self, options: Sequence[str]) -> None:
        texts = [normalise(option) for option in options]
        self.texts = dict(zip(string.ascii_uppercase, map(fold, texts)))
        self.window = 2 * max(map(len, texts)) + AFTER

    def named_by(self, text: str) -> set[str]:
        """Letters of the options whose text opens `text`, up to the end of a sentence or line."""
        window = text.lstrip(" \n()]}\"'>.:,-")[: self.window]
        ends = [match.start() for match in re.finditer(r"[.!?;\n]", window)][:12]
        heads = {fold(window[:end]) for end in [*ends, len(window)]}
        return {letter for letter, option in self.texts.items() if option and option in heads}

    def called(self, text: str) -> Optional[str]:
        """Return the letter of the only option that equals a folded text."""
        found = [letter for letter, option in self.texts.items() if option == text]
        return found[0] if len(found) == 1 else None

    def behind(self, letter: str, text: str) -> Optional[str]:
        """Return the rest of `text` behind the letter's own option, if `text` begins with all of it; "" if the option's text goes on."""
        own, window = self.texts.get(letter.upper(), ""), text[: self.window]
        ends = [match.start() for match in re.finditer(r"[.!?;\n]| - ", window)][:12]
        goes_on = "" if own and f"{fold(window)} ".startswith(f"{own} ") else None
        return next((window[end:] for end in ends if own and fold(window[:end]) == own), goes_on)

    def hold(self, first: str, second: str) -> bool:
        """Return True if these two words are neighbours in an option's text."""
        return any(f" {fold(first)} {fold(second)} " in f" {option} " for option in self.texts.values())


class _Statement(NamedTuple):
    """One place in a reply that names a letter. A second letter in `near` makes it unclear; in a verdict ("B is correct") the letter is the subject."""

    letter: str
    before: str
    after: str
    near: str
    is_verdict: bool = False


def read_letter(answer: str, options: Sequence[str]) -> Optional[str]:
    """The letter that an answer without its reasoning chooses among `options` (the first is A); None if it names none, or two."""
    visible, item = normalise(answer), _Item(options)
    statements = [one for one in _statements(visible, item) if not _is_denied(one, item)]
    if statements:  # the last one counts, also where it cannot be read
        return _settled(statements[-1], item)
    return _judged(visible, item) or _whole(visible, item) or item.called(fold(visible))


def normalise(text: str) -> str:
    """Return text with one form of each letter, quote and blank, and without markdown and special tokens."""
    text = unicodedata.normalize("NFKC", _limit_marks(text))
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    text = INVISIBLE.sub("", text.translate(TYPOGRAPHY))
    text = CODE_FENCE.sub("\n", SPECIAL_TOKEN.sub("", text))
    text = MARKDOWN.sub("", EMPHASISED_LETTER.sub(r"(\2)", text))
    return re.sub(r" ?\n[ \n]*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def fold(text: str) -> str:
    """Return text in lower case, without accents, with every run of other signs as one space; a text of signs alone stays."""
    plain = unicodedata.normalize("NFKD", _limit_marks(text).casefold())
    letters = (char if char.isalnum() else " " for char in plain if not unicodedata.combining(char))
    return " ".join("".join(letters).split()) or text.strip()


def _limit_marks(text: str) -> str:
    """Return text in which no character carries more than MAX_MARKS combining marks: normalising a run of them takes quadratic time."""
    if text.isascii():
        return text
    kept, run = [], 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        if run <= MAX_MARKS:
            kept.append(char)
    return "".join(kept)


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _statements(text: str, item: _Item) -> list[_Statement]:
    """All statements in the order of their letters; words that look like letters are left out."""
    found: dict[int, _Statement] = {}
    for pattern in (*STATEMENTS, VERDICT):
        for match in pattern.finditer(text):
            at = match.start("letter")
            head = at if pattern is VERDICT else match.start()
            after = text[at + 1 : at + 1 + item.window]
            near = "\n".join(after.split("\n", 2)[:2])  # its own line and the next
            one = _Statement(match["letter"], text[max(0, head - BEFORE) : head], after, near, is_verdict=pattern is VERDICT)
            plain = PLAIN_LETTERS if pattern in LETTER_EXPECTED else ""
            is_word = _is_name(one, item) if one.is_verdict else _is_word(one, item, END, plain)  # its subject: "B. Team B is correct"
            if not is_word or _named(one, item):
                found.setdefault(at, one)
    return [found[at] for at in sorted(found)]


def _judged(text: str, item: _Item) -> Optional[str]:
    """Return the right letter of a reply that is only a verdict on each letter, of which one is right: "A: falso. B: vero"."""
    found = {match["letter"] or match["named"]: match["right"] or match["first"] for match in JUDGED.finditer(text)}
    if len(found) != len(JUDGED.findall(text)) or sorted(found) != list(item.texts) or _has_words(JUDGED.sub("", text)):
        return None
    right = [letter for letter, is_right in found.items() if is_right]
    return right[0] if len(right) == 1 else None


def _whole(text: str, item: _Item) -> Optional[str]:
    """Return the letter of a reply that is only a letter, alone or with its option's text or a reason after it."""
    match = WHOLE.match(text)
    if not match:
        return None
    after = text[match.end("letter") :]
    one = _Statement(match["letter"], "", after, near=after)
    if (
        (match["lead"] and not match["noun"] and one.letter.islower())  # "la a", "the a"
        or one.letter.upper() not in item.texts
        or _is_denied(one, item)
        or _is_word(one, item, END_OF_WHOLE)
        or _is_name(one, item)
        or (_has_words(after) and fold(text) in item.texts.values())  # "A. Rossi"
    ):
        return None
    return _settled(one, item)


def _settled(one: _Statement, item: _Item) -> Optional[str]:
    """Return the statement's letter, unless it is out of range, one of two, or contradicts the text behind it ("A) text of B")."""
    is_name = _is_name(one, item)
    if is_name and (named := _named(one, item)):
        return named
    letter, texts = one.letter.upper(), item.named_by(one.after)
    wrong = (texts and letter not in texts) or letter not in item.texts or is_name
    return None if wrong or _names_two(one, item) else letter


def _is_word(one: _Statement, item: _Item, end: re.Pattern[str], plain: str = "") -> bool:
    """Return True if the letter is a word of the sentence ("A man", "E poi", "a sinistra"): nothing ends it, and its option's text does not follow."""
    if end.match(one.after) or _joined(one, item) or (one.letter in plain and one.after.startswith(" ")):
        return False
    return one.letter.upper() not in item.named_by(one.after)


def _is_name(one: _Statement, item: _Item) -> bool:
    """Return True if the letter is part of a name ("B flat", "Team B", "B. B. King"), or has the same neighbour in an option."""
    if one.letter.upper() in item.named_by(one.after):
        return False
    if one.is_verdict:
        word = WORD_BEFORE.search(one.before)
        return bool(NAMED_BEFORE.search(one.before) or (word and item.hold(word[1], one.letter)))
    word = NEXT_WORD.match(one.after)
    return bool(NAMED_AFTER.match(one.after) or (word and item.hold(one.letter, word[1])))


def _named(one: _Statement, item: _Item) -> Optional[str]:
    """Return the option whose whole text is the name that holds the letter ("The answer is G major")."""
    name = one.before.rpartition("\n")[2] + one.letter if one.is_verdict else one.letter + one.after
    return None if one.after.endswith("?") else item.called(fold(name))


def _is_denied(one: _Statement, item: _Item) -> bool:
    """Return True if the statement denies, doubts, supposes or asks."""
    asked = ASKED_VERDICT if one.is_verdict else ASKED
    if DENIED_BEFORE.search(CLAUSE_END.split(one.before)[-1]) or asked.match(one.after):
        return True
    behind = item.behind(one.letter, one.after)
    after = one.after if behind is None else behind
    return bool(DENIED_AFTER.match(after) or UNSHOWN.match(after))


def _names_two(one: _Statement, item: _Item) -> bool:
    """Return True if the statement names a second letter, corrects itself or lists the options."""
    letter, rest = one.letter.upper(), fold(one.after)
    before = PAIR_BEFORE if one.is_verdict else EITHER_BEFORE
    others = [match["letter"] for match in before.finditer(one.before)]
    if not rest or item.texts.get(letter) != rest:  # its own text may hold any letters
        others += [_joined(one, item) or letter]
        others += [match["letter"] for pattern in (CORRECTION, LISTED) for match in pattern.finditer(one.near)]
    return any(other != letter for other in others)


def _joined(one: _Statement, item: _Item) -> Optional[str]:
    """Return a second letter right after the first: "or B", "e B", "/B", or ", B" with an end behind it."""
    second = PAIR.match(one.after)
    if not second or (second["next"] and second["next"].upper() not in item.texts):  # without a word between them it may be an initial
        return None
    return str(second["either"] or second["also"] or second["next"]).upper()
