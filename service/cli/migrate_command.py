"""The commands that make a data directory anew: `xyro migrate` and `xyro repair`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xyro.service.cli.options import as_json_too, directory_of, with_data
from xyro.wire.text import counted, printable

if TYPE_CHECKING:
    from xyro.plugins.contents.page_standing import PageStanding
    from xyro.service.views.views import Views
    from xyro.wire.ids import PageId

_SENTENCES = {
    "commits": "{}: the last ones; pages first met there are met again",
    "urls": "{}: a stand-in keeps the place of each",
    "reads": "{}: they are read again",
    "links": "{}: they are stored again at the next read",
    "loads": "{}: they are read again",
    "documents": "{}: they are read again",
    "gaps": "{}: what was written there; of pages read then, a read before may stand there as the last",
    "hosts": "{}: their delays, holds and trust",
    "columns": "cash, importance and dates: those of the last commits, or all",
    "cash": "{} of cash: paid to all pages alike",
}
_NOUNS = {
    "commits": "commit",
    "urls": "URL",
    "reads": "read",
    "links": "page without its links",
    "loads": "load that waited for parts",
    "documents": "document",
    "gaps": "damaged place in the store's log",
    "hosts": "host",
    "cash": "unit",
}


@click.command(short_help="Convert a data directory of an older format.")
@click.argument("target", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@with_data
@as_json_too
def migrate(target: Path | None, data: Path | None, as_json: bool) -> None:
    """Convert a data directory of an older Xyro to this version's format.

    The old directory stays beside the new one under another name, as a backup; delete it once the crawl runs well.
    Needs room for a second copy. May be killed and started again. A directory of the current format is left as it is.
    """
    from xyro.service.node.migration import migrate as carry_over

    directory = directory_of(target if target is not None else data)
    result = carry_over(directory, _audit)
    if as_json:
        click.echo(json.dumps(result))
    elif result["migrated"]:
        backup = printable(result["backup"], 1000)
        click.echo(f"{printable(str(directory), 1000)}: now of format {result['format']}; as it was: {backup}")
    else:
        click.echo(f"{printable(str(directory), 1000)}: nothing to do, it is of format {result['format']}")


def _audit(directory: Path) -> dict[str, Any]:
    """The audit of a directory that no process works on."""
    from xyro.plugins.view_extensions import VIEW_EXTENSIONS
    from xyro.service.cli.stopped_crawl import stopped_views
    from xyro.service.views.audit import audit

    with stopped_views(directory) as views:
        return audit(views, VIEW_EXTENSIONS)


@click.command(short_help="Rebuild a damaged directory; say what was lost.")
@with_data
@click.option("--contents", is_flag=True, help="Rebuild the index of stored contents from the WARC files instead.")
@as_json_too
def repair(data: Path | None, contents: bool, as_json: bool) -> None:
    """Rebuild a damaged data directory, and say what was lost.

    Works on a copy, which replaces the directory when its audit is exact; the damaged one stays beside it as
    DIR.damaged. Needs room for a second copy. A directory without damage is left as it is. If you have a backup (`xyro
    backup`), restoring it is better.

    --contents: if DIR/contents/index.sqlite is damaged or lost. Texts that it still yields are taken over, others are
    extracted again from the HTML in the WARC files; texts of pages in neither are lost.
    """
    if contents:
        _rebuild(directory_of(data), as_json)
        return
    from xyro.plugins import extensions
    from xyro.service.node.repair import repair as mend

    directory = directory_of(data)
    result = mend(directory, _audit, extensions)
    if as_json:
        click.echo(json.dumps(result))
        return
    name = printable(str(directory), 1000)
    if not result["repaired"]:
        click.echo(f"{name}: nothing to repair, its audit is exact")
        return
    click.echo(f"{name}: repaired, {result['pages']:,} pages; as it was: {printable(result['damaged'], 1000)}")
    for line in _lines(result["lost"]) or ["nothing was lost"]:
        click.echo(f"  {line}")


def _lines(lost: dict[str, Any]) -> list[str]:
    return [
        "lost " + _SENTENCES[kind].format(counted(abs(int(count)), _NOUNS[kind]) if kind in _NOUNS else "")
        for kind, count in lost.items()
    ]


def _standing(views: Views, number: PageId) -> PageStanding | None:
    from xyro.plugins.contents.page_standing import PageStanding
    from xyro.wire.ids import split

    owner, page = split(number)
    view = views.by_number.get(owner)
    if view is None or page >= view.n:
        return None
    return PageStanding.of_row(view.row(page), int(view.state[page]), 0.0, 0.0, 0)


def _rebuild(directory: Path, as_json: bool) -> None:
    """Make the index of kept contents anew, and say what is in it."""
    from xyro.configs.load import load
    from xyro.contents_index import FOLDER
    from xyro.plugins.contents.contents_rebuild import ContentsRebuild
    from xyro.service.cli.stopped_crawl import stopped_views
    from xyro.service.node import crawl_file

    settings = load(crawl_file.paths(directory), {}, {})
    keep = settings.keep
    place = Path(keep.directory) if keep.directory else directory / FOLDER
    with stopped_views(directory) as views:
        found = ContentsRebuild(place, settings, views.find, partial(_standing, views)).run()
    line = f"{found['records']:,} answers and {found['texts']:,} versions of texts of {found['pages']:,} pages"
    click.echo(json.dumps(found) if as_json else f"{printable(str(place), 1000)}: {line}")
