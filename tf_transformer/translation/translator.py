"""Python strings in, Python strings out."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tf_transformer.config import DecodingConfig
from tf_transformer.decoding.search_tree import Candidate, search_tree
from tf_transformer.errors import InputError
from tf_transformer.runs.weights import RunOrRuns, check_backend, load_runs
from tf_transformer.text.alignment import AlignedString
from tf_transformer.text.translator import Terms
from tf_transformer.tokenizers import text_of
from tf_transformer.translation.results import (
    Attention,
    Languages,
    Scored,
    SearchSteps,
    Translations,
    aligned_of,
    check_found,
    failures_told,
    rows_of,
    terms_as_text,
    token_scores_of,
)
from tf_transformer.translation.tensors import TensorTranslator, without_padding


class Translator(TensorTranslator):
    """Translates strings: `Translator.load("runs/mine")("Hello .")`.

    Its arguments are those of `TensorTranslator`, whose methods it has as well.
    """

    @functools.cached_property
    def _traced(self) -> dict[tuple[str | int, int], Any]:
        """Methods as functions that were traced, by their names and the number of their inputs."""
        return {}

    @classmethod
    def load(cls, run_dir: RunOrRuns, decoding: DecodingConfig | None = None, dtype: str = "float32") -> "Translator":
        """Return the translator of a run directory, with the weights of its best checkpoint.

        Args:
            run_dir: the path of the run, or its `RunDirectory`; or several of them, which translate as an `Ensemble`.
            decoding: as in the class; by default that of the run, or of the first.
            dtype: the Keras dtype policy in which weights are held and computed with.

        Raises:
            InputError: a folder that is not a run directory, or has no checkpoint; runs with different vocabularies.
        """
        check_backend("Translator")
        loaded = load_runs(run_dir, dtype)
        tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
        return cls(loaded.model, *tokenizers, decoding or loaded.runs[0].config.decoding)

    @failures_told()
    def translate_strings(
        self,
        sentences: list[str],
        numbers: Sequence[int] | None = None,
        source_languages: list[str] | None = None,
        target_languages: list[str] | None = None,
        *,
        terms: Terms = None,
    ) -> list[str]:
        """Translate Python strings. Warnings name those that were cut, by `numbers` if these are given.

        If the model has several languages, those of each sentence may be given; the default is those of `decoding`.
        `terms` are as in `n_best_strings`, and may not be given with languages.

        Raises:
            InputError: no languages, or wrong ones; and as `n_best_strings`.
        """
        if source_languages is None and target_languages is None:
            return [best for [(best, _)] in self.n_best_strings(sentences, 1, numbers, terms=terms)]
        if terms is not None:
            raise InputError("give the languages to the translator, in its decoding, where terms are given")
        named = []
        for side, given in (("source", source_languages), ("target", target_languages)):
            language = getattr(self.decoding, f"{side}_language")
            if given is None and language is None:
                self._check_directed()
            named.append([language] * len(sentences) if given is None else given)
            getattr(self, f"{side}_tokenizer").check_languages(named[-1])
        found = self._translate_to(*map(text_of, (sentences, *named)))
        found = Translations(found.texts[:, None], found.scores[:, None], found.is_truncated)
        return [text for [(text, _)] in rows_of(found, sentences, numbers)]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 3, autograph=False)
    def _translate_to(self, text: tf.Tensor, source: tf.Tensor, target: tf.Tensor) -> Translations:
        return self.translate(text, Languages(source, target))

    @failures_told()
    def n_best_strings(
        self, sentences: list[str], n: int, numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[list[tuple[str, float]]]:
        """Translate Python strings in n ways each, and return them with their scores, the best first.

        Args:
            sentences: the sentences.
            n: the number of translations of each.
            numbers: their numbers, for warnings.
            terms: for each sentence what its translations must contain, as in `ConstrainedBeamSearch`. The search
                writes the tokens that the tokenizer gives for a term alone; more letters may follow its last one.

        Raises:
            InputError: n above the beam size; no languages, although the model has several; terms that no translation
                can contain; terms for a search that is no beam search, or that XLA compiles.
        """
        self.check_n_best(n)
        found = self._found(n, functools.partial(self.translate_n_best, n=n), sentences, terms)
        check_found(found.scores[:, 0], terms)
        return rows_of(found, sentences, numbers)

    @failures_told()
    def aligned_strings(
        self, sentences: list[str], numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[AlignedString]:
        """Translate Python strings, and return what the tokens of the translations attended to.

        Raises:
            InputError: as `n_best_strings`.
        """
        found = self._found("aligned", self.translate_with_attention, sentences, terms)
        check_found(found.scores, terms)
        return aligned_of(found, sentences, numbers)

    def _found(self, name: str | int, translate: Callable[..., Any], sentences: list[str], terms: Terms) -> Any:
        """Translate sentences by a method that is traced once for its name, with terms and without.

        The checks come first, because an error within a tf.function would come out as another one.
        """
        self._check_directed()
        given = [text_of(sentences)]
        if terms is not None:
            self.decoding.check_constraints()
            given.append(terms_as_text(terms, sentences))
        key = name, len(given)
        if key not in self._traced:
            signature = [tf.TensorSpec([None], tf.string)] * len(given)
            self._traced[key] = tf.function(
                lambda text, terms=(): translate(text, terms=terms), input_signature=signature, autograph=False
            )
        return self._traced[key](*given)

    @failures_told()
    def score_strings(self, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None) -> list[list[float]]:
        """Return for every pair of source and target the log-probabilities of the target's tokens."""
        self._check_directed()
        sides = (text_of([pair[i] for pair in pairs]) for i in range(2))
        return token_scores_of(self._scored(*sides), pairs, numbers)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2, autograph=False)
    def _scored(self, sources: tf.Tensor, targets: tf.Tensor) -> Scored:
        return self.score(sources, targets)

    def count_tokens(self, sentences: list[str]) -> list[int]:
        """Return how many source tokens the search takes of each sentence, including the end token."""
        return self.count(text_of(sentences)).numpy().tolist()

    def check_n_best(self, n: int) -> None:
        """Raise InputError if a search has fewer than n hypotheses."""
        self.decoding.check_n_best(n)

    def attention(self, source: str, target: str | None = None) -> Attention:
        """Return what every token of a translation attended to, in every layer and head.

        Args:
            source: a sentence.
            target: its translation; by default the one that the search finds.
        """
        self._check_directed()
        if target is None:
            source_ids, target_ids = self._ids(text_of([source]))
        else:
            source_ids = self.encode_source(text_of([source])).ids
            target_ids = self._encode_target(text_of([target])).ids
        read, *weights = self._all_weights(source_ids, target_ids, None)
        encoder, decoder, cross = (of_all[0].numpy() for of_all in weights)
        of_source, of_target, of_read = (
            [piece.decode() for piece in tokenizer.pieces_of(ids[0]).numpy()]
            for tokenizer, ids in (
                (self.source_tokenizer, source_ids),
                (self.target_tokenizer, target_ids),
                (self.target_tokenizer, read),
            )
        )
        return Attention(of_source, of_target, cross, encoder, decoder, of_read)

    @failures_told()
    def tree(self, sentence: str) -> list[list[Candidate]]:
        """Return the tree of the beam search for a sentence: the candidates of every step, the most probable first.

        Raises:
            InputError: a search that is no beam search; a sentence without text.
        """
        self._search.check_beam()
        self._check_directed()
        found = self._steps(text_of([sentence]))
        best = [piece.decode() for piece in found.target_tokens[0].numpy()]
        tokens = [[piece.decode() for piece in step] for step in found.considered_tokens[0].numpy()]
        if not tokens:
            raise InputError(f"give a sentence with at least one word. Received: {sentence!r}")
        parents, places, log_probabilities, scores = (of_all[0].numpy() for of_all in found.considered[1:])
        return search_tree(tokens, parents, places, log_probabilities, scores, best)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def _steps(self, text: tf.Tensor) -> SearchSteps:
        return self.translate_with_steps(text)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def _ids(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the ids [B, S] of sentences, and those [B, T] of their translations."""
        source, found = self.search(text)
        return source.ids, without_padding(found.ids[:, 0])
