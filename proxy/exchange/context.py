"""The context of a request: the objects that all steps of an exchange share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp.web_request import BaseRequest

from dragoman.adapters.pipeline import Pipeline
from dragoman.proxy.config.models import Server
from dragoman.proxy.conversations.owner_store import OwnerStore
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.sent_secrets import SentSecrets

__all__ = ["RequestContext"]


@dataclass(slots=True)
class RequestContext:
    """A client's request and the pipeline that serves it. `headers` are those of every response to it. If responses are
    stored, `store` is set as soon as the key is known. `sent_secrets` are the credentials of the calls made so far."""

    request: BaseRequest
    headers: Mapping[str, str]
    pipeline: Pipeline
    record: ExchangeRecord
    deadline: Deadline
    server: Server
    log: Log
    mask: Mask
    store: OwnerStore | None = None
    sent_secrets: SentSecrets = field(default_factory=SentSecrets)
