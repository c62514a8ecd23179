"""What mkdocs calls for each page of the site: links to files outside of docs/ become the names of these files.

The pages link to examples, tests and schemas of the repository, which are not part of the site.
"""

from __future__ import annotations

import re
from posixpath import join, normpath
from typing import Any

__all__ = ["name_files_outside", "on_page_markdown"]

_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s]*)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The text of a page, as mkdocs shows it."""
    return name_files_outside(markdown, page.file.src_uri)


def name_files_outside(markdown: str, page: str) -> str:
    """Replace links from a page, whose path is relative to docs/, that lead out of docs/."""
    return _LINK.sub(lambda link: _name_file(link, page), markdown)


def _name_file(link: re.Match[str], page: str) -> str:
    text, target = link.groups()
    path = normpath(join("docs", page, "..", target.partition("#")[0]))
    if path.startswith("docs/") or path == "docs":
        return link[0]
    return f"`{path}`" if text.strip("`") == path else f"{text} (`{path}`)"
