"""Runs the contract suite against dragoman, LiteLLM, llm-rosetta and fake providers.

    uv run python bench/contract_matrix.py [--client openai|anthropic] [--jobs N] [--keep DIR] [--html FILE]

Each gateway runs in front of the suite's fake providers and gets all cases of the openai dialect, or of the anthropic
dialect if it serves Messages. Fakes also run alone and get the cases of their own dialects. The other gateways are
installed into temporary environments, which needs uv and a package registry. All servers listen on 127.0.0.1. The
script writes the part of `docs/contract-matrix.md`, or `docs/messages-matrix.md`, between the two marks. `--html
FILE` also writes a page with every case and the wire log of each failure. `--keep DIR` keeps reports, configurations,
logs and environments; a later run with the same DIR measures only what is missing there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from _defects import write_defects
from _gateways import (
    CLIENTS,
    GATEWAYS,
    KEY,
    LACKS,
    MODEL,
    OVERRIDES,
    SERVED,
    SKIPPED,
    Client,
    Gateway,
    Json,
    own_program,
)
from _matrix_cases import write_differences
from _matrix_page import write_causes, write_summary
from _processes import free_port, run_process, wait_until_listening

__all__: list[str] = []

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main() -> None:
    options = parse_arguments()
    client = CLIENTS[options.client]
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        versions = [f"dragoman {version('dragoman')}", f"Python {platform.python_version()}"]
        runs = []
        for gateway in (one for one in GATEWAYS if client.dialect in one.clients):
            venv = create_environment(folder, gateway)
            versions += [read_version(venv, gateway)] if gateway.requirement else []
            runs += [(gateway, upstream, venv) for upstream in gateway.upstreams]
        with ThreadPoolExecutor(options.jobs) as jobs:
            bare = [jobs.submit(run_fake_alone, folder, *fake) for fake in client.fakes.items()]
            behind = [jobs.submit(run_gateway, folder, client, *run) for run in runs]
            reports = [job.result() for job in (*bare, *behind)]
        publish(client, reports, list(dict.fromkeys(versions)))
        if options.html:
            write_html(options.html, reports)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--client", choices=CLIENTS, default="openai", help="whose cases are run (default openai)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all files in this folder, and continue there")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with the wire logs of failures")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many gateways run at a time (default 1)")
    return parser.parse_args()


def run_fake_alone(folder: Path, dialect: str, path: str) -> Path:
    """Run the suite against a fake without a gateway: the result of a gateway that changes nothing.

    A fake stores no responses.
    """
    home = folder / f"fake-{dialect}"
    if not (home / "report.json").exists():
        home.mkdir(exist_ok=True)
        port = free_port()
        key = [] if dialect == "mindie" else ["--api-key", KEY]
        with run_process(
            [str(own_program("dragoman")), "fake", dialect, "--port", str(port), *key], home / "log.txt"
        ) as process:
            wait_for_port(port, process)
            lacks = ["--without", "store", *(() if key else ("--without", "key"))]
            base = f"http://127.0.0.1:{port}{path}"
            run_suite(home / "report.json", f"the {dialect} fake", base, "fake-model", ["--dialect", dialect, *lacks])
    return home / "report.json"


def run_gateway(folder: Path, client: Client, gateway: Gateway, upstream: str, venv: Path) -> Path:
    """Run the suite against a gateway in front of a fake, unless there is a report already. Return the report."""
    called = "" if client.dialect == "openai" else f"{client.dialect}-"
    home = folder / f"{called}{gateway.name}-{upstream}".lower().replace(", ", "-")
    report = home / "report.json"
    if report.exists():
        return report
    home.mkdir(exist_ok=True)
    port, behind = free_port(), free_port()
    file = home / "configuration.json"
    file.write_text(json.dumps(gateway.configuration(upstream, f"http://127.0.0.1:{behind}", port), indent=1))
    if gateway.seed and not (home / "keys.db").exists():
        subprocess.run([venv / "bin" / "python", "-c", gateway.seed], cwd=home, check=True, timeout=60)
    lacks = [word for lack in (*LACKS[upstream], *client.lacks, *SKIPPED) for word in ("--without", lack)]
    driven = ["--dialect", client.dialect, "--upstream", upstream, "--upstream-port", str(behind), *lacks]
    protocols = set(client.protocols | (frozenset(SERVED[upstream]) if client.follows_provider else frozenset()))
    base, name = f"http://127.0.0.1:{port}{client.path}", f"{gateway.name} > {upstream}"
    parts = [home / "part-1.json"]
    with run_process(gateway.start(venv, file, port), home / "log.txt", env=gateway.env, cwd=home) as process:
        wait_for_port(port, process)
        run_suite(parts[0], name, base, MODEL, [*driven, *list_only_options(protocols - {"completions"})])
        if "completions" in protocols:
            parts.append(home / "part-2.json")
            run_suite(parts[1], name, base, gateway.text_model, [*driven, *list_only_options({"completions"})])
    report.write_text(json.dumps(join_reports([json.loads(part.read_text()) for part in parts]), ensure_ascii=False))
    return report


def list_only_options(protocols: set[str]) -> list[str]:
    return [word for protocol in sorted(protocols) for word in ("--only", f"{protocol}/*")]


def run_suite(report: Path, name: str, base_url: str, model: str, more: Sequence[str]) -> None:
    """Run the suite once. Raises CalledProcessError if the gateway cannot be reached.

    A gateway that does not serve a protocol is no error: all cases of the protocol are skipped.
    """
    words = ["run", "--base-url", base_url, "--model", model, "--name", name, "--timeout", "40", "--json", str(report)]
    print(f"{name}: dragoman contract run --model {model} ...", file=sys.stderr, flush=True)
    command = [str(own_program("dragoman")), "contract", *words, *more]
    status = subprocess.run(command, env={**os.environ, "DRAGOMAN_CONTRACT_KEY": KEY}, timeout=1800).returncode
    if status not in (0, 1) and not (status == 3 and json.loads(report.read_text())["counts"]["error"] == 0):
        raise subprocess.CalledProcessError(status, command)


def join_reports(parts: Sequence[Json]) -> Json:
    """Join the reports of one target's parts."""
    first = parts[0]
    return first | {
        "cases": [case for part in parts for case in part["cases"]],
        "seconds": round(sum(part["seconds"] for part in parts), 3),
        "tokens": sum(part["tokens"] for part in parts),
        "counts": {verdict: sum(part["counts"][verdict] for part in parts) for verdict in first["counts"]},
    }


