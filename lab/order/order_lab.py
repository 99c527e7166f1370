"""`xyro lab order`: the share of all importance that a crawl has read after so many reads, by the server's log.

A graph with folders and hosts is served on loopback and crawled by `xyro crawl`, a process of its own; the other orders
are simulated (compared_orders.py). With --traps sites with a trap beside 245 real pages are crawled instead: the real
pages among the first 300 reads. Everything is judged by what the server was asked for. ORDER.md has the table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.lab.child import environment
from xyro.lab.order.compared_orders import ORDERS
from xyro.lab.order.graph_server import GraphServer, ServedGraph, ServedTrap
from xyro.lab.order.laid_graphs import LAYOUTS, Layout, LinkGraph, computed, laid_out, loaded
from xyro.lab.order.traps import HARD, REAL, SHAPES, TrapSite
from xyro.wire.errors import InputError, MachineError, XyroError

OURS = "xyro"
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""of the pages: reads after which importance is counted"""
TRAP_READS = 300
PARTIAL_ENTRIES = 0.7
"""seeds are drawn among pages from which so much of the graph is reached"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code, 2 for bad input."""
    options = _parser().parse_args(arguments)
    try:
        figures = _traps(options) if options.traps else _graphs(options)
    except XyroError as error:
        sys.stderr.write(f"xyro lab order: {error}\n")
        return 2
    if options.json:
        sys.stdout.write(json.dumps(figures) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="xyro lab order", description="How early a crawl reads what matters.")
    parser.add_argument("--graph", type=Path, help="a .npz file with indptr and indices [a computed graph]")
    parser.add_argument("--pages", type=int, default=4_000, help="of a computed graph [4000]")
    parser.add_argument("--layout", choices=LAYOUTS, default="blocks", help="folders and hosts [blocks]")
    parser.add_argument("--folder", type=int, default=32, help="pages a folder [32]")
    parser.add_argument("--host", type=int, default=512, help="pages a host [512]")
    parser.add_argument("--start", default="", help="pages to begin with, by comma [one that reaches most]")
    parser.add_argument("--seed", type=int, default=1, help="of graph, layout, failures and start [1]")
    parser.add_argument("--failing", type=float, default=0.0, help="share of the pages that answer 404 [0]")
    parser.add_argument("--part", type=float, default=0.5, help="share of the pages to read [0.5]")
    parser.add_argument("--partitions", type=int, default=1, help="of the crawl [1]")
    parser.add_argument("--orders", default=",".join((OURS, *ORDERS)), help="which, by comma [all]")
    parser.add_argument("--traps", action="store_true", help="instead: six sites with a trap")
    parser.add_argument("--hard", action="store_true", help="with --traps: traps whose pages open more of them")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def _graphs(options: argparse.Namespace) -> dict[str, Any]:
    """Crawl or simulate each order; print a row each."""
    graph = loaded(options.graph) if options.graph else computed(options.pages, options.seed, options.folder)
    layout = laid_out(graph.pages, options.layout, options.folder, options.host, options.seed)
    draws = np.random.default_rng((options.seed, 13)).random(graph.pages)
    failing, limit = draws < options.failing, int(options.part * graph.pages)
    start = _start(graph, options)
    failing[start] = False
    names = [name for name in options.orders.split(",") if name]
    if unknown := set(names) - {OURS, *ORDERS}:
        raise InputError(f"--orders {', '.join(sorted(unknown))}: {OURS}, {', '.join(ORDERS)}")
    _say(options, f"{graph.pages:,} pages, {int(layout.host.max()) + 1} hosts, {options.layout}, start {start}")
    _say(options, f"{'importance read after':22}" + "".join(f"{share:>8.0%}" for share in SHARES) + "  of the reads")
    table = {}
    for name in names:
        if name == OURS:
            read = asyncio.run(_crawl(graph, layout, failing, start, limit, options.partitions))
        else:
            read = ORDERS[name](graph, start, limit, failing)
        table[name] = row = importance_read(graph, read, failing)
        _say(options, f"{name:22}" + "".join(f"{share:8.3f}" if share is not None else f"{'-':>8}" for share in row))
    return {"pages": graph.pages, "layout": options.layout, "start": start, "shares": SHARES, "orders": table}


