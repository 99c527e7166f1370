"""The direction of imports, and the other rules of the house that can be read off the source."""

import re
from pathlib import Path

import pytest

from tests import layers

ROOT = Path(__file__).parents[1]
OURS = layers.read(ROOT, layers.FOLDERS)
TESTS = layers.read(ROOT, ["tests"])


def test_every_package_has_its_row_and_was_read() -> None:
    packages = {path.rpartition("/")[0].replace("/", ".") for path in OURS if path.endswith("/__init__.py")}
    apart = {"xyro.__main__", "lab.command"}
    planned = {"service.cluster"}
    assert packages | planned | apart == layers.MAY_IMPORT.keys()
    assert {path.partition("/")[0] for path in OURS} == set(layers.FOLDERS)


def test_every_folder_is_installed_by_a_link_and_read_once() -> None:
    links = {path.name: path.readlink().as_posix() for path in (ROOT / "xyro").iterdir() if path.is_symlink()}
    assert links == {folder: f"../{folder}" for folder in layers.FOLDERS if folder != "xyro"}
    assert not [path for path in OURS if path.startswith("xyro/") and path.count("/") > 1]


def test_the_table_itself_goes_one_way() -> None:
    rows = set(layers.MAY_IMPORT) | {"wire.errors", "wire.durations", "wire.sizes", "configs.schema"}
    assert {room for row in layers.MAY_IMPORT.values() for room in row} <= rows
    assert layers.ring({room: [*row] for room, row in layers.MAY_IMPORT.items()}) == []


def test_imports_go_down() -> None:
    assert layers.direction(OURS, layers.EXCEPTIONS) == []


def test_no_exception_is_kept_that_is_not_needed() -> None:
    needed = {(path, module) for path, _, module in layers.edges(OURS)}
    assert sorted(layers.EXCEPTIONS - needed) == []


def test_no_room_imports_itself_by_a_detour() -> None:
    assert layers.room_cycles(OURS, layers.EXCEPTIONS) == []


def test_every_import_names_the_one_package() -> None:
    assert layers.short_names(OURS) == []
    assert layers.short_names(TESTS) == []


def test_the_service_does_not_know_the_laboratory() -> None:
    """`xyro lab` is found by its entry point: below lab/, neither an import nor a string names a module of it."""
    others = {path: text for path, text in OURS.items() if not path.startswith("lab/")}
    assert [path for path, _, module in layers.edges(others) if module.startswith("xyro.lab")] == []
    assert [path for path, text in others.items() if re.search(r"""["']xyro\.lab\b""", text)] == []


def test_opic_and_refresh_are_pure() -> None:
    assert layers.impure(OURS) == []


def test_only_the_store_imports_leveldb() -> None:
    assert layers.misplaced(OURS) == []
    assert layers.misplaced({"metadata/other.py": OURS["metadata/store.py"]}), "the store does not import it any more"


def test_only_the_clock_reads_a_clock() -> None:
    assert layers.clocks(OURS) == []


def test_every_leave_to_read_a_clock_is_needed() -> None:
    for leave in layers.MAY_READ_CLOCK:
        others = layers.MAY_READ_CLOCK.keys() - {leave}
        assert layers.clocks({leave[0]: OURS[leave[0]]}, others), f"{leave} is not used any more"


def test_nothing_runs_what_it_is_given() -> None:
    assert layers.dangerous(OURS) == []
    assert [line for line in layers.dangerous(TESTS) if not re.search(": (tests|__import__|importlib)", line)] == []


def test_no_module_imports_itself_by_a_detour() -> None:
    assert layers.cycles(OURS) == []


# The rules, tried on sources that break them


