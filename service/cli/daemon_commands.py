"""The commands that ask something of the running process: `xyro submit`, `pause`, `resume`, `block`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.service.cli.options import tell_refused
from xyro.service.cli.running_crawl import with_wait
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from xyro.service.cluster.cluster_remote import ClusterRemote
    from xyro.service.node.run_file import Remote

AT_ONCE, BYTES_AT_ONCE = 10_000, 1 << 20
"""URLs and characters that `submit` hands over in one request"""


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@with_place
@click.option("--file", type=click.Path(path_type=Path, allow_dash=True), help="URLs, one a line; - is standard input.")
@click.option("--priority", type=click.Choice(["ordered"]), default="ordered", help="Level of the queue [ordered].")
@with_wait
def submit(urls: tuple[str, ...], place: CrawlPlace, file: Path | None, priority: str, wait: float | None) -> None:
    """Hand URLs to the running daemon.

    URLs come from arguments, a file, or standard input. Each one is a seed: it widens the scope, and is read next. Says
    what was refused and why, and then exits with 1; with 3 if the node of a URL's host does not answer.
    """
    remote = place.daemon(wait)
    accepted = refused = absent = 0
    for batch in submitted(remote, _urls_of(urls, file), priority):
        accepted += batch.accepted
        refused += len(batch.refused)
        absent += len(batch.absent)
        tell_refused(batch.refused, "refused")
        tell_refused(batch.absent, "not accepted")
    if not accepted + refused + absent:
        raise InputError("no URL was given; name some, or --file FILE, or pipe them in, one a line")
    late = f", {absent:,} not accepted: the nodes of their hosts are away" if absent else ""
    click.echo(f"{accepted:,} accepted, {refused:,} refused{late}")
    sys.exit(3 if absent else 1 if refused else 0)


class Submitted(NamedTuple):
    """A batch of URLs that was handed over."""

    urls: list[str]
    accepted: int
    refused: list[tuple[str, str]]
    """URL and why"""
    absent: list[tuple[str, str]]
    """URL and which node has not taken it"""


def submitted(remote: Remote | ClusterRemote, urls: Iterable[str], priority: str = "ordered") -> Iterator[Submitted]:
    """Hand URLs over in batches."""
    for batch in _batches(urls):
        answer = remote.post("/submit", {"urls": batch, "priority": priority})
        refused, absent = ([(row["url"], row["why"]) for row in answer.get(key, ())] for key in ("refused", "absent"))
        yield Submitted(batch, answer["accepted"], refused, absent)


def _urls_of(urls: tuple[str, ...], file: Path | None) -> Iterator[str]:
    """URLs as people wrote them; bytes that are no UTF-8 stay visible and are refused."""
    yield from urls
    piped = file == Path("-") or (not urls and file is None and not sys.stdin.isatty())
    try:
        if piped:
            yield from (line.decode(errors="surrogateescape") for line in sys.stdin.buffer)
        elif file is not None:
            with file.open("rb") as lines:
                yield from (line.decode(errors="surrogateescape") for line in lines)
    except OSError as error:
        raise InputError(f"--file {file}: {error.strerror}; name a file with one URL a line") from error


def _batches(urls: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for url in urls:
        if batch and (len(batch) == AT_ONCE or size + len(url) > BYTES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(url[:BYTES_AT_ONCE])  # far longer than a URL may be: refused, whatever follows
        size += len(url)
    if batch:
        yield batch


def _host_command(name: str, doc: str, short: str | None = None) -> click.Command:
    @click.command(name, help=doc, short_help=short)
    @click.argument("host")
    @with_place
    def command(host: str, place: CrawlPlace) -> None:
        named = _authority(host)
        if not place.daemon().post("/hosts", {"host": named, "action": name})["known"]:
            raise InputError(f"{named}: no page of this host is known; `xyro export hosts` lists those that are")
        click.echo(f"{named}: {name}{'d' if name.endswith('e') else 'ed'}")

    return command


def _authority(host: str) -> str:
    """The host as the crawl books it, of a host, host:port or URL."""
    from xyro.wire.urls import authority, canonical

    scheme = "https" if host.endswith(":443") else "http"
    return authority(canonical(host if "://" in host else f"{scheme}://{host}"))


pause = _host_command("pause", "Start no read of HOST until it is resumed.")
resume = _host_command("resume", "Read HOST again, after pause or block.")
block = _host_command(
    "block",
    "Cancel all orders of HOST; start no read of it until it is resumed.",
    "Start no read of HOST, and cancel its orders.",
)
