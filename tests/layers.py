"""Reads the source of every module and says where it breaks the rules of the house (tests/test_layers.py).

Nothing is imported: a module is its path and its text, so the rules are tried on made-up sources too.

What comes in: Sources, path below the project's root -> text. What goes out: "path:line: what is wrong", sorted.
"""

from __future__ import annotations

import ast
import functools
import graphlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

Sources = Mapping[str, str]

FLOOR = ("wire",)
MAY_IMPORT = {
    "wire": (),
    "configs": ("wire.errors",),
    "opic": FLOOR,
    "refresh": FLOOR,
    "xyro": FLOOR,
    "loader": FLOOR,
    "metadata": (*FLOOR, "opic", "refresh"),
    "lab": (*FLOOR, "opic", "refresh", "xyro", "loader", "metadata"),
    "crawl": (*FLOOR, "configs", "opic", "refresh", "xyro", "loader", "metadata", "lab"),
}
"""folder -> what of ours its modules may import, beside each other: design.md section 2, drawn from the floor up"""

PURE_FOLDERS = ("opic", "refresh")
PURE_WORDS = {"__future__", "abc", "collections", "dataclasses", "enum", "types", "typing", "wire", *PURE_FOLDERS}
PURE_NUMBERS = {"array", "bisect", "fractions", "heapq", "math", "numba", "numpy", "struct"}
PURE_IMPORTS = PURE_WORDS | PURE_NUMBERS | {"copy", "functools", "itertools", "operator"}
"""all that a pure module may import: no file, socket, clock, thread or source of randomness is among it"""
PURE_NEVER = {"open", "print", "input", "numpy.random.default_rng", "numpy.random.seed", "numpy.load"}

ONLY = {"plyvel": "metadata/store.py"}
"""library -> the only module that may import it"""

NEVER_IMPORT = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "tests"}
YAML_RUNS = {f"yaml.{name}" for name in ("load", "load_all", "full_load", "full_load_all", "unsafe_load")}
NEVER_CALL = {"eval", "exec", "compile", "__import__", "importlib.import_module", "os.system", "os.popen", *YAML_RUNS}

