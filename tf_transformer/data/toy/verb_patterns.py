"""Sentence patterns about the verb: word order, tenses, modals, passive and negation."""

from random import Random

from tf_transformer.data.toy import choices as pick
from tf_transformer.data.toy import lexicon as lex
from tf_transformer.data.toy.clauses import (
    Clause,
    Predicate,
    clause,
    future,
    liking,
    modal,
    passive,
    perfect,
    present,
)
from tf_transformer.data.toy.phrases import BY, IN, Pair, join
from tf_transformer.data.toy.sentences import sentence, tell
from tf_transformer.data.toy.verbs import MODALS, VERBS, WANT

TIMES = (
    Pair("today", "heute"),
    Pair("now", "jetzt"),
    Pair("often", "oft"),
    Pair("sometimes", "manchmal"),
    Pair("in the evening", "am Abend"),
)
TOMORROW = Pair("tomorrow", "morgen")
FREQUENCIES = (
    Pair("often", "oft"),
    Pair("always", "immer"),
    Pair("never", "nie"),
    Pair("sometimes", "manchmal"),
)


def fronted_time(rng: Random) -> Pair:
    """Today the old man buys a car."""
    predicate = pick.action(rng)
    return sentence(clause(pick.subject(rng), present(predicate.verb), predicate).fronted(rng.choice(TIMES)))


def fronted_place(rng: Random) -> Pair:
    """In the kitchen the woman eats an apple."""
    predicate = rng.choice((pick.acting, pick.alone, pick.acting))(rng)
    where = IN.phrase(pick.place(rng))
    return sentence(clause(pick.subject(rng), present(predicate.verb), predicate).fronted(where))


def frequency(rng: Random) -> Pair:
    """The child never sleeps in the kitchen."""
    predicate = rng.choice((pick.alone, pick.at_a_place, pick.moving, pick.by_furniture))(rng)
    often, who = rng.choice(FREQUENCIES), pick.subject(rng)
    group = present(predicate.verb)
    plain = clause(who, group, Predicate(predicate.verb, predicate.en, often.de, predicate.place)).statement()
    verb = group.plain[who.agreement]
    return sentence(Pair(join(who.english, often.en, verb, predicate.en), plain.de))


def modal_verb(rng: Random) -> Pair:
    """The boy must clean up the room."""
    predicate = pick.action(rng)
    group = modal(rng.choice((*MODALS, WANT)), predicate.verb)
    return sentence(clause(pick.subject(rng), group, predicate).statement())


def perfect_tense(rng: Random) -> Pair:
    """The woman has sold the car."""
    predicate = rng.choice((pick.action, pick.laying))(rng)
    return tell(rng, predicate, perfect)


def perfect_of_motion(rng: Random) -> Pair:
    """The girl has run into the house."""
    predicate = rng.choice((pick.moving, pick.moving, pick.separable_alone))(rng)
    return tell(rng, predicate, perfect)


def future_tense(rng: Random) -> Pair:
    """Tomorrow the man will buy a car."""
    predicate = pick.action(rng)
    return sentence(clause(pick.subject(rng), future(predicate.verb), predicate).fronted(TOMORROW))


def passive_voice(rng: Random) -> Pair:
    """The letter is written by the teacher."""
    verb, nouns = rng.choice(pick.PASSIVE)
    agent = BY.phrase(pick.thing(rng, lex.PEOPLE))
    what = pick.indefinite(rng, nouns, 1.0) if rng.random() < 0.5 else pick.noun_phrase(rng, nouns)
    return sentence(Clause(what, passive(verb), agent.en, agent.de).statement())


def gern(rng: Random) -> Pair:
    """The child likes to eat big apples."""
    predicate = rng.choice((pick.alone, pick.at_a_place))(rng)
    if rng.random() < 0.6:
        verb, nouns = rng.choice(((VERBS["eat"], lex.FOOD), (VERBS["read"], lex.TEXTS), (VERBS["buy"], lex.FOOD)))
        predicate = pick.with_object(verb, pick.bare_plural(rng, nouns, 0.7))
        if rng.random() < 0.3:
            predicate = pick.with_object(VERBS["drink"], pick.drink(rng))
    german = join("gern", predicate.objects)
    return sentence(
        Clause(pick.subject(rng), liking(predicate.verb), predicate.en, german, predicate.place).statement()
    )


def not_verb(rng: Random) -> Pair:
    """The man does not buy the red car."""
    predicate = rng.choice((pick.acting_on_known, pick.alone, pick.at_a_place, pick.serving, pick.separable))(rng)
    group = rng.choice((present, present, perfect))(predicate.verb)
    return sentence(clause(pick.subject(rng), group, predicate, negated=True).statement())


def not_a(rng: Random) -> Pair:
    """The man does not have a dog."""
    verb, nouns = rng.choice((*pick.TRANSITIVE, (VERBS["have"], lex.GOODS + lex.ANIMALS)))
    predicate = pick.with_object(verb, pick.noun_phrase(rng, nouns, (lex.NO,), 0.0))
    plain = clause(pick.subject(rng), present(verb), predicate)
    english = clause(plain.subject, plain.group, predicate, negated=True).english
    return sentence(Pair(english, plain.statement().de))
