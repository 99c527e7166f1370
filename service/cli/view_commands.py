"""The commands that look at a crawl, running or stopped: `xyro status`, `top`, `why`, `export`, `audit`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.service.cli.options import FiniteFloat, as_json_too, tell, terminal_width
from xyro.service.cli.partial_rows import PartialRows
from xyro.service.cli.stopped_crawl import audited, exported, stopped_crawl, stopped_views
from xyro.wire.errors import InputError
from xyro.wire.text import printable

if TYPE_CHECKING:
    from xyro.service.views.views import Views


CHOSEN_FROM = ("texts", "warc")
"""tables of which `export` writes those rows that it is asked for"""


def _view_of(place: CrawlPlace, path: str, local: Callable[[Views], Any], **query: Any) -> Any:
    """Ask the running process, or look into the stopped directory."""
    remote = place.find()
    if remote is not None:
        return remote.get(path, **query)
    with stopped_views(place.directory) as views:
        return local(views)


@click.command(short_help="Show the state of the crawl, running or stopped.")
@with_place
@click.option("--check", is_flag=True, help="Only check the health of this process: exit code 0 if it works.")
@as_json_too
def status(place: CrawlPlace, check: bool, as_json: bool) -> None:
    """Show the state of the crawl, running or stopped: what limits its speed now, what is wrong, then its figures.

    Figures that say nothing are left out; --json has all of them. known: URLs found so far; turnovers: how often all
    cash was passed on; spends: pages that passed theirs on; freshness: share of importance that is up to date, from the
    model and corrected by reads and audits (freshness model: the model alone); changes over believed: changes that
    reads showed, for each one that the model expected; missed changes: changes that no read has shown yet, weighed by
    importance; execution by folders: due pages are found by the dates of their folders, dated: pages in these. A page
    is blocked by the rules for addresses and ports; a host by people.
    """
    if check and place.join:
        raise InputError("--check: is asked of one process; name its directory with --data")
    remote = place.daemon() if check else place.find()
    if remote is not None:
        fields = remote.get("/health" if check else "/status")
    else:
        from xyro.plugins.view_extensions import VIEW_EXTENSIONS
        from xyro.wire.clock import SystemClock

        with stopped_crawl(place.directory) as crawl:
            fields = crawl.stopped_status(VIEW_EXTENSIONS, SystemClock().time())
    if as_json:
        click.echo(json.dumps(fields))
        return
    from xyro.service.views.limits import limit_lines, limits
    from xyro.service.views.text_tables import field_lines, informative_fields, wrapped

    head = "" if check else f"{wrapped(limit_lines(limits(fields)))}\n\n"
    tell(f"{head}{field_lines(informative_fields(fields))}")


@click.command(short_help="Show the first pages or sites.")
@with_place
@click.option("-n", "count", type=click.IntRange(1, 100_000), default=20, help="How many [20].")
@click.option(
    "--by",
    type=click.Choice(["importance", "read", "cash", "stale", "rising", "site"]),
    default="importance",
    help="Order [importance].",
)
@click.option("--level", type=click.Choice(["host", "domain"]), default="host", help="What a site is [host].")
@as_json_too
def top(place: CrawlPlace, count: int, by: str, level: str, as_json: bool) -> None:
    """Show the first pages by importance, cash, staleness or growth, or the first sites.

    All known pages have an importance; "read" leaves out those that were never read. By stale: by importance x stale,
    the probability that the page has changed since its last read. Rising pages grew more than chance explains (growth:
    log, a turnover). Sites are ranked by the links between them (--level: hosts, or registrable domains).
    """
    from xyro.wire.clock import SystemClock

    def local(views: Views) -> Any:
        from xyro.service.views.site_ranking import top_sites

        return top_sites(views, count, level) if by == "site" else views.top(count, by, SystemClock().time())

    rows = _view_of(place, "/top", local, n=count, by=by, level=level)
    if as_json:
        click.echo(json.dumps(rows))
        return
    from xyro.service.views.text_tables import pages_table

    tell(pages_table(rows, by, terminal_width()))


@click.command(short_help="Explain what is known of URL, and its next read.")
@click.argument("url")
@with_place
@as_json_too
def why(url: str, place: CrawlPlace, as_json: bool) -> None:
    """Explain what is known of URL, and what decides when it is read next, in sentences; --json: with all values."""
    from xyro.wire.clock import SystemClock
    from xyro.wire.urls import canonical

    canonical(url)  # refused before anything is opened

    def local(views: Views) -> Any:
        from xyro.service.views.cash_sources import find_parents, greatest_givers, targets_of
        from xyro.service.views.why import why as explain
        from xyro.service.views.why import with_givers

        wanted = canonical(url, fold_slashes=views.scope.fold_slashes)
        explanation, targets = explain(views, wanted, SystemClock().time()), targets_of(views, wanted)
        parents = find_parents(views, targets, SystemClock())
        return with_givers(explanation, greatest_givers(views, parents)) if targets else explanation

    explanation = _view_of(place, "/why", local, url=url)
    if as_json:
        click.echo(json.dumps(explanation))
        return
    from xyro.service.views.text_tables import wrapped

    because, width = explanation["because"], terminal_width()
    tell(wrapped(because, width) if width else "\n".join(printable(sentence, 1000) for sentence in because))


@click.command(short_help="Write all pages, documents, links, hosts or texts.")
@click.argument("table", type=click.Choice(["pages", "documents", "links", "hosts", "histories", "texts", "warc"]))
@with_place
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv", "parquet"]), help="Format [by the ending of FILE, or jsonl]."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="File [stdout].")
@click.option("--by", type=click.Choice(["url", "importance", "date"]), default=None, help="texts, warc: order [url].")
@click.option(
    "--since", default="", metavar="TIME", help="Texts found, answers of warc since then: 2026-11-22, yesterday, 24h."
)
@click.option(
    "--min-importance",
    type=FiniteFloat(0),
    default=None,
    metavar="X",
    help="texts, warc: pages of this importance or more [0].",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    metavar="FOLDER",
    help="texts: a file for each page in this folder; again: only what has changed.",
)
@click.option(
    "--as", "text_form", type=click.Choice(["markdown", "text"]), default=None, help="Form of --to [markdown]."
)
@click.option("--delete", is_flag=True, help="With --to: delete the files of pages that are gone.")
def export(
    table: str,
    place: CrawlPlace,
    form: str | None,
    output: Path | None,
    by: str | None,
    since: str,
    min_importance: float | None,
    folder: Path | None,
    text_form: str | None,
    delete: bool,
) -> None:
    """Write all pages, XML documents, links, hosts or change histories as of one commit, or the stored contents of
    pages.

    histories: JSON lines only, for `xyro lab refresh --changes`; texts: the latest text of each page, plain and as
    Markdown ([keep] text); warc: the WARC files ([keep] warc) and what is in them. Importance is that of now.

    texts --to FOLDER: a Markdown file for each page, in folders as in its URL; FOLDER/_pages.jsonl lists them.
    """
    from xyro.wire.clock import SystemClock
    from xyro.wire.moments import moment

    choice = {"--by": by, "--since": since or None, "--min-importance": min_importance}
    if table not in CHOSEN_FROM and (given := [name for name, value in choice.items() if value is not None]):
        raise InputError(f"{given[0]}: chooses among texts and warc; `xyro export {table}` writes all rows, by id")
    start = moment(since, "--since", SystemClock().time()) if since else 0.0
    if folder is not None:
        if table != "texts" or form or output or by:
            raise InputError("--to: `xyro export texts --to FOLDER`, without -o, --format and --by")
        from xyro.service.cli.page_commands import export_folder

        with exported(place, "pages") as rows:
            export_folder(place, rows, folder, text_form or "markdown", start, min_importance or 0.0, delete)
        return
    if delete or text_form:
        raise InputError(f"{'--delete' if delete else '--as'}: only with --to FOLDER")
    from xyro.service.views.export import check, form_of, write_rows

    out = None if output == Path("-") else output
    form = form_of(form, out)
    if table == "histories" and form != "jsonl":
        raise InputError(f"--format {form}: histories are lists, which only jsonl holds; leave it out")
    check(form, out)
    if table in CHOSEN_FROM:
        from xyro.service.cli.page_commands import export_contents

        export_contents(place, table, by or "url", start, min_importance or 0.0, form, out)
        return
    with exported(place, table) as rows:
        write_rows(table, rows, form, out)


@click.command(short_help="Show hosts with most waiting links and orders, or what hosts cost.")
@with_place
@click.option("-n", "count", type=click.IntRange(1, 100_000), default=20, help="How many [20].")
@click.option("--by", type=click.Choice(["waiting", "bytes", "requests", "seconds"]), default="waiting",
              help="Order [waiting]; the others show what each host has cost.")  # fmt: skip
@as_json_too
def hosts(place: CrawlPlace, count: int, by: str, as_json: bool) -> None:
    """Show the hosts with most waiting links, then those with most orders; or, --by bytes, requests or seconds, those
    that have cost most.

    What hosts cost: the bytes received for their pages, the requests for these (each read, each failure), and the
    seconds that they took, in all and each; robots.txt is not counted. How much of it each page costs is in how often
    it is read: `xyro plan`, `xyro why URL`.

    orders: how many pages of the host were ordered while they were unread, whether they were read since or not (what
    is long ago counts less); unread: its unread pages now, and most: how many it may have; poor:
    pages of patterns that breed, which get 2 % of the reads in all, or what nothing else needs; credit: new hosts that
    links of its domain may still introduce, and brought: those they did; waiting: links of its pages that wait for
    either limit; fails: failures of the host in a row. A line below says whether the host is paused or blocked, and
    which [[sites]] entry applies. Exit code 3: a node of the cluster did not answer, and is named; the rows are those
    of the others.
    """
    from xyro.service.views.host_standing import first_hosts, hosts_table

    remote = place.find()
    if remote is not None:
        found = PartialRows(remote.lines("/export/hosts", partial=1))
        rows = first_hosts(found, count, by)
    else:
        with stopped_views(place.directory) as views:
            found = PartialRows(views.hosts())
            rows = first_hosts(found, count, by)
    click.echo(json.dumps(rows) if as_json else hosts_table(rows, terminal_width(), by))
    found.tell_missing()


@click.command()
@with_place
@as_json_too
def audit(place: CrawlPlace, as_json: bool) -> None:
    """Check every invariant; exit code 0 only if all hold.

    The audit counts cash to the unit, and checks that maps, links, rows, counters and outboxes agree with each other,
    as of one commit. virtual: cash that was given to no page, for it came from pages without links or by links out of
    scope, until all pages share it; in flight: cash on its way between partitions. Exit code 1: an invariant does not
    hold; 3: not known, because a node of the cluster did not answer, or the directory, that of a node or its backup,
    has not all partitions: those there are checked, without cash.
    """
    remote = place.find()
    report = remote.get("/audit") if remote is not None else audited(place.directory)
    if as_json:
        click.echo(json.dumps(report))
    else:
        from xyro.service.views.text_tables import audit_text

        tell(audit_text(report))
    sys.exit(0 if report["ok"] else 1 if report["violations"] else 3)
