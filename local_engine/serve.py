"""`python -m dragoman.local_engine.serve`: one engine process, serving one model folder on a Unix socket."""

import sys

from .process.main import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