@pytest.mark.parametrize(
    ("path", "text", "room"),
    [
        ("xyro/client.py", "import xyro.metadata.store", "xyro"),
        ("xyro/client.py", "from xyro.loader.intake import Intake", "xyro"),
        ("loader/intake.py", "def later():\n    from xyro import pool", "loader"),
        ("metadata/partition.py", "from xyro.fetch_queue import Orders", "metadata"),
        ("metadata/partition.py", "import xyro.configs", "metadata"),
        ("xyro/client.py", "from xyro.opic.cash import split", "xyro"),
        ("opic/cash.py", "from xyro.refresh.sharing import plan", "opic"),
        ("refresh/plan.py", "import xyro.opic", "refresh"),
        ("wire/urls.py", "from xyro.configs.schema import Settings", "wire"),
        ("wire/urls.py", "import xyro.service.cli.main as cli", "wire"),
        ("configs/load.py", "from xyro.wire import urls", "configs"),
        ("configs/load.py", "from xyro.wire.messages import FetchOrder", "configs"),
        ("frontier/frontier.py", "from xyro.plugins.publish.watch import Watch", "frontier"),
        ("frontier/frontier.py", "from xyro.configs.load import load", "frontier"),
        ("frontier/frontier.py", "from xyro.service.node import node", "frontier"),
        ("service/views/top.py", "from xyro.service.node.node import Node", "service.views"),
        ("service/node/node.py", "from xyro.plugins.rank.compute import compute", "service.node"),
        ("service/node/node.py", "from ..api import http_api", "service.node"),
        ("plugins/rank/compute.py", "from xyro.plugins.publish.watch import Watch", "plugins.rank"),
        ("plugins/rank/compute.py", "from xyro.service.api.http_api import Api", "plugins.rank"),
        ("service/api/http_api.py", "from xyro.service.cli.main import main", "service.api"),
        ("service/cli/main.py", "from xyro.lab.command import lab", "service.cli"),
        ("lab/web/server.py", "from xyro.lab.opic.parts import x", "lab.web"),
        ("lab/zoo/attacks.py", "from xyro.lab.crash import kill", "lab.zoo"),
        (
            "metadata/store.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from xyro.service.node.node import Node",
            "metadata",
        ),
    ],
)
def test_an_import_against_the_direction_is_found(path: str, text: str, room: str) -> None:
    (found,) = layers.direction({"wire/urls.py": "", "xyro/pool.py": "", "service/node/node.py": "", path: text})
    line = 1 + next(number for number, row in enumerate(text.split("\n")) if "import" in row and "typing" not in row)
    assert found.startswith(f"{path}:{line}: {room} must not import ")


def test_imports_with_the_direction_pass() -> None:
    sources = {
        "configs/load.py": "from xyro.wire.errors import InputError\nfrom xyro.wire import errors\nimport xyro.configs",
        "wire/errors.py": "",
        "frontier/scope.py": "from xyro.configs.schema import Settings",
        "metadata/partition.py": "from xyro.opic.cash import CashTable\nimport xyro.refresh.change",
        "frontier/frontier.py": "from xyro.metadata import manager\nfrom .batch import B\nfrom ..wire import messages",
        "plugins/rank/compute.py": "from xyro.service.node.node import Node\nimport xyro.frontier.scope",
        "lab/speed/measures.py": "import xyro.metadata.partition, xyro.pool, xyro.loader.intake, xyro.opic.cash",
        "lab/web/server.py": "from xyro.service.node import node\nfrom xyro.configs import load",
        "service/cli/main.py": "from xyro.configs import load\nfrom xyro.plugins.rank import compute",
        "xyro/pool.py": "from .client import Client\nfrom xyro.wire.clock import Clock\nimport aiohttp",
        "xyro/__main__.py": "from xyro.service.cli.main import main",
    }
    assert layers.direction(sources) == []


def test_an_exception_is_for_one_module_in_one_file() -> None:
    sources = {"opic/a.py": "import xyro.refresh.due, xyro.refresh.sharing", "opic/b.py": "import xyro.refresh.due"}
    assert len(layers.direction(sources, [("opic/a.py", "xyro.refresh.due")])) == 2


def test_a_relative_import_cannot_climb_out_of_its_folder_unseen() -> None:
    assert len(layers.direction({"xyro/pool.py": "from .metadata import store", "metadata/store.py": ""})) == 1
    assert len(layers.direction({"opic/__init__.py": "from ..metadata import store", "metadata/store.py": ""})) == 1


def test_a_cycle_among_rooms_is_found() -> None:
    (found,) = layers.room_cycles({"opic/a.py": "import xyro.refresh.b", "refresh/c.py": "from xyro.opic import d"})
    assert set(found.split(" -> ")) == {"opic", "refresh"}
    assert layers.room_cycles({"opic/a.py": "import xyro.refresh.b", "refresh/c.py": "import xyro.wire.d"}) == []


@pytest.mark.parametrize(
    "text",
    ["import metadata", "from wire import ids", "def f():\n    import lab.web.server as server", "import service"],
)
def test_a_short_name_is_found(text: str) -> None:
    assert len(layers.short_names({"frontier/a.py": text})) == 1
    assert layers.short_names({"frontier/a.py": text.replace("import ", "import my_", 1)}) == [] or "from" in text


def test_look_alikes_of_short_names_pass() -> None:
    assert layers.short_names({"frontier/a.py": "import xyro.metadata, refreshing\nfrom . import wire"}) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import time", "time"),
        ("import random", "random"),
        ("from os import path", "os"),
        ("import socket", "socket"),
        ("import asyncio", "asyncio"),
        ("def f(path):\n    return open(path)", "open"),
        ("import numpy as np\nrng = np.random.default_rng()", "numpy.random.default_rng"),
        ("from numpy.random import default_rng\nrng = default_rng(1)", "numpy.random.default_rng"),
    ],
)
@pytest.mark.parametrize("folder", ["opic", "refresh"])
def test_an_impure_line_is_found(folder: str, text: str, name: str) -> None:
    (found,) = layers.impure({f"{folder}/x.py": text})
    assert found.endswith(f": {name} in a pure module")


