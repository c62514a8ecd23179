"""`python -m dragoman.proxy.cli`: the command `dragoman`."""

from __future__ import annotations

from dragoman.proxy.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
