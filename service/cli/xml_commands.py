"""The commands over stored XML documents: `xyro xml get`, `versions`, `query`, `diff`, `dtds`, `stats`."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.service.cli.options import FiniteFloat, as_json_too, tell, terminal_width
from xyro.service.cli.stopped_crawl import stopped_views
from xyro.wire.errors import InputError, MachineError
from xyro.wire.text import counted, printable

if TYPE_CHECKING:
    from xyro.plugins.warehouse.version_diff import Version
    from xyro.service.cluster.cluster_remote import ClusterRemote
    from xyro.service.node.run_file import Remote
    from xyro.service.views.views import Views

    Source = Remote | ClusterRemote | Views
WIDE = 2_000
"""most characters of a line for people"""


@click.group(short_help="Show the XML documents that were read, every version.")
def xml() -> None:
    """Show the XML documents that were read, in every version."""


@contextlib.contextmanager
def _source(place: CrawlPlace) -> Iterator[Source]:
    """The running process, or the stopped crawl."""
    remote = place.find()
    if remote is not None:
        yield remote
        return
    with stopped_views(place.directory) as views:
        yield views


def _version(source: Source, reference: str, version: int | None, moment: str) -> Version:
    from xyro.plugins.warehouse.documents_view import body
    from xyro.plugins.warehouse.version_diff import Version
    from xyro.service.views.views import Views

    named = "" if version is None else str(version)
    if not isinstance(source, Views):
        found, headers = source.body("/xml/body", what=reference, version=named, at=moment)
        return Version(int(headers["Version"]), int(headers["Elements"]), headers["Charset"], found)
    number, row, found = body(source, reference, named, moment)
    return Version(number, row.elements, row.charset, found)


_reference = click.argument("reference", metavar="URL|ID")


@xml.command()
@_reference
@with_place
@click.option("--version", type=click.IntRange(1), default=None, help="This version [the latest].")
@click.option(
    "--at",
    "moment",
    default="",
    metavar="TIME",
    help="The version that held then: 2026-11-22T10:30:00Z, yesterday, 24h (ago).",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="File [stdout].")
def get(reference: str, place: CrawlPlace, version: int | None, moment: str, output: Path | None) -> None:
    """Write a document as it was read, byte for byte."""
    from xyro.service.views.export import write_bytes

    with _source(place) as source:
        found = _version(source, reference, version, moment)
    write_bytes(found.body, None if output == Path("-") else output)


@xml.command()
@_reference
@with_place
@as_json_too
def versions(reference: str, place: CrawlPlace, as_json: bool) -> None:
    """List the stored versions of a document, oldest first."""
    from xyro.plugins.warehouse.documents_view import versions as look
    from xyro.service.views.text_tables import url_lines
    from xyro.service.views.views import Views

    with _source(place) as source:
        rows = look(source, reference) if isinstance(source, Views) else source.get("/xml/versions", what=reference)
    if as_json:
        click.echo(json.dumps(rows))
        return
    width = terminal_width()
    head = f"{'version':>7} {'read at':20} {'until':20} {'bytes':>9} {'changed':>8} {'verdict':11}"
    click.echo("\n".join(url_lines(f"{head} ", "digest", width)))
    for row in rows:
        changed = "-" if row["changed"] is None else f"{row['changed']:,}"
        line = (
            f"{row['version']:7d} {row['read_at'] or '-':20} {row['until'] or 'now':20} {row['size']:9,} "
            f"{changed:>8} {row['verdict']:11} "
        )
        click.echo("\n".join(url_lines(line, row["digest"], width)))


@xml.command()
@click.argument("xpath")
@with_place
@click.option("--host", default="", metavar="HOST", help="Documents of this host[:port] only.")
@click.option("--root", default="", metavar="TAG", help="With this root: name, {namespace}name, or prefix:name.")
@click.option("--namespace", multiple=True, metavar="P=URI", help="A prefix for XPATH and --root; may be repeated.")
@click.option("--by", type=click.Choice(["importance", "url", "date"]), default="importance",
              help="Which documents come first [importance].")  # fmt: skip
@click.option("-n", "count", type=click.IntRange(1), default=None, help="At most so many matches [all].")
@click.option("--seconds", type=FiniteFloat(0.01, 600), default=2.0, help="CPU that one document may take [2].")
@as_json_too
def query(
    xpath: str,
    place: CrawlPlace,
    host: str,
    root: str,
    namespace: tuple[str, ...],
    by: str,
    count: int | None,
    seconds: float,
    as_json: bool,
) -> None:
    """Evaluate XPATH over the latest version of every stored document.

    Prints a line for each match as it is found: URL and match, tab-separated, or a JSON object. XPath 1.0 without
    extension functions. Documents that take too long or too much memory are skipped; the command then says so at the
    end, and exits with 1.
    """
    from xyro.plugins.warehouse.xpath_query import XPathQuery, namespaces_of, root_of

    prefixes = namespaces_of(namespace)
    evaluation = XPathQuery(xpath, prefixes, seconds)
    with _source(place) as source:
        documents = _bodies(source, host, root_of(root, prefixes), by)
        with contextlib.closing(evaluation.matches(documents)) as matches:
            for row in islice(matches, count):
                click.echo(json.dumps(row) if as_json else f"{row['url']}\t{printable(row['match'], WIDE)}")
    if not evaluation.documents:
        among = " with this --host and --root" if host or root else ""
        tell(f"no document{among} is stored; `xyro xml stats` tells what is", err=True)
    for why, times in evaluation.skipped.items():
        tell(f"{times:,} of {evaluation.documents:,} documents: {printable(why, 500)}", err=True)
    sys.exit(1 if evaluation.skipped else 0)


def _bodies(source: Source, host: str, root: str, by: str) -> Iterator[dict[str, Any]]:
    from xyro.plugins.warehouse.documents_view import bodies, chosen
    from xyro.service.views.views import Views

    if isinstance(source, Views):
        yield from bodies(source, chosen(source, host, root, by))
        return
    parts = [row["pages"] for row in source.lines("/xml/chosen", host=host, root=root, by=by)]
    for part in parts:
        while part:
            answer = source.post("/xml/bodies", {"pages": part})
            yield from answer["documents"]
            part = part[answer["taken"] :]


@xml.command()
@_reference
@with_place
@click.option("--from", "old", type=click.IntRange(1), default=None, help="Version [the one before --to].")
@click.option("--to", "new", type=click.IntRange(1), default=None, help="Version [the latest].")
@as_json_too
def diff(reference: str, place: CrawlPlace, old: int | None, new: int | None, as_json: bool) -> None:
    """Show what changed between two versions, as edits of the tree.

    For documents too large for that, shows a difference of their lines (tags).
    """
    from xyro.plugins.warehouse.version_diff import difference

    with _source(place) as source:
        after = _version(source, reference, new, "")
        if old is None and after.number == 1:
            raise InputError(f"{reference}: version 1 is the only one before --to; there is nothing to compare it with")
        before = _version(source, reference, after.number - 1 if old is None else old, "")
    found = difference(before, after)
    if as_json:
        click.echo(json.dumps(found))
        return
    if found["why"]:
        tell(f"{'lines' if found['method'] == 'text' else 'not'} compared: {printable(found['why'], 500)}", err=True)
    for line in found["lines"]:
        click.echo(printable(line, WIDE))
    if found["cut"]:
        tell(f"only the first {len(found['lines']):,} are told", err=True)


@xml.command(short_help="List DTDs and schemas, and who uses them.")
@with_place
@click.option("-n", "limit", type=click.IntRange(0), default=10, help="Documents that are named of each; 0 = all [10].")
@as_json_too
def dtds(place: CrawlPlace, limit: int, as_json: bool) -> None:
    """List DTDs and schemas with the documents that use them, most used first."""
    from xyro.plugins.warehouse.documents_view import dtds as look
    from xyro.service.views.views import Views

    with _source(place) as source:
        rows = look(source, limit) if isinstance(source, Views) else source.lines("/xml/dtds", most=limit)
        row = None
        for row in rows:
            if as_json:
                click.echo(json.dumps(row))
                continue
            stored = (
                f"{counted(row['versions'], 'version')}, {row['size']:,} bytes"
                if row["id"] is not None
                else "not stored"
            )
            click.echo(f"{row['documents']:8,}  {printable(row['url'], WIDE)}  ({stored})")
            for user in row["used_by"]:
                click.echo(f"          {user}")
    if row is None and not as_json:
        click.echo("No DTD or schema is known.")


@xml.command(short_help="Show sizes, tags, depth, DTDs and changes of XML.")
@with_place
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), default=None, help="Draw it: FILE.png, .svg, .pdf."
)
@as_json_too
def stats(place: CrawlPlace, plot: Path | None, as_json: bool) -> None:
    """Show statistics of the XML found: against HTML, sizes, tags, depth, DTDs, how often and how much it changes."""
    from xyro.plugins.warehouse.stats_plot import check, draw
    from xyro.plugins.warehouse.warehouse_stats import stats as look
    from xyro.plugins.warehouse.warehouse_stats import stats_text
    from xyro.service.views.views import Views

    if plot is not None:
        check(plot)
    with _source(place) as source:
        found = look(source) if isinstance(source, Views) else source.get("/xml/stats")
    click.echo(json.dumps(found) if as_json else stats_text(found))
    if plot is not None:
        try:
            draw(found, plot)
        except OSError as error:
            raise MachineError(f"--plot {plot}: {error.strerror or error}: free or mend the disk") from error
