"""The metrics of a server for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from swsearch.errors import SwSearchError
from swsearch.service.service import SEEN_WITHIN, Service


class Metrics:
    """Counters of the web process, and gauges of the store that are read when somebody asks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = counted = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter("swsearch_requests", "Requests.", labels, registry=counted)
        self._seconds = Histogram(
            "swsearch_request_seconds", "Time of a request.", ["method", "route"], registry=counted
        )
        self.worker_restarts = Counter(
            "swsearch_worker_restarts", "Workers of this server that ended and were started again.", registry=counted
        )
        self._registry.register(self)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """Nothing for the registry, so that the store is not read before it is needed."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The gauges of the store for the registry; only ``swsearch_store_up`` if the store cannot be read."""
        try:
            counts = self._service.store.searches.counts()
            waiting = self._service.store.searches.waiting()
            speeds = self._service.store.searches.speeds(SEEN_WITHIN)
        except SwSearchError:
            yield GaugeMetricFamily("swsearch_store_up", "Whether the store can be read.", 0)
            return
        yield GaugeMetricFamily("swsearch_store_up", "Whether the store can be read.", 1)
        searches = GaugeMetricFamily("swsearch_searches", "Searches of the store by their state.", labels=["state"])
        for state, count in sorted(counts.items()):
            searches.add_metric([state], count)
        yield searches
        n_left = sum(n_left for _, n_left in waiting.values())
        yield GaugeMetricFamily("swsearch_queued_cells", "Cells of all unfinished searches that are left.", n_left)
        yield GaugeMetricFamily("swsearch_workers", "Workers that are alive.", len(speeds))
        yield GaugeMetricFamily("swsearch_cells_per_second", "Speed of recent batches of all workers.", sum(speeds))