def importance_read(graph: LinkGraph, read: Sequence[int], failing: NDArray[np.bool_]) -> list[float | None]:
    """The share of all importance that the first reads met, for each of SHARES; None: there were fewer reads.

    A page counts once, when it is first answered; each request counts as a read.
    """
    pages = np.array(read, np.int64)
    first = np.zeros(len(pages), np.bool_)
    first[np.unique(pages, return_index=True)[1]] = True
    met = np.cumsum(np.where(first & ~failing[pages], graph.importance[pages], 0.0))
    counts = [max(1, int(share * graph.pages)) for share in SHARES]
    return [round(float(met[count - 1]), 4) if count <= len(met) else None for count in counts]


def _start(graph: LinkGraph, options: argparse.Namespace) -> list[int]:
    """The pages that the options name, or one drawn among those that reach most of the graph."""
    if options.start:
        return [int(page) for page in options.start.split(",")]
    rng = np.random.default_rng((options.seed, 14))
    for page in rng.integers(0, graph.pages, 1_000).tolist():
        if _reached(graph, page) >= PARTIAL_ENTRIES * graph.pages:
            return [page]
    raise InputError(f"no page was found that reaches {PARTIAL_ENTRIES:.0%} of the graph: name some with --start")


def _reached(graph: LinkGraph, page: int) -> int:
    found = np.zeros(graph.pages, np.bool_)
    found[page] = True
    unread = np.array([page])
    while len(unread):
        parts = [graph.indices[graph.indptr[page] : graph.indptr[page + 1]] for page in unread.tolist()]
        below = np.unique(np.concatenate(parts))
        unread = below[~found[below]]
        found[unread] = True
    return int(found.sum())


async def _crawl(
    graph: LinkGraph, layout: Layout, failing: NDArray[np.bool_], start: list[int], limit: int, partitions: int
) -> list[int]:
    """The pages that a crawl asks for, by the server's log."""
    site = ServedGraph(graph, layout, failing)
    async with GraphServer(site) as server:
        await _xyro([site.url(page, server.port) for page in start], limit, partitions)
    return site.reads


async def _xyro(seeds: list[str], limit: int, partitions: int = 1) -> None:
    """Run `xyro crawl` to its end, in a directory that is deleted afterwards. MachineError: it failed."""
    with tempfile.TemporaryDirectory(prefix="xyro-order-") as directory:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "xyro", "crawl", *seeds, "--data", str(Path(directory) / "data")),
            *("--scope", "any", "--delay", "0", "--only-net", "127.0.0.0/8", "--max-pages", str(limit), "--json"),
            *("--partitions", str(partitions)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=environment(),
        )
        _, complaint = await child.communicate()
        if child.returncode:
            raise MachineError(f"the crawl ended with {child.returncode}: {complaint.decode()[-500:]}")


def _traps(options: argparse.Namespace) -> dict[str, Any]:
    """Crawl each shape of trap; print how many real pages were among the first reads."""
    _say(options, f"real pages of {REAL} among the first {TRAP_READS} reads")
    found = {}
    for shape in SHAPES:
        site = TrapSite(shape, HARD[shape] if options.hard else None)
        read = asyncio.run(_trapped(site))[:TRAP_READS]
        found[shape] = len({site.real(path) for path in read} - {None})
        _say(options, f"{shape:16}{found[shape]:5}")
    return {"real": REAL, "reads": TRAP_READS, "hard": options.hard, "traps": found}


async def _trapped(site: TrapSite) -> list[str]:
    served = ServedTrap(site)
    async with GraphServer(served) as server:
        await _xyro([f"http://127.1.0.1:{server.port}/"], TRAP_READS)
    return served.reads


def _say(options: argparse.Namespace, line: str) -> None:
    if not options.json:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
