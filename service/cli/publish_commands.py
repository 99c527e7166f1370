"""The commands publish, subscribe, subscriptions and unsubscribe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.service.cli.options import as_json_too, tell, tell_refused
from xyro.service.cli.running_crawl import with_wait
from xyro.wire.errors import InputError
from xyro.wire.text import printable

if TYPE_CHECKING:
    from xyro.metadata.partition import Partition

AT_ONCE = 10_000
MENDS = {"out-of-scope": "out-of-scope: `xyro submit` widens the scope"}
"""why a publication is refused -> what to do"""


@click.command()
@click.argument("urls", nargs=-1, metavar="URL...", required=True)
@with_place
@click.option("--changed", "claim", flag_value="changed", default=True, help="The pages have changed [the default].")
@click.option("--new", "claim", flag_value="new", help="The pages are new.")
@click.option("--every", default=None, metavar="SPAN", help="How often they change, such as 7d: counts as evidence.")
@click.option(
    "--deadline", default=None, metavar="SPAN", help="Read them within this time, such as 1h [[publish] deadline]."
)
def publish(urls: tuple[str, ...], place: CrawlPlace, claim: str, every: str | None, deadline: str | None) -> None:
    """Tell the running daemon that pages have changed.

    They are ordered at once, and `xyro status` counts whether they were read within the deadline. They must be in the
    crawl's scope (`xyro submit` widens it). Says what was refused and why, and then exits with 1.
    """
    claims = {key: value for key, value in (("claim", claim), ("every", every), ("deadline", deadline)) if value}
    remote = place.daemon()
    accepted = refused = 0
    for first in range(0, len(urls), AT_ONCE):
        answer = remote.post("/publish", {"urls": list(urls[first : first + AT_ONCE]), **claims})
        accepted += answer["accepted"]
        refused += len(answer["refused"])
        tell_refused(((row["url"], MENDS.get(row["why"], row["why"])) for row in answer["refused"]), "refused")
    click.echo(f"{accepted:,} published, {refused:,} refused")
    sys.exit(1 if refused else 0)


@click.command(short_help="Get a notice at intervals of what has changed.")
@click.argument("target", metavar="URL|PATTERN")
@click.option("--every", required=True, metavar="SPAN", help="Time between two notices: 15m, 1h, 7d.")
@click.option(
    "--notify", required=True, metavar="URL|COMMAND", help="POST JSON there, or run this command with it on stdin."
)
@with_place
@with_wait
def subscribe(target: str, every: str, notify: str, place: CrawlPlace, wait: float | None) -> None:
    """Get a notice at intervals of what has changed on a page, or on all pages of a pattern with * and ?.

    Pages are read again before each notice is due. A command is run without a shell, for at most a minute. Prints the
    number of the subscription.
    """
    from xyro.wire.durations import seconds

    span = seconds(every, "--every")
    if (remote := place.find(wait)) is not None:
        number = remote.post("/subscriptions", {"target": target, "every": span, "notify": notify})["id"]
    else:
        number = _subscribe_stopped(place.directory, target, span, notify)
    click.echo(number)


@click.command(short_help="List the subscriptions and their next notices.")
@with_place
@as_json_too
def subscriptions(place: CrawlPlace, as_json: bool) -> None:
    """List the subscriptions: their pages, their subscribers, and the next notice."""
    from xyro.wire.durations import span

    listed = remote.get("/subscriptions")["subscriptions"] if (remote := place.find()) else _stopped(place.directory)
    if as_json:
        click.echo(json.dumps(listed))
        return
    if not listed:
        tell("nobody is told of anything; `xyro subscribe` begins it", err=True)
    for subscription in listed:
        failed = f" (last try: {subscription['error']})" if subscription["error"] else ""
        click.echo(
            f"{subscription['id']}  {printable(subscription['target'])}  every {span(subscription['every_s'])} "
            f"to {printable(subscription['notify'])}: "
            f"{subscription['notices']:,} told, next {subscription['next_notice']}{failed}"
        )


@click.command()
@click.argument("number", type=click.IntRange(min=1), metavar="ID")
@with_place
def unsubscribe(number: int, place: CrawlPlace) -> None:
    """End a subscription."""
    if (remote := place.find()) is not None:
        found = remote.post("/unsubscribe", {"id": number})["known"]
    else:
        found = _unsubscribe_stopped(place.directory, number)
    if not found:
        raise InputError(f"{number}: no such subscription; `xyro subscriptions` lists them")
    click.echo(f"{number}: ended")


# A crawl that does not run


@contextmanager
def _opened(directory: Path) -> Iterator[Partition]:
    """The partition that has the subscriptions."""
    from xyro.service.node.stopped import stopped_partition
    from xyro.wire.ids import HOME

    with stopped_partition(directory, HOME) as partition:
        yield partition


def _write(partition: Partition, key: bytes, row: bytes | None) -> None:
    """One row, in a commit group of its own."""
    partition.begin()
    if row is None:
        partition.delete(key)
    else:
        partition.put(key, row)
    commit = partition.seal({key: value for key, value in partition.scalars.items() if key != "commit"})
    partition.write(commit)
    partition.written(commit)


def _subscribe_stopped(directory: Path, target: str, every: float, notify: str) -> int:
    from xyro.configs.load import load
    from xyro.metadata import rows
    from xyro.plugins.publish.publication_rows import made, stored
    from xyro.service.node import crawl_file
    from xyro.service.node.guard_factory import guard_of
    from xyro.wire.clock import SystemClock

    with _opened(directory) as partition:
        settings = load(crawl_file.paths(directory))
        row = made(target, every, notify, SystemClock().time(), settings.crawl.fold_slashes)
        if row.url:
            guard_of(settings.fetch).check_receiver(row.url, "--notify")
        number = max((number for number, _ in stored(partition)), default=0) + 1
        _write(partition, rows.SUBSCRIPTION.key(number), rows.pack(row))
    return number


def _unsubscribe_stopped(directory: Path, number: int) -> bool:
    from xyro.metadata import rows
    from xyro.plugins.publish.publication_rows import stored

    with _opened(directory) as partition:
        found = any(number == other for other, _ in stored(partition))
        if found:
            _write(partition, rows.SUBSCRIPTION.key(number), None)
    return found


def _stopped(directory: Path) -> list[dict[str, Any]]:
    from xyro.plugins.publish.publication_rows import described, stored

    with _opened(directory) as partition:
        return [described(number, row, len(row.seen)) for number, row in stored(partition)]
