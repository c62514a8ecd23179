"""A browser, and the page over invented exchanges."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser import Page, open_page

from .fake_server import FakeServer, serve_fake


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with open_page(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest_asyncio.fixture(loop_scope="module")
async def fake(page: Page) -> AsyncIterator[FakeServer]:
    """A new server for each test; the test ends on an empty page without complaints."""
    await page.send("Emulation.clearDeviceMetricsOverride")
    await page.send("Emulation.setEmulatedMedia", features=[])
    async with serve_fake() as fake:
        yield fake
        complaints = [*page.complaints]
        await page.go("about:blank")
    assert complaints == []
