"""Clauses in both languages: verb groups and the word order of German."""

from dataclasses import dataclass

from tf_transformer.data.toy.lexicon import Case
from tf_transformer.data.toy.phrases import Nominal, Pair, join
from tf_transformer.data.toy.verbs import (
    BE,
    DO,
    HAVE,
    PASSIVE,
    PERFECT,
    WANT,
    WAS,
    WILL,
    Auxiliary,
    Forms,
    Verb,
)

NO_WORDS = Pair("", "")


@dataclass(frozen=True)
class VerbGroup:
    """The finite verb and what belongs to it.

    Attributes:
        plain: English words of an affirmative statement ('buys', 'has bought').
        auxiliary: English auxiliary of a question or negation ('does', 'has').
        bare: English words that follow the auxiliary ('buy', 'bought').
        finite: German finite verb.
        closing: German words at the end of the clause: prefix, participle or infinitive.
        joined: Whether the finite verb of a subordinate clause is written together with ``closing``.
    """

    plain: Forms
    auxiliary: Forms
    bare: str
    finite: Forms
    closing: str
    joined: bool = False


def _after(auxiliary: Forms, rest: str) -> Forms:
    first, second, third, plural = (join(form, rest) for form in auxiliary)
    return first, second, third, plural


def present(verb: Verb) -> VerbGroup:
    """'buys', 'kauft'."""
    plain = (verb.en, verb.en, verb.en_third, verb.en)
    return VerbGroup(plain, DO.en, verb.en, verb.finite, verb.prefix, joined=True)


def perfect(verb: Verb) -> VerbGroup:
    """'has bought', 'hat ... gekauft'."""
    rest = verb.en_participle
    return VerbGroup(_after(HAVE.en, rest), HAVE.en, rest, PERFECT[verb.auxiliary], verb.participle)


def passive(verb: Verb) -> VerbGroup:
    """'is bought', 'wird ... gekauft'."""
    rest = verb.en_participle
    return VerbGroup(_after(PASSIVE.en, rest), PASSIVE.en, rest, PASSIVE.de, verb.participle)


def modal(auxiliary: Auxiliary, verb: Verb) -> VerbGroup:
    """'can buy', 'kann ... kaufen'; 'wants to buy', 'will ... kaufen'."""
    if auxiliary is WANT:
        rest = f"to {verb.en}"
        return VerbGroup(_after(WANT.en, rest), DO.en, f"want {rest}", WANT.de, verb.infinitive)
    return VerbGroup(_after(auxiliary.en, verb.en), auxiliary.en, verb.en, auxiliary.de, verb.infinitive)


def future(verb: Verb) -> VerbGroup:
    """'will buy', 'wird ... kaufen'."""
    return modal(WILL, verb)


def liking(verb: Verb) -> VerbGroup:
    """'likes to sing', 'singt' (the clause adds *gern*)."""
    rest = f"to {verb.en}"
    plain = _after(("like", "like", "likes", "like"), rest)
    return VerbGroup(plain, DO.en, f"like {rest}", verb.finite, verb.prefix, joined=True)


IS = VerbGroup(BE.en, BE.en, "", BE.de, "")
"""'is', 'ist'."""
WAS_ = VerbGroup(WAS.en, WAS.en, "", WAS.de, "")
"""'was', 'war'."""


@dataclass(frozen=True)
class Predicate:
    """What follows the verb: English words, and German words before and after the place of *nicht*."""

    verb: Verb
    en: str = ""
    objects: str = ""
    place: str = ""


@dataclass(frozen=True)
class Clause:
    """A subject, a verb group and the rest, to be put in the order that a construction asks for."""

    subject: Nominal
    group: VerbGroup
    en: str = ""
    objects: str = ""
    place: str = ""
    negated: bool = False

    @property
    def _finite(self) -> str:
        return self.group.finite[self.subject.agreement]

    @property
    def _subject(self) -> str:
        return self.subject.german(Case.NOMINATIVE)

    @property
    def _middle(self) -> str:
        return join(self.objects, "nicht" if self.negated else "", self.place)

    @property
    def english(self) -> str:
        """The English statement."""
        person = self.subject.agreement
        verb = self.group.plain[person]
        if self.negated:
            verb = join(self.group.auxiliary[person], "not", self.group.bare)
        return join(self.subject.english, verb, self.en)

    def statement(self) -> Pair:
        """A main clause with the subject first."""
        return Pair(self.english, join(self._subject, self._finite, self._middle, self.group.closing))

    def fronted(self, front: Pair) -> Pair:
        """A main clause after other words, where the German verb stays second."""
        german = join(front.de, self._finite, self._subject, self._middle, self.group.closing)
        return Pair(join(front.en, self.english), german)

    def question(self, word: Pair = NO_WORDS) -> Pair:
        """A question, after a question word if any."""
        person = self.subject.agreement
        english = join(word.en, self.group.auxiliary[person], self.subject.english, self.group.bare, self.en)
        return Pair(english, join(word.de, self._finite, self._subject, self._middle, self.group.closing))

    def final(self) -> str:
        """The German verbs at the end of a subordinate clause (aufmacht, gekauft hat)."""
        if self.group.joined:
            return self.group.closing + self._finite
        return join(self.group.closing, self._finite)

    def subordinate(self) -> Pair:
        """A subordinate clause, with the German finite verb last."""
        return Pair(self.english, join(self._subject, self._middle, self.final()))

    def relative(self, pronoun: Pair) -> Pair:
        """A relative clause whose pronoun is the subject."""
        person = self.subject.agreement
        english = join(pronoun.en, self.group.plain[person], self.en)
        return Pair(english, join(pronoun.de, self._middle, self.final()))


def clause(subject: Nominal, group: VerbGroup, predicate: Predicate, negated: bool = False) -> Clause:
    """The clause of a subject, a verb group of the predicate's verb, and the predicate."""
    return Clause(subject, group, predicate.en, predicate.objects, predicate.place, negated)


def zu_clause(predicate: Predicate) -> Pair:
    """An infinitive clause: 'to open the door', 'die Tür aufzumachen'."""
    german = join(predicate.objects, predicate.place, predicate.verb.zu_infinitive)
    return Pair(join("to", predicate.verb.en, predicate.en), german)


def imperative(predicate: Predicate, negated: bool = False) -> Pair:
    """A command to one person: 'open the door', 'mach die Tür auf'."""
    verb = predicate.verb
    nicht = "nicht" if negated else ""
    german = join(verb.imperative, predicate.objects, nicht, predicate.place, verb.prefix)
    return Pair(join("do not" if negated else "", verb.en, predicate.en), german)
