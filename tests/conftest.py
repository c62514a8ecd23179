"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
import typer.testing

if TYPE_CHECKING:
    from tests.browser import Page

if find_spec("hypothesis"):  # LiteLLM's environment has no generated tests
    from hypothesis import HealthCheck, settings

    untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a slow machine, too
    settings.register_profile("sample", untimed, max_examples=40)
    settings.register_profile("nightly", untimed, max_examples=2_000)  # chosen by --hypothesis-profile nightly
    settings.load_profile("sample")


def pytest_configure(config: pytest.Config) -> None:
    """Keep bytecode in pytest's own cache where Python is told to keep none. The tests start more than a hundred
    processes, and each of them, and each worker, would compile all that it loads."""
    if sys.dont_write_bytecode and config.pluginmanager.hasplugin("cacheprovider"):
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(config.cache.mkdir("bytecode"))
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection() -> None:
    """Keep collections of garbage from looking at the thousands of tests again and again, while they are made and
    later: they live as long as the process."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def state_home() -> Iterator[Path]:
    """A folder for state instead of the user's own, for this process and those that it starts."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "XDG_STATE_HOME", folder)
        yield Path(folder)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser_page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """A page of a real browser, if there is one. Each worker has one browser, since one takes seconds to start."""
    from tests.browser import open_page

    async with open_page(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture(scope="session", autouse=True)
def command_line() -> Iterator[None]:
    """Typer's test runner builds all commands of an application for each call of one; here it builds them once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.testing._get_command))
        yield
