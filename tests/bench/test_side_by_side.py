"""The tables, the goals and the page of the side-by-side benchmark say what was measured."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from _cases import CASES
from _charts import Dot, draw_dots, find_ticks
from _flames import summarize_stacks
from _goals import find_added, judge_goals
from _rows import Row, complete_result
from _side_page import write_page
from _side_tables import tabulate_case, write_report, write_table

DOCUMENT = {"command": "python x.py", "seconds": 1.0, "python": "3", "cores": 4, "load": 0.1, "versions": {"a<b": "1"}}


def create_result(round_name: str, cost: float | None, latency: float = 1.0) -> dict[str, Any]:
    times = {f"{name}_{p}": latency for name in ("latency_ms", "first_token_ms", "delay_us") for p in ("p50", "p99")}
    return {"round": round_name, "cpu_us": cost, "per_second": 1000.0, **times}


def create_row(name: str, costs: dict[str, list[float | None]], latency: float = 1.0) -> Row:
    row = Row(name)
    for case, found in costs.items():
        row.results[case] = [create_result(str(at), cost, latency) for at, cost in enumerate(found)]
    return row


@pytest.fixture
def rows() -> dict[str, Row]:
    nginx = create_row("nginx", {"whole": [10.0, 20.0, 30.0], "rate": [50.0]})
    own = create_row("dragoman & co", {"whole": [60.0, 160.0, 180.0], "rate": [100.0]}, latency=1.4)
    own.figures = {"start_s": [0.5], "idle_mb": [61.0]}
    own.note = "paced: a <wrong> answer"
    return {"nginx": nginx, "dragoman": own}


def test_goals_compare_the_rounds(rows: dict[str, Row]) -> None:
    found = {one.goal.what: (round(one.value, 3), one.verdict) for one in judge_goals(rows)}
    assert found == {
        "4 KB chat": (6.0, "met"),
        "800 requests a second: median above nginx's": (0.4, "met"),
        "800 requests a second: 99th percentile above nginx's": (0.4, "aim met"),
        "start to the first answer": (0.5, "met"),
        "memory when idle": (61.0, "missed"),
    }


def test_more_is_better_where_the_goal_says_so(rows: dict[str, Row]) -> None:
    rows["litellm"] = create_row("LiteLLM", {"whole": [9000.0]})
    rows["litellm"].results["whole"][0]["per_second"] = 10.0
    [found] = [one for one in judge_goals(rows) if one.goal.is_least]
    assert (found.value, found.verdict) == (100.0, "met")


def test_rounds_that_one_of_two_lacks_are_not_compared(rows: dict[str, Row]) -> None:
    del rows["nginx"].results["whole"][1]
    assert tabulate_case(rows, "whole")[1][1][2] == 6.0
    rows["nginx"].results["rate"].clear()
    assert find_added(rows, "dragoman", "latency_ms_p50") is None


def test_a_row_without_a_process_has_no_costs() -> None:
    row = create_row("direct", {"whole": [None]})
    [cells] = tabulate_case({"direct": row}, "whole")[1]
    assert cells[:5] == ["direct", None, None, None, None]


def test_the_costs_of_events_and_requests_follow_from_the_counts() -> None:
    counts = {"answers": 10, "tokens": 2000, "seconds": 2.0, "own_cpu_ns": 1e9, "cpu_ns": [4e6, 1e9]}
    assert complete_result(counts, CASES["whole"], has_process=True)["cpu_us"] == 400.0
    found = complete_result(counts, CASES["paced"], has_process=True)
    assert (found["cpu_us"], found["per_second"], found["provider_busy"], found["load_busy"]) == (2.0, 1000.0, 0.5, 0.5)
    direct = complete_result(counts | {"cpu_ns": [1e9]}, CASES["whole"], has_process=False)
    assert (direct["cpu_us"], direct["provider_busy"]) == (None, 0.5)


def test_the_report_has_all_that_was_measured(rows: dict[str, Row]) -> None:
    report = write_report(rows, DOCUMENT)
    assert "160 (6.00 x)" in report and "paced: a <wrong> answer" in report and "paced stream" not in report


def test_the_report_says_where_the_load_was_the_limit(rows: dict[str, Row]) -> None:
    for one in rows["nginx"].results["whole"]:
        one |= {"load_busy": 0.2, "provider_busy": 0.95}
    assert "not by the proxy: nginx (4 KB request)." in write_report(rows, DOCUMENT)
    assert "not by the proxy" not in write_report({"dragoman": rows["dragoman"]}, DOCUMENT)


def test_tables_are_aligned() -> None:
    assert write_table(["", "a"], [["x", 1234.5], ["long", None]]).splitlines() == [
        "|      |     a |",
        "|------|------:|",
        "| x    | 1,234 |",
        "| long |     – |",
    ]


def test_the_page_needs_nothing_else_and_escapes_texts(rows: dict[str, Row]) -> None:
    page = write_page(rows, DOCUMENT)
    assert "http" not in page and "src=" not in page and "<script" not in page
    assert "a &lt;wrong&gt; answer" in page and "a&lt;b" in page and page.count("<svg") == 4


def test_a_chart_is_well_formed_and_has_its_goals() -> None:
    dots = [Dot("a & b", 6.0, 5.0, 8.0, must=7.0, aim=4.5), Dot("c", 100.0, 90.0, 110.0)]
    root = ElementTree.fromstring(draw_dots(dots, "x"))
    assert [one.get("class") for one in root.iter("line") if one.get("class") != "grid"] == [
        "range",
        "must",
        "aim",
        "range",
    ]
    places = [float(one.get("cx", "")) for one in root.iter("circle")]
    assert 0 < places[0] < places[1] < 720


@pytest.mark.parametrize(("least", "most", "ticks"), [(1.0, 1.0, [1, 2]), (0.7, 6.0, [0.5, 1, 2, 5, 10])])
def test_ticks_enclose_the_values(least: float, most: float, ticks: list[float]) -> None:
    assert find_ticks(least, most) == ticks


def test_stacks_become_shares() -> None:
    text = "run (a.py:1);f (b.py:7) 30\nrun (a.py:2);f (b.py:9);g (c.py:1) 60\nrun (a.py:2) 10\n"
    assert list(summarize_stacks(text)) == [
        ["g (c.py)", 60.0, 60.0],
        ["f (b.py)", 30.0, 90.0],
        ["run (a.py)", 10.0, 100.0],
    ]
