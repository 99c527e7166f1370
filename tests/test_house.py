"""The rules of the house beside the direction of imports: names, docstrings, sizes, wiring, and what a process loads.

Where the house does not keep a rule yet, a bound or a table says how far it is from it. Bounds only sink and tables
only shrink: an entry that is not needed any more fails its test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import house, layers

ROOT = Path(__file__).parents[1]
OURS = layers.read(ROOT, layers.FOLDERS)

BARE_NAMES = 1.0
"""most bare words among 1,000 definitions"""
RIDDLES = 0
"""docstrings that begin with a relative clause"""
IMPORT_DEPTH = 15
"""modules in the longest chain of imports of the command"""
FUNCTION_LINES = 60
LARGEST_SHARE = 0.25

SAME_ROLE = {
    "__init__.py": "the map of each room",
    "routes.py": "the HTTP interface of each plug-in",
}
"""names that several rooms use for the same role, each room for its own"""


NEVER_LOADS = {
    "xyro": ("plyvel", "aiohttp", "lxml", "numpy", "msgspec", "xyro.opic", "xyro.metadata", "xyro.service"),
    "xyro.reader": ("plyvel", "numpy", "xyro.opic", "xyro.refresh", "xyro.metadata", "xyro.frontier", "xyro.service"),
    "xyro.frontier.frontier": ("aiohttp", "lxml", "uvloop", "xyro.configs.load", "xyro.service", "xyro.plugins"),
    "xyro.plugins.warehouse.query_child": (
        "plyvel",
        "aiohttp",
        "numpy",
        "xyro.metadata",
        "xyro.frontier",
        "xyro.client",
    ),
    "xyro.service.api.endpoints": ("aiohttp", "numpy", "prometheus_client", "xyro.service.views", "xyro.plugins"),
    "xyro.service.cli.main": ("plyvel", "aiohttp", "lxml", "numpy", "xyro.metadata", "xyro.lab"),
}
"""what a process or a library imports first -> what it must not load by that"""

# Names


def test_names_are_nouns_and_verbs() -> None:
    every = list(house.definitions(OURS))
    bare = [each for each in every if each.word in house.BARE_WORDS]
    assert 1000 * len(bare) / len(every) <= BARE_NAMES, "`python -m tests.house names` lists them"


def test_no_two_files_share_a_name() -> None:
    assert house.files_twice(OURS).keys() == SAME_ROLE.keys(), "`python -m tests.house twice`"


def test_no_two_public_classes_share_a_name() -> None:
    assert house.classes_twice(OURS) == {}, "`python -m tests.house twice` lists them"


def test_docstrings_begin_with_a_sentence() -> None:
    assert len(house.riddles(OURS)) <= RIDDLES, "`python -m tests.house docstrings` lists them"


# Sizes and wiring


def test_no_function_is_long() -> None:
    assert house.long_functions(OURS, FUNCTION_LINES) == []


def test_no_folder_holds_more_than_a_quarter() -> None:
    assert {folder: share for folder, share in house.shares(OURS).items() if share > LARGEST_SHARE} == {}


def test_the_imports_of_the_command_are_shallow() -> None:
    chain = house.import_depth(OURS, "xyro.service.cli.main")
    assert len(chain) <= IMPORT_DEPTH, " -> ".join(chain)


def test_objects_are_complete_when_constructed() -> None:
    assert house.wired_later(OURS) == []


def test_nobody_but_the_wiring_reaches_a_second_partition() -> None:
    assert house.partitions_reached(OURS) == []


def test_the_wiring_is_where_partitions_are_held() -> None:
    held = {path for path in house.WIRING if house.partitions_reached({f"plugins/{path}": OURS[path]})}
    assert held == house.WIRING, "a file that holds none is no wiring any more"


# What a process loads


@pytest.mark.parametrize("entry", NEVER_LOADS)
def test_a_process_loads_what_it_needs(entry: str) -> None:
    code = f"import sys, {entry}, json; print(json.dumps([*sys.modules]))"
    command = [sys.executable, "-c", code]
    loaded = set(json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60, cwd=ROOT).stdout))
    assert loaded.isdisjoint(NEVER_LOADS[entry])


# The counters, tried on sources


NAMES = """
import json as what
TOLD = 1
class Held:
    kept: int
    fine = 2
    def __init__(self, given, *, page, **most):
        self.known, self.page = given, page
        self.known = 3
        self.page.said = 4
    async def of(self):
        with self as taken:
            one: int = 5
        for at, place in ():
            pass
        try:
            return [who for who in (so := ())], lambda such: such
        except OSError as whom:
            pass
    def _looks_(self):
        told_pages = heard_ = 6
