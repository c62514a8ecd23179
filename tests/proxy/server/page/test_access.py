"""Who gets the page, and what no page of another site can do."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from dragoman.proxy.server.lifecycle import RunningProxy
from tests.proxy.page_rig import run_page_rig

from .page_client import PageClient

KEY = "admin-key-0123456789"
PATHS = ("/", "/page/login.css", "/page/api/about", "/page/api/exchanges", "/page/api/configuration")

ELSEWHERE: dict[str, dict[str, str]] = {
    "another host": {"Host": "llm.example"},
    "an address of the network": {"Host": "192.168.0.7:8080"},
    "a name like a loopback name": {"Host": "localhost.evil.example"},
    "forwarded": {"Forwarded": "for=192.0.2.1"},
    "X-Forwarded-For": {"X-Forwarded-For": "192.0.2.1"},
    "X-Forwarded-Host": {"x-forwarded-host": "example.com"},
    "X-Forwarded-Prefix": {"X-FORWARDED-PREFIX": "/"},
    "X-Real-IP": {"X-Real-IP": "192.0.2.1"},
    "Via": {"Via": "1.1 a-proxy"},
}
OTHER_PAGES: dict[str, dict[str, str]] = {
    "another origin": {"Origin": "https://page.example"},
    "an opaque origin": {"Origin": "null"},
    "another port": {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    "an allowed origin": {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"},
    "an image": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "an image of the same site": {"Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("case", ELSEWHERE)
async def test_the_page_is_for_this_machine_only(page: PageClient, case: str) -> None:
    for path in PATHS:
        status, text = await page.get(path, **ELSEWHERE[case])
        assert status in (403, 404), (path, text)
        assert "exchanges" not in text


@pytest.mark.parametrize("case", OTHER_PAGES)
async def test_other_pages_see_nothing(session: aiohttp.ClientSession, case: str) -> None:
    async with run_page_rig(server={"allowed_origins": ["https://app.example"]}) as rig:
        page = PageClient(session, rig.url)
        for path in PATHS:
            async with session.get(rig.url + path, headers=OTHER_PAGES[case]) as answer:
                assert answer.status == 403, path
                assert "buffer" not in await answer.text()
        status, _ = await page.post("send", {"path": "/v1/chat/completions", "body": {}}, **OTHER_PAGES[case])
        assert status == 403
        assert (await page.read("exchanges"))["exchanges"] == []


async def test_keys_close_the_page_of_the_listener_for_clients(session: aiohttp.ClientSession) -> None:
    async with run_page_rig(keys=[{"name": "a", "key": "a-client-key"}]) as rig:
        for path in PATHS:
            assert (await PageClient(session, rig.url).get(path, Authorization="Bearer a-client-key"))[0] == 404


async def test_nothing_is_kept_if_nobody_can_look(session: aiohttp.ClientSession) -> None:
    async with run_page_rig(keys=[{"name": "a", "key": "a-client-key"}]) as rig:
        body = {"model": "to-openai", "messages": [{"role": "user", "content": "hi"}]}
        headers = {"Authorization": "Bearer a-client-key"}
        async with session.post(f"{rig.url}/v1/chat/completions", json=body, headers=headers) as answer:
            assert answer.status == 200
        assert rig.inspector.count == 0


async def test_every_answer_has_the_headers_that_browsers_heed(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    for path in (*PATHS, "/page/nothing.js", "/page/api/nothing"):
        async with session.get(rig.url + path) as answer:
            headers = answer.headers
            assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cross-Origin-Resource-Policy"] == headers["Cross-Origin-Opener-Policy"] == "same-origin"
            assert headers["Cache-Control"] == "no-store"
            assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("name", ["..%2fadmin.py", "../server/admin.py", "%2e%2e/x.js", "index.html/", ".env", "x.py"])
async def test_only_the_files_of_the_page_are_served(page: PageClient, name: str) -> None:
    status, _ = await page.get(f"/page/{name}")
    assert status == 404 or name == "index.html/"


async def test_changes_need_the_token(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    for headers in ({}, {"X-Csrf-Token": ""}, {"X-Csrf-Token": "x" * 32}):
        for path in ("send", "exchanges/x/replay"):
            async with session.post(f"{rig.url}/page/api/{path}", json={}, headers=headers) as answer:
                assert answer.status == 403, path
    for method in ("PUT", "DELETE", "PATCH"):
        async with session.request(method, f"{rig.url}/page/api/exchanges") as answer:
            assert answer.status == 405


async def sign_in(session: aiohttp.ClientSession, url: str, key: str) -> tuple[int, str, str]:
    """The status, the cookie and the text."""
    async with session.post(f"{url}/page/login", data={"key": key}, allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Set-Cookie", ""), await answer.text()


async def test_the_admin_key_opens_the_page_in_a_browser(session: aiohttp.ClientSession) -> None:
    async with run_page_rig(server={"admin_port": 0, "admin_key": KEY}) as rig:
        assert rig.admin is not None
        page = PageClient(session, rig.admin.url)
        status, form = await page.get("/")
        assert (status, 'action="/page/login"' in form, KEY in form) == (401, True, False)
        assert (await page.get("/page/api/exchanges"))[0] == 401
        assert (await page.get("/page/login.css"))[0] == 200
        status, cookie, text = await sign_in(session, rig.admin.url, "not-the-key-0123456789")
        assert (status, cookie, "not the key" in text) == (401, "", True)
        status, cookie, _ = await sign_in(session, rig.admin.url, KEY)
        assert status == 303
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        assert KEY not in cookie
        name = cookie.partition(";")[0]
        assert (await page.get("/page/api/exchanges", Cookie=name))[0] == 200
        about = json.loads((await page.get("/page/api/about", Cookie=name))[1])
        assert about["signed_in"] is True
        await check_token(session, rig.admin.url, name, about["csrf"])
        async with session.post(f"{rig.admin.url}/page/logout", headers={"Cookie": name}) as answer:
            assert answer.status == 401  # the form again
        assert (await page.get("/page/api/exchanges", Cookie=name))[0] == 401


async def check_token(session: aiohttp.ClientSession, url: str, cookie: str, token: str) -> None:
    """The token of one session is not that of another."""
    other = (await sign_in(session, url, KEY))[1].partition(";")[0]
    for given, status in ((cookie, 404), (other, 403)):
        headers = {"Cookie": given, "X-Csrf-Token": token}
        async with session.post(f"{url}/page/api/exchanges/x/replay", headers=headers) as answer:
            assert answer.status == status


async def test_few_can_try_keys_at_one_time(session: aiohttp.ClientSession) -> None:
    async with run_page_rig(server={"admin_port": 0, "admin_key": KEY}) as rig:
        assert rig.admin is not None
        tries = [sign_in(session, rig.admin.url, f"key-{number}-0123456789") for number in range(20)]
        statuses = [status for status, _, _ in await asyncio.gather(*tries)]
        assert statuses.count(429) == 12
        assert statuses.count(401) == 8


async def test_scripts_can_send_the_admin_key(session: aiohttp.ClientSession) -> None:
    async with run_page_rig(server={"admin_port": 0, "admin_key": KEY}) as rig:
        assert rig.admin is not None
        page = PageClient(session, rig.admin.url)
        assert (await page.get("/page/api/exchanges", Authorization=f"Bearer {KEY}"))[0] == 200
        assert (await page.get("/page/api/exchanges", Authorization="Bearer x"))[0] == 401


async def test_without_a_key_the_admin_listener_has_the_rules_of_the_other_one(
    session: aiohttp.ClientSession,
) -> None:
    async with run_page_rig(keys=[{"name": "a", "key": "a-client-key"}], server={"admin_port": 0}) as rig:
        assert rig.admin is not None
        page = PageClient(session, rig.admin.url)
        assert (await page.get("/page/api/exchanges"))[0] == 200
        for headers in ELSEWHERE.values():
            assert (await page.get("/page/api/exchanges", **headers))[0] == 403
