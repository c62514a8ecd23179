"""The other views in a browser: playground, providers, configuration; what all of them look like."""

from __future__ import annotations

import pytest

from tests.browser import Page

from .fake_server import FakeServer
from .looks import LOW_CONTRAST, NAMELESS, VIEWS, choose

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIVE = "document.getElementById('pulse').innerText.includes('live')"
FIELD = "[...document.querySelectorAll('.ask .field')].find((found) => found.innerText === '{}').lastChild"
PATH, HEADERS = FIELD.format("Path"), FIELD.format("Headers")
READY = f"document.querySelector('main > :not(.empty, .note)') && {LIVE}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
async def test_contrast_and_names(page: Page, fake: FakeServer, view: str, scheme: str) -> None:
    await page.prefer(scheme=scheme)
    await page.go(f"{fake.url}/{view}")
    await page.until(READY)
    if "exchange" in view:
        await page.press("n")
        await page.press("n")
    assert await page.run(LOW_CONTRAST) == []
    assert await page.run(NAMELESS) == []


async def test_theme_is_kept(page: Page, fake: FakeServer) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    await page.prefer(scheme="light")
    await page.go(fake.url)
    await page.until(READY)
    light = await page.run(back)
    await page.press("t")
    await page.press("t")
    dark = await page.run(back)
    assert dark != light
    await page.go(fake.url)
    await page.until(READY)
    assert await page.run(back) == dark
    await page.run("localStorage.clear()")


async def test_nothing_moves_for_people_who_want_that(page: Page, fake: FakeServer) -> None:
    animated = "[...document.querySelectorAll('.dot.is-running')].map((found) => getComputedStyle(found).animationName)"
    await page.prefer(motion="reduce")
    await page.go(fake.url)
    await page.until(f"{READY} && document.querySelector('.dot.is-running')")
    assert await page.run(animated) == ["none"]
    await page.prefer(motion="no-preference")
    assert await page.run(animated) == ["breathe"]


