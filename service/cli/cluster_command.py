"""The commands for running a cluster: `xyro cluster status`, `move`, `drain`, `forget`, `adopt`."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from xyro.service.cli.crawl_place import place_of
from xyro.service.cli.options import as_json_too
from xyro.wire.errors import InputError
from xyro.wire.text import printable

if TYPE_CHECKING:
    from xyro.service.cluster.broker_link import BrokerLink

T = TypeVar("T")


_BROKER_OPTIONS = (
    click.option("--join", default=None, metavar="URL", help="The cluster's broker, or the folder `xyro hub` wrote."),
    click.option(
        "--ca",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help="Certificate of the broker's authority.",
    ),
)
"""options that name the cluster: before the name of a command of the group, or behind it"""


def _with_join(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_BROKER_OPTIONS):
        command = option(command)
    return command


def _of_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command of the group take --join and --ca itself; the context then has (broker, certificate)."""

    @_with_join
    @functools.wraps(command)
    def placed(*args: Any, join: str | None, ca: Path | None, **rest: Any) -> Any:
        context = click.get_current_context()
        group_join, group_ca = context.obj
        place = place_of(None, join or group_join, ca or group_ca)
        if not place.join:
            raise InputError("cluster: which one? name its broker with --join URL, or in XYRO_CLUSTER__JOIN")
        context.obj = place.join, place.ca
        return command(*args, **rest)

    return placed


@click.group(short_help="Show nodes and partitions; move partitions.")
@_with_join
@click.pass_context
def cluster(context: click.Context, join: str | None, ca: Path | None) -> None:
    """Show the nodes of a cluster and their partitions, and change which node has which."""
    context.obj = join, ca


def _run(context: click.Context, work: Callable[[BrokerLink], Awaitable[T]]) -> T:
    """Do it over a connection of its own."""
    import asyncio

    from xyro.service.cluster.broker_link import BrokerLink
    from xyro.service.cluster.join_target import join_target

    async def connected() -> T:
        link = await BrokerLink.open(*join_target(*context.obj), "xyro cluster")
        try:
            return await work(link)
        finally:
            await link.close()

    return asyncio.run(connected())


@cluster.command("status")
@as_json_too
@_of_cluster
@click.pass_context
def show(context: click.Context, as_json: bool) -> None:
    """Show nodes, their partitions, and planned moves."""
    from xyro.service.cluster.cluster_remote import read_placement
    from xyro.service.cluster.steering import cluster_status

    async def look(link: BrokerLink) -> dict[str, Any]:
        return await cluster_status(link, await read_placement(link))

    found = _run(context, look)
    click.echo(json.dumps(found) if as_json else _text(found))


def _text(found: dict[str, Any]) -> str:
    from xyro.service.cluster.gathering import listed

    lines = [f"crawl {found['crawl']}, {found['partitions']} partitions"]
    for node in found["nodes"]:
        state = "away" if not node["alive"] else "leaves" if node["draining"] else "here"
        partitions = listed(node["partitions"]) or "no partition"
        closed = f"; closed: {listed(node['closed'])}, as its log says" if node["closed"] else ""
        failed = f"; it failed: {printable(node['ended'], 1_000)}" if node["ended"] else ""
        lines.append(f"node {node['node']} on {node['host']}, {state}: {partitions}{closed}{_process(node)}{failed}")
    lines += [f"partition {move['partition']} moves to node {move['to']}" for move in found["moves"]]
    return "\n".join(lines)


def _process(node: dict[str, Any]) -> str:
    """The process that runs as a node, or ran last, and its directory."""
    return f" (process {node['pid']}, {printable(node['directory'], 1_000)})" if node["pid"] else ""


@cluster.command()
@click.argument("partition", type=int, metavar="P")
@click.argument("node", type=int)
@_of_cluster
@click.pass_context
def move(context: click.Context, partition: int, node: int) -> None:
    """Move partition P to NODE while the crawl goes on."""
    from xyro.service.cluster.steering import plan_move

    _run(context, lambda link: plan_move(link, partition, node))
    click.echo(f"partition {partition} goes to node {node}; `xyro cluster status` shows when it is there")


@cluster.command("drain")
@click.argument("node", type=int)
@click.option("--no-wait", is_flag=True, help="Do not wait until it has no partition.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up waiting if no partition has gone for so long; the moves go on.",
)
@_of_cluster
@click.pass_context
def drain_node(context: click.Context, node: int, no_wait: bool, timeout: float) -> None:
    """Move all partitions of NODE to the other nodes, so that it can be stopped.

    Ctrl-C ends the waiting, not the moves. `xyro cluster status` shows what is left.
    """
    from xyro.service.cluster.gathering import listed
    from xyro.service.cluster.steering import drain, follow_drain
    from xyro.wire.clock import SystemClock
    from xyro.wire.text import counted

    async def work(link: BrokerLink) -> None:
        placement = await drain(link, node)
        if owned := sorted(placement.owned(node)):
            click.echo(f"node {node} hands over {counted(len(owned), 'partition')}: {listed(owned)}")
        if not no_wait:
            await follow_drain(link, placement, node, SystemClock(), timeout, click.echo)
        if not (no_wait and owned):
            click.echo(f"node {node} has no partition: stop it, then `xyro cluster forget {node}`")
        else:
            click.echo("`xyro cluster status` shows when it has none, and can be stopped")

    _run(context, work)