"""


def test_every_kind_of_definition_is_counted_once() -> None:
    found = {(each.kind, each.name.removeprefix("xyro.opic.a.")) for each in house.bare_names({"opic/a.py": NAMES})}
    assert found == {
        ("variable", "what"),
        ("variable", "TOLD"),
        ("class", "Held"),
        ("attribute", "Held.kept"),
        ("attribute", "Held.known"),
        ("parameter", "Held.__init__.given"),
        ("parameter", "Held.__init__.most"),
        ("function", "Held.of"),
        ("variable", "Held.of.taken"),
        ("variable", "Held.of.one"),
        ("variable", "Held.of.at"),
        ("variable", "Held.of.who"),
        ("variable", "Held.of.so"),
        ("parameter", "Held.of.<lambda 17:48>.such"),
        ("variable", "Held.of.whom"),
        ("function", "Held._looks_"),
        ("variable", "Held._looks_.heard_"),
    }
    others = {each.name.removeprefix("xyro.opic.a.") for each in house.definitions({"opic/a.py": NAMES})}
    fine = {"Held.fine", "Held.__init__", "Held.__init__.page", "Held.page", "Held.of.place", "Held._looks_.told_pages"}
    assert others - {name for _, name in found} == fine


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("class Page:\n    def read(self, told): ...", 2, 19),
        ("class Page:\n    async def told(self): ...", 2, 14),
        ("class Told(Page): ...", 1, 6),
        ("def read(self):\n    é, told = self", 2, 7),
        ("import page as told", 1, 15),
        ("class A:\n    def f(self):\n        self.told = 1", 3, 13),
        ("class A:\n    def f(self):\n        é, self.told = 1, 2", 3, 16),
        ("try:\n    f()\nexcept OSError as told:\n    pass", 3, 18),
    ],
)
def test_a_definition_says_where_its_name_stands(text: str, line: int, column: int) -> None:
    (found,) = house.bare_names({"opic/a.py": text})
    assert (found.line, found.column, found.word) == (line, column, "told")


def test_a_shared_name_is_found() -> None:
    sources = {"opic/a.py": "class Page: ...\nclass _Row: ...", "wire/a.py": "class Page: ...\nclass _Row: ..."}
    assert house.files_twice(sources) == {"a.py": ["opic/a.py", "wire/a.py"]}
    assert house.classes_twice(sources) == {"Page": ["opic/a.py", "wire/a.py"]}


@pytest.mark.parametrize(
    ("summary", "riddle"),
    [
        ("What a page costs.", True),
        ("Who asks for pages.", True),
        ("`Such` pages.", True),
        ("The cost of a page.", False),
        ("Whole pages.", False),
        ("Read what is due.", False),
    ],
)
def test_a_riddle_is_found(summary: str, riddle: bool) -> None:
    text = f'"""A module."""\nclass A:\n    """A class."""\n    def f(self):\n        """{summary}\n\n        More."""'
    assert [each.name for each, _ in house.riddles({"opic/a.py": text})] == ["xyro.opic.a.A.f"] * riddle


def test_a_long_function_is_found() -> None:
    text = "@cache\ndef f():\n" + "    pass\n" * 4
    assert house.long_functions({"opic/a.py": text}, 5) == []
    assert house.long_functions({"opic/a.py": text}, 4) == ["opic/a.py:2: f has 5 lines"]


def test_shares_leave_the_laboratory_aside() -> None:
    sources = {"opic/a.py": "\n" * 30, "wire/a.py": "\n" * 10, "lab/a.py": "\n" * 99}
    assert house.shares(sources) == {"opic": 0.75, "wire": 0.25}


def test_the_deepest_chain_counts_imports_in_functions_but_none_for_types() -> None:
    sources = {
        "opic/a.py": "from xyro.opic import b, d",
        "opic/b.py": "def f():\n    import xyro.opic.c",
        "opic/c.py": "import typing\nif typing.TYPE_CHECKING:\n    import xyro.opic.d",
        "opic/d.py": "",
    }
    assert house.import_depth(sources, "xyro.opic.a") == ["xyro.opic.a", "xyro.opic.b", "xyro.opic.c"]


def test_wiring_after_construction_is_found() -> None:
    text = "def f(node, row):\n    node.promises.watch = row\n    row.watch = 1\n    node.pages.count += 1"
    assert house.wired_later({"frontier/a.py": text}) == [("frontier/a.py", "node.promises.watch")]


@pytest.mark.parametrize(
    ("text", "finds"),
    [
        ("def f(frontiers: Sequence[Frontier]): ...", True),
        ("def f() -> 'dict[int, Partition]': ...", True),
        ("class A:\n    nodes: list['Frontier']", True),
        ("class A:\n    nodes: 'list[Frontier]'", True),
        ("def f(ours: Frontier, theirs: Frontier): ...", True),
        ("def f(node):\n    return node.frontiers[0]", True),
        ("def f(data):\n    return data.partitions[0]", True),
        ("def f(data):\n    for partition in data.partitions: ...", True),
        ("def f(frontier: Frontier, partitions: int) -> Callable[[Frontier], object]: ...", False),
        ("def f(sender):\n    return range(sender.partitions)", False),
        ("@contextmanager\ndef f() -> Iterator[Partition]: ...", False),
        ("extensions: Sequence[Callable[[Frontier], object]]", False),
    ],
)
def test_a_second_partition_is_found(text: str, finds: bool) -> None:
    assert bool(house.partitions_reached({"plugins/a.py": text})) is finds
    assert house.partitions_reached({"service/node/node.py": text, "lab/a.py": text}) == []
