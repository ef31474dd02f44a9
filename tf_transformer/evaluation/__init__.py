"""sacreBLEU's scores of translations, and the choice among candidates by them."""

from tf_transformer.evaluation.scores import Comparison, Scores, bleu_metric, compare, score

__all__ = ["Comparison", "Scores", "bleu_metric", "compare", "score"]
