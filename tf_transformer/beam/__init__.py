"""Preparing and translating corpora on a cluster that runs Apache Beam, such as Dataflow, Flink or Spark."""

from typing import TYPE_CHECKING, Any

from tf_transformer.errors import missing_extra

if TYPE_CHECKING:
    from tf_transformer.beam.preparing import Prepare as Prepare
    from tf_transformer.beam.translating import Translate as Translate
    from tf_transformer.beam.translating import TranslateFiles as TranslateFiles

__all__ = ["Prepare", "Translate", "TranslateFiles"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tf_transformer.beam import preparing, translating
    except ModuleNotFoundError as error:
        raise missing_extra(__name__, "beam", error) from None
    return getattr(preparing if name == "Prepare" else translating, name)
