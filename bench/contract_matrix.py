"""The contract suite against dragoman, LiteLLM, llm-rosetta and a fake alone: `uv run python bench/contract_matrix.py`.

Each gateway stands in front of the suite's own fake provider and is asked everything that the suite knows for the
openai dialect. The rivals get throw-away environments of their own (needs uv and a package registry); every server is
on 127.0.0.1. It writes `docs/contract-matrix.html`, and the measured part of `docs/contract-matrix.md`: what stands
there between the two marks. `--keep DIR` keeps reports, configurations, logs and environments, and takes the
environments up again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__: list[str] = []

ROOT = Path(__file__).parents[1]
PAGE, HTML = ROOT / "docs" / "contract-matrix.md", ROOT / "docs" / "contract-matrix.html"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
KEY, MODEL, TEXT_MODEL = "sk-contract", "m", "m-text"
LITELLM, ROSETTA = "litellm[proxy]==1.108.7", "llm-rosetta[gateway]==0.13.0"
SERVED = {
    "openai": ("chat", "completions", "embeddings"),
    "databricks": ("chat", "completions", "embeddings"),
    "azure": ("chat", "embeddings"),
    "mindie": ("chat",),
}
"""Upstream -> what the provider is asked for. A gateway is asked for that, and for responses and the list of models."""
LACKS = {
    "openai": (),
    "databricks": ("seed", "penalties", "parallel_off", "dimensions", "tokens"),
    "azure": ("n", "logprobs", "stream_usage", "reasoning", "parallel_off", "tokens", "instruction"),
    "mindie": ("parallel_off",),
}
"""Upstream -> the capabilities that the provider's API has not: cases about them are skipped for every gateway."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Gateway:
    """`upstreams` are the providers that it speaks to. `configuration` takes the upstream's dialect, its origin and the
    gateway's own port; `start` takes the folder of its environment, the file and the port. `text_model` is the model to
    ask for completions, where that is another."""

    name: str
    upstreams: Sequence[str]
    configuration: Callable[[str, str, int], Json]
    start: Callable[[Path, Path, int], list[str]]
    requirement: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    text_model: str = MODEL
    seed: str = ""


def dragoman(upstream: str, origin: str, port: int) -> Json:
    kind = {"kind": "provisioned-throughput"} if upstream == "databricks" else {}
    base = origin + ("/v1" if upstream == "openai" else "")
    given = {"base_url": base, "api_key": "sk-upstream", "protocols": SERVED[upstream]}
    return {
        "server": {"host": "127.0.0.1", "port": port},
        "keys": [{"name": "contract", "key": KEY, "models": ["*"]}],
        "providers": {"p": {"dialect": upstream, **given, **kind}},
        "models": {MODEL: {"targets": [{"provider": "p", "model": "fake-model"}]}},
    }


def litellm(upstream: str, origin: str, port: int) -> Json:
    prefix, base, more = {
        "openai": ("openai", f"{origin}/v1", {"use_chat_completions_api": True}),
        "databricks": ("databricks", f"{origin}/serving-endpoints", {}),
        "azure": ("azure_ai", origin, {"api_version": "2024-05-01-preview"}),
        "mindie": ("openai", f"{origin}/v1", {"use_chat_completions_api": True}),
    }[upstream]
    given = {"api_base": base, "api_key": "sk-upstream"}
    chat = {"model": f"{prefix}/fake-model", **given, **more}
    text = {"model": "text-completion-openai/fake-model", **given}
    return {
        "model_list": [
            {"model_name": MODEL, "litellm_params": chat},
            {"model_name": TEXT_MODEL, "litellm_params": text},
        ],
        "litellm_settings": {"drop_params": True, "request_timeout": 15, "telemetry": False},
        "router_settings": {"disable_cooldowns": True},
        "general_settings": {"master_key": KEY},
    }


