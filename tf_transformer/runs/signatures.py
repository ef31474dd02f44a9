"""The signatures of an export: their names, what each takes and what it gives.

SavedModels, exports for LiteRT, the servers and the README.md of an export follow this table.
"""

from typing import NamedTuple

from tf_transformer.config import DecodingConfig
from tf_transformer.runs.descriptions import LANGUAGES

DEFAULT = "serving_default"
TRANSLATE_TO = "translate_to"
N_BEST = "translate_n_best"
WITH_TERMS = "translate_with_terms"
WITH_ATTENTION = "translate_with_attention"
ALL_ATTENTION = "attention"
STEPS = "search_steps"
SCORE = "score"
COUNT = "count_tokens"


class Output(NamedTuple):
    """An output of a signature."""

    dtype: str
    shape: str
    """its axes; B sentences are given"""
    meaning: str


class Signature(NamedTuple):
    """What a signature takes and gives."""

    takes: tuple[str, ...]
    """the names of its inputs, all of them string, [B]"""
    gives: dict[str, Output]
    is_directed: bool = True
    """whether it takes `source_language` and `target_language` too, if the model has several languages"""


_TEXT = ("text",)
_TRANSLATION = {"translation": Output("string", "B", "the translation")}
_SCORED = _TRANSLATION | {"score": Output("float32", "B", "its summed log-probability")}
_N_BEST = {
    "translations": Output("string", "B n", "the translations, the best first; n is the beam size, or 1 with sampling"),
    "scores": Output("float32", "B n", "log-probability divided by the length penalty; -inf where there is none"),
}
_TOKENS = {
    "source_tokens": Output("string", "B S", "the pieces of the source"),
    "target_tokens": Output("string", "B T", "the pieces of the translation"),
}
_CUT = {"is_truncated": Output("bool", "B", "whether the sentence was cut to `decoding.max_source_length` tokens")}

SIGNATURES = {
    DEFAULT: Signature(_TEXT, _SCORED | _CUT, is_directed=False),
    N_BEST: Signature(_TEXT, _N_BEST | _CUT),
    WITH_ATTENTION: Signature(
        _TEXT,
        _TRANSLATION
        | {"alignment": Output("string", "B", 'which words belong together, such as "0-0 1-2", the source first')}
        | _TOKENS
        | {"attention": Output("float32", "B T S", "the mean of the heads of `decoding.attention_layer`")}
        | _CUT,
    ),
    ALL_ATTENTION: Signature(
        _TEXT,
        _TRANSLATION
        | _TOKENS
        | {"read_tokens": Output("string", "B R", "the pieces that the decoder reads")}
        | {
            kind: Output("float32", "B layers heads rows columns", "see `translation.results.AllAttention`")
            for kind in ("encoder", "decoder", "cross")
        }
        | _CUT,
    ),
    SCORE: Signature(
        ("source", "target"),
        {
            "log_probability": Output("float32", "B", "the summed log-probability of the target"),
            "token_log_probabilities": Output("float32", "B T", "those of its tokens"),
            "tokens": Output("int32", "B", "the number of tokens of the target, including the end token"),
            **_CUT,
        },
    ),
    COUNT: Signature(_TEXT, {"tokens": Output("int32", "B", "the number of tokens of the source")}, is_directed=False),
    STEPS: Signature(
        (*_TEXT, "prefix_ids"),
        _TRANSLATION
        | {
            "target_ids": Output("int32", "B T", "the ids of the translation"),
            "target_tokens": _TOKENS["target_tokens"],
            "next_ids": Output("int32", "B T N", "the most probable tokens at each place"),
            "next_tokens": Output("string", "B T N", "their pieces"),
            "next_log_probabilities": Output("float32", "B T N", "their log-probabilities"),
            "considered_tokens": Output("string", "B steps C", "the candidates of the search: see `Considered`"),
            "parents": Output("int32", "B steps C", "which hypotheses they continue"),
            "places": Output("int32", "B steps C", "which hypotheses of the next step they are; -1 if none"),
            "log_probabilities": Output("float32", "B steps C", "of the hypotheses with them"),
            "scores": Output("float32", "B steps C", "the scores of those that they finish; -inf for all others"),
        }
        | _CUT,
    ),
    WITH_TERMS: Signature((*_TEXT, "terms"), _N_BEST | _CUT),
    TRANSLATE_TO: Signature(_TEXT, _SCORED | _CUT),
}
"""All signatures. `prefix_ids` has the numbers of target tokens to begin with, with spaces between them, and `terms`
what the translations must contain, several terms with tabs between them. If a translation cannot, it is empty."""


def signatures_of(decoding: DecodingConfig, has_languages: bool, is_litert: bool = False) -> dict[str, Signature]:
    """Return the signatures of an export, with all inputs that they have there.

    Args:
        decoding: how the export searches.
        has_languages: whether its model has several languages.
        is_litert: whether it is one for LiteRT.
    """
    lacks = {TRANSLATE_TO} if not has_languages else set()
    if decoding.hypotheses == 1:
        lacks |= {STEPS, WITH_TERMS}
    if decoding.jit_compile:
        lacks.add(WITH_TERMS)
    if is_litert:
        lacks |= {ALL_ATTENTION, STEPS, WITH_TERMS}
    return {
        name: signature._replace(takes=(*signature.takes, *LANGUAGES))
        if has_languages and signature.is_directed
        else signature
        for name, signature in SIGNATURES.items()
        if name not in lacks
    }
