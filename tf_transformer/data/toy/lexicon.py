"""Nouns, adjectives, determiners, pronouns and prepositions of the toy corpus, as tables to read by eye.

Each entry exists once, so entries compare by identity (``eq=False``).
"""

from dataclasses import dataclass
from enum import IntEnum


class Case(IntEnum):
    """German cases, as row numbers of the ending tables."""

    NOMINATIVE = 0
    ACCUSATIVE = 1
    DATIVE = 2
    GENITIVE = 3


PLURAL = 3
"""Column of the plural in the ending tables; the singular columns are those of ``GENDERS``."""

GENDERS = "mfn"
"""Masculine, feminine, neuter: the first three columns of the ending tables."""

Endings = tuple[tuple[str, ...], ...]
"""Rows are cases; columns are masculine, feminine, neuter and plural."""


def _endings(*rows: str) -> Endings:
    return tuple(tuple("" if cell == "-" else cell for cell in row.split()) for row in rows)


#                    nominative       accusative       dative           genitive
#                    m  f  n  pl      m  f  n  pl      m  f  n  pl      m  f  n  pl
_DER = _endings("    er ie as ie", "  en ie as ie", "  em er em en", "  es er es er")
_DIESER = _endings(" er e  es e", "   en e  es e", "   em er em en", "  es er es er")
_EIN = _endings("    -  e  -  e", "   en e  -  e", "   em er em en", "  es er es er")
_NONE = _endings("   -  -  -  -", "   -  -  -  -", "   -  -  -  -", "   -  -  -  -")
_WEAK = _endings("   e  e  e  en", "  en e  e  en", "  en en en en", "  en en en en")
_MIXED = _endings("  er e  es en", "  en e  es en", "  en en en en", "  en en en en")
_STRONG = _endings(" er e  es e", "   en e  es e", "   em er em en", "  en er en er")


@dataclass(frozen=True, eq=False)
class Determiner:
    """An English determiner, its German stem, its endings and those of an adjective after it."""

    en: str
    en_plural: str
    stem: str
    endings: Endings
    adjective_endings: Endings


THE = Determiner("the", "the", "d", _DER, _WEAK)
THIS = Determiner("this", "these", "dies", _DIESER, _WEAK)
EVERY = Determiner("every", "", "jed", _DIESER, _WEAK)
WHICH = Determiner("which", "which", "welch", _DIESER, _WEAK)
A = Determiner("a", "", "ein", _EIN, _MIXED)
NO = Determiner("a", "", "kein", _EIN, _MIXED)
"""The German side of 'not ... a': English keeps its article, German says *kein*."""
POSSESSIVES = tuple(
    Determiner(en, en, stem, _EIN, _MIXED)
    for en, stem in (("my", "mein"), ("your", "dein"), ("his", "sein"), ("her", "ihr"), ("our", "unser"))
)
BARE = Determiner("", "", "", _NONE, _STRONG)
QUANTITIES = (
    Determiner("", "two", "zwei", _NONE, _STRONG),
    Determiner("", "three", "drei", _NONE, _STRONG),
    Determiner("", "many", "viel", _DIESER, _STRONG),
)
DEFINITES = (THE,) * 5 + (THIS,) + POSSESSIVES
"""Determiners of a known person or thing, of which the plain article is the most frequent."""


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective with its comparative in both languages."""

    en: str
    en_comparative: str
    de: str
    de_comparative: str

    @property
    def stem(self) -> str:
        """The German form that takes an ending (müde, müd-er)."""
        return self.de.removesuffix("e")


def _adjectives(table: str) -> dict[str, Adjective]:
    rows = [[cell.replace("_", " ") for cell in line.split()] for line in table.strip().splitlines()]
    return {row[0]: Adjective(*row) for row in rows}


ADJECTIVES = _adjectives("""
    old        older           alt         älter
    young      younger         jung        jünger
    big        bigger          groß        größer
    small      smaller         klein       kleiner
    new        newer           neu         neuer
    cheap      cheaper         billig      billiger
    beautiful  more_beautiful  schön       schöner
    friendly   -               freundlich  -
    happy      -               glücklich   -
    tired      -               müde        -
    black      -               schwarz     -
    white      -               weiß        -
    red        -               rot         -
    good       -               gut         -
    cold       -               kalt        -
    hot        -               heiß        -
""")


MOODS = tuple(ADJECTIVES[name] for name in ("friendly", "happy", "tired"))


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun in both languages, with the adjectives that suit it."""

    en: str
    en_plural: str
    de: str
    de_plural: str
    gender: str
    genitive: str
    adjectives: tuple[Adjective, ...]

    @property
    def is_weak(self) -> bool:
        """Whether the noun takes -n outside the nominative (der Junge, den Jungen)."""
        return self.gender == "m" and self.genitive == self.de + "n"

    def german(self, case: Case, plural: bool) -> str:
        """The German form of a case and a number."""
        if plural:
            needs_n = case == Case.DATIVE and self.de_plural[-1] not in "ns"
            return self.de_plural + "n" if needs_n else self.de_plural
        if case == Case.GENITIVE or (self.is_weak and case != Case.NOMINATIVE):
            return self.genitive
        return self.de


