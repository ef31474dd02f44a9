"""Tests of the embedded toy corpus."""

import hashlib
import re
from collections import Counter

import pytest

from tf_transformer.data.corpora import toy
from tf_transformer.errors import InputError

CORPUS_SHA256 = "cf09fe94877dc2000565ba0323160cc4c49f12959821ae3b5a7f5ba24fc87f93"
"""Of the three splits; a change of the corpus must be a decision, not an accident."""


def words(sentence: str) -> list[str]:
    return "".join(char for char in sentence.lower() if char not in ".,?!").split()


def word_counts(split: str, side: int) -> Counter[str]:
    return Counter(word for pair in toy.pairs(split) for word in words(pair[side]))


def test_it_is_what_it_was() -> None:
    lines = [f"{english}\t{german}" for split in toy.SIZES for english, german in toy.pairs(split)]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == CORPUS_SHA256


def test_sizes_and_distinctness() -> None:
    splits = {split: toy.pairs(split) for split in toy.SIZES}
    assert {split: len(pairs) for split, pairs in splits.items()} == {"train": 27_000, "val": 500, "test": 1_000}
    for side in (0, 1):
        sentences = [pair[side] for pairs in splits.values() for pair in pairs]
        assert len(set(sentences)) == len(sentences)


def test_sentence_shape() -> None:
    for split in toy.SIZES:
        for english, german in toy.pairs(split):
            assert 3 <= len(english.split()) <= 16
            assert english[0].isupper()
            assert german[0].isupper()
            assert english[-1] == german[-1] in (".", "?", "!")
            assert not re.search("  |-", english + german)


def test_the_caller_may_change_the_list() -> None:
    toy.pairs("val").clear()
    assert len(toy.pairs("val")) == 500


@pytest.mark.parametrize("side", [0, 1])
def test_words_of_test_occur_often_in_training(side: int) -> None:
    trained = word_counts("train", side)
    held_out = set(word_counts("test", side)) | set(word_counts("val", side))
    assert {word: trained[word] for word in held_out if trained[word] < 10} == {}


def test_vocabulary() -> None:
    assert 200 <= len(word_counts("train", 0)) <= 300


def test_unknown_split() -> None:
    with pytest.raises(InputError, match="'dev'.*test, train, val"):
        toy.pairs("dev")


