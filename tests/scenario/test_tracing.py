"""Traces: what a sender's trace began goes on in the worker, through another project's process, to the write."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from starlette.testclient import TestClient

import trueup
from api import Api, serving
from trueup.bound import BoundPair
from trueup.model.change import Change
from trueup.model.event import Event
from trueup.project import Project
from trueup.web.ingest import app

TRACE = "0af7651916cd43dd8448eb211c80319c"
GIVEN = f"00-{TRACE}-b7ad6b7169203331-01"
SECRET = "between-us"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


@pytest.fixture
def api() -> Iterator[Api]:
    found = Api()
    with serving(found):
        yield found


Make = Callable[[], Project]


@pytest.fixture
def make(tmp_path: Path, api: Api, provider: TracerProvider) -> Iterator[Make]:
    """Projects on one state, as several processes have it, each with tracing."""
    made: list[Project] = []
    authority = trueup.Memory([{"id": n, "name": f"canary-{n}", "v": 2} for n in (1, 2, 3)], key="id", version="v")

    def project() -> Project:
        found = Project(f"sqlite:///{tmp_path}/state.db")
        replica = trueup.Http(f"{api.url}/items", key="id", columns={"id": "integer", "name": "text"})
        pair = found.pair("people", authority=authority, replica=replica, fields=["name"], settle=0)

        @found.source("school", style="github", secrets=[SECRET])
        def route(body: dict[str, object], headers: object) -> Event:
            return pair.event(body)

        found.trace(provider)
        made.append(found)
        return found

    yield project
    for each in made:
        each.close()


def delivered(project: Project, key: int, traceparent: str | None = None) -> None:
    body = json.dumps({"id": key}).encode()
    headers = {
        "X-Hub-Signature-256": f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}",
        "X-GitHub-Delivery": f"delivery-{key}-{traceparent}",
    }
    if traceparent is not None:
        headers["traceparent"] = traceparent
    with TestClient(app(project, project.sources.values())) as client:
        assert client.post("/events/school", content=body, headers=headers).status_code == 200


def people(project: Project) -> BoundPair:
    return project.find("people")


def ident(span: ReadableSpan) -> str:
    return format(span.context.trace_id, "032x")


def by_name(exporter: InMemorySpanExporter, trace_id: str = TRACE) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans() if ident(span) == trace_id}


def test_one_trace_goes_from_a_webhook_to_the_write_of_another_process(
    make: Make, exporter: InMemorySpanExporter, api: Api
) -> None:
    """Given a delivery with a traceparent, I expect its trace to end at the replica's API, by way of a worker."""
    delivered(make(), 1, GIVEN)
    worker = make()
    assert people(worker).perform('["1"]') == {"done": 1}
    spans = by_name(exporter)
    assert set(spans) == {"ingest", "offer", "job", "read authority", "read replica", "write replica"}

    def parent(name: str) -> int:
        found = spans[name].parent
        assert found is not None
        return found.span_id

    assert format(parent("ingest"), "016x") == "b7ad6b7169203331"
    assert parent("offer") == spans["ingest"].context.span_id
    assert parent("job") == spans["offer"].context.span_id
    for name in ("read authority", "read replica", "write replica"):
        assert parent(name) == spans["job"].context.span_id
    [written] = [call for call in api.calls if call.method not in ("GET", "HEAD")]
    wrote = format(spans["write replica"].context.span_id, "016x")
    assert written.headers["traceparent"] == f"00-{TRACE}-{wrote}-01"
    # And a second job of the record, for which nobody asked, is in no trace.
    exporter.clear()
    people(worker).retry()
    assert exporter.get_finished_spans() == ()


def test_records_that_are_worked_together_are_in_their_own_traces(make: Make, exporter: InMemorySpanExporter) -> None:
    project = make()
    others = [f"{n}af7651916cd43dd8448eb211c80319c" for n in (1, 2)]
    for key, other in enumerate(others, 1):
        delivered(project, key, f"00-{other}-b7ad6b7169203331-01")
    people(project).offer({"id": 3})
    ended = project.worker(["people"]).once(project.chance())
    assert len(ended) == 3
    for other in others:
        spans = by_name(exporter, other)
        assert {"job", "read authority", "write replica"} <= set(spans)
        assert {ident(each) for each in spans.values()} == {other}
    assert {ident(each) for each in exporter.get_finished_spans()} == set(others)


def test_a_delivery_without_a_trace_begins_one(make: Make, exporter: InMemorySpanExporter) -> None:
    delivered(make(), 1)
    people(make()).perform('["1"]')
    names = {span.name for span in exporter.get_finished_spans()}
    assert {"ingest", "offer", "job"} <= names
    assert len({ident(span) for span in exporter.get_finished_spans()}) == 1


def test_the_live_path_goes_on_with_the_callers_span(
    make: Make, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    with trace.get_tracer("shop", tracer_provider=provider).start_as_current_span("checkout") as checkout:
        people(make()).offer({"id": 1})
    people(make()).perform('["1"]')
    spans = by_name(exporter, format(checkout.get_span_context().trace_id, "032x"))
    assert {"checkout", "offer", "job", "write replica"} <= set(spans)


@pytest.mark.parametrize("given", ["", "00-zz", "canary", GIVEN + "-canary-" * 5_000])
def test_what_is_no_traceparent_begins_a_new_trace(make: Make, exporter: InMemorySpanExporter, given: str) -> None:
    delivered(make(), 1, given)
    assert {ident(span) for span in exporter.get_finished_spans()}.isdisjoint({TRACE, "0" * 32})


def test_what_nobody_records_is_not_kept(make: Make, exporter: InMemorySpanExporter) -> None:
    """Given a sender that does not sample its trace, I expect nothing of it in the state store."""
    project = make()
    delivered(project, 1, GIVEN.removesuffix("01") + "00")
    assert project.ledger.rows("people", ['["1"]'])['["1"]'].trace is None
    assert exporter.get_finished_spans() == ()


def test_the_trace_of_a_record_is_forgotten_once_it_is_done(make: Make) -> None:
    project = make()
    delivered(project, 1, GIVEN)
    row = project.ledger.rows("people", ['["1"]'])['["1"]']
    assert row.trace is not None
    assert TRACE in row.trace
    people(project).perform('["1"]')
    assert project.ledger.rows("people", ['["1"]'])['["1"]'].trace is None


def test_spans_hold_no_key_and_no_value_even_of_failures(make: Make, exporter: InMemorySpanExporter) -> None:
    project = make()

    @people(project).on_change
    def fail(change: Change) -> None:
        raise ValueError(f"canary {change.key} {change.values}")

    delivered(project, 1, GIVEN)
    people(project).perform('["1"]')
    text = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "canary" not in text
    assert '["1"]' not in text
    assert by_name(exporter)["write replica"].status.description == "ValueError"


def test_a_provider_that_samples_nothing_changes_nothing(make: Make, api: Api) -> None:
    project = make()
    project.trace(TracerProvider(sampler=ALWAYS_OFF))
    delivered(project, 1)
    assert people(project).perform('["1"]') == {"done": 1}
    assert project.ledger.rows("people", ['["1"]'])['["1"]'].trace is None
