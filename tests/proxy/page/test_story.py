"""The page of a real proxy, as a person uses it: a field is dropped, the page shows where and why, and the exchange is
sent again under another policy."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.server.lifecycle import RunningProxy
from tests.browser import Page
from tests.proxy.page_rig import run_page_rig

from .looks import LOW_CONTRAST, NAMELESS, TOO_WIDE, choose, click_text

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT = {
    "model": "to-databricks",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_completion_tokens": 9,
    "seed": 7,
}
ADMIN_KEY = "an-admin-key-of-a-test"
PANES = "document.querySelectorAll('.pane-body .row').length > 8"


@pytest_asyncio.fixture(loop_scope="session")
async def rig(page: Page) -> AsyncIterator[RunningProxy]:
    async with run_page_rig(server={"admin_port": 0, "admin_key": ADMIN_KEY}) as rig:
        yield rig
        complaints = [*page.complaints]
        await page.go("about:blank")
    assert complaints == []


async def send(rig: RunningProxy, body: JsonObject, **headers: str) -> None:
    async with (
        aiohttp.ClientSession(rig.url, headers=headers) as session,
        session.post("/v1/chat/completions", json=body) as response,
    ):
        await response.read()


async def read_text(page: Page, selector: str) -> str:
    return str(await page.run(f"document.querySelector({selector!r}).innerText"))


async def test_why_a_field_was_dropped(page: Page, rig: RunningProxy) -> None:
    await page.go(rig.url)
    await page.until("document.querySelector('.nothing pre')")
    await send(rig, CHAT)
    await page.until("document.querySelector('.list tbody tr')?.innerText.includes('1 loss')")
    await page.press("j")
    await page.press("Enter")
    await page.until(PANES)
    assert "127.0.0.1" in await read_text(page, ".facts .numbers")
    await page.click(".change:has(.is-loss) .change-main")
    assert '"seed": 7' in await read_text(page, ".pane-1 .row.is-selected")
    assert "seed" in await read_text(page, ".pane-2 .row.is-selected")
    assert '"seed"' not in await read_text(page, ".pane-2")
    assert '"max_tokens": 9' in await read_text(page, ".pane-2")
    change = await read_text(page, ".change.is-selected")
    for part in ("the target's API does not have it", "policy", "unsupported", "databricks/chat.request (actual)"):
        assert part in change
    await page.run(click_text(".pane .tabs button", "Headers"))
    assert "sk-fake-provider-key" not in await page.run("document.body.innerText")
    assert await page.run(NAMELESS) == []


async def test_exchanges_with_one_id_are_told_apart(page: Page, rig: RunningProxy) -> None:
    for model in ("to-openai", "to-databricks", "to-mindie"):
        await send(rig, {**CHAT, "model": model}, **{"x-request-id": "of-the-mesh"})
    await page.go(rig.url)
    await page.until("document.querySelectorAll('.list tbody a').length === 3")
    await page.run("document.querySelectorAll('.list tbody a')[2].click()")
    for model, key in (("to-openai", "k"), ("to-databricks", "k"), ("to-mindie", "j"), ("to-databricks", "j")):
        await page.until(f"document.querySelector('.exchange h1')?.innerText.includes('{model}')")
        await page.press(key)


async def open_exchange(page: Page, rig: RunningProxy) -> None:
    """Send a request, and look at its exchange."""
    await send(rig, CHAT)
    await page.go(rig.url)
    await page.until("document.querySelector('.list tbody a')")
    await page.press("j")
    await page.press("Enter")
    await page.until(PANES)


async def test_replay_under_another_policy(page: Page, rig: RunningProxy) -> None:
    await open_exchange(page, rig)
    await page.press("r")
    await page.until("document.querySelector('dialog[open] [data-policy=unsupported]')")
    await page.run(choose("unsupported", "refuse"))
    await page.press("Enter")
    await page.until("document.querySelector('.compare-bodies')")
    facts = await read_text(page, ".facts-table")
    assert "400" in facts
    assert "unsupported_parameter" in facts
    assert "seed" in await read_text(page, ".receipts .is-gone:has(.is-loss)")
    assert await page.run(LOW_CONTRAST) == []
    await page.press("Escape")
    await page.until("document.querySelector('.exchange')")
    await page.press("Escape")
    await page.until("document.querySelectorAll('.list tbody tr').length === 2")
    assert "replay" in await read_text(page, ".list tbody tr")
    page.complaints.clear()  # none of the page; the browser notes a status of 400 elsewhere


async def test_a_contract_case_is_exported_and_runs(page: Page, rig: RunningProxy, tmp_path: Path) -> None:
    await open_exchange(page, rig)
    await page.press("e")
    await page.until("document.querySelector('.export')?.innerText.startsWith('curl ')")
    await page.click("[data-form=case]")
    await page.until("document.querySelector('.export').innerText.startsWith('protocol: chat')")
    await page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    await page.click("dialog .main")
    async with asyncio.timeout(30):
        while not (files := await asyncio.to_thread(lambda: [*tmp_path.glob("*.yaml")])):  # noqa: ASYNC110 - the browser is another process
            await asyncio.sleep(0.02)
    assert "seed: 7" in files[0].read_text()
    given = ("--base-url", f"{rig.url}/v1", "--model", "to-databricks", "--cases", str(tmp_path))
    command = (sys.executable, "-m", "dragoman", "contract", "run", *given)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    await page.press("Escape")


async def test_playground_streams_through_the_proxy(page: Page, rig: RunningProxy) -> None:
    await page.go(f"{rig.url}/#/playground")
    await page.until("document.querySelector('textarea')")
    routes = await page.run(
        "[...document.querySelector('select[aria-label=Protocol]').options].map(({value}) => value)"
    )
    assert {"openai chat", "openai responses", "anthropic messages", "openai embeddings"} <= set(routes)
    for route, answer in {
        "openai chat": "dragoman",
        "openai responses": "dragoman",
        "anthropic messages": "dragoman",
    }.items():
        await page.run(choose("Protocol", route))
        await page.run("document.getElementById('stream').checked || document.getElementById('stream').click()")
        await page.click(".send .main")
        await page.until(f"document.querySelector('.said')?.innerText.includes('{answer}')")
        await page.until("document.querySelector('.answer').innerText.includes('in all')")
        await page.run("document.querySelector('.answer').replaceChildren()")
    await page.click(".send .main")
    await page.until("document.querySelector('.answer a.button')")
    await page.click(".answer a.button")
    await page.until(PANES)
    assert "anthropic messages" in await read_text(page, ".numbers")


async def test_providers_and_configuration_of_a_running_proxy(page: Page, rig: RunningProxy) -> None:
    await page.go(f"{rig.url}/#/providers")
    await page.until("document.querySelectorAll('.card').length >= 4")
    shown = await read_text(page, ".page")
    for part in ("openai", "databricks", "azure", "mindie", "healthy", "fake-model"):
        assert part in shown
    await page.press("g")
    await page.press("c")
    await page.until("document.querySelector('.values')")
    shown = await read_text(page, ".values")
    assert "server.inspect" in shown
    assert "sk-fake-provider-key" not in await page.run("document.body.innerText")
    assert ADMIN_KEY not in await page.run("document.body.innerText")
    for view in ("#/", "#/providers", "#/configuration", "#/playground"):
        await page.resize(390, 780)
        await page.go(f"{rig.url}/{view}")
        await page.until("document.querySelector('main > *')")
        assert not await page.run(TOO_WIDE), view


async def test_sign_in_at_the_admin_listener(page: Page, rig: RunningProxy) -> None:
    assert rig.admin is not None
    await page.go(rig.admin.url)
    await page.until("document.querySelector('.sign-in form')")
    assert await page.run(LOW_CONTRAST) == []
    assert await page.run(NAMELESS) == []
    page.complaints.clear()  # the browser notes the status 401
    await page.run("document.getElementById('key').focus()")
    await page.write(ADMIN_KEY)
    await page.press("Enter")
    await page.until("document.getElementById('pulse')?.innerText.includes('live')")
    assert f"curl {rig.url}/" in await read_text(page, ".nothing pre")  # clients do not ask this listener
    await page.click("#leave")
    await page.until("document.querySelector('.sign-in form')")
    page.complaints.clear()
