"""A page of a real browser, if there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser import Page, open_page


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with open_page(tmp_path_factory.mktemp("chromium")) as page:
        yield page
