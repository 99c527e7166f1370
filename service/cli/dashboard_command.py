"""The command `xyro dashboard`."""

from __future__ import annotations

from pathlib import Path

import click

from xyro.service.cli.options import directory_of, with_data
from xyro.service.cli.running_crawl import daemon, with_wait


@click.command(short_help="Print a link to the crawl's page for the browser.")
@with_data
@with_wait
@click.option("--open", "launch", is_flag=True, help="Open it in this machine's browser.")
def dashboard(data: Path | None, wait: float | None, launch: bool) -> None:
    """Print a link to a page that shows the running crawl in the browser.

    It shows what limits the speed now and what is wrong, freshness, hosts (pause, resume, block), why a page is read
    when, and nodes. The link works once, within ten minutes, and only on this machine. From another one, run `ssh -L
    PORT:127.0.0.1:PORT HOST` first, with the port of the link.
    """
    remote = daemon(directory_of(data), wait)
    path = remote.post("/dashboard/link", {})["path"]
    link = f"http://{f'[{remote.host}]' if ':' in remote.host else remote.host}:{remote.port}{path}"
    click.echo(link)
    if launch:
        click.launch(link)
