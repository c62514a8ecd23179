"""An exchange in a browser: panes, linked changes, tries, streams, replay, export, hostile bodies, large ones."""

from __future__ import annotations

import json

import pytest

from dragoman.contract.json_types import JsonObject
from tests.browser import Page

from .fake_server import FakeServer, read_fixture
from .looks import NAMELESS, TOO_WIDE, choose, click_text

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>\u202egnp.exe\u0000\u2028</textarea>"


def marked(pane: int, number: int) -> str:
    """JavaScript: the text of the row of a pane that a change marks."""
    return f"document.querySelector('.pane-{pane} [data-mark=\"{number}\"]')?.closest('.row').innerText ?? ''"


def selected(pane: int) -> str:
    return f"[...document.querySelectorAll('.pane-{pane} .row.is-selected')].map((row) => row.innerText).join()"


async def open_exchange(page: Page, fake: FakeServer, name: str = "receipt") -> None:
    await page.go(f"{fake.url}/#/exchange/req-{name}")
    await page.until("document.querySelectorAll('.pane').length === 4")


async def read_pane(page: Page, pane: int) -> str:
    return str(await page.run(f"document.querySelector('.pane-{pane}').innerText"))


async def test_a_dropped_field_is_marked_in_both_panes(page: Page, fake: FakeServer) -> None:
    await open_exchange(page, fake)
    assert '"seed"' in await page.run(marked(1, 4))
    ghost = await page.run(marked(2, 4))
    assert "seed" in ghost and '"seed"' not in ghost
    await page.click(".pane-1 [data-mark='4']")
    assert '"seed": 7' in await page.run(selected(1))
    assert "seed" in await page.run(selected(2))
    change = await page.run("document.querySelector('.change.is-selected').innerText")
    for part in (
        "dropped",
        "loss",
        "seed",
        "the target's API does not have it",
        "unsupported: drop",
        "Foundation model REST API reference",
    ):
        assert part in change
    await page.until("document.getElementById('announce').textContent.startsWith('Change 4 of 10')")


async def test_each_change_has_a_place_in_each_of_its_panes(page: Page, fake: FakeServer) -> None:
    await open_exchange(page, fake)
    places = {
        1: ('"max_completion_tokens"', '"max_tokens"'),
        2: ('"model"', "model"),
        3: ("{", "{"),
        6: ("stream", '"stream": false'),
    }
    for number, (sent, got) in places.items():
        assert sent in await page.run(marked(1, number))
        assert got in await page.run(marked(2, number))
    for number, (answered, received) in {
        7: ('"tool_calls"', "tool_calls"),
        8: ("refusal", '"refusal": null'),
        10: ('"llama-3-70b"', '"fast"'),
    }.items():
        assert answered in await page.run(marked(3, number))
        assert received in await page.run(marked(4, number))


async def test_changes_lead_to_panes_and_back_by_keyboard(page: Page, fake: FakeServer) -> None:
    await open_exchange(page, fake)
    await page.press("n")
    assert "max_completion_tokens" in await page.run(selected(1))
    assert "max_tokens" in await page.run(selected(2))
    await page.press("N")
    assert "fast" in await page.run(selected(4))
    await page.run("document.querySelectorAll('.change')[3].querySelector('.goto button:last-child').focus()")
    await page.press("Enter")
    assert await page.run("document.activeElement.getAttribute('aria-label')") == "Provider got"
    assert "seed" in await page.run(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText"
    )
    await page.press("ArrowDown")
    await page.press("Enter")
    assert "user" in await page.run("document.querySelector('.change.is-selected').innerText")
    assert await page.run("document.activeElement.role") == "tree"


async def test_json_folds_by_keyboard(page: Page, fake: FakeServer) -> None:
    await open_exchange(page, fake)
    await page.until("document.querySelectorAll('.pane-1 .row').length > 8")
    await page.press("1")
    assert await page.run("document.querySelector('.panes').dataset.large") == "1"
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft"):
        await page.press(key)
    assert '"messages": [ 2 items ]' in await read_pane(page, 1)
    assert await page.run("document.querySelector('.pane-1 [aria-expanded=false]').ariaLevel") == "2"
    await page.press("ArrowRight")
    assert '"role": "system"' in await read_pane(page, 1)
    await page.press("Escape")
    assert await page.run("document.querySelector('.panes').dataset.large ?? ''") == ""


