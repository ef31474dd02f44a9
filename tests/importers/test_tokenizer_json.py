"""tokenizer.json alone: the SentencePiece model rebuilt from it cuts text as the library tokenizers does."""

import base64
import functools
import json
import operator
import shutil

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from tf_transformer.errors import InputError
from tf_transformer.importers.opening import _reader
from tf_transformer.importers.tokenizer_json import rebuilt
from tf_transformer.tokenizers.normalization import is_blank
from tf_transformer.tokenizers.vocabulary import Vocabulary

SPECIAL = {"marian": ["</s>", "<unk>"], "m2m100": ["<s>", "<pad>", "</s>", "<unk>"]}
FILES = {
    "marian": ("source.spm", "target.spm", "vocab.json"),
    "m2m100": ("sentencepiece.bpe.model", "vocab.json"),
    "nllb": ("sentencepiece.bpe.model",),
}
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def written(file, special, languages):
    """The content of a tokenizer.json, as tokenizers 0.23 saves it, that cuts text as a SentencePiece model."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(file.read_bytes())
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == piece.NORMAL}
    if proto.trainer_spec.model_type == proto.trainer_spec.BPE:
        ids = {piece: i for i, piece in enumerate([*special, *scores])}
        ranked = sorted(scores, key=scores.__getitem__, reverse=True)
        cuts = [(piece[:i], piece[i:]) for piece in ranked for i in range(1, len(piece))]
        merges = [[left, right] for left, right in cuts if left in ids and right in ids]
        model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "vocab": ids, "merges": merges}
    else:
        pieces = [*([text, -100.0] for text in special), *map(list, scores.items())]
        model = {"type": "Unigram", "unk_id": special.index("<unk>"), "vocab": pieces}
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    steps = [{"type": "Precompiled", "precompiled_charsmap": charsmap}, {"type": "Strip"}, spaces]
    added = [*enumerate(special), *enumerate(languages, len(special) + len(scores))]
    return {
        "added_tokens": [{"id": id, "content": text, **FLAGS} for id, text in added],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "model": model | {"byte_fallback": False},
    }


@pytest.fixture(scope="module", params=FILES)
def alone(request, unpacked, tmp_path_factory):
    """The vocabulary of a folder that has no other file of pieces, the file that is missing, and tokenizer.json."""
    whole = unpacked(request.param)
    folder = shutil.copytree(whole, tmp_path_factory.mktemp("alone") / request.param)
    if special := SPECIAL.get(request.param):
        content = written(whole / FILES[request.param][0], special, ["__en__"] if request.param == "m2m100" else [])
        (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
        last = len(content["model"]["vocab"])
        config = json.loads((folder / "config.json").read_text("utf-8")) | {"vocab_size": last + 1}
        padding = {"pad_token_id": last, "decoder_start_token_id": last} if request.param == "marian" else {}
        (folder / "config.json").write_text(json.dumps(config | padding))
        for file in ("generation_config.json", "tokenizer_config.json"):
            (folder / file).unlink()
    for file in FILES[request.param]:
        (folder / file).unlink()
    found = _reader(folder)(folder)
    size = found.config.model.input_vocab_size
    vocabulary = Vocabulary(next(iter(found.tokenizers.values())), vocab_size=size, languages=found.languages)
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    return vocabulary, sentencepiece.SentencePieceProcessor(str(whole / FILES[request.param][0])), content


def pieces_of(vocabulary, text):
    return [vocabulary.pieces[id] for id in vocabulary.encode([text])[0]]


@settings(max_examples=80)
@given(
    text=st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40) | st.text("Aaeouß üñ.,lr", max_size=30)
)
@example("\u00ad")
def test_it_cuts_text_as_the_file_that_is_missing(alone, text):
    rebuilt, processor, _ = alone
    ids = [] if is_blank(text) else processor.encode(text)  # what shows nothing is no text
    assert pieces_of(rebuilt, text) == [processor.id_to_piece(id) for id in ids]


IDS = {
    "Unigram": {
        "The dog sleeps.": [6, 25, 153, 5, 3, 156, 14, 14, 152, 3, 2],
        "  Der   Hund schläft ": [5, 142, 121, 5, 146, 102, 42, 5, 3, 155, 158, 156, 1, 133, 11],
        "ﬁre ２０ \xa0½": [5, 133, 132, 20, 5, 1, 5, 1],
        "日本 xyz日本": [5, 1, 5, 126, 8, 1],
        "a\tb\nc": [9, 5, 154, 5, 155],
        "…\u200b…": [5, 2, 2, 2, 5, 2, 2, 2],
        "▁a ▁▁b": [9, 5, 154],
        "Straße, große; Größe!": [5, 144, 11, 7, 157, 1, 14, 112, 5, 153, 7, 54, 1, 14, 1, 5, 1, 7, 1, 14, 80],
    },
    "BPE": {
        "The dog sleeps.": [37, 55, 261, 10, 45, 247, 269, 252, 260],
        "  Der   Hund schläft ": [127, 62, 53, 106, 258, 282, 263, 251],
        "ﬁre ２０ \xa0½": [30, 249, 26, 246, 3, 246, 3],
        "日本 xyz日本": [246, 3, 246, 300, 265, 278, 3],
        "a\tb\nc": [13, 12, 40],
        "…\u200b…": [246, 260, 260, 260, 246, 260, 260, 260],
        "▁a ▁▁b": [13, 12],
        "Straße, große; Größe!": [179, 250, 254, 285, 247, 279, 102, 247, 3, 246, 293, 250, 294, 285, 247, 291],
    },
}
"""What tokenizers 0.23 makes of the file that `written` makes of MarianMT's and M2M100's samples."""


@pytest.mark.parametrize("alone", SPECIAL, indirect=True)
def test_it_gives_the_ids_of_the_tokenizers_library(alone):
    vocabulary, _, content = alone
    model = content["model"]
    texts = [piece for piece, _ in model["vocab"]] if model["type"] == "Unigram" else list(model["vocab"])
    for text, ids in IDS[model["type"]].items():
        assert pieces_of(vocabulary, text) == [texts[id] for id in ids]


VALUES = (None, "4", -1, 0.5, [1], [["a", 0.5]], {}, {"a": 1}, {"a": []})
PLACES = ((), ("model",), ("added_tokens", 0), ("normalizer",), ("normalizer", "normalizers", 0), ("pre_tokenizer",))


def said_of(file):
    """Why a file is refused, or an empty string."""
    try:
        rebuilt(file)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("of", SPECIAL)
def test_no_value_of_any_key_is_a_traceback(unpacked, tmp_path, of):
    """It is read or refused, in one line that names the file. A BPE has an object of pieces, a Unigram a list."""
    file, content = tmp_path / "tokenizer.json", written(unpacked(of) / FILES[of][0], SPECIAL[of], [])
    for place in PLACES:
        there = functools.reduce(operator.getitem, place, content)
        for key, before in list(there.items()):
            for value in VALUES:
                there[key] = value
                file.write_text(json.dumps(content), "utf-8")
                error = said_of(file)
                assert not error or ("tokenizer.json" in error and "\n" not in error)
                assert error or key != "vocab" or isinstance(value, list) == (content["model"]["type"] == "Unigram")
            there[key] = before
