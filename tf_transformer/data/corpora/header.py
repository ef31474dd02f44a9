"""What the first line of a table calls the columns, if it is a header."""

import re

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.languages import is_language

SOURCE_WORDS = {
    *("source", "src", "source text", "source segment", "source sentence", "original", "text", "sentence"),
    *("quelle", "quelltext", "ausgangstext", "originaltext", "texte", "texte source", "texte original"),
    *("origen", "texto", "texto original", "texto de origen", "texto de partida", "testo", "testo originale"),
    *("origine", "brontekst", "oryginał", "tekst źródłowy", "оригинал", "исходный текст"),
    *("原文", "源文", "源文本", "원문"),
}
TARGET_WORDS = {
    *("target", "tgt", "trg", "target text", "target segment", "target sentence", "translation", "translated"),
    *("übersetzung", "ziel", "zieltext", "cible", "texte cible", "traduction"),
    *("destino", "texto de destino", "texto de chegada", "traducción", "tradução", "traduzione", "testo tradotto"),
    *("vertaling", "doeltekst", "tłumaczenie", "tekst docelowy", "перевод"),
    *("译文", "譯文", "翻译", "翻譯", "訳文", "翻訳", "번역", "번역문"),
}
"""What headers call the two sides if they name no language."""
HEADING = re.compile(r"[^\W\d](?:[^\d.?!…。？！,;:]{0,28}[^\W\d])?")
"""A cell that may be one of a header: a few words, which are no sentence."""
MOST_WORDS = 3


def by_languages(first: list[str], named: list[str | None], data: DataConfig) -> tuple[int, int] | None:
    """Return the columns whose header names the languages that are asked for, if one column does for each."""
    found = []
    for wanted in (data.source, data.target):
        if not wanted:
            return None
        exact = [i for i, cell in enumerate(first) if cell.casefold() == wanted.casefold()]
        kinds = [i for i, code in enumerate(named) if code and (is_language(wanted, code) or is_language(code, wanted))]
        found.append(exact or kinds)
    source, target = found
    return (source[0], target[0]) if len(source) == len(target) == 1 and source != target else None


def by_words(first: list[str]) -> tuple[int, int] | None:
    """Return the columns whose header calls them source and target."""
    cells = [re.sub(r"[\s_]+", " ", cell.casefold()) for cell in first]
    source, target = ([i for i, cell in enumerate(cells) if cell in words] for words in (SOURCE_WORDS, TARGET_WORDS))
    return (source[0], target[0]) if len(source) == len(target) == 1 else None


def may_be_header(cells: list[str]) -> bool:
    """Say whether cells look as those of a header do, though it names no languages that are known."""
    return all(HEADING.fullmatch(cell) and len(cell.split()) <= MOST_WORDS for cell in cells)
