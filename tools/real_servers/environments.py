"""Environments: one virtual environment for each server, outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .catalog import Server

__all__ = ["default_cache", "find_command", "install", "is_installed", "read_package_version", "read_version"]


def default_cache(name: str = "real_servers") -> Path:
    """Return the folder for environments and models: below `XDG_CACHE_HOME`, else below the home directory."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dragoman" / name


def find_command(cache: Path, server: Server, name: str = "python") -> Path:
    """Return the path of a command in a server's environment."""
    return cache / server.home / "venv" / "bin" / name


def is_installed(cache: Path, server: Server) -> bool:
    return read_version(cache, server) is not None


def read_version(cache: Path, server: Server) -> str | None:
    """Read the version of the server's package in its environment; None if it is not installed."""
    return read_package_version(find_command(cache, server), server.packages[0])


def read_package_version(python: Path, requirement: str) -> str | None:
    """Read the version of a package, which a requirement such as `vllm[x]==1` names, in the environment of an
    interpreter; None if it is not installed."""
    package = requirement.partition("==")[0].partition("[")[0]
    code = f"from importlib.metadata import version; print(version({package!r}))"
    if not python.exists():
        return None
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def install(cache: Path, server: Server) -> None:
    """Create the server's environment and install its packages with pip, whose own configuration applies.

    Raises subprocess.CalledProcessError."""
    python = find_command(cache, server)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *server.packages], check=True)
    if server.removed:
        subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", *server.removed], check=True)