TIMERS = ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")
CLOCKS = {f"time.{name}{unit}" for name in TIMERS for unit in ("", "_ns")}
CLOCKS |= {"time.sleep", "time.localtime", "time.gmtime", "time.ctime", "email.utils.localtime", "os.times"}
CLOCKS |= {f"datetime.{name}" for name in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")}
MAY_READ_CLOCK = {
    ("wire/clock.py", "time.time"): "the clock itself",
    ("wire/clock.py", "time.monotonic"): "the clock itself",
    ("xyro/client.py", "loop.time"): "a connection's times are compared inside one call of the loop's own timer",
}


def read(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """The Python sources below root/folder for each folder."""
    paths = (path for folder in folders for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def direction(sources: Sources) -> list[str]:
    """Imports against the direction of design.md section 2."""
    found = []
    for path, line, module in _all_imports(sources):
        folder, target = _folder(path), module.partition(".")[0]
        if target in MAY_IMPORT and target != folder and not _among(module, MAY_IMPORT[folder]):
            found.append(f"{path}:{line}: {folder} must not import {module}")
    return sorted(found)


def impure(sources: Sources) -> list[str]:
    """I/O, clocks and randomness in the folders that are pure."""
    found = []
    for path, text in sources.items():
        if _folder(path) in PURE_FOLDERS:
            tree = _parse(text)
            wrong = [
                (line, module) for line, module in _imports(path, tree, sources) if not _among(module, PURE_IMPORTS)
            ]
            wrong += [(line, name) for line, name in _called(tree) if name in PURE_NEVER]
            found += [f"{path}:{line}: {name} in a pure module" for line, name in wrong]
    return sorted(found)


def misplaced(sources: Sources) -> list[str]:
    """Imports that only one module may make."""
    return sorted(
        f"{path}:{line}: only {place} imports {library}"
        for path, line, module in _all_imports(sources)
        for library, place in ONLY.items()
        if _among(module, [library]) and path != place
    )


def clocks(sources: Sources, allowed: Collection[tuple[str, str]] = MAY_READ_CLOCK.keys()) -> list[str]:
    """Readings of a clock, and references to one, outside the list above."""
    return sorted(
        f"{path}:{line}: {name} reads a clock; take `now` or a Clock as an argument"
        for path, text in sources.items()
        for line, name in _clock_readings(_parse(text))
        if (path, name) not in allowed
    )


def dangerous(sources: Sources) -> list[str]:
    """Formats and calls that run what they are given, and imports whose target cannot be read off."""
    found = [
        f"{path}:{line}: {module} must not be imported"
        for path, line, module in _all_imports(sources)
        if _among(module, NEVER_IMPORT)
    ]
    for path, text in sources.items():
        tree = _parse(text)
        found += [f"{path}:{line}: {name}() must not be called" for line, name in _called(tree) if name in NEVER_CALL]
        found += [f"{path}:{line}: {trap}" for line, trap in _traps(tree)]
    return sorted(found)


def cycles(sources: Sources) -> list[str]:
    """One import cycle among the modules, if there is any; imports inside functions and for types count too."""
    modules = {_module(path): path for path in sources}
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for path, _, target in _all_imports(sources):
        if target in modules and target != _module(path):
            graph[_module(path)].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [" -> ".join(reversed(error.args[1]))]
    return []


# Reading one tree

_parse = functools.cache(ast.parse)  # every rule reads every file; no rule changes a tree


def imported(sources: Sources) -> set[str]:
    """Top-level names of all imported modules: ours, the standard library's and others'."""
    return {module.partition(".")[0] for _, _, module in _all_imports(sources)}


def _all_imports(sources: Sources) -> Iterator[tuple[str, int, str]]:
    for path, text in sources.items():
        for line, module in _imports(path, _parse(text), sources):
            yield path, line, module


def _imports(path: str, tree: ast.AST, sources: Sources) -> Iterator[tuple[int, str]]:
    """(line, dotted module) of each import anywhere in the tree; `from a import b` is a.b where that is a module."""
    modules = {_module(source) for source in sources}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(path, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield node.lineno, inner if inner in modules else base


def _absolute(path: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = path.split("/")[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def _called(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, full name) of each call whose target is a plain or dotted name, seen through import aliases."""
    names = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.lineno, _full_name(node.func, names)


def _clock_readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    names = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and _full_name(node, names) in CLOCKS:
            yield node.lineno, _full_name(node, names)
        elif isinstance(node, ast.Attribute) and node.attr == "time" and _is_loop(node.value):
            yield node.lineno, "loop.time"
        elif isinstance(node, ast.Call) and _full_name(node.func, names) == "numpy.datetime64" and _says_now(node):
            yield node.lineno, "numpy.datetime64"
        elif isinstance(node, ast.Call) and _full_name(node.func, names) == "email.utils.formatdate" and not node.args:
            yield node.lineno, "email.utils.formatdate"


def _is_loop(node: ast.expr) -> bool:
    """`loop`, `self._loop`, `asyncio.get_running_loop()`"""
    target = node.func if isinstance(node, ast.Call) else node
    name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    return name.endswith("loop")


def _says_now(call: ast.Call) -> bool:
    return any(isinstance(argument, ast.Constant) and argument.value in ("now", "today") for argument in call.args)


def _traps(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "xinclude":
            yield node.lineno, "xinclude() reads any file that the document names"
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and node.value.value is True:
            if node.arg == "allow_pickle":
                yield node.value.lineno, "allow_pickle=True runs what the file says"
            if node.arg == "shell":
                yield node.value.lineno, "shell=True runs what the string says"


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Name in this file -> full dotted name it was imported as."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname: alias.name for alias in node.names if alias.asname})
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _full_name(node: ast.expr, names: Mapping[str, str]) -> str:
    """`np.random.default_rng` -> numpy.random.default_rng; "" for anything but a dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


def _among(module: str, allowed: Iterable[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


def _folder(path: str) -> str:
    return path.partition("/")[0]


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
