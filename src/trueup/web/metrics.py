"""`/metrics`: how a project is, in the text that Prometheus reads, from whichever of its processes is asked.

A look at the store is kept for a few seconds, and for ten times as long as it took: however often somebody asks, and
however many pairs there are, at most a tenth of one core reads the store for this.
"""

from __future__ import annotations

import asyncio
import platform
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import trueup
from trueup.engine.measure import Values
from trueup.errors import TrueupError
from trueup.model import metric as m
from trueup.model.metric import BEYOND, BUCKETS, COUNTED, METRICS, NUMBER, TOTAL, Kind
from trueup.project import Project
from trueup.web.health import Health

KEPT_US: Final = 5_000_000
KEPT_TIMES: Final = 10
_Labelled = Mapping[tuple[str, ...], float]


class Metrics:
    """Answers about one project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lock = threading.Lock()
        self._kept: tuple[int, bytes] | None = None

    @property
    def routes(self) -> list[Route]:
        """The one of them."""
        return [Route("/metrics", self.get, methods=["GET"])]

    async def get(self, _: Request) -> Response:
        """200 and the text; 503 where the state store does not answer, 404 where nothing is counted."""
        if not self._project.counts:
            return PlainTextResponse("metrics are off\n", 404)
        try:
            body = await asyncio.to_thread(self.text)
        except TrueupError as error:
            return PlainTextResponse(f"{error}\n", 503)
        return Response(body, media_type=CONTENT_TYPE_LATEST)

    def text(self) -> bytes:
        """The text of a few seconds ago, or a new one; one thread looks, the others wait. Raises StateError."""
        elapsed_us = self._project.clock.elapsed_us
        with self._lock:
            began_us = elapsed_us()
            if self._kept is None or began_us >= self._kept[0]:
                values = self._project.measures()
                values[m.BUILD.count(trueup.__version__, platform.python_version())] = 1.0
                values[m.LOOK_TOOK.count()] = (elapsed_us() - began_us) / 1e6
                text, ended_us = text_of(values), elapsed_us()
                self._kept = ended_us + max(KEPT_US, KEPT_TIMES * (ended_us - began_us)), text
            return self._kept[1]


def app(project: Project) -> Starlette:
    """The ASGI application of a process that takes no webhooks: `/metrics` and `/healthz`."""
    return Starlette(routes=[*Metrics(project).routes, *Health(project).routes])


def text_of(values: Values) -> bytes:
    """The text of these numbers."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Values(values))
    return generate_latest(registry)


class _Values(Collector):
    """Numbers as prometheus-client asks for them."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def collect(self) -> Iterable[Metric]:
        """Every declared metric that has a number; what is counted also where it has none yet."""
        by_name: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
        for (name, labels), value in self._values.items():
            by_name[name][labels] = value
        for metric in METRICS:
            if metric.name in by_name or metric in COUNTED:
                yield _MADE[metric.kind](metric, by_name[metric.name])


def _counter(metric: m.Metric, values: _Labelled) -> Metric:
    counter = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in values.items():
        counter.add_metric(labels, value)
    return counter


def _gauge(metric: m.Metric, values: _Labelled) -> Metric:
    gauge = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in values.items():
        gauge.add_metric(labels, value)
    return gauge


def _histogram(metric: m.Metric, values: _Labelled) -> Metric:
    histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, parts in _parted(values):
        below, buckets = 0.0, []
        for bound in (*map(str, BUCKETS), BEYOND):
            below += parts.get(bound, 0.0)
            buckets.append((bound, below))
        histogram.add_metric(labels, buckets, parts.get(TOTAL, 0.0))
    return histogram


def _summary(metric: m.Metric, values: _Labelled) -> Metric:
    summary = SummaryMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, parts in _parted(values):
        summary.add_metric(labels, int(parts.get(NUMBER, 0.0)), parts.get(TOTAL, 0.0))
    return summary


def _parted(values: _Labelled) -> Iterator[tuple[tuple[str, ...], Mapping[str, float]]]:
    """What stands behind the labels, by labels."""
    parts: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for labels, value in values.items():
        parts[labels[:-1]][labels[-1]] = value
    yield from parts.items()


_MADE: Final[Mapping[Kind, Callable[[m.Metric, _Labelled], Metric]]] = {
    Kind.COUNTER: _counter,
    Kind.GAUGE: _gauge,
    Kind.HISTOGRAM: _histogram,
    Kind.SUMMARY: _summary,
}
