"""Environments: one for each client, outside the repository, made by uv or npm."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tools.real_servers.environments import default_cache, read_package_version

from .catalog import Client

__all__ = [
    "InstallError",
    "default_clients_cache",
    "find_interpreter",
    "find_tables",
    "install",
    "is_installed",
    "read_versions",
]

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class InstallError(Exception):
    """A client cannot be installed; the text is the end of what the installer said."""


def default_clients_cache() -> Path:
    return default_cache("clients")


def find_interpreter(cache: Path, client: Client) -> str:
    """Return the command that runs a client's script."""
    return str(cache / client.name / "venv" / "bin" / "python") if client.language == "python" else "node"


def find_tables(cache: Path) -> Path:
    """Return the folder of tiktoken's tables in the environment of the client `litellm`, whose package has them.
    tiktoken would download them."""
    packages = cache / "litellm" / "venv" / "lib" / f"python{_PYTHON}" / "site-packages"
    return packages / "litellm" / "litellm_core_utils" / "tokenizers"


def is_installed(cache: Path, client: Client) -> bool:
    return bool(next(iter(read_versions(cache, client).values()), ""))


def read_versions(cache: Path, client: Client) -> dict[str, str]:
    """Read the version of each package of a client, in order; an empty text if it is not installed."""
    return {_find_name(package): _read_version(cache, client, package) for package in client.packages}


def _read_version(cache: Path, client: Client, package: str) -> str:
    if client.language == "python":
        return read_package_version(Path(find_interpreter(cache, client)), package) or ""
    file = cache / client.name / "node_modules" / _find_name(package) / "package.json"
    return str(json.loads(file.read_text("utf-8"))["version"]) if file.exists() else ""


def _find_name(package: str) -> str:
    """The name in `lm-eval[api]==1`, `openai<4` or `@scope/name@1`."""
    return re.split(r"(?<!^)@|[\[<>=~! ]", package, maxsplit=1)[0]


def install(cache: Path, client: Client) -> None:
    """Install the newest versions of a client's packages in a new environment. Raises InstallError."""
    folder = cache / client.name
    folder.mkdir(parents=True, exist_ok=True)
    if client.language == "python":
        _call(folder, "uv", "venv", "--quiet", "--clear", "--python", _PYTHON, str(folder / "venv"))
        python = find_interpreter(cache, client)
        _call(folder, "uv", "pip", "install", "--quiet", "--python", python, *client.packages)
    else:
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n', "utf-8")
        _call(folder, "npm", "install", "--no-audit", "--no-fund", "--loglevel", "error", *client.packages)


def _call(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError("\n".join((done.stderr or done.stdout).strip().splitlines()[-8:]))
