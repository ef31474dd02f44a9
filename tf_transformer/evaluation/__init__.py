"""sacreBLEU's scores of translations, and the choice among candidates by them."""

from tf_transformer.evaluation.scores import AUTO, Comparison, Scores, bleu_metric, compare, score

__all__ = ["AUTO", "Comparison", "Scores", "bleu_metric", "compare", "score"]
