"""Preparing and translating corpora on a cluster that runs Apache Beam, such as Dataflow, Flink or Spark."""

try:
    import apache_beam as _  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"tf_transformer.beam needs the extra beam: pip install 'tf-transformer[beam]' ({error})"
    ) from None

from tf_transformer.beam.preparing import Prepare
from tf_transformer.beam.translating import Translate, TranslateFiles

__all__ = ["Prepare", "Translate", "TranslateFiles"]
