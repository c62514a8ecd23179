"""The run behind the tests of the pytest plugin: all of them share one runner, and with it its pace and its cache."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from .model import Case
from .pacing import Pacer
from .runner import CaseRunner
from .target import Target
from .transport import HttpTransport
from .verdicts import CaseResult

__all__ = ["ContractRun"]


class ContractRun:
    """Runs cases one at a time, each once. `cases` are all cases of the dialect: the probe of a protocol runs before
    its first case, so that a protocol that is not served is skipped. The seconds are those of `Session`."""

    def __init__(
        self,
        target: Target,
        cases: Sequence[Case],
        *,
        delay: float = 0.0,
        timeout: float = 60.0,
        max_wait: float = 60.0,
    ) -> None:
        self.target = target
        self._probes = {case.protocol: case for case in cases if case.probe}
        self._results: dict[str, CaseResult] = {}
        self._loop = asyncio.Runner()
        self._transport = HttpTransport(timeout)
        self._runner = CaseRunner(target, self._transport, pacer=Pacer(delay, max_wait))

    def run_case(self, case: Case) -> CaseResult:
        """Run one case, after the probe of its protocol."""
        probe = self._probes.get(case.protocol)
        for one in (case,) if probe is None or probe.id == case.id else (probe, case):
            if one.id not in self._results:
                self._results[one.id] = self._loop.run(self._runner.run_case(one))
        return self._results[case.id]

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._transport.close())
        self._loop.close()