# Translated by hand from the English alone, then compared with the corpus.
GOLDEN = """\
The big friends run through the garden without your tired brother.
    = Die großen Freunde laufen ohne deinen müden Bruder durch den Garten.
This teacher says that the brother wants to help our friends.
    = Dieser Lehrer sagt, dass der Bruder unseren Freunden helfen will.
The friendly doctor sleeps in the garden of the good sister.
    = Der freundliche Arzt schläft im Garten der guten Schwester.
The doctor cleans up your room because my friend comes back.
    = Der Arzt räumt dein Zimmer auf, weil mein Freund zurückkommt.
When we call my friendly aunt, her teacher closes the door.
    = Wenn wir meine freundliche Tante anrufen, macht ihr Lehrer die Tür zu.
You love the friendly doctor who cleans up these kitchens.
    = Du liebst den freundlichen Arzt, der diese Küchen aufräumt.
My aunt asks if this girl has written a beautiful letter.
    = Meine Tante fragt, ob dieses Mädchen einen schönen Brief geschrieben hat.
Tomorrow our good brothers will close the beautiful bag.
    = Morgen werden unsere guten Brüder die schöne Tasche zumachen.
The woman and our doctor clean up the beautiful kitchen.
    = Die Frau und unser Arzt räumen die schöne Küche auf.
Her happy children often run into your beautiful house.
    = Ihre glücklichen Kinder laufen oft in dein schönes Haus.
His good doctor lays the small letter under your table.
    = Sein guter Arzt legt den kleinen Brief unter deinen Tisch.
His brother helps the boy, but this girl calls my aunt.
    = Sein Bruder hilft dem Jungen, aber dieses Mädchen ruft meine Tante an.
They open the good letter and you clean up the kitchen.
    = Sie machen den guten Brief auf und du räumst die Küche auf.
The letters which my big friends should read are new.
    = Die Briefe, die meine großen Freunde lesen sollten, sind neu.
I have laid the beautiful coat behind the big chair.
    = Ich habe den schönen Mantel hinter den großen Stuhl gelegt.
The aunt who should close the red windows is small.
    = Die Tante, die die roten Fenster zumachen sollte, ist klein.
In the house a big child finds a beautiful letter. = Im Haus findet ein großes Kind einen schönen Brief.
Which beautiful letters does the old teacher read? = Welche schönen Briefe liest der alte Lehrer?
A friendly child tries to clean up the small room.
    = Ein freundliches Kind versucht, das kleine Zimmer aufzuräumen.
The happy aunt buys his coat for my good brother.
    = Die glückliche Tante kauft seinen Mantel für meinen guten Bruder.
Must a friend bring our doctors your black coats?
    = Muss ein Freund unseren Ärzten deine schwarzen Mäntel bringen?
The friendly doctor likes to play in the garden. = Der freundliche Arzt spielt gern im Garten.
Do these small girls give the boy a cheap pear? = Geben diese kleinen Mädchen dem Jungen eine billige Birne?
This boy gives the friendly children a letter. = Dieser Junge gibt den freundlichen Kindern einen Brief.
We do not know if the woman closes the window. = Wir wissen nicht, ob die Frau das Fenster zumacht.
When does a young brother open my white doors? = Wann macht ein junger Bruder meine weißen Türen auf?
Why do I give this good sister her small pear? = Warum gebe ich dieser guten Schwester ihre kleine Birne?
The big girl has gone through the small room. = Das große Mädchen ist durch das kleine Zimmer gegangen.
The brother does not sing in the new kitchen. = Der Bruder singt nicht in der neuen Küche.
Your happy friend does not eat a cheap apple. = Dein glücklicher Freund isst keinen billigen Apfel.
A white table is sold by the young teachers. = Ein weißer Tisch wird von den jungen Lehrern verkauft.
Every friendly girl finds the beautiful key. = Jedes freundliche Mädchen findet den schönen Schlüssel.
The room is more beautiful than the garden. = Das Zimmer ist schöner als der Garten.
In the evening our doctor helps her friend. = Am Abend hilft unser Arzt ihrem Freund.
There is an old key in my beautiful garden. = In meinem schönen Garten gibt es einen alten Schlüssel.
This door is as old as the beautiful bag. = Diese Tür ist so alt wie die schöne Tasche.
Many children bring the girls a red coat. = Viele Kinder bringen den Mädchen einen roten Mantel.
An old bed stands behind the white table. = Ein altes Bett steht hinter dem weißen Tisch.
Our tired friends write two old letters. = Unsere müden Freunde schreiben zwei alte Briefe.
The small brother plays with the horses. = Der kleine Bruder spielt mit den Pferden.
Have her doctors gone into your garden? = Sind ihre Ärzte in deinen Garten gegangen?
Do not clean up the beautiful kitchens! = Räum die schönen Küchen nicht auf!
Please give the doctors a small letter! = Bitte gib den Ärzten einen kleinen Brief!
A white cat sleeps under the big chair. = Eine weiße Katze schläft unter dem großen Stuhl.
Lay your old book next to the new bed! = Leg dein altes Buch neben das neue Bett!
Who has run into the beautiful garden? = Wer ist in den schönen Garten gelaufen?
Your small child must drink hot milk. = Dein kleines Kind muss heiße Milch trinken.
This happy aunt eats small pears. = Diese glückliche Tante isst kleine Birnen.
Where does a friendly child play? = Wo spielt ein freundliches Kind?
What do these tired girls find? = Was finden diese müden Mädchen?
A young teacher gets up today. = Ein junger Lehrer steht heute auf.
These sisters are not happy. = Diese Schwestern sind nicht glücklich.
The young aunt was in the big city yesterday. = Die junge Tante war gestern in der großen Stadt.
Our tired brothers go to the friendly teachers. = Unsere müden Brüder gehen zu den freundlichen Lehrern.
The tired teacher sees her. = Der müde Lehrer sieht sie.
"""


@pytest.mark.parametrize("line", GOLDEN.replace("\n    ", " ").splitlines())
def test_golden_translations(line: str) -> None:
    english, german = line.split(" = ")
    assert dict(toy.pairs("test"))[english] == german
