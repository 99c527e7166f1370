"""The commands that look at a crawl, running or stopped: `xyro status`, `top`, `why`, `export`, `audit`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.options import as_json_too, directory_of, with_data
from xyro.service.cli.stopped_crawl import stopped_crawl, stopped_views
from xyro.wire.text import printable

if TYPE_CHECKING:
    from xyro.service.views.views import Views


def _rows(views: Views, table: str) -> Iterator[dict[str, Any]]:
    """All rows of a table."""
    if table == "hosts":
        from xyro.service.views.site_ranking import SiteRanking

        return views.hosts(SiteRanking(views).row_by_name)
    rows: Iterator[dict[str, Any]] = getattr(views, table)()
    return rows


def _view_of(directory: Path, path: str, local: Callable[[Views], Any], **query: Any) -> Any:
    """Ask the running process, or look into the stopped directory."""
    from xyro.service.node.run_file import Remote

    remote = Remote.find(directory)
    if remote is not None:
        return remote.get(path, **query)
    with stopped_views(directory) as views:
        return local(views)


@click.command()
@with_data
@as_json_too
def status(data: Path | None, as_json: bool) -> None:
    """Show the state of the crawl, running or stopped.

    Lines that have nothing to say are left out; --json has all of them. known: URLs met; turnovers: times that all cash
    was passed on, spends: pages that passed theirs on; freshness: share of importance that is up to date, as the model
    says that reads and audits correct (freshness model: alone); changes over believed: seen by reads, for each that the
    model expected; missed changes: those not seen yet, weighed by importance.
    """
    directory = directory_of(data)
    from xyro.service.node.run_file import Remote

    remote = Remote.find(directory)
    if remote is not None:
        fields = remote.get("/status")
    else:
        from xyro.plugins.view_extensions import VIEW_EXTENSIONS
        from xyro.wire.clock import SystemClock

        with stopped_crawl(directory) as crawl:
            fields = crawl.stopped_status(VIEW_EXTENSIONS, SystemClock().time())
    if as_json:
        click.echo(json.dumps(fields))
        return
    from xyro.service.views.text_tables import field_lines, informative_fields

    click.echo(field_lines(informative_fields(fields)))


@click.command(short_help="The first pages or sites: by importance, staleness ...")
@with_data
@click.option("-n", "count", type=click.IntRange(1, 100_000), default=20, help="How many [20].")
@click.option("--by", type=click.Choice(["importance", "cash", "stale", "rising", "site"]), default="importance",
              help="What comes first [importance].")  # fmt: skip
@click.option("--level", type=click.Choice(["host", "domain"]), default="host", help="What a site is [host].")
@as_json_too
def top(data: Path | None, count: int, by: str, level: str, as_json: bool) -> None:
    """The first pages by importance, cash, staleness or growth, or the first sites.

    Staleness is what is lost: importance x the changes that were probably missed since the last read. Rising pages grew
    more than chance explains. Sites rank by the links between them (--level: hosts, or registrable domains).
    """
    from xyro.wire.clock import SystemClock

    def local(views: Views) -> Any:
        from xyro.service.views.site_ranking import top_sites

        return top_sites(views, count, level) if by == "site" else views.top(count, by, SystemClock().time())

    rows = _view_of(directory_of(data), "/top", local, n=count, by=by, level=level)
    if as_json:
        click.echo(json.dumps(rows))
        return
    from xyro.service.views.text_tables import pages_table

    click.echo(pages_table(rows, by))


@click.command()
@click.argument("url")
@with_data
@as_json_too
def why(url: str, data: Path | None, as_json: bool) -> None:
    """Explain what is known of URL, and what decides when it is read."""
    from xyro.wire.clock import SystemClock
    from xyro.wire.urls import canonical

    canonical(url)  # refused before anything is opened

    def local(views: Views) -> Any:
        from xyro.service.views.cash_sources import find_givers, targets_of
        from xyro.service.views.why import why as explain
        from xyro.service.views.why import with_givers

        wanted = canonical(url, fold_slashes=views.scope.fold_slashes)
        explanation, targets = explain(views, wanted, SystemClock().time()), targets_of(views, wanted)
        return with_givers(explanation, find_givers(views, targets, SystemClock())) if targets else explanation

    explanation = _view_of(directory_of(data), "/why", local, url=url)
    if as_json:
        click.echo(json.dumps(explanation))
        return
    from xyro.service.views.text_tables import field_lines

    because = explanation.pop("because")
    click.echo("\n".join([*(printable(sentence, 1000) for sentence in because), field_lines(explanation)]))


@click.command(short_help="Write all pages, XML documents, links or hosts.")
@click.argument("table", type=click.Choice(["pages", "documents", "links", "hosts"]))
@with_data
@click.option("--format", "form", type=click.Choice(["jsonl", "csv", "parquet"]), help="Form [as FILE ends, or jsonl].")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="File [stdout].")
def export(table: str, data: Path | None, form: str | None, output: Path | None) -> None:
    """Write all known pages, stored XML documents, stored links, or hosts, as of one commit."""
    from xyro.service.node.run_file import Remote
    from xyro.service.views.export import check, form_of, write_rows

    out = None if output == Path("-") else output
    form = form_of(form, out)
    check(form, out)
    directory = directory_of(data)
    remote = Remote.find(directory)
    if remote is not None:
        write_rows(table, remote.lines(f"/export/{table}"), form, out)
        return
    with stopped_views(directory) as views:
        write_rows(table, _rows(views, table), form, out)


@click.command()
@with_data
@as_json_too
def audit(data: Path | None, as_json: bool) -> None:
    """Check every invariant; exit code 0 only if all hold.

    Cash to the unit, and that maps, links, rows, counters and outboxes agree with each other, as of one commit.
    """

    def local(views: Views) -> Any:
        from xyro.plugins.view_extensions import VIEW_EXTENSIONS
        from xyro.service.views.audit import audit as check

        return check(views, VIEW_EXTENSIONS)

    report = _view_of(directory_of(data), "/audit", local)
    if as_json:
        click.echo(json.dumps(report))
    else:
        click.echo(
            f"{'holds' if report['ok'] else 'BROKEN'}: {report['pages']:,} pages, "
            f"{report['cash_total']:,} units of cash, {report['cash_expected']:,} minted; "
            f"{report['virtual']:,} virtual, {report['in_flight']:,} in flight"
        )
        for violation in report["violations"]:
            click.echo(f"  {printable(violation, 500)}")
    sys.exit(0 if report["ok"] else 1)
