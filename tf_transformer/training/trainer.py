"""The training step that `model.fit` runs."""

from typing import Any

import keras
import tensorflow as tf

from tf_transformer.runs.weights import check_backend
from tf_transformer.training.strategy import workers


class Trainer(keras.Model):
    """Trains a model with `fit` under any strategy, in parts if a batch does not fit into memory.

    The gradient of a batch is the sum over its parts and over the replicas. With `SmoothedCrossEntropy` and the
    weights of `Batches`, it is the gradient of the mean loss per token, whatever the numbers of parts and replicas.
    Make the trainer within the scope of the strategy, then compile and fit it. It trains the weights of its model.

    Args:
        model: a built model. Compile the trainer with a loss that is summed over the sentences, such as
            `SmoothedCrossEntropy`.
        part_tokens: the most source tokens, and the most target tokens, padding included, that all replicas together
            compute at once; but each of them computes at least one row. They process the rows of a batch in as many
            parts as that takes, one after the other. None processes a batch at once.

    Raises:
        ValueError: part_tokens below 1; a Keras backend other than TensorFlow.
    """

    def __init__(self, model: keras.Model, part_tokens: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        check_backend("Trainer")
        if part_tokens is not None and part_tokens < 1:
            raise ValueError(f"part_tokens must be at least 1. Received: {part_tokens}")
        self.model = model
        self.part_tokens = part_tokens
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Call the model."""
        return self.model(inputs, training=training)

    def train_step(self, data: Any) -> dict[str, Any]:
        """Update the weights by one batch `(inputs, labels, weights)` and return the metrics.

        Raises:
            ValueError: a batch without weights.
        """
        _check_weights(data)
        loss, gradients = self._gradients(data) if self.part_tokens is None else self._accumulated(data)
        if isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer):
            gradients = _finite_on_all_replicas(gradients)
        self.optimizer.apply(gradients, self.trainable_weights)
        return self._logged(loss)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Return the metrics after one more batch; raises as `train_step`."""
        _check_weights(data)
        return self._logged(self._loss(data, training=False))

    def _loss(self, data: Any, training: bool) -> Any:
        """Return the loss of a batch, or of a part of it, and add it to the metrics."""
        inputs, labels, weights = data
        outputs = self(inputs, training=training)
        self.compute_metrics(inputs, labels, outputs, weights)
        return self.compute_loss(inputs, labels, outputs, weights, training=training)

    def _logged(self, loss: Any) -> dict[str, Any]:
        """Add the loss of this replica to Keras's own mean, and return the metrics."""
        # Keras takes the mean over the replicas; the loss of a batch is their sum.
        self._loss_tracker.update_state(loss * tf.distribute.get_strategy().num_replicas_in_sync)
        return _logs(self.get_metrics_result())

    def _gradients(self, data: Any) -> tuple[Any, list[Any]]:
        """Return the loss and its gradients."""
        with tf.GradientTape() as tape:
            loss = self._loss(data, training=True)
            scaled = self.optimizer.scale_loss(loss)
        # This makes all gradients dense; that of a table of learned positions comes as slices.
        return loss, [tf.convert_to_tensor(gradient) for gradient in tape.gradient(scaled, self.trainable_weights)]

    def _accumulated(self, data: Any) -> tuple[Any, list[Any]]:
        """Return the loss and its gradients, which are computed in parts of equal numbers of rows, give or take one."""
        rows = tf.shape(data[1])[0]
        parts = -(-rows // self._rows_at_once(data))

        def add_part(i: Any, *sums: Any) -> tuple[Any, ...]:
            part = tf.nest.map_structure(lambda tensor: tensor[i * rows // parts : (i + 1) * rows // parts], data)
            loss, gradients = self._gradients(part)
            return i + 1, *(total + one for total, one in zip(sums, (loss, *gradients), strict=True))

        zeros = [tf.zeros([]), *(tf.zeros(weight.shape) for weight in self.trainable_weights)]
        _, loss, *gradients = tf.while_loop(lambda i, *_: i < parts, add_part, (0, *zeros), parallel_iterations=1)
        return loss, gradients

    def _rows_at_once(self, data: Any) -> Any:
        """Return the most rows of a part on each replica."""
        inputs, labels, _ = data
        width = tf.reduce_max([tf.shape(ids)[1] for ids in (*tf.nest.flatten(inputs), labels)])
        return tf.maximum(1, self.part_tokens // width // tf.distribute.get_strategy().num_replicas_in_sync)

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Do nothing: the model is built already, and Keras cannot build it on several machines (keras#20585)."""


def _check_weights(data: Any) -> None:
    if len(data) != 3:
        raise ValueError(
            "a batch must be (inputs, labels, weights), as `Batches` gives it; fit takes weights as sample_weight. "
            f"Received: {len(data)} parts"
        )


def _finite_on_all_replicas(gradients: list[Any]) -> list[Any]:
    """Make the gradients of every replica infinite if those of any replica are not finite.

    Keras skips an update whose gradients are not finite, but looks only at the first replica.
    """
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients])
    failures = tf.distribute.get_replica_context().all_reduce("SUM", tf.cast(~finite, tf.float32))
    poison = tf.where(failures > 0, float("inf"), 0.0)
    return [gradients[0] + poison, *gradients[1:]]


def _logs(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return metrics with the first axis that Keras needs to average them over several machines."""
    if len(workers(tf.distribute.get_strategy())) > 1:
        return {name: tf.reshape(value, [1]) for name, value in metrics.items()}
    return metrics


def vary_dropout(model: keras.Model, strategy: tf.distribute.Strategy) -> None:
    """Give each replica dropout masks of its own; call it after the seeds were set or restored.

    Keras gives all replicas the same seeds, and so the same masks.
    """
    seeds = [variable.value for variable in dropout_seeds(model)]

    @tf.function
    def vary() -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        for seed in seeds:
            seed.assign_add(tf.cast(tf.stack([replica * 1_000_003, 0]), seed.dtype))

    if strategy.num_replicas_in_sync > 1:
        strategy.run(vary)


def dropout_seeds(model: keras.Model) -> list[Any]:
    """Return the states of the seed generators of a model: the first number is the seed, the second a counter."""
    weights = {id(variable) for variable in model.weights}
    return [variable for variable in model.variables if id(variable) not in weights and "seed" in variable.path]