async def test_tries_can_be_switched(page: Page, fake: FakeServer) -> None:
    await open_exchange(page, fake)
    assert '"chatcmpl-71"' in await read_pane(page, 3)
    await page.press("[")
    assert "REQUEST_LIMIT_EXCEEDED" in await read_pane(page, 3)
    assert "HTTP/1.1 429" in await read_pane(page, 3)
    await page.press("]")
    assert '"chatcmpl-71"' in await read_pane(page, 3)


async def test_headers_and_raw(page: Page, fake: FakeServer) -> None:
    await open_exchange(page, fake)
    await page.run(click_text(".pane-1 .tabs button", "Headers"))
    assert "OpenAI/Python 3.50.0" in await read_pane(page, 1)
    await page.run(click_text(".pane-1 .tabs button", "Raw"))
    sent = fake.details["req-receipt"]["client"]["request"]["body"]
    raw = await page.run("[...document.querySelectorAll('.pane-1 .row')].map((row) => row.innerText.trim()).join('')")
    assert raw.replace(" ", "").replace("\n", "") == sent.replace(" ", "")


async def test_stream_is_a_timeline(page: Page, fake: FakeServer) -> None:
    await open_exchange(page, fake, "stream")
    shown = await read_pane(page, 3)
    for part in ("20 events", "first after 231 ms", "longest pause 269 ms before event 11", "+18 ms", '"dialects "'):
        assert part in shown
    await page.click(".change:nth-of-type(1) .change-main")
    await page.press("n")
    assert '"finish_reason": ""' in await page.run(selected(3))
    assert '"finish_reason": null' in await page.run(selected(4))
    await page.run(click_text(".pane-4 .tabs button", "Joined"))
    joined = await page.run("[...document.querySelectorAll('.pane-4 .t-s')].map((part) => part.innerText).join('')")
    assert "Four dialects are served: openai, databricks, azure and mindie." in joined


@pytest.mark.parametrize("width", [1280, 1000, 760])
async def test_the_buttons_of_a_stream_s_pane_fit(page: Page, fake: FakeServer, width: int) -> None:
    await page.resize(width, 800)
    await open_exchange(page, fake, "stream")
    assert not await page.run(TOO_WIDE)
    await page.reset()


async def test_an_exchange_without_changes_says_what_is_never_listed(page: Page, fake: FakeServer) -> None:
    fake.details["req-receipt"]["changes"] = []
    await open_exchange(page, fake)
    assert "never listed: the provider gets its own name" in await page.run(
        "document.querySelector('.changes').innerText"
    )


async def test_messages_that_are_not_kept_say_how_to_keep_them(page: Page, fake: FakeServer) -> None:
    fake.details["req-refused"].update(client=None)
    await open_exchange(page, fake, "refused")
    assert "inspect: bodies" in await read_pane(page, 1)
    assert "lakehouse does not take logit_bias" in await page.run("document.querySelector('.message').innerText")
    await page.go(f"{fake.url}/#/exchange/req-nowhere")
    await page.until("document.querySelector('.empty h2')?.innerText === 'This exchange is not here'")
    page.complaints.clear()  # the browser says that there is none


async def test_replay_under_another_policy_is_compared(page: Page, fake: FakeServer) -> None:
    await open_exchange(page, fake)
    await page.press("r")
    await page.until("document.querySelector('dialog[open] [data-policy=unsupported]')")
    assert await page.run(NAMELESS) == []
    await page.run(choose("unsupported", "refuse"))
    await page.press("Enter")
    await page.until(
        "location.hash === '#/compare/req-receipt/req-stream' && document.querySelector('.compare-bodies')"
    )
    assert fake.posted == [("exchanges/req-receipt/replay", {"policy": {"unsupported": "refuse"}})]
    receipts = await page.run("document.querySelector('.receipts').innerText")
    assert "seed" in receipts and "only in the original" in receipts
    for said in ('"max_tokens": 100', '"stream": true'):  # drawn once the browser knows how wide the pane is
        await page.until(f"document.querySelector('.compare-bodies').innerText.includes({said!r})")
    await page.press("Escape")
    await page.until("location.hash === '#/exchange/req-receipt'")


async def test_export(page: Page, fake: FakeServer) -> None:
    fake.export = "curl -d '<b>'"
    await open_exchange(page, fake)
    await page.press("e")
    await page.until("document.querySelector('.export')?.innerText === `curl -d '<b>'`")
    for form in ("recording", "case"):
        await page.click(f"[data-form={form}]")
        await page.until("!document.querySelector('dialog .main').disabled")
        assert await page.run("document.querySelector('.export').innerText") == fake.export
    await page.send(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"], origin=fake.url
    )
    await page.click("dialog footer button")
    await page.until("document.querySelector('dialog footer button').innerText === 'Copied'")
    assert await page.run("navigator.clipboard.readText()") == fake.export
    await page.press("Escape")
    await page.until("!document.querySelector('dialog')")


