"""Noun phrases and prepositional phrases in both languages."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tf_transformer.data.toy.lexicon import GENDERS, PLURAL, Adjective, Case, Determiner, Noun


class Pair(NamedTuple):
    """The same words in English and in German."""

    en: str
    de: str


class Nominal(Protocol):
    """What can be the subject or the object of a clause."""

    @property
    def english(self) -> str:
        """The English words of a subject."""

    @property
    def english_object(self) -> str:
        """The English words of an object."""

    @property
    def agreement(self) -> int:
        """Column of the verb tables that agrees with this subject."""

    def german(self, case: Case) -> str:
        """The German words of a case."""


def join(*parts: str) -> str:
    """Joins the non-empty parts with single spaces."""
    return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class NounPhrase:
    """A determiner, an adjective if any, and a noun that agree."""

    determiner: Determiner
    noun: Noun
    adjective: Adjective | None = None
    plural: bool = False

    @property
    def english(self) -> str:
        """The English words: 'an old man', 'these houses'."""
        adjective = self.adjective.en if self.adjective else ""
        noun = self.noun.en_plural if self.plural else self.noun.en
        determiner = self.determiner.en_plural if self.plural else self.determiner.en
        if determiner == "a" and (adjective or noun)[0] in "aeiou":
            determiner = "an"
        return join(determiner, adjective, noun)

    @property
    def english_object(self) -> str:
        """The English words, which are those of the subject."""
        return self.english

    @property
    def agreement(self) -> int:
        """Third person, singular or plural."""
        return 3 if self.plural else 2

    def german(self, case: Case) -> str:
        """The German words of a case: 'dem alten Mann'."""
        column = PLURAL if self.plural else GENDERS.index(self.noun.gender)
        determiner = self.determiner.stem + self.determiner.endings[case][column]
        adjective = ""
        if self.adjective:
            adjective = self.adjective.stem + self.determiner.adjective_endings[case][column]
        return join(determiner, adjective, self.noun.german(case, self.plural))

    def relative(self, case: Case) -> str:
        """The German relative pronoun for this noun (nominative or accusative)."""
        column = PLURAL if self.plural else GENDERS.index(self.noun.gender)
        return (("der", "die", "das", "die"), ("den", "die", "das", "die"))[case][column]


@dataclass(frozen=True)
class Genitive:
    """A thing and its owner: 'the house of the doctor', 'das Haus des Arztes'."""

    thing: NounPhrase
    owner: NounPhrase

    @property
    def english(self) -> str:
        """The English words."""
        return join(self.thing.english, "of", self.owner.english)

    @property
    def english_object(self) -> str:
        """The English words, which are those of the subject."""
        return self.english

    @property
    def agreement(self) -> int:
        """The agreement of the thing."""
        return self.thing.agreement

    def german(self, case: Case) -> str:
        """The German words of a case; the owner stays in the genitive."""
        return join(self.thing.german(case), self.owner.german(Case.GENITIVE))


@dataclass(frozen=True)
class Coordination:
    """Two nominals joined with 'and': a plural."""

    first: Nominal
    second: Nominal
    agreement: int = 3

    @property
    def english(self) -> str:
        """The English words of a subject."""
        return join(self.first.english, "and", self.second.english)

    @property
    def english_object(self) -> str:
        """The English words of an object."""
        return join(self.first.english_object, "and", self.second.english_object)

    def german(self, case: Case) -> str:
        """The German words of a case."""
        return join(self.first.german(case), "und", self.second.german(case))


CONTRACTIONS = (
    ("in dem ", "im "),
    ("in das ", "ins "),
    ("von dem ", "vom "),
    ("zu dem ", "zum "),
    ("zu der ", "zur "),
)
"""Preposition and article that German writes as one word."""


@dataclass(frozen=True)
class Preposition:
    """A preposition with the case that it governs in this use."""

    en: str
    de: str
    case: Case

    def phrase(self, nominal: Nominal) -> Pair:
        """The preposition with its object: 'in the garden', 'im Garten'."""
        german = join(self.de, nominal.german(self.case))
        for apart, contracted in CONTRACTIONS:
            if german.startswith(apart):
                german = contracted + german.removeprefix(apart)
        return Pair(join(self.en, nominal.english_object), german)


IN = Preposition("in", "in", Case.DATIVE)
INTO = Preposition("into", "in", Case.ACCUSATIVE)
OUT_OF = Preposition("out of", "aus", Case.DATIVE)
THROUGH = Preposition("through", "durch", Case.ACCUSATIVE)
WITH = Preposition("with", "mit", Case.DATIVE)
WITHOUT = Preposition("without", "ohne", Case.ACCUSATIVE)
FOR = Preposition("for", "für", Case.ACCUSATIVE)
TO = Preposition("to", "zu", Case.DATIVE)
BY = Preposition("by", "von", Case.DATIVE)
ON = Preposition("on", "auf", Case.DATIVE)
UNDER = Preposition("under", "unter", Case.DATIVE)
BEHIND = Preposition("behind", "hinter", Case.DATIVE)
NEXT_TO = Preposition("next to", "neben", Case.DATIVE)
AT_REST = (ON, UNDER, BEHIND, NEXT_TO)
"""Two-way prepositions for a location."""
IN_MOTION = tuple(Preposition(each.en, each.de, Case.ACCUSATIVE) for each in AT_REST)
"""Two-way prepositions for a direction."""