def _nouns(adjectives: str, table: str) -> tuple[Noun, ...]:
    suited = tuple(ADJECTIVES[name] for name in adjectives.split())
    rows = [line.split() for line in table.strip().splitlines()]
    return tuple(Noun(row[0], row[1], row[2], row[3], row[4], row[5], suited) for row in rows)


# English  plural      German    plural      gender, genitive singular
ADULTS = _nouns(
    "old young big small good friendly happy tired",
    """
    man      men         Mann      Männer      m Mannes
    woman    women       Frau      Frauen      f Frau
    teacher  teachers    Lehrer    Lehrer      m Lehrers
    doctor   doctors     Arzt      Ärzte       m Arztes
    friend   friends     Freund    Freunde     m Freundes
    aunt     aunts       Tante     Tanten      f Tante
    sister   sisters     Schwester Schwestern  f Schwester
    brother  brothers    Bruder    Brüder      m Bruders
""",
)
CHILDREN = _nouns(
    "big small friendly happy tired",
    """
    child    children    Kind      Kinder      n Kindes
    boy      boys        Junge     Jungen      m Jungen
    girl     girls       Mädchen   Mädchen     n Mädchens
""",
)
ANIMALS = _nouns(
    "old young big small black white",
    """
    dog      dogs        Hund      Hunde       m Hundes
    cat      cats        Katze     Katzen      f Katze
    horse    horses      Pferd     Pferde      n Pferdes
""",
)
FOOD = _nouns(
    "big small cheap good",
    """
    apple    apples      Apfel     Äpfel       m Apfels
    egg      eggs        Ei        Eier        n Eies
    pear     pears       Birne     Birnen      f Birne
""",
)
DRINKS = _nouns(
    "cold hot good",
    """
    milk     -           Milch     -           f Milch
    water    -           Wasser    -           n Wassers
    coffee   -           Kaffee    -           m Kaffees
""",
)
TEXTS = _nouns(
    "old new small big beautiful good",
    """
    book     books       Buch      Bücher      n Buches
    letter   letters     Brief     Briefe      m Briefes
""",
)
BELONGINGS = _nouns(
    "old new small big red black beautiful cheap",
    """
    key      keys        Schlüssel Schlüssel   m Schlüssels
    bag      bags        Tasche    Taschen     f Tasche
    coat     coats       Mantel    Mäntel      m Mantels
    car      cars        Auto      Autos       n Autos
""",
)
FURNITURE = _nouns(
    "old new small big white red cheap",
    """
    table    tables      Tisch     Tische      m Tisches
    chair    chairs      Stuhl     Stühle      m Stuhles
    bed      beds        Bett      Betten      n Bettes
""",
)
OPENINGS = _nouns(
    "old new small big white red",
    """
    door     doors       Tür       Türen       f Tür
    window   windows     Fenster   Fenster     n Fensters
""",
)
PLACES = _nouns(
    "old new small big beautiful",
    """
    house    houses      Haus      Häuser      n Hauses
    garden   gardens     Garten    Gärten      m Gartens
    kitchen  kitchens    Küche     Küchen      f Küche
    room     rooms       Zimmer    Zimmer      n Zimmers
    city     cities      Stadt     Städte      f Stadt
""",
)
PEOPLE = ADULTS + CHILDREN
STRANGERS = tuple(noun for noun in PEOPLE if noun.en in ("man", "woman", "boy", "girl"))
"""People who take no possessive."""

PORTABLE = TEXTS + BELONGINGS[:3]
GOODS = TEXTS + BELONGINGS + FURNITURE
ROOMS = tuple(noun for noun in PLACES if noun.en in ("house", "kitchen", "room"))
NOUNS = PEOPLE + ANIMALS + FOOD + DRINKS + GOODS + OPENINGS + PLACES


@dataclass(frozen=True, eq=False)
class Pronoun:
    """A personal pronoun; ``agreement`` is its column of the verb tables (I, you, he/she, we/they)."""

    english: str
    english_object: str
    agreement: int
    forms: tuple[str, str, str]

    def german(self, case: Case) -> str:
        """The German form of a case (there is no genitive)."""
        return self.forms[case]


PRONOUNS = (
    Pronoun("I", "me", 0, ("ich", "mich", "mir")),
    Pronoun("you", "you", 1, ("du", "dich", "dir")),
    Pronoun("he", "him", 2, ("er", "ihn", "ihm")),
    Pronoun("she", "her", 2, ("sie", "sie", "ihr")),
    Pronoun("we", "us", 3, ("wir", "uns", "uns")),
    Pronoun("they", "them", 3, ("sie", "sie", "ihnen")),
)
