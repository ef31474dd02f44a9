"""The SentencePiece model that a tokenizer.json was made of, rebuilt for folders that have no other file of pieces."""

import base64
import binascii
from pathlib import Path
from typing import Any

from sentencepiece import sentencepiece_model_pb2

from tf_transformer.errors import InputError
from tf_transformer.importers.added_tokens import listed_tokens
from tf_transformer.importers.folder import read_bytes, read_object, shown
from tf_transformer.importers.vocabulary import SPACE_MARK

SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}}
"""The step that takes several spaces as one, as SentencePiece does by itself."""
KIND = sentencepiece_model_pb2.ModelProto.SentencePiece
CONTROL = ("<s>", "<pad>", "</s>")
UNKNOWN = "<unk>"


def sentencepiece_of(folder: Path, name: str) -> bytes:
    """Return the SentencePiece model in a file of a folder; if there is none, the one that tokenizer.json was made of.

    Raises:
        InputError: there is neither, or one is damaged.
    """
    file = folder / "tokenizer.json"
    return rebuilt(file) if file.exists() and not (folder / name).exists() else read_bytes(folder / name)


def rebuilt(file: Path) -> bytes:
    """Return a SentencePiece model that cuts text as a tokenizer.json says.

    It has the pieces in another order: unknown, the control pieces, and the others by their ids.

    Raises:
        InputError: the file is missing or damaged, or cuts text in a way that SentencePiece cannot.
    """
    content = read_object(file)
    model = _model(content, file)
    pieces = _by_ids(model, file)
    scores = (_bpe if model["type"] == "BPE" else _unigram)(model, file)
    proto = sentencepiece_model_pb2.ModelProto()
    spec = proto.trainer_spec
    spec.model_type = spec.BPE if model["type"] == "BPE" else spec.UNIGRAM
    spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id = 0, 1, 2, -1
    proto.pieces.add(piece=UNKNOWN, type=KIND.UNKNOWN)
    proto.pieces.add(piece="<s>", type=KIND.CONTROL)
    proto.pieces.add(piece="</s>", type=KIND.CONTROL)
    added = {text for token in listed_tokens(content, file) if isinstance(text := token.get("content"), str)}
    for _, piece in sorted(pieces.items()):
        if piece not in (*CONTROL, UNKNOWN) and piece not in added:
            proto.pieces.add(piece=piece, score=scores[piece])
    _normalise(proto.normalizer_spec, content.get("normalizer"), file)
    _mark_spaces(proto.normalizer_spec, content.get("pre_tokenizer"), file)
    return proto.SerializeToString()


def written_pieces(file: Path) -> dict[int, str]:
    """Return the pieces of a tokenizer.json by their ids, without the tokens that were added to them.

    Raises:
        InputError: the file is damaged.
    """
    return _by_ids(_model(read_object(file), file), file)


def _model(content: dict[str, Any], file: Path) -> dict[str, Any]:
    model = content.get("model")
    if not isinstance(model, dict) or model.get("type") not in ("BPE", "Unigram") or model.get("byte_fallback"):
        kind = model.get("type") if isinstance(model, dict) else model
        raise InputError(f"{file}: model must be a BPE or Unigram without byte_fallback. Received: {shown(kind)}")
    return model


def _bpe(model: dict[str, Any], file: Path) -> dict[str, float]:
    """Return a score for each piece, which falls in the order of the merges.

    SentencePiece joins the two neighbours that make the piece of the highest score, wherever it is cut in two. A list
    of merges could be pickier, so it must have all pairs that make a piece, one after the other.
    """
    vocabulary, merges = model["vocab"], model.get("merges")
    pairs: dict[str, set[tuple[str, str]]] = {}
    last = None
    for merge in merges if isinstance(merges, list) else [merges]:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise InputError(f"{file}: merges must be a list of pairs of pieces. Received: {shown(merge)}")
        piece = "".join(pair)
        if piece != last and piece in pairs:
            raise InputError(f"{file}: the merges that make {piece!r} do not follow each other, as SentencePiece's do")
        pairs.setdefault(piece, set()).add((pair[0], pair[1]))
        last = piece
    for piece, found in pairs.items():
        cuts = ((piece[:i], piece[i:]) for i in range(1, len(piece)))
        if missing := [cut for cut in cuts if cut not in found and cut[0] in vocabulary and cut[1] in vocabulary]:
            pair = " ".join(missing[0])
            raise InputError(f"{file}: no merge makes {piece!r} of {pair!r}, as SentencePiece would")
    ranks = {piece: -float(rank) for rank, piece in enumerate(pairs)}
    return {piece: ranks.get(piece, -float(len(ranks))) for piece in vocabulary}


