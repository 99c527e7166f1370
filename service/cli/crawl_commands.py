"""The commands that crawl: `xyro crawl` and `xyro serve`."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import click

from xyro.service.cli.options import as_json_too, crawling, settings_of, tell_refused


@click.command()
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@crawling
@click.option("--max-pages", type=int, default=None, help="End after so many reads, refreshes included [0: no bound].")
@click.option("--max-seconds", type=float, default=None, help="End after so many seconds [0: no bound].")
@click.option("--refresh", is_flag=True, default=None, help="Go on refreshing until a bound is reached.")
@as_json_too
def crawl(
    seeds: tuple[str, ...],
    data: Path | None,
    config: tuple[Path, ...],
    contact: str | None,
    scope: str | None,
    max_depth: int | None,
    delay: float | None,
    only_net: tuple[str, ...],
    partitions: int | None,
    max_pages: int | None,
    max_seconds: float | None,
    refresh: bool | None,
    as_json: bool,
) -> None:
    """Crawl from SEED URLs, or resume a crawl.

    In the foreground. Without SEED the crawl in --data goes on; it keeps the scope and the networks it was last given.
    Ends when nothing in scope is left to read, or at a bound. Ctrl-C stops in order (exit code 0, with the closing
    report), a second one at once. --json prints one closing JSON object.
    """
    directory, settings = settings_of(
        data, config, crawl__scope=scope, crawl__max_depth=max_depth, crawl__max_pages=max_pages,
        crawl__max_seconds=max_seconds, crawl__refresh=refresh, politeness__delay=delay,
        fetch__only_net=only_net, fetch__contact=contact,
    )  # fmt: skip
    from xyro.plugins import PLUGINS
    from xyro.service.api.endpoints import ENDPOINTS
    from xyro.service.node.life_cycle import Job, run, sentence
    from xyro.service.node.node import Bounds

    limits = settings.crawl
    bounds = Bounds(limits.max_pages, limits.max_seconds, limits.refresh)
    ended = run(Job(directory, settings, bounds, ENDPOINTS, seeds, partitions, plugins=PLUGINS))
    tell_refused(ended.refused, "not read")
    if ended.report["errors"] and not ended.report["pages_read"]:
        ask = f"`xyro why URL --data {directory}`"
        click.echo(f"nothing could be read; {ask} says why, and when it is tried again", err=True)
    if as_json:
        click.echo(json.dumps(ended.report))
    else:
        from xyro.service.views.text_tables import pages_table

        click.echo(f"{sentence(ended.report)}\n{pages_table(ended.best, 'importance')}")
    sys.exit(1 if ended.refused else 0)


@click.command()
@crawling
def serve(
    data: Path | None,
    config: tuple[Path, ...],
    contact: str | None,
    scope: str | None,
    max_depth: int | None,
    delay: float | None,
    only_net: tuple[str, ...],
    partitions: int | None,
) -> None:
    """Run the daemon: crawl and refresh until stopped.

    `xyro submit` gives it URLs. Ctrl-C or SIGTERM stops it in order, a second one at once. Without a terminal, SIGHUP
    makes it read its settings again.
    """
    read = partial(
        settings_of, data, config, serving=True, crawl__scope=scope, crawl__max_depth=max_depth,
        politeness__delay=delay, fetch__only_net=only_net, fetch__contact=contact,
    )  # fmt: skip
    directory, settings = read()
    from xyro.plugins import PLUGINS
    from xyro.service.api.endpoints import ENDPOINTS
    from xyro.service.node.life_cycle import Job, run, sentence
    from xyro.service.node.node import Bounds

    job = Job(directory, settings, Bounds(forever=True), ENDPOINTS, (), partitions, lambda: read()[1], PLUGINS)
    ended = run(job)
    click.echo(sentence(ended.report), err=True)