def rosetta(upstream: str, origin: str, port: int) -> Json:
    provider = {"type": "openai", "base_url": f"{origin}/v1", "api_key": "sk-upstream"}
    return {
        "providers": {"p": {**provider, "embedding_format": "openai", "embedding_path": "/embeddings"}},
        "models": {MODEL: {"provider": "p", "upstream_model": "fake-model"}},
        "embedding_providers": {"e": {**provider, "embedding_path": "/embeddings"}},
        "embedding_models": {MODEL: "e"},
        "server": {"host": "127.0.0.1", "port": port, "upstream_timeout": 15},
    }


GATEWAYS = (
    Gateway(
        "dragoman",
        ("openai", "databricks", "azure", "mindie"),
        dragoman,
        lambda venv, file, port: [str(own("dragoman")), "serve", "--config", str(file)],
    ),
    Gateway(
        "LiteLLM",
        ("openai", "databricks", "azure", "mindie"),
        litellm,
        lambda venv, file, port: [
            *(str(venv / "bin" / "litellm"), "--config", str(file)),
            *("--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"),
        ],
        requirement=LITELLM,
        env={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "DO_NOT_TRACK": "1"},
        text_model=TEXT_MODEL,
    ),
    Gateway(
        "llm-rosetta",
        ("openai", "mindie"),
        rosetta,
        lambda venv, file, port: [str(venv / "bin" / "llm-rosetta-gateway"), "--no-banner", "--config", str(file)],
        requirement=ROSETTA,
        seed=f"from llm_rosetta.gateway.keystore import KeyStore as K; K('keys.db').create(manual_key='{KEY}')",
    ),
)


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
            reports = [bare(folder), *jobs.map(lambda run: measured(folder, *run), runs)]
        publish(folder, reports, made)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in this folder, and leave everything there")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="gateways at a time (default 1)")
    return parser.parse_args()


def bare(folder: Path) -> Path:
    """The openai fake with nothing in front of it: what the rows would be with a gateway that changes nothing."""
    port, report = free_port(), folder / "fake.json"
    with running([str(own("dragoman")), "fake", "openai", "--port", str(port), "--api-key", KEY], folder / "fake.log"):
        wait_for(port)
        ask(report, "the openai fake, alone", f"http://127.0.0.1:{port}/v1", "fake-model", ())
    return report


def measured(folder: Path, gateway: Gateway, upstream: str, venv: Path) -> Path:
    name = f"{gateway.name} > {upstream}"
    home = folder / f"{gateway.name}-{upstream}".lower()
    home.mkdir(exist_ok=True)
    port, behind = free_port(), free_port()
    file, report = home / "configuration.json", home / "report.json"
    file.write_text(json.dumps(gateway.configuration(upstream, f"http://127.0.0.1:{behind}", port), indent=1))
    if gateway.seed and not (home / "keys.db").exists():
        subprocess.run([venv / "bin" / "python", "-c", gateway.seed], cwd=home, check=True, timeout=60)
    lacks = [word for lack in LACKS[upstream] for word in ("--without", lack)]
    driven = ["--upstream", upstream, "--upstream-port", str(behind), *lacks]
    with running(gateway.start(venv, file, port), home / "log.txt", gateway.env, home) as process:
        wait_for(port, process)
        base = f"http://127.0.0.1:{port}/v1"
        ask(
            report, name, base, MODEL, [*driven, *only("responses", "models", *set(SERVED[upstream]) - {"completions"})]
        )
        if "completions" in SERVED[upstream]:
            ask(home / "text.json", name, base, gateway.text_model, [*driven, *only("completions")])
            join(report, home / "text.json")
    return report


def only(*protocols: str) -> list[str]:
    return [word for protocol in protocols for word in ("--only", f"{protocol}/*")]


