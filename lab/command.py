"""The laboratory's commands, `xyro lab NAME`: the installed entry point by which the command line finds it.

Each is a module's `main(options)`, which reads its own options and returns the exit code; it is imported when it is
called for, so that a measurement of RAM measures what it needs and no more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

Main = Callable[[list[str]], int]


@click.group()
def lab() -> None:
    """The laboratory: a computed web to try things on."""


def _passing_on(name: str) -> Callable[[Main], Main]:
    """Make a command of a function that takes the command's options as words; its docstring is the help."""

    def register(run: Main) -> Main:
        own_help = {"ignore_unknown_options": True, "help_option_names": []}

        @lab.command(name, help=run.__doc__, add_help_option=False, context_settings=own_help)
        @click.argument("options", nargs=-1, type=click.UNPROCESSED)
        def command(options: tuple[str, ...]) -> None:
            sys.exit(run(list(options)))

        return run

    return register


@_passing_on("web")
def _web(options: list[str]) -> int:
    """Serve a computed web on loopback."""
    from xyro.lab.web.server import main

    return main(options)


@_passing_on("zoo")
def _zoo(options: list[str]) -> int:
    """Serve the hostile zoo on loopback, one misbehaviour a host."""
    from xyro.lab.zoo.zoo_server import main

    return main(options)


@_passing_on("hostile")
def _hostile(options: list[str]) -> int:
    """Does an honest host starve beside hostile ones? By the servers' logs."""
    from xyro.lab.hostile.hostile_lab import main

    return main(options)


@_passing_on("politeness")
def _politeness(options: list[str]) -> int:
    """Hundreds of names on few addresses and a crawl that is killed: does a request come too early? By the log."""
    from xyro.lab.polite.polite_lab import main

    return main(options)


@_passing_on("crash")
def _crash(options: list[str]) -> int:
    """Kill a crawl again and again, and compare it with one in peace."""
    from xyro.lab.crash.crash_lab import main

    return main(options)


@_passing_on("simulate")
def _simulate(options: list[str]) -> int:
    """Whole crawls on a seeded machine, with a crash at any step."""
    from xyro.lab.simulate.simulate_lab import main

    return main(options)


@_passing_on("walk")
def _walk(options: list[str]) -> int:
    """Follow one page: the files and functions that it enters."""
    from xyro.lab.walk.page_walk import main

    return main(options)


@_passing_on("intervals")
def _intervals(options: list[str]) -> int:
    """Measure whether the importance intervals of a running crawl hold, on real graphs."""
    from xyro.lab.order.served_intervals import main

    return main(options)


@_passing_on("order")
def _order(options: list[str]) -> int:
    """Measure how early a crawl reads what matters, beside other orders."""
    from xyro.lab.order.order_lab import main

    return main(options)


@_passing_on("speed")
def _speed(options: list[str]) -> int:
    """Measure what a crawl costs: RAM, CPU, latency, plan, XML."""
    from xyro.lab.speed.speed_lab import main

    return main(options)


@_passing_on("daemon")
def _daemon(options: list[str]) -> int:
    """Months of the daemon in minutes, on a clock that jumps."""
    from xyro.lab.crawls.daemon import main

    return main(options)


@_passing_on("unattended")
def _unattended(options: list[str]) -> int:
    """How often a daemon with default settings reads a still site."""
    from xyro.lab.crawls.unattended import main

    return main(options)


@_passing_on("beliefs")
def _beliefs(options: list[str]) -> int:
    """Whether a crawl's freshness is what it believes, on sites whose every change is known."""
    from xyro.lab.crawls.belief_lab import main

    return main(options)


@_passing_on("news")
def _news(options: list[str]) -> int:
    """Two weeks of the daemon on a news site, beside the truth."""
    from xyro.lab.crawls.news import main

    return main(options)


@_passing_on("gamma")
def _gamma(options: list[str]) -> int:
    """Is gamma kept? Shares of first reads, by the server's log."""
    from xyro.lab.crawls.gamma_shares import main

    return main(options)


@_passing_on("promises")
def _promises(options: list[str]) -> int:
    """Publications under full load, subscriptions over weeks."""
    from xyro.lab.crawls.promises_lab import main

    return main(options)


@_passing_on("soak")
def _soak(options: list[str]) -> int:
    """Run the daemon at full speed and see whether it leaks."""
    from xyro.lab.crawls.soak import main

    return main(options)


@_passing_on("xml")
def _xml(options: list[str]) -> int:
    """Find XML sooner by a focus: measured on a computed web."""
    from xyro.lab.crawls.xml_kinds import main

    return main(options)


@_passing_on("opic")
def _opic(options: list[str]) -> int:
    """Hold OPIC against the papers and exact PageRank."""
    from importlib.util import find_spec

    from xyro.lab.opic.opic_lab import main

    if find_spec("numba") is None:
        from xyro.service.cli.options import tell

        tell("without numba this takes many times longer; install it with `pip install 'xyro[lab]'`", err=True)
    return main(options)


@_passing_on("refresh")
def _refresh(options: list[str]) -> int:
    """Compare refresh policies on changing collections."""
    from xyro.lab.refresh.refresh_lab import main

    return main(options)


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
