"""The dashboard and the alerts: every query can be parsed, and names metrics and labels that the proxy exposes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import aiohttp
import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from dragoman.adapters.faults import Kind, Owner
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from dragoman.proxy.telemetry.exposition import Gauge, write_exposition
from dragoman.proxy.telemetry.metrics import ExchangeMetrics, MetricsSnapshot
from tests.tables import for_each

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
RULES: list[dict[str, Any]] = [
    rule for group in YAML(typ="safe").load(FOLDER / "alerts.yml")["groups"] for rule in group["rules"]
]
QUERIES = [
    *((panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *((rule["alert"], rule["expr"]) for rule in RULES),
]
LEGENDS = [
    *((target["expr"], target["legendFormat"]) for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *((rule["expr"], re.sub(r"\$labels\.", "", rule["annotations"]["summary"])) for rule in RULES),
]
CASES = Path(__file__).parent / "alerts.yaml"
FROM_PROMETHEUS = {"up": {"job", "instance"}}
ADDED = {"job", "instance", "le"}


needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="there is no promtool here (Debian: apt-get install prometheus)"
)


async def describe_metrics() -> dict[str, set[str]]:
    """The names of all samples, and the labels that each may have: those of a running proxy, and of a counter or
    histogram without any."""
    names: dict[str, set[str]] = dict(FROM_PROMETHEUS)
    metrics = ExchangeMetrics()
    for counter in metrics.counters:
        names[f"dragoman_{counter.name}_total"] = set(counter.names)
    for histogram in metrics.histograms:
        for end in ("bucket", "count", "sum"):
            names[f"dragoman_{histogram.name}_{end}"] = set(histogram.names)
    gauges = await list_gauges()
    names |= {f"dragoman_{gauge.name}": set(gauge.names) for gauge in gauges}
    for family in text_string_to_metric_families(write_exposition(metrics.take_snapshot(), (), "")[0].decode()):
        names |= {sample.name: set(sample.labels) for sample in family.samples}
    return names


async def list_gauges() -> list[Gauge]:
    """Every gauge of a proxy, with or without values."""
    from dragoman.proxy.server import admin

    found: list[Gauge] = []

    def keep(metrics: MetricsSnapshot, gauges: Iterable[Gauge], accept: str) -> tuple[bytes, str]:
        found.extend(gauges)
        return write_exposition(metrics, found, accept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admin, "write_exposition", keep)
        server = {"port": 0, "admin_port": 0, "drain": {"delay": 0.001}}
        running = await start(Config.from_values({"server": server, "store": {"kind": "none"}}))
        assert running.admin is not None
        async with aiohttp.ClientSession() as session, session.get(f"{running.admin.url}/metrics") as answer:
            assert answer.status == 200
        await running.stop()
    return found


def find_names(query: str) -> tuple[set[str], set[str]]:
    """The names of metrics and of labels in a query. Raises ValueError if Prometheus would not accept it."""
    metrics: set[str] = set()
    labels: set[str] = set()

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            metrics.add(node.name or "")
            labels.update(matcher.name for matcher in node.matchers.matchers)
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            labels.update(node.modifier.labels)

    promql_parser.walk(promql_parser.parse(query.replace("$__rate_interval", "5m")), visit)
    return metrics, labels


@pytest.mark.parametrize(("title", "query"), QUERIES)
async def test_queries_name_metrics_and_labels_that_exist(title: str, query: str) -> None:
    known = await describe_metrics()
    metrics, labels = find_names(query)
    assert metrics, "a query without a metric"
    assert not metrics - known.keys()
    assert not labels - ADDED - set().union(*(known[name] for name in metrics))


VALUES = {"owner": {*get_args(Owner)}, "kind": {*get_args(Kind)}, "state": {"closed", "half-open", "open"}}


@for_each(("title", "query"), QUERIES)
def test_queries_select_values_that_exist(title: str, query: str) -> None:
    for name, value in re.findall(r'(\w+)!?="([^"]*)"', query):
        assert value in VALUES.get(name, {value}), f"{title}: no {name} is {value}"


@for_each(("query", "legend"), LEGENDS)
def test_legends_name_labels_that_the_query_keeps(query: str, legend: str) -> None:
    shown = set(re.findall(r"{{ ?(\w+) ?}}", legend))
    kept = {word for found in re.findall(r"\bby \(([^)]*)\)", query) for word in re.split(r",\s*", found)}
    assert not kept or shown <= kept


def test_a_wrong_query_is_found() -> None:
    assert find_names('sum by (model) (rate(no_such{label="x"}[5m]))') == ({"no_such"}, {"model", "label"})
    for wrong in ("rate(x[5 minutes])", "rate(x)", "sum(x"):
        with pytest.raises(ValueError):
            find_names(wrong)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_alerts_say_how_severe_they_are_and_what_happened(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"]["summary"]
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))


def test_panels_do_not_cover_one_another() -> None:
    cells = [
        (place["x"] + x, place["y"] + y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_each_alert_has_cases_in_which_it_fires_and_in_which_it_is_silent() -> None:
    cases = [case for group in YAML(typ="safe").load(CASES)["tests"] for case in group["alert_rule_test"]]
    for fires in (True, False):
        assert {case["alertname"] for case in cases if bool(case["exp_alerts"]) == fires} == {
            rule["alert"] for rule in RULES
        }


def run_promtool(*words: str | Path) -> str:
    """What it printed about what is wrong."""
    run = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=60)
    return "" if run.returncode == 0 else run.stdout + run.stderr


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    assert run_promtool("check", "rules", FOLDER / "alerts.yml") == ""


@needs_promtool
def test_alerts_fire_when_they_should() -> None:
    assert run_promtool("test", "rules", CASES) == ""


@needs_promtool
def test_prometheus_accepts_its_configuration(tmp_path: Path) -> None:
    """With the rules where compose.yaml mounts them, next to the configuration."""
    for file in (FOLDER.parent / "prometheus.yml", FOLDER / "alerts.yml"):
        shutil.copy(file, tmp_path)
    text = (tmp_path / "prometheus.yml").read_text("utf-8").replace("/run/secrets/admin_key", "admin_key")
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/", ""))
    (tmp_path / "admin_key").write_text("a-key-for-metrics")
    assert run_promtool("check", "config", tmp_path / "prometheus.yml") == ""