def ask(report: Path, name: str, base_url: str, model: str, more: Sequence[str]) -> None:
    """One run of the suite. Raises CalledProcessError where the gateway could not be asked; that it does not serve a
    protocol, which skips every case, is a result."""
    words = ["run", "--base-url", base_url, "--model", model, "--name", name, "--timeout", "20", "--json", str(report)]
    print(f"{name}: dragoman contract run --model {model} ...", file=sys.stderr, flush=True)
    command = [str(own("dragoman")), "contract", *words, *more]
    status = subprocess.run(command, env={**os.environ, "DRAGOMAN_CONTRACT_KEY": KEY}, timeout=1800).returncode
    if status not in (0, 1) and not (status == 3 and json.loads(report.read_text())["counts"]["error"] == 0):
        raise subprocess.CalledProcessError(status, command)


def join(report: Path, other: Path) -> None:
    """Put the cases of the other report of the same target into this one."""
    whole, part = json.loads(report.read_text()), json.loads(other.read_text())
    whole["cases"] += part["cases"]
    whole["seconds"] = round(whole["seconds"] + part["seconds"], 3)
    whole["tokens"] += part["tokens"]
    whole["counts"] = {verdict: count + part["counts"][verdict] for verdict, count in whole["counts"].items()}
    report.write_text(json.dumps(whole, indent=1, ensure_ascii=False))


def publish(folder: Path, reports: Sequence[Path], made: Sequence[str]) -> None:
    table = folder / "matrix.md"
    command = [str(own("dragoman")), "contract", "report", *map(str, reports)]
    subprocess.run([*command, "--brief", "--html", str(HTML), "--markdown", str(table)], check=True, timeout=120)
    started = json.loads(reports[0].read_text())["started"][:10]
    head = f"Measured on {started} with {', '.join(made)}.\n\n{summary(reports)}\n## Every case\n\n"
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{head}{table.read_text('utf-8')}{END}{after}", "utf-8")


def summary(reports: Sequence[Path]) -> str:
    """Cases passed of those asked, by area: a row for each target's protocol, split by which side is looked at."""
    told = [json.loads(report.read_text()) for report in reports]
    areas = sorted({area(case["id"]) for report in told for case in report["cases"]})
    lines = ["| | " + " | ".join(areas) + " | all |", "|---|" + "---:|" * (len(areas) + 1)]
    for report in told:
        cells = [passed([case for case in report["cases"] if area(case["id"]) == of]) for of in areas]
        lines.append(f"| {report['target']['name']} | {' | '.join(cells)} | {passed(report['cases'])} |")
    return "\n".join(lines) + "\n"


def area(case: str) -> str:
    protocol, part = case.split("/")[:2]
    return f"{protocol}, driven" if part.startswith("proxy-") else protocol


def passed(cases: Sequence[Json]) -> str:
    asked = [case for case in cases if case["verdict"] != "skip"]
    return f"{sum(case['verdict'] == 'pass' for case in asked)} of {len(asked)}" if asked else "–"


def environment(folder: Path, gateway: Gateway) -> Path:
    """An environment with the rival in it, and nothing else."""
    venv = folder / "environments" / gateway.name.lower()
    if not gateway.requirement or (venv / "ready").exists():
        return venv
    uv = shutil.which("uv") or sys.exit("uv is needed, to install what is compared with: https://docs.astral.sh/uv")
    subprocess.run([uv, "venv", "--quiet", "--clear", str(venv)], check=True, timeout=300)
    python = str(venv / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, gateway.requirement], check=True, timeout=1200)
    (venv / "ready").touch()
    return venv


def installed(venv: Path, gateway: Gateway) -> str:
    package = gateway.requirement.partition("[")[0]
    script = f"from importlib.metadata import version; print(version({package!r}))"
    run = subprocess.run([venv / "bin" / "python", "-c", script], capture_output=True, text=True, check=True)
    return f"{package} {run.stdout.strip()}"


def own(name: str) -> Path:
    return Path(sys.executable).with_name(name)


@contextmanager
def running(
    command: Sequence[str], log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The command as a process, ended on the way out."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(env or {})}, cwd=cwd)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_for(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Return once something listens. Raises RuntimeError where the process ended first or 300 s have passed."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and (process is None or process.poll() is None):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}; with --keep DIR its log stays in DIR")


if __name__ == "__main__":
    main()
