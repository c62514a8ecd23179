"""Spans and metrics of exchanges, as a collector gets them over OTLP."""

from __future__ import annotations

import asyncio
import builtins
import gzip
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dragoman.adapters import dialects
from dragoman.proxy.server.lifecycle import StartError
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
TRACING = {"tracing": True}


class Collector(ThreadingHTTPServer):
    """Takes spans and metrics. `status` is what it answers with."""

    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.resource: dict[str, Any] = {}


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        data = gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data
        if self.path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(data).resource_spans:
                self.server.resource = read_attributes(group.resource)
                self.server.spans += [span for scope in group.scope_spans for span in scope.spans]
        else:
            for group in ExportMetricsServiceRequest.FromString(data).resource_metrics:
                self.server.metrics |= {one.name: one for scope in group.scope_metrics for one in scope.metrics}
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing."""


def read_attributes(holder: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in holder.attributes}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def stop(p: Proxy) -> None:
    """What is left is sent when the proxy stops."""
    p.running.stop_now.set()
    await p.running.stop()


async def test_an_exchange_becomes_two_spans(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, collector: Collector
) -> None:
    up = await upstream(wire.stream)
    p = await proxy(up, server=TRACING, speak=dialects)
    await p.ask(stream=True, headers={"traceparent": PARENT, "tracestate": "a=b", "x-request-id": "r1"})
    await p.exchanges()
    await stop(p)
    by_name = {span.name: span for span in collector.spans}
    assert set(by_name) == {"POST /v1/chat/completions", "chat m"}
    request, operation = by_name["POST /v1/chat/completions"], by_name["chat m"]
    assert request.trace_id.hex() == operation.trace_id.hex() == TRACE
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    assert operation.parent_span_id == request.span_id
    found = read_attributes(operation)
    assert found["gen_ai.operation.name"] == "chat"
    assert (found["gen_ai.provider.name"], found["gen_ai.request.model"]) == ("openai", "m")
    assert (found["dragoman.target"], found["gen_ai.request.stream"]) == ("p0/up", True)
    assert found["gen_ai.response.time_to_first_chunk"] > 0
    assert read_attributes(request)["http.response.status_code"] == 200
    assert read_attributes(request)["dragoman.request_id"] == "r1"
    assert collector.resource["service.name"] == "dragoman"
    sent = up.requests[0].decode()
    assert f"traceparent: 00-{TRACE}-{operation.span_id.hex()}-01\r\n" in sent
    assert "tracestate: a=b\r\n" in sent


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=gateway,deployment.environment=test"}, "gateway"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=gateway", "OTEL_SERVICE_NAME": "proxy"}, "proxy"),
    ],
)
async def test_the_environment_names_the_service(
    proxy: StartProxy,
    upstream: StartUpstream,
    wire: Wire,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    name: str,
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    p = await proxy(await upstream(wire.ok), server=TRACING)
    await p.ask()
    await p.exchanges()
    await stop(p)
    assert collector.resource["service.name"] == name


async def test_operations_are_measured(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, collector: Collector
) -> None:
    p = await proxy(await upstream(wire.ok), server=TRACING, speak=dialects)
    await p.ask()
    await p.exchanges()
    await stop(p)
    duration = collector.metrics["gen_ai.client.operation.duration"]
    assert (duration.unit, duration.histogram.data_points[0].count) == ("s", 1)
    points = collector.metrics["gen_ai.client.token.usage"].histogram.data_points
    assert {read_attributes(point)["gen_ai.token.type"]: point.sum for point in points} == {"input": 1, "output": 2}


@pytest.mark.parametrize("given", [None, "nonsense", "00-0-0-01"])
async def test_without_a_valid_parent_a_trace_begins(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, collector: Collector, given: str | None
) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up, server=TRACING, speak=dialects)
    await p.ask(headers={"traceparent": given} if given else None)
    await p.exchanges()
    await stop(p)
    (found,) = re.findall(r"traceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-0[13]\r\n", up.requests[0].decode())
    assert {span.trace_id.hex() for span in collector.spans} == {found[0]}


async def test_faults_are_errors(proxy: StartProxy, upstream: StartUpstream, wire: Wire, collector: Collector) -> None:
    up = await upstream(wire.http(b'{"error": {"message": "sk-canary"}}', status="500 Oops"))
    p = await proxy(up, server=TRACING, speak=dialects, retries={"attempts": 1})
    await p.ask()
    await p.ask(model="unknown")
    await p.exchanges(2)
    await stop(p)
    errors = [(span.name, span.status.code, read_attributes(span)["error.type"]) for span in collector.spans]
    assert ("chat m", 2, "upstream_error") in errors or ("chat m", 2, "internal_server_error") in errors, errors
    assert ("chat unknown", 2, "model_not_found") in errors
    requests = [span.status.code for span in collector.spans if span.name.startswith("POST")]
    assert sorted(requests) == [0, 2]  # a client's mistake is no error of the proxy's
    assert "canary" not in str(collector.spans)


async def test_without_tracing_the_clients_context_goes_on(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok)
    await (await proxy(up)).ask(headers={"traceparent": PARENT, "tracestate": "a=b"})
    assert f"traceparent: {PARENT}\r\n" in up.requests[0].decode()


async def test_an_exporter_can_be_turned_off(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    p = await proxy(await upstream(wire.ok), server=TRACING, speak=dialects)
    await p.ask()
    await p.exchanges()
    await stop(p)
    assert not collector.spans and collector.metrics


async def test_a_collector_that_refuses_is_in_the_log_and_stops_nothing(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, collector: Collector
) -> None:
    collector.status = 400
    p = await proxy(await upstream(wire.ok), server=TRACING, speak=dialects)
    assert (await p.ask()).status == 200
    await p.exchanges()
    await asyncio.wait_for(stop(p), 20)
    assert {line["level"] for line in p.lines if line["event"] == "tracing"} <= {"warning"}
    assert any(line["event"] == "tracing" for line in p.lines)


async def test_without_the_extra_the_start_says_what_to_install(
    proxy: StartProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[..., Any] = builtins.__import__

    def refuse(name: str, *arguments: Any) -> Any:
        if name.endswith("telemetry.otel"):
            raise ImportError("No module named 'opentelemetry'")
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(StartError, match=r"server\.tracing .* '\.\[otel\]'"):
        await proxy(server=TRACING)
