"""The contract suite against dragoman, LiteLLM, llm-rosetta and bare fakes: `uv run python bench/contract_matrix.py`.

Each gateway stands in front of the suite's own fake providers and is asked everything that the suite knows for the
openai dialect; each fake alone is asked in its own. The rivals get throw-away environments of their own (needs uv and a
package registry); every server is on 127.0.0.1. It writes `docs/contract-matrix.html`, and the measured part of
`docs/contract-matrix.md`: what stands there between the two marks. `--keep DIR` keeps reports, configurations, logs and
environments, and takes up what is there: a run that was broken off goes on, and what is to be measured again is what
was taken out of DIR.
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

from _defects import defects
from _gateways import GATEWAYS, HURRIED, KEY, LACKS, MODEL, OVERRIDES, SERVED, Gateway, Json, own
from _matrix_page import causes, summary
from _processes import free_port, listens, running

__all__: list[str] = []

ROOT = Path(__file__).parents[1]
PAGE, HTML = ROOT / "docs" / "contract-matrix.md", ROOT / "docs" / "contract-matrix.html"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
FAKES = {"openai": "/v1", "databricks": "", "azure": "", "mindie": ""}
"""Dialect -> the path of its base address."""


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        made = [f"dragoman {version('dragoman')}", f"Python {platform.python_version()}"]
        runs = []
        for gateway in GATEWAYS:
            venv = environment(folder, gateway)
            made += [installed(venv, gateway)] if gateway.requirement else []
            runs += [(gateway, upstream, venv) for upstream in gateway.upstreams]
        with ThreadPoolExecutor(options.jobs) as jobs:
            bare = [jobs.submit(fake_alone, folder, dialect) for dialect in FAKES]
            behind = [jobs.submit(measured, folder, *run) for run in runs]
            reports = [job.result() for job in (*bare, *behind)]
        publish(folder, reports, list(dict.fromkeys(made)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in this folder, and leave everything there")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="gateways at a time (default 1)")
    return parser.parse_args()


def fake_alone(folder: Path, dialect: str) -> Path:
    """The fake with nothing in front of it: what the rows would be with a gateway that changes nothing. It keeps no
    responses."""
    home = folder / f"fake-{dialect}"
    if not (home / "report.json").exists():
        home.mkdir(exist_ok=True)
        port = free_port()
        key = [] if dialect == "mindie" else ["--api-key", KEY]
        with running([str(own("dragoman")), "fake", dialect, "--port", str(port), *key], home / "log.txt") as process:
            wait_for(port, process)
            lacks = ["--without", "store", *(() if key else ("--without", "key"))]
            base = f"http://127.0.0.1:{port}{FAKES[dialect]}"
            ask(home / "report.json", f"the {dialect} fake", base, "fake-model", ["--dialect", dialect, *lacks])
    return home / "report.json"


def measured(folder: Path, gateway: Gateway, upstream: str, venv: Path) -> Path:
    """The report of that gateway in front of that fake: the one that is there, or a new one."""
    home = folder / f"{gateway.name}-{upstream}".lower().replace(", ", "-")
    report = home / "report.json"
    if report.exists():
        return report
    home.mkdir(exist_ok=True)
    port, behind = free_port(), free_port()
    file = home / "configuration.json"
    file.write_text(json.dumps(gateway.configuration(upstream, f"http://127.0.0.1:{behind}", port), indent=1))
    if gateway.seed and not (home / "keys.db").exists():
        subprocess.run([venv / "bin" / "python", "-c", gateway.seed], cwd=home, check=True, timeout=60)
    lacks = [word for lack in (*LACKS[upstream], *HURRIED) for word in ("--without", lack)]
    driven = ["--upstream", upstream, "--upstream-port", str(behind), *lacks]
    protocols = {"responses", "models", *SERVED[upstream]}
    base, name = f"http://127.0.0.1:{port}/v1", f"{gateway.name} > {upstream}"
    parts = [home / "part-1.json"]
    with running(gateway.start(venv, file, port), home / "log.txt", env=gateway.env, cwd=home) as process:
        wait_for(port, process)
        ask(parts[0], name, base, MODEL, [*driven, *only(protocols - {"completions"})])
        if "completions" in protocols:
            parts.append(home / "part-2.json")
            ask(parts[1], name, base, gateway.text_model, [*driven, *only({"completions"})])
    report.write_text(json.dumps(joined([json.loads(part.read_text()) for part in parts]), ensure_ascii=False))
    return report


def only(protocols: set[str]) -> list[str]:
    return [word for protocol in sorted(protocols) for word in ("--only", f"{protocol}/*")]


def ask(report: Path, name: str, base_url: str, model: str, more: Sequence[str]) -> None:
    """One run of the suite. Raises CalledProcessError where the gateway could not be asked; that it does not serve a
    protocol, which skips every case, is a result."""
    words = ["run", "--base-url", base_url, "--model", model, "--name", name, "--timeout", "40", "--json", str(report)]
    print(f"{name}: dragoman contract run --model {model} ...", file=sys.stderr, flush=True)
    command = [str(own("dragoman")), "contract", *words, *more]
    status = subprocess.run(command, env={**os.environ, "DRAGOMAN_CONTRACT_KEY": KEY}, timeout=1800).returncode
    if status not in (0, 1) and not (status == 3 and json.loads(report.read_text())["counts"]["error"] == 0):
        raise subprocess.CalledProcessError(status, command)


def joined(parts: Sequence[Json]) -> Json:
    """The reports of parts of one target as one."""
    first = parts[0]
    return first | {
        "cases": [case for part in parts for case in part["cases"]],
        "seconds": round(sum(part["seconds"] for part in parts), 3),
        "tokens": sum(part["tokens"] for part in parts),
        "counts": {verdict: sum(part["counts"][verdict] for part in parts) for verdict in first["counts"]},
    }


def publish(folder: Path, reports: Sequence[Path], made: Sequence[str]) -> None:
    table = folder / "matrix.md"
    command = [str(own("dragoman")), "contract", "report", *map(str, reports)]
    subprocess.run([*command, "--brief", "--html", str(HTML), "--markdown", str(table)], check=True, timeout=120)
    told = [json.loads(report.read_text()) for report in reports]
    days = sorted({report["started"][:10] for report in told})
    parts = [
        f"Measured on {' and '.join(days)} with {', '.join(made)}.",
        f"## In sums\n\n{summary(told)}",
        f"## What it finds most\n\n{causes(told)}",
        f"## What was known before\n\n{defects(told)}",
        f"## Every case\n\n{table.read_text('utf-8')}",
    ]
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    measured_part = "\n\n".join(part.strip("\n") for part in parts)
    PAGE.write_text(f"{before}{BEGIN}\n{measured_part}\n{END}{after}", "utf-8")


def environment(folder: Path, gateway: Gateway) -> Path:
    """An environment with the rival in it, and nothing else."""
    venv = folder / "environments" / gateway.package
    if not gateway.requirement or (venv / "ready").exists():
        return venv
    uv = shutil.which("uv") or sys.exit("uv is needed, to install what is compared with: https://docs.astral.sh/uv")
    subprocess.run([uv, "venv", "--quiet", "--clear", str(venv)], check=True, timeout=300)
    python = str(venv / "bin" / "python")
    overrides = folder / "overrides.txt"
    overrides.write_text("\n".join(OVERRIDES))
    install = [uv, "pip", "install", "--quiet", "--python", python, "--override", str(overrides), gateway.requirement]
    subprocess.run(install, check=True, timeout=1200)
    (venv / "ready").touch()
    return venv


def installed(venv: Path, gateway: Gateway) -> str:
    script = f"from importlib.metadata import version; print(version({gateway.package!r}))"
    run = subprocess.run([venv / "bin" / "python", "-c", script], capture_output=True, text=True, check=True)
    return f"{gateway.package} {run.stdout.strip()}"


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    if not listens(port, process, 300):
        raise RuntimeError(f"nothing listens on port {port}; with --keep DIR its log stays in DIR")


if __name__ == "__main__":
    main()
