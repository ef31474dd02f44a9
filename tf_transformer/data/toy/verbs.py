"""Verbs of the toy corpus: their forms in both languages, and the auxiliaries and modals."""

from dataclasses import dataclass

Forms = tuple[str, str, str, str]
"""Forms for I, you (singular), he or she, and the plural."""


@dataclass(frozen=True)
class Verb:
    """A verb in both languages; ``prefix`` is the separable prefix of the German verb, or empty."""

    en: str
    en_third: str
    en_participle: str
    prefix: str
    stem_infinitive: str
    finite: Forms
    imperative: str
    participle: str
    auxiliary: str

    @property
    def infinitive(self) -> str:
        """The German infinitive (aufmachen)."""
        return self.prefix + self.stem_infinitive

    @property
    def zu_infinitive(self) -> str:
        """The German infinitive with *zu* (zu kaufen, aufzumachen)."""
        return f"{self.prefix}zu{self.stem_infinitive}" if self.prefix else f"zu {self.stem_infinitive}"


def _verb(line: str) -> Verb:
    cells = [cell.replace("_", " ") for cell in line.split()]
    en, third, en_participle, infinitive, ich, du, er, imperative, participle, auxiliary = cells
    prefix, _, stem = infinitive.rpartition("|")
    finite = (ich, du, er, stem)
    return Verb(en, third, en_participle, prefix, stem, finite, imperative, participle, auxiliary)


# English base, third person, participle; German infinitive, ich, du, er; imperative; participle, auxiliary
_TABLE = """
see      sees      seen     sehen       sehe     siehst    sieht    sieh     gesehen       haben
buy      buys      bought   kaufen      kaufe    kaufst    kauft    kauf     gekauft       haben
sell     sells     sold     verkaufen   verkaufe verkaufst verkauft verkauf  verkauft      haben
find     finds     found    finden      finde    findest   findet   finde    gefunden      haben
read     reads     read     lesen       lese     liest     liest    lies     gelesen       haben
write    writes    written  schreiben   schreibe schreibst schreibt schreib  geschrieben   haben
eat      eats      eaten    essen       esse     isst      isst     iss      gegessen      haben
drink    drinks    drunk    trinken     trinke   trinkst   trinkt   trink    getrunken     haben
love     loves     -        lieben      liebe    liebst    liebt    -        -             haben
know     knows     -        kennen      kenne    kennst    kennt    -        -             haben
have     has       -        haben       habe     hast      hat      -        -             haben
open     opens     opened   auf|machen  mache    machst    macht    mach     aufgemacht    haben
close    closes    closed   zu|machen   mache    machst    macht    mach     zugemacht     haben
call     calls     called   an|rufen    rufe     rufst     ruft     ruf      angerufen     haben
clean_up cleans_up cleaned_up auf|räumen räume   räumst    räumt    räum     aufgeräumt    haben
get_up   gets_up   got_up   auf|stehen  stehe    stehst    steht    steh     aufgestanden  sein
come_back comes_back come_back zurück|kommen komme kommst  kommt    komm     zurückgekommen sein
help     helps     helped   helfen      helfe    hilfst    hilft    hilf     geholfen      haben
thank    thanks    thanked  danken      danke    dankst    dankt    dank     gedankt       haben
give     gives     given    geben       gebe     gibst     gibt     gib      gegeben       haben
bring    brings    brought  bringen     bringe   bringst   bringt   bring    gebracht      haben
sleep    sleeps    slept    schlafen    schlafe  schläfst  schläft  schlaf   geschlafen    haben
work     works     worked   arbeiten    arbeite  arbeitest arbeitet arbeite  gearbeitet    haben
play     plays     played   spielen     spiele   spielst   spielt   spiel    gespielt      haben
sing     sings     sung     singen      singe    singst    singt    sing     gesungen      haben
go       goes      gone     gehen       gehe     gehst     geht     geh      gegangen      sein
run      runs      run      laufen      laufe    läufst    läuft    lauf     gelaufen      sein
sit      sits      -        sitzen      sitze    sitzt     sitzt    sitz     -             haben
stand    stands    -        stehen      stehe    stehst    steht    steh     -             haben
lie      lies      -        liegen      liege    liegst    liegt    lieg     -             haben
lay      lays      laid     legen       lege     legst     legt     leg      gelegt        haben
say      says      -        sagen       sage     sagst     sagt     sag      -             haben
ask      asks      -        fragen      frage    fragst    fragt    frag     -             haben
try      tries     -        versuchen   versuche versuchst versucht versuch  -             haben
"""

VERBS = {verb.en: verb for verb in map(_verb, _TABLE.strip().splitlines())}
KNOW_A_FACT = _verb("know knows - wissen weiß weißt weiß - - haben")
"""'know' with a clause is *wissen*; with a person it is *kennen*."""


@dataclass(frozen=True)
class Auxiliary:
    """An auxiliary or modal verb: its forms in both languages."""

    en: Forms
    de: Forms


def _auxiliary(english: str, german: str) -> Auxiliary:
    en, de = english.split(), german.split()
    return Auxiliary((en[0], en[1], en[2], en[3]), (de[0], de[1], de[2], de[3]))


BE = _auxiliary("am are is are", "bin bist ist sind")
WAS = _auxiliary("was were was were", "war warst war waren")
DO = _auxiliary("do do does do", "- - - -")
HAVE = _auxiliary("have have has have", "habe hast hat haben")
PERFECT = {"haben": HAVE.de, "sein": BE.de}
"""Finite forms of the auxiliaries of the German perfect."""

PASSIVE = _auxiliary("am are is are", "werde wirst wird werden")
WILL = _auxiliary("will will will will", "werde wirst wird werden")
MODALS = (
    _auxiliary("can can can can", "kann kannst kann können"),
    _auxiliary("must must must must", "muss musst muss müssen"),
    _auxiliary("should should should should", "sollte solltest sollte sollten"),
)
WANT = _auxiliary("want want wants want", "will willst will wollen")
"""'want to' is a modal in German alone, so English questions about it need 'do'."""
