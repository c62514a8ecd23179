"""`python -m tools.docs [--check] [DIR]`: write the pages, or name the stale ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .pages import find_stale, write_pages

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a page is stale")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs"), metavar="DIR", help="default: docs")
    options = parser.parse_args(arguments)
    if not options.check:
        write_pages(options.folder)
        return 0
    found = find_stale(options.folder)
    for name in found:
        print(f"stale: {options.folder / name}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
