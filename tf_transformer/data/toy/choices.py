"""Random noun phrases and predicates: the material that the sentence patterns arrange."""

from collections.abc import Callable, Sequence
from random import Random

from tf_transformer.data.toy import lexicon as lex
from tf_transformer.data.toy.clauses import Predicate, VerbGroup, modal, perfect, present
from tf_transformer.data.toy.lexicon import Case, Determiner, Noun
from tf_transformer.data.toy.phrases import (
    BEHIND,
    IN,
    IN_MOTION,
    INTO,
    NEXT_TO,
    ON,
    OUT_OF,
    THROUGH,
    Nominal,
    NounPhrase,
)
from tf_transformer.data.toy.verbs import MODALS, VERBS, WANT, Verb

SPEAKERS = (*lex.PRONOUNS, *lex.PRONOUNS[:2], *lex.PRONOUNS[:2])
"""Pronouns as subjects, 'I' and 'you' more often, because their verb forms are not those of a noun."""

BuildPredicate = Callable[[Random], Predicate]

ALONE = tuple(VERBS[name] for name in ("sleep", "work", "play", "sing"))
MOTION = tuple(VERBS[name] for name in ("go", "run"))
SEPARABLE_ALONE = tuple(VERBS[name] for name in ("get up", "come back"))
DATIVE = tuple(VERBS[name] for name in ("help", "thank"))
GIVING = tuple(VERBS[name] for name in ("give", "bring"))
_OBJECTS: tuple[tuple[str, tuple[Noun, ...]], ...] = (
    ("see", lex.PEOPLE + lex.ANIMALS + lex.GOODS + lex.PLACES[:1]),
    ("buy", lex.GOODS + lex.FOOD),
    ("sell", lex.GOODS + lex.FOOD),
    ("find", lex.GOODS + lex.ANIMALS),
    ("read", lex.TEXTS),
    ("write", lex.TEXTS),
    ("eat", lex.FOOD),
)
TRANSITIVE = tuple((VERBS[name], nouns) for name, nouns in _OBJECTS)
"""Verbs of action with the nouns that can be their objects."""
PASSIVE = TRANSITIVE[1:]
KEEPING = (*TRANSITIVE, (VERBS["love"], lex.PEOPLE + lex.ANIMALS), (VERBS["know"], lex.PEOPLE))
"""The same with the verbs of state."""
SEPARABLE = (
    (VERBS["open"], lex.OPENINGS + lex.TEXTS + lex.BELONGINGS[1:2]),
    (VERBS["close"], lex.OPENINGS + lex.BELONGINGS[1:2]),
    (VERBS["call"], lex.PEOPLE),
    (VERBS["clean up"], lex.ROOMS),
)
_POSTURES = ((VERBS["sit"], (ON, NEXT_TO, BEHIND)), (VERBS["stand"], (NEXT_TO, BEHIND)))
GIFTS = lex.TEXTS + lex.BELONGINGS[:3] + lex.FOOD


def noun_phrase(
    rng: Random,
    nouns: Sequence[Noun],
    determiners: Sequence[Determiner] = lex.DEFINITES,
    plural: float = 0.25,
    adjective: float = 0.4,
) -> NounPhrase:
    """A noun phrase; ``plural`` and ``adjective`` are probabilities."""
    noun = rng.choice(nouns)
    determiner = rng.choice(determiners)
    if determiner in lex.POSSESSIVES and noun in lex.STRANGERS:
        determiner = lex.THE
    is_plural = rng.random() < plural
    quality = rng.choice(noun.adjectives) if rng.random() < adjective else None
    return NounPhrase(determiner, noun, quality, is_plural)


def indefinite(rng: Random, nouns: Sequence[Noun], adjective: float = 0.5) -> NounPhrase:
    """A singular noun phrase with 'a'."""
    return noun_phrase(rng, nouns, (lex.A,), 0.0, adjective)


def bare_plural(rng: Random, nouns: Sequence[Noun], adjective: float = 1.0) -> NounPhrase:
    """A plural noun phrase without a determiner."""
    return noun_phrase(rng, nouns, (lex.BARE,), 1.0, adjective)


def counted(rng: Random, nouns: Sequence[Noun]) -> NounPhrase:
    """A plural noun phrase with a number or 'many'."""
    return noun_phrase(rng, nouns, lex.QUANTITIES, 1.0, 0.6)


def drink(rng: Random, adjective: float = 0.7) -> NounPhrase:
    """A mass noun without a determiner, mostly with an adjective."""
    return noun_phrase(rng, lex.DRINKS, (lex.BARE,), 0.0, adjective)


def thing(rng: Random, nouns: Sequence[Noun]) -> NounPhrase:
    """A noun phrase for an object: definite or indefinite."""
    return indefinite(rng, nouns) if rng.random() < 0.35 else noun_phrase(rng, nouns)


def person(rng: Random) -> NounPhrase:
    """A definite noun phrase for one or more people."""
    return noun_phrase(rng, lex.PEOPLE)


