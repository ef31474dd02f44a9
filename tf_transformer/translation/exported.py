"""Translation with a SavedModel that we exported."""

import os
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import LANGUAGES, Described, is_saved_model
from tf_transformer.runs.signatures import COUNT, DEFAULT, N_BEST, SCORE, TRANSLATE_TO, WITH_ATTENTION, WITH_TERMS
from tf_transformer.text.alignment import AlignedString
from tf_transformer.text.translator import Terms
from tf_transformer.tokenizers import text_of
from tf_transformer.translation.results import (
    Aligned,
    Scored,
    Translations,
    aligned_of,
    check_found,
    failures_told,
    rows_of,
    terms_as_text,
    token_scores_of,
)


class ExportedTranslator:
    """A SavedModel that `export` wrote.

    Args:
        path: its folder, or its `Described`.
        decoding: between which languages to translate, if the model has several; by default those of the export. All
            other settings are ignored, because the search was fixed at export.

    Raises:
        InputError: a folder that is not a SavedModel of ours; a language that the model does not have.
    """

    def __init__(self, path: str | Path | Described, decoding: DecodingConfig | None = None):
        export = path if isinstance(path, Described) else Described(path)
        self.path, self.description, self._decoding = export.path, export.description, export.config.decoding
        chosen = decoding or self._decoding
        chosen.check_languages(export.languages)
        self.most_source = export.most_source
        self._languages = {}
        if export.languages:
            self._languages = {name: getattr(chosen, name) or getattr(self._decoding, name) for name in LANGUAGES}
        if not is_saved_model(self.path):
            raise InputError(f"{self.path} is not a SavedModel of ours: it has no saved_model.pb")
        try:
            self._model = tf.saved_model.load(os.fspath(self.path))
            self._translate, self._n_best, self._align, self._score, self._count = (
                self._model.signatures[name]
                for name in (
                    TRANSLATE_TO if self._languages else DEFAULT,
                    *(N_BEST, WITH_ATTENTION, SCORE, COUNT),
                )
            )
        except KeyError as error:
            raise InputError(
                f"{self.path} has no signature {error}, because an earlier version wrote it: export it again"
            ) from None
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise InputError(f"{self.path} is damaged: {error}") from None

    @failures_told()
    def translate_strings(
        self, sentences: list[str], numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[str]:
        """Translate Python strings. Warnings name those that were cut, by `numbers` if these are given.

        Raises:
            InputError: with `terms`, as `n_best_strings`.
        """
        if terms is not None:
            return [rows[0][0] for rows in self.n_best_strings(sentences, 1, numbers, terms=terms)]
        found = self._translate(text=text_of(sentences), **self._named(len(sentences)))
        texts, scores = found["translation"][:, None], found["score"][:, None]
        return [text for [(text, _)] in rows_of(Translations(texts, scores, found["is_truncated"]), sentences, numbers)]

    @failures_told()
    def n_best_strings(
        self, sentences: list[str], n: int, numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[list[tuple[str, float]]]:
        """Translate Python strings in n ways each, and return them with their scores, the best first.

        Args:
            sentences: the sentences.
            n: the number of translations of each.
            numbers: their numbers, for warnings.
            terms: as in `Translator.n_best_strings`.

        Raises:
            InputError: n above the beam size of the export; terms that no translation can contain, or for an export
                that does not take them.
        """
        self.check_n_best(n)
        given = {"text": text_of(sentences), **self._named(len(sentences))}
        if terms is None:
            found = self._n_best(**given)
        else:
            self._decoding.check_constraints()
            if WITH_TERMS not in self._model.signatures:
                raise InputError(f"{self.path} has no signature {WITH_TERMS}: export it again")
            found = self._model.signatures[WITH_TERMS](**given, terms=terms_as_text(terms, sentences))
            check_found(found["scores"][:, 0], terms)
        rows = rows_of(Translations(found["translations"], found["scores"], found["is_truncated"]), sentences, numbers)
        return [row[:n] for row in rows]

    @failures_told()
    def aligned_strings(
        self, sentences: list[str], numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[AlignedString]:
        """Translate Python strings, and return what the tokens of the translations attended to.

        Raises:
            InputError: there are terms, for which no signature of an export gives the attention.
        """
        if terms is not None:
            raise InputError(f"{self.path} is an export, which gives no alignments with terms: give a run directory")
        found = self._align(text=text_of(sentences), **self._named(len(sentences)))
        names = ("translation", "source_tokens", "target_tokens", "attention", "is_truncated")
        return aligned_of(Aligned(*map(found.__getitem__, names)), sentences, numbers)

    def check_n_best(self, n: int) -> None:
        """Raise InputError if the export gives fewer than n translations."""
        self._decoding.check_n_best(n)
        if n > self._decoding.hypotheses:
            raise InputError(f"{self.path} draws one translation of a sentence: give a run directory. Received: {n}")

    @failures_told()
    def score_strings(self, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None) -> list[list[float]]:
        """Return for every pair of source and target the log-probabilities of the target's tokens."""
        source, target = (text_of([pair[i] for pair in pairs]) for i in range(2))
        found = self._score(source=source, target=target, **self._named(len(pairs)))
        names = ("log_probability", "token_log_probabilities", "tokens", "is_truncated")
        return token_scores_of(Scored(*map(found.__getitem__, names)), pairs, numbers)

    def _named(self, rows: int) -> dict[str, tf.Tensor]:
        """Return the languages of so many sentences, as the signatures take them."""
        return {name: tf.fill([rows], language) for name, language in self._languages.items()}

    def count_tokens(self, sentences: list[str]) -> list[int]:
        """Return how many source tokens the search takes of each sentence, including the end token."""
        return self._count(text=text_of(sentences))["tokens"].numpy().tolist()
