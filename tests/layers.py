"""Reads the source of every module and reports where it breaks the rules of the house (tests/test_layers.py).

Nothing is imported: a module is its path and its text, so the rules are tried on made-up sources too.

In: Sources, path below the project's root -> text. Out: "path:line: what is wrong", sorted.

The folders of the repository are installed inside the package `xyro` (xyro/metadata is a link to ../metadata), so the
file metadata/store.py is the module xyro.metadata.store. A room is a package, named as its module is without the
leading `xyro.`; the modules that lie directly in xyro/ are the room `xyro`.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

Sources = Mapping[str, str]
Nodes = tuple[ast.AST, ...]

FOLDERS = (
    *("wire", "configs", "opic", "refresh", "xyro", "loader", "metadata"),
    *("frontier", "service", "plugins", "library", "lab"),
)
"""the folders that are installed, each checked once: through its own path, not through the link in xyro/"""

FLOOR = ("wire",)
ALGORITHMS = (*FLOOR, "opic", "refresh")
MATERIAL = (*ALGORITHMS, "xyro", "loader", "metadata")
CORE = (*MATERIAL, "frontier")
VIEWS = (*CORE, "configs", "service.views")
NODE = (*VIEWS, "service.node")
PLUGINS = (
    "plugins.publish",
    "plugins.bounded",
    "plugins.totals",
    "plugins.clusters",
    "plugins.contents",
    "plugins.focus",
    "plugins.warehouse",
    "plugins.rank",
    "plugins.changes",
    "plugins.metrics",
    "plugins.sites",
    "plugins.dashboard",
    "plugins.identity",
    "plugins.faults",
)
FACE = (*NODE, *PLUGINS, "plugins", "service.cluster")
SERVICE = (*FACE, "service.api", "library", "service.cli")
LAB = (*SERVICE, "lab", "lab.web")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "wire": (),
    "configs": ("wire.errors", "wire.durations", "wire.sizes"),
    "opic": FLOOR,
    "refresh": FLOOR,
    "xyro": FLOOR,
    "loader": FLOOR,
    "metadata": ALGORITHMS,
    "frontier": (*ALGORITHMS, "configs.schema", "loader", "metadata"),  # typed settings, but no files of them
    "service": (),
    "service.views": (*CORE, "configs"),
    "service.node": VIEWS,
    **dict.fromkeys(PLUGINS, NODE),
    "plugins": (*NODE, *PLUGINS),
    "service.cluster": (*NODE, *PLUGINS, "plugins"),
    "service.api": FACE,
    "library": (*FACE, "service.api"),
    "service.cli": (*FACE, "service.api"),
    "xyro.__main__": ("service.cli",),
    "lab": SERVICE,
    "lab.web": (*SERVICE, "lab"),
    "lab.opic": LAB,
    "lab.order": LAB,
    "lab.hostile": (*LAB, "lab.speed", "lab.zoo"),
    "lab.refresh": LAB,
    "lab.crash": LAB,
    "lab.simulate": LAB,
    "lab.speed": (*LAB, "lab.refresh"),
    "lab.walk": LAB,
    "lab.zoo": LAB,
    "lab.polite": (*LAB, "lab.hostile", "lab.zoo"),
    "lab.crawls": (*LAB, "lab.refresh", "lab.speed"),
    "lab.command": (
        *LAB,
        "lab.opic",
        "lab.refresh",
        "lab.crash",
        "lab.speed",
        "lab.walk",
        "lab.zoo",
        "lab.crawls",
        "lab.order",
        "lab.hostile",
        "lab.polite",
        "lab.simulate",
    ),
}
"""room -> which other rooms its modules may import, drawn from the floor up: no row names a room below itself, and
siblings do not name each other. The row `plugins` is for the lists of them all.
A module that stands apart from its package (lab.command) has a row of its own."""

EXCEPTIONS: frozenset[tuple[str, str]] = frozenset()
"""(file, module it imports against the direction): there were 46; the list is empty and stays so"""

PURE_FOLDERS = ("opic", "refresh")
PURE_WORDS = {"__future__", "abc", "collections", "dataclasses", "enum", "msgspec", "types", "typing", "xyro.wire"}
PURE_WORDS |= {f"xyro.{folder}" for folder in PURE_FOLDERS}
PURE_NUMBERS = {"array", "bisect", "fractions", "heapq", "math", "numba", "numpy", "struct"}
PURE_IMPORTS = PURE_WORDS | PURE_NUMBERS | {"copy", "functools", "itertools", "operator"}
"""all that a pure module may import: no file, socket, clock, thread or source of randomness is among it"""
PURE_NEVER = {"open", "print", "input", "numpy.random.default_rng", "numpy.random.seed", "numpy.load"}

ONLY = {"plyvel": "metadata/store.py"}
"""library -> the only module that may import it"""

NEVER_IMPORT = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "tests"}
YAML_RUNS = {f"yaml.{name}" for name in ("load", "load_all", "full_load", "full_load_all", "unsafe_load")}
NEVER_CALL = {"eval", "exec", "compile", "__import__", "importlib.import_module", "os.system", "os.popen", *YAML_RUNS}
MAY_CALL = {
    ("xyro/__init__.py", "importlib.import_module"): "the library's names, out of a table that stands there",
    ("service/cli/main.py", "importlib.import_module"): "the commands, out of a table that stands there",
}

TIMERS = ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")
CLOCKS = {f"time.{name}{unit}" for name in TIMERS for unit in ("", "_ns")}
CLOCKS |= {"time.sleep", "time.localtime", "time.gmtime", "time.ctime", "email.utils.localtime", "os.times"}
CLOCKS |= {f"datetime.{name}" for name in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")}
MAY_READ_CLOCK = {
    ("wire/clock.py", "time.time"): "the clock itself",
    ("wire/clock.py", "time.monotonic"): "the clock itself",
    **{
        (f"xyro/{file}.py", "loop.time"): "a connection's times are compared inside one call of the loop's own timer"
        for file in ("client", "fast_client", "exchange")
    },
}


def read(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """Return the Python sources below root/folder for each folder. Links are not followed: no file is read twice."""
    paths = (
        Path(place, name)
        for folder in folders
        for place, _, names in os.walk(root / folder, followlinks=False)
        for name in names
        if name.endswith(".py")
    )
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


@functools.cache
def room_of(module: str) -> str:
    """Return the room of one of our modules: the longest row of the table that the module lies in.

    `xyro.service.node.node` -> `service.node`; `xyro.client` and `xyro` -> `xyro`; "" for a module that is not ours.
    """
    package, _, inside = module.partition(".")
    if package != "xyro":
        return ""
    rooms = [room for room in MAY_IMPORT if _among(inside, [room]) or module == room]
    return max(rooms, key=len, default="xyro")


def edges(sources: Sources) -> Iterator[tuple[str, int, str]]:
    """Yield (path, line, module) of each import of a module in a room that is not its own."""
    for path, line, module in _all_imports(sources):
        if room_of(module) not in ("", room_of(module_of(path))):
            yield path, line, module


def direction(sources: Sources, exceptions: Collection[tuple[str, str]] = ()) -> list[str]:
    """Report imports against the direction of the table, but for (path, module) among the exceptions."""
    return sorted(
        f"{path}:{line}: {room_of(module_of(path))} must not import {module}"
        for path, line, module in edges(sources)
        if not _may_import(room_of(module_of(path)), module) and (path, module) not in exceptions
    )


def _may_import(room: str, module: str) -> bool:
    """A row names rooms (their sub-rooms have rows of their own), or a single module of a room."""
    return room_of(module) in MAY_IMPORT[room] or module.removeprefix("xyro.") in MAY_IMPORT[room]


def short_names(sources: Sources) -> list[str]:
    """Report imports of our folders as if they were packages of their own: the module would be loaded twice."""
    inner = set(FOLDERS) - {"xyro"}
    return sorted(
        f"{path}:{line}: import xyro.{module}, not {module}"
        for path, line, module in _all_imports(sources)
        if module.partition(".")[0] in inner
    )


def room_cycles(sources: Sources, exceptions: Collection[tuple[str, str]] = ()) -> list[str]:
    """Report one import cycle among the rooms, if there is any."""
    graph: dict[str, set[str]] = {}
    for path, _, module in edges(sources):
        if (path, module) not in exceptions:
            graph.setdefault(room_of(module_of(path)), set()).add(room_of(module))
    return ring(graph)


def impure(sources: Sources) -> list[str]:
    """I/O, clocks and randomness in the folders that are pure."""
    found = []
    for path, text in sources.items():
        if _folder(path) in PURE_FOLDERS:
            nodes = _parse(text)
            imports = _imports(path, text, {module_of(source) for source in sources})
            wrong = [(line, module) for line, module in imports if not _among(module, PURE_IMPORTS)]
            wrong += [(line, name) for line, name in _called(nodes) if name in PURE_NEVER]
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
        nodes = _parse(text)
        found += [
            f"{path}:{line}: {name}() must not be called"
            for line, name in _called(nodes)
            if name in NEVER_CALL and (path, name) not in MAY_CALL
        ]
        found += [f"{path}:{line}: {trap}" for line, trap in _traps(nodes)]
    return sorted(found)


def cycles(sources: Sources) -> list[str]:
    """Report one import cycle among the modules, if there is any; imports inside functions and for types count too."""
    modules = {module_of(path): path for path in sources}
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for path, _, target in _all_imports(sources):
        if target in modules and target != module_of(path):
            graph[module_of(path)].add(target)
    return ring(graph)


def ring(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Return one cycle of the graph, written as a chain of names, or nothing."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [" -> ".join(reversed(error.args[1]))]
    return []


# Reading one tree

KINDS = (ast.Import, ast.ImportFrom, ast.Call, ast.Name, ast.Attribute, ast.keyword)


@functools.cache
def parsed(text: str) -> ast.Module:
    """Parse a source once, however many rules look at it; nobody changes its tree."""
    return ast.parse(text)


@functools.cache
def _parse(text: str) -> tuple[ast.AST, ...]:
    """Every rule reads every file, and no rule changes a tree: the nodes the rules look at are found once."""
    return tuple(node for node in ast.walk(parsed(text)) if isinstance(node, KINDS))


@functools.cache
def _import_nodes(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(node for node in _parse(text) if isinstance(node, ast.Import | ast.ImportFrom))


def imported(sources: Sources) -> set[str]:
    """Return the top-level names of all imported modules: ours, the standard library's and others'."""
    return {module.partition(".")[0] for _, _, module in _all_imports(sources)}


def _all_imports(sources: Sources) -> Iterator[tuple[str, int, str]]:
    modules = {module_of(source) for source in sources}
    for path, text in sources.items():
        for line, module in _imports(path, text, modules):
            yield path, line, module


def _imports(path: str, text: str, modules: Collection[str]) -> Iterator[tuple[int, str]]:
    for node in _import_nodes(text):
        yield from targets(path, node, modules)


def targets(path: str, node: ast.Import | ast.ImportFrom, modules: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted module) of what a statement imports; `from a import b` is a.b where that is a module."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield node.lineno, alias.name
    else:
        base = _absolute(path, node)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield node.lineno, inner if inner in modules else base


def _absolute(path: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    within = module_of(path).split(".") + (["__init__"] if path.endswith("/__init__.py") else [])
    package = within[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def _called(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """(line, full name) of each call whose target is a plain or dotted name, seen through import aliases."""
    names = _aliases(nodes)
    for node in nodes:
        if isinstance(node, ast.Call):
            yield node.lineno, _full_name(node.func, names)


def _clock_readings(nodes: Nodes) -> Iterator[tuple[int, str]]:
    names = _aliases(nodes)
    for node in nodes:
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


def _traps(nodes: Nodes) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "xinclude":
            yield node.lineno, "xinclude() reads any file that the document names"
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and node.value.value is True:
            if node.arg == "allow_pickle":
                yield node.value.lineno, "allow_pickle=True runs what the file says"
            if node.arg == "shell":
                yield node.value.lineno, "shell=True runs what the string says"


def _aliases(nodes: Nodes) -> dict[str, str]:
    """Name in this file -> full dotted name it was imported as."""
    names: dict[str, str] = {}
    for node in nodes:
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


def module_of(path: str) -> str:
    """Return the name under which a file is imported: metadata/store.py -> xyro.metadata.store."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    inner = set(FOLDERS) - {"xyro"}
    return f"xyro.{name}" if name.partition(".")[0] in inner else name
