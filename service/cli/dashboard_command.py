"""The command `xyro dashboard`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

from xyro.service.cli.options import directory_of, tell, with_data
from xyro.service.cli.running_crawl import daemon, with_wait
from xyro.wire.errors import InputError

OPENS_WITHIN = 5.0
"""seconds in which a browser that cannot be opened is known not to be"""


@click.command(short_help="Print a link to the crawl's page for the browser.")
@with_data
@with_wait
@click.option("--open", "launch", is_flag=True, help="Open it in this machine's browser.")
@click.option("--listen", default="", metavar="HOST:PORT", help="In a container: pass connections on from there.")
@click.option("--at", "address", default="", metavar="HOST:PORT", help="Where the browser reaches --listen.")
def dashboard(data: Path | None, wait: float | None, launch: bool, listen: str, address: str) -> None:
    """Print a link to a page that shows the running crawl in the browser.

    It shows what limits the speed now and what is wrong, freshness, hosts (pause, resume, block), why a page is read
    when, and nodes. The link works once, within ten minutes, and only on this machine. From another one, run `ssh -L
    PORT:127.0.0.1:PORT HOST` first, with the port of the link.

    In a container this machine is the container. --listen 0.0.0.0:8089 passes what comes to that port on to the page,
    until Ctrl-C; publish the port on 127.0.0.1 alone, for there is no TLS, and name the published address by --at.
    """
    from xyro.wire.urls import host_and_port

    remote = daemon(directory_of(data), wait)
    where = host_and_port(remote.host, remote.port)
    if listen or address:
        if not listen:
            raise InputError("--at: goes with --listen, such as --listen 0.0.0.0:8089")
        host, port = _parsed(listen, "--listen")
        where = host_and_port(*_parsed(address, "--at") if address else ("::1" if ":" in host else "127.0.0.1", port))
    link = f"http://{where}{remote.post('/dashboard/link', {})['path']}"
    click.echo(link)
    if launch and not _opened(link):
        tell("no browser was found on this machine: open the link in one, once, within ten minutes", err=True)
    if listen:
        from xyro.service.cli.dashboard_relay import Relay, serve_until_interrupted

        serve_until_interrupted(Relay(remote.host, remote.port), host, port)


def _opened(link: str) -> bool:
    """Open a link in this machine's browser. False: there is none, or no screen for it; what was tried says nothing."""
    screen = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    opener = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if not screen or opener is None:
        return False
    quiet = subprocess.DEVNULL
    started = subprocess.Popen([opener, link], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)  # noqa: S603
    try:
        return started.wait(OPENS_WITHIN) == 0
    except subprocess.TimeoutExpired:  # it is the browser itself, which goes on
        started.returncode = 0
        return True


def _parsed(text: str, name: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, where an IPv6 address stands in brackets, which the host is without."""
    host, _, port = text.strip().rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or (":" in host and bare == host) or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InputError(f"{name} {text}: expected HOST:PORT, such as 0.0.0.0:8089 or [::1]:8089")
    return bare, int(port)
