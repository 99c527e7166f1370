"""The command `xyro migrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from xyro.service.cli.options import as_json_too, directory_of, with_data
from xyro.wire.text import printable


@click.command()
@click.argument("target", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@with_data
@as_json_too
def migrate(target: Path | None, data: Path | None, as_json: bool) -> None:
    """Carry a data directory of an older Xyro over to this one.

    The old directory stays beside it under another name, as a backup: delete it when the crawl runs well. Needs room
    for a second copy. May be killed and started again. A directory of today's format is left alone.
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
