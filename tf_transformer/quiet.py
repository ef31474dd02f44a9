"""Importing TensorFlow without its greetings."""

import os
import sys
import tempfile


def import_tensorflow(to_train: bool = False) -> None:
    """Import TensorFlow for a command, keeping standard error for what the user must read.

    Its C++ part writes to standard error before it looks at any setting: that it found no CUDA, and so on. What it
    wrote is shown if the import fails.

    Args:
        to_train: for training, where oneDNN's kernels are the faster ones; in decoding they are not.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if to_train:
        # TensorFlow uses them unasked only where the CPU has AVX-512.
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            import tensorflow as tf
            import tensorflow_text  # noqa: F401

            tf.config.list_physical_devices()
            tf.get_logger().setLevel("ERROR")
        except BaseException:
            said.seek(0)
            os.write(kept, said.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
