"""A call that was made before its attempt: what it gave so far, for the attempt to go on with."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.adapters.faults import Fault
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.upstreams.interface import UpstreamResponse

__all__ = ["EarlyCall"]


class EarlyCall:
    """The call of a candidate, which has a place among the calls of its provider. It ended with `fault`, or else
    `response` is its reply, from whose body `data` was read. Who takes it gives the place back."""

    def __init__(
        self,
        candidate: Candidate,
        response: UpstreamResponse | None,
        fault: Fault | None,
        data: bytes,
    ) -> None:
        self.candidate = candidate
        self._response = response
        self._fault = fault
        self._data = data

    def take(self) -> UpstreamResponse:
        """The response to the call, with its whole body. Raises Fault."""
        fault, self._fault = self._fault, None  # whoever raises it is in its traceback
        if self._response is not None:
            return _Continued(self._response, self._data, fault)
        assert fault is not None
        raise fault

    def drop(self) -> None:
        """Nobody takes the call: give back what it holds."""
        if self._response is not None:
            self._response.close()
        self.candidate.provider.slots.release()


class _Continued(UpstreamResponse):
    """A response whose body was read in part: what was read comes first, then why reading failed, or the rest."""

    def __init__(self, response: UpstreamResponse, data: bytes, fault: Fault | None) -> None:
        self._response = response
        self._data = data
        self._fault = fault
        self.status = response.status
        self.headers = response.headers
        self.sent_secrets = response.sent_secrets

    async def read_chunk(self) -> bytes:
        """The bytes that were read before, or the next ones. Raises Fault."""
        if data := self._data:
            self._data = b""
            return data
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
        return await self._response.read_chunk()

    async def deliver(self, take: Callable[[bytes], bool]) -> None:
        """Give the next bytes to `take`, after those that were read before."""
        if not self._data and self._fault is None:
            await self._response.deliver(take)

    @property
    def is_at_end(self) -> bool:
        """False as long as there is something that was read before."""
        return not self._data and self._fault is None and self._response.is_at_end

    def finish(self) -> None:
        """As the response itself."""
        self._response.finish()

    def close(self) -> None:
        """As the response itself."""
        self._response.close()
