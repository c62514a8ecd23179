"""`python -m tools.clients`: install the clients, run their scripts, and write the page."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from tools.real_servers.catalog import SERVERS
from tools.real_servers.environments import default_cache
from tools.real_servers.environments import read_version as read_server_version

from . import __doc__ as description
from .catalog import CLIENTS, REASONS, Client
from .environments import InstallError, default_clients_cache, install, is_installed, read_versions
from .judgement import find_defects
from .outcomes import Outcome, Verdict, load_outcome, save_outcome
from .page import write_page
from .routes import GATEWAYS, ROUTES, run_gateways
from .runner import Run, run_clients

__all__ = ["app"]

app = typer.Typer(help=description, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Names = Annotated[list[str] | None, typer.Argument(metavar="[CLIENT]...", help="Default: all that are installed.")]
All = Annotated[bool, typer.Option("--all", help="All clients of the catalog; one that is missing is installed.")]
Cache = Annotated[
    Path, typer.Option(help="The folder for environments and outcomes.", default_factory=default_clients_cache)
]
Gateways = Annotated[list[str] | None, typer.Option("--gateway", help=f"Of {', '.join(GATEWAYS)}. Repeatable.")]
Routes = Annotated[list[str] | None, typer.Option("--route", help=f"Of {', '.join(ROUTES)}. Repeatable.")]
Jobs = Annotated[int, typer.Option(min=1, help="How many scripts run at once.")]
Page = Annotated[Path, typer.Option(help="The page to write, from the latest outcomes of all clients.")]
PAGE = Path("docs/clients.md")


@app.command("list")
def list_clients(cache: Cache) -> None:
    """List the clients, and the versions that are installed."""
    for client in CLIENTS.values():
        shown = ", ".join(filter(None, read_versions(cache, client).values())) or "not installed"
        print(f"{client.name:22} {client.title}: {shown}")


@app.command("install")
def install_clients(cache: Cache, names: Names = None, everything: All = False) -> None:
    """Install clients, each in an environment of its own. Default: those that are not installed."""
    missing = [client for client in CLIENTS.values() if everything or not is_installed(cache, client)]
    failed = [client.name for client in (_choose(cache, names) if names else missing) if not _install(cache, client)]
    if failed:
        raise typer.Exit(1)


def _install(cache: Path, client: Client) -> bool:
    print(f"{client.name}: {', '.join(client.packages)} ...", flush=True)
    try:
        install(cache, client)
    except InstallError as error:
        save_outcome(cache / "outcomes", client.name, Outcome(failure=str(error)))
        print(f"{client.name}: {error}", file=sys.stderr)
        return False
    return True


@app.command()
def run(
    cache: Cache,
    names: Names = None,
    everything: All = False,
    gateways: Gateways = None,
    routes: Routes = None,
    jobs: Jobs = 2,
    page: Page = PAGE,
) -> None:
    """Run the clients' scripts over all routes, and write the page. Exit status 1: a failure without a known cause."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = list(CLIENTS.values()) if everything else _choose(cache, names)
    chosen = [client for client in chosen if is_installed(cache, client) or _install(cache, client)]
    runs = [
        (client, gateway, route)
        for client in chosen
        for gateway in _check_names(gateways, GATEWAYS)
        for route in _check_names(routes, ROUTES)
        if route in client.routes
    ]
    asyncio.run(_run(cache, runs, jobs))
    write(cache, page)
    if any(find_defects(REASONS, client.name, load_outcome(cache / "outcomes", client.name)) for client in chosen):
        raise typer.Exit(1)


@app.command("page")
def write(cache: Cache, page: Page = PAGE) -> None:
    """Write the page from the latest outcomes."""
    outcomes = {name: load_outcome(cache / "outcomes", name) for name in CLIENTS}
    page.write_text(write_page(CLIENTS, REASONS, outcomes), "utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(page)], check=True)  # the recipes


async def _run(cache: Path, runs: Sequence[Run], jobs: int) -> None:
    """Run the scripts, and keep the verdicts of each run as soon as it ends."""
    gateways = list(dict.fromkeys(gateway for _, gateway, _ in runs))
    versions = _read_gateway_versions()
    with tempfile.TemporaryDirectory() as folder:
        async with run_gateways(gateways, Path(folder)) as origins:
            async for (client, gateway, route), verdicts in run_clients(runs, origins, cache, jobs):
                outcome = load_outcome(cache / "outcomes", client.name)
                outcome.failure, outcome.packages = "", read_versions(cache, client)
                outcome.version = next(iter(outcome.packages.values()))
                outcome.gateways[gateway] = versions[gateway]
                outcome.verdicts.setdefault(gateway, {})[route] = verdicts
                save_outcome(cache / "outcomes", client.name, outcome)
                _print_verdicts(f"{client.name:22} {gateway:9} {route:11}", verdicts)


def _print_verdicts(head: str, verdicts: Sequence[Verdict]) -> None:
    print(f"{head} {sum(one.passed for one in verdicts)} of {len(verdicts)}", flush=True)
    for one in verdicts:
        if not one.passed:
            print(f"{'':4}{one.check}: {one.reason}", flush=True)


def _read_gateway_versions() -> dict[str, str]:
    own = version("dragoman")
    other = read_server_version(default_cache(), SERVERS["litellm"]) or ""
    return {"dragoman": own, "lenient": own, "litellm": other}


def _choose(cache: Path, names: Sequence[str] | None) -> list[Client]:
    """Return the named clients, or all that are installed. An unknown name is wrong usage."""
    if names:
        return [CLIENTS[name] for name in _check_names(names, CLIENTS)]
    return [client for client in CLIENTS.values() if is_installed(cache, client)]


def _check_names(names: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    listed = list(known)
    if unknown := [name for name in names or () if name not in listed]:
        raise typer.BadParameter(f"{', '.join(unknown)}: choose from {', '.join(listed)}")
    return list(names or listed)


if __name__ == "__main__":
    app(prog_name="python -m tools.clients")