def make_hostile(value: object) -> object:
    """The value with hostile texts in place of its own, and hostile names."""
    if isinstance(value, dict):
        return {key: make_hostile(one) for key, one in value.items()} | {
            HOSTILE: HOSTILE,
            "__proto__": 1,
            "constructor": None,
        }
    if isinstance(value, list):
        return [make_hostile(one) for one in value]
    return HOSTILE if isinstance(value, str) else value


def poison(detail: JsonObject) -> None:
    """Fill everything of an exchange that comes from outside with markup."""
    detail.update(model=HOSTILE, target=HOSTILE, fault=HOSTILE, outcome="fault", message=HOSTILE, key=HOSTILE)
    messages = [*detail["client"].values(), *(one[side] for one in detail["tries"] for side in ("request", "reply"))]
    for message in messages:
        message.update(line=HOSTILE, headers=[[HOSTILE, HOSTILE]])
        if message["body"]:
            message["body"] = json.dumps(make_hostile(json.loads(message["body"])))
        for event in message["events"] or []:
            event["text"] = f"event: {HOSTILE}\ndata: {json.dumps({HOSTILE: HOSTILE})}"
    for change in detail["changes"]:
        change.update(
            reason=HOSTILE,
            source=f"{HOSTILE} javascript:alert(1) https://example.com/{HOSTILE}",
            policy=HOSTILE,
            before=[HOSTILE, "__proto__"],
        )


@pytest.mark.parametrize("name", ["receipt", "stream"])
async def test_hostile_bodies_are_only_text(page: Page, fake: FakeServer, name: str) -> None:
    poison(fake.details[f"req-{name}"])
    fake.exchanges = [
        one | {"model": HOSTILE, "fault": HOSTILE, "outcome": "fault", "target": HOSTILE}
        for one in read_fixture("exchanges")
    ]
    await page.go(fake.url)
    await page.until("document.querySelectorAll('.list tbody tr').length === 6")
    await open_exchange(page, fake, name)
    for view in ("Headers", "Raw", "Joined", "Timeline", "Body"):
        await page.run(click_text(".pane .tabs button", view))
    await page.go(f"{fake.url}/#/compare/req-{name}/req-{name}")
    await page.until("document.querySelector('.compare-bodies')")
    assert await page.run("window.hit ?? null") is None
    assert await page.run("document.querySelectorAll('main img, main script, a[href^=javascript]').length") == 0
    assert "\u202e" not in await page.run("document.body.innerText")
    assert {url for url in page.requests if not url.startswith(fake.url)} <= {"about:blank"}


async def test_large_bodies_do_not_freeze_the_page(page: Page, fake: FakeServer) -> None:
    """Four bodies of more than a megabyte: one long text, many small values, many events."""
    detail = fake.details["req-stream"]
    many = json.dumps({f"key {number}": {"value": number, "text": "some text"} for number in range(30_000)})
    detail["client"]["request"].update(form="json", body=json.dumps({"text": "word 漢字 " * 150_000}))
    detail["tries"][0]["request"].update(form="json", body=many)
    event = {"at_ms": 1.0, "text": 'data: {"choices": [{"index": 0, "delta": {"content": "x"}}]}'}
    for reply in (detail["client"]["reply"], detail["tries"][0]["reply"]):
        reply["events"] = [event | {"at_ms": float(number)} for number in range(20_000)]
    await open_exchange(page, fake, "stream")
    await page.until("document.querySelectorAll('.pane-3 .row').length > 5")
    assert await page.run("document.querySelectorAll('.row').length") < 600
    assert "show all 1,200,000 characters" in await read_pane(page, 1)
    await page.click(".pane-1 .t-more")
    await page.run("document.querySelector('.pane-1 .code-box').scrollTop = 1e9")
    await page.until("document.querySelector('.pane-1').innerText.trimEnd().endsWith('}')")
    await page.run("document.querySelector('.pane-2 .code-box').scrollTop = 1e9")
    await page.until("document.querySelector('.pane-2').innerText.includes('key 29999')")
    await page.run("document.querySelector('.pane-3 .code-box').scrollTop = 1e9")
    await page.until("document.querySelector('.pane-3').innerText.includes('20.0 s')")
    assert await page.run("document.querySelectorAll('.row').length") < 600
