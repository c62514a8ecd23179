"""A browser's page, and the page over invented exchanges."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.browser import Page

from .fake_server import FakeServer, serve_fake


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser_page: Page) -> Page:
    await browser_page.reset()
    return browser_page


@pytest_asyncio.fixture(loop_scope="session")
async def fake(page: Page) -> AsyncIterator[FakeServer]:
    """A new server for each test; the test ends on an empty page without complaints."""
    async with serve_fake() as fake:
        yield fake
        complaints = [*page.complaints]
        await page.go("about:blank")
    assert complaints == []
