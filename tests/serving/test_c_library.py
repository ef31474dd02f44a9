"""An export in a runtime without Python: TensorFlow's C library, which the servers are made of too."""

import os
import shutil
import subprocess
from importlib.metadata import files
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

SENTENCES = ["a b c", "g f e d", "", "h", "\u03a9 \u2615"]


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The compiled program."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc to compile the program with")
    library = Path(tf.sysconfig.get_lib())
    (cc,) = library.glob("libtensorflow_cc.so.2") or library.glob("libtensorflow_cc.2.dylib")
    output = tmp_path_factory.mktemp("c") / "translate"
    command = [compiler, "-Wall", "-Werror", "-I", tf.sysconfig.get_include(), "-o", str(output)]
    command += [str(Path(__file__).with_name("translate.c")), str(cc), *tf.sysconfig.get_link_flags()]
    command += [f"-Wl,-rpath,{library}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


@pytest.mark.long
def test_it_translates_strings(program, copy_export, exported):
    kernels = next(file for file in files("tensorflow-text") or () if file.name == "_sentencepiece_tokenizer.so")
    saved = SavedModel.FromString((copy_export / "saved_model.pb").read_bytes())
    signature = saved.meta_graphs[0].signature_def["serving_default"]
    names = signature.inputs["text"].name, signature.outputs["translation"].name
    done = subprocess.run(
        [program, kernels.locate(), copy_export, *names, *SENTENCES],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == exported.translate_strings(SENTENCES)
