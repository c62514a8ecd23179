"""The files of the page, which are part of the package."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["INDEX", "LOGIN", "read_asset"]

INDEX, LOGIN = "index.html", "login.html"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*\.(html|css|js|svg|png|txt)")
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "txt": "text/plain; charset=utf-8",
}
_FOLDER = Path(__file__).parents[2] / "page"


def read_asset(name: str) -> tuple[bytes, str] | None:
    """The bytes and the content type of a file; None if there is none with this name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return _FOLDER.joinpath(name).read_bytes(), _TYPES[match[1]]
    except FileNotFoundError:
        return None
