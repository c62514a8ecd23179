"""The recorder: every question asked directly, its conversation kept byte by byte."""

from __future__ import annotations

import shutil
from pathlib import Path

from dragoman.contract.masks import Mask
from dragoman.contract.recordings import RecordingTransport
from dragoman.contract.transport import HttpTransport

from .comparison import ask, name_model
from .processes import RunningServer
from .questions import QUESTIONS
from .sdk import TIMEOUT, TransportAdapter, create_client

__all__ = ["mask_machine", "record"]


async def record(running: RunningServer, target: Path, cache: Path) -> None:
    """Write the recordings of a server into `target`, which loses what it had.

    Paths of this machine and the server's address are masked."""
    shutil.rmtree(target, ignore_errors=True)
    transport = RecordingTransport(HttpTransport(TIMEOUT), target, mask_machine(running, cache))
    adapter = TransportAdapter(transport, running.base_url)
    async with create_client(running.base_url, running.server.api_key, adapter) as client:
        for question in QUESTIONS:
            if question.protocol in running.server.models:
                transport.label = question.slug
                await ask(question, client, name_model(running, question.protocol))


def mask_machine(running: RunningServer, cache: Path) -> Mask:
    """Return a mask for the folders of this machine and the addresses of the server."""
    return Mask([str(cache), str(Path.home()), *running.addresses])