def _unigram(model: dict[str, Any], file: Path) -> dict[str, float]:
    for piece, score in model["vocab"]:
        if isinstance(score, bool) or not isinstance(score, int | float) or not -1e38 < score < 1e38:
            raise InputError(f"{file}: each piece of vocab must have a score. Received: {shown([piece, score])}")
    return {piece: float(score) for piece, score in model["vocab"]}


def _by_ids(model: dict[str, Any], file: Path) -> dict[int, str]:
    """Return the pieces by their ids: a BPE writes them, and those of a Unigram are in order."""
    vocabulary, is_bpe = model.get("vocab"), model["type"] == "BPE"
    if is_bpe and isinstance(vocabulary, dict):
        found = [(id, piece) for piece, id in vocabulary.items()]
    elif not is_bpe and isinstance(vocabulary, list) and all(isinstance(r, list) and len(r) == 2 for r in vocabulary):
        found = [(id, piece) for id, (piece, _) in enumerate(vocabulary)]
    else:
        form = "an object of pieces and ids" if is_bpe else "a list of pieces and scores"
        raise InputError(f"{file}: vocab of {model['type']} must be {form}. Received: {shown(vocabulary)}")
    if not all(type(id) is int and isinstance(piece, str) for id, piece in found):
        raise InputError(f"{file}: vocab must have an id for each piece")
    pieces = dict(found)
    if len(pieces) < len(found):
        raise InputError(f"{file}: two pieces of vocab have the same id")
    return pieces


def _normalise(spec: Any, normalizer: Any, file: Path) -> None:
    """Write the normalisation: the table of SentencePiece itself, and what it does by itself."""
    steps = _steps(normalizer, "normalizers")
    spec.name = "identity"
    for step in steps:
        kind = step.get("type") if isinstance(step, dict) else None
        if kind == "Precompiled":
            try:
                spec.precompiled_charsmap = base64.b64decode(step.get("precompiled_charsmap"), validate=True)
            except (TypeError, ValueError, binascii.Error):
                raise InputError(f"{file}: precompiled_charsmap is damaged") from None
            spec.name = "precompiled"
        elif kind == "Strip" or (isinstance(step, dict) and {**step, "content": None} == {**SPACES, "content": None}):
            continue
        else:
            raise InputError(f"{file}: normalizer must be one of SentencePiece. Received: {shown(step)}")


def _mark_spaces(spec: Any, splitter: Any, file: Path) -> None:
    """Write how spaces become marks."""
    spec.remove_extra_whitespaces = spec.escape_whitespaces = True
    for step in _steps(splitter, "pretokenizers"):
        kind = step.get("type") if isinstance(step, dict) else None
        if kind == "Metaspace" and step.get("replacement") == SPACE_MARK:
            scheme = step.get("prepend_scheme", "always" if step.get("add_prefix_space", True) else "never")
            spec.add_dummy_prefix = scheme != "never"
        elif kind != "WhitespaceSplit":
            raise InputError(f"{file}: pre_tokenizer must be the Metaspace of SentencePiece. Received: {shown(step)}")


def _steps(settings: Any, name: str) -> list[Any]:
    if settings is None:
        return []
    if isinstance(settings, dict) and settings.get("type") == "Sequence":
        steps = settings.get(name)
        return steps if isinstance(steps, list) else [steps]
    return [settings]
