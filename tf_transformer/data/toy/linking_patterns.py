"""Sentence patterns with 'to be', comparison, coordination and possession."""

from random import Random

from tf_transformer.data.toy import choices as pick
from tf_transformer.data.toy import lexicon as lex
from tf_transformer.data.toy.clauses import IS, WAS_, Clause, Predicate, clause, present
from tf_transformer.data.toy.lexicon import Adjective, Case, Noun
from tf_transformer.data.toy.phrases import IN, Coordination, Genitive, NounPhrase, Pair, join
from tf_transformer.data.toy.sentences import sentence, tell
from tf_transformer.data.toy.verbs import VERBS

_DESCRIBED: tuple[tuple[Noun, ...], ...] = (
    lex.PEOPLE,
    lex.ANIMALS,
    lex.GOODS + lex.OPENINGS,
    lex.PLACES,
    lex.PLACES,
    lex.FOOD,
)
_SCALES = (("old", "young", "new"), ("big", "small"), ("black", "white", "red"))
"""Adjectives of which a sentence says only one of the same noun."""

_KIN = tuple(noun for noun in lex.ADULTS if noun.en in ("friend", "aunt", "sister", "brother"))
_CONTAINED = lex.FURNITURE + lex.OPENINGS + lex.BELONGINGS[:2] + lex.TEXTS[:1]


def _described(rng: Random) -> tuple[NounPhrase, Adjective]:
    """A definite noun phrase and an adjective for it."""
    phrase = pick.noun_phrase(rng, rng.choice(_DESCRIBED), plural=0.35, adjective=0.0)
    return phrase, rng.choice(phrase.noun.adjectives)


def description(rng: Random) -> Pair:
    """These houses are very old."""
    phrase, adjective = _described(rng)
    english, german = rng.choice((("", ""), ("very ", "sehr ")))
    return sentence(Clause(phrase, IS, english + adjective.en, german + adjective.de).statement())


def strong_subject(rng: Random) -> Pair:
    """Old houses are beautiful."""
    phrase = pick.bare_plural(rng, rng.choice(_DESCRIBED))
    said = phrase.adjective.en if phrase.adjective else ""
    scale = next((scale for scale in _SCALES if said in scale), (said,))
    adjective = rng.choice([each for each in phrase.noun.adjectives if each.en not in scale])
    return sentence(Clause(phrase, IS, adjective.en, adjective.de).statement())


def not_description(rng: Random) -> Pair:
    """My aunt is not tired."""
    phrase, adjective = _described(rng)
    return sentence(Clause(phrase, IS, adjective.en, place=adjective.de, negated=True).statement())


def pronoun_description(rng: Random) -> Pair:
    """We are very happy today."""
    adjective = rng.choice(lex.MOODS)
    english, german = rng.choice((("", ""), ("very ", "sehr ")))
    time_en, time_de = rng.choice((("today", "heute"), ("now", "jetzt"), ("often", "oft"), ("always", "immer")))
    if time_en in ("often", "always"):
        words = join(time_en, english + adjective.en)
    else:
        words = join(english + adjective.en, time_en)
    german = join(time_de, german + adjective.de)
    return sentence(Clause(rng.choice((*lex.PRONOUNS, pick.person(rng))), IS, words, german).statement())


def comparison(rng: Random) -> Pair:
    """The dog is older than the cat."""
    nouns = rng.choice(_DESCRIBED)
    first = pick.noun_phrase(rng, nouns, adjective=0.0)
    other = pick.noun_phrase(rng, nouns, adjective=0.4)
    adjective = rng.choice([each for each in first.noun.adjectives if each.en_comparative != "-"])
    english = join(adjective.en_comparative, "than", other.english)
    german = join(adjective.de_comparative, "als", other.german(Case.NOMINATIVE))
    return sentence(Clause(first, IS, english, german).statement())


def equality(rng: Random) -> Pair:
    """The boy is as big as his brother."""
    nouns = rng.choice(_DESCRIBED)
    first = pick.noun_phrase(rng, nouns, adjective=0.0)
    other = pick.noun_phrase(rng, nouns, adjective=0.4)
    adjective = rng.choice(first.noun.adjectives)
    english = join("as", adjective.en, "as", other.english)
    german = join("so", adjective.de, "wie", other.german(Case.NOMINATIVE))
    return sentence(Clause(first, IS, english, german).statement())


def past_place(rng: Random) -> Pair:
    """She was in the garden yesterday."""
    where = IN.phrase(pick.place(rng))
    return sentence(Clause(pick.subject(rng), WAS_, f"{where.en} yesterday", "gestern", where.de).statement())


def existence(rng: Random) -> Pair:
    """There are two chairs in the kitchen."""
    what = rng.choice((pick.indefinite, pick.counted))(rng, _CONTAINED)
    where = IN.phrase(pick.place(rng))
    english = join("there", "are" if what.plural else "is", what.english, where.en)
    return sentence(Pair(english, join(where.de, "gibt es", what.german(Case.ACCUSATIVE))))


def two_subjects(rng: Random) -> Pair:
    """The man and his sister sell the car."""
    predicate = pick.short_action(rng)
    both = Coordination(pick.person(rng), pick.noun_phrase(rng, lex.PEOPLE, adjective=0.2))
    return sentence(clause(both, present(predicate.verb), predicate).statement())


def two_accusatives(rng: Random) -> Pair:
    """The girl eats an apple and a small pear."""
    verb, nouns = rng.choice((*pick.TRANSITIVE[1:4], pick.TRANSITIVE[-1]))
    return tell(rng, pick.with_object(verb, Coordination(pick.thing(rng, nouns), pick.thing(rng, nouns))))


def _owned(rng: Random, nouns: tuple[Noun, ...]) -> Genitive:
    thing = pick.noun_phrase(rng, nouns, (lex.THE,), 0.2, 0.25)
    return Genitive(thing, pick.noun_phrase(rng, lex.PEOPLE, plural=0.2))


def owner_of_subject(rng: Random) -> Pair:
    """The friend of the old teacher opens the door."""
    predicate = pick.short_action(rng)
    return sentence(clause(_owned(rng, _KIN), present(predicate.verb), predicate).statement())


def owner_of_object(rng: Random) -> Pair:
    """The boy finds the keys of his aunt."""
    verb = VERBS[rng.choice(("see", "find", "sell"))]
    return tell(rng, pick.with_object(verb, _owned(rng, lex.TEXTS + lex.BELONGINGS)))


def owner_of_place(rng: Random) -> Pair:
    """We work in the garden of the doctor."""
    where = IN.phrase(_owned(rng, lex.PLACES[:2]))
    return tell(rng, Predicate(rng.choice(pick.ALONE), where.en, place=where.de))
