"""dragoman, as a subprocess in front of each fake provider, passes every MUST and SHOULD of every dialect."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.contract.case_files import load_cases
from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.json_types import JsonObject
from dragoman.contract.model import Case
from dragoman.contract.runner import CaseRunner
from dragoman.contract.servers import ProxyServers
from dragoman.contract.target import Target
from dragoman.contract.transport import HttpTransport
from dragoman.contract.verdicts import CaseResult
from tests.dialects import DIALECTS

CASES = load_cases()
KEY = "sk-contract"
BASES = {"openai": "/v1", "databricks": "", "azure": "", "mindie": "/mindie", "anthropic": ""}
PROFILES = {"mindie": "documented"}

SERVED = {
    "openai": {"chat", "responses", "completions", "embeddings", "models"},
    "databricks": {"chat", "responses", "completions", "embeddings"},
    "azure": {"chat", "embeddings", "models"},
    "mindie": {"chat", "models"},
    "anthropic": {"messages", "count_tokens", "models"},
}
"""The protocols that dragoman serves for each client's dialect, with any provider. Chat replaces completions; MindIE
and Anthropic as providers have no embeddings."""
CALLED = {
    "openai": ["chat", "responses", "completions", "embeddings"],
    "databricks": ["chat", "completions", "embeddings"],
    "azure": ["chat", "embeddings"],
    "anthropic": ["messages"],
}
"""The protocols that dragoman calls at each provider; the default is chat."""

UNREACHABLE = {"mindie": {"embeddings"}, "anthropic": {"embeddings", "completions"}}
"""The protocols that no provider of a dialect serves, not even in another way."""

CHAT_LACKS = {"several_prompts", "echo", "completion_logprobs"}
"""What chat cannot do when it replaces completions."""

PROVIDER_LACKS = {
    "openai": {"matched_stop"},
    "databricks": {"seed", "penalties", "parallel_off", "dimensions", "tokens", "completion_logprobs", "matched_stop"},
    "azure": {
        *("n", "logprobs", "stream_usage", "reasoning", "parallel_off", "tokens", "instruction", "sampling"),
        *("matched_stop", *CHAT_LACKS),
    },
    "mindie": {"parallel_off", "matched_stop"} | CHAT_LACKS,
    "anthropic": {"n", "logprobs", "seed", "penalties", "tokens", "json_object", "temperature_of_2"} | CHAT_LACKS,
}
"""What the providers' APIs lack, so that dragoman refuses it by name."""

CLIENT_LACKS = {
    "openai": set[str](),
    "databricks": {"strict_fields"},
    "azure": set[str](),
    "mindie": {"tools"},
    "anthropic": {"strict_fields"},
}
"""What dragoman serves in another way: unknown fields pass through, MindIE's reference has no tools."""


def build_configuration(upstream: str, base_url: str) -> JsonObject:
    kind = {"kind": "provisioned-throughput"} if upstream == "databricks" else {}
    provider = {"dialect": upstream, "base_url": base_url, "api_key": "sk-upstream", **kind}
    return {
        "server": {"default_model": "m"},
        "keys": [{"name": "contract", "key": KEY, "models": ["*"]}],
        "providers": {"p": {**provider, "protocols": CALLED.get(upstream, ["chat"])}},
        "policy": {"emulate_completions": True},
        "models": {"m": {"targets": [{"provider": "p", "model": "fake-model"}]}},
    }


async def run_cases(url: str, client: str, upstream: str, fake: FakeUpstream) -> list[CaseResult]:
    target = Target(
        url + BASES[client],
        client,
        "m",
        key=KEY,
        profile=PROFILES.get(client, ""),
        without=frozenset(PROVIDER_LACKS[upstream] | CLIENT_LACKS[client]),
        protocols=frozenset(SERVED[client] - UNREACHABLE.get(upstream, set())),
        upstream=upstream,
    )
    mine: list[Case] = [case for case in CASES if case.dialect == client and case.level != "MAY"]
    http = HttpTransport(20)
    await fake.load_script(())
    direct = await CaseRunner(target, http, concurrency=8).run_cases([case for case in mine if not case.upstreams])
    driven = await CaseRunner(target, http, fake).run_cases([case for case in mine if case.upstreams])
    await http.close()
    return direct + driven


def list_clients(upstream: str) -> list[str]:
    """The clients of the default run: those of the provider's own dialect; all of them for OpenAI's."""
    return [client for client in DIALECTS if upstream in ("openai", client)]


@pytest.mark.parametrize(
    ("upstream", "clients"),
    [
        *(pytest.param(upstream, list_clients(upstream), id=upstream) for upstream in DIALECTS),
        *(
            pytest.param(
                upstream,
                [client for client in DIALECTS if client not in list_clients(upstream)],
                id=f"{upstream}-others",
                marks=pytest.mark.heavy,
            )
            for upstream in DIALECTS
            if upstream != "openai"
        ),
    ],
)
async def test_dragoman_passes_every_must_and_should(upstream: str, clients: list[str], tmp_path: Path) -> None:
    async with FakeUpstream(upstream) as fake:
        with ProxyServers(tmp_path) as proxies:
            url = await asyncio.to_thread(proxies, build_configuration(upstream, fake.base_url))
            found = [await run_cases(url, client, upstream, fake) for client in clients]
    for client, results in zip(clients, found, strict=True):
        bad = [(r.case.id, r.verdict, r.reason) for r in results if r.verdict not in ("pass", "skip")]
        assert bad == [], f"{client} over {upstream}"
        assert sum(result.verdict == "pass" for result in results) > 120
