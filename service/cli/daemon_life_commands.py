"""The commands `xyro stop`, `xyro log` and `xyro completion`."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import click

from xyro.service.cli.crawl_place import CrawlPlace, with_place
from xyro.service.cli.options import FiniteFloat, as_json_too, directory_of, of_cluster, terminal_width, with_data
from xyro.service.cli.partial_rows import PartialRows
from xyro.service.cli.running_crawl import find_running
from xyro.service.cli.stopped_crawl import stopped_views
from xyro.wire.errors import InputError, MachineError

PATIENCE = 60.0
"""seconds that a process is waited for that was asked to stop"""
TICK = 0.1


@click.command(short_help="Stop the process on the data directory, in order.")
@with_data
@click.option("--wait", type=FiniteFloat(0.0), default=PATIENCE, help="Seconds to wait for its end [60].")
def stop(data: Path | None, wait: float) -> None:
    """Stop the process that works on the data directory, in order.

    Reads under way are finished and committed, as with Ctrl-C. Returns when the process has ended. Of a cluster it
    stops the one node whose directory this is.
    """
    from xyro.service.node.run_file import alive
    from xyro.wire.clock import SystemClock

    directory, clock = directory_of(data), SystemClock()
    if (remote := find_running(directory)) is None:
        raise InputError(f"{directory}: no process works on it: there is nothing to stop{of_cluster()}")
    try:
        os.kill(remote.pid, signal.SIGTERM)
    except PermissionError as error:
        raise InputError(f"process {remote.pid} is another user's; stop it as that user") from error
    except ProcessLookupError:  # it has just ended
        pass
    end = clock.monotonic() + wait
    while alive(remote.pid):
        if clock.monotonic() > end:
            raise MachineError(f"process {remote.pid} has not ended in {wait:g} s; wait, or `kill -9 {remote.pid}`")
        threading.Event().wait(TICK)
    click.echo(f"process {remote.pid} has ended")


@click.command("log")
@with_place
@click.option("--errors", is_flag=True, help="Pages whose last read failed, by class, with examples.")
@as_json_too
def log_command(place: CrawlPlace, errors: bool, as_json: bool) -> None:
    """List failures by class, with examples (--errors).

    They come from stored data, so they include earlier runs. The log itself goes to standard error; a service manager
    stores it: `journalctl -u xyro`. [log] format = "json" writes it as JSON. Exit code 3: a node of the cluster did not
    answer, and is named; the rows are those of the others.
    """
    if not errors:
        raise InputError("the log goes to standard error (`journalctl -u xyro`); `xyro log --errors` lists failures")
    from xyro.plugins.dashboard.page_failures import failure_lines, failures

    if (remote := place.find()) is not None:
        found = PartialRows(remote.get("/errors", partial=1))
    else:
        with stopped_views(place.directory) as views:
            found = PartialRows(failures(views))
    rows = list(found)
    click.echo(json.dumps(rows) if as_json else failure_lines(rows, terminal_width()))
    found.tell_missing()


@click.command(short_help="Print the script for completion in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete commands and options: `eval "$(xyro completion bash)"`."""
    from click.shell_completion import get_completion_class

    kind, root = get_completion_class(shell), click.get_current_context().find_root()
    assert kind is not None, "click knows these shells"
    click.echo(kind(root.command, {}, "xyro", "_XYRO_COMPLETE").source())
