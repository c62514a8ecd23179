"""Learning from the first question to the last: dialect, models, protocols, fields, limits, profile, quirks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from dragoman.contract.dialects import DIALECTS, load_dialect
from dragoman.contract.exchange import Request, Response, Transport, UnreachableError
from dragoman.contract.json_types import JsonObject
from dragoman.contract.outcome import Outcome
from dragoman.contract.pacing import Pacer
from dragoman.contract.quirk_files import load_quirks
from dragoman.contract.served import is_not_served
from dragoman.contract.target import Target
from dragoman.contract.texts import shorten
from dragoman.schemas import load

from .asking import Asker, EndpointLostError, KeyRefusedError, hide_key
from .batch_limit import find_batch_maximum, learn_batch_limit
from .dialect_choice import choose_dialect, count_choice_requests
from .fields import FieldLearner
from .findings import Evidence, Findings
from .probe_answer import Answer
from .probes import ProtocolProbe, count_tokens, load_probes
from .profile_choice import choose_profile, list_bound_probes
from .quirk_signs import find_quirks

__all__ = ["Forecast", "LearnError", "Learner", "forecast_cost"]

_TAG = re.compile(r"\s*<(think|thinking|thought|reasoning)>")
_END_TAG = re.compile(r"</(think|thinking|thought|reasoning)>")

_UNSEEN: Mapping[str, str] = {
    "limits.max_tokens": "only a request for more tokens than the limit shows it, and an endpoint may write them all",
    "reasoning_replay": "what a model makes of earlier reasoning cannot be seen from outside",
}
_ONE_WAY = "the key was accepted as the dialect sends it; other ways were not tried"


class LearnError(Exception):
    """Nothing can be learned; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What learning costs: `requests` and `tokens` if the endpoint accepts everything, `most_...` if it refuses it."""

    requests: int
    tokens: int
    most_requests: int
    most_tokens: int


@dataclass
class Learner:
    """Learns one endpoint. `dialect` and `model` are those that the user names, if any; `findings` has what is known so
    far, at any time."""

    url: str
    transport: Transport
    pacer: Pacer
    key: str | None = None
    dialect: str = ""
    model: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    budget: int | None = None
    say: Callable[[str], object] = lambda _: None
    findings: Findings = field(default_factory=Findings)

    async def learn(self) -> None:
        """Learn everything. Raises LearnError if there is no endpoint, or if its key is refused at once."""
        self.findings.started = datetime.now(UTC).isoformat(timespec="seconds")
        target = Target(self.url, self.dialect or "openai", self.model, self.key, headers=self.headers)
        asker = Asker(target, self.transport, self.pacer, self.budget)
        try:
            await self._choose(asker)
            await self._learn_protocols(asker)
        except KeyRefusedError as error:
            self._stop(f"the endpoint refuses the key, or has no credit: {error}")
        except EndpointLostError as error:
            self._stop(f"the endpoint does not answer any more: {error}")
        finally:
            self._conclude(asker)

    def _stop(self, why: str) -> None:
        """Keep what is known. Raises LearnError if that is nothing."""
        if not self.findings.protocols:
            raise LearnError(why) from None
        self.findings.interrupted = why

    def _conclude(self, asker: Asker) -> None:
        self.findings.requests, self.findings.tokens = asker.requests, asker.tokens
        if self.findings.dialect:
            _note_quirks(self.findings, asker)
        for name, why in _UNSEEN.items():
            self.findings.give_up(name, why)
        if self.key is not None:
            self.findings.give_up("auth", _ONE_WAY)

    async def _choose(self, asker: Asker) -> None:
        self.say("dialect and address")

        async def send(request: Request) -> Response:
            return hide_key(await asker.send(request, needs_key=False), self.key)

        try:
            choice = await choose_dialect(self.url, asker.target, send, self.dialect)
        except (UnreachableError, EndpointLostError) as error:
            raise LearnError(f"nothing answers: {error}") from None
        if choice is None:
            raise LearnError("no dialect fits the answers; name the dialect and the base address (--dialect)")
        findings = self.findings
        findings.dialect, findings.base_url = choice.dialect, choice.base_url
        findings.learn("dialect", choice.dialect, choice.evidence)
        findings.learn("base_url", choice.base_url)
        if choice.models is None:
            findings.give_up("models", "the endpoint has no list of models")
        else:
            findings.learn("models", choice.models, choice.models_evidence)
        findings.model = self.model or next(iter(choice.models or ()), "")
        if not findings.model:
            raise LearnError(f"this endpoint of {choice.dialect} lists no models: name one (--model)")
        asker.target = replace(asker.target, base_url=choice.base_url, dialect=choice.dialect, model=findings.model)

    async def _learn_protocols(self, asker: Asker) -> None:
        probes = load_probes()
        served: list[tuple[ProtocolProbe, Answer]] = []
        for name, probe in probes.protocols.items():
            if name in load_dialect(self.findings.dialect).paths:
                self.say(name)
                usual = await self._learn_protocol(asker, probe)
                served += [(probe, usual)] if usual is not None else []
        if not served:
            reasons = [f"{name}: {why}" for name, why in self.findings.unknown.items() if name.startswith("protocols.")]
            raise LearnError("no protocol can be served: " + "; ".join(reasons or ["every address is missing"]))
        for probe, usual in served:
            self.say(f"fields of {probe.name}")
            for form in probe.forms:
                await asker.ask(probe, form)
            await FieldLearner(asker, self.findings, probe, usual).learn(probes.fields.get(probe.name, ()))
            if probe.name == "embeddings":
                await learn_batch_limit(asker, self.findings, probe)
        self.say("profile")
        await choose_profile(asker, self.findings, served[0][0])

    async def _learn_protocol(self, asker: Asker, probe: ProtocolProbe) -> Answer | None:
        """Learn whether the endpoint serves a protocol, and return its usual answer if it does."""
        name = f"protocols.{probe.name}"
        answer = await asker.ask(probe, {})
        for limit in probe.limits[1:]:
            if _is_refused(answer):
                asker.limits[probe.name] = limit
                answer = await asker.ask(probe, {})
        if not answer.is_accepted:
            asker.limits.pop(probe.name, None)
        if _is_refused(answer) and probe.optional:
            asker.additions[probe.name] = dict.fromkeys(probe.optional)
            answer = await asker.ask(probe, {})
        if answer.outcome is None or not answer.is_accepted:
            self._note_unserved(name, answer)
            return None
        if answer.outcome.is_sse:
            return await self._learn_streamed_protocol(asker, probe, answer)
        self.findings.learn(name, True, answer.describe(shorten(answer.outcome.text, 70)))
        return answer

    async def _learn_streamed_protocol(self, asker: Asker, probe: ProtocolProbe, streamed: Answer) -> Answer | None:
        """Learn whether a protocol that streams unasked has whole replies if the request says so."""
        name, shown = f"protocols.{probe.name}", streamed.describe("an event stream that was not asked for")
        answer = await asker.ask(probe, {"stream": False}) if _documents_streams(self.findings.dialect) else streamed
        if answer.outcome is None or answer.outcome.is_sse or not answer.is_accepted:
            self.findings.learn(name, _can_read_streams(probe.name), shown)
            return streamed if _can_read_streams(probe.name) else None
        asker.additions[probe.name] = {**asker.additions.get(probe.name, {}), "stream": False}
        self.findings.learn(f"streams_unasked.{probe.name}", True, shown)
        self.findings.learn(name, True, answer.describe(shorten(answer.outcome.text, 70)))
        return answer

    def _note_unserved(self, name: str, answer: Answer) -> None:
        if (answer.outcome is not None and is_not_served(answer.outcome.response)) or answer.state == "crashed":
            self.findings.learn(name, False, answer.describe())
        else:
            self.findings.give_up(name, answer.why or answer.describe().received)


def _is_refused(answer: Answer) -> bool:
    """Whether the endpoint serves the protocol, and refuses this request of it."""
    return answer.state == "refused" and answer.outcome is not None and not is_not_served(answer.outcome.response)


def _documents_streams(dialect: str) -> bool:
    """Whether the dialect has a profile that streams unless the request says no, so that dragoman says so."""
    data = load_dialect(dialect)
    rules = [
        load(f"{dialect}/{name}.request", profile)["properties"].get("stream", {})
        for name in data.paths
        if name != "models"
        for profile in data.profiles
    ]
    return any(rule.get("default") is True for rule in rules)


def _can_read_streams(protocol: str) -> bool:
    """Whether a stream that nobody asked for is a known quirk, which dragoman repairs."""
    return any(quirk.protocol == protocol and isinstance(quirk.whole, list) for quirk in load_quirks().values())


def _note_quirks(findings: Findings, asker: Asker) -> None:
    for name, (signs, outcome) in sorted(find_quirks(asker.outcomes, findings.dialect).items()):
        form = "streamed" if outcome.is_sse else "whole"
        shown = Evidence(f"{outcome.protocol}, {form}", shorten("; ".join(sorted(signs)), 160))
        findings.learn(f"quirks.{name}", load_quirks()[name].title, shown)
    tags = next((tag for outcome in asker.outcomes for tag in _find_tags(outcome)), None)
    if tags is not None:
        findings.learn("reasoning_tags", *tags)


def _find_tags(outcome: Outcome) -> list[tuple[bool | str, Evidence]]:
    """Whether the content of a chat reply has reasoning between tags: true, or `implied` if only the end is marked."""
    if outcome.protocol != "chat":
        return []
    for text in outcome.content.texts:
        if _TAG.match(text):
            return [(True, Evidence("chat", shorten(text, 120)))]
        if _END_TAG.search(text):
            return [("implied", Evidence("chat", shorten(text, 120)))]
    return []


def forecast_cost(url: str, dialect: str = "") -> Forecast:
    """Estimate what learning costs, before anything is sent: for one dialect, or for the one that costs most."""
    choice = count_choice_requests(url, dialect)
    each = [_forecast_dialect(name) for name in ([dialect] if dialect else DIALECTS)]
    usual, most = (max(costs, key=sum) for costs in zip(*each, strict=True))
    return Forecast(choice + usual[0], usual[1], choice + most[0], most[1])


def _forecast_dialect(dialect: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Requests and tokens if the endpoint accepts everything, and if it refuses or fails."""
    probes, usual, most = load_probes(), list[JsonObject](), list[JsonObject]()
    names = [name for name in probes.protocols if name in load_dialect(dialect).paths]
    for number, name in enumerate(names):
        probe, fields = probes.protocols[name], probes.fields.get(name, ())
        alone = [{**probe.body, **change} for one in fields if not one.is_plain for change in one.send]
        plain = [{**probe.body, **one.send[0]} for one in fields if one.is_plain]
        bounds = [{**probe.body, one.field: one.value} for one in list_bound_probes(dialect, name) if not number]
        batch = [{"input": ["a"] * find_batch_maximum(dialect, "actual")}] if name == "embeddings" else []
        once = [probe.body, *({**probe.body, **form} for form in probe.forms), *alone, *bounds, *batch]
        usual += [*once, *plain[:2]]
        most += [*once, *once, *[probe.body] * 3, *alone, *alone, *plain * 3]
    return (len(usual), sum(map(count_tokens, usual))), (len(most), sum(map(count_tokens, most)))
