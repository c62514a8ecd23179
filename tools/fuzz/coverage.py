"""`python -m tools.fuzz.coverage CODEC`: fuzz one of the codecs, guided by the lines that each case reaches.

Needs atheris, which is not in the group dev: `uv pip install atheris`. Other options go to libFuzzer, as
`-max_total_time=300`. A case that breaks a law is written to a file `crash-...`, and ends the run; the name of such a
file as a further argument runs it again. The last line says how many cases were run. Without atheris,
`tests/tools/fuzz/test_codecs.py` runs damaged cases of the same codecs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Run the command line. It ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.coverage", description=__doc__)
    parser.add_argument("codec")
    parser.add_argument("--runs", type=int, default=100_000, help="how many cases")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same cases")
    options, more = parser.parse_known_args()
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["dragoman.adapters"]):
        codecs = importlib.import_module("tools.fuzz.codecs")
    if options.codec not in codecs.CODECS:
        parser.error(f"there is no codec {options.codec!r}; there are {', '.join(codecs.CODECS)}")
    codec = codecs.CODECS[options.codec]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(codecs.list_seeds(options.codec)):
            Path(folder, f"{number}").write_bytes(seed)
        flags = [f"-runs={options.runs}", f"-seed={options.seed}", f"-max_len={codec.most_bytes}"]
        corpus = [folder] if all(one.startswith("-") for one in more) else []  # else the cases to run again
        atheris.Setup([sys.argv[0], *flags, "-timeout=5", *more, *corpus], codec.check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
