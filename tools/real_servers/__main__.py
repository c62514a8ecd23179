"""`python -m tools.real_servers`: install, start, record and compare real servers."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import openai
import typer

from . import __doc__ as description
from .catalog import SERVERS, Server
from .comparison import compare
from .environments import default_cache, install, is_installed, read_version
from .judgements import read_reports, write_judgements
from .learned import OWN_ENGINE, LearnedServer, learn_own_engine, learn_server
from .page import Measurement, count_defects, write_page
from .processes import RunningServer, StartError, run_server
from .recorder import mask_machine, record
from .suite import run_suite

__all__ = ["app"]

app = typer.Typer(help=description, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Names = Annotated[list[str] | None, typer.Argument(metavar="[SERVER]...", help="Default: all that are installed.")]
Cache = Annotated[
    Path, typer.Option(help="The folder for environments, models and logs.", default_factory=default_cache)
]
Target = Annotated[Path, typer.Option("--to", help="The folder for recordings; each server has a folder in it.")]
Page = Annotated[Path, typer.Option(help="The page to write, from the latest outcomes of all servers.")]
JUDGED_PAGE = Path("docs/real-servers-judged.md")
Only = Annotated[list[str] | None, typer.Option(help="Run only cases whose id matches, as chat/stream/*. Repeatable.")]
Reports = Annotated[Path | None, typer.Option("--to", help="The folder for reports. Default: below the cache.")]
Patience = Annotated[float, typer.Option(help="Seconds that a server may take to start.")]


@app.command("list")
def list_servers(cache: Cache) -> None:
    """List the servers, and the versions that are installed."""
    for server in SERVERS.values():
        print(f"{server.name:18} {read_version(cache, server) or 'not installed':14} {server.title}")
        if server.note:
            print(f"{'':18} {server.note}")


@app.command("install")
def install_servers(cache: Cache, names: Names = None) -> None:
    """Install servers with pip, each in an environment of its own. Default: all."""
    failed = []
    for server in _choose(cache, names or list(SERVERS)):
        print(f"{server.name}: {', '.join(server.packages)} ...", flush=True)
        try:
            install(cache, server)
        except subprocess.CalledProcessError as error:
            failed.append(server.name)
            print(f"{server.name}: pip failed with status {error.returncode}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


@app.command()
def run(cache: Cache, name: Annotated[str, typer.Argument(metavar="SERVER")], patience: Patience = 300.0) -> None:
    """Run a server until you interrupt it, and print its address."""
    for running in _run_each(cache, [name], patience):
        print(f"{running.base_url} (models: {', '.join(sorted(set(running.server.models.values())))})", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("stopping ...")


@app.command("record")
def record_servers(
    cache: Cache, names: Names = None, target: Target = Path("contract/recordings"), patience: Patience = 300.0
) -> None:
    """Ask each server all questions directly, and keep every exchange byte by byte."""
    for running in _run_each(cache, names, patience):
        folder = target / running.server.name
        asyncio.run(record(running, folder, cache))
        print(f"{running.server.name}: {len(list(folder.glob('*.json')))} recordings in {folder}", flush=True)


@app.command("compare")
def compare_servers(
    cache: Cache, names: Names = None, page: Page = Path("docs/real-servers.md"), patience: Patience = 300.0
) -> None:
    """Ask each server all questions, directly and through dragoman, and write the page. Exit status 1: a defect."""
    folder = cache / "outcomes"
    folder.mkdir(parents=True, exist_ok=True)
    for running in _run_each(cache, names, patience):
        rows = [row.to_json() for row in asyncio.run(compare(running))]
        outcome = {"version": read_version(cache, running.server), "sdk": openai.__version__, "comparisons": rows}
        text = mask_machine(running, cache)(json.dumps(outcome, indent=1))
        (folder / f"{running.server.name}.json").write_text(text, "utf-8")
        print(f"{running.server.name}: {len(rows)} questions", flush=True)
    measurements: dict[str, Measurement] = {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))
    }
    page.write_text(write_page(measurements), "utf-8")
    raise typer.Exit(1 if any(map(count_defects, measurements.values())) else 0)


@app.command("judge")
def judge_servers(
    cache: Cache,
    names: Names = None,
    only: Only = None,
    target: Reports = None,
    page: Annotated[Path, typer.Option(help="The page to write, unless --only is given.")] = JUDGED_PAGE,
    patience: Patience = 300.0,
) -> None:
    """Run the contract suite against each server. Exit status 1: a failure that is not known to be the server's own."""
    folder = target or cache / "judged"
    folder.mkdir(parents=True, exist_ok=True)
    status = max([run_suite(running, folder, only or ()) for running in _run_each(cache, names, patience)], default=0)
    if not only:
        versions = {name: read_version(cache, server) for name, server in SERVERS.items()}
        page.write_text(write_judgements(read_reports(folder), versions), "utf-8")
    raise typer.Exit(status)


@app.command("learn")
def learn_servers(
    cache: Cache, names: Names = None, only: Only = None, target: Reports = None, patience: Patience = 300.0
) -> None:
    """Learn each server, and run the contract suite directly and through dragoman with the learned entry. Exit status
    1: a failure that the server has only through dragoman."""
    folder, others = target or cache / "learned", [name for name in names or () if name != OWN_ENGINE]
    added = 0
    if OWN_ENGINE in (names or [OWN_ENGINE]):
        added += _show_learned(OWN_ENGINE, learn_own_engine(folder / OWN_ENGINE, only or ()))
    for running in _run_each(cache, others or None, patience) if others or not names else ():
        name, model = running.server.name, next(iter(running.server.models.values()))
        added += _show_learned(name, learn_server(running.base_url, model, folder / name, only or ()))
    raise typer.Exit(1 if added else 0)


def _show_learned(name: str, learned: LearnedServer) -> int:
    """Print what the suite found, and return how many failures are there only through dragoman."""
    directly, through = len(learned.directly.failures), len(learned.through.failures)
    unclear, new = len(learned.unclear_failures), len(learned.new_failures)
    more = f"{unclear} where the server alone shows nothing, {new} where it passes"
    print(f"{name}: {directly} failures directly, {through} through dragoman: {more}")
    for id_, reason in learned.new_failures.items():
        print(f"  only through dragoman: {id_}: {reason[:300]}", flush=True)
    return len(learned.new_failures)


def _run_each(cache: Path, names: Sequence[str] | None, patience: float) -> Iterator[RunningServer]:
    """Run the servers, one after the other. One that does not start is reported, and the exit status is 1.

    SIGTERM interrupts as SIGINT does, so that no server outlives the command."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    failed = False
    for server in _choose(cache, names):
        try:
            with run_server(cache, server, patience) as running:
                yield running
        except StartError as error:
            failed = True
            print(error, file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _choose(cache: Path, names: Sequence[str] | None) -> list[Server]:
    """Return the named servers, or all that are installed. An unknown name is wrong usage."""
    if unknown := [name for name in names or () if name not in SERVERS]:
        raise typer.BadParameter(f"{', '.join(unknown)}: choose from {', '.join(SERVERS)}")
    return [SERVERS[name] for name in names] if names else [one for one in SERVERS.values() if is_installed(cache, one)]


if __name__ == "__main__":
    app(prog_name="python -m tools.real_servers")
