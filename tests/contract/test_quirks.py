"""Quirks: at least 120, each with a source and a case; dragoman passes every case."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path

import pytest

from dragoman.contract.case_files import load_cases
from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.quirk_files import load_quirks
from dragoman.contract.runner import CaseRunner
from dragoman.contract.servers import ProxyServers
from dragoman.contract.target import Target
from dragoman.contract.transport import HttpTransport

from .test_dragoman_passes import KEY, build_configuration

QUIRKS = load_quirks()
CASES = [case for case in load_cases() if "/quirks/" in case.id]
_PLACE = re.compile(r"[\w.-]+/[\w.-]+#\d+|reference|documentation|source|RFC \d+|WHATWG", re.IGNORECASE)


def test_there_are_enough_quirks_and_few_of_them_are_errors() -> None:
    errors = [name for name in QUIRKS if name.startswith(("errors/", "failures/"))]
    assert len(QUIRKS) >= 120
    assert len(errors) <= 40


def test_every_quirk_says_where_it_was_seen_and_says_it_once() -> None:
    assert [quirk.name for quirk in QUIRKS.values() if not _PLACE.search(quirk.source)] == []
    assert [title for title, count in Counter(quirk.title for quirk in QUIRKS.values()).items() if count > 1] == []
    answers = Counter(repr((quirk.protocol, quirk.whole, quirk.streamed, quirk.headers)) for quirk in QUIRKS.values())
    assert max(answers.values()) == 1


@pytest.mark.parametrize("serves_chat_alone", [True, False])
@pytest.mark.parametrize("upstream", sorted({quirk.upstream for quirk in QUIRKS.values()}))
async def test_dragoman_passes(upstream: str, serves_chat_alone: bool, tmp_path: Path) -> None:
    left_out = "embeddings" if serves_chat_alone else ""
    mine = [case for case in CASES if upstream in case.upstreams and case.protocol != left_out]
    async with FakeUpstream(upstream) as fake:
        configuration = build_configuration(upstream, fake.base_url)
        if serves_chat_alone:
            configuration["providers"]["p"]["protocols"] = ["chat"]
        with ProxyServers(tmp_path) as proxies:
            url = await asyncio.to_thread(proxies, configuration)
            target = Target(url + "/v1", "openai", "m", key=KEY, upstream=upstream)
            http = HttpTransport(20)
            results = await CaseRunner(target, http, fake).run_cases(mine)
            await http.close()
    assert [(r.case.id, r.verdict, r.reason) for r in results if r.verdict not in ("pass", "skip")] == []
    passed = {result.case.id for result in results if result.verdict == "pass"}
    assert {case.id for case in mine if case.protocol == "chat"} <= passed
