"""The command `xyro backup`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from xyro.service.cli.options import as_json_too, directory_of, of_cluster, with_data
from xyro.wire.errors import InputError
from xyro.wire.text import printable


@click.command()
@click.argument("target", metavar="DEST", type=click.Path(path_type=Path))
@with_data
@as_json_too
def backup(target: Path, data: Path | None, as_json: bool) -> None:
    """Copy the data directory, as of one commit, to DEST.

    Works whether a process crawls there or not. DEST must not exist; it appears when the copy is complete. It is a data
    directory like any other: `xyro audit --data DEST` checks it, `xyro serve --data DEST` resumes from it.
    """
    directory = directory_of(data)
    from xyro.service.node.run_file import Remote

    remote = Remote.find(directory)
    if remote is not None:
        summary = remote.post("/backup", {"to": str(target.absolute())})
    elif not directory.exists() and of_cluster():
        raise InputError(f"{directory}: no such data directory{of_cluster()}")
    else:
        from xyro.service.node.backup import stopped

        summary = stopped(directory, target)
    if as_json:
        click.echo(json.dumps(summary))
    else:
        click.echo(f"{printable(summary['to'], 1000)}: {summary['bytes']:,} bytes in {summary['seconds']:.1f} s")
