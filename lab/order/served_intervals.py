"""`xyro lab intervals`: do the importance intervals of a running crawl hold, on real graphs, and how wide are they?

A graph is served on loopback and crawled by `xyro crawl --refresh`, a process of its own, stopped after so many reads a
page and then gone on with. At each stop the exported interval of every page is held against the PageRank of the graph
that was shown by then (the server's log says which pages' links were), computed by power iteration alone. A row says:

    covered      percent of the pages whose true importance lies in its interval (95 are wanted)
    half width   of the interval, relative: the median page's
    error        of the importance itself, relative: the median page's
    ratio        half width over error (3 are wanted at most; 95 of 100 normal errors are within 2.9 medians)
    off          percent of all importance that lies on the wrong pages
    said         the same, at most, as `error_bound` has it

`--files` takes any directory of HTML pages that link to each other for a graph, such as a manual.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xyro.lab.child import environment
from xyro.lab.order.graph_server import GraphServer, ServedGraph
from xyro.lab.order.laid_graphs import LinkGraph, breadth_first_part, laid_out, linked_files, loaded, page_rank
from xyro.wire.errors import InputError, MachineError, XyroError

READS = (1.0, 2.0, 5.0, 10.0)
COLUMNS = ("reads a page", "pages", "covered", "half width", "error", "ratio", "off", "said")


class ExportedInterval(NamedTuple):
    """One page of an export."""

    page: int
    importance: float
    low: float
    high: float
    bound: float
    """of the L1 error of all"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 2 for bad input, 3 where the crawl failed."""
    parser = argparse.ArgumentParser(prog="xyro lab intervals", description="Do intervals of importance hold?")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--graph", type=Path, help="a .npz file with indptr and indices")
    chosen.add_argument("--files", type=Path, help="a file of HTML; it and the files of its folder are the graph")
    parser.add_argument("--start", type=int, default=0, help="page of --graph to begin with [0]")
    parser.add_argument("--pages", type=int, default=5_000, help="of the graph, breadth first; 0: all [5000]")
    parser.add_argument(
        "--reads", type=float, nargs="+", default=list(READS), help="reads a page to stop at [1 2 5 10]"
    )
    parser.add_argument("--gamma", type=float, default=95.0, help="percent of the reads for new pages [95]")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    try:
        graph = linked_files(options.files, options.pages) if options.files else loaded(options.graph)
        start = 0 if options.files else options.start
        if options.pages and not options.files:
            graph, start = breadth_first_part(graph, start, options.pages), 0
        if not 0 <= start < graph.pages:
            raise InputError(f"--start {start}: a page of {graph.pages}")
        rows = asyncio.run(_measured(graph, start, sorted(options.reads), options.gamma))
    except MachineError as error:
        sys.stderr.write(f"xyro lab intervals: {error}\n")
        return 3
    except XyroError as error:
        sys.stderr.write(f"xyro lab intervals: {error}\n")
        return 2
    sys.stdout.write(json.dumps({"pages": graph.pages, "rows": rows}) + "\n" if options.json else _table(rows))
    return 0


async def _measured(graph: LinkGraph, start: int, reads: Sequence[float], gamma: float) -> list[dict[str, Any]]:
    """A row for each stop."""
    site = ServedGraph(graph, laid_out(graph.pages, "flat", 1, 1, 0), np.zeros(graph.pages, np.bool_))
    rows = []
    with tempfile.TemporaryDirectory(prefix="xyro-intervals-") as directory:
        config, data = Path(directory) / "intervals.toml", Path(directory) / "data"
        config.write_text(f"[refresh]\ngamma = {gamma}\n")
        async with GraphServer(site) as server:
            for share in reads:
                bound = math.ceil(share * graph.pages) - len(site.reads)
                if bound > 0:
                    await _crawl(site.url(start, server.port), data, config, bound)
                exported = await _exported(data, server.port)
                rows.append({"reads_a_page": share, **judged(graph, site.reads, exported)})
                sys.stderr.write(f"xyro lab intervals: {len(site.reads):,} reads\n")
    return rows


async def _crawl(entry: str, data: Path, config: Path, reads: int) -> None:
    bounds = ("--scope", "any", "--delay", "0", "--only-net", "127.0.0.0/8", "--refresh", "--max-pages", str(reads))
    await _xyro("crawl", entry, "--data", str(data), "--config", str(config), *bounds, "--json")


async def _exported(data: Path, port: int) -> list[ExportedInterval]:
    """The pages of the crawl that the graph has, with their intervals."""
    found = []
    for line in (await _xyro("export", "pages", "--data", str(data))).splitlines():
        row = json.loads(line)
        name = row["url"].rpartition("/p")[2].removesuffix(".html")
        if f":{port}/" in row["url"] and name.isdigit():
            names = ("importance", "importance_low", "importance_high", "error_bound")
            found.append(ExportedInterval(int(name), *(row[each] for each in names)))
    return found


async def _xyro(*words: str) -> bytes:
    """Run the command to its end; return what it prints. MachineError: it failed."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "xyro", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
    )
    output, complaint = await child.communicate()
    if child.returncode:
        raise MachineError(f"xyro {words[0]} ended with {child.returncode}: {complaint.decode()[-500:]}")
    return output


def judged(graph: LinkGraph, read: Iterable[int], exported: Sequence[ExportedInterval]) -> dict[str, Any]:
    """Hold exported intervals against the truth of what was shown. Importances are brought to mean 1 on both sides."""
    truth = shown_importance(graph, read)
    rows = [row for row in exported if row.page in truth]
    true, (_, importance, low, high, bound) = np.array([truth[row.page] for row in rows]), np.array(rows).T
    inside = (low <= true) & (true <= high)
    half = np.log(np.maximum(high, 1e-9) / np.maximum(low, 1e-9)) / 2.0
    error = np.abs(np.log(np.maximum(importance, 1e-9) / true))
    width, off = float(np.median(half)), float(np.median(error))
    wrong = float(np.abs(importance / importance.sum() - true / true.sum()).sum()) / 2.0
    return {
        "pages": len(rows),
        "covered": round(100.0 * float(inside.mean()), 1),
        "half_width": round(width, 4),
        "error": round(off, 4),
        "ratio": round(width / off, 2) if off else None,
        "off": round(wrong, 5),
        "said": round(float(bound[0]) / 2.0, 5),
    }


def shown_importance(graph: LinkGraph, read: Iterable[int]) -> Mapping[int, float]:
    """PageRank, of mean 1, of all pages that read pages are and link to; only the links of read pages are there."""
    shown = np.zeros(graph.pages, np.bool_)
    shown[np.unique(np.fromiter(read, np.int64))] = True
    degrees = np.where(shown, np.diff(graph.indptr), 0)
    links = graph.indices[np.repeat(shown, np.diff(graph.indptr))]
    met = shown.copy()
    met[links] = True
    pages = np.flatnonzero(met)
    number = np.full(graph.pages, -1)
    number[pages] = np.arange(len(pages))
    rank = page_rank(np.concatenate([[0], np.cumsum(degrees[pages])]), number[links])
    return dict(zip(pages.tolist(), (rank * len(pages)).tolist(), strict=True))


def _table(rows: Iterable[Mapping[str, Any]]) -> str:
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    lines += [
        f"| {row['reads_a_page']:g} | {row['pages']:,} | {row['covered']} % | {100 * row['half_width']:.2f} % | "
        f"{100 * row['error']:.2f} % | {row['ratio']} | {100 * row['off']:.2f} % | {100 * row['said']:.1f} % |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