def subject(rng: Random) -> Nominal:
    """A subject: mostly definite people, else a pronoun or an indefinite person."""
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(SPEAKERS)
    return indefinite(rng, lex.PEOPLE) if kind < 0.53 else person(rng)


def place(rng: Random) -> NounPhrase:
    """One definite place."""
    return noun_phrase(rng, lex.PLACES, (lex.THE, lex.THE, *lex.POSSESSIVES[:2]), 0.0, 0.3)


def furniture(rng: Random) -> NounPhrase:
    """One definite piece of furniture."""
    return noun_phrase(rng, lex.FURNITURE, (lex.THE, lex.THE, *lex.POSSESSIVES[:2]), 0.0, 0.3)


def with_object(verb: Verb, nominal: Nominal, case: Case = Case.ACCUSATIVE) -> Predicate:
    """A verb and its object."""
    return Predicate(verb, nominal.english_object, nominal.german(case))


def acting(rng: Random) -> Predicate:
    """A verb of action with an accusative object."""
    verb, nouns = rng.choice(TRANSITIVE)
    return with_object(verb, thing(rng, nouns))


def acting_on_known(rng: Random) -> Predicate:
    """A verb of action with a definite accusative object."""
    verb, nouns = rng.choice(TRANSITIVE)
    return with_object(verb, noun_phrase(rng, nouns))


def alone(rng: Random) -> Predicate:
    """An intransitive verb without anything else."""
    return Predicate(rng.choice(ALONE))


def at_a_place(rng: Random) -> Predicate:
    """An intransitive verb with a place: 'sleeps in the garden'."""
    where = IN.phrase(place(rng))
    return Predicate(rng.choice(ALONE), where.en, place=where.de)


def by_furniture(rng: Random) -> Predicate:
    """'sits on the chair', 'stands behind the table': a two-way preposition of location."""
    verb, prepositions = rng.choice(_POSTURES)
    where = rng.choice(prepositions).phrase(furniture(rng))
    return Predicate(verb, where.en, place=where.de)


def laying(rng: Random) -> Predicate:
    """'lays the book on the table': a two-way preposition of direction."""
    what = thing(rng, lex.PORTABLE)
    where = rng.choice(IN_MOTION).phrase(furniture(rng))
    return Predicate(VERBS["lay"], f"{what.english} {where.en}", what.german(Case.ACCUSATIVE), where.de)


def moving(rng: Random) -> Predicate:
    """'goes into the house', 'runs through the garden'."""
    where = rng.choice((INTO, INTO, OUT_OF, THROUGH)).phrase(place(rng))
    return Predicate(rng.choice(MOTION), where.en, place=where.de)


def serving(rng: Random) -> Predicate:
    """A verb with a dative object: 'helps the child'."""
    nominal = rng.choice(lex.PRONOUNS) if rng.random() < 0.3 else person(rng)
    return with_object(rng.choice(DATIVE), nominal, Case.DATIVE)


def giving(rng: Random) -> Predicate:
    """A verb with a dative and an accusative object: 'gives the child a book'."""
    receiver = rng.choice(lex.PRONOUNS) if rng.random() < 0.3 else person(rng)
    gift = thing(rng, GIFTS)
    english = f"{receiver.english_object} {gift.english}"
    return Predicate(rng.choice(GIVING), english, f"{receiver.german(Case.DATIVE)} {gift.german(Case.ACCUSATIVE)}")


def separable(rng: Random) -> Predicate:
    """A separable verb with a definite object: 'opens the door'."""
    verb, nouns = rng.choice(SEPARABLE)
    return with_object(verb, noun_phrase(rng, nouns, plural=0.2))


def separable_alone(rng: Random) -> Predicate:
    """A separable verb without an object: 'gets up'."""
    return Predicate(rng.choice(SEPARABLE_ALONE))


ACTIONS: tuple[BuildPredicate, ...] = (
    acting,
    acting,
    acting,
    alone,
    at_a_place,
    moving,
    serving,
    giving,
    giving,
    separable,
    separable,
    separable_alone,
)
"""Predicates for patterns that combine with any action, whose verbs all have a perfect and an imperative."""


_SHORT_ACTIONS: tuple[BuildPredicate, ...] = (
    acting,
    acting,
    alone,
    separable_alone,
    separable_alone,
    separable,
    separable,
    separable,
    serving,
)


def action(rng: Random) -> Predicate:
    """A predicate of any kind of action."""
    return rng.choice(ACTIONS)(rng)


def short_action(rng: Random) -> Predicate:
    """A short predicate, for the sentences of two clauses."""
    return rng.choice(_SHORT_ACTIONS)(rng)


def group(rng: Random, verb: Verb) -> VerbGroup:
    """A verb group in the present, the perfect, or with a modal verb."""
    kind = rng.random()
    if kind < 0.5:
        return present(verb)
    if kind < 0.75:
        return perfect(verb)
    return modal(rng.choice((*MODALS, WANT)), verb)
