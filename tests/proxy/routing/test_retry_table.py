"""What follows a fault of an upstream: another try, another target, a pause."""

from __future__ import annotations

from typing import get_args

import pytest

from dragoman.adapters.faults import KINDS, Fault, Kind
from dragoman.proxy.routing.retry_table import LONGEST_WAIT, find_rule


@pytest.mark.parametrize("kind", get_args(Kind))
def test_only_what_another_target_may_answer_is_asked_elsewhere(kind: Kind) -> None:
    wanted = KINDS[kind][0] == "provider" or kind in ("request_timeout", "content_filter")
    rule = find_rule(Fault(kind, ""))
    assert rule.next_target is wanted
    assert rule.again is None or wanted


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_fault_of_the_client_says_nothing_of_the_target(kind: Kind) -> None:
    counts = find_rule(Fault(kind, "")).verdict != "unknown"
    assert counts == ((KINDS[kind][0] == "provider" and kind != "permission") or kind == "request_timeout")


@pytest.mark.parametrize("kind", ["rate_limit", "permission", "content_filter", "upstream_auth_failed"])
def test_a_provider_that_lacks_credit_or_rights_is_not_asked_again(kind: Kind) -> None:
    for code in (None, "insufficient_quota", "unsupported_country_region_territory"):
        rule = find_rule(Fault(kind, "", code=code))
        assert (rule.again, rule.next_target) == (None, True)


def test_only_a_connection_that_broke_is_tried_again_at_once() -> None:
    codes = ("upstream_unreachable", "upstream_disconnected", "upstream_tls_failed", "x", None)
    again = {code: find_rule(Fault("upstream_unreachable", "", code=code)).again for code in codes}
    assert again == {
        "upstream_unreachable": "last",
        "upstream_disconnected": "at_once",
        "upstream_tls_failed": None,
        "x": None,
        None: None,
    }


@pytest.mark.parametrize(("seconds", "again"), [(None, None), (1.0, "last"), (LONGEST_WAIT, "last"), (30.0, None)])
def test_a_rate_limit_is_waited_for_if_its_time_is_short(seconds: float | None, again: str | None) -> None:
    rule = find_rule(Fault("rate_limit", "", retry_after=seconds))
    assert (rule.again, rule.next_target, rule.verdict) == (again, True, "limited")


def test_a_server_that_asks_for_a_long_pause_is_not_tried_again() -> None:
    assert find_rule(Fault("upstream_unavailable", "", retry_after=60)).again is None
    assert find_rule(Fault("upstream_unavailable", "")).again == "last"


def test_what_the_proxy_itself_cannot_send_does_not_count_against_the_target() -> None:
    assert find_rule(Fault("upstream_unavailable", "", code="upstream_busy")).verdict == "unknown"
