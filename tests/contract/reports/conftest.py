"""A page of a real browser, as it is at the beginning."""

from __future__ import annotations

import pytest_asyncio

from tests.browser import Page


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(browser_page: Page) -> Page:
    await browser_page.reset()
    return browser_page
