"""The laboratory's commands: `xyro lab ...`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click


@click.group()
def lab() -> None:
    """The laboratory: a computed web to try things on."""


def _passed_on(name: str, doc: str, run: Callable[[list[str]], int]) -> None:
    """A command whose options are its module's own."""

    own_help = {"ignore_unknown_options": True, "help_option_names": []}

    @lab.command(name, help=doc, add_help_option=False, context_settings=own_help)
    @click.argument("options", nargs=-1, type=click.UNPROCESSED)
    def command(options: tuple[str, ...]) -> None:
        sys.exit(run(list(options)))


def _web(options: list[str]) -> int:
    from xyro.lab.web.server import main as serve_web

    return serve_web(options)


def _speed(options: list[str]) -> int:
    from xyro.lab.speed.speed_lab import main as measure

    return measure(options)


def _xml(options: list[str]) -> int:
    from xyro.lab.crawls.xml_kinds import main as compare

    return compare(options)


def _opic(options: list[str]) -> int:
    from importlib.util import find_spec

    from xyro.lab.opic.opic_lab import main as compare

    if find_spec("numba") is None:
        click.echo("without numba this takes many times longer; install it with `pip install 'xyro[lab]'`", err=True)

    return compare(options)


def _soak(options: list[str]) -> int:
    from xyro.lab.crawls.soak import main as soak

    return soak(options)


def _walk(options: list[str]) -> int:
    from xyro.lab.walk.page_walk import main as follow

    return follow(options)


def _refresh(options: list[str]) -> int:
    from xyro.lab.refresh.refresh_lab import main as compare

    return compare(options)


_passed_on("web", "Serve a computed web on loopback.", _web)
_passed_on("speed", "Measure what a crawl costs: RAM, CPU, latency, plan, XML.", _speed)


def _daemon(options: list[str]) -> int:
    from xyro.lab.crawls.daemon import main as live

    return live(options)


_passed_on("daemon", "Months of the daemon in minutes, on a clock that jumps.", _daemon)


def _promises(options: list[str]) -> int:
    from xyro.lab.crawls.promises import main as keep

    return keep(options)


_passed_on("promises", "Publications under full load, subscriptions over weeks.", _promises)
_passed_on("soak", "Run the daemon at full speed and see whether it leaks.", _soak)
_passed_on("opic", "Hold OPIC against the papers and exact PageRank.", _opic)
_passed_on("xml", "Find XML sooner by a focus: measured on a computed web.", _xml)
_passed_on("walk", "Follow one page: files and functions that it enters.", _walk)
_passed_on("refresh", "Compare refresh policies on changing collections.", _refresh)


@lab.command("demo")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Data directory, a new one [./xyro-demo, or the next free of xyro-demo-2 ...].",
)
@click.option("--pages", type=click.IntRange(200, 20_000), default=3_000, help="Pages of the web [3000].")
def lab_demo(data: Path | None, pages: int) -> None:
    """Crawl a computed web, beside the truth; half a minute."""
    from xyro.lab.crawls.demo import demo

    sys.exit(demo(data, pages))
