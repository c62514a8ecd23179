"""Builds the load generator and the provider of `native/` at first use, with the system's C compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["CACHE", "FLAGS", "SOURCES", "build_program"]

SOURCES = Path(__file__).parent / "native"
CACHE = Path(__file__).parent / ".cache"
"""What the benchmarks build, install and compile. Git ignores it."""

FLAGS = ("-O2", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra")


@cache
def build_program(name: str) -> str | None:
    """Return the path of a program, built from its source as it is now; None if there is no compiler.

    Raises CalledProcessError if the compiler does not accept the source."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    sources = b"".join(file.read_bytes() for file in sorted(SOURCES.iterdir()))
    program = CACHE / f"{name}-{hashlib.sha256(sources).hexdigest()[:12]}"
    if not program.exists():
        CACHE.mkdir(exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, *FLAGS, str(SOURCES / f"{name}.c"), "-o", str(made)], check=True, timeout=120)
        made.replace(program)
    return str(program)
