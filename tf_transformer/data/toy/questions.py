"""Sentence patterns of questions and commands."""

from random import Random

from tf_transformer.data.toy import choices as pick
from tf_transformer.data.toy import lexicon as lex
from tf_transformer.data.toy.clauses import IS, Clause, Predicate, clause, imperative, modal, perfect, present
from tf_transformer.data.toy.lexicon import Case, Pronoun
from tf_transformer.data.toy.phrases import Pair, join
from tf_transformer.data.toy.sentences import sentence
from tf_transformer.data.toy.verbs import MODALS, VERBS, WANT

WHO = Pronoun("who", "", 2, ("wer", "wen", "wem"))
WHAT = Pair("what", "was")
WHERE = Pair("where", "wo")
WHY = Pair("why", "warum")
WHEN = Pair("when", "wann")
_ASKED = tuple(VERBS[name] for name in ("see", "buy", "sell", "find", "read", "write", "eat", "drink"))


def yes_no(rng: Random) -> Pair:
    """Does the old man see the dog?"""
    predicate = pick.action(rng)
    return sentence(clause(pick.subject(rng), present(predicate.verb), predicate).question(), "?")


def yes_no_perfect(rng: Random) -> Pair:
    """Has the woman closed the window?"""
    predicate = pick.action(rng)
    return sentence(clause(pick.subject(rng), perfect(predicate.verb), predicate).question(), "?")


def yes_no_modal(rng: Random) -> Pair:
    """Can your brother help me?"""
    predicate = pick.action(rng)
    group = modal(rng.choice((*MODALS, WANT)), predicate.verb)
    return sentence(clause(pick.subject(rng), group, predicate).question(), "?")


def yes_no_description(rng: Random) -> Pair:
    """Is your new coat black?"""
    nouns = rng.choice((lex.PEOPLE, lex.ANIMALS, lex.GOODS, lex.PLACES))
    phrase = pick.noun_phrase(rng, nouns, adjective=0.0)
    adjective = rng.choice(phrase.noun.adjectives)
    return sentence(Clause(phrase, IS, adjective.en, adjective.de).question(), "?")


def who(rng: Random) -> Pair:
    """Who opens the door?"""
    predicate = pick.action(rng)
    return sentence(clause(WHO, pick.group(rng, predicate.verb), predicate).statement(), "?")


def what(rng: Random) -> Pair:
    """What does the girl read?"""
    group = pick.group(rng, rng.choice(_ASKED))
    return sentence(Clause(pick.subject(rng), group).question(WHAT), "?")


def where(rng: Random) -> Pair:
    """Where does the child sleep? Where are my keys?"""
    if rng.random() < 0.5:
        phrase = pick.noun_phrase(rng, lex.GOODS + lex.ANIMALS + lex.PEOPLE)
        return sentence(Clause(phrase, IS).question(WHERE), "?")
    return sentence(Clause(pick.subject(rng), pick.group(rng, rng.choice(pick.ALONE))).question(WHERE), "?")


def why(rng: Random) -> Pair:
    """Why does the teacher sell his car?"""
    predicate = pick.action(rng)
    return sentence(clause(pick.subject(rng), present(predicate.verb), predicate).question(WHY), "?")


def when(rng: Random) -> Pair:
    """When does the boy get up?"""
    predicate = rng.choice((pick.separable_alone, pick.separable, pick.acting))(rng)
    return sentence(clause(pick.subject(rng), present(predicate.verb), predicate).question(WHEN), "?")


def which(rng: Random) -> Pair:
    """Which car does the man buy?"""
    verb, nouns = rng.choice(pick.TRANSITIVE)
    chosen = pick.noun_phrase(rng, nouns, (lex.WHICH,))
    asked = Pair(chosen.english, chosen.german(Case.ACCUSATIVE))
    return sentence(Clause(pick.subject(rng), pick.group(rng, verb)).question(asked), "?")


def _commanded(rng: Random, *builders: pick.BuildPredicate) -> Predicate:
    """A predicate that one can ask somebody to do, or not to do."""
    while True:
        predicate = rng.choice(builders)(rng)
        if predicate.verb.en not in ("see", "find") and "you" not in predicate.en.split():
            return predicate


def command(rng: Random) -> Pair:
    """Open the door!"""
    return sentence(imperative(_commanded(rng, *pick.ACTIONS, pick.alone, pick.moving, pick.moving, pick.laying)), "!")


def polite_command(rng: Random) -> Pair:
    """Please give me the key!"""
    words = imperative(_commanded(rng, pick.giving, pick.serving, pick.separable, pick.acting, pick.laying))
    return sentence(Pair(join("please", words.en), join("bitte", words.de)), "!")


def negative_command(rng: Random) -> Pair:
    """Do not sell the car!"""
    builders = (pick.acting_on_known, pick.acting_on_known, pick.at_a_place, pick.serving, pick.separable)
    return sentence(imperative(_commanded(rng, *builders), negated=True), "!")
