"""The command `xyro changes`: what changed, as JSON lines, from a cursor or a time on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.wire.errors import InputError, MachineError

if TYPE_CHECKING:
    from xyro.service.cluster.cluster_remote import ClusterRemote
    from xyro.service.node.run_file import Remote

TICK = 0.25
"""seconds until a process that is gone is looked for again"""


@click.command(short_help="Print changes as JSON lines, from a cursor on.")
@with_place
@click.option("--follow", is_flag=True, help="Go on: print changes as they come, over restarts of the crawl.")
@click.option("--since", default="", metavar="CURSOR|TIME",
              help="Begin behind a line's cursor, or at a time: 2026-11-22, yesterday, 24h (ago), now.")  # fmt: skip
@click.option(
    "--where", default="", metavar="CONDITION", help="Only these: 'importance > 2 and host = \"example.org\"'."
)
def changes(place: CrawlPlace, follow: bool, since: str, where: str) -> None:
    """Print changes: pages that are new, changed, moved or gone, one JSON line each.

    Changes are recorded once the crawl was started with --changes (`[changes] record`). Each line has a cursor; --since
    continues after it, across restarts, and misses nothing. When more changes are stored than `[changes] bytes` allows,
    the oldest are dropped, and a line whose change is "gap" names the missing numbers. (partition, epoch, number)
    identifies a change for ever.
    """
    from xyro.plugins.changes.change_filter import change_filter

    change_filter(where)  # refused before anything is opened
    if not follow:
        remote = place.find()
        for line in _of_running(remote, since, where) if remote else _stopped(place.directory, since, where):
            click.echo(json.dumps(line))
        return
    for line in _followed(place, since, where):
        click.echo(json.dumps(line))


def _of_running(remote: Remote | ClusterRemote, since: str, where: str, follow: int = 0) -> Iterator[dict[str, Any]]:
    return remote.lines("/changes", since=since, where=where, follow=follow)


def _followed(place: CrawlPlace, since: str, where: str) -> Iterator[dict[str, Any]]:
    """The lines of whichever process works on the directory, or of the cluster, until interrupted."""
    if place.find() is None:
        for line in _until_started(place, since, where):
            since = line["cursor"]
            yield line
    while True:
        try:
            remote = place.find()
            for line in _of_running(remote, since, where, 1) if remote else ():
                since = line["cursor"]
                yield line
        except MachineError:  # it was killed, or stops: another one may come
            pass
        threading.Event().wait(TICK)


def _until_started(place: CrawlPlace, since: str, where: str) -> list[dict[str, Any]]:
    """The lines of a directory that no process works on; none where one has just begun to."""
    try:
        return _stopped(place.directory, since, where)
    except InputError:
        if place.find() is None:
            raise
        return []


def _stopped(directory: Path, since: str, where: str) -> list[dict[str, Any]]:
    """The lines of a directory that no process works on."""
    import asyncio

    from xyro.plugins.changes.change_filter import change_filter
    from xyro.plugins.changes.change_stream import ChangeSource, read_all
    from xyro.plugins.changes.routes import NOT_RECORDED
    from xyro.service.cli.stopped_crawl import stopped_views
    from xyro.wire.clock import SystemClock

    with stopped_views(directory) as views:
        source = ChangeSource.of_stopped(views)
        if source is None:
            raise InputError(f"{directory}: {NOT_RECORDED}")
        return asyncio.run(read_all(source, since, change_filter(where), SystemClock().time()))
