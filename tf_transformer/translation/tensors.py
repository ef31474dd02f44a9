"""Strings in, strings out, as tensors: tokenizers, model and search in one TensorFlow module, as exports have it."""

from typing import Any

import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodingConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.model import Ensemble, Transformer
from tf_transformer.runs.weights import check_backend
from tf_transformer.tokenizers import END, PAD, START, UNKNOWN, Tokenizer
from tf_transformer.translation.results import (
    Aligned,
    AllAttention,
    Languages,
    Scored,
    SearchSteps,
    Source,
    Translations,
)
from tf_transformer.translation.search import Search, has_text

NEXT = 8
"""How many of the most probable next tokens `translate_with_steps` gives."""

# Functions are traced without AutoGraph, here and in exports, because no Python `if` or `while` depends on a tensor.
# Converting the code took three quarters of the time until the first translation.


class TensorTranslator(tf.Module):
    """Translates tensors of strings. `Translator` adds Python strings.

    Args:
        model: a built Transformer, or an Ensemble of several.
        source_tokenizer: of the source language.
        target_tokenizer: of the target language; the same object where both share one.
        decoding: how to search; by default with beam search as in the paper. It also says between which languages to
            translate, if the tokenizers have several and a method is not told.

    Raises:
        InputError: an attention layer or a language that the model does not have; a Keras backend other than
            TensorFlow.
    """

    def __init__(
        self,
        model: Transformer | Ensemble,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
    ):
        super().__init__()
        check_backend("Translator")
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.decoding = decoding or DecodingConfig()
        self.decoding.check_languages(source_tokenizer.languages)
        self._search = Search(model, self.decoding)
        self.most_source = self.decoding.most_source(model.max_positions, bool(source_tokenizer.languages))

    @tf.function(input_signature=[tf.TensorSpec(None, tf.string)], autograph=False)
    def __call__(self, text: Any) -> tf.Tensor:
        """Translate a string, or strings of any shape, to strings of that shape. The empty string stays empty."""
        return tf.reshape(self.translate(tf.reshape(text, [-1])).texts, tf.shape(text))

    def translate(self, text: tf.Tensor, languages: Languages | None = None) -> Translations:
        """Translate strings [B].

        Args:
            text: the sentences.
            languages: as in `search`.

        Returns:
            One translation of each; its score is the summed log-probability of its tokens, including the end token. A
            string that is empty or only white space gives an empty string with score 0.
        """
        source, found = self.search(text, languages=languages)
        texts = self.target_tokenizer.detokenize(found.ids[:, 0])
        return Translations(texts, found.log_probabilities[:, 0], source.is_truncated)

    def translate_n_best(
        self, text: tf.Tensor, n: int, prefix: Any = (), languages: Languages | None = None, terms: Any = ()
    ) -> Translations:
        """Translate strings [B] in n ways each, n at most the beam size.

        Args:
            text: the sentences.
            n: the number of translations of each.
            prefix: as in `search`.
            languages: as in `search`.
            terms: as in `search`.

        Returns:
            n translations of each, ranked by their scores, the log-probability divided by the length penalty. If a
            search found fewer than n, the rest are empty, with a score of -inf.
        """
        source, found = self.search(text, n, prefix, languages, terms)
        size, length = tf.shape(found.ids)[0], tf.shape(found.ids)[2]
        flat = self.target_tokenizer.detokenize(tf.reshape(found.ids, [size * n, length]))
        return Translations(tf.reshape(flat, [size, n]), found.scores, source.is_truncated)

    def translate_with_attention(self, text: tf.Tensor, languages: Languages | None = None, terms: Any = ()) -> Aligned:
        """Translate strings [B], and return what each token of a translation attended to; see `search`."""
        source, found = self.search(text, languages=languages, terms=terms)
        target_ids = without_padding(found.ids[:, 0])
        read, before = self._read(target_ids, languages)
        attention = self._search.alignment(source.ids, read)[:, before:]
        return Aligned(
            self.target_tokenizer.detokenize(target_ids),
            self.source_tokenizer.pieces_of(source.ids),
            self.target_tokenizer.pieces_of(target_ids),
            tf.where(target_ids[:, :, None] == PAD, 0.0, attention),
            source.is_truncated,
            found.scores[:, 0],
        )

    def translate_with_all_attention(self, text: tf.Tensor, languages: Languages | None = None) -> AllAttention:
        """Translate strings [B], and show the attention of all three kinds, of every layer and head."""
        source, found = self.search(text, languages=languages)
        target_ids = without_padding(found.ids[:, 0])
        read, encoder, decoder, cross = self._all_weights(source.ids, target_ids, languages)
        is_source, is_target = (
            tf.cast(ids != PAD, tf.float32)[:, None, None, :, None] for ids in (source.ids, target_ids)
        )
        return AllAttention(
            self.target_tokenizer.detokenize(target_ids),
            self.source_tokenizer.pieces_of(source.ids),
            self.target_tokenizer.pieces_of(target_ids),
            self.target_tokenizer.pieces_of(read),
            encoder * is_source,
            decoder * is_target,
            cross * is_target,
            source.is_truncated,
        )

    def translate_with_steps(
        self, text: tf.Tensor, prefix_ids: Any = (), languages: Languages | None = None
    ) -> SearchSteps:
        """Translate strings [B], and show what model and search had to choose from at each step.

        Args:
            text: the sentences.
            prefix_ids: [B, P], int32: the target tokens that the translations begin with, then padding; () for none.
                Numbers that the vocabulary does not have stand for the unknown token, as unknown text does.
            languages: as in `search`.

        Raises:
            InputError: a search that is no beam search.
        """
        self._search.check_beam()
        vocabulary = self.target_tokenizer.vocab_size
        if tf.is_tensor(prefix_ids):
            prefix_ids = tf.where((prefix_ids >= PAD) & (prefix_ids < vocabulary), prefix_ids, UNKNOWN)
        source = self.encode_source(text, languages)
        language_tokens = self._target_languages(tf.shape(text)[0], languages)
        found, considered = self._search.considered(source.ids, prefix_ids, language_tokens)
        target_ids = without_padding(found.ids[:, 0])
        logits = self._logits(source.ids, target_ids, languages)
        probable = tf.math.top_k(tf.nn.log_softmax(logits), min(NEXT, vocabulary))
        return SearchSteps(
            self.target_tokenizer.detokenize(target_ids),
            target_ids,
            self.target_tokenizer.pieces_of(target_ids),
            probable.indices,
            self.target_tokenizer.pieces_of(probable.indices),
            probable.values,
            considered,
            self.target_tokenizer.pieces_of(considered.tokens),
            source.is_truncated,
        )

    def score(self, sources: tf.Tensor, targets: tf.Tensor, languages: Languages | None = None) -> Scored:
        """Return how probable the model finds the targets [B] as translations of the sources [B].

        A source without text has the empty translation for certain, as in `translate`: its end token has 0. Any other
        target of such a source, which no search writes, has what the model gives.

        Raises:
            ValueError: the number of targets is not that of the sources; in a graph, an InvalidArgumentError.
        """
        source = self.encode_source(sources, languages)
        labels, is_cut = self._encode_target(_one_of_each("target", targets, source))
        logits = self._logits(source.ids, labels, languages)
        of_tokens = tf.gather(logits, labels, batch_dims=2) - tf.reduce_logsumexp(logits, axis=-1)
        lengths = tf.math.count_nonzero(labels, 1, dtype=tf.int32)
        is_certain = ~has_text(source.ids, bool(self.source_tokenizer.languages)) & (lengths == 1)
        of_tokens = tf.where((labels == PAD) | is_certain[:, None], 0.0, of_tokens)
        return Scored(tf.reduce_sum(of_tokens, axis=1), of_tokens, lengths, source.is_truncated | is_cut)

    def _all_weights(
        self, source_ids: tf.Tensor, target_ids: tf.Tensor, languages: Languages | None
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return what the decoder reads [B, R], and the weights of encoder, decoder and cross-attention, float32.

        Those are [B, layers, heads, rows, columns]; the rows of the last two are the target tokens.
        """
        read, before = self._read(target_ids, languages)
        encoder, decoder, cross = (
            tf.cast(tf.stack(layers, axis=1), tf.float32) for layers in self.model.attention((source_ids, read))
        )
        return read, encoder, decoder[:, :, :, before:], cross[:, :, :, before:]

    def search(
        self,
        text: tf.Tensor,
        n_best: int = 1,
        prefix: Any = (),
        languages: Languages | None = None,
        terms: Any = (),
    ) -> tuple[Source, Hypotheses]:
        """Search for the translations of strings [B].

        Args:
            text: the sentences.
            n_best: the number of hypotheses for each string.
            prefix: strings [B] that the translations begin with; their tokens are used as far as there is room. () for
                none.
            languages: those of each string, if the model has several; by default those of `decoding` for all.
            terms: strings [B]: what the translations must contain, several terms with tabs between them; an empty one
                demands nothing. Nothing is found for a string without text that has terms, nor for one whose terms have
                unknown tokens or none at all, or exceed its limit. () for none.

        Raises:
            InputError: n_best above the number of hypotheses; no languages, or wrong ones; terms for a search that is
                no beam search, or that XLA compiles.
            ValueError: the number of prefixes or of terms is not that of the strings; in a graph, an
                InvalidArgumentError.
        """
        source = self.encode_source(text, languages)
        if not (isinstance(prefix, tuple) and not prefix):
            prefix = self.target_tokenizer.tokenize(_one_of_each("prefix", prefix, source)).to_tensor(PAD)
        keys = tf.strings.to_hash_bucket_fast(text, 2**31 - 1)
        language_tokens = self._target_languages(tf.shape(text)[0], languages)
        if isinstance(terms, tuple) and not terms:
            return source, self._search(source.ids, keys, n_best, prefix, language_tokens)
        phrases, are_writable = self._phrases(_one_of_each("terms", terms, source))
        found = self._search(source.ids, keys, n_best, prefix, language_tokens, phrases)
        return source, _only(found, are_writable)

    def _phrases(self, terms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the tokens [B, C, L] of the terms of strings [B], and whether the vocabulary can write all of them."""
        each = tf.strings.split(terms, "\t")
        tokens, are_written = self.target_tokenizer.tokens_that_write(each.flat_values)
        phrases = each.with_flat_values(tokens).to_tensor(PAD)
        return phrases, tf.reduce_all(each.with_flat_values(are_written), axis=1)

    def encode_source(self, text: tf.Tensor, languages: Languages | None = None) -> Source:
        """Tokenise strings [B], and cut those that are longer than the search takes."""
        tokens = self.source_tokenizer.tokenize(text)
        if not self.source_tokenizer.languages:
            return _encoded(tokens, self.most_source)
        ids = self._ids_of_languages("source", tf.shape(text)[0], languages)
        return _encoded(tokens, self.most_source, ids)

    def _target_languages(self, rows: tf.Tensor, languages: Languages | None) -> Any:
        """Return the tokens [B] of the languages to translate to; () if the model has only one."""
        return self._ids_of_languages("target", rows, languages) if self.target_tokenizer.languages else ()

    def _ids_of_languages(self, side: str, rows: tf.Tensor, languages: Languages | None) -> tf.Tensor:
        """Return the tokens [B] of the languages of one side: those given, or those of all sentences."""
        tokenizer = getattr(self, f"{side}_tokenizer")
        if languages is not None:
            return tokenizer.language_ids(getattr(languages, side))
        self._check_directed()
        return tf.fill([rows], tokenizer.languages[getattr(self.decoding, f"{side}_language")])

    def _check_directed(self) -> None:
        """Raise InputError if the model has several languages, but `decoding` does not say which to use."""
        self.decoding.check_directed(self.source_tokenizer.languages)

    def _read(self, ids: tf.Tensor, languages: Languages | None) -> tuple[tf.Tensor, int]:
        """Return what the decoder reads to write ids [B, T], and the place of the token that it reads before the first.

        It reads the start token, the language if the model has several, and all ids except the last.
        """
        rows = tf.shape(ids)[0]
        first = [tf.fill([rows, 1], START)]
        if self.target_tokenizer.languages:
            first.append(self._target_languages(rows, languages)[:, None])
        return tf.concat([*first, ids], axis=1)[:, :-1], len(first) - 1

    def _logits(self, source_ids: tf.Tensor, target_ids: tf.Tensor, languages: Languages | None) -> tf.Tensor:
        """Return the logits [B, T, V] for target tokens [B, T], of each after those before it."""
        read, before = self._read(target_ids, languages)
        return self.model((source_ids, read), training=False)[:, before:]

    def _encode_target(self, text: tf.Tensor) -> Source:
        """Tokenise translations, and cut those that are longer than the search could write."""
        most = self.decoding.most_given(self.model.max_positions, bool(self.target_tokenizer.languages))
        return _encoded(self.target_tokenizer.tokenize(text), most)

    def count(self, text: tf.Tensor) -> tf.Tensor:
        """As `count_tokens`, for strings [B] in a tensor; returns int32 [B]."""
        added = 1 + bool(self.source_tokenizer.languages)
        lengths = tf.cast(self.source_tokenizer.tokenize(text).row_lengths(), tf.int32)
        return tf.minimum(lengths + added, self.most_source)


def _only(found: Hypotheses, are_writable: tf.Tensor) -> Hypotheses:
    """Return hypotheses, of which a sentence has none if its terms are not writable: [B], boolean."""
    there = are_writable[:, None]
    return Hypotheses(
        tf.where(there[:, :, None], found.ids, PAD),
        tf.where(there, found.scores, -np.inf),
        tf.where(there, found.log_probabilities, -np.inf),
    )


def _one_of_each(name: str, given: Any, source: Source) -> tf.Tensor:
    """Return strings as a tensor, of which there must be as many as there are sentences.

    Raises:
        ValueError: there are not; where a graph does not know their number, an InvalidArgumentError.
    """
    given, message = tf.convert_to_tensor(given, tf.string), f"give {name} for each string"
    if not given.shape.is_compatible_with(source.is_truncated.shape):
        raise ValueError(f"{message}. Received: {given.shape=}, {source.ids.shape=}")
    # One would otherwise be taken for that of all sentences.
    with tf.control_dependencies([tf.debugging.assert_equal(tf.size(given), tf.size(source.is_truncated), message)]):
        return tf.identity(given)


def _encoded(tokens: tf.RaggedTensor, most: int, languages: tf.Tensor | None = None) -> Source:
    """Return tokens [B, any] after those of their languages [B], if these are given, and before the end token.

    Each row is cut to `most` tokens in all.
    """
    first = [] if languages is None else [languages[:, None]]
    room = most - len(first) - 1
    ids = tf.concat([*first, tokens[:, :room], tf.fill([tokens.nrows(), 1], END)], axis=1)
    return Source(ids.to_tensor(PAD), tokens.row_lengths() > room)


def without_padding(ids: tf.Tensor) -> tf.Tensor:
    """Return ids [B, T] without the end that is all padding: a search may go on after the best were found."""
    return ids[:, : tf.reduce_max(tf.concat([tf.math.count_nonzero(ids, 1, dtype=tf.int32), [0]], axis=0))]
