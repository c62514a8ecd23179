"""The README as an index of packages shows it: an index has none of the files that its links name."""

from __future__ import annotations

import re

__all__ = ["find_relative_links", "replace_relative_links"]

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https?://|#|mailto:)(?P<path>[^)\s]+)\)")


def find_relative_links(text: str) -> list[str]:
    """What the relative links of a Markdown text lead to."""
    return [found["path"] for found in _LINK.finditer(text)]


def replace_relative_links(text: str, repository: str | None, tag: str) -> str:
    """The text with links to the files of a tag. `repository` is the address of a repository on GitHub, or on a server
    with the same paths; without one, a link becomes its text, and an image is left out."""

    def replace(found: re.Match[str]) -> str:
        if repository is None:
            return "" if found["image"] else found["text"]
        kind = "raw" if found["image"] else "blob"
        address = f"{repository.rstrip('/')}/{kind}/{tag}/{found['path']}"
        return f"{found['image']}[{found['text']}]({address})"

    return _LINK.sub(replace, text)
