"""Translation of lines whose markup stays as it is."""

from collections.abc import Sequence

from tf_transformer.text.markup import stripped
from tf_transformer.text.placing import restored
from tf_transformer.text.translator import LineTranslator


class WithMarkup:
    """A translator that takes markup out of sentences, and puts it into their translations.

    Args:
        model: what translates, and says what the tokens of a translation attend to.
    """

    def __init__(self, model: LineTranslator):
        self._model = model

    def translate_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[str]:
        """Translate sentences. Warnings are as in `TextTranslator`."""
        sources = [stripped(sentence) for sentence in sentences]
        texts = [source.text for source in sources]
        if not any(source.marks for source in sources):
            return self._model.translate_strings(texts, numbers)
        found = self._model.aligned_strings(texts, numbers)
        return [
            restored(source, one.translation, one.source_tokens, one.target_tokens, one.attention)
            for source, one in zip(sources, found, strict=True)
        ]
