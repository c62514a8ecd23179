"""`python run_program.py FILE`: run a program as a notebook would, also with `await` outside of a function."""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from pathlib import Path

if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text("utf-8")
    code = compile(text, sys.argv[1], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, {"__name__": "__main__"})  # with an await the code makes a coroutine
    if inspect.iscoroutine(result):
        asyncio.run(result)