async def test_playground_shows_a_stream_as_it_comes(page: Page, fake: FakeServer) -> None:
    fake.sent = [
        f'data: {{"choices":[{{"index":0,"delta":{{"content":"{word}"}}}}]}}\n\n' for word in ("Hel", "lo <b>", "!")
    ] + ["data: [DONE]\n\n"]
    await page.go(f"{fake.url}/#/playground")
    await page.until("document.querySelector('textarea[aria-label]')")
    assert '"content": "Say hello."' in await page.run("document.querySelector('textarea[aria-label]').value")
    await page.run("document.querySelector('textarea[aria-label]').focus()")
    await page.send("Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, modifiers=2)
    await page.until("document.querySelector('.said')?.innerText === 'Hello <b>!'")
    await page.until("document.querySelector('.answer').innerText.includes('of 4 events')")
    [(path, posted)] = fake.posted
    assert path == "send"
    assert posted["path"] == "/v1/chat/completions"
    assert posted["body"]["model"] == "fast"
    await page.click(".answer a.button")
    await page.until("document.querySelectorAll('.pane').length === 4")


async def test_playground_speaks_each_protocol(page: Page, fake: FakeServer) -> None:
    await page.go(f"{fake.url}/#/playground")
    await page.until("document.querySelector('textarea[aria-label]')")
    await page.run(choose("Protocol", "anthropic messages"))
    assert '"max_tokens": 64' in await page.run("document.querySelector('textarea[aria-label]').value")
    assert await page.run(f"{PATH}.value") == "/v1/messages"
    assert await page.run(f"{HEADERS}.value") == "anthropic-version: 2023-06-01"
    assert await page.run(
        "[...document.querySelector('select[aria-label=Model]').options].map(({value}) => value)"
    ) == ["fast", "claude"]
    await page.run(choose("Model", "fast"))
    assert '"model": "fast"' in await page.run("document.querySelector('textarea[aria-label]').value")
    await page.click("#stream")
    assert '"stream": false' in await page.run("document.querySelector('textarea[aria-label]').value")
    await page.run("document.querySelector('textarea[aria-label]').select()")
    await page.write('{"model": ')
    assert "JSON" in await page.run("document.querySelector('.problem').innerText")
    await page.run(choose("Protocol", "openai chat"))
    await page.run(choose("Protocol", "anthropic messages"))
    assert (
        await page.run("document.querySelector('textarea[aria-label]').value") == '{"model": '
    )  # what was written stays


async def test_playground_sends_to_the_path_with_the_headers_that_were_written(page: Page, fake: FakeServer) -> None:
    fake.sent = ["data: [DONE]\n\n"]
    await page.go(f"{fake.url}/#/playground")
    await page.until("document.querySelector('textarea[aria-label]')")
    await page.run(f"{PATH}.select()")
    await page.write("/v1/chat/completions?x=1")
    await page.run(f"{HEADERS}.select()")
    await page.write("extra-parameters")
    assert "not name: value" in await page.run("document.querySelector('.problem').innerText")
    await page.click(".send button.main")
    assert await page.run(f"document.activeElement === {HEADERS}")
    assert fake.posted == []
    await page.write(": drop")
    await page.click(".send button.main")
    await page.until("document.querySelector('.answer').innerText.includes('events')")
    [(_, posted)] = fake.posted
    assert (posted["path"], posted["headers"]) == ("/v1/chat/completions?x=1", {"extra-parameters": "drop"})


async def test_a_proxy_with_keys_gets_one(page: Page, fake: FakeServer) -> None:
    fake.about |= {"needs_key": True, "client_port": 8080}
    await page.go(f"{fake.url}/#/playground")
    await page.until("document.querySelector('textarea[aria-label]')")
    assert await page.run(f"{HEADERS}.value") == "Authorization: Bearer "
    fake.exchanges.clear()
    await page.go(fake.url)
    await page.until("document.querySelector('.nothing pre')")
    shown = await page.run("document.querySelector('.nothing pre').innerText")
    assert "curl http://127.0.0.1:8080/" in shown
    assert '-H "Authorization: Bearer $DRAGOMAN_KEY"' in shown


async def test_people_with_a_session_can_end_it(page: Page, fake: FakeServer) -> None:
    await page.go(fake.url)
    await page.until(READY)
    assert await page.run("document.getElementById('leave').checkVisibility()") is False
    fake.about["signed_in"] = True
    await page.go(f"{fake.url}/?again")
    await page.until(f"{READY} && document.getElementById('leave').checkVisibility()")
    await page.click("#leave")
    await page.until("document.getElementById('leave')?.checkVisibility() === false")
    assert fake.posted == [("logout", {})]


async def test_providers_and_limits(page: Page, fake: FakeServer) -> None:
    await page.go(f"{fake.url}/#/providers")
    await page.until("document.querySelector('.cards')")
    shown = await page.run("document.querySelector('.page').innerText")
    for part in (
        "lakehouse",
        "healthy",
        "open: not asked",
        "half open",
        "512 ms",
        "4 waiting",
        "212 of 600 left",
        "resets in 11.5 s",
    ):
        assert part in shown
    fake.state["providers"], fake.state["limits"] = [], []
    await page.until("document.querySelector('.page').innerText.includes('No provider')")
    assert "No limit is in use" in await page.run("document.querySelector('.page').innerText")


async def test_configuration_leads_to_its_lines(page: Page, fake: FakeServer) -> None:
    await page.go(f"{fake.url}/#/configuration")
    await page.until("document.querySelector('.values')")
    row = "[...document.querySelectorAll('.values tr')].find((found) => found.innerText.startsWith('{}'))"
    assert "default" in await page.run(row.format("server.drain.delay") + ".innerText")
    await page.run(row.format("providers.lakehouse.base_url") + ".querySelector('button').click()")
    assert "https://dbc-12.cloud.databricks.com" in await page.run(
        "document.querySelector('.source .is-selected').innerText"
    )
    assert "line 15" in await page.run(row.format("models.fast.targets[0].provider") + ".innerText")
    await page.press("/")
    await page.write("inspect")
    assert (
        await page.run("[...document.querySelectorAll('.values tbody tr')].filter((found) => !found.hidden).length")
        == 1
    )


async def test_configuration_without_a_file_may_come_from_the_command(page: Page, fake: FakeServer) -> None:
    fake.configuration = {"file": None, "lines": [], "values": {"server": {"port": 8080}}, "places": {}}
    await page.go(f"{fake.url}/#/configuration")
    await page.until("document.querySelector('.values')")
    assert "from the command that started dragoman" in await page.run(
        "document.querySelector('.configuration').innerText"
    )


async def test_a_lost_connection_is_shown_and_comes_back(page: Page, fake: FakeServer) -> None:
    await page.go(fake.url)
    await page.until(READY)
    fake.is_down = True
    fake.hang_up()
    await page.until("document.getElementById('pulse').innerText.includes('no connection')")
    fake.is_down = False
    await page.until("document.getElementById('pulse').innerText.includes('live')")
    page.complaints.clear()  # the browser says that requests failed
