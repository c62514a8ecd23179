"""The pytest plugin. It does nothing unless `--dragoman-url` is given or one of its fixtures is used.

With `pytest --dragoman-url URL --dragoman-model NAME` every case of the dialect becomes a test: a broken MUST fails it,
an inconclusive case is skipped. All of these tests are one run (`plugin_run.py`). Fixtures serve the tests of other
projects: `dragoman_fake` starts fake providers, `dragoman_chaos` fault proxies, `dragoman_proxy` dragoman itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .model import Case
    from .plugin_run import ContractRun
    from .servers import ChaosServers, FakeServers, ProxyServers
    from .target import Target
    from .verdicts import CaseResult

__all__ = [
    "dragoman_chaos",
    "dragoman_fake",
    "dragoman_proxy",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_sessionfinish",
]

_OPTIONS = {
    "model": "The model to request.",
    "dialect": "The dialect that the endpoint should speak; default openai.",
    "profile": "Validate against this profile of the dialect's schemas.",
    "api-key-env": "The environment variable with the API key; default DRAGOMAN_CONTRACT_KEY.",
    "level": "The lowest level to run: MUST (default), SHOULD or MAY.",
    "expect": "A file of known gaps, `case id: reason`: these cases are expected to fail.",
}
_NUMBERS = {
    "delay": (0.0, "The least time between two requests, in seconds; default 0."),
    "timeout": (60.0, "The timeout of one reply, in seconds; default 60."),
    "max-wait": (60.0, "How many seconds one request waits for a server that is busy (429); default 60."),
}
_LISTS = {
    "only": "Run only cases whose id matches, as chat/stream/*. Repeatable.",
    "exclude": "Leave out cases whose id matches, as chat/body/*. Repeatable.",
    "without": "A capability that the model lacks. Repeatable.",
}
_RUN = pytest.StashKey["ContractRun"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dragoman", "contract cases for LLM endpoints")
    about = "Run the contract cases against the endpoint at this address, its base URL."
    group.addoption("--dragoman-url", "--dragoman-base-url", dest="dragoman_url", help=about)
    for name, about in _OPTIONS.items():
        group.addoption(f"--dragoman-{name}", help=about)
    for name, about in _LISTS.items():
        group.addoption(f"--dragoman-{name}", action="append", default=[], help=about)
    for name, (default, about) in _NUMBERS.items():
        group.addoption(f"--dragoman-{name}", type=float, default=default, help=about)


@pytest.hookimpl(tryfirst=True)  # before the selection by -k and -m
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if _option(config, "url"):
        items.extend(_collect_cases(session, config))


def pytest_sessionfinish(session: pytest.Session) -> None:
    run = session.config.stash.get(_RUN, None)
    if run is not None:
        run.close()


def _option(config: pytest.Config, name: str) -> Any:
    return config.getoption(f"dragoman_{name.replace('-', '_')}")


def _collect_cases(session: pytest.Session, config: pytest.Config) -> Iterator[pytest.Item]:
    from .case_files import load_cases
    from .known_gaps import InvalidGapsError, find_gap_reason, read_known_gaps
    from .model import LEVELS
    from .plugin_run import ContractRun
    from .runner import sort_cases
    from .session import select_cases

    target = _build_target(config)
    expect = _option(config, "expect")
    try:
        gaps = read_known_gaps(config.invocation_params.dir / expect) if expect else {}
    except InvalidGapsError as error:
        raise pytest.UsageError(str(error)) from None
    named = _option(config, "level") or "MUST"
    level = next((one for one in LEVELS if one == named), None)
    if level is None:
        raise pytest.UsageError(f"--dragoman-level is MUST, SHOULD or MAY, not {named}")
    known = [case for case in load_cases() if case.dialect == target.dialect and not case.upstreams]
    run = ContractRun(target, known, **{name.replace("-", "_"): _option(config, name) for name in _NUMBERS})
    config.stash[_RUN] = run
    for case in sort_cases(select_cases(known, _option(config, "only"), level, _option(config, "exclude"))):
        item = ContractItem.from_parent(session, name=f"contract::{case.id}", case=case, run=run)
        if (reason := find_gap_reason(case.id, gaps)) is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
        yield item


def _build_target(config: pytest.Config) -> Target:
    from .dialects import DEFAULT_DIALECT, DIALECTS
    from .target import Target

    dialect = _option(config, "dialect") or DEFAULT_DIALECT
    if dialect not in DIALECTS:
        raise pytest.UsageError(f"--dragoman-dialect is one of {', '.join(DIALECTS)}, not {dialect}")
    model = _option(config, "model")
    if not model:
        raise pytest.UsageError("--dragoman-url needs --dragoman-model too")
    return Target(
        _option(config, "url"),
        dialect,
        model,
        key=os.environ.get(_option(config, "api-key-env") or "DRAGOMAN_CONTRACT_KEY"),
        profile=_option(config, "profile") or "",
        without=frozenset(_option(config, "without")),
    )


class BrokenRuleError(AssertionError):
    """The endpoint breaks a rule; the message has the rule and the requests."""


class ContractItem(pytest.Item):
    """One case as a test."""

    def __init__(self, *, case: Case, run: ContractRun, **rest: Any) -> None:
        super().__init__(**rest)
        self._case, self._run = case, run

    def runtest(self) -> None:
        result = self._run.run_case(self._case)
        if result.verdict in ("skip", "inconclusive"):
            pytest.skip(f"{result.verdict}: {result.reason}")
        if result.verdict == "warn":
            self.add_report_section("call", "contract", f"warning: {result.reason}")
        if result.verdict in ("fail", "error"):
            raise BrokenRuleError(_describe_failure(result, self._run.target))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return (
            str(excinfo.value) if isinstance(excinfo.value, BrokenRuleError) else super().repr_failure(excinfo, style)
        )

    def reportinfo(self) -> tuple[str, None, str]:
        return "dragoman contract", None, self.name


def _describe_failure(result: CaseResult, target: Target) -> str:
    from .masks import Mask
    from .reports.json_report import build_curl_command

    case, mask = result.case, Mask([target.key])
    lines = [f"{case.level}: {case.title}", f"source: {case.source}", f"{result.verdict}: {result.reason}"]
    lines += [build_curl_command(step.exchange.request, mask) for step in result.steps if step.exchange is not None]
    return mask("\n".join(lines))


@pytest.fixture
def dragoman_fake() -> Iterator[FakeServers]:
    """`dragoman_fake("mindie", behaviour="cut")` starts a fake provider; its `base_url` belongs into a configuration,
    its `requests` are the requests that it received."""
    from .servers import FakeServers

    with FakeServers() as start:
        yield start


@pytest.fixture
def dragoman_chaos() -> Iterator[ChaosServers]:
    """`dragoman_chaos.add(url)` starts a fault proxy in front of an address; connect to its `url` instead, and
    `.toxic("latency", latency=300)` disturbs the connections."""
    from .servers import ChaosServers

    with ChaosServers() as chaos:
        yield chaos


@pytest.fixture
def dragoman_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyServers]:
    """`dragoman_proxy(configuration)` starts dragoman with a configuration, a dict or YAML, and returns its origin."""
    from .servers import ProxyServers

    with ProxyServers(tmp_path_factory.mktemp("dragoman")) as start:
        yield start
