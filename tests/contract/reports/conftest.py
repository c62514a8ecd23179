"""A page of a real browser, if there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from .browser import BROWSERS, Page, open_page


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        assert not os.environ.get("DRAGOMAN_TEST_BROWSER"), "DRAGOMAN_TEST_BROWSER is set, and there is no browser"
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    async with open_page(program, tmp_path_factory.mktemp("chromium")) as page:
        yield page