def test_generators_may_be_arguments_and_other_folders_do_input_and_output() -> None:
    pure = (
        "import math\nimport numpy as np\nfrom xyro.wire.errors import InputError\ndef f(rng: np.random.Generator): ..."
    )
    assert layers.impure({"opic/x.py": pure, "metadata/x.py": "import os, time, random"}) == []


def test_leveldb_elsewhere_is_found() -> None:
    sources = dict.fromkeys(("metadata/store.py", "metadata/links.py", "lab/speed/measures.py"), "import plyvel")
    assert layers.misplaced(sources) == [
        "lab/speed/measures.py:1: only metadata/store.py imports plyvel",
        "metadata/links.py:1: only metadata/store.py imports plyvel",
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import time\nnow = time.time()", "time.time"),
        ("import time as t\nt.monotonic_ns()", "time.monotonic_ns"),
        ("from time import perf_counter as tick\ntick()", "time.perf_counter"),
        ("import time\nclock = time.monotonic  # handed on, not called", "time.monotonic"),
        ("import time\ntime.sleep(1)", "time.sleep"),
        ("from datetime import datetime, UTC\ndatetime.now(UTC)", "datetime.datetime.now"),
        ("import datetime as dt\ndt.datetime.utcnow()", "datetime.datetime.utcnow"),
        ("from datetime import date\ndate.today()", "datetime.date.today"),
        ("import asyncio\nasyncio.get_running_loop().time()", "loop.time"),
        ("def f(self):\n    return self._loop.time()", "loop.time"),
        ("import numpy as np\nnp.datetime64('now')", "numpy.datetime64"),
        ("from email.utils import formatdate\nformatdate(usegmt=True)", "email.utils.formatdate"),
    ],
)
def test_a_clock_read_elsewhere_is_found(text: str, name: str) -> None:
    (found,) = {line.split(": ")[1] for line in layers.clocks({"xyro/pool.py": text})}
    assert found == f"{name} reads a clock; take `now` or a Clock as an argument"


def test_a_leave_is_for_one_clock_in_one_file() -> None:
    text = "import time\ntime.monotonic()\ntime.process_time()"
    assert len(layers.clocks({"wire/clock.py": text})) == 1
    assert len(layers.clocks({"wire/bus.py": text})) == 2


def test_asking_a_clock_that_was_given_is_no_reading() -> None:
    imports = "from datetime import datetime\nfrom email.utils import formatdate\n"
    text = imports + "def f(clock): return datetime.fromtimestamp(clock.time()), formatdate(0)"
    assert layers.clocks({"xyro/pool.py": text}) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from marshal import loads",
        "def f():\n    import shelve",
        "eval('1')",
        "exec('x = 1')",
        "compile('1', '', 'eval')",
        "__import__('os')",
        "import importlib\nimportlib.import_module(input())",
        "from importlib import import_module as load\nload('crawl')",
        "import yaml\nyaml.load('')",
        "from yaml import unsafe_load\nunsafe_load('')",
        "import os\nos.system('ls')",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import numpy as np\nnp.load('x.npy', allow_pickle=True)",
        "tree.xinclude()",
        "from tests import layers",
    ],
)
def test_a_dangerous_line_is_found(text: str) -> None:
    assert len(layers.dangerous({"service/x.py": text})) == 1


def test_look_alikes_are_not_dangerous() -> None:
    text = "import re, yaml\nre.compile('x')\nyaml.safe_load('')\nmodel.eval()\nnp.load('x.npy', allow_pickle=False)"
    assert layers.dangerous({"service/x.py": text}) == []


@pytest.mark.parametrize(
    "sources",
    [
        {"opic/a.py": "from xyro.opic import b", "opic/b.py": "from xyro.opic.a import x"},
        {
            "opic/a.py": "import xyro.opic.b",
            "opic/b.py": "def later():\n    from .c import y",
            "opic/c.py": "import xyro.opic.a",
        },
        {"opic/__init__.py": "from xyro.opic.a import x", "opic/a.py": "import xyro.opic"},
    ],
)
def test_a_cycle_is_found(sources: dict[str, str]) -> None:
    (found,) = layers.cycles(sources)
    ring = found.split(" -> ")
    assert ring[0] == ring[-1]
    assert set(ring) == {layers.module_of(path) for path in sources}


def test_a_package_that_shares_its_name_with_a_name_in_it_is_no_cycle() -> None:
    assert (
        layers.cycles({"opic/__init__.py": "", "opic/a.py": "from xyro.opic import b", "opic/b.py": "import xyro.opic"})
        == []
    )
