"""Runs the clients' scripts, each client and route in a process and a folder of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from .catalog import SCRIPTS, Client
from .environments import find_interpreter, find_tables
from .outcomes import Verdict, parse_verdicts
from .routes import CLIENT_KEY, FACES

__all__ = ["Run", "build_variables", "run_clients", "run_script"]

_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE")
_CLOSED = "http://127.0.0.1:9"
_OFFLINE = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _CLOSED),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
    **dict.fromkeys(("DO_NOT_TRACK", "HF_HUB_OFFLINE", "OTEL_SDK_DISABLED", "PYTHONUNBUFFERED"), "1"),
    "PYTHONWARNINGS": "ignore",
    "PYTHONPATH": str(SCRIPTS / "shared"),
}
"""Nothing but 127.0.0.1 is reachable through the proxy of these variables, so no client reports its use to anyone."""

Run = tuple[Client, str, str]
"""A client, a gateway and a route."""


def build_variables(client: Client, origin: str, route: str, folder: Path, cache: Path) -> dict[str, str]:
    """Build the environment of a script: BASE_URL, ORIGIN, API_KEY, MODEL, and what the client's row says."""
    base_url, key, model = origin + FACES[client.face], CLIENT_KEY, f"over-{route}"
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    if client.language == "node":
        inherited["CLIENT_MODULES"] = str(cache / client.name / "node_modules")
        inherited["PATH"] = f"{inherited['CLIENT_MODULES']}/.bin:{inherited.get('PATH', '')}"
    else:
        inherited["PATH"] = f"{Path(find_interpreter(cache, client)).parent}:{inherited.get('PATH', '')}"
    values = {"origin": origin, "base_url": base_url, "key": key, "model": model, "folder": folder, "cache": cache}
    values["tables"] = find_tables(cache)
    own = {name: text.format(**values) for name, text in client.variables.items()}
    given = {"BASE_URL": base_url, "ORIGIN": origin, "API_KEY": key, "MODEL": model, "HOME": str(folder)}
    return inherited | _OFFLINE | given | own


async def run_script(client: Client, origin: str, route: str, cache: Path) -> list[Verdict]:
    """Run a client's script over one route. A script that fails itself, or prints nothing, is a failed check `script`.

    The script's whole process group ends with it."""
    with tempfile.TemporaryDirectory(prefix=f"{client.name}-") as name:
        folder = Path(name)
        process = await asyncio.create_subprocess_exec(
            *_build_command(client, cache),
            cwd=folder,
            env=build_variables(client, origin, route, folder, cache),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return await _read_verdicts(process, client.timeout)


def _build_command(client: Client, cache: Path) -> list[str]:
    if client.language == "python":
        return [find_interpreter(cache, client), "-P", str(client.script)]
    return [find_interpreter(cache, client), str(cache / client.name / client.script.name)]


def _copy_script(client: Client, cache: Path) -> None:
    """Copy a script next to its packages, the only place where Node finds them. Python runs scripts where they are."""
    if client.language == "node":
        folder = cache / client.name
        shutil.copytree(SCRIPTS / "shared", folder / "shared", dirs_exist_ok=True)
        shutil.copy(client.script, folder)


async def _read_verdicts(process: asyncio.subprocess.Process, most: float) -> list[Verdict]:
    reading = asyncio.ensure_future(process.communicate())
    done, _ = await asyncio.wait([reading], timeout=most)
    _end_group(process.pid)
    output, errors = (text.decode("utf-8", "replace") for text in await reading)
    verdicts = parse_verdicts(output)
    if not done:
        return [*verdicts, Verdict("script", False, f"not done after {most:g} s: {_read_end(errors)}")]
    if process.returncode or not verdicts:
        return [*verdicts, Verdict("script", False, f"exit status {process.returncode}: {_read_end(errors)}")]
    return verdicts


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _read_end(text: str) -> str:
    return " ".join(text.split())[-400:]


async def run_clients(
    runs: Sequence[Run], origins: Mapping[str, str], cache: Path, jobs: int
) -> AsyncIterator[tuple[Run, list[Verdict]]]:
    """Run scripts, `jobs` at a time, and yield the verdicts of each as soon as it ends."""
    free = asyncio.Semaphore(jobs)
    for client in {client.name: client for client, _, _ in runs}.values():
        _copy_script(client, cache)  # before any run, because a run must not read what another one is writing

    async def run_one(run: Run) -> tuple[Run, list[Verdict]]:
        client, gateway, route = run
        async with free:
            return run, await run_script(client, origins[gateway], route, cache)

    for ended in asyncio.as_completed([asyncio.ensure_future(run_one(run)) for run in runs]):
        yield await ended
