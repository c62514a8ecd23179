"""The pytest plugin. It does nothing unless `--dragoman-base-url` is given or one of its fixtures is used.

With `pytest --dragoman-base-url URL --dragoman-model NAME` every case of the dialect becomes a test: a broken MUST
fails it, what could not be told skips it. For users' own tests there are two fixtures: `dragoman_fake` starts fake
providers, `dragoman_proxy` starts dragoman in front of whatever a configuration names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .model import Case
    from .servers import Fakes, Proxies
    from .target import Target
    from .verdicts import Result

__all__ = ["dragoman_fake", "dragoman_proxy", "pytest_addoption", "pytest_collection_modifyitems"]

_OPTIONS = {
    "base-url": "Run the contract cases against the endpoint at this address.",
    "model": "The model to ask for.",
    "dialect": "The dialect that the endpoint is to speak; default openai.",
    "profile": "Judge by this profile of the dialect's schemas.",
    "api-key-env": "The environment variable that holds the key; default DRAGOMAN_CONTRACT_KEY.",
    "level": "MUST (default), SHOULD or MAY: the least level that is asked for.",
    "expect": "A file of known gaps, `case id: reason`: these cases are expected to fail.",
}
_LISTS = {
    "only": "Run cases whose id fits, as chat/stream/*. May be repeated.",
    "without": "A capability that the model has not. May be repeated.",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dragoman", "contract cases for LLM endpoints")
    for name, about in _OPTIONS.items():
        group.addoption(f"--dragoman-{name}", help=about)
    for name, about in _LISTS.items():
        group.addoption(f"--dragoman-{name}", action="append", default=[], help=about)


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if _option(config, "base-url"):
        items.extend(_collected(session, config))


def _option(config: pytest.Config, name: str) -> Any:
    return config.getoption(f"--dragoman-{name}")


def _collected(session: pytest.Session, config: pytest.Config) -> Iterator[pytest.Item]:
    from .corpus import load_cases
    from .expectations import NotExpectations, read_expectations, reason_for
    from .model import LEVELS
    from .session import chosen

    target = _target(config)
    expect = _option(config, "expect")
    try:
        expected = read_expectations(config.invocation_params.dir / expect) if expect else {}
    except NotExpectations as error:
        raise pytest.UsageError(str(error)) from None
    named = _option(config, "level") or "MUST"
    level = next((one for one in LEVELS if one == named), None)
    if level is None:
        raise pytest.UsageError(f"--dragoman-level is MUST, SHOULD or MAY, not {named}")
    for case in chosen(load_cases(), _option(config, "only"), level):
        if case.dialect == target.dialect and not case.upstreams:
            item = ContractItem.from_parent(session, name=f"contract::{case.id}", case=case, target=target)
            if (reason := reason_for(case.id, expected)) is not None:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
            yield item


def _target(config: pytest.Config) -> Target:
    from .dialects import DEFAULT, DIALECTS
    from .target import Target

    dialect = _option(config, "dialect") or DEFAULT
    if dialect not in DIALECTS:
        raise pytest.UsageError(f"--dragoman-dialect is one of {', '.join(DIALECTS)}, not {dialect}")
    model = _option(config, "model")
    if not model:
        raise pytest.UsageError("--dragoman-base-url needs --dragoman-model too")
    return Target(
        _option(config, "base-url"),
        dialect,
        model,
        key=os.environ.get(_option(config, "api-key-env") or "DRAGOMAN_CONTRACT_KEY"),
        profile=_option(config, "profile") or "",
        without=frozenset(_option(config, "without")),
    )


class Broken(AssertionError):
    """The endpoint breaks a rule; the text says which, with the exchange."""


class ContractItem(pytest.Item):
    """One case as a test."""

    def __init__(self, *, case: Case, target: Target, **rest: Any) -> None:
        super().__init__(**rest)
        self._case, self._target = case, target

    def runtest(self) -> None:
        import asyncio

        result = asyncio.run(self._result())
        if result.verdict in ("skip", "inconclusive"):
            pytest.skip(f"{result.verdict}: {result.reason}")
        if result.verdict == "warn":
            self.add_report_section("call", "contract", f"warning: {result.reason}")
        if result.verdict in ("fail", "error"):
            raise Broken(_told(result, self._target))

    async def _result(self) -> Result:
        from .runner import Run
        from .transport import Http

        transport = Http()
        try:
            return await Run(self._target, transport).case(self._case)
        finally:
            await transport.close()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, Broken) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        return "dragoman contract", None, self.name


def _told(result: Result, target: Target) -> str:
    from .masks import Mask
    from .reports.document import curl_of

    case, mask = result.case, Mask([target.key])
    lines = [f"{case.level}: {case.title}", f"source: {case.source}", f"{result.verdict}: {result.reason}"]
    lines += [curl_of(step.exchange.asked, mask) for step in result.steps if step.exchange is not None]
    return mask("\n".join(lines))


@pytest.fixture
def dragoman_fake() -> Iterator[Fakes]:
    """`dragoman_fake("mindie", behaviour="cut")` starts a fake provider; its `base_url` is for a configuration, its
    `requests` are what it received."""
    from .servers import Fakes

    with Fakes() as fakes:
        yield fakes


@pytest.fixture
def dragoman_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxies]:
    """`dragoman_proxy(configuration)` starts dragoman with a configuration, a dict or YAML, and returns its address."""
    from .servers import Proxies

    with Proxies(tmp_path_factory.mktemp("dragoman")) as proxies:
        yield proxies
