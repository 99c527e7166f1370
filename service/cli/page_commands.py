"""The commands over what is kept of pages: `xyro page get`, `versions`, `diff`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.service.cli.options import as_json_too, tell, terminal_width
from xyro.service.cli.partial_rows import tell_missing
from xyro.wire.errors import InputError, XyroError
from xyro.wire.text import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from xyro.plugins.contents.cluster_contents import ClusterContents
    from xyro.plugins.contents.contents_view import ContentsView
    from xyro.wire.ids import PageId

WIDE = 2_000
"""most characters of a line for people"""
LONGEST_ESCAPE = 10
"""characters that one is escaped by"""
MOST_GONE = 20
"""pages that are gone, each with a line of its own"""


@click.group(short_help="Show stored contents of pages: HTML, text, Markdown.")
def page() -> None:
    """Show stored contents of pages: HTML as it was read, text and Markdown, every version.

    `[keep] warc = true` stores HTML, `[keep] text = true` text and Markdown; both are off by default.
    """


def contents_of(place: CrawlPlace, partial: bool = False) -> ContentsView | ClusterContents:
    """Open the contents of the crawl in a data directory, running or stopped, or of all nodes of a cluster. partial:
    of those that answer."""
    from xyro.plugins.contents.cluster_contents import ClusterContents

    if (remote := place.cluster()) is not None:
        return ClusterContents(remote.nodes(), lambda partition: remote.placement.owners[partition].node, partial)
    from xyro.configs.load import load
    from xyro.contents_index import FOLDER
    from xyro.plugins.contents.contents_view import ContentsView
    from xyro.service.node import crawl_file
    from xyro.wire.clock import SystemClock

    directory = place.directory
    keep = load(crawl_file.paths(directory), {}, {}).keep
    return ContentsView(Path(keep.directory) if keep.directory else directory / FOLDER, SystemClock().time())


def tell_nothing(place: CrawlPlace, view: ContentsView | ClusterContents, table: str) -> bool:
    """Say so where a crawl has none of what is to be exported, texts or warc. InputError: it does not keep that."""
    if not view.is_empty(table):
        return False
    from xyro.configs.load import load
    from xyro.service.node import crawl_file

    name, option = ("texts", "--text") if table == "texts" else ("WARC files", "--warc")
    keep = load(crawl_file.paths(place.directory), {}, {}).keep
    if not (keep.text if table == "texts" else keep.warc):
        raise InputError(f"{place.directory}: 0 pages: this crawl kept no {name}; one with {option} ([keep]) does")
    tell(
        f"0 pages: no page was read yet whose {name} this crawl could keep; `xyro log --errors` has failures", err=True
    )
    return True


def export_contents(
    place: CrawlPlace, table: str, by: str, since: float, least: float, form: str, out: Path | None
) -> None:
    """Write the latest text of each page (texts), or what is in each WARC file (warc). since: seconds since 1970."""
    from xyro.plugins.contents.cluster_contents import ClusterContents
    from xyro.service.views.export import write_rows

    with contents_of(place) as view:
        is_empty = tell_nothing(place, view, table)
        if not isinstance(view, ClusterContents):
            view.weigh(_importances(place))
        count = write_rows(table, (view.texts if table == "texts" else view.warc)(by, since, least), form, out)
        if not count and not is_empty:
            tell("0 pages: nothing that is kept is of that time and importance", err=True)


def _importances(place: CrawlPlace) -> list[tuple[int, NDArray[np.float32]]]:
    """The importances of now; none where they cannot be had, as of a node that was stopped, which is told."""
    from xyro.service.cli.stopped_crawl import importances

    try:
        return importances(place)
    except XyroError as error:
        tell(f"importances are those of the pages' last reads: {error}", err=True)
        return []


def export_folder(
    place: CrawlPlace,
    rows: Iterable[dict[str, Any]],
    folder: Path,
    form: str,
    since: float,
    least: float,
    delete: bool,
) -> None:
    """Write the latest text of each page to a file in a folder, and say what is new, changed and gone. rows: of `export
    pages`. since: seconds since 1970."""
    from xyro.plugins.contents.text_folder import LIST, TextFolder

    with contents_of(place) as view:
        tell_nothing(place, view, "texts")
        done = TextFolder(folder, form).sync(view, rows, since, least, delete)
    for entry in done.gone[:MOST_GONE]:
        tell(f"gone ({entry['gone']}): {printable(entry['url'], WIDE)}")
    if len(done.gone) > MOST_GONE:
        tell(f"... and {len(done.gone) - MOST_GONE:,} more")
    counts = f"{done.new:,} new, {done.changed:,} changed, {done.unchanged:,} unchanged, {len(done.gone):,} gone"
    tell(f"{counts}{' and deleted' if delete and done.gone else ''}; {folder / LIST} lists them")


def _page(view: ContentsView | ClusterContents, url: str) -> PageId:
    from xyro.wire.urls import canonical

    try:
        return view.page(canonical(url))
    except InputError:
        return view.page(canonical(url, fold_slashes=False))


_url = click.argument("url")


@page.command()
@_url
@with_place
@click.option("--as", "form", type=click.Choice(["html", "text", "markdown"]), default="markdown",
              help="Form [markdown].")  # fmt: skip
@click.option("--version", "number", type=click.IntRange(1), default=None, help="This version [the latest].")
@click.option(
    "--time",
    default="",
    metavar="TIME",
    help="Not with --version: the version at that time: 2026-11-22T10:30:00Z, yesterday, 24h (ago).",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="File [stdout].")
def get(url: str, place: CrawlPlace, form: str, number: int | None, time: str, output: Path | None) -> None:
    """Write a page: its HTML as the server sent it, or its main text, plain or as Markdown."""
    from xyro.service.views.export import write_bytes
    from xyro.wire.clock import SystemClock
    from xyro.wire.moments import moment

    if time and number is not None:
        raise click.UsageError("--version and --time each name one version; give one of them")
    until = math.inf
    if time:  # moments are shown in whole seconds, so what was read within that second counts
        until = math.nextafter(math.floor(moment(time, "--time", SystemClock().time())) + 1, 0)
    with contents_of(place, partial=True) as view:
        found = _page(view, url)
        if form == "html":
            body = view.html(found, until if number is None else view.version(found, number).time)
        else:
            body = (view.text(view.version(found, number, until))[form] + "\n").encode("utf-8", "replace")
    write_bytes(body, None if output == Path("-") else output)
    tell_missing(view.missing)


def _end(gone: str | None) -> str:
    """Until when the last version holds."""
    return "now" if gone is None else f"gone ({gone})"


@page.command()
@_url
@with_place
@as_json_too
def versions(url: str, place: CrawlPlace, as_json: bool) -> None:
    """List the stored versions of a page, oldest first."""
    from xyro.service.views.text_tables import url_lines

    with contents_of(place, partial=True) as view:
        rows = list(view.describe(_page(view, url)))
    if as_json:
        click.echo(json.dumps(rows))
        tell_missing(view.missing)
        return
    click.echo(f"{'version':>7}  {'read at':20}  {'until':20}  {'bytes':>9}  html  title")
    for row in rows:
        size = "-" if row["size"] is None else f"{row['size']:,}"
        line = (
            f"{row['version']:7d}  {row['read_at'] or '-':20}  {row['until'] or _end(row['gone']):20}  {size:>9}  "
            f"{'yes' if row['html'] else 'no':4}  "
        )
        click.echo("\n".join(url_lines(line, printable(row["title"] or "-", 200), terminal_width())))
    tell_missing(view.missing)


@page.command()
@_url
@with_place
@click.option("--from", "old", type=click.IntRange(1), default=None, help="Version [the one before --to].")
@click.option("--to", "new", type=click.IntRange(1), default=None, help="Version [the latest].")
@as_json_too
def diff(url: str, place: CrawlPlace, old: int | None, new: int | None, as_json: bool) -> None:
    """Show the words of a page's text that changed between two versions: [-removed-] {+added+}."""
    from xyro.wire.word_diff import diff_line, word_diff

    with contents_of(place, partial=True) as view:
        found = _page(view, url)
        after = view.version(found, new)
        earlier = [version for version in view.versions(found) if version.number < after.number]
        if old is None and not earlier:
            raise InputError(f"{url}: version {after.number} is the first that is kept; there is nothing to compare")
        before = earlier[-1] if old is None else view.version(found, old)
        changes = word_diff(view.text(before)["text"], view.text(after)["text"])
    if as_json:
        click.echo(json.dumps({"from": before.number, "to": after.number, "changes": changes}))
    for change in () if as_json else changes:
        line = diff_line(change)
        click.echo(printable(line, LONGEST_ESCAPE * len(line)))
    tell_missing(view.missing)
