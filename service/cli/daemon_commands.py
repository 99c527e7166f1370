"""The commands that ask something of the running process: `xyro submit`, `pause`, `resume`, `block`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

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
    what was refused and why, and then exits with 1.
    """
    remote = place.daemon(wait)
    accepted = refused = 0
    for _, count, refusals in submitted(remote, _urls_of(urls, file), priority):
        accepted += count
        refused += len(refusals)
        tell_refused(refusals, "refused")
    if not accepted + refused:
        raise InputError("no URL was given; name some, or --file FILE, or pipe them in, one a line")
    click.echo(f"{accepted:,} accepted, {refused:,} refused")
    sys.exit(1 if refused else 0)


def submitted(
    remote: Remote | ClusterRemote, urls: Iterable[str], priority: str = "ordered"
) -> Iterator[tuple[list[str], int, list[tuple[str, str]]]]:
    """Hand URLs over in batches; yield of each (URLs, number of those accepted, refused ones and why)."""
    for batch in _batches(urls):
        answer = remote.post("/submit", {"urls": batch, "priority": priority})
        yield batch, answer["accepted"], [(row["url"], row["why"]) for row in answer["refused"]]


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
