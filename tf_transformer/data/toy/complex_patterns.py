"""Sentence patterns of two clauses: subordination, relative clauses, infinitives and coordination."""

from random import Random

from tf_transformer.data.toy import choices as pick
from tf_transformer.data.toy import lexicon as lex
from tf_transformer.data.toy.clauses import IS, Clause, Predicate, clause, present, zu_clause
from tf_transformer.data.toy.lexicon import Case
from tf_transformer.data.toy.phrases import Nominal, NounPhrase, Pair, join
from tf_transformer.data.toy.sentences import sentence
from tf_transformer.data.toy.verbs import KNOW_A_FACT, VERBS


def _who(rng: Random) -> Nominal:
    """A short subject for the outer clause."""
    if rng.random() < 0.5:
        return rng.choice(pick.SPEAKERS)
    return pick.noun_phrase(rng, lex.PEOPLE, adjective=0.2)


def _outer(rng: Random) -> Clause:
    predicate = pick.short_action(rng)
    return clause(_who(rng), present(predicate.verb), predicate)


def _inner(rng: Random) -> Clause:
    predicate = pick.short_action(rng)
    return clause(_who(rng), pick.group(rng, predicate.verb), predicate)


def _attached(main: Pair, english: str, german: str, inner: Pair) -> Pair:
    """A main clause followed by a subordinate clause."""
    return sentence(Pair(join(main.en, english, inner.en), f"{main.de}, {german} {inner.de}"))


def because(rng: Random) -> Pair:
    """The man sells the car because his sister has bought a house."""
    return _attached(_outer(rng).statement(), "because", "weil", _inner(rng).subordinate())


def because_description(rng: Random) -> Pair:
    """We help the woman because she is tired."""
    subject = _who(rng)
    adjective = rng.choice(lex.MOODS)
    reason = Clause(subject, IS, adjective.en, adjective.de).subordinate()
    return _attached(_outer(rng).statement(), "because", "weil", reason)


def that(rng: Random) -> Pair:
    """I know that the doctor has called her."""
    verb = rng.choice((KNOW_A_FACT, VERBS["say"]))
    return _attached(Clause(_who(rng), present(verb)).statement(), "that", "dass", _inner(rng).subordinate())


def asking_if(rng: Random) -> Pair:
    """The boy asks if we open the door."""
    main = Clause(_who(rng), present(VERBS["ask"])).statement()
    return _attached(main, "if", "ob", _inner(rng).subordinate())


def not_knowing_if(rng: Random) -> Pair:
    """They do not know if the teacher comes back."""
    main = Clause(_who(rng), present(KNOW_A_FACT), negated=True).statement()
    return _attached(main, "if", "ob", _inner(rng).subordinate())


def when_first(rng: Random) -> Pair:
    """When the girl sings, the children play."""
    inner = _outer(rng).subordinate()
    front = Pair(f"when {inner.en},", f"wenn {inner.de},")
    return sentence(_outer(rng).fronted(front))


def when_last(rng: Random) -> Pair:
    """The dog sleeps when the children play."""
    return _attached(_outer(rng).statement(), "when", "wenn", _outer(rng).subordinate())


def relative_subject(rng: Random) -> Pair:
    """The man who sells the car is friendly."""
    head = pick.noun_phrase(rng, lex.PEOPLE, adjective=0.0)
    predicate = pick.short_action(rng)
    relative = clause(head, pick.group(rng, predicate.verb), predicate)
    inner = relative.relative(Pair("who", head.relative(Case.NOMINATIVE)))
    adjective = rng.choice(head.noun.adjectives)
    verb_en, verb_de = IS.plain[head.agreement], IS.finite[head.agreement]
    english = join(head.english, inner.en, verb_en, adjective.en)
    return sentence(Pair(english, f"{head.german(Case.NOMINATIVE)}, {inner.de}, {verb_de} {adjective.de}"))


def relative_of_object(rng: Random) -> Pair:
    """I know the woman who sells this house."""
    head = pick.noun_phrase(rng, lex.PEOPLE, adjective=0.2)
    predicate = pick.short_action(rng)
    relative = clause(head, present(predicate.verb), predicate)
    inner = relative.relative(Pair("who", head.relative(Case.NOMINATIVE)))
    verb = VERBS[rng.choice(("see", "know", "love"))]
    main = clause(_who(rng), present(verb), pick.with_object(verb, head)).statement()
    return sentence(Pair(join(main.en, inner.en), f"{main.de}, {inner.de}"))


def relative_object(rng: Random) -> Pair:
    """The car which the man buys is new."""
    verb, nouns = rng.choice(pick.TRANSITIVE[1:6])
    head: NounPhrase = pick.noun_phrase(rng, nouns, (lex.THE, lex.THE, lex.THIS), adjective=0.0)
    inner = Clause(_who(rng), pick.group(rng, verb))
    german = join(head.relative(Case.ACCUSATIVE), inner.subordinate().de)
    adjective = rng.choice(head.noun.adjectives)
    verb_en, verb_de = IS.plain[head.agreement], IS.finite[head.agreement]
    english = join(head.english, "which", inner.english, verb_en, adjective.en)
    return sentence(Pair(english, f"{head.german(Case.NOMINATIVE)}, {german}, {verb_de} {adjective.de}"))


def trying(rng: Random) -> Pair:
    """The boy tries to open the door."""
    predicate: Predicate = rng.choice((pick.acting, pick.separable, pick.serving, pick.acting))(rng)
    main = Clause(pick.subject(rng), present(VERBS["try"])).statement()
    inner = zu_clause(predicate)
    return sentence(Pair(join(main.en, inner.en), f"{main.de}, {inner.de}"))


def two_clauses(rng: Random) -> Pair:
    """The man reads a book and the children play."""
    first, second = _outer(rng).statement(), _outer(rng).statement()
    return sentence(Pair(join(first.en, "and", second.en), join(first.de, "und", second.de)))


def contrast(rng: Random) -> Pair:
    """The woman sleeps, but her brother works."""
    first, second = _outer(rng).statement(), _outer(rng).statement()
    return sentence(Pair(f"{first.en}, but {second.en}", f"{first.de}, aber {second.de}"))
