"""The list of exchanges in a browser: live, filtered, searched, paused, by keyboard, and with 10,000 exchanges."""

from __future__ import annotations

import pytest

from dragoman.contract.json_types import JsonObject
from tests.browser import Page

from .fake_server import FakeServer, read_fixture
from .looks import NAMELESS, TOO_WIDE, VIEWS, choose

pytestmark = pytest.mark.asyncio(loop_scope="session")

IDS = "[...document.querySelectorAll('.list tbody a.open')].map((link) => decodeURIComponent(link.hash.slice(11)))"
CURRENT = "document.activeElement.hash ?? ''"
STATUS = "document.querySelector('.status')?.innerText ?? ''"
LIVE = "document.getElementById('pulse').innerText.includes('live')"
EVERY = ["req-running", "req-left", "req-refused", "req-stream", "req-receipt", "req-old"]


def summarize(seq: int, **more: object) -> JsonObject:
    found = read_fixture("exchanges")[0] | {"seq": seq, "id": f"req-{seq}", **more}
    return found | {"ref": found["id"]}


async def open_list(page: Page, fake: FakeServer, count: int = 6) -> None:
    await page.go(fake.url)
    await page.until(
        f"({STATUS}).includes('{count:,} exchange') && document.getElementById('pulse').innerText.includes('live')"
    )


async def test_rows_say_what_happened(page: Page, fake: FakeServer) -> None:
    await open_list(page, fake)
    assert await page.run(IDS) == EVERY
    row = await page.run("document.querySelectorAll('.list tbody tr')[4].innerText")
    for part in (
        "fast",
        "lakehouse/llama-3-70b",
        "openai chat",
        "200",
        "×2",
        "812 ms",
        "24 → 9",
        "2 losses",
        "8 form",
        "ok",
    ):
        assert part in row
    assert await page.run("document.title") == "Exchanges · dragoman"
    assert {url for url in page.requests if not url.startswith(fake.url)} == set()


async def test_table_is_one_for_screen_readers(page: Page, fake: FakeServer) -> None:
    await open_list(page, fake)
    roles = await page.run(
        "[...new Set([...document.querySelectorAll('.list table [role]')].map((found) => found.role))]"
    )
    assert set(roles) == {"rowgroup", "row", "columnheader", "cell"}
    assert await page.run("document.querySelector('.list table').getAttribute('aria-rowcount')") == "7"
    assert await page.run("[...document.querySelectorAll('.list tbody tr')].map((row) => row.ariaRowIndex)") == [
        *"234567"
    ]
    assert await page.run(NAMELESS) == []
    for landmark in ("header", "nav[aria-label]", "main", "[role=search]", "[role=status]"):
        assert await page.run(f"document.querySelectorAll('{landmark}').length") >= 1, landmark


async def test_list_is_live(page: Page, fake: FakeServer) -> None:
    await open_list(page, fake)
    fake.tell("exchange", summarize(7, outcome="running", status=None))
    await page.until(f"({IDS})[0] === 'req-7'")
    assert "running" in await page.run("document.querySelector('.list tbody tr').innerText")
    fake.tell("exchange", summarize(7, outcome="fault", fault="bad_gateway", status=502))
    await page.until("document.querySelector('.list tbody tr').innerText.includes('bad_gateway')")
    fake.tell("state", {**fake.state["gauges"], "in_flight": 1234, "loop_lag_ms": 0.5})
    await page.until("document.getElementById('pulse').innerText.includes('1,234 in flight')")


async def test_what_came_too_fast_is_listed_when_asked_for(page: Page, fake: FakeServer) -> None:
    await open_list(page, fake)
    assert await page.run("document.querySelector('.more').hidden")
    fake.exchanges += [summarize(seq) for seq in range(7, 1_207)]
    fake.tell("exchange", summarize(1_206))
    fake.tell("left_out", {"count": 1_000})
    fake.tell("left_out", {"count": 199})
    await page.until("document.querySelector('.more').innerText === 'List 1,199 more'")
    assert await page.run(NAMELESS) == []
    await page.click(".more")
    await page.until(f"({STATUS}).includes('1,206 exchange')")
    assert await page.run("document.querySelector('.more').hidden")


async def test_pause_holds_new_exchanges_back(page: Page, fake: FakeServer) -> None:
    await open_list(page, fake)
    await page.press("p")
    await page.until("document.querySelector('.pause').ariaPressed === 'true'")
    fake.tell("exchange", summarize(7))
    fake.tell("exchange", summarize(6, id="req-running", status=200))  # a known one goes on
    await page.until("document.querySelector('.pause').innerText === 'Resume (1)'")
    assert await page.run(IDS) == EVERY
    assert "200" in await page.run("document.querySelector('.list tbody tr').innerText")
    await page.click(".pause")
    await page.until(f"({IDS})[0] === 'req-7'")


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("anthropic", ["req-left"]),
        ("status:4xx", ["req-refused"]),
        ("model:fast -stream target:lakehouse", ["req-running", "req-receipt"]),
        ("logit_bias", ["req-refused"]),
        ("key:team", ["req-old"]),
        ("nowhere", []),
    ],
)
async def test_search(page: Page, fake: FakeServer, search: str, found: list[str]) -> None:
    await open_list(page, fake)
    await page.press("/")
    assert await page.run("document.activeElement.type") == "search"
    await page.write(search)
    await page.until(f"({STATUS}).startsWith('{len(found)} of')")
    assert await page.run(IDS) == found
    if not found:
        assert "No exchange matches" in await page.run("document.querySelector('.nothing').innerText")
        await page.press("Escape")
        await page.until(f"({IDS}).length === 6")


