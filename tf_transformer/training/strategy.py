"""On how many devices and machines a run trains."""

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tf_transformer.config.training import STRATEGIES
from tf_transformer.data import Batches
from tf_transformer.errors import InputError, unknown

GONE = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


def make_strategy(name: str = "auto", devices: int | None = None) -> tf.distribute.Strategy:
    """Return a distribution strategy; call it before TensorFlow does anything else.

    Args:
        name: "mirrored" for the devices of this machine, "one-device", "multiworker" for the machines that
            the environment variable TF_CONFIG names, or "auto": multiworker where TF_CONFIG names a cluster, and
            mirrored elsewhere.
        devices: how many GPUs of this machine to use; all by default. If there are none, the CPU is split into this
            many logical devices, 1 by default.

    Raises:
        InputError: more devices than there are; an unknown name; no TF_CONFIG, or one that names no cluster.
    """
    if name not in STRATEGIES:
        raise unknown("strategy", name, STRATEGIES)
    name = without_auto(name)
    if name != "multiworker":
        # Otherwise TensorFlow would look for the cluster all the same.
        os.environ.pop("TF_CONFIG", None)
    if name == "one-device":
        if devices not in (None, 1):
            raise InputError(f"the one-device strategy uses exactly one device. Received: {devices} devices")
        return tf.distribute.OneDeviceStrategy(_devices(1)[0])
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_devices(devices))
    _check_cluster()
    _devices(devices)
    return tf.distribute.MultiWorkerMirroredStrategy()


def without_auto(name: str) -> str:
    """Return the name of a strategy, or for "auto" that of the one which `make_strategy` takes."""
    if name != "auto":
        return name
    return "multiworker" if os.environ.get("TF_CONFIG") else "mirrored"


def distribute(batches: Batches, strategy: tf.distribute.Strategy) -> Any:
    """Return batches for `fit`, which give each replica its part of every batch, with as many rows, give or take one.

    Plain `model.fit` needs equally many: give `Batches` the number of replicas as `multiple_of`. `Trainer` does not.
    Each of several machines forms and reads only its own part. On one machine, each replica has an input of its own.
    TensorFlow would otherwise make an iterator over several devices, which tunes itself in a thread and waits for it at
    the end of an epoch, for up to a minute.

    Args:
        batches: the batches.
        strategy: the strategy of the replicas.
    """
    if isinstance(strategy, tf.distribute.MirroredStrategy):
        options = tf.distribute.InputOptions(
            experimental_fetch_to_device=False,
            experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA,
        )
    elif isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        options = None
    else:
        return batches.dataset()

    def part_of(context: tf.distribute.InputContext) -> tf.data.Dataset:
        parts = context.num_input_pipelines
        replicas = strategy.num_replicas_in_sync // parts
        return batches.dataset(context.input_pipeline_id, parts, replicas, by_place=options is None)

    return strategy.distribute_datasets_from_function(part_of, options)


def workers(strategy: tf.distribute.Strategy) -> list[tuple[str, int]]:
    """Return the type and number of each machine of a cluster, the chief first; without a cluster, none."""
    is_cluster = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    jobs = strategy.cluster_resolver.cluster_spec().as_dict() if is_cluster else {}
    return [(job, i) for job in ("chief", "worker") if job in jobs for i in range(len(jobs[job]))]


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Return whether this process is the one that writes: the only one, or the first of several machines."""
    known = workers(strategy)
    return not known or (strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id) == known[0]


class Machines:
    """The machines of a cluster, or the single machine without one.

    Args:
        strategy: the strategy of the machines.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self.strategy = strategy
        self.count = max(1, len(workers(strategy)))
        self._total = tf.function(self._total_of, input_signature=[tf.TensorSpec([None], tf.float64)])

    def all_reduce_sum(self, *numbers: float) -> list[float]:
        """Return the sums over the machines; each of them must call this, after the same step."""
        if self.count == 1:
            return list(numbers)
        total = self._total(tf.constant(numbers, tf.float64))
        return self.strategy.experimental_local_results(total)[0].numpy().tolist()

    def mean(self, number: float) -> float:
        """Return the mean over the machines."""
        return self.all_reduce_sum(number)[0] / self.count

    def barrier(self) -> None:
        """Wait until every machine has called this, because one that ends earlier breaks the ops of the others."""
        with contextlib.suppress(tf.errors.OpError):  # another machine may end as soon as it has passed
            self.all_reduce_sum(0.0)

    def _total_of(self, numbers: tf.Tensor) -> tf.Tensor:
        replicas = self.strategy.num_replicas_in_sync // self.count

        def total() -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            # One replica of each machine gives its numbers, whole: sums of integers are exact.
            is_first = context.replica_id_in_sync_group % replicas == 0
            return context.all_reduce("SUM", tf.where(is_first, numbers, tf.zeros_like(numbers)))

        return self.strategy.run(total)


@contextlib.contextmanager
def naming_lost_machines(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Raise InputError if TensorFlow fails because another machine of the cluster was lost."""
    try:
        yield
    except tf.errors.OpError as error:
        if not (workers(strategy) and (isinstance(error, GONE) or "ollective ops is aborted" in error.message)):
            raise
        reason = error.message.partition("Collective ops is aborted by: ")[2] or error.message
        raise InputError(
            f"another machine of the cluster was lost ({reason.splitlines()[0]}): training stopped. Start all machines "
            "again with the same command to continue from the last checkpoint"
        ) from None


def _devices(wanted: int | None) -> list[str]:
    """Hide all but so many devices of this machine from TensorFlow, and return their names."""
    gpus = tf.config.list_physical_devices("GPU")
    if wanted is not None and wanted < 1:
        raise InputError(f"--devices must be at least 1. Received: {wanted}")
    if gpus:
        if wanted is not None and wanted > len(gpus):
            raise InputError(f"--devices must be at most the number of GPUs, {len(gpus)}. Received: {wanted}")
        tf.config.set_visible_devices(gpus[:wanted], "GPU")
        return [f"GPU:{i}" for i in range(len(gpus[:wanted]))]
    wanted = wanted or 1
    cpu = tf.config.list_physical_devices("CPU")[0]
    if wanted != len(tf.config.get_logical_device_configuration(cpu) or [None]):
        try:
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * wanted)
        except RuntimeError:
            raise InputError(
                f"the CPU can be split into devices only before TensorFlow is first used. Received: {wanted} devices"
            ) from None
    return [f"CPU:{i}" for i in range(wanted)]


def _check_cluster() -> None:
    text = os.environ.get("TF_CONFIG", "")
    example = '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'
    try:
        config = json.loads(text)
        addresses = config["cluster"][config["task"]["type"]]
        addresses[int(config["task"]["index"])]
    except (ValueError, KeyError, IndexError, TypeError):
        raise InputError(
            f"the environment variable TF_CONFIG must name the machines and which one this is, such as {example}. "
            f"Received: {text or 'nothing'}"
        ) from None
