"""`python -m dragoman.local_engine.serve`: an engine process that serves one model folder on a Unix socket."""

import sys

from dragoman.local_engine.process.main import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
