"""The commands that crawl: `xyro crawl` and `xyro serve`."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.cluster_crawl import FRUITLESS, crawl_cluster
from xyro.service.cli.crawl_place import CrawlPlace, place_of
from xyro.service.cli.options import (
    as_json_too,
    crawling,
    seeds_of,
    settings_chosen,
    tell,
    terminal_width,
)
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from xyro.configs.schema import ClusterSettings
    from xyro.service.node.cluster_seam import Membership


@click.command()
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@crawling
@click.option("--max-pages", type=int, default=None, help="End after so many reads, refreshes included [0: no bound].")
@click.option("--max-seconds", type=float, default=None, help="End after so many seconds [0: no bound].")
@click.option("--refresh", is_flag=True, default=None, help="Keep refreshing until a bound is reached.")
@click.option("--join", default=None, metavar="URL", help="Let the nodes of this broker's cluster read.")
@click.option("--ca", default=None, metavar="FILE", help="Certificate of the broker's authority.")
@as_json_too
def crawl(seeds: tuple[str, ...], as_json: bool, **chosen: Any) -> None:
    """Crawl from SEED URLs, or resume a crawl.

    Runs in the foreground. Without SEED, the crawl in --data resumes with its scope and networks. Ends when nothing in
    scope is left to read, or at a bound. Ctrl-C stops in order (exit code 0, with the closing report), a second Ctrl-C
    at once. --json prints one closing JSON object.

    With --join, the nodes that `xyro serve --join` started do the reading, together no more than the bounds allow.
    Afterwards they read nothing until the next such crawl, or until `xyro cluster unbound`. Scope, networks and delays
    are those of the cluster.
    """
    if (place := crawl_place(chosen)).join:
        report, best, code = crawl_cluster(place, (*seeds, *seeds_of(chosen["seed_file"])), chosen)
        tell_end(report, best, as_json)
        sys.exit(code)
    directory, settings = settings_chosen(chosen)
    from xyro.metadata.directories import announced

    click.get_current_context().with_resource(announced(directory))
    from xyro import process_memory

    process_memory.pause()
    from xyro.plugins import PLUGINS
    from xyro.service.api.endpoints import ENDPOINTS
    from xyro.service.node.life_cycle import Job, run
    from xyro.service.node.node import Bounds

    limits = settings.crawl
    bounds = Bounds(limits.max_pages, limits.max_seconds, limits.refresh)
    wanted = (*seeds, *seeds_of(chosen["seed_file"]))
    ended = run(Job(directory, settings, bounds, ENDPOINTS, wanted, chosen["partitions"], plugins=PLUGINS))
    if ended.fruitless or (ended.report["errors"] and not ended.report["pages_read"]):
        ask = f"`xyro why URL --data {directory}`"
        subject = "no seed gave a page" if ended.fruitless else "nothing could be read"
        subject += "".join(f"; the proxy {proxy} failed" for proxy in ended.report["proxies"])
        tell(f"{subject}; {ask} says why", err=True, level=logging.WARNING, event="no-page")
    tell_end(ended.report, ended.best, as_json)
    sys.exit(1 if ended.refused or ended.report["unstored"] else FRUITLESS if ended.fruitless else 0)


def tell_end(report: dict[str, Any], best: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print the closing report, for programs or for people."""
    from xyro.service.node.life_cycle import sentence
    from xyro.service.views.text_tables import pages_table

    if as_json:
        click.echo(json.dumps(report))
    else:
        table = f"\n{pages_table(best, 'importance', terminal_width())}" if best else ""
        tell(sentence(report) + table)


_OF_CLUSTER = ("seed_file", "max_pages", "max_seconds", "refresh", "join", "ca", "verbose", "quiet")
"""parameters of a crawl that the nodes of a cluster do; the others are theirs"""


def crawl_place(chosen: dict[str, Any]) -> CrawlPlace:
    """Where to crawl: in a directory, or by the cluster that --join or the environment names. InputError: an option is
    none of a cluster's."""
    place = place_of(chosen["data"], chosen["join"], Path(chosen["ca"]) if chosen["ca"] else None)
    if place.join and (own := [name for name, value in chosen.items() if value and name not in _OF_CLUSTER]):
        option = own[0].replace("_", "-")
        raise InputError(f"--{option}: is each node's own; give it to `xyro serve --join`, or see `xyro cluster set`")
    return place


@click.command(short_help="Run the daemon: crawl and refresh until stopped.")
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@crawling
@click.option(
    "--join",
    default=None,
    metavar="URL",
    help="Be a node of a cluster: its broker, or the folder that `xyro hub` wrote.",
)
@click.option("--ca", default=None, metavar="FILE", help="Certificate of the broker's authority.")
def serve(seeds: tuple[str, ...], **chosen: Any) -> None:
    """Run the daemon: crawl and refresh from SEED URLs until stopped.

    `xyro submit` gives it more URLs, `xyro stop` ends it. With --join it is a node of a cluster: it founds the cluster
    of that broker, or joins it and gets its share of the partitions. Ctrl-C or SIGTERM stops it in order, a second one
    at once. Without a terminal, it reads its settings again on SIGHUP. The exit code is 1 where a SEED was refused: the
    log says why as soon as it begins.
    """
    read = partial(settings_chosen, chosen, serving=True)
    directory, settings = read()
    from xyro.metadata.directories import announced

    click.get_current_context().with_resource(announced(directory))
    from xyro import process_memory

    process_memory.pause()
    from xyro.plugins import PLUGINS
    from xyro.service.api.endpoints import ENDPOINTS
    from xyro.service.node.life_cycle import Job, run, sentence
    from xyro.service.node.node import Bounds

    member, partitions = membership_of(settings.cluster), chosen["partitions"]
    wanted = (*seeds, *seeds_of(chosen["seed_file"]))
    again = lambda: read()[1]  # noqa: E731 - what SIGHUP calls
    ended = run(Job(directory, settings, Bounds(forever=True), ENDPOINTS, wanted, partitions, again, PLUGINS, member))
    tell(sentence(ended.report), err=True, event="closing-report", **ended.report)
    sys.exit(1 if ended.refused else 0)


def membership_of(cluster: ClusterSettings) -> Membership | None:
    """The part in a cluster that the settings ask for; None: none."""
    if not cluster.join:
        return None
    from xyro.service.cluster.join_target import join_target
    from xyro.service.cluster.membership import ClusterMembership
    from xyro.wire.clock import SystemClock

    return ClusterMembership(*join_target(cluster.join, Path(cluster.ca) if cluster.ca else None), SystemClock())