@cluster.command("forget")
@click.argument("node", type=int)
@_of_cluster
@click.pass_context
def forget_node(context: click.Context, node: int) -> None:
    """Remove NODE, which has no partition any more, from the list."""
    from xyro.service.cluster.steering import forget

    _run(context, lambda link: forget(link, node))
    click.echo(f"node {node} is forgotten")


@cluster.command("restore")
@click.argument("sources", nargs=-1, metavar="BACKUP...", type=click.Path(path_type=Path))
@click.option("--partition", "-p", "partitions", type=int, multiple=True, metavar="P", help="Just these [all lost].")
@click.option("--node", type=int, default=None, help="The node that gets them [evenly].")
@click.option("--empty", is_flag=True, help="Partitions that no BACKUP has begin anew.")
@as_json_too
@_of_cluster
@click.pass_context
def restore_partitions(
    context: click.Context,
    sources: tuple[Path, ...],
    partitions: tuple[int, ...],
    node: int | None,
    empty: bool,
    as_json: bool,
) -> None:
    """Restore partitions whose disk is lost, so that no node has them open, from backups by `xyro backup`.

    If several BACKUPs have a partition, the newest is used. The crawl learns again what it had learned since: the other
    nodes announce again which URLs of it they know. URLs that were submitted since must be submitted again. If the lost
    node comes back, it opens none of these partitions.
    """
    from xyro.service.cluster.restore import Restoration
    from xyro.wire.clock import SystemClock

    def work(link: BrokerLink) -> Awaitable[list[dict[str, Any]]]:
        return Restoration(link, SystemClock()).restore(sources, partitions, node, empty)

    found = _run(context, work)
    if as_json:
        click.echo(json.dumps(found))
        return
    for each in found:
        line = f"partition {each['partition']} is open on node {each['node']}: {each['pages']:,} pages"
        lost = f"{each['pages_lost']:,} pages and {each['transfers_lost']:,} transfers since then are lost"
        click.echo(f"{line} of {each['backup'] or 'no backup'}; {lost}")
    gap = sum(each.get("cash", 0) for each in found)
    click.echo(
        f"{abs(gap):,} units of cash {'were missing, and are paid' if gap >= 0 else 'are taken back, paid twice'}"
    )


@cluster.command("set")
@click.argument("settings", nargs=-1, metavar="SECTION.KEY=VALUE...")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False, exists=True), multiple=True,
              help="Settings (TOML), [[rules]] and [[focus]] too.")  # fmt: skip
@_of_cluster
@click.pass_context
def set_settings(context: click.Context, settings: tuple[str, ...], config: tuple[Path, ...]) -> None:
    """Change settings that all nodes share: scope, rules, networks, delay, contact, focus, what is stored.

    Delays change at once, at a commit boundary of each node; others when a node is next started.
    """
    from xyro.service.cluster.steering import agree

    change = partial(_changed_settings, config=config, pairs=settings)
    names = _run(context, lambda link: agree(link, change))
    click.echo(f"changed: {', '.join(names) or 'nothing'}")


def _changed_settings(now: dict[str, Any], config: tuple[Path, ...], pairs: tuple[str, ...]) -> dict[str, Any]:
    """The shared settings, checked, with those of files and `section.key=value` in place of the old ones."""
    from xyro.configs.load import load
    from xyro.configs.schema import Settings
    from xyro.service.node.crawl_file import agreed, text_of, with_agreed

    wanted = dict(pair.partition("=")[::2] for pair in pairs)
    shared = sorted(key for key in now if "." in key)
    if others := sorted(wanted.keys() - {*shared}):
        raise InputError(f"{others[0]}: is no setting that nodes share; those are {', '.join(shared)}")
    environ = {f"XYRO_{key.upper().replace('.', '__')}": value for key, value in wanted.items()}
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, "before.toml")
        before.write_text(text_of(with_agreed(Settings(), now)), encoding="utf-8")
        return agreed(load((before, *config), environ))


@cluster.command("unbound")
@_of_cluster
@click.pass_context
def lift_bounds(context: click.Context) -> None:
    """Lift the bounds of the last `xyro crawl --join`, so that the nodes read and refresh as daemons."""
    from xyro.service.cli.cluster_crawl import begin_run

    remote = place_of(None, *context.obj).daemon()
    begin_run(remote, run=0)
    click.echo("the nodes read on, without bounds")


@cluster.command("adopt")
@_of_cluster
@click.pass_context
def adopt_nodes(context: click.Context) -> None:
    """Rebuild the broker's lost bucket from what the running nodes know."""
    from xyro.service.cluster.steering import adopt

    placement = _run(context, adopt)
    click.echo(f"crawl {placement.crawl}: {placement.partitions} partitions on {len(placement.members)} nodes")
