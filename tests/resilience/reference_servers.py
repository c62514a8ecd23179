"""nginx and HAProxy in front of the same upstream, for comparison. Each has /live and /ready of its own."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["REFERENCE_SERVERS", "ReferenceServer"]

_NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log /dev/null crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    proxy_http_version 1.1; proxy_buffering off;
    location = /live {{ return 200 "ok"; }}
    location = /ready {{ return 200 "ok"; }}
    location / {{ proxy_pass http://127.0.0.1:{upstream}; }}
  }}
}}
"""

_HAPROXY = """
global
  maxconn 8192
  nbthread 1
  hard-stop-after 60s
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  timeout http-request 60s
frontend clients
  bind 127.0.0.1:{port} backlog 1024
  http-request return status 200 content-type text/plain string "ok" if {{ path /live }} || {{ path /ready }}
  default_backend provider
backend provider
  server provider 127.0.0.1:{upstream}
"""


@dataclass(frozen=True)
class ReferenceServer:
    """`settings` is the text of its configuration file; `stop` is the signal that drains it."""

    settings: str
    command: tuple[str, ...]
    stop: signal.Signals

    def write_command(self, folder: Path, port: int, upstream: int) -> list[str]:
        """Write the configuration into the folder, and return the command that starts the server."""
        file = folder / "server.conf"
        file.write_text(self.settings.format(folder=folder, port=port, upstream=upstream))
        return [*self.command, str(file)]


REFERENCE_SERVERS: Mapping[str, ReferenceServer] = {
    "nginx": ReferenceServer(_NGINX, ("nginx", "-c"), signal.SIGQUIT),
    "haproxy": ReferenceServer(_HAPROXY, ("haproxy", "-f"), signal.SIGUSR1),
}
