"""Traces by OpenTelemetry (https://opentelemetry.io/docs/specs/otel/trace/api), from a webhook to the write it led to.

What a sender's `traceparent` began goes on in the worker, in another process and hours later if need be: the trace is
kept with what is wanted of the record. A step that many records share, such as one bulk read, is a span in the trace of
each of them. Spans hold names that were declared, never a key, a value or a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from trueup.errors import ConfigError
from trueup.ports import OUTGOING

try:
    from opentelemetry import context, trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as error:
    raise ConfigError(f"{error.name} is not installed.", hint="Install it: pip install 'trueup[otel]'.") from None

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_KINDS: Final[Mapping[str, SpanKind]] = {
    "ingest": SpanKind.SERVER,
    "offer": SpanKind.PRODUCER,
    "job": SpanKind.CONSUMER,
    "write replica": SpanKind.CLIENT,
    "read replica": SpanKind.CLIENT,
    "read authority": SpanKind.CLIENT,
}
# The spans of the step that is under way in this context: one in each trace that it is part of.
_STEP: Final[ContextVar[tuple[Span, ...]]] = ContextVar("trueup_step", default=())


class OpenTelemetry:
    """Spans of a project. provider: by default the global one, as it is at the time."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("trueup", tracer_provider=provider)

    @contextmanager
    def received(self, source: str, traceparent: str | None) -> Iterator[None]:
        """A delivery is being taken; it begins a trace where its sender did not."""
        given = {} if traceparent is None else {"traceparent": traceparent}
        with self._under_way("ingest", [_PROPAGATOR.extract(given, Context())], {"trueup.source": source}):
            yield

    @contextmanager
    def span(self, name: str, pair: str, traces: Iterable[str | None] | None = None) -> Iterator[str | None]:
        """A step in each of these traces; without any, in those of the step that it is part of.

        Outside of any step it goes on with the caller's own span, where there is one.
        """
        with self._under_way(name, _parents(traces), {"trueup.pair": pair}) as spans:
            yield _traceparent(spans[0]) if spans else None

    @contextmanager
    def _under_way(
        self, name: str, parents: Sequence[Context], attributes: dict[str, Any]
    ) -> Iterator[tuple[Span, ...]]:
        kind = _KINDS.get(name, SpanKind.INTERNAL)
        spans = tuple(
            self._tracer.start_span(name, parent, kind, attributes | {"trueup.records": len(parents)})
            for parent in parents
        )
        if not spans:
            yield ()
            return
        attached = context.attach(trace.set_span_in_context(spans[0]))
        step = _STEP.set(spans)
        outgoing = OUTGOING.set(_headers(spans[0]))
        try:
            yield spans
        except BaseException as failed:
            for each in spans:  # its message may hold a value
                each.set_status(Status(StatusCode.ERROR, type(failed).__name__))
            raise
        finally:
            OUTGOING.reset(outgoing)
            _STEP.reset(step)
            context.detach(attached)
            for each in spans:
                each.end()


def _parents(traces: Iterable[str | None] | None) -> list[Context]:
    """What the spans of a step hang on: those of the step around it, as far as they are in one of these traces."""
    around = _STEP.get()
    if traces is None:
        if around:
            return [trace.set_span_in_context(each, Context()) for each in around]
        return [context.get_current()] if trace.get_current_span().get_span_context().is_valid else []
    known = {each.get_span_context().trace_id: each for each in around}
    found: dict[int, Context] = {}
    for each in dict.fromkeys(traces):
        if each is None:
            continue
        parent = _PROPAGATOR.extract({"traceparent": each}, Context())
        trace_id = trace.get_current_span(parent).get_span_context().trace_id
        if trace_id in known:
            parent = trace.set_span_in_context(known[trace_id], Context())
        if trace_id:
            found.setdefault(trace_id, parent)
    return list(found.values())


def _headers(span: Span) -> dict[str, str]:
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, trace.set_span_in_context(span, Context()))
    return {name: value for name, value in carrier.items() if name == "traceparent"}


def _traceparent(span: Span) -> str | None:
    """By which somebody else goes on; None where nobody records it."""
    return _headers(span).get("traceparent") if span.get_span_context().trace_flags.sampled else None


def export_by_environment() -> TracerProvider:
    """A provider that sends spans over OTLP, as OpenTelemetry's own variables say."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider as Provider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed.", hint="Install it: pip install 'trueup[otel]'.") from None
    provider = Provider(resource=Resource.create({"service.name": "trueup"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
