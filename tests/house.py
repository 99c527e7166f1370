"""Counts what the rules of the house forbid: bare words as names, names that stand twice, riddles in docstrings, size.

    python -m tests.house             each counter's figure, one line each
    python -m tests.house names       every bare name as a line of JSON: file, line, column, name, kind, word
    python -m tests.house docstrings  every docstring that begins with a riddle, in the same form
    python -m tests.house twice       every name of a file or class that stands twice, with its places

Like tests/layers.py it reads sources and imports nothing of them; tests/test_house.py holds the bounds. Order of the
lines: by file, then by place in the file.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests import layers
from tests.layers import Sources, module_of

PARTICIPLES = ("told", "said", "given", "held", "kept", "taken", "known", "heard", "looks")
PRONOUNS = ("one", "such", "those", "who", "what", "whom", "most", "so")
PREPOSITIONS = ("at", "of")
BARE_WORDS = frozenset((*PARTICIPLES, *PRONOUNS, *PREPOSITIONS))
"""words that say nothing by themselves: a name is a noun or a verb of the field"""

RIDDLES = frozenset(("what", "who", "whom", "whose", "those", "such", "whoever", "whatever", "whichever"))
"""first words of a summary that names its thing by a relative clause"""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Definition:
    """One name that a module gives to something, at the place where it first stands."""

    file: str
    line: int
    """from 1"""
    column: int
    """of the name itself, in characters from 0"""
    name: str
    """dotted, from the module down: xyro.frontier.ledger.Ledger.spend.page"""
    kind: str
    """function, class, parameter, attribute or variable"""

    @property
    def word(self) -> str:
        """The name itself, without its place and without underscores around it."""
        return self.name.rpartition(".")[2].strip("_").lower()


# Names


class _Definitions(ast.NodeVisitor):
    """Collects the definitions of one module: each name once in its scope, attributes of self once in their class."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._lines = text.split("\n")
        self.found: dict[tuple[str, str], Definition] = {}
        self._scopes = [module_of(path)]
        self._classes: list[str] = []
        """scopes of the classes around this place, the innermost last"""

    def _add(self, node: ast.AST, name: str, kind: str, scope: str | None = None) -> None:
        where = self._scopes[-1] if scope is None else scope
        line, column = self._place(node, name)
        self.found.setdefault((where, name), Definition(self.path, line, column, f"{where}.{name}", kind))

    def _place(self, node: ast.AST, name: str) -> tuple[int, int]:
        """Where the name itself stands: in `def name`, `import x as name` and `self.name` not where the node begins."""
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Attribute):
            line, offset = node.end_lineno or line, (node.end_col_offset or 0) - len(name.encode())
        row = self._lines[line - 1]
        column = len(row.encode()[:offset].decode())  # trees count bytes
        before = r"\bas\s+" if isinstance(node, ast.ExceptHandler | ast.alias | ast.MatchAs) else ""
        match = re.compile(rf"{before}(\b{name}\b)").search(row, column)
        return line, match.start(1) if match else column

    def _inside(self, name: str, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        self._scopes.append(f"{self._scopes[-1]}.{name}")
        for node in nodes:
            self.visit(node)
        self._scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._add(node, node.name, "class")
        self._classes.append(f"{self._scopes[-1]}.{node.name}")
        self._inside(node.name, node.body)
        self._classes.pop()

    def visit_FunctionDef(self, node: Function) -> None:
        self._add(node, node.name, "function")
        for outer in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(outer)
        self._parameters(node.args, node.name)
        self._inside(node.name, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._parameters(node.args, f"<lambda {node.lineno}:{node.col_offset}>")
        self.generic_visit(node)

    def _parameters(self, arguments: ast.arguments, function: str) -> None:
        scope = f"{self._scopes[-1]}.{function}"
        listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in (*listed, *filter(None, (arguments.vararg, arguments.kwarg))):
            if argument.arg not in ("self", "cls"):
                self._add(argument, argument.arg, "parameter", scope)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            in_class = bool(self._classes) and self._scopes[-1] == self._classes[-1]
            self._add(node, node.id, "attribute" if in_class else "variable")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if isinstance(node.ctx, ast.Store) and of_self and self._classes:
            self._add(node, node.attr, "attribute", self._classes[-1])
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._add(node, node.name, "variable")
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        if node.asname:
            self._add(node, node.asname, "variable")

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._add(node, node.name, "variable")
        self.generic_visit(node)


def definitions(sources: Sources) -> Iterator[Definition]:
    """Yield each function, class, parameter, attribute (assigned on self or in a class body) and variable."""
    for path, text in sorted(sources.items()):
        visitor = _Definitions(path, text)
        visitor.visit(layers.parsed(text))
        yield from sorted(visitor.found.values(), key=lambda each: (each.line, each.column))


def bare_names(sources: Sources) -> list[Definition]:
    """Return the definitions whose whole name is a bare word, underscores around it aside."""
    return [each for each in definitions(sources) if each.word in BARE_WORDS]


def files_twice(sources: Sources) -> dict[str, list[str]]:
    """Return the names of files that several files of the product share, each with its paths."""
    return _shared((path.rpartition("/")[2], path) for path in sorted(sources))


def classes_twice(sources: Sources) -> dict[str, list[str]]:
    """Return the names of public classes that stand in several files, each with its paths."""
    return _shared(
        (node.name, path)
        for path, text in sorted(sources.items())
        for node in layers.parsed(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def _shared(pairs: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for name, path in pairs:
        places.setdefault(name, []).append(path)
    return {name: paths for name, paths in sorted(places.items()) if len(paths) > 1}


# Prose


def summaries(sources: Sources) -> Iterator[tuple[Definition, str]]:
    """Yield the first line of each docstring, with the module, class or function it belongs to.

    The strings below attributes and constants are notes, not sentences, and are not looked at.
    """
    for path, text in sorted(sources.items()):
        for name, node in _documented(layers.parsed(text), module_of(path)):
            docstring = ast.get_docstring(node)
            if docstring:
                kind = {ast.Module: "module", ast.ClassDef: "class"}.get(type(node), "function")
                place = node.body[0]
                yield Definition(path, place.lineno, place.col_offset, name, kind), docstring.partition("\n")[0]


def _documented(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Module | ast.ClassDef | Function]]:
    """Yield the tree's module, classes and functions, each with its dotted name."""
    if isinstance(node, ast.Module | ast.ClassDef | Function):
        yield name, node
    for child in ast.iter_child_nodes(node):
        yield from _documented(child, f"{name}.{child.name}" if isinstance(child, ast.ClassDef | Function) else name)


def riddles(sources: Sources) -> list[tuple[Definition, str]]:
    """Return the summaries whose first word is a relative or demonstrative pronoun."""
    found = []
    for definition, summary in summaries(sources):
        word = re.match(r"\W*([A-Za-z]+)", summary)
        if word and word[1].lower() in RIDDLES:
            found.append((definition, summary))
    return found


# Size


def long_functions(sources: Sources, limit: int) -> list[str]:
    """Report the functions of more than `limit` lines, decorators aside."""
    return sorted(
        f"{path}:{node.lineno}: {node.name} has {length} lines"
        for path, text in sources.items()
        for node in ast.walk(layers.parsed(text))
        if isinstance(node, FUNCTIONS) and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > limit
    )


def shares(sources: Sources) -> dict[str, float]:
    """Return each top folder's part of the product's lines, the laboratory aside, the largest first."""
    lines: Counter[str] = Counter()
    for path, text in sources.items():
        lines[path.partition("/")[0]] += text.count("\n")
    del lines["lab"]
    return {folder: count / lines.total() for folder, count in lines.most_common()}


def import_depth(sources: Sources, start: str) -> list[str]:
    """Return the longest chain of modules of ours from `start` on, each importing the next, be it in a function.

    Imports for types only are left out: they are never run.
    """
    graph: dict[str, set[str]] = {}
    modules = {module_of(path) for path in sources}
    for path, text in sources.items():
        imported = {
            target for node in _loaded(layers.parsed(text)) for _, target in layers.targets(path, node, modules)
        }
        graph[module_of(path)] = (imported & modules) - {module_of(path)}
    chains: dict[str, list[str]] = {}

    def longest(module: str) -> list[str]:
        if module not in chains:
            chains[module] = []  # a cycle ends here; tests/test_layers.py finds it
            chains[module] = [module, *max((longest(target) for target in graph[module]), key=len, default=[])]
        return chains[module]

    return longest(start)


def _loaded(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    if isinstance(tree, ast.Import | ast.ImportFrom):
        yield tree
    elif not (isinstance(tree, ast.If) and ast.unparse(tree.test).endswith("TYPE_CHECKING")):
        for child in ast.iter_child_nodes(tree):
            yield from _loaded(child)


# Wiring


COMPOSED = ("frontier", "service", "plugins")
"""folders whose objects are given their collaborators by their constructors"""


def wired_later(sources: Sources) -> list[tuple[str, str]]:
    """Return (file, target) of each assignment to an attribute of an object that is itself an attribute of another.

    `node.promises.watch = ...` gives an object a collaborator after its construction: nobody who reads the constructor
    knows of it. `self.watch = ...` and `row.watch = ...` are of no concern here.
    """
    found = set()
    for path, text in sources.items():
        if path.partition("/")[0] in COMPOSED:
            for node in ast.walk(layers.parsed(text)):
                for target in node.targets if isinstance(node, ast.Assign) else ():
                    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute):
                        found.add((path, ast.unparse(target)))
    return sorted(found)


# Partitions

PARTITION_TYPES = frozenset(("Frontier", "Partition", "PartitionLoop"))
"""classes whose objects are a partition, or lead to one"""
WIRING = frozenset(
    f"service/node/{name}.py"
    for name in ("node", "stopped", "crawl_views", "data_dir", "backup", "repair", "joint_settling")
)
"""the reference wiring: it makes the partitions of a process, and hands each thing the one that it is for; the copy and
the repair of a whole directory; and the importance of a crawl that has ended, which is one process's alone"""
PARTITION_LISTS = frozenset(("frontiers", "partition_loops"))
"""attributes of the wiring that hold all partitions of a process"""


def partitions_reached(sources: Sources) -> list[str]:
    """Return the places outside of the wiring where a second partition can be reached, as lines.

    Partitions may live in different processes: whoever has several in his hands works in one process alone. So nothing
    takes a collection of them or two at once, or asks the wiring for its own; `data.partitions` counts, too, where it
    is more than a number.
    """
    found = []
    for path, text in sources.items():
        if path.partition("/")[0] in COMPOSED and path not in WIRING:
            for node in ast.walk(layers.parsed(text)):
                found += [f"{path}: {reason}"] if (reason := _second_partition(node)) else []
    return sorted(found)


def _second_partition(node: ast.AST) -> str:
    """Tell how a node reaches a second partition; empty where it does not."""
    if isinstance(node, ast.Attribute) and node.attr in PARTITION_LISTS:
        return ast.unparse(node)
    every = node.iter if isinstance(node, ast.For | ast.comprehension) else None
    indexed = node.value if isinstance(node, ast.Subscript) else every
    if isinstance(indexed, ast.Attribute) and indexed.attr == "partitions":
        return ast.unparse(indexed)
    if isinstance(node, FUNCTIONS):
        hints = [each.annotation for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        if sum(_partition_types(hint) for hint in hints if hint is not None) > 1:
            return f"{node.name} takes two partitions"
        yields = any("contextmanager" in ast.unparse(each) for each in node.decorator_list)
        hints += [] if yields else [node.returns]
        held = [hint for hint in hints if hint is not None and _holds_partitions(hint)]
        return f"{node.name}: {ast.unparse(held[0])}" if held else ""
    if isinstance(node, ast.AnnAssign) and _holds_partitions(node.annotation):
        return ast.unparse(node.annotation)
    return ""


def _partition_types(hint: ast.AST) -> int:
    """Count the partitions that an annotation names, quoted or not."""
    return sum(word in PARTITION_TYPES for word in re.findall(r"\w+", ast.unparse(hint)))


def _holds_partitions(hint: ast.AST) -> bool:
    """Tell whether an annotation is a collection of partitions; a function that takes one is none."""
    text = ast.unparse(hint)
    return "[" in text and "Callable" not in text and _partition_types(hint) > 0


# The command


def report(sources: Sources) -> Iterator[str]:
    """Yield each counter's figure as a line."""
    every = list(definitions(sources))
    bare = [each for each in every if each.word in BARE_WORDS]
    yield f"bare words as names: {len(bare)} of {len(every)} definitions, {1000 * len(bare) / len(every):.1f} per 1,000"
    for word, count in Counter(each.word for each in bare).most_common():
        yield f"    {word} {count}"
    prose = list(summaries(sources))
    yield f"docstrings that begin with a riddle: {len(riddles(sources))} of {len(prose)}"
    for kind, shared in (("files", files_twice(sources)), ("public classes", classes_twice(sources))):
        yield f"names of {kind} that stand twice: {len(shared)}: {', '.join(shared)}"
    yield f"functions of more than 60 lines: {len(long_functions(sources, 60))}"
    yield f"exceptions to the direction of imports: {len(layers.EXCEPTIONS)}"
    yield f"collaborators assigned after construction: {len(wired_later(sources))}"
    yield f"places that reach a second partition: {len(partitions_reached(sources))}"
    largest, share = next(iter(shares(sources).items()))
    yield f"largest top folder: {largest}, {share:.1%} of the lines"
    yield f"import depth of the command: {len(import_depth(sources, 'xyro.service.cli.main'))}"


def main(arguments: list[str]) -> None:
    """Print the report, or the list that the first argument names."""
    sources = layers.read(Path(__file__).parents[1], layers.FOLDERS)
    if arguments == ["names"]:
        for each in bare_names(sources):
            print(json.dumps(asdict(each) | {"word": each.word}))
    elif arguments == ["docstrings"]:
        for each, summary in riddles(sources):
            print(json.dumps(asdict(each) | {"summary": summary}))
    elif arguments == ["twice"]:
        for name, paths in (files_twice(sources) | classes_twice(sources)).items():
            print(json.dumps({"name": name, "files": paths}))
    else:
        print(*report(sources), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
