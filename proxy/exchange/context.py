"""The context of a request: the objects that all steps of an exchange share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from aiohttp.web_request import BaseRequest

from dragoman.adapters.pipeline import Pipeline
from dragoman.proxy.config.models import Server
from dragoman.proxy.conversations.owner_store import OwnerStore
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.recording import Recording
from dragoman.proxy.telemetry.sent_secrets import SentSecrets

from .early_call import EarlyCall
from .large_bodies import BodyWorker

__all__ = ["RequestContext"]

_T = TypeVar("_T")


@dataclass(slots=True)
class RequestContext:
    """A client's request and the pipeline that serves it. `headers` are those of every response to it. If responses are
    stored, `store` is set as soon as the key is known. `is_large` says that `worker` works on the request,
    `has_long_strings` that it also writes what is sent: the request may have strings of megabytes.
    `recording` is that of the record. `sent_secrets` are the credentials of the calls made so far. `early` is a call
    that was made before the first attempt."""

    request: BaseRequest
    headers: Mapping[str, str]
    pipeline: Pipeline
    record: ExchangeRecord
    deadline: Deadline
    server: Server
    log: Log
    mask: Mask
    worker: BodyWorker
    recording: Recording | None = None
    is_large: bool = False
    has_long_strings: bool = False
    store: OwnerStore | None = None
    sent_secrets: SentSecrets = field(default_factory=SentSecrets)
    early: EarlyCall | None = None

    def take_early(self, candidate: Candidate) -> EarlyCall | None:
        """The call that was made to this candidate before its attempt, once; None if there is none."""
        early = self.early
        if early is None or early.candidate is not candidate:
            return None
        self.early = None
        return early

    async def work(self, work: Callable[[], _T]) -> _T:
        """Do work on the request: what it returns or raises. Others go on meanwhile if the request is large."""
        return await self.worker.run(work) if self.is_large else work()
