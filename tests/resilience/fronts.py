"""Other people's reverse proxies in front of the proxy: HAProxy and nginx, as strict and as lenient as they can be.

They give each request that they see the id `front`, so a request that has another id was hidden in one."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.ports import find_free_port

__all__ = ["FRONTS", "find_program", "run_front"]

_HAPROXY = """
defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 10s
  timeout http-request 5s
frontend clients
  bind 127.0.0.1:{port}
  {options}
  http-request set-header x-request-id front
  default_backend proxy
backend proxy
  http-reuse always
  {options_behind}
  server one 127.0.0.1:{upstream}
"""
_NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream proxy {{ server 127.0.0.1:{upstream}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 0;
    client_header_timeout 5s;
    client_body_timeout 5s;
    {options}
    location / {{
      proxy_pass http://proxy;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Request-Id front;
    }}
  }}
}}
"""
_LENIENT_NGINX = """
    ignore_invalid_headers off;
    underscores_in_headers on;
    merge_slashes off;
    proxy_request_buffering off;
    large_client_header_buffers 8 64k;"""

FRONTS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "haproxy": ("haproxy", _HAPROXY, {"options": "", "options_behind": ""}),
    "haproxy, lenient": (
        "haproxy",
        _HAPROXY,
        {"options": "option accept-invalid-http-request", "options_behind": "option accept-invalid-http-response"},
    ),
    "nginx": ("nginx", _NGINX, {"options": ""}),
    "nginx, lenient": ("nginx", _NGINX, {"options": _LENIENT_NGINX}),
}
"""Name -> program, template of its configuration, and what the template's options become."""


def find_program(name: str) -> str | None:
    """Find a program, in /usr/sbin too, which is not on every user's path."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@contextmanager
def run_front(name: str, upstream: int, folder: Path) -> Iterator[int]:
    """Run a front before the port `upstream`, and yield its own port."""
    program, template, options = FRONTS[name]
    path = find_program(program)
    assert path is not None
    port = find_free_port()
    file = folder / "front.conf"
    file.write_text(template.format(port=port, upstream=upstream, folder=folder, **options), "utf-8")
    command = {"haproxy": [path, "-db", "-f", str(file)], "nginx": [path, "-p", str(folder), "-c", str(file)]}[program]
    with (folder / "front.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_for_port(port, process, folder / "front.log")
            yield port
        finally:
            process.terminate()


def _wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"it did not start: {log.read_text('utf-8', 'replace')}")
