"""Libraries that do not see the environment.

litellm looks for keys, addresses and switches in hundreds of variables, at import and at every call. What it may use
is in the configuration, so its modules, and those through which it looks further, get an `os` of their own: all of the
real one, but with another `environ`. It is handed to them where they import it, hence modules that are loaded late
are blind too. A module that was loaded before is not.
"""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

__all__ = ["blind"]


def blind(packages: frozenset[str], environ: Mapping[str, str]) -> None:
    """From now on, modules of these packages find `environ` in place of the process's own environment."""
    sys.meta_path.insert(0, _Finder(packages, _without_environment(environ)))


def _without_environment(environ: Mapping[str, str]) -> ModuleType:
    variables = dict(environ)
    blinded = ModuleType("os")
    blinded.__dict__.update(os.__dict__)
    seen = {
        "environ": variables,
        "getenv": variables.get,
        "putenv": variables.__setitem__,
        "unsetenv": variables.__delitem__,
    }
    blinded.__dict__.update(seen)
    return blinded


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, packages: frozenset[str], blinded: ModuleType) -> None:
        self._packages = packages
        real = builtins.__import__

        def import_(
            name: str, globals_: Any = None, locals_: Any = None, names: Any = (), level: int = 0
        ) -> ModuleType:
            found = real(name, globals_, locals_, names, level)
            return blinded if found is os else found

        self._builtins = {**vars(builtins), "__import__": import_}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self._packages:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader, self._builtins)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, found: importlib.machinery.SourceFileLoader, names: Mapping[str, Any]) -> None:
        super().__init__(found.name, found.path)
        self._names = names

    def exec_module(self, module: ModuleType) -> None:
        code: CodeType | None = self.get_code(module.__name__)
        assert code is not None, f"{module.__name__} has no source"
        module.__dict__["__builtins__"] = self._names
        exec(code, module.__dict__)