def write_html(page: Path, reports: Sequence[Path]) -> None:
    command = [str(own_program("dragoman")), "contract", "report", *map(str, reports), "--brief", "--html", str(page)]
    subprocess.run(command, check=True, timeout=120)


def publish(client: Client, reports: Sequence[Path], versions: Sequence[str]) -> None:
    loaded = [json.loads(report.read_text()) for report in reports]
    days = sorted({report["started"][:10] for report in loaded})
    parts = [
        f"Measured on {' and '.join(days)} with {', '.join(versions)}.",
        f"## In sums\n\n{write_summary(loaded)}",
        f"## What it finds most\n\n{write_causes(loaded)}",
        *([f"## What was known before\n\n{write_defects(loaded)}"] if client.has_known_defects else []),
        f"## Cases in which the gateways differ\n\n{write_differences(loaded)}",
    ]
    page = ROOT / "docs" / client.page
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    measured_part = "\n\n".join(part.strip("\n") for part in parts)
    page.write_text(f"{before}{BEGIN}\n{measured_part}\n{END}{after}", "utf-8")


def create_environment(folder: Path, gateway: Gateway) -> Path:
    """Create an environment that contains only this gateway."""
    venv = folder / "environments" / gateway.package
    if not gateway.requirement or (venv / "ready").exists():
        return venv
    uv = shutil.which("uv") or sys.exit("uv is needed to install the other gateways: https://docs.astral.sh/uv")
    subprocess.run([uv, "venv", "--quiet", "--clear", str(venv)], check=True, timeout=300)
    python = str(venv / "bin" / "python")
    overrides = folder / "overrides.txt"
    overrides.write_text("\n".join(OVERRIDES))
    install = [uv, "pip", "install", "--quiet", "--python", python, "--override", str(overrides), gateway.requirement]
    subprocess.run(install, check=True, timeout=1200)
    (venv / "ready").touch()
    return venv


def read_version(venv: Path, gateway: Gateway) -> str:
    script = f"from importlib.metadata import version; print(version({gateway.package!r}))"
    run = subprocess.run([venv / "bin" / "python", "-c", script], capture_output=True, text=True, check=True)
    return f"{gateway.package} {run.stdout.strip()}"


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    if not wait_until_listening(port, process, 900):
        raise RuntimeError(f"nothing listens on port {port}; with --keep DIR, the log stays in DIR")


if __name__ == "__main__":
    main()
