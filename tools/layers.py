"""`python -m tools.layers`: measure how deep proxy/ is and which imports point upward.

A room is a folder or a flat file directly in a package; the package's own `__init__` counts as one more room, and not
as a flat file. Imports must point downward: from a layer to a later one, never to an earlier or an equal one.
Imports inside functions and below TYPE_CHECKING count.

The exit status is 1 if proxy/ breaks a limit or if any import points upward or takes another room's private name.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec, resolve_name
from pathlib import Path

import grimp

__all__ = ["FOLDERS", "MOST_FLAT_FILES", "MOST_IN_CHAIN", "ROOMS", "Import", "Layers", "Report", "main", "measure"]

MOST_IN_CHAIN = 8
MOST_FLAT_FILES = 4

Layers = Sequence[Sequence[str]]
"""Names of rooms, from the top layer down. Rooms of one layer may not import one another."""

ROOMS: Layers = (
    ("cli",),
    ("server",),
    ("exchange",),
    ("routing", "conversations"),
    ("upstreams",),
    ("http",),
    ("telemetry",),
    ("config",),
)
FOLDERS: Layers = (("__main__",), ("proxy",), ("local_engine", "contract"), ("adapters",), ("schemas",))


@dataclass(frozen=True, slots=True, order=True)
class Import:
    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


@dataclass(frozen=True, slots=True)
class Report:
    """The measurements of one package: its rooms, the longest chain of them, and the imports that break a rule."""

    rooms: frozenset[str]
    flat_files: int
    chain: tuple[str, ...]
    upward: tuple[Import, ...]
    private: tuple[Import, ...]

    @property
    def is_within_limits(self) -> bool:
        return len(self.chain) <= MOST_IN_CHAIN and self.flat_files <= MOST_FLAT_FILES

    @property
    def is_ordered(self) -> bool:
        return not self.upward and not self.private


def measure(package: str, layers: Layers) -> Report:
    """Measure an importable package. Raises ValueError if `layers` leaves out a room that another room imports."""
    root = package.partition(".")[0]
    modules = _Modules(package, grimp.build_graph(root, cache_dir=None))
    level = {room: place for place, names in enumerate(layers) for room in names}
    imports = list(modules.imports_between_rooms())
    rooms_imported: dict[str, set[str]] = {}
    for each in imports:
        rooms_imported.setdefault(modules.room(each.importer), set()).add(modules.room(each.imported))
    return Report(
        frozenset(map(modules.room, modules.names)),
        modules.count_flat_files(),
        max((_longest_chain(room, rooms_imported) for room in map(modules.room, modules.names)), key=len, default=()),
        tuple(sorted(each for each in imports if _is_upward(modules, each, level))),
        tuple(sorted(modules.private_imports())),
    )


def _is_upward(modules: _Modules, each: Import, level: Mapping[str, int]) -> bool:
    importer, imported = modules.room(each.importer), modules.room(each.imported)
    if not importer or not imported:
        return False
    missing = {importer, imported} - level.keys()
    if missing:
        raise ValueError(f"no layer of {modules.package} names {', '.join(sorted(missing))}")
    return level[imported] <= level[importer]


def _longest_chain(room: str, imported: Mapping[str, set[str]], above: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The longest chain of imports that begins with the room and passes no room twice."""
    below = (_longest_chain(each, imported, (*above, room)) for each in sorted(imported.get(room, set()) - {*above}))
    return room, *max(below, key=len, default=())


class _Modules:
    """The modules of a package and their imports. The room of the package's own `__init__` is the empty string."""

    def __init__(self, package: str, graph: grimp.ImportGraph) -> None:
        self.package = package
        self.names = sorted(name for name in graph.modules if name == package or name.startswith(f"{package}."))
        self._graph = graph
        self._folder = _find_folder(package.partition(".")[0])

    def room(self, module: str) -> str:
        return module.removeprefix(self.package).removeprefix(".").partition(".")[0]

    def count_flat_files(self) -> int:
        direct = self._graph.find_children(self.package)
        return sum(self._file(module).name != "__init__.py" for module in direct)

    def imports_between_rooms(self) -> Iterator[Import]:
        for importer in self.names:
            for imported in self._graph.find_modules_directly_imported_by(importer):
                if imported in self.names and self.room(importer) != self.room(imported):
                    for detail in self._graph.get_import_details(importer=importer, imported=imported):
                        yield Import(importer, imported, detail["line_number"])

    def private_imports(self) -> Iterator[Import]:
        """Imports of a module or name with a leading underscore from another room."""
        for importer in self.names:
            for line, name in _imported_names(importer, self._file(importer)):
                inside = name.removeprefix(f"{self.package}.")
                if inside == name or self.room(name) == self.room(importer):
                    continue
                if any(part.startswith("_") and not part.endswith("__") for part in inside.split(".")):
                    yield Import(importer, name, line)

    def _file(self, module: str) -> Path:
        path = self._folder.joinpath(*module.split(".")[1:])
        package = path / "__init__.py"
        return package if package.exists() else path.with_suffix(".py")


def _find_folder(package: str) -> Path:
    """The folder of a top-level package. Imports nothing."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ValueError(f"{package} is no package with an __init__.py")
    return Path(spec.origin).parent


def _imported_names(module: str, file: Path) -> Iterator[tuple[int, str]]:
    """The line and the absolute dotted name of everything that the module imports."""
    parent = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), parent)
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def _write_report(name: str, report: Report, layers: Layers) -> Iterator[str]:
    rooms, chain = len(report.rooms), len(report.chain)
    yield f"{name}: {rooms} rooms, {report.flat_files} flat files, longest chain of rooms {chain}"
    yield f"  chain: {' -> '.join(room or name for room in report.chain)}"
    counts = Counter(each.importer for each in report.upward)
    for room in (room for names in layers for room in names):
        upward = sum(count for module, count in counts.items() if f".{room}." in f"{module}.")
        yield f"  {room}: {upward} upward imports"
    yield from (f"  upward: {each}" for each in report.upward)
    yield from (f"  private: {each}" for each in report.private)


def main() -> int:
    proxy, tree = measure("dragoman.proxy", ROOMS), measure("dragoman", FOLDERS)
    print(*_write_report("proxy", proxy, ROOMS), *_write_report("dragoman", tree, FOLDERS), sep="\n")
    return 0 if proxy.is_within_limits and proxy.is_ordered and tree.is_ordered else 1


if __name__ == "__main__":
    sys.exit(main())