async def test_filters(page: Page, fake: FakeServer) -> None:
    await open_list(page, fake)
    for label, value, found in [
        ("Outcome", "fault", "req-refused"),
        ("Model", "claude", "req-left"),
        ("Protocol", "openai/responses", "req-old"),
    ]:
        await page.run(choose(label, value))
        await page.until(f"String({IDS}) === '{found}'")
        await page.run(choose(label, ""))
    await page.press("l")
    await page.until(f"String({IDS}) === 'req-receipt'")


async def test_keyboard_walks_and_comes_back(page: Page, fake: FakeServer) -> None:
    await open_list(page, fake)
    for _ in range(5):
        await page.press("j")
    await page.press("k")
    await page.press("j")
    assert await page.run(CURRENT) == "#/exchange/req-receipt"
    await page.press("Enter")
    await page.until("document.querySelector('.exchange h1')")
    await page.press("Escape")
    await page.until("document.querySelector('.list')")
    assert await page.run(CURRENT) == "#/exchange/req-receipt"
    await page.press("?")
    await page.until("document.querySelector('dialog[open]')")
    assert "previous exchange" in await page.run("document.querySelector('dialog').innerText")
    await page.press("Escape")
    await page.until("!document.querySelector('dialog')")
    for key, view in {"h": "Providers", "c": "Configuration", "p": "Playground", "l": "Exchanges"}.items():
        await page.press("g")
        await page.press(key)
        await page.until(f"document.title === '{view} · dragoman'")
    assert await page.run("document.querySelector('[aria-current]').innerText") == "Exchanges"


async def test_ten_thousand_exchanges_are_few_rows(page: Page, fake: FakeServer) -> None:
    fake.exchanges = [summarize(seq) for seq in range(1, 10_001)]
    await open_list(page, fake, 10_000)
    assert await page.run("document.querySelectorAll('.list tbody tr').length") < 80
    await page.press("j")
    await page.run("document.querySelector('.scroller').scrollTop = 1e9")
    await page.until(f"({IDS}).at(-1) === 'req-1'")
    top = await page.run("document.querySelector('.scroller').scrollTop")
    for seq in range(10_001, 10_101):
        fake.tell("exchange", summarize(seq))
    await page.until(f"({STATUS}).includes('10,000') && document.querySelector('.list table').ariaRowCount === '10001'")
    await page.run("document.querySelector('.scroller').scrollTop = 0")
    await page.until(f"({IDS})[0] === 'req-10100'")
    assert top > 9000 * 30
    assert await page.run("document.querySelectorAll('.list tbody tr').length") < 80


async def test_empty_list_says_what_to_do(page: Page, fake: FakeServer) -> None:
    fake.exchanges, fake.about["inspect"] = [], "off"
    await page.go(fake.url)
    await page.until("document.querySelector('.nothing pre')")
    assert "/v1/chat/completions" in await page.run("document.querySelector('.nothing').innerText")
    await page.until(f"({STATUS}).includes('inspect: off')")
    assert "server.inspect: bodies" in await page.run(STATUS)


async def test_telephone_needs_no_horizontal_scrolling(page: Page, fake: FakeServer) -> None:
    await page.resize(390, 780)
    for view in VIEWS:
        await page.go(f"{fake.url}/{view}")
        await page.until("document.querySelector('main > :not(.empty, .note)')")
        assert not await page.run(TOO_WIDE), view


async def test_what_the_proxy_keeps_no_more_is_marked(page: Page, fake: FakeServer) -> None:
    await open_list(page, fake)
    marked = "[...document.querySelectorAll('.list tbody tr')].map((row) => row.innerText.includes('not kept'))"
    assert await page.run(marked) == [False] * 6
    fake.tell("state", {**fake.state["gauges"], "dropped": fake.exchanges[1]["seq"]})
    await page.until(f"({marked}).includes(true)")
    assert await page.run(marked) == [False] * 4 + [True] * 2
    assert "older ones dropped" in await page.run(STATUS)


@pytest.mark.parametrize("size", [(1280, 760), (1000, 760), (390, 780)])
async def test_the_mark_of_a_stream_is_never_cut_off(page: Page, fake: FakeServer, size: tuple[int, int]) -> None:
    await page.resize(*size)
    await open_list(page, fake)
    name = "a-provider-with-a-long-name/a-model-with-a-name-that-no-list-has-room-for"
    fake.tell("exchange", summarize(7, model=name, dialect="anthropic", protocol="messages", stream=True))
    await page.until(f"({IDS})[0] === 'req-7'")
    inside = """(() => {
      const mark = document.querySelector('.list tbody .stream');
      const [one, cell] = [mark.getBoundingClientRect(), mark.closest('td').getBoundingClientRect()];
      return mark.checkVisibility() && one.left >= cell.left && one.right <= cell.right;
    })()"""
    assert await page.run(inside)


async def test_the_name_of_each_protocol_has_room(page: Page, fake: FakeServer) -> None:
    await page.resize(1280, 760)
    await open_list(page, fake)
    fake.tell("exchange", summarize(7, dialect="anthropic", protocol="messages"))
    await page.until(f"({IDS})[0] === 'req-7'")
    cut = (
        "[...document.querySelectorAll('.list .c-route')].filter((cell) => cell.scrollWidth > cell.clientWidth).length"
    )
    assert await page.run(cut) == 0
