"""The benchmarks: `xyro lab speed ram | latency | pages | tls | plan | scale | text | xml`. Everything stays on
loopback; data is deleted, but for what `scale` is told to keep.

ram        bytes of RAM per known URL, links/s into the frontier, us per page
latency    many slow hosts at once: pages/s, RSS, event-loop lag
pages      CPU per page and where it goes
tls        the web as it is: large pages, coded, over TLS, connections that servers close
plan       what it costs to choose the pages to refresh out of millions, and to remember when
scale      what it costs to know ten million URLs: links, turns, memory, opening, looks, the event loop meanwhile
text       main texts beside what people marked, and a page's time, by ours and by other libraries
xml        XML documents a second, validated and stored; RAM of documents that wait for parts
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xyro.wire.errors import XyroError


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, 1 where a limit does not hold, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="xyro lab speed", description="What a crawl costs, measured on loopback.")
    names = parser.add_subparsers(dest="name", required=True, metavar="ram|latency|pages|tls|plan|scale|text|xml")
    ram = names.add_parser("ram", help="RAM per known URL, links/s into the frontier, us per page")
    ram.add_argument("--urls", type=_counting, default=2_000_000, help="known URLs at the end [2000000]")
    ram.add_argument("--group", type=_counting, default=50, help="reports a commit group [50]")
    ram.add_argument("--per-host", type=_counting, default=500, help="URLs a host [500]")
    latency = names.add_parser("latency", help="many slow hosts: pages/s, RSS, event-loop lag")
    latency.add_argument("--hosts", type=_counting, default=400, help="hosts, one connection each [400]")
    latency.add_argument("--latency", type=float, default=0.3, help="seconds before each answer [0.3]")
    latency.add_argument("--per-host", type=_counting, default=40, help="pages a host [40]")
    latency.add_argument("--runs", type=_counting, default=3, help="[3]")
    pages = names.add_parser("pages", help="CPU per page by part")
    pages.add_argument("seed", nargs="?", default="", help="a URL on loopback [a computed web]")
    pages.add_argument("--scope", choices=("host", "domain", "any"), default="any", help="[any]")
    pages.add_argument("--max-pages", type=int, default=0, help="[0: all]")
    pages.add_argument("--runs", type=_counting, default=3, help="[3]")
    tls = names.add_parser("tls", help="pages as large as real ones, over TLS: pages/s, handshakes, CPU by part")
    tls.add_argument("--pages", type=_counting, default=8000, help="URLs; 45 kB of the server's RAM each [8000]")
    tls.add_argument("--hosts", type=_counting, default=400, help="[400]")
    tls.add_argument("--delay", type=float, default=0.5, help="seconds between reads of a host [0.5]")
    tls.add_argument("--latency", type=float, default=0.02, help="seconds before each answer [0.02]")
    tls.add_argument("--client", choices=("fast", "aiohttp"), default="fast", help="[fast]")
    tls.add_argument("--seconds", type=float, default=0.0, help="after which the crawl ends [0: all pages]")
    tls.add_argument("--runs", type=_counting, default=1, help="[1]")
    plan = names.add_parser("plan", help="choosing what to refresh out of millions of pages; RAM a page for it")
    plan.add_argument("--pages", type=_counting, default=10_000_000, help="known pages [10000000: what limits are for]")
    plan.add_argument("--orders", type=_counting, default=10_000, help="pages chosen [10000]")
    plan.add_argument("--runs", type=_counting, default=5, help="[5]")
    scale = names.add_parser("scale", help="0.1, 1, 10 million known URLs: links, turns, RAM, opening, each look")
    scale.add_argument("--urls", type=_counting, nargs="+", default=[100_000, 1_000_000, 10_000_000], metavar="N",
                       help="sizes [100000 1000000 10000000: an hour]")  # fmt: skip
    scale.add_argument("--data", type=Path, help="directory that is grown and kept [a temporary one]")
    scale.add_argument("--no-looks", action="store_true", help="growth, memory and opening alone")
    text = names.add_parser("text", help="main texts beside what people marked: F1 and time, by library")
    text.add_argument("directories", type=Path, nargs="*", metavar="DIR",
                      help="NAME/source.html, NAME/expected.html; html/NAME.html, txt/NAME.txt; ...")  # fmt: skip
    text.add_argument("--sets", type=Path, metavar="FOLDER",
                      help="the sets of docs/figures.md; their packages are fetched into this folder")  # fmt: skip
    text.add_argument("--cost", action="store_true", help="time alone, of all pages (*.html) below the directories")
    text.add_argument("--pages", type=_counting, default=300, help="--cost: so many, spread over all [300]")
    text.add_argument("--rounds", type=_counting, default=5, help="--cost: of which a page's least time counts [5]")
    text.add_argument("--marks", type=Path, help="file that names the element of each page that is its text")
    text.add_argument("--part", choices=("tune", "held", "all"), default="all", help="by a hash of the name [all]")
    text.add_argument("--worst", type=int, default=0, help="pages told where ours is furthest behind [0]")
    xml = names.add_parser("xml", help="XML documents/s, validated and stored; RAM of documents that wait")
    xml.add_argument("--documents", type=_counting, default=3000, help="[3000]")
    xml.add_argument("--size", type=_counting, default=20_000, help="bytes of each [20000]")
    xml.add_argument("--runs", type=_counting, default=3, help="[3]")
    xml.add_argument("--waiting", type=int, default=100_000, help="documents that wait; 0: not measured [100000]")
    options = vars(parser.parse_args(arguments))
    try:
        return _run(options.pop("name"), options)
    except XyroError as error:
        sys.stderr.write(f"xyro lab speed: {error}\n")
        return 2


def _run(name: str, options: dict[str, Any]) -> int:
    """Import what the benchmark needs, no more: RSS is measured."""
    if name == "ram":
        from xyro.lab.speed.ram_speed import ram

        ram(**options)
    elif name == "xml":
        from xyro.lab.speed.xml_speed import xml

        xml(**options)
    elif name == "text":
        pages, rounds, sets = options.pop("pages"), options.pop("rounds"), options.pop("sets")
        if options.pop("cost"):
            from xyro.lab.speed.text_cost import cost

            cost(options["directories"], pages, rounds)
            return 0
        from xyro.lab.speed.text_speed import marked_sets, text

        if sets is not None:
            marked_sets(sets, options["worst"])
        if sets is None or options["directories"]:
            text(**options)
    elif name == "scale":
        from xyro.lab.speed.scale_speed import scale

        scale(options["urls"], options["data"], not options["no_looks"])
    elif name == "tls":
        from xyro.lab.speed.tls_speed import tls

        tls(**options)
    elif name == "plan":
        from xyro.lab.speed.plan_speed import plan

        return plan(**options)
    else:
        from xyro.lab.speed import crawl_speed

        (crawl_speed.latency if name == "latency" else crawl_speed.pages)(**options)
    return 0


def _counting(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: a whole number, 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
