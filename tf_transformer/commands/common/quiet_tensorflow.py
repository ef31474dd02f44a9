"""Importing TensorFlow, and opening what LiteRT runs, without their greetings."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

from tf_transformer.errors import InputError
from tf_transformer.progress import waiting_for


@contextlib.contextmanager
def said_on_failure() -> Iterator[None]:
    """Keep what is written to standard error, also by C++, and show it only if an error is raised."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except (InputError, KeyboardInterrupt):
            raise  # it says what is wrong in one line
        except BaseException:
            said.seek(0)
            os.write(kept, said.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def import_tensorflow(onednn: bool | None = None) -> None:
    """Import TensorFlow for a command, keeping standard error for what the user must read.

    Its C++ part writes to standard error before it looks at any setting: that it found no CUDA, and so on. What it
    wrote is shown if the import fails.

    Args:
        onednn: whether to use oneDNN's kernels, unless the user has set `TF_ENABLE_ONEDNN_OPTS`; by default TensorFlow
            decides, and uses them where the CPU has AVX-512. They are the faster ones in training. For a server they
            are not, and they keep memory for each shape that a request had.
    """
    # The commands are on TensorFlow, whatever backend Keras is told to use for other work.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if onednn is not None:
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", str(int(onednn)))
    with waiting_for("loading TensorFlow"), said_on_failure():
        import tensorflow as tf
        import tensorflow_text  # noqa: F401

        tf.config.list_physical_devices()
        tf.get_logger().setLevel("ERROR")
