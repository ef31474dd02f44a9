"""Sentence patterns of one plain statement in the present: objects, places, prepositions."""

from random import Random

from tf_transformer.data.toy import choices as pick
from tf_transformer.data.toy import lexicon as lex
from tf_transformer.data.toy.clauses import Clause, Predicate, clause, present
from tf_transformer.data.toy.lexicon import Case
from tf_transformer.data.toy.phrases import AT_REST, BEHIND, FOR, IN, NEXT_TO, TO, WITH, WITHOUT, Pair, join
from tf_transformer.data.toy.sentences import sentence, tell
from tf_transformer.data.toy.verbs import VERBS

HOURS = (Pair("early", "früh"), Pair("late", "spät"), Pair("now", "jetzt"), Pair("today", "heute"))


def transitive(rng: Random) -> Pair:
    """The old man sees a small dog."""
    verb, nouns = rng.choice(pick.KEEPING)
    return tell(rng, pick.with_object(verb, pick.thing(rng, nouns)))


def strong_plural(rng: Random) -> Pair:
    """The woman buys red bags."""
    verb, nouns = rng.choice(pick.TRANSITIVE)
    return tell(rng, pick.with_object(verb, pick.bare_plural(rng, nouns)))


def counted_object(rng: Random) -> Pair:
    """The teacher sells two red cars."""
    verb, nouns = rng.choice(pick.TRANSITIVE)
    return tell(rng, pick.with_object(verb, pick.counted(rng, nouns)))


def counted_subject(rng: Random) -> Pair:
    """Three young women open the door."""
    predicate = pick.action(rng)
    return sentence(clause(pick.counted(rng, lex.PEOPLE), present(predicate.verb), predicate).statement())


def drinking(rng: Random) -> Pair:
    """The girl drinks cold milk."""
    verb = VERBS["drink"]
    return sentence(
        clause(pick.subject(rng), pick.group(rng, verb), pick.with_object(verb, pick.drink(rng))).statement()
    )


def every_subject(rng: Random) -> Pair:
    """Every child loves this dog."""
    subject = pick.noun_phrase(rng, lex.PEOPLE, (lex.EVERY,), 0.0)
    verb, nouns = rng.choice(pick.KEEPING)
    return sentence(clause(subject, present(verb), pick.with_object(verb, pick.thing(rng, nouns))).statement())


def having(rng: Random) -> Pair:
    """My friend has a new car."""
    verb = VERBS["have"]
    owned = pick.indefinite(rng, lex.GOODS + lex.ANIMALS, 0.7)
    return tell(rng, pick.with_object(verb, owned))


def pronoun_object(rng: Random) -> Pair:
    """The doctor calls us."""
    verb = VERBS[rng.choice(("see", "know", "love", "call", "find"))]
    return tell(rng, pick.with_object(verb, rng.choice(lex.PRONOUNS)))


def dative_object(rng: Random) -> Pair:
    """The boy helps the old woman."""
    return tell(rng, pick.serving(rng))


def two_objects(rng: Random) -> Pair:
    """The man gives the child a book."""
    return tell(rng, pick.giving(rng))


def separable_object(rng: Random) -> Pair:
    """My sister opens the window."""
    return tell(rng, pick.separable(rng))


def separable_adverb(rng: Random) -> Pair:
    """Our teacher gets up early."""
    verb, hour = rng.choice(pick.SEPARABLE_ALONE), rng.choice(HOURS)
    return sentence(clause(pick.subject(rng), present(verb), Predicate(verb, hour.en, hour.de)).statement())


def location(rng: Random) -> Pair:
    """The child plays in the garden."""
    return tell(rng, rng.choice((pick.at_a_place, pick.by_furniture, pick.by_furniture))(rng))


def animal(rng: Random) -> Pair:
    """A black cat sleeps under the table."""
    which = pick.indefinite(rng, lex.ANIMALS, 0.7) if rng.random() < 0.5 else pick.noun_phrase(rng, lex.ANIMALS)
    where = rng.choice(AT_REST).phrase(pick.furniture(rng))
    if rng.random() < 0.3 or which.noun.en == "horse":
        where = IN.phrase(pick.place(rng))
    verb = VERBS[rng.choice(("sleep", "sit", "lie", "stand"))]
    return sentence(Clause(which, present(verb), where.en, place=where.de).statement())


def location_of_thing(rng: Random) -> Pair:
    """The key lies under the old table."""
    verb, things, prepositions = rng.choice(
        (
            (VERBS["lie"], lex.PORTABLE + lex.FOOD, AT_REST),
            (VERBS["stand"], lex.FURNITURE, (NEXT_TO, BEHIND)),
        )
    )
    what = pick.indefinite(rng, things, 1.0) if rng.random() < 0.5 else pick.noun_phrase(rng, things)
    where = rng.choice(prepositions).phrase(pick.furniture(rng))
    return sentence(Clause(what, present(verb), where.en, place=where.de).statement())


def direction(rng: Random) -> Pair:
    """The woman lays the key on the table."""
    return tell(rng, pick.laying(rng))


def movement(rng: Random) -> Pair:
    """The boy runs through the garden."""
    predicate = pick.moving(rng)
    subject = pick.noun_phrase(rng, lex.ANIMALS) if rng.random() < 0.3 else pick.subject(rng)
    return sentence(clause(subject, present(predicate.verb), predicate).statement())


def to_a_person(rng: Random) -> Pair:
    """The girl goes to the doctor."""
    where = TO.phrase(pick.noun_phrase(rng, lex.ADULTS, plural=0.15))
    verb = rng.choice(pick.MOTION)
    return sentence(Clause(pick.subject(rng), present(verb), where.en, place=where.de).statement())


def company(rng: Random) -> Pair:
    """The child plays with the small dog."""
    verb = VERBS[rng.choice(("play", "work", "sing"))]
    other = rng.choice(lex.PRONOUNS) if rng.random() < 0.3 else pick.thing(rng, lex.PEOPLE)
    if rng.random() < 0.4:
        verb, other = VERBS["play"], pick.noun_phrase(rng, lex.ANIMALS, plural=0.6)
        if rng.random() < 0.3:
            other = pick.bare_plural(rng, lex.ANIMALS + lex.CHILDREN)
    together = WITH.phrase(other)
    return sentence(Clause(pick.subject(rng), present(verb), together.en, place=together.de).statement())


def for_someone(rng: Random) -> Pair:
    """The man buys an egg for his sister."""
    verb, nouns = rng.choice(((VERBS["buy"], pick.GIFTS), (VERBS["write"], lex.TEXTS), (VERBS["find"], pick.GIFTS)))
    what = pick.thing(rng, nouns)
    whom = FOR.phrase(rng.choice(lex.PRONOUNS) if rng.random() < 0.3 else pick.person(rng))
    english = join(what.english, whom.en)
    return sentence(
        Clause(pick.subject(rng), present(verb), english, what.german(Case.ACCUSATIVE), whom.de).statement()
    )


def without(rng: Random) -> Pair:
    """She goes into the city without her brother."""
    predicate = pick.moving(rng)
    lacking = WITHOUT.phrase(rng.choice(lex.PRONOUNS) if rng.random() < 0.3 else pick.person(rng))
    english, german = join(predicate.en, lacking.en), join(lacking.de, predicate.place)
    return sentence(Clause(pick.subject(rng), present(predicate.verb), english, place=german).statement())
