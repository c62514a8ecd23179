"""Asks the probes: one request at a time, patiently while the endpoint is busy, and within the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dragoman.contract.exchange import Chunk, Request, Response, SlowReplyError, Transport, UnreachableError
from dragoman.contract.json_types import JsonObject
from dragoman.contract.masks import MASKED, Mask
from dragoman.contract.model import Case, Expectation, Step
from dragoman.contract.outcome import Outcome
from dragoman.contract.pacing import Pacer, is_busy
from dragoman.contract.target import Target, build_request
from dragoman.contract.texts import shorten
from dragoman.schemas import merge_patch

from .findings import Evidence
from .probe_answer import Answer, judge_outcome
from .probes import ProtocolProbe, count_tokens

__all__ = ["Asker", "EndpointLostError", "KeyRefusedError", "describe_exchange", "hide_key"]

_MOST_LOST = 3
_MOST_KEPT = 256 * 1024
_KEY_STATUSES = (401, 402)  # 402: no credit is left


class KeyRefusedError(Exception):
    """The endpoint wants a key, another one, or money: no further question makes sense."""


class EndpointLostError(Exception):
    """The endpoint does not answer any more."""


@dataclass
class Asker:
    """Asks one endpoint. `limits` maps a protocol to the name of its limit on tokens, if it is not the usual one,
    `additions` to a merge patch of its requests; `outcomes` keeps every response of at most 256 kB, for what all of
    them together show. `budget` is the most tokens of all requests, estimated."""

    target: Target
    transport: Transport
    pacer: Pacer
    budget: int | None = None
    requests: int = 0
    tokens: int = 0
    limits: dict[str, str] = field(default_factory=dict)
    additions: dict[str, JsonObject] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lost = 0
        self._mask = Mask([self.target.key])

    async def ask(
        self,
        probe: ProtocolProbe,
        change: JsonObject,
        *,
        headers: Mapping[str, str] | None = None,
        exactly: bool = False,
    ) -> Answer:
        """Ask for a change of the protocol's smallest request, twice if the endpoint fails. With `exactly` the limit on
        tokens in the change keeps its name. Raises KeyRefusedError, EndpointLostError."""
        usual = merge_patch(self._rename_limit(probe, probe.body), self.additions.get(probe.name, {}))
        body = merge_patch(usual, change if exactly else self._rename_limit(probe, change))
        cost = count_tokens(body)
        if self.budget is not None and self.tokens + cost > self.budget:
            return Answer("unclear", f"the budget of {self.budget} tokens is used up")
        answer = await self._ask_once(probe, body, change, headers or {})
        if answer.state in ("crashed", "unclear") and not answer.is_slow:
            answer = await self._ask_once(probe, body, change, headers or {})
        return answer

    def _rename_limit(self, probe: ProtocolProbe, body: JsonObject) -> JsonObject:
        name = self.limits.get(probe.name)
        if name is None or probe.limits[0] not in body:
            return body
        return {name if key == probe.limits[0] else key: value for key, value in body.items()}

    async def _ask_once(
        self, probe: ProtocolProbe, body: JsonObject, change: JsonObject, headers: Mapping[str, str]
    ) -> Answer:
        protocol = probe.name
        step = Step({"protocol": protocol, "body": body, "headers": dict(headers)}, Expectation(()))
        case = Case("learn", "", "", "MUST", protocol, self.target.dialect, (step,))
        request, sent = build_request(step, case, self.target, {})
        self.tokens += count_tokens(body)
        try:
            response = await self.send(request)
        except UnreachableError as error:
            why = shorten(self._mask(str(error)), 160)
            slow = isinstance(error, SlowReplyError)
            return Answer("unclear", why, None, request, change, is_slow=slow)
        outcome = self._read(protocol, sent, response)
        if response.has_no_end:
            return Answer("unclear", f"the reply has {response.broken}", outcome, request, change, is_slow=True)
        state, why = judge_outcome(outcome, probe.reply)
        return Answer(state, why, outcome, request, change)

    def _read(self, protocol: str, sent: JsonObject, response: Response) -> Outcome:
        target = self.target
        shown = hide_key(response, target.key)
        outcome = Outcome(target.dialect, target.schema_profile, protocol, target.model, sent, shown)
        if sum(len(chunk.data) for chunk in shown.chunks) <= _MOST_KEPT:
            self.outcomes.append(outcome)
        return outcome

    async def send(self, request: Request, *, needs_key: bool = True) -> Response:
        """Send a request until the endpoint is not busy. Raises UnreachableError, EndpointLostError, and
        KeyRefusedError unless the key may be wrong."""
        waited, attempt = 0.0, 0
        while True:
            await self.pacer.wait_turn()
            response = await self._send_once(request)
            self.pacer.observe(response)
            if not is_busy(response):
                if needs_key:
                    _check_key(request, response, self._mask)
                return response
            wait = self.pacer.plan_retry(response, attempt, waited)
            if wait is None:
                raise SlowReplyError(f"the endpoint stayed busy ({response.status}) for {waited:g} s")
            waited, attempt = waited + wait, attempt + 1

    async def _send_once(self, request: Request) -> Response:
        self.requests += 1
        try:
            response = await self.transport.send(request)
        except SlowReplyError:
            raise
        except UnreachableError as error:
            self._lost += 1
            if self._lost >= _MOST_LOST:
                raise EndpointLostError(self._mask(str(error))) from None
            raise
        self._lost = 0
        return response


def _check_key(request: Request, response: Response, mask: Mask) -> None:
    if response.status in _KEY_STATUSES:
        text = shorten(mask(response.body.decode("utf-8", "replace")), 160)
        raise KeyRefusedError(f"{request.method} {request.path} got {response.status} {text}")


def hide_key(response: Response, key: str | None) -> Response:
    """Return the response without the key, which some endpoints repeat in errors."""
    if not key or key.encode() not in response.body:
        return response
    body = response.body.replace(key.encode(), MASKED.encode())
    return replace(response, chunks=(Chunk(response.chunks[-1].at, body),))


def describe_exchange(request: Request, response: Response) -> Evidence:
    """Describe an exchange that is no probe of a protocol."""
    body = request.body.decode("utf-8", "replace")
    received = shorten(response.body.decode("utf-8", "replace"), 160)
    return Evidence(f"{request.method} {request.path} {body}".strip(), f"{response.status} {received}".strip())
