"""The direction of imports, and the other rules of the house that can be read off the source (design.md section 2)."""

import re
from pathlib import Path

import pytest

from tests import layers

ROOT = Path(__file__).parents[1]
OURS = layers.read(ROOT, layers.MAY_IMPORT)
TESTS = layers.read(ROOT, ["tests"])


def test_every_package_has_its_rule_and_was_read() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert packages == layers.MAY_IMPORT.keys() == {path.partition("/")[0] for path in OURS}


def test_imports_go_down() -> None:
    assert layers.direction(OURS) == []


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
        assert any(line.startswith(leave[0]) for line in layers.clocks(OURS, others)), f"{leave} is not used any more"


def test_nothing_runs_what_it_is_given() -> None:
    assert layers.dangerous(OURS) == []
    assert [line for line in layers.dangerous(TESTS) if not re.search(": (tests|__import__|importlib)", line)] == []


def test_no_module_imports_itself_by_a_detour() -> None:
    assert layers.cycles(OURS) == []


# The rules, tried on sources that break them


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("xyro/client.py", "import metadata.store"),
        ("xyro/client.py", "from loader.intake import Intake"),
        ("loader/intake.py", "def later():\n    from xyro import pool"),
        ("metadata/manager.py", "from xyro.orders import Orders"),
        ("metadata/manager.py", "import configs"),
        ("xyro/client.py", "from opic.cash import split"),
        ("opic/cash.py", "from refresh.plan import plan"),
        ("refresh/plan.py", "import opic"),
        ("wire/urls.py", "from configs.schema import Settings"),
        ("wire/urls.py", "import xyro.service.cli.main as cli"),
        ("configs/load.py", "from wire import urls"),
        ("configs/load.py", "from wire.messages import FetchOrder"),
        ("lab/web/server.py", "from crawl import single"),
        ("lab/web/server.py", "from configs import load"),
        (
            "metadata/store.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from xyro.service.node.single import Single",
        ),
    ],
)
def test_an_import_against_the_direction_is_found(path: str, text: str) -> None:
    (found,) = layers.direction({"wire/urls.py": "", "xyro/pool.py": "", path: text})
    line = 1 + next(number for number, row in enumerate(text.split("\n")) if "import" in row and "typing" not in row)
    assert found.startswith(f"{path}:{line}: {path.partition('/')[0]} must not import ")


def test_imports_with_the_direction_pass() -> None:
    sources = {
        "configs/load.py": "from wire.errors import InputError\nfrom wire import errors\nimport configs.schema",
        "wire/errors.py": "",
        "metadata/manager.py": "from opic.cash import CashTable\nimport refresh.change\nfrom wire import messages",
        "lab/speed/measures.py": "import metadata.manager, xyro.pool, loader.intake, opic.cash",
        "service/cli/main.py": "from configs import load\nfrom lab import server",
        "xyro/pool.py": "from .client import Client\nfrom wire.clock import Clock\nimport aiohttp",
    }
    assert layers.direction(sources) == []


def test_a_relative_import_cannot_climb_out_of_its_folder_unseen() -> None:
    assert len(layers.direction({"xyro/pool.py": "from ..metadata import store"})) == 1


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
    pure = "import math\nimport numpy as np\nfrom wire.errors import InputError\ndef f(rng: np.random.Generator): ..."
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
    assert len(layers.dangerous({"crawl/x.py": text})) == 1


def test_look_alikes_are_not_dangerous() -> None:
    text = "import re, yaml\nre.compile('x')\nyaml.safe_load('')\nmodel.eval()\nnp.load('x.npy', allow_pickle=False)"
    assert layers.dangerous({"crawl/x.py": text}) == []


@pytest.mark.parametrize(
    "sources",
    [
        {"opic/a.py": "from opic import b", "opic/b.py": "from opic.a import x"},
        {"opic/a.py": "import opic.b", "opic/b.py": "def later():\n    from .c import y", "opic/c.py": "import opic.a"},
        {"opic/__init__.py": "from opic.a import x", "opic/a.py": "import opic"},
    ],
)
def test_a_cycle_is_found(sources: dict[str, str]) -> None:
    (found,) = layers.cycles(sources)
    ring = found.split(" -> ")
    assert ring[0] == ring[-1]
    assert set(ring) == {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in sources}


def test_a_package_that_shares_its_name_with_a_name_in_it_is_no_cycle() -> None:
    assert layers.cycles({"opic/__init__.py": "", "opic/a.py": "from opic import b", "opic/b.py": "import opic"}) == []
