"""sacreBLEU's scores of translations, and the choice among candidates by them."""

from typing import TYPE_CHECKING

from tf_transformer._imports import lazily

if TYPE_CHECKING:
    from tf_transformer.evaluation.scores import AUTO as AUTO
    from tf_transformer.evaluation.scores import Comparison as Comparison
    from tf_transformer.evaluation.scores import Scores as Scores
    from tf_transformer.evaluation.scores import bleu_metric as bleu_metric
    from tf_transformer.evaluation.scores import compare as compare
    from tf_transformer.evaluation.scores import score as score

__all__ = ["AUTO", "Comparison", "Scores", "bleu_metric", "compare", "score"]
# NumPy, which sacreBLEU imports, takes a while.
__getattr__ = lazily(__name__, {"tf_transformer.evaluation.scores": __all__})
