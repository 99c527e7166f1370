"""Each process imports what it needs and no more: tried in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

STORE = ("plyvel", "xyro.metadata", "xyro.opic", "xyro.refresh", "xyro.frontier", "xyro.plugins")
LIST_LOADED = "import sys; print(*sorted(sys.modules))"


def loaded(statement: str) -> set[str]:
    """Names of the modules that an interpreter has loaded after `statement`."""
    command = [sys.executable, "-c", f"{statement}\n{LIST_LOADED}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split())


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import xyro", ("plyvel", "aiohttp", "msgpack", "numpy", "xyro.wire")),
        ("import xyro; xyro.PageReport", ("plyvel", "aiohttp", "numpy", "xyro.pool")),
        ("from xyro import Reader, Guard", (*STORE, "xyro.configs", "xyro.service", "xyro.loader", "numpy")),
        ("import xyro.service.node.fetch_loop", (*STORE, "xyro.configs", "xyro.loader", "numpy")),
        ("import xyro.service.node.load_loop", ("plyvel", "xyro.metadata", "xyro.opic", "xyro.frontier", "aiohttp")),
    ],
    ids=["library", "message", "reader", "fetch loop", "load loop"],
)
def test_a_process_loads_only_what_it_needs(statement: str, unwanted: tuple[str, ...]) -> None:
    found = loaded(statement)
    assert [name for name in unwanted if name in found] == []


def test_every_name_of_the_library_is_there() -> None:
    loaded("import xyro\nfor name in xyro.NAMES: getattr(xyro, name)\nassert not set(xyro.NAMES) - set(dir(xyro))")


def test_an_unknown_name_of_the_library_is_refused() -> None:
    loaded("import xyro\ntry: xyro.Nothing\nexcept AttributeError: pass\nelse: 1 / 0")
