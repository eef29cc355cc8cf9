"""Patterns by which `answers.py` reads replies in Italian and English.

They are applied to normalised text (one space between words, "\\n" between lines, straight quotes,
no markdown), hence single optional blanks in place of `\\s*`. Every repetition is bounded or
cannot meet the same characters in two ways, so that matching is linear in the text's length.
"""

from __future__ import annotations

import re


def _words(text: str) -> str:
    """Alternation of the blank-separated words; "_" stands for a blank inside one."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# The host's failures are replies to it: openai.py, async_openai.py, gemini.py write the first two
# forms, gemini.py the third for every reply without a text, async_openai.py the one of a reply that
# has no content, llava_vid.py and oryx.py the last, the generators of video the others
# (lmms-eval 0.7.3).
HOST_FAILURE = re.compile(
    r"\s*(?:\[LMMS_EVAL_[A-Z_]+|\[SAFETY_BLOCKED:|\[GENERATION_FAILED\]|\[ERROR\] "
    r"|Error: can only concatenate str \(not \"NoneType\"\) to str\s*$"
    r"|Video [^\n]{1,1000} (?:can not load|generate failed), check the source\s*$)"
)

# Normalisation.
TYPOGRAPHY = str.maketrans(
    dict.fromkeys("’‘‛′´", "'")
    | dict.fromkeys("“”„‟«»″", '"')
    | dict.fromkeys("‐‑‒–—―−→", "-")
    | {"。": ".", "、": ","}
)
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad\ufe0e\ufe0f]")
SPECIAL_TOKEN = re.compile(r"<\|[^<>|\n]{1,40}\|>|</?s>|<(?:eos|end_of_turn|end_of_utterance)>")
CODE_FENCE = re.compile(r"```(?:[A-Za-z]{2,12})? *\n|\n *```")
EMPHASISED_LETTER = re.compile(r"(?<!\w)(\*{2,3}|_{2,3}|`{1,3})\(?([A-Za-z])\)?[.:]?\1(?!\w)")
MARKDOWN = re.compile(r"[*`$~]|(?<!\w)_+|_{1,3}(?!\w)|(?m:^[#>]+)|\\(?=[()\[\]])")

# Vocabulary.
NOUN = _words(
    "answer choice option statement letter response solution selection pick description "
    "(?:correct|right|true|best)_one best_(?:match|fit) ans\\.? risp\\.? "
    "risposta scelta opzione alternativa affermazione lettera soluzione frase enunciato "
    "descrizione asserzione quell[ao]_(?:corrett|giust|ver|esatt)[ao]"
)
PLURAL = _words("answers choices options statements letters descriptions risposte scelte opzioni "
                "alternative affermazioni frasi lettere descrizioni")  # fmt: skip
FALSE = _words(
    "wrong incorrect false untrue excluded ruled_out eliminated nope sbagliat[aoei] errat[aoei] "
    "fals[aoei] (?:s|in)corrett[aoei] esclus[aoei] scartat[aoei] eliminat[aoei] "
    "da_(?:escludere|scartare) "
    "(?:least|less|meno)_(?:accurate|correct|likely|plausible|probable|suitable|appropriate|true"
    "|accurat[ao]|corrett[ao]|giust[ao]|ver[ao]|esatt[ao]|adatt[ao]|plausibile|probabile)"
)
OTHER = _words("other altr[aoei]")
# "least describes", "descrive meno"; not "at least", "più o meno", "a meno che".
_LEAST = r"(?<!\bat )\bleast\b|(?<!\ba )(?<!\bo )\bmeno\b"
NOT = (
    r"(?:n't|\b(?:not|cannot|never|neither|nor|non(?! (?:c'è|v'è|ci sono) dubbi)|né|mai"
    r"|nessun[ao]?|(?<!no )(?<!without a )doubt|dubito))\b"
)
TRUE = _words(
    "correct right(?!_(?:of|behind|next|side|in|above|below|before|after|hand)) true accurate "
    "(?:more|most)_(?:accurate|likely|plausible) (?:best|correct|right|true)_(?:answer|choice|"
    "option|statement|one) answer corrett[ao] giust[ao] ver[ao] esatt[ao] veritier[ao] "
    "(?:la_)?(?:risposta|scelta|opzione|soluzione|affermazione)"
)
_YES = r"(?:true|correct|right|yes|ver[ao]|corrett[ao]|giust[ao]|esatt[ao]|sì)"
_NO = rf"(?:no|{FALSE})"
_VERB = (
    r"(?<!\w)(?:is|è|e'|sia|(?:would|should|must|will) be|sarebbe|dovrebbe essere|deve essere)"
    r"(?!\w)"
)
IS = rf"(?:{_VERB}|(?<=\w)'s\b)"
REASON = r",? ?" + _words(
    "because since as given_that due_to perch[ée] poich[ée] in_quanto dato_che visto_che siccome "
    "dal_momento_che infatti"
) + r"\b"  # fmt: skip
FILLER = (
    r"(?:l'|(?:" + _words(
        "the la il lo both either sia o option opzione letter lettera statement affermazione "
        "choice scelta answer risposta alternativa number numero clearly definitely certainly "
        "obviously therefore thus simply indeed actually (?:most_)?(?:likely|probably) "
        "sicuramente certamente chiaramente ovviamente quindi dunque probabilmente proprio"
    ) + r"(?: ?:)? )){0,4}"
)  # fmt: skip
LETTER = (
    r"""(?:[("'\[{<] ?){0,3}(?:\\{1,2}[a-z]{2,8} ?\{ ?)?(?:[("'] ?)?"""  # \text{C}, "(C)", [C]
    # Not c'è, e-mail, e.g. or A&B; 'C' between quotes is meant.
    r"""(?P<letter>[A-Z])(?!\w)(?:(?<='.)|(?!'))(?!-\w|\.\w\.|&\w|\+\+)"""
)
# Between a noun and its letter: no end of a clause, second noun, verb, denial or other letter.
_GAP = (
    rf"(?:(?!\b(?:{NOUN}|{PLURAL}|{FALSE}|{OTHER})\b|{NOT}|{_LEAST}|{_VERB}|(?-i:\b[A-Z]\b))"
    r"[^.!?:;=>\n(){}\"]){0,60}?"
)
_NOUN = rf"(?<![^\W_])(?<!/){NOUN}(?!\w)"
# "La corretta è A", "Corretta: A": a verdict that stands for its noun.
_RIGHT = r"(?:corrett[ao]|giust[ao]|esatt[ao]|correct)(?!\w)"

# Rule 2.
LABEL = _compile(
    rf"(?:{_NOUN}[\"']?{_GAP}(?: ?\([^()\n]{{1,40}}\))?[\"']? ?(?::|=?-?>|=| - )"
    rf"|(?m:^)(?:(?:la|lo|il|the) )?{_RIGHT} ?:)[ \n]?{FILLER}{LETTER}"
)
COPULA = _compile(
    rf"(?:{_NOUN}(?: (?:that|which|che) (?:is|è) {TRUE})?{_GAP}"
    rf"|(?<!\w)(?:la|lo|il|the) (?:{_RIGHT}|ver[ao](?!\w)) )"
    rf"{IS}[\"']?(?: ?:[ \n]?|[ \n]){FILLER}{LETTER}"
)
BOXED = _compile(rf"\\{{1,2}}(?:boxed|fbox) ?\{{ ?{FILLER}{LETTER}")
CHOOSING = _compile(
    r"\b(?:i(?:'d|'ll| would| will)?(?: therefore| thus)? (?:choose|select|pick|go with|opt for)"
    r"|i(?:'d| would)? (?:think|believe|say)(?: that)?(?: it is| it's)?"
    r"|scelgo|sceglierei|seleziono|opto per|(?:penso|credo|ritengo|direi)(?: che)?(?: sia)?)"
    rf" {FILLER}{LETTER}"
)
# "... Opzione B." as the reply's closing sentence.
CLOSING = _compile(rf"(?:[.!;] |\n)(?:la |l'|the )?{NOUN} {LETTER}(?=[)\]\"'.!]*\Z)")
# A heading, the letter on the next line.
HEADING = _compile(rf"(?m:^)(?:the |la |l')?(?:\w{{2,12}} )?{NOUN}(?: \w{{2,12}})?\n{LETTER}")
# "È vera l'affermazione A": the verdict before the letter.
INVERTED = _compile(
    r"(?<!\w)(?:è|e') (?:corrett[ao]|giust[ao]|ver[ao]|esatt[ao]|veritier[ao])"
    rf"(?: ?:[ \n]?| ){FILLER}{LETTER}"
)
# "Non è A, è B", "not A but B".
CONTRAST = _compile(
    r"(?:(?<!\w)(?:non (?:è|sia)|not|isn't)) (?:(?:la|the|option|opzione) |l'){0,2}"
    r"[(\"']?(?-i:[A-Z])[)\"']?(?: ?[,;.:-] ?| )"
    r"(?:(?:but|ma|bensì)(?: (?:it is|it's|è))?|it is|it's|è|e')"
    rf" {FILLER}(?=[(\"'\[]*(?-i:[A-Z])){LETTER}"
)
# "B è falsa, quindi A." as the reply's end.
CONCLUSION = _compile(
    r"(?:\b(?:quindi|dunque|perciò|allora|therefore|hence|thus|so),? |[.;!,\n] ?(?:but |ma )?"
    rf"(?:it's|it is|è) ){FILLER}(?=[(\"'\[]*(?-i:[A-Z])){LETTER}(?=[)\]\"'.!]*\Z)"
)
STATEMENTS = (LABEL, COPULA, BOXED, CHOOSING, CLOSING, HEADING, INVERTED, CONTRAST, CONCLUSION)
# After these a capital in front of more words is taken for a letter too ("Answer: B The man runs");
# after "I think B ..." it may be the subject of a sentence.
LETTER_EXPECTED = (LABEL, COPULA, BOXED)
VERDICT = _compile(
    r"(?<!\w)[(\"'\[]?(?-i:(?P<letter>[A-Z]))[)\"'\]]? (?:is|seems|è|e'|sembra|sarebbe|would be) "
    r"(?:l'|l'unica |(?:the|only|la|il|quella|sola|my|indeed|clearly|definitely|certainly"
    rf"|sicuramente|chiaramente|certamente|effettivamente) ){{0,3}}{TRUE}(?!\w)"
    rf"(?! (?:(?:that|which|che) (?:is|è) |(?:più|most) )?{FALSE}\b)"
)
# Names that are no letters: "Team B", "B flat", "B. B. King".
NAMED_BEFORE = _compile(
    rf"\b{_words('team group player squadra gruppo vitamina? hepatitis epatite plan piano type')}"
    r" [(\"']?\Z"
)
WORD_BEFORE = re.compile(r"(\w{1,40}) [(\"'\[]?\Z")
NAMED_AFTER = _compile(
    r"(?: |-)?(?:[♭♯#]|(?:flat|sharp|major|minor|maggiore|minore|bemolle|diesis)\b)"
    r"|\. ?(?-i:[A-Z])\. ?\w"
)
NEXT_WORD = re.compile(r"(?:\. ?| )(\w{1,40})")

# Rule 3. `lead` is what may stand before the letter: "Option", "L'opzione", "La", "It's".
WHOLE = _compile(
    r"(?:(?:assistant|assistente|model|bot|ai)(?: ?:[ \n]?|\n))?(?:[-•] )?"
    r"(?:(?:secondo me|rispondo|solo|only|sicuramente|probabilmente|definitely|probably"
    r"|(?:most )?likely)(?: ?[:,])? (?=(?-i:[A-Z])))?"
    r"(?P<lead>(?:it is |it's |è |e' )?(?:the |la |l')?"
    rf"(?:{_words('final correct best')} )?(?P<noun>{NOUN} )?){LETTER}"
)

# Both options judged: "A: falso. B: vero."
JUDGED = _compile(
    rf"(?:{NOUN} )?[(\"']?(?-i:(?P<letter>[A-Z]))[)\"']? ?(?:[:.=-]+|is|è) ?"
    rf"(?:(?P<right>{_YES})|{_NO})(?!\w)"
    rf"|(?:(?P<first>{_YES})|{_NO}) ?: ?(?-i:(?P<named>[A-Z]))(?!\w)"
)
# What follows a letter that is no word of a sentence. After a whole reply's letter a comma is not
# enough: "E, come si vede, ...".
END = _compile(rf"[ \"'>]*(?:\Z|[\n,:;!?<|()\]}}\"]|\.(?!\.)|- |-\Z)|{REASON}")
END_OF_WHOLE = _compile(rf"[ \"'>]*(?:\Z|[\n:!?<|)\]}}\"]|\.(?!\.)|- |-\Z|,(?:\Z|\n))|{REASON}")
PLAIN_LETTERS = frozenset("BCDFGHJKLMNPQRSTUVWXYZ")  # A, E, I, O are words in one of the languages

# Guards.
CLAUSE_END = _compile(
    r"[.!?;:,\n()]| - |\b" + _words("so and but therefore thus hence because since then while "
    "quindi dunque perciò allora ma e mentre perché poiché") + r"\b"
)  # fmt: skip
DENIED_BEFORE = _compile(
    rf"{NOT}|\b(?:{FALSE}|{OTHER})(?: (?:that|che)(?: [\w']{{1,20}}){{0,2}})? ?\Z"
    rf"|\b(?:{FALSE}|{OTHER})(?: \w{{1,20}}){{0,2}} (?:is|è|e') ?\Z"
    rf"|\b{_words('if se whether suppose assuming unless qualora')}\b|{_LEAST}"
    r"|\b(?:opposite of|contrario d)"
    # What somebody else says: "the user thinks", "qualcuno potrebbe dire".
    r"|\b(?:you|some(?:one|body|body else)?|someone else|others|people|many|the user) "
    r"(?:might|may|could|would|thinks?|says?|believes?|claims?)\b"
    r"|\b(?:qualcuno|alcuni|altri|l'utente|si) (?:potrebbe|potrebbero|direbbe|direbbero|pensa"
    r"|pensano|dice|dicono)\b"
)
_CLOSERS = r"[)\]}\"']*"
# An option's text may itself begin with "Se ..." or "Non è ...": these two deny only in lower case,
# with no bracket before them.
DENIED_AFTER = _compile(
    rf"{_CLOSERS} ?(?:[:=-]? ?{FALSE}\b|isn't\b|non (?:è|sia|sarebbe) (?:la |l'|quella )?{TRUE}\b"
    r"|(?:is|was|would be|è|sarebbe|risulta)(?: (?:clearly|definitely|obviously|chiaramente))? ?"
    rf"(?:not\b|n't\b|{FALSE}\b))"
    r"|[\"']?(?-i: non (?:è|sia|sarebbe|può)|,? (?:only |solo )?(?:if|unless|se|a meno che))\b"
    # "A. Falso.", "A (incorrect)", "A - non è corretta", "A. This is wrong", "A: no."
    rf"|[)\]]? ?(?:[.:,(-] ?)?"
    rf"(?:(?:(?:this|that|it|quest[ao])(?: {NOUN})?(?: is|'s| è)?|è|is|{NOUN}) )?"
    rf"(?:(?:(?:is|è) )?{FALSE}|(?:is not|isn't|not|non è|non) (?:the |la |l'|quella )?{TRUE}|no)"
    rf"(?= ?(?:[.!,;:)\n]|\Z)|{REASON})"
)
# A sentence that says of the option before it that the video does not have it: "This is not what
# the video shows", "non si vede".
UNSHOWN = _compile(
    rf"[)\]]? ?(?:[.:,-] ?)?(?:(?:this|that|it|the (?:video|clip|{NOUN})|quest[ao]"
    rf"|(?:il|nel) (?:video|filmato)|l'{NOUN}|la {NOUN})(?: {NOUN})? ?)?"
    r"(?:(?:does|is|was|did) not|doesn't|isn't|wasn't|didn't|non)\b [^.!?:;,\n]{0,30}?"
    r"\b(?:not what|" + _words("shows? shown supported support correspond match happen appear seen "
    "visible depicted depict present mostra mostrato corrisponde corrispondente supportat[ao] "
    "present[ei] accade succede vede visibile appare")
    + r")\b(?: (?:(?:by|in|to) )?(?:this|that|it|the (?:video|clip)|quest[ao]"
    r"|(?:al|nel|dal) video))? ?(?:[.!]|\Z)"
)  # fmt: skip
ASKED = _compile(rf"{_CLOSERS} ?\?")
ASKED_VERDICT = _compile(r"[^.!?\n]{0,80}\?")

# Rule 5. A second letter joined by "or" always counts; one joined by "and", a comma or nothing
# counts if no clause about it follows ("B, and A is wrong").
_SECOND_LEAD = (
    r"(?:l'|(?:" + _words("also anche possibly perhaps maybe forse the la option opzione statement "
    "affermazione risposta answer letter lettera") + r" )){0,3}(?:\\[a-z]{2,8}\{)?[(\"'\[]{0,2}"
)  # fmt: skip
_SECOND_TAIL = r"(?!\w|'\w|-\w|\.\w\.)"
_PAIR_END = (
    rf"(?=[ \"'>]*(?:\Z|[\n.,:;!?<|)\]}}\"/])|{REASON}"
    r"| (?:and|or|e|o|ed|oppure|are|both|sono|entramb[ei])\b)"
)
PAIR = _compile(
    rf"[)\]}}\"'.:]*(?:"
    rf"(?: ?,? ?\(?\b(?:or|oppure|o|che|nor|né|and/or|e/o|vs) | ?[/|] ?){_SECOND_LEAD}"
    rf"(?P<either>(?-i:[B-DF-HJ-NP-Z]){_SECOND_TAIL}|[A-Z]{_SECOND_TAIL}{_PAIR_END})"
    rf"|(?: ?,? ?\(?\b(?:and|ed?) | ?[,&+;] ?| - |-){_SECOND_LEAD}"
    rf"(?P<also>[A-Z]){_SECOND_TAIL}{_PAIR_END}"
    rf"|[ \n](?:[-•] )?\(?(?P<next>(?-i:[A-Z])){_SECOND_TAIL}{_PAIR_END})"
)
# The same seen from the second letter: "A or B is correct", "A is true and B is true".
PAIR_BEFORE = _compile(
    rf"(?<!\w)(?-i:(?P<letter>[A-Z]))[)\]}}\"']*(?: (?:is|è) (?:the |la )?{TRUE},?)? ?"
    r"(?:/|&|\b(?:or|and|o|e|ed|oppure|nor|né)\b) ?"
    r"(?:l'|(?:la|the|option|opzione|statement|affermazione) ){0,3}[(\"'\[]*\Z"
)
EITHER_BEFORE = _compile(r"(?<!\w)(?-i:(?P<letter>[A-Z]))[)\]}\"']*(?:,? (?:or|o|oppure) |/ ?)\Z")
CORRECTION = _compile(
    r"\b" + _words("no wait actually anzi aspetta rather sorry scusa scusate pardon cioè i_mean")
    + r"\b[,.:;! -]{0,3}(?:(?:no|wait|it's|it is|è|la|the|option|opzione)\b[, ]{0,2}){0,3}"
    rf"[(\"']?(?-i:(?P<letter>[A-Z])){_SECOND_TAIL}(?=[ \"']*(?:\Z|[\n.,:;!?)\]]))"
)  # fmt: skip
# Another option's marker: "B) ..." or "Opzione B: ..." on a new line, "(B) ..." inside one.
LISTED = _compile(
    rf"(?:\n(?:[-•] ?)?(?:{NOUN} )?\(?(?=[A-Z][).:]| ?[A-Z] -)|(?<=[.!?;]) (?=[A-Z]\. \w)"
    rf"|[ (](?:{NOUN} )?(?=[A-Z][):] ?\w))(?-i:(?P<letter>[A-Z]))"
)

# Refusals, on lower-case text. What is declined is help, or watching videos at all; "the video"
# counts only with verbs of opening it: "I can't see in the video ..." describes what it shows.
REFUSAL_LENGTH = 600  # characters; a longer reply says more than a refusal
_APOLOGY = (
    r"(?:(?:i'm|i am|we're|we are)(?: (?:very|really|so|truly))? sorry|sorry|my apologies|apologies"
    r"|i apologi[sz]e(?: for [^.,]{1,40})?|unfortunately|mi dispiace(?: molto)?|mi spiace"
    r"|spiacente|purtroppo|chiedo scusa|scusa|scusami)"
)
_NATURE = (
    r"(?:(?:as|since|because|being)(?: i am| i'm)? an? (?:text[- ]based |large )?"
    r"(?:ai|artificial intelligence|language model|llm|assistant|model)[^.,]{0,40}"
    r"|(?:come|in quanto|essendo|poiché sono|sono)(?: solo)?(?: un'?| una)? ?"
    r"(?:ai|ia|intelligenza artificiale|modello|assistente)[^.,]{0,40})"
)
REFUSAL_LEAD = rf"(?:{_APOLOGY}[,.]? ?|(?:but|ma|e|and) |{_NATURE},? ?)*"
_UNABLE_EN = (
    r"(?:i(?: can ?not| can't| could not| couldn't| will not| won't| do not| don't"
    r"| must decline to| have to decline to)|(?:i'm|i am) (?:currently )?(?:unable to|not able to))"
    r"(?: (?:actually|directly|really|currently))?"
    r"(?: have the (?:ability|capability|capacity) to| have access to)?(?: directly)?"
)
_UNABLE_IT = (
    r"(?:non (?:posso|sono in grado di|riesco a|ho la (?:capacità|possibilità) di)"
    r"|sono impossibilitat[oa] a)(?: direttamente)?"
)
_HELP_EN = (
    r"(?:assist|help)(?: you)?(?: (?:with|in|by)\b[^.]{0,80})?[.!]?\Z"
    r"|(?:comply|fulfil+|do that|(?:answer|process|complete|continue with|respond to) "
    r"(?:this|that|your|the) request)\b"
)
_HELP_IT = (
    r"(?:aiutar(?:ti|la|vi|e)|assister(?:ti|la|vi|e)|fornir(?:ti|le|e) assistenza)\b"
    r"|(?:soddisfare|esaudire|completare|elaborare|eseguire|gestire|rispondere a|procedere con"
    r"|accettare) (?:a )?(?:questa|quest'|la tua|la sua|tale|la) ?richiesta"
)
_MEDIA_EN = (
    r"(?:(?:watch|view|see|access|open|play|process|analy[sz]e|interpret|perceive)"
    r"(?:(?:,| or| and|, or) (?:watch|view|see|access|open|play|process|analy[sz]e|interpret))*"
    r" (?:\w+ )?(?:videos|video (?:content|files|clips)|visual content|images|media|multimedia)\b"
    r"|(?:access|open|play|load|download|watch) (?:the|this|that|your) video\b"
    r"(?= ?(?:[.,;!]|\Z|directly|file|you|or|and|so))"
    r"|(?:videos|video (?:content|files|clips)|the video|images)(?=[.,;!]|\Z))"
)
_MEDIA_IT = (
    r"(?:(?:guardare|vedere|visualizzare|visionare|analizzare|elaborare|interpretare|accedere"
    r"|aprire|riprodurre)(?: (?:o|e|né) \w+)? (?:direttamente )?(?:a |ai |i |dei |gli )?"
    r"(?:contenuti |file )?(?:video|filmati|immagini|multimediali|visivi)\b"
    r"|(?:accedere al|aprire il|riprodurre il|caricare il|guardare il) (?:video|filmato)\b"
    r"(?= ?(?:[.,;!]|\Z|direttamente|che hai|e|o)))"
)
REFUSAL_START = re.compile(rf"{REFUSAL_LEAD}(?:i\b|i'|non |sono )|{_APOLOGY}|{_NATURE}")
# No "but ..." that goes on to answer ("but if you describe it" is courtesy), and no reason that
# the video gives ("since it does not show her").
_NO_TURN = (
    r"(?!.*\b(?:but|however|ma|tuttavia|però|although)\b,? "
    r"(?!(?:if|se|i can|i could|i'd|i'm happy|i would|feel|posso|potrei|sarò|sarei|puoi|you can)"
    r"\b))"
    r"(?!.*\b(?:since|because|as|poiché|perché|dato che) (?:the|there|it|no|il|la|lo|non|nel)\b)"
)
REFUSAL = re.compile(
    rf"{REFUSAL_LEAD}(?:{_UNABLE_EN} {_NO_TURN}(?:{_HELP_EN}|{_MEDIA_EN})"
    rf"|{_UNABLE_IT} {_NO_TURN}(?:{_HELP_IT}|{_MEDIA_IT}))"
)
COURTESY = re.compile(
    rf"(?:{_APOLOGY}|{_APOLOGY}[,.]? ?{_NATURE}|{_NATURE})[.,!]?\Z"
    r"|(?:(?:however|but|tuttavia|ma|also),? )?(?:if you|please|let me know|feel free|is there"
    r"|can i help|how can i|i'm here|i am here|i can (?:only )?(?:help|assist|try|offer)"
    r"|i'd be happy|i would be happy"
    r"|thank you|se (?:hai|vuoi|puoi|desideri|mi|ti|ci)|per favore|ti prego|fammi sapere|posso "
    r"(?:però )?(?:aiutart|provare)|potresti|puoi|sono qui|sarò|sarei|c'è altro|grazie)\b"
)

# Replies to a choice that decline to choose (answers.declines).
# "I'm sorry, but based on the video, ..."
_LEAD = (
    rf"{REFUSAL_LEAD}(?:(?:based on|from|given|with|in|judging by|dal|dalla|dall'|in base"
    rf" a|sulla base d)[^.,]{{1,60}},? )?"
)
_ASKS_EN = r"(?:which|what|who|whom|whose|where|when|how|why|whether|if)"
_ASKS_IT = r"(?:quale?|quali|cosa|che|chi|dove|quando|come|perché|se|quant[oaie])"
_ANSWER_EN = r"(?:(?:the|an?|any) )?(?:(?:correct|right|best|exact|definitive|single) )?"
_ANSWER_EN += r"(?:answer|option|choice|one)"
_ANSWER_IT = r"(?:la |una |l')?(?:risposta|opzione|scelta|alternativa)"
_DECLINES_EN = (
    r"(?:(?:i (?:can ?not|can't|could not|couldn't)|(?:i'm|i am) (?:unable|not able) to"
    r"|(?:it(?:'s| is) )?(?:impossible|not possible) to|there(?:'s| is) no way to|cannot|can't"
    r"|unable to)(?: \w+ly)? (?:(?:answer|determine|tell|say|know|decide|choose|conclude)\b"
    rf"|(?:see|identify|establish|infer|confirm|find|select|pick|give|provide|make out) "
    rf"(?:{_ASKS_EN}|{_ANSWER_EN})\b)"
    r"|(?:it|this|that|the (?:correct |right )?answer|the question)(?: can ?not| can't|"
    r" could not) be (?:answered|determined|told|said|known|decided|established|inferred)\b"
    rf"|i (?:do not|don't) know(?= ?[.,!]| ?\Z| (?:{_ASKS_EN}|{_ANSWER_EN}|this|that|it)\b)"
    rf"|(?:i'm |i am )?not (?:sure|certain)(?= ?[.!]| ?\Z| (?:about|of|{_ASKS_EN})\b)"
    r"|(?:i have )?no idea\b"
    rf"|(?:it(?:'s| is) )?(?:not clear|unclear)(?= ?[.]| ?\Z| (?:from|{_ASKS_EN})\b)"
    r"|(?:there(?:'s| is| are)|i have|i (?:do not|don't) have|(?:the|this) [^.,]{1,60}"
    r" (?:does not|doesn't|do not|don't) (?:have|give|provide|contain|offer))?"
    r" ?(?:not |no |in)?(?:enough|sufficient) (?:information|evidence|context|detail)s?\b)"
)
_DECLINES_IT = (
    r"(?:(?:non (?:lo )?(?:posso|riesco a|sono in grado di|è possibile|si può|si riesce a"
    r"|saprei)|(?:è )?impossibile|sono impossibilitat[oa] a) (?:(?:da|a) )?"
    r"(?:(?:rispondere|dir|determinar|stabilir|saper|capir|sceglier|decider)\w*"
    r"|(?:identificar|individuar|indicar|trovar|dar|fornir|veder)\w*"
    rf" (?:{_ASKS_IT}|{_ANSWER_IT}))\b"
    rf"|non lo (?:so|saprei)\b|non so(?= ?[.,!]| ?\Z| (?:rispondere|dire|scegliere|{_ASKS_IT})\b)"
    r"|non saprei(?= ?[.,!]| ?\Z)|non ne ho idea\b|nessuna idea\b"
    r"|(?:non (?:ho|ci sono|vi sono|c'è) )?(?:abbastanza|sufficienti) (?:informazioni|elementi)\b"
    r"|(?:non (?:ho|ci sono|vi sono) )?informazioni (?:in|non )?sufficienti\b)"
)
# A sentence that goes on to an answer of its own; "but if you ..." does not (COURTESY).
_GUESS = (
    r"(?!.*\b(?:probabl[ey]|likely|maybe|perhaps|guess|i think|i believe|i'd say|seems|appears"
    r"|forse|probabilmente|credo|penso|direi|sembra)\b)"
    r"(?!.*\b(?:but|however|ma|tuttavia|però|although)\b,? (?!(?:if|se)\b))"
)
ABSTAINS = re.compile(rf"{_LEAD}{_GUESS}(?:{_DECLINES_EN}|{_DECLINES_IT})")
DENIES = re.compile(
    rf"{_GUESS}.*(?:n't|\b(?:not|no|cannot|nothing|without|non|nessun[oa]?|nulla|niente|senza))\b"
)
# An option that itself says that nothing can be known: a reply that says so may mean this one.
UNKNOWABLE = re.compile(
    rf"{_DECLINES_EN}|{_DECLINES_IT}|\b(?:unknown|undetermined|impossibile|impossible|(?:un|in)certain|incerto)\b"
    r"|\b(?:can ?not|can't|non (?:può|possono|si può|è possibile)|not possible)\b"
)
