"""What `side_by_side.py` measures: how each target is configured, started and, if it is another project, installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from _cases import CASES
from _gateways import LITELLM, OVERRIDES, own_program
from _native import CACHE
from _rows import dragoman_config, script_command

__all__ = ["DEFAULT", "TARGETS", "MissingTarget", "Target", "install_environment"]

VLLM_ROUTER = "vllm-router==0.1.17"
CHAT = ("whole", "small", "large", "paced", "burst", "rate")
BRIEF = ("whole", "paced", "burst", "rate")
NGINX = """\
daemon off; master_process off; pid {folder}/nginx.pid; error_log /dev/null crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; client_body_buffer_size 512k;
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder}; keepalive_requests 100000000;
  upstream provider {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port};
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    location / {{ proxy_pass http://provider; }}
  }}
}}
"""


class MissingTarget(Exception):
    """Why a target cannot be measured here."""


@dataclass(frozen=True, slots=True)
class Target:
    """A proxy, or `direct` without a command. `command` gets a folder of its own, the port of the provider and the port
    to listen on, and writes the configuration. `client` is the protocol of its clients."""

    title: str
    command: Callable[[Path, int, int], list[str]] | None
    cases: Sequence[str] = CHAT
    client: str = "chat"
    warm_up: float = 0.3
    env: Mapping[str, str] = field(default_factory=dict)


def _start_nginx(folder: Path, upstream: int, port: int) -> list[str]:
    nginx = shutil.which("nginx")
    if nginx is None:
        raise MissingTarget("nginx is not installed")
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, upstream=upstream))
    return [nginx, "-p", str(folder), "-c", str(config)]


def _start_bare(folder: Path, upstream: int, port: int) -> list[str]:
    return script_command("_bare.py", port, upstream)


def _start_dragoman(dialect: str, base: str, store: str = "{kind: none}") -> Callable[[Path, int, int], list[str]]:
    def start(folder: Path, upstream: int, port: int) -> list[str]:
        program = own_program("dragoman")
        if not program.exists():
            raise MissingTarget(f"dragoman is not installed next to {sys.executable}")
        config = folder / "dragoman.yaml"
        config.write_text(dragoman_config(dialect, f"http://127.0.0.1:{upstream}{base}", port, store))
        return [str(program), "serve", "--config", str(config), "--log-format", "json"]

    return start


def _start_vllm_router(folder: Path, upstream: int, port: int) -> list[str]:
    venv = install_environment(VLLM_ROUTER)
    workers = ["--worker-urls", f"http://127.0.0.1:{upstream}", "--policy", "round_robin", "--log-level", "error"]
    metrics = ["--prometheus-port", str(port + 30_000)]
    return [str(venv / "bin/vllm-router"), "--host", "127.0.0.1", "--port", str(port), *workers, *metrics]


def _start_litellm(folder: Path, upstream: int, port: int) -> list[str]:
    venv = install_environment(LITELLM, OVERRIDES)
    given = {"api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "bench"}
    names = sorted({f"bench-{case.workload}" for case in CASES.values()})
    models = [{"model_name": name, "litellm_params": {"model": f"openai/{name}", **given}} for name in names]
    config = folder / "litellm.json"
    general = {"dangerously_permit_weak_or_unset_master_key": True}
    settings = {"model_list": models, "litellm_settings": {"telemetry": False}, "general_settings": general}
    config.write_text(json.dumps(settings))
    server = ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1", "--telemetry", "False"]
    return [str(venv / "bin/litellm"), "--config", str(config), *server]


_CHEAPEST = {
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
}
"""The cheapest set-up of LiteLLM, together with no key and no log."""

TARGETS = {
    "direct": Target("direct", None),
    "nginx": Target("nginx", _start_nginx),
    "bare": Target("bare aiohttp relay", _start_bare),
    "vllm-router": Target("vllm-router", _start_vllm_router),
    "litellm": Target("LiteLLM", _start_litellm, ("whole", "small", "paced", "burst"), warm_up=3.0, env=_CHEAPEST),
    "dragoman": Target("dragoman", _start_dragoman("openai", "/v1")),
    "databricks": Target("dragoman, to databricks", _start_dragoman("databricks", ""), BRIEF),
    "responses": Target("dragoman, Responses", _start_dragoman("openai", "/v1"), BRIEF, "responses"),
    "kept": Target("dragoman, Responses kept", _start_dragoman("openai", "/v1", "{path: kept.db}"), BRIEF, "responses"),
    "messages": Target("dragoman, Messages", _start_dragoman("openai", "/v1"), BRIEF, "messages"),
}
DEFAULT = ("direct", "nginx", "bare", "dragoman", "databricks", "responses", "kept", "messages")


def install_environment(requirement: str, overrides: Sequence[str] = ()) -> Path:
    """Return an environment in the cache with one package, and install it at first use.

    Raises MissingTarget if it cannot be installed."""
    venv = CACHE / "environments" / re.sub(r"[^\w.]+", "-", requirement)
    if (venv / "ready").exists():
        return venv
    uv = shutil.which("uv")
    if uv is None:
        raise MissingTarget(f"{requirement} is not installed, and there is no uv to install it")
    venv.parent.mkdir(parents=True, exist_ok=True)
    file = venv.with_suffix(".overrides")
    file.write_text("\n".join(overrides))
    python = ["--python", str(venv / "bin/python"), "--override", str(file)]
    print(f"installing {requirement} ...", file=sys.stderr, flush=True)
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    for command in ([uv, "venv", "--quiet", "--clear", str(venv)], [uv, "pip", "install", "-q", *python, requirement]):
        run = subprocess.run(command, capture_output=True, text=True, env=env, timeout=1200)
        if run.returncode:
            raise MissingTarget(f"{requirement} cannot be installed: {run.stderr[-300:]}")
    (venv / "ready").touch()
    return venv
