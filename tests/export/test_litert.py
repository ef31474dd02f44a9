"""The file for LiteRT, as an app on a phone uses it: by its signatures and the JSON alone."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from tf_transformer.errors import InputError
from tf_transformer.export.litert import export
from tf_transformer.litert import Translator
from tf_transformer.runs.descriptions import LITERT_MODEL
from tf_transformer.tokenizers.vocabulary import Vocabulary

PAGE = (Path(__file__).parents[2] / "docs" / "devices.md").read_text("utf-8")
LINES = ["a b c d e f", "k j i h", "b b a c d e d g"]


@pytest.fixture(scope="module")
def exported(copy_litert) -> Path:
    return copy_litert("float32")


@pytest.fixture(scope="module")
def facts(exported):
    return json.loads((exported / "tf_transformer.json").read_text())


def test_it_has_operations_of_litert_alone(exported):
    interpreter = Interpreter(str(exported / LITERT_MODEL))
    names = {operation["op_name"] for operation in interpreter._get_ops_details()}
    assert {"FULLY_CONNECTED", "BATCH_MATMUL", "TOPK_V2"} <= names
    own = {name for name in names if name.isupper() and name != "CUSTOM"}
    assert names - own <= {"TfLiteXNNPackDelegate", "DELEGATE"}
    assert b"Flex" not in (exported / LITERT_MODEL).read_bytes()


def test_an_app_translates_by_what_the_page_says(exported, facts):
    """The loop of the page, in Python: one sentence, greedily, with a cache of a fixed size."""
    litert, decoding = facts["litert"], facts["config"]["decoding"]
    source, target = (Vocabulary.load(exported / name) for name in litert["tokenizers"])
    interpreter = Interpreter(str(exported / LITERT_MODEL))
    encode, decode = (interpreter.get_signature_runner(name) for name in ("encode", "decode"))
    tokens = litert["tokens"]

    def translate(text):
        ids = [*source.encode([text])[0], tokens["end"]]
        memory = encode(ids=np.array([ids], np.int32))
        limit = len(ids) - 1 + decoding["max_extra_length"]
        forbidden = np.zeros(litert["vocabulary"], np.float32)
        forbidden[[tokens["pad"], tokens["start"]]] = -np.inf
        names = [f"{side}_{i}" for i in range(litert["layers"]) for side in ("key", "value")]
        cache = {name: np.zeros((1, litert["heads"], limit, litert["depth"]), np.float32) for name in names}
        token, written = tokens["start"], []
        for position in range(limit):
            found = decode(
                ids=np.array([token], np.int32),
                position=np.int32(position),
                forbidden=forbidden,
                count=np.int32(1),
                **memory,
                **cache,
            )
            for name in names:
                cache[name][:, :, position] = found[f"new_{name}"][:, :, 0]
            token = int(found["tokens"][0, 0])
            if token == tokens["end"]:
                break
            written.append(token)
        return target.processor.decode(written)

    translator = Translator.load(exported)
    translator.decoding = dataclasses.replace(translator.decoding, beam_size=1)
    assert [translate(line) for line in LINES] == translator.translate_strings(LINES)


def test_the_page_names_what_is_there(exported, facts):
    """Every name in the code for phones and in the tables is one of the signatures or of the JSON."""
    signatures = Interpreter(str(exported / LITERT_MODEL)).get_signature_list()
    there = {name for sides in signatures.values() for names in sides.values() for name in names}
    there |= set(signatures) | set(facts["litert"]) | set(facts["litert"]["tokens"]) | set(facts["config"]["decoding"])
    there |= {"litert", "config", "decoding", LITERT_MODEL, "tf_transformer.json"}
    code = "\n".join(re.findall(r"```(?:kotlin|swift)\n(.*?)```", PAGE, flags=re.S))
    named = {re.sub(r"\$i|\\\(i\)", "0", name) for name in re.findall(r'"((?:[^"\\]|\\.)+)"', code)}
    # A name within another one: "new_$name", "memory_\(name)".
    named = {name for name in named if "$name" not in name and r"\(name)" not in name}
    assert named
    assert named <= there, named - there
    rows = re.findall(r"^\|(?: takes| gives)? \|([^|]*)\|", PAGE, flags=re.M)
    table = set(re.findall(r"`(\w+)`", "\n".join(rows)))
    listed = {name.removesuffix("_i") + "_0" if name.endswith("_i") else name for name in table}
    shown = {name for name in there if re.sub(r"_\d+$", "_0", name) == name} & {
        name for sides in signatures.values() for names in sides.values() for name in names
    }
    assert listed == shown


def test_shapes_are_those_of_the_page(exported, facts):
    litert = facts["litert"]
    runner = Interpreter(str(exported / LITERT_MODEL)).get_signature_runner("decode")
    shapes = {name: each["shape_signature"].tolist() for name, each in runner.get_input_details().items()}
    kept = [-1, litert["heads"], -1, litert["depth"]]
    assert shapes.pop("ids") == [-1]
    assert shapes.pop("position") == shapes.pop("count") == []
    assert shapes.pop("forbidden") == [litert["vocabulary"]]
    assert shapes.pop("mask") == [-1, -1]
    assert len(shapes) == 4 * litert["layers"]
    assert all(shape == kept for shape in shapes.values())


def test_what_is_there_is_not_overwritten(copy_run, exported):
    with pytest.raises(InputError, match="exists: give another --output"):
        export(copy_run, exported)
