"""Every client with every provider that can serve it, and how a pipeline is set up between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from random import Random

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Policy, Target
from dragoman.adapters.emulation.registry import EMULATIONS
from dragoman.adapters.pipeline import Attempt, Pipeline, plan_target
from dragoman.adapters.registry import NAMES
from dragoman.adapters.routes import Route
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.schemas import load

__all__ = ["KINDS", "STREAMED", "Pair", "choose_target", "list_pairs"]

STREAMED = ("chat", "responses", "messages", "completions")
KINDS = (None, "external", "foundation-model", "provisioned-throughput", "agent")
"""Kinds of a Databricks endpoint; other dialects ignore them."""

DefectReporter = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class Pair:
    """A client and a provider, each with its profile and protocol."""

    client: str
    profile: str
    spoken: str
    provider: str
    provider_profile: str
    called: str

    def __str__(self) -> str:
        client, provider = f"{self.client}:{self.profile}", f"{self.provider}:{self.provider_profile}"
        return f"{client}/{self.spoken}>{provider}/{self.called}"

    def create_pipeline(self, report: DefectReporter, *, has_store: bool = False) -> Pipeline:
        """A pipeline with a still clock and ids that count."""
        dialect = dialects[self.client]
        route = Route(dialect, self.spoken, dialect.served[self.spoken], self.profile)
        path = dialect.paths[self.spoken][0].replace("{name}", "m")
        numbers = count()
        return Pipeline(
            route,
            Call("POST", path, {}, dict(dialect.query), dict(dialect.headers)),
            has_store=has_store,
            clock=lambda: 1_700_000_000.0,
            new_id=lambda prefix: f"{prefix}_{next(numbers):032x}",
            report_defect=report,
        )

    def prepare(self, pipeline: Pipeline, target: Target) -> Attempt:
        """The request that the pipeline has received, for the provider. Raises Fault."""
        recall = pipeline.start_conversation()
        if recall is not None:
            pipeline.supply(None, [])
        return pipeline.prepare(plan_target("provider", dialects[self.provider], [self.called], target))


@cache
def list_pairs(streamed: bool = False) -> tuple[Pair, ...]:
    """All pairs; with `streamed` only those whose providers stream."""
    variants = [(name, profile) for name in NAMES for profile in dialects[name].profiles]
    protocols = [(one, one) for one in ("chat", "responses", "messages", "completions", "embeddings")]
    protocols += [(spoken, bridge.called) for spoken, bridges in BRIDGES.items() for bridge in bridges]
    return tuple(
        Pair(client, profile, spoken, provider, provider_profile, called)
        for spoken, called in protocols
        if called in STREAMED or not streamed
        for client, profile in variants
        if spoken in dialects[client].served
        for provider, provider_profile in variants
        if called in dialects[provider].called
    )


def choose_target(random: Random, pair: Pair, replies: str | None = None) -> Target:
    """A target with random policies, and sometimes fields that it lacks or that are emulated."""
    known = list(load(f"hub/{pair.called}.request")["properties"])
    policy = Policy(
        extra_parameters=random.choice(("error", "drop", "pass-through")),
        unsupported=random.choice(("refuse", "drop")),
        out_of_range=random.choice(("error", "clamp", "drop")),
        replies=replies or random.choice(("off", "report", "repair", "strict")),  # type: ignore[arg-type]
        emulate_completions=True,
    )
    lacks = random.sample(known, 2) if random.random() < 0.2 else []
    return Target(
        "upstream",
        profile=pair.provider_profile,
        policy=policy,
        lacks=frozenset(lacks) - {"model", "messages", "input", "prompt", "stream"},
        kind=random.choice(KINDS),
        emulates=frozenset(EMULATIONS) if random.random() < 0.5 else frozenset(),
        reasoning_tags=random.random() < 0.1,
    )
