"""dragoman, as a process of its own in front of each fake, passes every MUST and SHOULD of every dialect."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.case_files import load_cases
from dragoman.contract.model import DIALECTS, Case
from dragoman.contract.runner import CaseRunner
from dragoman.contract.servers import ProxyServers
from dragoman.contract.target import Target
from dragoman.contract.transport import HttpTransport
from dragoman.contract.verdicts import CaseResult

CASES = load_cases()
KEY = "sk-contract"
BASES = {"openai": "/v1", "databricks": "", "azure": "", "mindie": "/mindie"}
PROFILES = {"mindie": "documented"}

SERVED = {
    "openai": {"chat", "responses", "completions", "embeddings", "models"},
    "databricks": {"chat", "responses", "completions", "embeddings"},
    "azure": {"chat", "embeddings", "models"},
    "mindie": {"chat", "models"},
}
"""Client -> what dragoman serves, whatever is behind it, but for embeddings: MindIE has none.
Chat stands in for completions."""
CALLED = {
    "openai": ["chat", "responses", "completions", "embeddings"],
    "databricks": ["chat", "completions", "embeddings"],
    "azure": ["chat", "embeddings"],
}
"""Provider -> the protocols that dragoman asks it for, where it is not chat alone."""

CHAT_LACKS = {"several_prompts", "echo", "completion_logprobs"}
"""What chat cannot do where it stands in for completions."""

PROVIDER_LACKS = {
    "openai": set[str](),
    "databricks": {"seed", "penalties", "parallel_off", "dimensions", "tokens", "completion_logprobs"},
    "azure": {"n", "logprobs", "stream_usage", "reasoning", "parallel_off", "tokens", "instruction"} | CHAT_LACKS,
    "mindie": {"parallel_off"} | CHAT_LACKS,
}
"""What the providers' APIs do not have, and dragoman therefore refuses by name."""

CLIENT_LACKS = {
    "openai": set[str](),
    "databricks": {"strict_fields"},
    "azure": set[str](),
    "mindie": {"tools"},
}
"""What dragoman serves otherwise: unknown fields pass through, MindIE's reference has no tools."""


def configuration(upstream: str, base_url: str) -> dict[str, Any]:
    kind = {"kind": "provisioned-throughput"} if upstream == "databricks" else {}
    provider = {"dialect": upstream, "base_url": base_url, "api_key": "sk-upstream", **kind}
    return {
        "server": {"default_model": "m"},
        "keys": [{"name": "contract", "key": KEY, "models": ["*"]}],
        "providers": {"p": {**provider, "protocols": CALLED.get(upstream, ["chat"])}},
        "policy": {"emulate_completions": True},
        "models": {"m": {"targets": [{"provider": "p", "model": "fake-model"}]}},
    }


async def results(url: str, client: str, upstream: str, fake: FakeUpstream) -> list[CaseResult]:
    target = Target(
        url + BASES[client],
        client,
        "m",
        key=KEY,
        profile=PROFILES.get(client, ""),
        without=frozenset(PROVIDER_LACKS[upstream] | CLIENT_LACKS[client]),
        protocols=frozenset(SERVED[client] - ({"embeddings"} if upstream == "mindie" else set())),
        upstream=upstream,
    )
    mine: list[Case] = [case for case in CASES if case.dialect == client and case.level != "MAY"]
    http = HttpTransport(20)
    await fake.begin(())
    asked = await CaseRunner(target, http, concurrency=8).run_cases([case for case in mine if not case.upstreams])
    driven = await CaseRunner(target, http, fake).run_cases([case for case in mine if case.upstreams])
    await http.close()
    return asked + driven


@pytest.mark.parametrize("upstream", DIALECTS)
async def test_every_must_and_should(upstream: str, tmp_path: Path) -> None:
    async with FakeUpstream(upstream) as fake:
        with ProxyServers(tmp_path) as proxies:
            url = await asyncio.to_thread(proxies, configuration(upstream, fake.base_url))
            found = [await results(url, client, upstream, fake) for client in DIALECTS]
    for client, told in zip(DIALECTS, found, strict=True):
        bad = [(r.case.id, r.verdict, r.reason) for r in told if r.verdict not in ("pass", "skip")]
        assert bad == [], f"{client} over {upstream}"
        assert sum(result.verdict == "pass" for result in told) > 120
