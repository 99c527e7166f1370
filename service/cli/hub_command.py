"""The command `xyro hub`: a broker for a cluster, for whoever has none."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command(short_help="Run a broker for the nodes of a cluster.")
@click.option("--listen", default="127.0.0.1:4222", metavar="HOST:PORT", help="Where nodes reach it [127.0.0.1:4222].")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("xyro-hub"),
    help="Its directory [./xyro-hub].",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="What other machines call it, for its certificate; may be repeated [this machine's name].",
)
@click.option(
    "--share",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Where URL and certificate are written for `--join` [DATA/join].",
)
@click.option("--check", is_flag=True, help="Ask the broker that runs on the directory; exit code 0 if it answers.")
def hub(listen: str, data: Path, names: tuple[str, ...], share: Path | None, check: bool) -> None:
    """Run a broker (NATS) until stopped: `xyro serve --join URL` on any machine joins a node.

    On a loopback address the broker has neither token nor TLS. Elsewhere it makes both once, keeps them in its
    directory, and prints the line to type on the other machine. A broker that dies is started again. Nodes continue
    without it: each reads its own hosts, and messages for others wait in its outbox.
    """
    import asyncio

    from xyro.service.cluster.broker import prepare_broker, run_hub
    from xyro.service.cluster.broker_config import Listen
    from xyro.wire.clock import SystemClock
    from xyro.wire.log_setup import set_up

    folder = data / "join" if share is None else share
    if check:
        from xyro.service.cluster.broker_check import check_broker

        click.echo(asyncio.run(check_broker(folder)))
        return
    set_up(os.environ.get("XYRO_LOG__LEVEL") or "info", os.environ.get("XYRO_LOG__FORMAT") or "text")
    os.umask(0o077)
    clock = SystemClock()
    plan = prepare_broker(Listen.parse(listen), data, folder, names, clock.time())

    def say() -> None:
        line = plan.line if share is None else f"xyro serve --join {share}"
        click.echo(f"a broker listens at {plan.listen}; a node joins by\n{line}")
        if plan.secrets and share is None:
            click.echo("with a copy of that file there; whoever has the line can read and change the crawl")

    asyncio.run(run_hub(plan, clock, say))
