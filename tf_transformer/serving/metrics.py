"""The metrics of a server, for Prometheus."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)


class Metrics:
    """The metrics of a server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # memory, processor time and start, on systems with /proc
        labels = ["api", "status"]
        self._requests = Counter("tf_transformer_requests", "Requests, by API and status", labels, registry=registry)
        self._seconds = Histogram(
            "tf_transformer_request_seconds", "Time to answer", ["api"], buckets=SECONDS, registry=registry
        )
        self._sentences = Counter("tf_transformer_sentences", "Sentences translated", registry=registry)
        self.failed_loads = Counter(
            "tf_transformer_failed_loads", "New versions that could not be loaded", registry=registry
        )
        self._version = Gauge("tf_transformer_version", "The version that is served", registry=registry)
        self._running = Gauge("tf_transformer_running", "Requests waiting or running", registry=registry)
        self._batches = Gauge(
            "tf_transformer_batches",
            "Batches translated; sentences divided by it is their mean size",
            registry=registry,
        )

    def watch(self, model: Any) -> None:
        """Show the version and the running requests of a model, read whenever the metrics are."""
        self._version.set_function(lambda: model.version.number)
        self._running.set_function(lambda: model.running)

    def count_batch(self, sentences: int) -> None:
        """Count a batch that was translated for clients."""
        self._batches.inc()
        self._sentences.inc(sentences)

    def count_answer(self, api: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        self._requests.labels(api, str(status)).inc()
        self._seconds.labels(api).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's format."""
        return generate_latest(self._registry)
