"""Languages that a run can get, and the tokenizer that has them; without TensorFlow."""

import re
from collections.abc import Mapping
from pathlib import Path

from tf_transformer.config.special_tokens import language_pieces
from tf_transformer.errors import InputError, unknown
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.tokenizers.vocabulary import Vocabulary


def check_new_languages(run: RunDirectory, output: str | Path, languages: Mapping[str, str]) -> None:
    """Check that a run can get languages, each of which starts as another.

    Raises:
        InputError: the output exists; the run has no checkpoint or no tokens of languages; a new language is there, or
            is no name; the other one is not there.
    """
    if Path(output).exists():
        raise InputError(f"{output} exists: give another --output, or remove it")
    if not run.languages:
        raise InputError(f"{run.path} translates in one direction, without tokens of languages: none can be added")
    run.best_checkpoint()
    for new, old in languages.items():
        if new in run.languages or not re.fullmatch(r"[\w-]+", new):
            raise InputError(f"a new language must be a name that {run.path} does not have. Received: {new!r}")
        if old not in run.languages:
            raise unknown("language", old, run.languages)


def with_tokens(vocabulary: Vocabulary, languages: Mapping[str, str]) -> bytes:
    """Return the SentencePiece model of a vocabulary with a token for each new language, behind the ids in use.

    Raises:
        InputError: it has the name of a new language as a piece.
    """
    from sentencepiece import sentencepiece_model_pb2  # needs protobuf, which translating does not

    proto = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model)
    kind = sentencepiece_model_pb2.ModelProto.SentencePiece
    tokens = []
    for new, old in languages.items():
        is_bare = vocabulary.pieces[vocabulary.languages[old]] == old
        tokens.append(kind(piece=language_pieces(new)[is_bare], type=kind.CONTROL))
    if found := {token.piece for token in tokens} & {piece.piece for piece in proto.pieces}:
        raise InputError(f"the tokenizer has the piece {min(found)!r}: give the language another name")
    pieces = [*proto.pieces]
    pieces[vocabulary.vocab_size : vocabulary.vocab_size] = tokens
    extended = sentencepiece_model_pb2.ModelProto()
    extended.CopyFrom(proto)
    del extended.pieces[:]
    extended.pieces.extend(pieces)
    extended.trainer_spec.vocab_size = len(pieces)
    return extended.SerializeToString()
